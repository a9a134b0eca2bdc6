# SPDX-License-Identifier: Apache-2.0
"""Whatever holds up the process that measures, and for how long: the verdict on a disk of known truth stays."""

import json
import random
import signal
import subprocess
import time

import pytest

import lab
from harness import SANITIZED, TIERPROBE, checked
from lab.catalog import GOOD, SLOW

pytestmark = pytest.mark.disk

# Four times less than a good disk makes, and four times more than a slow one: too late an end by four times the
# run's length turns the one into the other.
LIMITS = ("--write-mb-per-s", "70", "--w-await-ms", "4000", "--pass-ratio", "0.5")
COUNT = 400


def start(path, *arguments, **options):
    options.setdefault("stderr", subprocess.DEVNULL)
    return subprocess.Popen([TIERPROBE, "run", path, "--json", *LIMITS, *map(str, arguments)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, **options)


def finish(process):
    out, _ = process.communicate(timeout=120)
    assert not SANITIZED.search(out)
    return checked(json.loads(out))


def written(it, blocks):
    lab.wait_for(f"{blocks} MiB written", lambda: it.control["written"] >= blocks << 20, 120)


def long_after(it, begin, factor=5):
    """Waits until all is written and FACTOR times the time that this took has gone by since."""
    written(it, COUNT)
    end = time.monotonic()
    lab.wait_for("the time", lambda: time.monotonic() > end + factor * (end - begin), 600)


@pytest.mark.parametrize("at", [0.1, 0.6])
def test_stopped_past_the_end(disk, at):
    """Ctrl-Z, and fg much later."""
    it = disk(rate=GOOD, size="1G")
    process = start(it.path, "--count", COUNT)
    it.control.mark()
    begin = time.monotonic()
    written(it, int(COUNT * at))
    process.send_signal(signal.SIGSTOP)
    long_after(it, begin)
    process.send_signal(signal.SIGCONT)
    run = finish(process)
    assert run["verdict"] == "pass" and run["reasons"] == [], run["reasons"]
    assert run["elapsed_s"] < COUNT * 1.048576 / 70


@pytest.mark.slow
@pytest.mark.parametrize("rate, truth", [(GOOD, "pass"), (SLOW, "fail")])
def test_stopped_anywhere(disk, rate, truth):
    """Before the window, at its edges, inside: a few stops of any length each run."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    it = disk(rate=rate, size="1G")
    count = COUNT if truth == "pass" else 24
    for _ in range(5):
        process = start(it.path, "--count", count)
        while process.poll() is None:
            time.sleep(chance.uniform(0, 0.7))
            process.send_signal(signal.SIGSTOP)
            time.sleep(chance.expovariate(1 / 0.5))
            process.send_signal(signal.SIGCONT)
        run = finish(process)
        assert run["verdict"] == truth, run["reasons"]
        assert it.nothing_left() is None


def test_time_limit_holds_though_nobody_watches(disk):
    """The writers know when to stop: a parent that is stopped does not let them fill the disk."""
    it = disk(rate=GOOD, size="2G", fs="ext4")
    process = start(it.path, "--count", 1600, "--max-duration", "1s")
    it.control.mark()
    written(it, 16)
    process.send_signal(signal.SIGSTOP)
    lab.wait_for("the writers' end", lambda: is_still(it), 60)
    process.send_signal(signal.SIGCONT)
    run = finish(process)
    assert run["verdict"] == "pass" and [r["code"] for r in run["reasons"]] == ["truncated"], run["reasons"]
    assert run["bytes_written"] < run["bytes_total"]
    assert run["elapsed_s"] < 5


def is_still(it):
    """Whether nothing is written to the disk for a second."""
    before = it.control["written"]
    time.sleep(1)
    return it.control["written"] == before
