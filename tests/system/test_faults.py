# SPDX-License-Identifier: Apache-2.0
"""What goes wrong while it runs: aborts, signals, kill -9, hangs, full and failing disks. Nothing may stay behind."""

import contextlib
import json
import os
import pathlib
import re
import signal
import time

import pytest

import lab
from harness import TIERPROBE, TIERPROBED, call, sections_for
from lab.catalog import GOOD, MB, MIB, SLOW

pytestmark = pytest.mark.disk


def codes(run):
    return [reason["code"] for reason in run["reasons"]]


@pytest.mark.parametrize("fs", ["xfs", "ext4", "btrfs"])
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_daemon_ends_in_the_middle_of_a_run(how, fs, daemon, disk):
    it = disk(rate=30 * MB, fs=fs)
    service = daemon(it.path)
    run_id = service.start_run()
    service.wait_writing(run_id, 8 << 20)
    assert it.files() == []  # the test file has no name at any time
    if how == signal.SIGKILL:
        service.kill()
    else:
        service.stop(how)
    assert it.nothing_left() is None

    again = daemon(it.path)
    run = again.run(run_id)
    assert (run["state"], run["verdict"], codes(run)) == ("aborted", "inconclusive", ["aborted"])
    assert again.target()["last_run"]["id"] == run_id
    assert again.target()["state"] == "idle"
    it.behave(rate=GOOD)
    assert again.whole_run()["verdict"] == "pass"


def test_abort_over_http(daemon, disk):
    it = disk(rate=30 * MB)
    service = daemon(it.path)
    run_id = service.start_run()
    service.wait_writing(run_id)
    answer = service.request("DELETE", f"/runs/{run_id}")
    assert answer.status == 202 and answer.json["id"] == run_id
    run = service.wait_run(run_id)
    assert (run["state"], run["verdict"], codes(run)) == ("aborted", "inconclusive", ["aborted"])
    assert service.request("DELETE", f"/runs/{run_id}").status == 409
    assert it.nothing_left() is None


def test_one_run_at_a_time(daemon, disk):
    it = disk(rate=30 * MB)
    service = daemon(it.path)
    run_id = service.start_run()
    answer = service.post("/run?profile=small")
    assert answer.status == 409
    assert run_id in answer.body.decode()
    service.wait_writing(run_id)
    assert service.post("/run?profile=small").status == 409
    assert service.status["state"] == "running"
    assert service.target()["current_run"]["id"] == run_id
    service.request("DELETE", f"/runs/{run_id}")
    service.wait_run(run_id)


def overlaps(one, two):
    return one["started_at"] < two["finished_at"] and two["started_at"] < one["finished_at"]


def test_two_targets_on_one_disk_take_turns(daemon, disk):
    it = disk(rate=GOOD)
    service = daemon({"a": it.directory("a"), "b": it.directory("b")}, count=100)
    answer = service.post("/run?profile=small")
    assert answer.status == 202, answer
    ids = [run["id"] for run in answer.json["runs"]]
    assert len(ids) == 2
    states = {service.run(i)["state"] for i in ids}
    assert states != {"running"}
    one, two = (service.wait_run(i) for i in ids)
    assert not overlaps(one, two)
    assert {one["verdict"], two["verdict"]} == {"pass"}


def test_partitions_of_one_disk_take_turns(daemon):
    with lab.two_partitions() as (one, two):
        service = daemon({"a": one.path, "b": two.path}, count=100)
        ids = [run["id"] for run in service.post("/run?profile=small").json["runs"]]
        runs = [service.wait_run(i) for i in ids]
        assert not overlaps(*runs)


def test_different_disks_run_side_by_side(daemon, disk):
    one, two = disk(rate=30 * MB), disk(rate=30 * MB)
    service = daemon({"a": one.path, "b": two.path})
    ids = [run["id"] for run in service.post("/run?profile=small").json["runs"]]
    for run_id in ids:
        service.wait_writing(run_id)
    assert {service.run(i)["state"] for i in ids} == {"running"}
    for run_id in ids:
        service.request("DELETE", f"/runs/{run_id}")
        service.wait_run(run_id)


