# SPDX-License-Identifier: Apache-2.0
"""Ends that nobody chose: kills at any moment, power cuts below the state directory. What was told is there afterwards.

TIERPROBE_KILLS and TIERPROBE_POWER_CUTS say how many (default 12 and 3), TIERPROBE_ENDURANCE_SEED when."""

import collections
import contextlib
import os
import pathlib
import random
import signal
import time

import pytest

import lab
from harness import sections_for
from lab.catalog import GOOD

pytestmark = [pytest.mark.slow, pytest.mark.disk, pytest.mark.installed_only]

KILLS = int(os.environ.get("TIERPROBE_KILLS", 12))
POWER_CUTS = int(os.environ.get("TIERPROBE_POWER_CUTS", 3))
SEED = int(os.environ.get("TIERPROBE_ENDURANCE_SEED", random.SystemRandom().randrange(1 << 32)))


class Told:
    """What a daemon has said so far, and has to keep to after it was ended."""

    def __init__(self):
        self.ended, self.begun, self.samples, self.bytes = {}, set(), {}, 0

    def listen(self, service):
        self.bytes = service.target()["disk_written_lifetime_bytes"]
        self.samples.update(samples(service))
        for run in service.get("/runs").json["runs"]:
            self.begun.add(run["id"])
            if run["verdict"]:
                self.ended[run["id"]] = run["verdict"]

    def check(self, service, outcomes):
        runs = {run["id"]: run for run in service.get("/runs?limit=1000").json["runs"]}
        for run_id, verdict in self.ended.items():
            assert runs[run_id]["verdict"] == verdict, (SEED, runs[run_id])
        for run_id in self.begun - self.ended.keys():
            assert runs[run_id]["state"] in ("aborted", "finished"), (SEED, runs[run_id])
            outcomes[f"a run in the middle: {runs[run_id]['state']}"] += 1
        status = service.status
        assert status["set_aside"] == 0, SEED
        assert status["targets"][0]["disk_written_lifetime_bytes"] >= self.bytes, SEED


def act(service, rng, told):
    """Something to be in the middle of, up to a moment that chance chooses."""
    end = time.monotonic() + rng.uniform(0.2, 2.5)
    if rng.random() < 0.7:
        told.begun.add(service.start_run())
    while time.monotonic() < end:
        told.listen(service)
        if rng.random() < 0.2:
            service.get("/history?limit=100")


def saves(service):
    """Whether a child brings something to the disk at this moment."""
    for pid in service.children():
        with contextlib.suppress(OSError):
            if pathlib.Path(f"/proc/{pid}/comm").read_text() == "tierprobe-save\n":
                return True
    return False


def samples(service):
    """The last ones: {number: all of it}."""
    return {sample["seq"]: sample for sample in service.get("/history?target=cache&limit=20").json["samples"]}


def samples_lost(service, told):
    """Of the last ones; what is there is what was told."""
    kept = samples(service)
    last = [seq for seq in told.samples if seq > max(told.samples, default=0) - 5]
    assert all(kept[seq] == told.samples[seq] for seq in last if seq in kept)
    told.samples = kept
    return sum(seq not in kept for seq in last)


def say(what, n, outcomes, lost):
    print(f"{n} {what}, seed {SEED}: {dict(outcomes)}; samples lost: {dict(sorted(lost.items()))}")


def test_killed_at_any_moment(daemon, disk):
    """Nothing is left on the disk, and nothing is forgotten but the sample that was being written."""
    it, rng = disk(rate=GOOD), random.Random(SEED)
    it.remember()
    sections = sections_for(it.path, count=200, sampling={"interval": "1s", "history": "1h"})
    outcomes, lost, told = collections.Counter(), collections.Counter(), Told()
    service = daemon(sections=sections)
    for _ in range(KILLS):
        act(service, rng, told)
        service.process.send_signal(signal.SIGKILL)
        service.kill()
        service = daemon(sections=sections)
        told.check(service, outcomes)
        lost[samples_lost(service, told)] += 1
        assert it.nothing_left() is None
    say("kills", KILLS, outcomes, lost)
    assert max(lost) <= 1, lost
    service.stop()


@pytest.mark.parametrize("fs", ["xfs", "ext4"])
def test_power_cuts(daemon, disk, folder, fs):
    """The state directory's disk loses what was not flushed, all of it or blocks at random: no run that was told as ended
    a moment before is lost or another one, and the next daemon starts as if nothing had been."""
    it, rng = disk(rate=GOOD), random.Random(SEED)
    state = disk(size="300M", fs=fs, volatile_cache=1, write_delay_us=10000)
    (folder / "state").symlink_to(state.directory("state"))
    lab.run("sync", "-f", state.path)
    sections = sections_for(it.path, count=60, sampling={"interval": "1s", "history": "1h"})
    outcomes, told = collections.Counter(), Told()
    for n in range(POWER_CUTS):
        service = daemon(sections=sections)
        told.check(service, outcomes)
        act(service, rng, told)
        settled = dict(told.ended)
        lab.wait_for("the runs on the disk", lambda: not saves(service) and
                     all((folder / "state/runs" / f"{run_id}.json").exists() for run_id in settled))
        act(service, rng, told)
        if n % 2:  # in the middle of what follows a run's end
            service.wait_run(next(iter(told.begun - told.ended.keys()), None) or service.start_run(), must_tell=False)
            time.sleep(rng.uniform(0, 0.2))
        state.control["keep_percent"] = rng.choice((0, 50, 90))
        state.cut_power()
        service.process.send_signal(signal.SIGKILL)
        service.kill()
        state.restore_power()
        outcomes["blocks lost"] += state.control["lost_blocks"]
        # What has ended since, and what was under way, was perhaps not told to the disk.
        told = Told()
        told.ended = settled
    service = daemon(sections=sections)
    told.check(service, outcomes)
    run = service.whole_run()
    assert run["verdict"] == "pass", run["reasons"]
    print(f"{POWER_CUTS} power cuts on {fs}, seed {SEED}: {dict(outcomes)}")
    service.stop()
