# SPDX-License-Identifier: Apache-2.0
"""What an operator, his clock and his state directory may do to a running daemon: reloads at the wrong moment, kept
runs that lie, stops while something is under way. Verdicts stay those of the path they were measured on."""

import contextlib
import datetime
import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

import lab
from harness import free_port, config_text, sections_for
from lab.catalog import GOOD, MB

pytestmark = pytest.mark.slow


def codes(run):
    return [reason["code"] for reason in run["reasons"]]


def reload(service, sections, wait="reloaded"):
    """Puts SECTIONS in force and waits until the daemon has read them."""
    sections.setdefault("http", {}).setdefault("listen", service.listen)
    (service.folder / "tierprobed.conf").write_text(config_text(sections))
    before = service.stderr.count(wait)
    service.process.send_signal(signal.SIGHUP)
    lab.wait_for("the reload", lambda: service.stderr.count(wait) > before)


def ids(service):
    return [run["id"] for run in service.get("/runs").json["runs"]]


def rfc3339(**shift):
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(**shift)
    return at.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def change(path, **members):
    document = json.loads(path.read_text())
    document.update(members)
    path.write_text(json.dumps(document))


# ---- reloads ----

@pytest.mark.disk
def test_reload_during_the_very_first_run(daemon, disk):
    it = disk(rate=30 * MB)
    service = daemon(it.path, count=150)
    run_id = service.start_run()
    service.wait_writing(run_id)
    reload(service, sections_for(it.path, count=150))
    assert (service.run(run_id)["state"], ids(service)) == ("running", [run_id])
    assert service.target()["last_run"] is None
    run = service.wait_run(run_id)
    assert run["state"] == "finished" and run["bytes_written"] == run["bytes_total"]
    assert ids(service) == [run_id]


@pytest.mark.disk
def test_reload_removes_the_target_of_a_run(daemon, disk):
    it = disk(rate=30 * MB)
    service = daemon({"a": it.directory("a"), "b": it.directory("b")})
    first, second = (run["id"] for run in service.post("/run?profile=small").json["runs"])
    service.wait_writing(first)
    gone = service.run(first)["target"]
    left = service.run(second)["target"]
    assert service.run(second)["state"] == "queued"
    reload(service, sections_for({left: it.path / left}))
    run = service.run(first)
    assert (run["state"], run["verdict"], codes(run)) == ("aborted", "inconclusive", ["aborted"]), run
    assert gone in run["reasons"][0]["detail"] or "configuration" in run["reasons"][0]["detail"]
    assert service.request("DELETE", f"/runs/{first}").status == 409
    # What waited for it goes on.
    service.wait_writing(second)
    it.behave(rate=GOOD)
    assert service.wait_run(second)["state"] == "finished"
    service.stop()
    assert it.nothing_left() is None


@pytest.mark.disk
def test_a_removed_target_keeps_its_disk_busy_until_its_writer_is_gone(daemon, disk):
    it = disk(rate=GOOD, hang_after=32 << 20)
    service = daemon({"a": it.directory("a"), "b": it.directory("b")})
    first = service.start_run("a")
    lab.wait_for("the hang", lambda: it.control["waiting"] > 0)
    reload(service, sections_for({"b": it.path / "b"}))
    assert service.run(first)["state"] == "aborted"
    second = service.start_run("b")
    before = service.target("b")["sample"]["seq"]
    lab.wait_for("samples to go on", lambda: service.target("b")["sample"]["seq"] > before + 5)
    assert service.run(second)["state"] == "queued"
    it.unhang()
    assert service.wait_run(second)["state"] == "finished"
    service.stop()
    assert it.nothing_left() is None


