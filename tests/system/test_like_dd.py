# SPDX-License-Identifier: Apache-2.0
"""Byte for byte what dd writes: the same calls to the kernel, and the same requests to the device."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

import lab
from harness import TIERPROBE, call
from lab.catalog import MIB

pytestmark = [pytest.mark.disk, pytest.mark.installed]

COUNT = 200
DD = ("dd", "if=/dev/zero", "bs=1M", f"count={COUNT}", "oflag=direct,dsync")


def tierprobe_command(path, *more):
    return [TIERPROBE, "run", path, "--count", str(COUNT), "--write-mb-per-s", "1", "--w-await-ms", "1000", "--pass-ratio",
            "0", *more]


def requests(it, work):
    """What WORK makes the device do, its own flushing out included."""
    lab.run("sync", "-f", it.path)
    before = it.counters()
    work()
    after = it.counters()
    return {key: after[key] - before[key] for key in ("writes", "sectors", "flushes")}


@pytest.mark.parametrize("fs", ["xfs", "ext4"])
def test_same_requests(fs):
    """The two on equal fresh file systems. dd's file has a name, which costs a few blocks of metadata.

    Where a block ends up in several requests depends on how contiguous the pages are that the kernel gave the program,
    unless each request is smaller than what the most scattered pages can fill: here 64 KiB.
    """

    def fresh(work):
        with lab.disk(fs=fs, programmable=False) as it:
            pathlib.Path(f"/sys/block/{it.name}/queue/max_sectors_kb").write_text("64")
            return requests(it, lambda: work(it.path))

    dd = fresh(lambda path: lab.run(*DD, f"of={path}/testfile"))
    ours = fresh(lambda path: call(*tierprobe_command(path)))
    assert dd["sectors"] >= COUNT * MIB // 512
    assert dd["writes"] >= COUNT * MIB // (64 << 10)
    for figure, tolerance in {"sectors": 0.01, "flushes": 0.02, "writes": 0.02}.items():
        assert ours[figure] == pytest.approx(dd[figure], rel=tolerance), f"dd: {dd}, tierprobe: {ours}"


def traced(folder, *command):
    """The file's flags and the sizes and results of all writes to it, as strace sees them."""
    (folder / "strace").mkdir()
    # A file for each process: in one for all the line of a call that another process' call interrupts is broken in two.
    done = subprocess.run(["strace", "-ff", "-e", "trace=openat,read,write,close,fsync,fdatasync", "-e", "signal=none", "-o", folder / "strace" / "log",
                           *map(str, command)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})  # which cannot be while strace looks
    assert done.returncode == 0, done.stdout + done.stderr
    text = "".join(log.read_text() for log in (folder / "strace").iterdir())
    shutil.rmtree(folder / "strace")
    flags = re.search(r"openat\([^)]*\b(O_WRONLY\|[A-Z_|]*O_DIRECT[A-Z_|]*)", text)[1].split("|")
    writes = re.findall(r'write\(\d+, "((?:\\0)+)"\.\.\., (\d+)\) += (\d+)', text)
    # Which of the two large calls follows which: dd reads each block from /dev/zero before it writes it.
    order = re.findall(r'(read|write)\(\d+, "(?:\\0)+"\.\.\., 1048576\) += 1048576', text)
    return set(flags), [(int(size), int(result)) for zeros, size, result in writes if int(size) >= 4096], \
        len(re.findall(r"\bf(?:data)?sync\(", text)), order


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_same_calls(folder, disk):
    it = disk(programmable=False)
    flags, writes, syncs, order = traced(folder, *DD, f"of={it.path}/testfile")
    ours, our_writes, our_syncs, our_order = traced(folder, *tierprobe_command(it.path))
    meaning = {"O_DIRECT", "O_DSYNC", "O_WRONLY"}
    assert flags & (meaning | {"O_SYNC", "O_APPEND"}) == ours & (meaning | {"O_SYNC", "O_APPEND"}) == meaning
    assert our_writes == writes == [(MIB, MIB)] * COUNT
    assert syncs == our_syncs == 0
    assert our_order == order == ["read", "write"] * COUNT


def content(it):
    """How many pages of the device hold zeros, and how many the marker."""
    zeros, marked = bytes(4096), b"\xa5" * 4096
    counts = [0, 0]
    with open(it.folder / "data", "rb") as image:
        while page := image.read(4096):
            counts[0] += page == zeros
            counts[1] += page == marked
    return counts


def test_same_bytes(disk):
    """On a device full of something else each page that is written becomes one of zeros."""
    it = disk(programmable=False, size="400M")
    with open(it.path / "full", "wb") as file:
        for _ in range(280):
            file.write(b"\xa5" * MIB)
        file.flush()
        os.fsync(file.fileno())
    (it.path / "full").unlink()
    lab.run("sync", "-f", it.path)
    zeros, marked = content(it)
    assert marked >= 270 * 256
    call(*tierprobe_command(it.path))
    lab.run("sync", "-f", it.path)
    zeros_now, marked_now = content(it)
    gone = marked - marked_now
    assert gone >= COUNT * 256 - zeros  # at least what cannot have fallen on other free pages
    assert gone - 64 <= zeros_now - zeros <= gone + 64  # nothing but zeros took their place, beside the log
