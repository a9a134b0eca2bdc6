# SPDX-License-Identifier: Apache-2.0
"""Every reason a verdict can have, on a real device as far as one can be brought to it.

REACHED says for each code which test comes to it. Where no device can be made to do it here (rows that time
nothing, counters that jump, a machine that sleeps) device, file system and writes are real and only its row, or the
clock, is told by a script: lab/counters.py, lab/suspend-shim.c. conftest's checked() looks at every sentence that any test
of the suite sees.
"""

import contextlib
import json
import os
import pathlib
import re
import subprocess

import pytest

import lab
from harness import ROOT, TIERPROBE, TIERPROBED, call, config_text, sections_for
from lab.catalog import GOOD, LIMITS, MB, SLOW, STEADY
from lab.counters import (W_IOS, W_MS, W_SECTORS, after, half, jump, reset, still, unreadable, untimed)

pytestmark = [pytest.mark.disk, pytest.mark.installed]

REACHED = {
    "write_throughput_low": "test_verdicts.py::test_daemon",
    "write_latency_high": "test_verdicts.py::test_daemon",
    "unsteady": "test_reasons.py::test_a_cliff_of_seconds_is_seen",
    "no_write_completed": "test_reasons.py::test_counters",
    "counters_untimed": "test_reasons.py::test_counters",
    "counters_disabled": "test_reasons.py::test_counters_disabled",
    "counters_reset": "test_reasons.py::test_counters",
    "suspended": "test_reasons.py::test_suspended",
    "bytes_mismatch": "test_verdicts.py::test_daemon",
    "foreign_io": "test_verdicts.py::test_daemon",
    "direct_io_unsupported": "test_reasons.py::test_blocks_too_small_for_direct_writes",
    "no_block_device": "test_faults.py::test_tmpfs",
    "path_missing": "test_faults.py::test_path_disappears_while_the_daemon_runs",
    "not_mounted": "test_reasons.py::test_not_mounted",
    "wrong_device": "test_reasons.py::test_wrong_device",
    "no_space": "test_verdicts.py::test_daemon",
    "write_error": "test_verdicts.py::test_daemon",
    "throttled": "test_faults.py::test_file_size_limit",
    "not_permitted": "test_faults.py::test_not_writable",
    "cache_in_front": "test_verdicts.py::test_page_cache_in_front_is_said",
    "double_writes": "test_reasons.py::test_a_journal_of_all_data",
    "stalled": "test_reasons.py::test_a_stall_is_told_while_it_lasts",
    "aborted": "test_faults.py::test_abort_over_http",
    "truncated": "test_reasons.py::test_truncated",
    "too_few_samples": "test_reasons.py::test_too_short_to_judge",
    "column_missing": "test_reasons.py::test_captures",
    "header_missing": "test_reasons.py::test_captures",
    "no_rows": "test_reasons.py::test_captures",
    "unreadable_rows": "test_reasons.py::test_captures",
    "not_a_capture": "test_reasons.py::test_captures",
    "too_old": "test_standing.py::test_too_old",
    "device_changed": "test_standing.py::test_what_makes_it_stale",
    "firmware_changed": "test_standing.py::test_what_makes_it_stale",
    "filesystem_changed": "test_standing.py::test_another_disk_and_another_file_system",
    "limits_changed": "test_standing.py::test_what_makes_it_stale",
    "profile_changed": "test_standing.py::test_what_makes_it_stale",
    "degraded": "test_standing.py::test_degraded",
    "unconfirmed": "test_confirm.py::test_a_fail_after_a_pass_is_tested_once_more",
    "cache_in_front": "test_verdicts.py::test_page_cache_in_front_is_said",
    "double_writes": "test_reasons.py::test_double_writes",
    "idle": "test_judge.py::test_idle_devices_are_no_failures",
}


def codes(run):
    return [reason["code"] for reason in run["reasons"]]


def detail(run, code):
    return next(reason["detail"] for reason in run["reasons"] if reason["code"] == code)