@pytest.mark.disk
def test_a_verdict_belongs_to_its_path(daemon, disk):
    it = disk(rate=GOOD)
    service = daemon(it.directory("old"))
    run = service.whole_run()
    assert service.target()["verdict"] == run["verdict"] == "pass"
    reload(service, sections_for(it.directory("new")))
    target = service.target()
    assert (target["verdict"], target["last_run"]) == ("never_run", None)
    assert service.status["verdict"] == "never_run" and service.get("/readyz").status == 503
    service.stop()
    service = daemon(it.path / "new")
    assert service.target()["verdict"] == "never_run" and ids(service) == [run["id"]]


@pytest.mark.disk
def test_a_moved_target_is_not_looked_for_on_its_old_mount(daemon, disk, place):
    it = disk(rate=GOOD)
    service = daemon(it.path)
    service.whole_run()
    service.stop()
    # The old mount point lies below the new target's one.
    assert "not_mounted" not in codes(daemon(place, count=4).whole_run())


def test_what_a_reload_cannot_change_is_said(daemon, memory):
    place = memory()
    service = daemon(place)
    reload(service, sections_for(place))
    assert "takes a restart" not in service.stderr
    reload(service, sections_for(place, http={"listen": "127.0.0.1:1"}))
    assert "takes a restart" in service.stderr
    assert service.get("/healthz").status == 200


def test_a_reload_renames_the_host(daemon, memory):
    place = memory()
    service = daemon(place, listen=f"127.0.0.1:{free_port()}")

    def status(host):
        return service.get("/healthz", headers={"Host": host}).status

    assert status("node1.example") == 403
    reload(service, sections_for(place, http={"allowed_hosts": "node1.example"}))
    assert status("node1.example") == 200 and "takes a restart" not in service.stderr
    reload(service, sections_for(place))
    assert status("node1.example") == 403 and status("localhost") == 200


# ---- stopping ----

@pytest.mark.disk
def test_nothing_is_started_while_the_daemon_stops(daemon, disk):
    it = disk(rate=GOOD, hang_after=32 << 20)
    free = disk()
    service = daemon({"a": it.path, "b": free.path})
    service.start_run("a")
    lab.wait_for("the hang", lambda: it.control["waiting"] > 0)
    service.process.send_signal(signal.SIGTERM)
    lab.wait_for("the stop", lambda: "stopping on SIGTERM" in service.stderr)
    service.process.send_signal(signal.SIGHUP)
    with contextlib.suppress(OSError):
        answer = service.post("/run?target=b&profile=small")
        assert answer.status == 503, answer
    assert service.process.wait(40) == 0
    it.unhang()
    assert it.nothing_left() is None


@pytest.mark.disk
def test_impatient_aborts_do_not_put_off_the_end(daemon, disk):
    it = disk(rate=GOOD, hang_after=32 << 20)
    service = daemon(it.path)
    run_id = service.start_run()
    lab.wait_for("the hang", lambda: it.control["waiting"] > 0)

    def ended():
        return service.request("DELETE", f"/runs/{run_id}").status == 409
    lab.wait_for("the end", ended, 30)
    assert service.run(run_id)["state"] == "aborted"
    it.unhang()
    service.stop()
    assert it.nothing_left() is None


# ---- kept runs ----

def kept(service):
    return service.folder / "state" / "runs"


def document(service, run_id):
    """The file of an ended run: a child of the daemon writes it, a moment after the run has ended."""
    path = kept(service) / f"{run_id}.json"
    lab.wait_for("the document", lambda: path.exists() and json.loads(path.read_text())["state"] not in ("queued", "running"))
    return path


def test_every_interrupted_run_is_closed(daemon, memory):
    """Also those of targets that are there no longer, found by a daemon that was away for longer than a day."""
    targets = {name: memory(name) for name in "abc"}
    service = daemon(targets)
    for name in targets:
        service.whole_run(name)
    service.stop()
    for number, path in enumerate(sorted(kept(service).glob("*.json"))):
        change(path, state="running", verdict=None, reasons=[], finished_at=None, queued_at=rfc3339(days=-3),
               started_at=rfc3339(days=-3))
    service = daemon({"c": targets["c"]})
    runs = service.get("/runs").json["runs"]
    assert [run["state"] for run in runs] == ["aborted"] * 3
    assert all(service.run(run["id"])["state"] == "aborted" for run in runs)


