# SPDX-License-Identifier: Apache-2.0
"""One test a disk, whoever makes it: the daemon and `tierprobe run` wait for each other, and say for whom."""

import fcntl
import json
import subprocess

import pytest

import lab
from harness import TIERPROBE, sections_for
from lab.catalog import GOOD, MB, MIB

pytestmark = [pytest.mark.disk]

LIMITS = {"write_mb_per_s": 1, "w_await_ms": 1000, "pass_ratio": 0.5}


@pytest.fixture
def run(folder):
    """run(DISK, COUNT) starts `tierprobe run`; what it says on stderr is in run.said(PROCESS)."""
    class Runs:
        processes = []

        def __call__(self, it, count):
            log = open(folder / f"stderr-{len(self.processes)}", "w+", encoding="utf-8")
            process = lab.spawn(TIERPROBE, "run", it.path, "--count", count, "--json", "--write-mb-per-s", 1,
                                "--w-await-ms", 1000, stdout=subprocess.PIPE, stderr=log, text=True)
            self.processes.append((process, log))
            return process

        def said(self, process):
            log = next(log for other, log in self.processes if other is process)
            log.seek(0)
            return log.read()

    runs = Runs()
    yield runs
    for process, log in runs.processes:
        lab.kill(process)
        process.stdout.close()
        log.close()


def writes(it, at_least=8 * MIB):
    lab.wait_for("bytes written", lambda: it.control["written"] > at_least)


def waits(run, process):
    return lab.wait_for("that it waits", lambda: [line for line in run.said(process).splitlines() if "waiting for the test of" in line])


def verdict(process):
    document = json.loads(process.communicate(timeout=120)[0])
    return document["state"], document["verdict"], document["reasons"]


def test_the_command_waits_for_the_daemon(daemon, disk, run):
    it = disk(rate=20 * MB, size="1536M")
    service = daemon(sections=sections_for(it.path, count=1200, limits=LIMITS))
    service.wait_writing(run_id := service.start_run())
    other = run(it, 100)
    assert waits(run, other) == [f"waiting for the test of {it.name} by tierprobed (process {service.process.pid}) to end"]
    written = it.control["written"]
    assert service.request("DELETE", f"/runs/{run_id}").status == 202
    assert verdict(other)[:2] == ("finished", "pass")
    assert it.control["written"] >= written + 100 * MIB


def test_the_daemon_waits_for_the_command(daemon, disk, run):
    it = disk(rate=20 * MB, size="1536M")
    service = daemon(sections=sections_for(it.path, count=20, limits=LIMITS))
    other = run(it, 1200)
    writes(it)
    run_id = service.start_run()
    said = lab.wait_for("that it waits", lambda: [line for line in service.stderr.splitlines() if " waits: " in line])
    assert f"run {run_id} of target cache waits: {it.name} is tested by tierprobe (process {other.pid}) now" in said[0]
    assert service.run(run_id)["state"] == "queued"
    lab.kill(other)  # as hard as can be: its lock goes with it
    assert service.wait_run(run_id)["verdict"] == "pass"
    assert service.stderr.count(" waits: ") == 1


def test_two_commands(disk, run):
    it = disk(rate=20 * MB, size="1536M")
    first = run(it, 200)
    writes(it)
    second = run(it, 100)
    assert f"by tierprobe (process {first.pid})" in waits(run, second)[0]
    for process in (first, second):
        assert verdict(process)[:2] == ("finished", "pass")


def test_waiting_can_be_ended(disk, run):
    it = disk(rate=20 * MB, size="1536M")
    first = run(it, 1200)
    writes(it)
    second = run(it, 100)
    waits(run, second)
    second.terminate()
    state, word, reasons = verdict(second)
    assert (state, word, reasons[0]["code"]) == ("aborted", "inconclusive", "aborted")
    assert first.poll() is None


def test_the_commands_test_is_no_production(daemon, disk, run):
    it = disk(rate=GOOD)
    service = daemon(sections=sections_for(it.path))
    hour = lab.wait_for("what production shows", lambda: service.target()["observed"]["hour"])
    assert hour["samples_with_writes"] == 0
    assert verdict(run(it, 300))[1] == "pass"
    seq = service.target()["sample"]["seq"]
    lab.wait_for("samples after the run", lambda: service.target()["sample"]["seq"] > seq + 5)
    samples = service.get("/history?limit=10000").json["samples"]
    assert sum(sample["run_id"] == "other" for sample in samples) >= 3
    # What a file system writes after a test is production's: some kB.
    assert service.target()["observed"]["hour"]["samples_with_writes"] < 5


def test_who_only_looks_is_no_test(daemon, disk):
    """Daemons that look at the same instant, whether there is a test, do not take each other for one."""
    it = disk(rate=GOOD)
    service = daemon(sections=sections_for(it.path))

    def samples_from_now(n):
        seq = lab.wait_for("a sample", lambda: service.target()["sample"])["seq"]
        lab.wait_for("samples", lambda: service.target()["sample"]["seq"] > seq + n + 1)
        samples = service.get("/history?limit=10000").json["samples"]
        return [one["run_id"] for one in samples if seq + 1 < one["seq"] <= seq + n + 1]

    with open(f"/sys/dev/block/{it.major_minor}/dev", encoding="ascii") as dev:
        fcntl.flock(dev, fcntl.LOCK_SH)
        assert set(samples_from_now(5)) == {None}
        fcntl.flock(dev, fcntl.LOCK_EX)
        assert set(samples_from_now(5)) == {"other"}
    assert set(samples_from_now(5)) == {None}