def test_every_code_has_its_test():
    names = re.findall(r'\[REASON_\w+\] = "(\w+)"', (ROOT / "src/verdict/verdict.c").read_text())
    assert sorted(names) == sorted(REACHED)
    for place in REACHED.values():
        file, _, test = place.partition("::")
        assert f"\ndef {test}(" in (ROOT / "tests/system" / file).read_text(), place


@pytest.fixture
def run_json(folder):
    """run_json(PATH, ...) is the RUN that `tierprobe run --json` prints, with the limits of the tests."""
    def run(path, *arguments, environment=None, prefix=(), **more):
        sections = sections_for(path, **more)
        (folder / "run.conf").write_text(config_text(sections))
        command = [*prefix, TIERPROBE, "run"]
        done = call(*command, path, "--config", folder / "run.conf", "--profile", "small", "--json", *arguments,
                    env={**os.environ, **(environment or {})})
        run = json.loads(done.stdout)
        assert done.returncode == {"pass": 0, "fail": 2, "inconclusive": 3}[run["verdict"]]
        return run
    return run


# ---- counters that cannot be trusted ----

@pytest.mark.parametrize("script,verdict,code,said", [
    (untimed, "inconclusive", "counters_untimed", "counts 0 ms over"),
    (still, "inconclusive", "no_write_completed", "another device or a cache"),
    (half, "inconclusive", "bytes_mismatch", "(50 %"),
    (after(100, reset), "inconclusive", "counters_reset", "reset"),
    (after(100, unreadable), "inconclusive", "counters_reset", "unreadable"),
    (after(100, jump(W_SECTORS, 10**13)), "inconclusive", "counters_reset", "MB/s is more than any device writes"),
    (after(100, jump(W_MS, 10**9)), "inconclusive", "counters_reset", "w_await of"),
    (after(100, jump(W_IOS, -10**9)), "inconclusive", "counters_reset", "unreadable"),
], ids=["untimed", "still", "half", "reset", "unreadable", "sectors-jump", "time-jumps", "negative"])
def test_counters(script, verdict, code, said, run_json, disk):
    it = disk(rate=GOOD)
    with lab.counters(it) as row:
        row.script(script)
        run = run_json(it.path, "--sysfs", row.root)
    assert (run["verdict"], codes(run)[0]) == (verdict, code), run["reasons"]
    assert said in detail(run, code) and it.name in detail(run, code)
    assert run["bytes_written"] == run["bytes_total"]
    assert it.nothing_left() is None


def test_counters_told_truly_pass(run_json, disk):
    """The control: the same tree of links without a script comes to the same verdict as the real one."""
    it = disk(rate=GOOD)
    with lab.counters(it) as row:
        run = run_json(it.path, "--sysfs", row.root)
    assert (run["verdict"], codes(run)) == ("pass", []), run["reasons"]
    assert run["foreign_write_ratio"] < 0.1


def test_untimed_and_too_slow_is_a_fail(run_json, disk):
    """Throughput needs no times: what is too slow is too slow."""
    it = disk(rate=20 * MB)
    with lab.counters(it) as row:
        row.script(untimed)
        run = run_json(it.path, "--sysfs", row.root, count=120, limits={**LIMITS, "write_mb_per_s": 100})
    assert (run["verdict"], codes(run)) == ("fail", ["write_throughput_low", "counters_untimed"]), run["reasons"]
    assert {c["name"]: c["pass"] for c in run["criteria"]} == {"write_throughput": False, "write_latency": None}


def test_reset_while_the_daemon_samples(daemon, disk):
    it = disk(rate=GOOD)
    with lab.counters(it) as row:
        service = daemon(it.path, arguments=["--sysfs", row.root])
        row.script(after(100, reset))
        run = service.whole_run()
        assert (run["verdict"], codes(run)[0]) == ("inconclusive", "counters_reset")
        assert run["samples"]["dropped"] >= 1
        history = service.get(f"/history?run={run['id']}").json["samples"]
        assert "reset" in {sample["gap"] for sample in history}
        service.stop()