def test_150_runs(daemon, memory):
    """Only so many are kept; the last one of a target that is seldom tested stays, also over a restart."""
    targets = {name: memory(name) for name in ("often", "seldom")}
    service = daemon(targets, history={"keep_runs": 100})
    seldom = service.whole_run("seldom")["id"]
    for _ in range(150):
        service.whole_run("often")
    for _ in range(2):
        runs = service.get("/runs?limit=1000").json["runs"]
        assert len(runs) == 100
        lab.wait_for("100 documents", lambda: len(list(kept(service).glob("*.json"))) == 100)
        assert len({run["id"] for run in runs}) == 100
        assert service.target("seldom")["last_run"]["id"] == seldom
        assert service.run(seldom)["id"] == seldom
        assert service.target("often")["last_run"]["id"] == runs[0]["id"]
        service.stop()
        service = daemon(targets, history={"keep_runs": 100})


def damage(path, how):
    text = path.read_text()
    if how == "random":
        path.write_bytes(os.urandom(4096))
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "huge":
        with path.open("r+b") as file:
            file.truncate(64 << 20)
    elif how == "nested":
        path.write_text("[" * 100000)
    elif how == "nested member":
        path.write_text(text.replace('"schema":1', '"schema":1,"x":' + "[" * 3000 + "]" * 3000, 1))
    elif how == "other id":
        path.write_text(text.replace(path.stem, "20200101T000000-abcdef"))
    elif how == "link":
        path.unlink()
        path.symlink_to("/etc/passwd")
    elif how == "folder":
        path.unlink()
        path.mkdir()
    elif how == "fifo":
        path.unlink()
        os.mkfifo(path)
    elif how == "far future":
        path.write_text(text.replace(json.loads(text)["finished_at"], "2262-04-11T23:47:15Z"))
    elif how == "far past":
        path.write_text(text.replace(json.loads(text)["finished_at"], "1678-01-01T00:00:00Z"))


@pytest.mark.parametrize("how", ["random", "empty", "huge", "nested", "nested member", "other id", "link", "folder",
                                 "fifo", "far future", "far past"])
@pytest.mark.parametrize("when", ["running", "stopped"])
def test_a_damaged_run(how, when, daemon, memory):
    place = memory()
    service = daemon(place)
    old, new = service.whole_run()["id"], service.whole_run()["id"]
    whole = service.get(f"/runs/{new}").body
    if when == "stopped":
        service.stop()
    damage(document(service, new), how)
    if when == "stopped":
        service = daemon(place)
    else:  # what is being kept is served from memory
        lab.wait_for("what is on the disk", lambda: service.get(f"/runs/{new}").body != whole)
    answer = service.get(f"/runs/{new}")
    # What is no file, or too large to be one of ours, says nothing of what was in it: it is left alone.
    assert answer.status in ((503,) if how in ("huge", "folder") else (200, 404)), answer
    if answer.status == 200:
        assert answer.json["id"] == new
    assert service.run(old)["id"] == old
    assert old in ids(service)
    assert service.get("/metrics").status in (200, 404)
    last = service.target()["last_run"]["id"]
    assert last in (old, new)
    third = service.whole_run()["id"]
    assert service.target()["last_run"]["id"] == third


# ---- the clock ----

def test_a_verdict_from_the_future_is_not_fresh(daemon, memory):
    """The clock was years ahead when the run ended: nobody knows how old its verdict is."""
    place = memory()
    service = daemon(place)
    run_id = service.whole_run()["id"]
    service.stop()
    change(document(service, run_id), queued_at=rfc3339(days=3000), started_at=rfc3339(days=3000),
           finished_at=rfc3339(days=3000), verdict="pass", state="finished", reasons=[])
    service = daemon(place, schedule={"interval": "24h", "jitter": "none"})
    target = service.target()
    assert target["verdict"] == "pass" and target["stale"] is True
    assert service.get("/readyz").status in (404, 503)
    assert target["next_run_at"] < rfc3339(days=2)


