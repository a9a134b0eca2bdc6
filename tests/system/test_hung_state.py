# SPDX-License-Identifier: Apache-2.0
"""The disk of the state directory hangs, is full or read-only: the daemon serves and tests as if it were well, says
what it cannot write, and writes it when it can."""

import contextlib
import os
import pathlib
import signal
import time

import pytest

import lab
from lab.catalog import GOOD

pytestmark = [pytest.mark.slow, pytest.mark.disk]

SAYS = "runs cannot be kept on the disk now"


@pytest.fixture(params=["xfs", "ext4"])
def state(request, disk, folder):
    """A disk that the state directory lies on."""
    it = disk(size="512M", fs=request.param)
    (folder / "state").symlink_to(it.directory("state"))
    yield it
    it.unhang()


def documents(folder):
    return {path.stem for path in (folder / "state" / "runs").glob("*.json")}


def check_written(service, folder, ids):
    lab.wait_for("the runs on the disk", lambda: set(ids) <= documents(folder), 60)
    lab.wait_for("a word of it", lambda: service.stderr.count("runs are kept on the disk again") == 1, 60)
    assert service.stderr.count(SAYS) == 1


def check_kept(daemon, good, ids):
    again = daemon(good.path, count=200)
    assert {again.run(run_id)["verdict"] for run_id in ids} == {"pass"}
    again.stop()


def test_hung_in_the_middle_of_runs(daemon, disk, state, folder):
    good = disk(rate=GOOD)
    service = daemon(good.path, count=200)
    ids = [service.whole_run()["id"]]
    state.hang()
    first = service.target()["sample"]["seq"]
    for _ in range(3):
        run = service.whole_run()
        assert run["verdict"] == "pass", run["reasons"]
        ids.append(run["id"])
    lab.wait_for("a word of it", lambda: SAYS in service.stderr, 60)
    # Whether a write to a page in memory is held up as well is the file system's affair: an ext4 whose journal hangs does
    # it after a while.
    lab.wait_for("samples to go on", lambda: service.target()["sample"]["seq"] > first + 150, 120)
    samples = service.get(f"/history?target=cache&since={first}&limit=100").json["samples"]
    assert [sample["seq"] for sample in samples] == list(range(samples[0]["seq"], samples[0]["seq"] + len(samples)))
    assert max(sample["interval_s"] for sample in samples) < 0.9, samples
    assert [run["id"] for run in service.get("/runs").json["runs"]] == ids[::-1]
    state.unhang()
    check_written(service, folder, ids)
    service.stop()
    check_kept(daemon, good, ids)


def test_hung_at_the_start(daemon, disk, state):
    """It waits, can be stopped, and serves what is kept when the disk is well again."""
    good = disk(rate=GOOD)
    service = daemon(good.path, count=200)
    kept = service.whole_run()["id"]
    service.stop()
    state.heal()  # nothing of it is in the kernel's caches
    state.hang()
    for ends in (True, False):
        service = daemon(good.path, count=200, wait=False)
        lab.wait_for("a word of it", lambda: service.stderr.count("does not answer; the start waits") == 2 - ends, 60)
        assert service.process.poll() is None
        if ends:
            service.stop()
    state.unhang()
    lab.wait_for("an answer", service.answers, 60)
    assert service.run(kept)["verdict"] == "pass"
    service.stop()


def test_stopped_while_it_hangs(daemon, disk, state):
    good = disk(rate=GOOD)
    service = daemon(good.path, count=200)
    kept = service.whole_run()["id"]
    lab.run("sync", "-f", state.path)
    state.hang()
    service.whole_run()
    service.stop()
    assert "did not get to the disk of the state directory" in service.stderr
    state.unhang()
    check_kept(daemon, good, [kept])


def test_full(daemon, disk, state, folder):
    good = disk(rate=GOOD)
    service = daemon(good.path, count=200)
    state.fill(0)
    ids = [service.whole_run()["id"] for _ in range(2)]
    lab.wait_for("a word of it", lambda: f"{SAYS}: No space left on device" in service.stderr, 60)
    assert [run["id"] for run in service.get("/runs").json["runs"]] == ids[::-1]
    state.unfill()
    check_written(service, folder, ids)
    service.stop()
    check_kept(daemon, good, ids)


def test_read_only(daemon, disk, state):
    """What a file system does on its own when its disk fails: nothing gets there any more."""
    good = disk(rate=GOOD)
    service = daemon(good.path, count=200)
    state.go_read_only()
    run = service.whole_run()
    assert run["verdict"] == "pass"
    lab.wait_for("a word of it", lambda: SAYS in service.stderr, 60)
    assert service.run(run["id"])["verdict"] == "pass"
    assert service.stderr.count(SAYS) == 1
    service.stop()
    assert "did not get to the disk of the state directory" in service.stderr
    state.heal()


@pytest.mark.disk
def test_a_child_is_seen_to_end_without_samples(daemon, disk):
    """One that writes samples while its target loses the device, and with it the reason to look after it."""
    it = disk(rate=GOOD)
    service = daemon(it.path)

    def state_of(pid):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]

    def stop_one():
        for pid in service.children():
            with contextlib.suppress(OSError):
                if pathlib.Path(f"/proc/{pid}/comm").read_text() == "tierprobe-save\n":
                    os.kill(pid, signal.SIGSTOP)
                    lab.wait_for("it to stop or end", lambda pid=pid: state_of(pid) in "TZX")
                    if state_of(pid) == "T":
                        return pid
        return None

    end = time.monotonic() + 120
    while not (pid := stop_one()):
        assert time.monotonic() < end, "no child was seen"
    lab.run("umount", it.path)
    lab.wait_for("the problem to be said", lambda: service.target()["problems"])
    seq = service.target()["sample"]["seq"]
    os.kill(pid, signal.SIGCONT)
    lab.wait_for("its end to be seen", lambda: pid not in service.children())
    assert service.target()["sample"]["seq"] <= seq + 1
    service.stop()
    lab.run("mount", it.device, it.path)