@contextlib.contextmanager
def iostats_off(it):
    switch = pathlib.Path(f"/sys/class/block/{it.name}/queue/iostats")
    before = switch.read_text()
    switch.write_text("0")
    try:
        yield switch
    finally:
        switch.write_text(before)


def test_counters_disabled(daemon, run_json, disk):
    it = disk(rate=GOOD)
    service = daemon(it.path)
    with iostats_off(it):
        it.control.mark()
        for run in service.whole_run(), run_json(it.path):
            assert (run["verdict"], codes(run)) == ("inconclusive", ["counters_disabled"])
            assert f"/sys/block/{it.name}/queue/iostats" in detail(run, "counters_disabled")
            assert run["bytes_written"] == 0
        assert it.control["written"] < 16 << 20  # the disk is spared a test that could not be judged
    assert service.whole_run()["verdict"] == "pass"
    assert it.nothing_left() is None


def test_counters_disabled_in_the_middle(daemon, disk):
    it = disk(rate=20 * MB)
    service = daemon(it.path, count=200)
    run_id = service.start_run()
    service.wait_writing(run_id, 20 << 20)
    with iostats_off(it):
        run = service.wait_run(run_id)
    assert run["verdict"] == "inconclusive" and "bytes_mismatch" in codes(run), run["reasons"]


def test_suspended(folder, run_json, disk):
    it = disk(rate=40 * MB)
    shim = folder / "shim.so"
    lab.run("cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", shim, ROOT / "tests/lab/suspend-shim.c")
    suspended = folder / "suspended"
    sleeper = lab.spawn("sh", "-c", f"until test $(cut -d' ' -f1 /sys/class/block/{it.name}/inflight) -gt 0 || "
                        f"test $(awk '{{print $7}}' /sys/class/block/{it.name}/stat) -gt $0; do sleep 0.05; done; "
                        f"touch {suspended}", it.counters()["sectors"] + (64 << 11))
    run = run_json(it.path, count=200, environment={
        "LD_PRELOAD": str(shim), "LAB_SUSPENDED": str(suspended),
        "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"})
    assert sleeper.wait(60) == 0
    assert (run["verdict"], codes(run)[0]) == ("inconclusive", "suspended"), run["reasons"]
    assert "1 interval" in detail(run, "suspended")


# ---- whose fault it is ----

def test_a_journal_of_all_data(run_json, disk):
    """Each byte is written twice: that is no stranger's doing, and excuses no slow disk."""
    it = disk(rate=GOOD, fs="ext4", mount_options=["data=journal"])
    run = run_json(it.path)
    assert run["verdict"] == "pass" and codes(run) == ["double_writes"], run["reasons"]
    assert run["foreign_write_ratio"] < 0.1
    it.behave(rate=SLOW)
    run = run_json(it.path, count=16, limits={**LIMITS, "w_await_ms": 5000})
    assert run["verdict"] == "fail" and codes(run)[0] == "write_throughput_low", run["reasons"]
    assert "double_writes" in codes(run) and "foreign_io" not in codes(run), run["reasons"]