SHIM = r"""
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *ts)
{
        static volatile int64_t *shift;
        if (!shift) {
                int fd = open(getenv("CLOCK_SHIFT"), O_RDONLY);
                shift = mmap(NULL, 8, PROT_READ, MAP_SHARED, fd, 0);
                close(fd);
        }
        int r = (int) syscall(SYS_clock_gettime, clock, ts);
        if (clock == CLOCK_REALTIME)
                ts->tv_sec += *shift;
        return r;
}
"""


class Clock:
    """The wall clock of a program, to be set."""

    def __init__(self, folder):
        self.file, library = folder / "shift", folder / "clock.so"
        (folder / "clock.c").write_text(SHIM)
        subprocess.run(["cc", "-shared", "-fPIC", "-O", "-o", library, folder / "clock.c"], check=True)
        self.set()
        options = os.environ.get("ASAN_OPTIONS", "")
        self.environment = {"LD_PRELOAD": str(library), "CLOCK_SHIFT": str(self.file),
                            "ASAN_OPTIONS": f"{options}:verify_asan_link_order=0".lstrip(":")}

    def set(self, **shift):
        seconds = int(datetime.timedelta(**shift).total_seconds())
        with open(self.file, "r+b" if self.file.exists() else "wb") as file:
            file.write(seconds.to_bytes(8, "little", signed=True))


@pytest.mark.parametrize("shift", [{"days": 30}, {"days": -30}])
def test_the_clock_is_set(shift, daemon, folder, memory):
    clock = Clock(folder)
    service = daemon(memory(), environment=clock.environment, schedule={"interval": "24h", "jitter": "none"})
    service.whole_run()
    first = service.target()["next_run_at"]
    assert rfc3339(hours=5) < first < rfc3339(hours=31)
    clock.set(**shift)
    # A run is due at the latest an interval and a quarter after now, whatever now is; a while from now at the soonest.
    low, high = rfc3339(**shift), rfc3339(days=shift["days"] + 1, hours=7)
    lab.wait_for("a new plan", lambda: low < service.target()["next_run_at"] < high)
    assert service.whole_run()["state"] == "failed"
    assert low < service.target()["next_run_at"] < high
    assert service.target()["age_s"] < 60


# ---- the state directory ----

def test_state_directory_vanishes(daemon, memory):
    service = daemon(memory())
    one = service.whole_run()["id"]
    state = service.folder / "state"

    def gone():  # the daemon may just be writing there
        shutil.rmtree(state, ignore_errors=True)
        return not state.exists()
    document(service, one)
    lab.wait_for("the directory to be gone", gone)
    two = service.whole_run()["id"]
    # The first one went with the directory; the second waits in memory for a place.
    lab.wait_for("what is on the disk", lambda: service.get(f"/runs/{one}").status == 404)
    assert service.run(two)["id"] == two
    assert service.target()["last_run"]["id"] == two
    lab.wait_for("the word of it", lambda: "runs cannot be kept on the disk now" in service.stderr)
    assert service.stderr.count("runs cannot be kept on the disk now") == 1, service.stderr