def test_a_queued_run_can_be_aborted(daemon, disk):
    it = disk(rate=30 * MB)
    service = daemon({"a": it.directory("a"), "b": it.directory("b")})
    ids = [run["id"] for run in service.post("/run?profile=small").json["runs"]]

    def running():  # which of the two comes first is open
        return next((i for i in ids if service.run(i)["bytes_written"] > 0), None)
    first = lab.wait_for("bytes written", running)
    second = next(i for i in ids if i != first)
    assert service.run(second)["state"] == "queued"
    assert service.request("DELETE", f"/runs/{second}").status == 202
    run = service.wait_run(second)
    assert (run["state"], run["bytes_written"]) == ("aborted", 0)
    service.request("DELETE", f"/runs/{first}")
    service.wait_run(first)


def test_a_hung_disk_does_not_stop_the_daemon(daemon, disk):
    it = disk(rate=GOOD, hang_after=32 << 20)
    service = daemon(it.path)
    run_id = service.start_run()
    lab.wait_for("the hang", lambda: it.control["waiting"] > 0)

    def stalled():
        # From memory, in no time: the answer must not wait for the disk.
        target = service.get("/status", timeout=5).json["targets"][0]
        return target["current_run"] and (target["current_run"]["stalled_s"] or 0) >= 3
    lab.wait_for("the stall to be said", stalled, 30)
    before = service.target()["sample"]["seq"]
    lab.wait_for("samples to go on", lambda: service.target()["sample"]["seq"] > before)
    assert service.get("/healthz").status == 200

    assert service.request("DELETE", f"/runs/{run_id}").status == 202
    run = service.wait_run(run_id, 30)  # judged although the writer is still held by the kernel
    assert run["state"] == "aborted"
    assert {"aborted", "stalled"} <= set(codes(run))

    # The disk is still busy with it: another run waits or is refused, but does not run beside it.
    answer = service.post("/run?profile=small")
    assert answer.status in (202, 409, 503)
    if answer.status == 202:
        second = answer.json["runs"][0]["id"]
        assert service.run(second)["state"] != "running"
        service.request("DELETE", f"/runs/{second}")
    it.unhang()
    lab.wait_for("the writer to be gone", lambda: it.open_files() == [], 60)
    assert it.nothing_left() is None


def test_stopping_while_the_disk_hangs(daemon, disk):
    it = disk(rate=GOOD, hang_after=32 << 20)
    service = daemon(it.path)
    run_id = service.start_run()
    lab.wait_for("the hang", lambda: it.control["waiting"] > 0)
    service.stop(deadline_s=60)
    it.unhang()
    assert it.nothing_left() is None
    it.behave(rate=GOOD)
    again = daemon(it.path)
    assert again.run(run_id)["state"] == "aborted"
    assert again.whole_run()["verdict"] == "pass"


def test_a_stall_of_five_seconds(daemon, disk):
    it = disk(rate=GOOD, stall_after=64 << 20, stall_us=5_000_000)
    service = daemon(it.path)
    it.control.mark()
    run = service.whole_run()
    assert run["verdict"] == "fail"
    assert "stalled" in codes(run)
    assert run["latency_ms"]["max"] >= 4900


@pytest.mark.parametrize("fs", ["xfs", "ext4"])
def test_no_space_in_the_middle(fs, daemon, disk):
    it = disk(rate=20 * MB, fs=fs)
    service = daemon(it.path, guard={"min_free": "0"})
    run_id = service.start_run()
    service.wait_writing(run_id, 8 << 20)
    it.fill(leave="1M")
    run = service.wait_run(run_id)
    it.unfill()
    assert (run["state"], run["verdict"]) == ("failed", "inconclusive"), run
    assert codes(run)[0] == "no_space"
    assert 8 << 20 <= run["bytes_written"] < run["bytes_total"]
    assert it.nothing_left() is None