def test_a_limit_of_ones_own(run_json, disk):
    """Ten MB/s are let through to a disk that can do thirty times as much."""
    it = disk(rate=GOOD)
    group = pathlib.Path("/sys/fs/cgroup/blkio") / f"tierprobe-test-{os.getpid()}"
    if not (group.parent / "blkio.throttle.write_bps_device").exists():
        pytest.skip("no control group of version 1 for block devices here")
    group.mkdir()
    try:
        (group / "blkio.throttle.write_bps_device").write_text(f"{it.major_minor} 10485760")
        run = run_json(it.path, count=24, prefix=["sh", "-c", f"echo $$ > {group}/cgroup.procs; exec \"$@\"", "sh"])
    finally:
        lab.wait_for("an empty group", lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()
    assert (run["verdict"], codes(run)) == ("inconclusive", ["throttled", "write_throughput_low"]), run["reasons"]
    assert str(group) in detail(run, "throttled") and "10485760" in detail(run, "throttled")


# ---- how long and how steady ----

def test_too_short_to_judge(daemon, run_json, disk):
    it = disk(rate=GOOD)
    limits = {"write_mb_per_s": 1, "w_await_ms": 1000, "pass_ratio": 0.5}  # the mean of five blocks passes anywhere
    for run in run_json(it.path, count=5, limits=limits), daemon(it.path, count=5, limits=limits).whole_run():
        assert (run["verdict"], codes(run)) == ("inconclusive", ["too_few_samples"]), run["reasons"]
        assert run["bytes_written"] == run["bytes_total"]
        assert "larger count" in detail(run, "too_few_samples")


def seconds(sections):
    sections["sampling"]["interval"] = "1s"
    return sections


def test_a_fast_disk_is_judged_within_a_second(daemon, disk):
    """The documented 10,000 MiB take a fast NVMe drive less than three of the regular samples."""
    it = disk(programmable=False, size="1500M")
    service = daemon(sections=seconds(sections_for(it.path, count=500)))
    run = service.whole_run()
    assert (run["verdict"], codes(run)) == ("pass", []), run["reasons"]
    assert run["samples"]["total"] > run["elapsed_s"]
    full = [sample for sample in service.run(run["id"])["evidence"]["samples"] if sample["full"]]
    assert len(full) == run["samples"]["total"]
    assert it.nothing_left() is None


def test_a_dip_that_iostat_would_not_show_is_a_remark(daemon, disk):
    """Fine samples see it; the documented iostat would show no row below the limit."""
    it = disk(rate=GOOD, cliff_after=150 << 20, cliff_rate=SLOW)
    service = daemon(sections=seconds(sections_for(it.path, count=152, limits={**STEADY, "w_await_ms": 1000})))
    it.control.mark()
    run = service.whole_run()
    assert run["verdict"] == "pass" and all(c["pass"] for c in run["criteria"]), run["reasons"]
    if run["samples"]["passing"] < 0.9 * run["samples"]["total"]:
        assert codes(run) == ["unsteady"] and "iostat would show" in detail(run, "unsteady"), run["reasons"]


def test_a_cliff_of_seconds_is_seen(daemon, disk):
    it = disk(rate=GOOD, cliff_after=600 << 20, cliff_rate=4 * MB, size="1G")
    limits = {"write_mb_per_s": 20, "w_await_ms": 2000, "pass_ratio": 0.9}
    service = daemon(sections=seconds(sections_for(it.path, count=624, limits=limits)))
    it.control.mark()
    run = service.whole_run()
    assert (run["verdict"], codes(run)) == ("fail", ["unsteady"]), run["reasons"]
    assert all(c["pass"] for c in run["criteria"])
    first, last = (run["measured"][f"{which}_third_mb_per_s"] for which in ("first", "last"))
    assert last < 0.75 * first and run["measured"]["worst_sample_mb_per_s"] <= last
    assert "a cliff" in detail(run, "unsteady")


def test_truncated(daemon, disk):
    """A good disk and a test that takes longer than it may: judged on what was measured, and said."""
    it = disk(rate=GOOD, size="4G", fs="ext4")
    run = daemon(it.path, count=3000, guard={"max_duration": "2s"}).whole_run()
    assert (run["verdict"], run["state"], codes(run)) == ("pass", "finished", ["truncated"]), run["reasons"]
    assert 0 < run["bytes_written"] < run["bytes_total"]
    assert "2.0 s" in detail(run, "truncated") and "of 3000.0 MiB" in detail(run, "truncated")
    assert it.nothing_left() is None


def test_a_stall_is_told_while_it_lasts(daemon, disk):
    it = disk(rate=GOOD, stall_after=64 << 20, stall_us=5_000_000)
    service = daemon(it.path)
    it.control.mark()
    run_id = service.start_run()
    told = []

    def ended():
        target = service.get("/status", timeout=5).json["targets"][0]  # from memory: the disk answers nobody now
        if target["current_run"]:
            told.append(target["current_run"]["stalled_s"])
        return target["last_run"]
    run = lab.wait_for("the end of the run", ended, 60)
    stalls = [s for s in told if s]
    assert stalls and stalls == sorted(stalls) and stalls[0] >= 2 and stalls[-1] >= 3
    assert told[0] is None and run["id"] == run_id and run["stalled_s"] is None
    assert "stalled" in codes(run) and "5." in detail(run, "stalled")
    assert it.nothing_left() is None


@pytest.mark.parametrize("fs", ["xfs", "ext4", "btrfs"])
@pytest.mark.parametrize("block,count", [("4K", 400), ("64K", 200), ("1M", 16)])
def test_a_file_systems_own_writes_are_not_foreign(fs, block, count, run_json, disk):
    """Journals and trees are written for us: a slow disk is slow, whatever it costs to keep its files."""
    it = disk(fs=fs, rate=SLOW)
    run = run_json(it.path, "--block-size", block, "--count", count)
    assert run["verdict"] == "fail" and "foreign_io" not in codes(run), run["reasons"]
    assert run["foreign_write_ratio"] < 0.1


# ---- the wrong place ----

def test_blocks_too_small_for_direct_writes(daemon, run_json):
    """A disk with sectors of 16 KiB refuses direct writes of 4 KiB, as any file system without O_DIRECT does."""
    with contextlib.ExitStack() as stack:
        try:
            it = stack.enter_context(lab.disk(size="600M", sector_size=16384, mkfs_options=["-b", "size=16384", "-s", "size=16384"]))
        except RuntimeError as error:
            pytest.skip(f"this kernel has no sectors larger than its pages: {error}")
        sections = sections_for(it.path)
        sections["profile small"]["block_size"] = "4K"
        service = daemon(sections=sections)
        run = service.whole_run()
        assert (run["verdict"], codes(run)) == ("inconclusive", ["direct_io_unsupported"]), run["reasons"]
        assert "4 KiB" in detail(run, "direct_io_unsupported")
        assert run_json(it.path)["verdict"] == "pass"  # blocks of 1 MiB are fine
        service.stop()
        assert it.nothing_left() is None


@contextlib.contextmanager
def unmounted(it):
    lab.process.unmount(it.path)
    try:
        yield
    finally:
        if not os.path.ismount(it.path):
            it.mount()


def test_not_mounted(daemon, disk):
    """An unmounted cache leaves an empty folder on the disk above: neither judged nor filled."""
    above, it = disk(rate=GOOD), disk(rate=GOOD)
    point = above.directory("cache")
    lab.process.unmount(it.path)
    it.path = point
    it.mount()
    service = daemon(point)
    assert service.whole_run()["device"]["name"] == it.name
    with unmounted(it):
        for again in range(2):
            above.control.mark()
            run = service.whole_run()
            assert (run["verdict"], codes(run)) == ("inconclusive", ["not_mounted"]), run["reasons"]
            said = detail(run, "not_mounted")
            assert str(point) in said and above.name in said and f"device = {above.name}" in said
            assert run["bytes_written"] == 0 and above.control["written"] < 16 << 20
            assert above.nothing_left() is None
            if not again:  # and the same of a daemon that has not seen the disk itself
                service.stop()
                service = daemon(point)
        service.stop()
        # The operator says that the move is meant.
        sections = sections_for(point)
        sections["target cache"]["device"] = above.name
        service = daemon(sections=sections)
        run = service.whole_run()
        assert (run["verdict"], run["device"]["name"]) == ("pass", above.name), run["reasons"]
        service.stop()
    lab.process.unmount(point)
    it.path = it.folder / "mnt"
    it.mount()


def test_wrong_device(daemon, disk):
    one, two = disk(rate=GOOD), disk(rate=GOOD)
    sections = sections_for(one.path)
    sections["target cache"]["device"] = two.name
    run = daemon(sections=sections).whole_run()
    assert (run["verdict"], codes(run)) == ("inconclusive", ["wrong_device"]), run["reasons"]
    assert one.name in detail(run, "wrong_device") and two.name in detail(run, "wrong_device")
    assert run["bytes_written"] == 0
    assert one.nothing_left() is None


def test_a_link_that_leads_elsewhere_later(daemon, folder, disk):
    """A link is followed to where it led first; one that is turned, or takes the folder's place, is another disk."""
    one, two = disk(rate=GOOD), disk(rate=GOOD)
    link, target = folder / "link", one.directory("cache")
    link.symlink_to(target)
    service = daemon({"link": link, "cache": target}, count=100)
    run = service.whole_run("link")
    assert run["state"] == "finished" and run["device"]["name"] == one.name, run
    assert run["path"] == str(link) and run["leads_to"] == str(target)
    link.unlink()
    link.symlink_to(two.path)
    target.rmdir()
    target.symlink_to(two.path)
    for name, path in ("link", link), ("cache", target):
        run = service.whole_run(name)
        assert (run["verdict"], codes(run)) == ("inconclusive", ["wrong_device"]), run["reasons"]
        assert str(path) in detail(run, "wrong_device") and run["bytes_written"] == 0
    link.unlink()
    target.unlink()
    assert two.nothing_left() is None


# ---- captures ----

@pytest.mark.parametrize("capture,code", [
    ("Device r/s w/s rkB/s %util\nsdc 0.00 100.00 0.00 50.00\n", "column_missing"),
    ("sdc 0.00 1000.00 0.00 700000.00 5.00 90.00\n", "header_missing"),
    ("Device r/s w/s rkB/s wkB/s w_await %util\n", "no_rows"),
    ("hello\n", "not_a_capture"),
    ("Device r/s w/s rkB/s wkB/s w_await %util\nsdc 0.00 700.00 0.00 716,800 1.20 90.00\n", "unreadable_rows"),
    ("Device r/s w/s rkB/s wkB/s w_await %util\nsdc 5.00 0.00 20.00 0.00 0.00 1.00\n", "no_write_completed"),
    ("Device r/s w/s rkB/s wkB/s w_await %util\nsdc 0.00 9000.00 0.00 900000.00 0.00 90.00\n", "counters_untimed"),
])
def test_captures(capture, code):
    done = subprocess.run([TIERPROBE, "judge", "--json"], input=capture, capture_output=True, text=True, timeout=60)
    document = json.loads(done.stdout)
    assert (done.returncode, document["verdict"], codes(document)) == (3, "inconclusive", [code])


# ---- pipes ----

def test_a_hung_writer_does_not_hold_what_the_caller_reads(disk):
    """$(tierprobe run ... 2>&1) ends with tierprobe, though the kernel still holds its writer."""
    if b"__asan_init" in TIERPROBED.read_bytes():
        pytest.skip("with sanitizers the writer keeps stderr for their reports")
    it = disk(rate=GOOD, hang_after=32 << 20)
    done = subprocess.run([TIERPROBE, "run", it.path, "--count", "200", "--max-duration", "2s"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode == 2 and "stalled" in done.stdout, done.stdout
    assert it.open_files() != []
    it.unhang()
    assert it.nothing_left() is None


def test_double_writes(daemon, disk):
    """A journal that takes the data as well doubles what the row shows: said, and blamed on nobody."""
    it = disk(fs="ext4", rate=GOOD)
    lab.run("umount", it.path)
    lab.run("tune2fs", "-o", "journal_data", it.device)
    it.mount()
    run = daemon(it.directory("cache"), count=100).whole_run()
    assert "double_writes" in codes(run) and "foreign_io" not in codes(run), run["reasons"]
    assert "data=journal" in detail(run, "double_writes")