@pytest.mark.disk
@pytest.mark.parametrize("what", ["full", "read-only"])
def test_state_directory_cannot_be_written(what, daemon, folder, disk):
    it, other = disk(rate=GOOD), disk(fs="ext4", programmable=False)
    (folder / "state").mkdir()
    lab.run("mount", "--bind", other.directory("state"), folder / "state")
    try:
        service = daemon(it.path, count=64)
        service.whole_run()
        if what == "full":
            other.fill(leave=0)
        else:
            other.go_read_only()
        assert service.whole_run()["state"] == "finished"
        before = service.target()["sample"]["seq"]
        lab.wait_for("samples to go on", lambda: service.target()["sample"]["seq"] > before)
        reload(service, sections_for(it.path, count=64, sampling={"interval": "200ms"}))
        # Without history there are still samples, with the figures of the last interval.
        lab.wait_for("a whole sample", lambda: (service.target()["sample"] or {}).get("wkB/s") is not None)
        assert service.whole_run()["state"] == "finished"
        assert service.get("/history").status in (200, 503)
        assert service.stderr.count("cannot be kept") <= 4
        service.stop()
    finally:
        lab.run("umount", "-l", folder / "state")


def test_two_daemons_on_one_state_directory(daemon, tierprobed, memory):
    service = daemon(memory())
    done = tierprobed("--config", service.folder / "tierprobed.conf", "--state-dir", service.folder / "state",
                      "--listen", f"unix:{service.folder}/other")
    assert done.returncode == 1 and "another tierprobed" in done.stderr
    assert service.get("/healthz").status == 200
    service.kill()
    assert daemon(memory("other")).target()["verdict"] == "never_run"


# ---- what was missed ----

def test_a_run_missed_while_the_daemon_was_down_is_made_up_for_after_its_start(daemon, memory):
    sections = sections_for(memory(), official="procedure", schedule={"interval": "never"})
    service = daemon(sections=sections)
    first = service.wait_run(service.start_run(profile="procedure"))
    service.stop()
    # The interval has passed by the time that the daemon is there again.
    began = datetime.datetime.fromisoformat(first["started_at"] or first["queued_at"])
    lab.wait_for("the interval", lambda: datetime.datetime.now(datetime.timezone.utc) - began >
                 datetime.timedelta(seconds=2.5))
    sections["schedule"] = {"interval": "2s", "jitter": "none"}
    service = daemon(sections=sections)
    runs = lab.wait_for("three runs", lambda: (r := service.get("/runs").json["runs"])[2:] and r, 60)
    assert [run["trigger"] for run in runs[::-1]][:3] == ["manual", "start", "schedule"]


@pytest.mark.parametrize("schedule", [{}, {"interval": "6h", "jitter": "30m"}, {"window": "01:00-05:00", "jitter": "2h"}])
def test_the_schedule_shown_is_the_daemons(schedule, tierprobed, daemon, memory):
    """In local time, as the window is, and the same whenever it is asked for."""
    zone = {**os.environ, "TZ": "America/New_York"}
    service = daemon(memory(), environment=zone, schedule=schedule)
    config = service.folder / "tierprobed.conf"
    shown = tierprobed("--config", config, "--show-schedule", env=zone).stdout
    assert shown == tierprobed("--config", config, "--show-schedule", env=zone).stdout
    times = [datetime.datetime.strptime(line.strip(), "%a %Y-%m-%d %H:%M:%S %z") for line in shown.split("\n")[1:-1]]
    assert len(times) == 5 and times == sorted(times)
    assert {time.utcoffset() for time in times} <= {datetime.timedelta(hours=-4), datetime.timedelta(hours=-5)}
    following = datetime.datetime.fromisoformat(service.target()["next_run_at"].replace("Z", "+00:00"))
    assert following.replace(microsecond=0) in times and service.target()["next_run_why"] == "due"
    for key in ("interval", "window"):
        assert schedule.get(key, "24h" if key == "interval" else "every") in shown.split("\n")[0]
    if "window" in schedule:
        assert all(1 <= time.hour < 3 for time in times)


def test_no_schedule_is_shown_as_none(tierprobed, daemon, memory):
    service = daemon(memory(), schedule={"interval": "never"})
    shown = tierprobed("--config", service.folder / "tierprobed.conf", "--show-schedule").stdout
    assert shown.startswith("cache (") and shown.endswith("never, [schedule] interval is never\n")
    assert service.target()["next_run_at"] is None and service.target()["next_run_why"] == "none"