def assert_no_space(service):
    """Refused at once by what was just seen, or by the look that is taken for the run."""
    answer = service.post("/run?profile=small")
    if answer.status == 202:
        run = service.wait_run(answer.json["runs"][0]["id"])
        assert (run["verdict"], codes(run), run["bytes_written"]) == ("inconclusive", ["no_space"], 0), run
    else:
        assert (answer.status, answer.code) == (503, "no_space")


@pytest.mark.parametrize("fs", ["xfs", "ext4"])
def test_runs_one_after_another_where_only_one_has_room(fs, daemon, disk):
    """The space of the last one's file comes back in the file system's own time, and is waited for."""
    it = disk(programmable=False, size="700M", fs=fs)
    service = daemon(it.path, count=400)
    for _ in range(8):
        run = service.whole_run()
        assert (run["state"], run["bytes_written"]) == ("finished", run["bytes_total"]), run
    it.fill(leave="100M")
    assert_no_space(service)
    it.unfill()
    lab.wait_for("the space to be seen", lambda: service.post("/run?profile=small").status == 202)
    lab.wait_for("the end", lambda: service.status["state"] == "idle")
    assert service.target()["last_run"]["state"] == "finished"


def test_no_device_is_the_better_reason(daemon, folder):
    """A target in memory has too little space besides."""
    target = folder / "memory"
    target.mkdir()
    lab.run("mount", "-t", "tmpfs", "-o", "size=16M", "tmpfs", target)
    try:
        run = daemon(target, count=300).whole_run()
        assert (run["verdict"], codes(run)) == ("inconclusive", ["no_block_device"]), run
    finally:
        lab.run("umount", "-l", target)


def test_too_little_space_is_refused_before(daemon, disk):
    it = disk(rate=GOOD)
    service = daemon(it.path, count=2000)
    assert_no_space(service)


def test_removed_in_the_middle(daemon, disk):
    it = disk(rate=20 * MB)
    service = daemon(it.path)
    run_id = service.start_run()
    service.wait_writing(run_id, 8 << 20)
    it.remove()
    run = service.wait_run(run_id)
    assert (run["verdict"], codes(run)[0]) == ("fail", "write_error")
    lab.wait_for("no open files", lambda: it.open_files() == [])
    assert service.get("/status").status == 200
    # And once more on the dead disk: a verdict, no crash.
    answer = service.post("/run?profile=small")
    if answer.status == 202:
        assert service.wait_run(answer.json["runs"][0]["id"])["verdict"] != "pass"


@pytest.mark.parametrize("fs", ["ext4", "xfs"])
def test_file_system_turns_read_only_in_the_middle(fs, daemon, disk):
    it = disk(rate=20 * MB, fs=fs)
    service = daemon(it.path)
    run_id = service.start_run()
    service.wait_writing(run_id, 8 << 20)
    it.go_read_only()
    run = service.wait_run(run_id)
    assert (run["state"], run["verdict"], codes(run)[0]) == ("finished", "fail", "write_error")
    service.stop()
    it.heal()
    assert it.nothing_left() is None


def test_a_failed_disk_keeps_no_daemon_from_starting(daemon, disk, folder):
    """Nor a reload: the configuration is right, and the other targets are to be tested."""
    bad, good = disk(), disk(rate=GOOD)
    bad.go_read_only()
    service = daemon({"bad": bad.path, "good": good.path})
    assert [problem["code"] for problem in service.target("bad")["problems"]] == ["write_error"]
    assert service.whole_run("good")["state"] == "finished"
    service.process.send_signal(signal.SIGHUP)
    lab.wait_for("the reload", lambda: "configuration reloaded: 2 targets" in service.stderr)
    assert service.whole_run("good")["state"] == "finished"
    bad.heal()
    lab.wait_for("the disk to be seen again", lambda: service.target("bad")["device"], 60)
    assert service.whole_run("bad")["state"] == "finished"


