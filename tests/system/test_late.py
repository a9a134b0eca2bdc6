# SPDX-License-Identifier: Apache-2.0
"""Whatever holds up the process that measures, and for how long: the verdict on a disk of known truth stays."""

import contextlib
import json
import os
import pty
import random
import re
import signal
import socket
import subprocess
import termios
import time

import pytest

import lab
from harness import SANITIZED, TIERPROBE, checked, skip_when_held_up
from lab.catalog import GOOD, MB, SLOW

pytestmark = pytest.mark.disk

# Four times less than a good disk makes, and four times more than a slow one: too late an end by four times the
# run's length turns the one into the other.
LIMITS = ("--write-mb-per-s", "70", "--w-await-ms", "4000", "--pass-ratio", "0.5")
COUNT = 400


def start(path, *arguments, **options):
    options.setdefault("stderr", subprocess.DEVNULL)
    return subprocess.Popen([TIERPROBE, "run", path, "--json", *LIMITS, *map(str, arguments)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, **options)


def finish(process, must_tell=True):
    out, _ = process.communicate(timeout=120)
    assert not SANITIZED.search(out)
    run = checked(json.loads(out))
    if must_tell:
        skip_when_held_up(run)
    return run


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


def full_pipe():
    """A pipe that takes no more, and nobody reads."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(4096))
    os.set_blocking(writer, True)
    return reader, writer


def held_terminal():
    """A terminal under Ctrl-S."""
    master, slave = pty.openpty()
    termios.tcflow(slave, termios.TCOOFF)
    return master, slave


def held_socket():
    """A socket that takes no more, as a journal's that is not read."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            writer.send(bytes(4096))
    writer.setblocking(True)
    return reader.detach(), writer.detach()


@pytest.mark.parametrize("held", [full_pipe, held_terminal, held_socket])
def test_nobody_reads(disk, folder, held):
    """Nothing is waited for but the disk: the result is there while stderr still takes nothing."""
    it = disk(rate=GOOD, size="1G")
    (folder / "config").write_text("[sampling]\ninterval = 100ms\n")
    reader, writer = held()
    try:
        process = start(it.path, "--config", folder / "config", "--count", COUNT, stderr=writer)
        out, _ = process.communicate(timeout=120)
        run = checked(json.loads(out))
        skip_when_held_up(run)
        assert run["verdict"] == "pass" and run["reasons"] == [], run["reasons"]
        assert run["elapsed_s"] < COUNT * 1.048576 / 70
        assert os.get_blocking(writer)  # what others share is left as it was
    finally:
        os.close(reader)
        os.close(writer)


def test_progress_comes_again(disk, folder):
    """What was held up is dropped by whole lines, and what comes later is shown."""
    it = disk(rate=20 * MB, size="1G")
    (folder / "config").write_text("[sampling]\ninterval = 100ms\n")
    reader, writer = full_pipe()
    process = start(it.path, "--config", folder / "config", "--count", 100, stderr=writer)
    os.close(writer)
    it.control.mark()
    written(it, 30)
    with open(reader, "rb") as pipe:
        lines = pipe.read().lstrip(b"\0").splitlines()
    run = finish(process)
    assert run["bytes_written"] == run["bytes_total"]
    assert lines[0].startswith(b"profile procedure writes 100 MiB")
    assert len(lines) > 3 and all(re.fullmatch(rb"\d+ s: \d+ MiB written \(\d+ %\), [\d.]+ MB/s.*", line)
                                  for line in lines[1:]), lines


def test_time_limit_holds_though_nobody_watches(disk):
    """The writers know when to stop: a parent that is stopped does not let them fill the disk."""
    it = disk(rate=GOOD, size="2G", fs="ext4")
    process = start(it.path, "--count", 1600, "--max-duration", "1s")
    it.control.mark()
    written(it, 16)
    process.send_signal(signal.SIGSTOP)
    lab.wait_for("the writers' end", lambda: is_still(it), 60)
    process.send_signal(signal.SIGCONT)
    run = finish(process, must_tell=False)
    assert run["bytes_written"] < run["bytes_total"]
    assert run["elapsed_s"] < 5
    assert "truncated" in [r["code"] for r in run["reasons"]], run["reasons"]
    skip_when_held_up(run)
    assert run["verdict"] == "pass" and [r["code"] for r in run["reasons"]] == ["truncated"], run["reasons"]


def is_still(it):
    """Whether nothing is written to the disk for a second."""
    before = it.control["written"]
    time.sleep(1)
    return it.control["written"] == before