def test_read_only_mount(daemon, tierprobe, disk):
    it = disk()
    lab.run("mount", "-o", "remount,ro", it.path)
    run = daemon(it.path).whole_run()
    assert (run["verdict"], codes(run)) == ("inconclusive", ["not_permitted"])
    assert "read-only" in run["reasons"][0]["detail"].lower()
    done = tierprobe("run", it.path, "--count", 4)
    assert done.returncode == 3 and "not_permitted" in done.stdout


def test_full_disk(daemon, tierprobe, disk):
    it = disk()
    it.fill(leave="1M")
    service = daemon(it.path)
    assert_no_space(service)
    done = tierprobe("run", it.path, "--count", 32)
    assert done.returncode == 3 and "no_space" in done.stdout
    it.unfill()
    assert it.nothing_left() is None


def test_not_to_be_entered(folder, disk):
    """Who may not go where is said, with the command that mends it, and never that the directory does not exist."""
    it = disk()
    target = it.directory("cache", mode=0o777)
    it.path.chmod(0o750)
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    done = call(*nobody, TIERPROBE, "run", target, "--count", 4, "--json")
    run = json.loads(done.stdout)
    assert (run["verdict"], codes(run)) == ("inconclusive", ["not_permitted"])
    assert f"User nobody may not enter {it.path} (owner root, group root, mode 0750)" in run["reasons"][0]["detail"]
    conf = folder / "check.conf"
    conf.write_text(f"[target cache]\npath = {target}\n")
    folder.chmod(0o755), conf.chmod(0o644)
    done = call(*nobody, TIERPROBED, "--check-config", "--config", conf)
    assert done.returncode == 78 and f"{conf}:2: User nobody may not enter {it.path}" in done.stderr


def test_file_size_limit(disk):
    """An own limit is named as what it is, not as a full file system."""
    it = disk()
    done = call("prlimit", "--fsize=4194304:4194304", TIERPROBE, "run", it.path, "--count", 8, "--json")
    run = json.loads(done.stdout)
    assert (run["verdict"], codes(run)[0]) == ("inconclusive", "throttled")
    assert "file size limit" in run["reasons"][0]["detail"] and "LimitFSIZE" in run["reasons"][0]["detail"]
    assert it.nothing_left() is None


def test_not_writable(daemon, folder, disk):
    """As a service does it: an unprivileged user whose folder belongs to somebody else."""
    it = disk()
    target = it.directory("cache", mode=0o755)
    folder.chmod(0o777)
    service = daemon(target, prefix=["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"])
    run = service.whole_run()
    assert (run["verdict"], codes(run)) == ("inconclusive", ["not_permitted"])
    said = run["reasons"][0]["detail"]
    assert f"User nobody may not make files in {target} (owner root, group root, mode 0755)" in said
    assert f"setfacl -m u:nobody:rwx {target}" in said
    os.chown(target, 65534, 65534)
    assert service.whole_run()["state"] == "finished"


def test_tmpfs(daemon, tierprobe, folder):
    target = folder / "memory"
    target.mkdir()
    lab.run("mount", "-t", "tmpfs", "-o", "size=512M", "tmpfs", target)
    try:
        service = daemon(target, count=16)
        run = service.whole_run()
        assert run["verdict"] == "inconclusive" and "no_block_device" in codes(run), run
        assert service.target()["device"] is None or service.target()["device"]["filesystem"] == "tmpfs"
        done = tierprobe("run", target, "--count", 16)
        assert done.returncode == 3 and "no_block_device" in done.stdout
        service.stop()
    finally:
        lab.run("umount", "-l", target)


def test_overlay_whose_upper_layer_has_no_disk(daemon, folder):
    memory = folder / "memory"
    memory.mkdir()
    lab.run("mount", "-t", "tmpfs", "tmpfs", memory)
    try:
        for name in ("lower", "upper", "work", "merged"):
            (memory / name).mkdir()
        lab.run("mount", "-t", "overlay", "overlay", "-o",
                f"lowerdir={memory}/lower,upperdir={memory}/upper,workdir={memory}/work", memory / "merged")
        service = daemon(memory / "merged", count=16)
        run = service.whole_run()
        assert run["verdict"] == "inconclusive" and "no_block_device" in codes(run), run
        service.stop()
    finally:
        lab.run("umount", "-l", memory / "merged", check=False)
        lab.run("umount", "-l", memory)


def test_overlay_on_a_disk(daemon, disk):
    """Either the disk below the upper layer is judged, or it is said why not; never a silent pass of nothing."""
    it = disk(rate=GOOD)
    for name in ("lower", "upper", "work", "merged"):
        it.directory(name)
    lab.run("mount", "-t", "overlay", "overlay", "-o",
            f"lowerdir={it.path}/lower,upperdir={it.path}/upper,workdir={it.path}/work", it.path / "merged")
    try:
        service = daemon(it.path / "merged")
        run = service.whole_run()
        if run["verdict"] == "pass":
            assert run["device"]["name"] == it.name
        else:
            assert run["verdict"] == "inconclusive" and codes(run)[0] == "no_block_device", run
        service.stop()
    finally:
        lab.run("umount", "-l", it.path / "merged")


def test_another_disk_is_mounted_over_the_target(daemon, disk):
    """The row that is judged is that of the disk that is there at the time of the run."""
    one, two = disk(rate=GOOD), disk(rate=GOOD, fs="ext4")
    target = one.directory("cache")
    service = daemon(target, count=100)
    assert service.whole_run()["device"]["name"] == one.name
    lab.run("mount", "--bind", two.path, target)
    try:
        run = service.whole_run()
        assert run["device"]["name"] == two.name
        assert run["bytes_written"] == run["bytes_total"]
        service.stop()
    finally:
        lab.run("umount", "-l", target)


def test_path_disappears_while_the_daemon_runs(daemon, disk):
    it = disk(rate=GOOD)
    target = it.directory("cache")
    service = daemon(target)
    target.rmdir()
    run = service.whole_run()
    assert run["verdict"] == "inconclusive" and codes(run) == ["path_missing"], run
    target.symlink_to("/tmp")
    run = service.whole_run()
    assert run["verdict"] == "inconclusive", run
    target.unlink()
    assert service.get("/healthz").status == 200


def test_killed_writer_is_no_verdict_on_the_disk(daemon, disk):
    it = disk(rate=30 * MB)
    service = daemon(it.path)
    run_id = service.start_run()
    service.wait_writing(run_id)
    writer = lab.wait_for("the writer", lambda: it.open_files())[0][0]
    assert writer != service.process.pid
    os.kill(writer, signal.SIGKILL)
    run = service.wait_run(run_id)
    assert run["verdict"] == "inconclusive" and codes(run)[0] == "aborted", run
    assert it.nothing_left() is None


def test_existing_files_are_never_touched(daemon, disk):
    it = disk(rate=GOOD)
    names = ["testfile", ".tierprobe", "tierprobe-test", "data"]
    for name in names:
        (it.path / name).write_text(name)
    before = {name: (it.path / name).stat() for name in names}
    assert daemon(it.path).whole_run()["verdict"] == "pass"
    for name in names:
        assert (it.path / name).read_text() == name
        now = (it.path / name).stat()
        assert (now.st_ino, now.st_mtime_ns, now.st_nlink) == \
            (before[name].st_ino, before[name].st_mtime_ns, before[name].st_nlink)
    assert sorted(it.files()) == sorted(names)


def test_cooldown(daemon, disk):
    it = disk(rate=10 * MB)
    service = daemon(it.path, count=30, guard={"cooldown": "1h"})
    service.whole_run()
    answer = service.post("/run?profile=small")
    assert answer.status == 429
    for _ in range(5):
        assert service.post("/run?profile=small").status == 429
    assert service.stderr.count("no run of cache for ") == 1  # said once
    assert 3500 < int(answer.headers["Retry-After"]) <= 3600


def test_no_cooldown_after_a_run_that_told_nothing(daemon, disk):
    it = disk(rate=30 * MB)
    service = daemon(it.path, guard={"cooldown": "1h"})
    service.wait_writing(aborted := service.start_run(), 8 << 20)
    assert service.request("DELETE", f"/runs/{aborted}").status == 202
    assert service.wait_run(aborted)["verdict"] == "inconclusive"
    again = service.start_run()
    assert service.wait_run(again)["verdict"] == "fail"  # a rate below the limit
    assert service.post("/run?profile=small").code == "cooldown"


def test_max_duration_judges_what_was_measured(daemon, disk):
    it = disk(rate=SLOW)
    run = daemon(it.path, guard={"max_duration": "2s"}).whole_run()
    assert run["verdict"] == "fail" and "truncated" in codes(run), run
    assert 0 < run["bytes_written"] < run["bytes_total"]
    assert it.nothing_left() is None


def test_scheduled_run_comes_at_its_time_and_not_at_start(daemon, disk):
    # A scheduled run is of the official profile; the sparse disk has room for it, the time limit ends it.
    it = disk(rate=30 * MB, size="12G", fs="ext4")
    sections = sections_for(it.path, official="procedure", schedule={"interval": "4s", "jitter": "1s"},
                            guard={"max_duration": "1s"})
    service = daemon(sections=sections)
    target = service.target()
    started = time.time()
    assert target["current_run"] is None and target["last_run"] is None and target["verdict"] == "never_run"
    assert target["next_run_at"] is not None
    run = lab.wait_for("the scheduled run", lambda: service.target()["last_run"], 60)
    assert run["trigger"] == "schedule" and run["profile"] == "procedure" and run["certifying"] is False
    assert time.time() - started > 2  # it came from the schedule, not from the start
    again = service.target()
    assert again["next_run_at"] > run["started_at"]


def test_a_scheduled_run_gives_way(daemon, disk):
    """Others need the device: what the schedule began ends and is made up for later, what was asked for goes on."""
    it = disk(rate=60 * MB, size="1G")
    service = daemon(sections=sections_for(it.path, count=700, schedule={"interval": "6s", "jitter": "none"},
                                           guard={"abort_foreign_mb_per_s": 5, "max_foreign_mb_per_s": "none"}))
    with it.other_writer():
        run = lab.wait_for("the scheduled run", lambda: service.target()["last_run"], 60)
        assert (run["trigger"], run["state"], codes(run)[0]) == ("schedule", "aborted", "aborted")
        assert re.search(rf"Others write \d+ MB/s to {it.name}, more than \[guard\] abort_foreign_mb_per_s = 5",
                         run["reasons"][0]["detail"])
        assert run["bytes_written"] < 700 * MIB
        assert service.target()["verdict"] == "never_run" and service.target()["next_run_at"]
    service.stop()


@contextlib.contextmanager
def group_beside():
    """A control group of version 2 beside the one that the tests are in."""
    hierarchies = [line.split()[1] for line in open("/proc/mounts") if line.split()[2] == "cgroup2"]
    own = next((line.strip()[3:] for line in open("/proc/self/cgroup") if line.startswith("0::/")), None)
    if not hierarchies or own is None or not os.access(f"{hierarchies[0]}/io.pressure", os.R_OK):
        pytest.skip("no control groups of version 2 with io.pressure")
    group = pathlib.Path(hierarchies[0], own.strip("/"), f"tierprobe-test-{os.getpid()}")
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made: {error}")
    try:
        yield group
    finally:
        lab.wait_for("an empty group", lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


def test_a_scheduled_run_gives_way_to_those_who_wait(daemon, disk):
    """A database on a disk of its own, which is slow: it is the one that waits."""
    it, its = disk(rate=60 * MB, size="1G"), disk(rate=5 * MB, size="1G")
    with group_beside() as group, its.other_writer() as writer:
        (group / "cgroup.procs").write_text(str(writer.pid))
        service = daemon(sections=sections_for(it.path, count=700, schedule={"interval": "6s", "jitter": "none"},
                                               guard={"abort_io_pressure": 5}))
        run = lab.wait_for("the scheduled run", lambda: service.target()["last_run"])
        assert (run["trigger"], run["state"], codes(run)[0]) == ("schedule", "aborted", "aborted")
        assert re.search(r"/.* waits for disks \d+ % of the time \(io.pressure\), more than \[guard\] "
                         r"abort_io_pressure = 5, and comes first", run["reasons"][0]["detail"])
        assert run["bytes_written"] < 700 * MIB
        service.stop()


def test_pressure_that_cannot_be_seen_is_refused(tierprobed, folder):
    """A machine without control groups of version 2: the key would have no effect."""
    for name in ("proc/self", "sys"):
        (folder / name).mkdir(parents=True)
    (folder / "proc/self/mountinfo").write_text(open("/proc/self/mountinfo").read())
    config = folder / "tierprobed.conf"
    config.write_text(f"[guard]\nabort_io_pressure = 20\n[target cache]\npath = {folder}\n")
    done = tierprobed("--config", config, "--check-config", "--procfs", folder / "proc", "--sysfs", folder / "sys")
    assert done.returncode == 78 and "abort_io_pressure = 20: no control group beside" in done.stderr, done.stderr


def test_a_run_that_was_asked_for_gives_no_way(daemon, disk):
    it = disk(rate=60 * MB, size="1G")
    service = daemon(sections=sections_for(it.path, count=700, guard={"abort_foreign_mb_per_s": 5}))
    run_id = service.start_run()
    with it.other_writer():
        lab.wait_for("six seconds", lambda: (service.run(run_id)["elapsed_s"] or 0) > 6)
        assert service.run(run_id)["state"] == "running"
    service.request("DELETE", f"/runs/{run_id}")
    service.wait_run(run_id)


def test_a_scheduled_run_waits_for_a_quiet_device(daemon, disk):
    it = disk(rate=60 * MB, size="1G")
    with it.other_writer():
        service = daemon(sections=sections_for(it.path, schedule={"interval": "4s", "jitter": "none"},
                                               guard={"max_foreign_mb_per_s": 5}))
        lab.wait_for("the refusal", lambda: re.search(rf"others write [\d.]+ MB/s to {it.name}, more than "
                                                      r"\[guard\] max_foreign_mb_per_s = 5", service.stderr))
        assert service.get("/runs").json["runs"] == []
        run_id = service.start_run()  # whoever asks is told, and gets it
        assert re.search(rf"run {run_id} begins while others write \d+ MB/s to {it.name}", service.stderr)
        service.wait_writing(run_id)
    service.wait_run(run_id)


def test_the_defaults_are_safe(tierprobed, folder):
    """For a database that nobody thought of: a budget, and quiet."""
    config = folder / "tierprobed.conf"
    for limits, foreign in (("", "60"), ("[limits]\nwrite_mb_per_s = 250\n", "25")):
        config.write_text(f"{limits}[target cache]\npath = {folder}\n")
        printed = tierprobed("--config", config, "--print-config").stdout
        assert f"daily_write_budget = 100G\nmin_free = 1%\nmax_foreign_mb_per_s = {foreign}\n" in printed


def test_never_means_no_next_run(daemon, disk):
    it = disk()
    service = daemon(it.path, schedule={"interval": "never"})
    assert service.target()["next_run_at"] is None
