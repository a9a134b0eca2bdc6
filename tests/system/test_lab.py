# SPDX-License-Identifier: Apache-2.0
"""The lab itself: each kind of disk is what it says, as a dd and the kernel's counters see it, and goes away."""

import mmap
import os
import pathlib
import subprocess
import threading
import time

import pytest

import lab
from lab import disk, two_partitions, wait_for

pytestmark = [pytest.mark.disk, pytest.mark.installed_only]
MB = 1_000_000


class Seen:
    """What a dd of COUNT MiB did to the disk."""

    def __init__(self, it, count=64):
        before, start = it.counters(), time.monotonic()
        self.dd = subprocess.run(["dd", "if=/dev/zero", f"of={it.path}/dd", "bs=1M", f"count={count}",
                                  "oflag=direct,dsync"], capture_output=True, text=True)
        self.seconds = time.monotonic() - start
        after = it.counters()
        self.writes = after["writes"] - before["writes"]
        self.mb = (after["sectors"] - before["sectors"]) * 512 / MB
        self.mb_per_s = self.mb / self.seconds
        self.own_mb_per_s = count * 1.048576 / self.seconds  # without what the file system writes beside
        self.w_await_ms = (after["ms"] - before["ms"]) / max(1, self.writes)


def remove_file(it):
    (it.path / "dd").unlink(missing_ok=True)
    assert it.nothing_left() is None


@pytest.fixture(autouse=True)
def everything_goes_away():
    def ours():
        folders = list(pathlib.Path("/dev/shm").glob(f"tierprobe-lab-{lab.process.os.getpid()}-*"))
        loops = [line for line in lab.run("losetup", "--list", "--noheadings").stdout.splitlines()
                 if f"tierprobe-lab-{lab.process.os.getpid()}-" in line]
        mounts = [m for m in lab.process.mounts() if "tierprobe-lab" in m[0]]
        return folders + loops + mounts
    yield
    assert ours() == []


@pytest.mark.parametrize("fs", ["xfs", "ext4", "btrfs"])
@pytest.mark.parametrize("programmable", [True, False])
def test_ordinary(fs, programmable):
    with disk(fs=fs, programmable=programmable) as it:
        seen = Seen(it)
        assert seen.dd.returncode == 0, seen.dd.stderr
        assert 64 * 1.048576 <= seen.mb < 64 * 1.048576 * 1.5
        remove_file(it)


def test_btrfs_compresses():
    with disk(fs="btrfs", mount_options=["compress=zstd"]) as it:
        assert Seen(it).mb < 64 / 2
        remove_file(it)


def test_rate():
    with disk(rate=10 * MB) as it:
        seen = Seen(it, 16)
        assert 0 < seen.mb_per_s <= 10.5
        it.behave()
        assert Seen(it).mb_per_s > seen.mb_per_s
        remove_file(it)


def test_delay_is_write_latency():
    with disk(write_delay_us=25000) as it:
        assert Seen(it, 16).w_await_ms >= 24
        remove_file(it)


def test_a_third_of_the_time_slow():
    with disk(rate=300 * MB, slow_period_us=300000, slow_part_us=100000, slow_rate=30 * MB) as it:
        seen = Seen(it, 200)
        assert 30 < seen.mb_per_s <= (2 * 300 + 30) / 3 * 1.3
        remove_file(it)


def test_cliff():
    with disk(cliff_after=32 << 20, cliff_rate=10 * MB) as it:
        before = Seen(it, 24)
        after = Seen(it, 24)
        assert before.mb_per_s > 2 * after.mb_per_s
        assert after.mb_per_s < 20
        remove_file(it)


def test_stall():
    with disk(stall_after=16 << 20, stall_us=1500000) as it:
        assert Seen(it).seconds >= 1.5
        end = it.control["stall_end_us"]
        assert Seen(it).dd.returncode == 0
        assert it.control["stall_end_us"] == end  # once only
        remove_file(it)


def test_first_write_penalty():
    with disk(first_write_rate=10 * MB, fs="ext4") as it:
        first = Seen(it, 16)
        subprocess.run(["dd", "if=/dev/zero", f"of={it.path}/dd", "bs=1M", "count=16", "oflag=direct,dsync",
                        "conv=notrunc"], check=True, capture_output=True)
        # Where ext4 has its journal and its tables, mkfs has written before: what goes there is fast from the first time on.
        assert first.own_mb_per_s <= 20
        assert it.control["written"] >= 2 * (16 << 20)
        remove_file(it)


def test_eio():
    with disk(error=5, error_after=16 << 20) as it:
        seen = Seen(it)
        assert seen.dd.returncode != 0 and "Input/output error" in seen.dd.stderr
        it.heal()
        remove_file(it)


def test_page_cache_in_front():
    with disk(dio=False) as it:
        assert pathlib.Path(f"/sys/block/{it.name}/loop/dio").read_text().strip() == "0"
        assert Seen(it).dd.returncode == 0
        remove_file(it)


def test_enospc():
    with disk(size="400M") as it:
        it.fill(leave="20M")
        seen = Seen(it)
        assert seen.dd.returncode != 0 and "No space left" in seen.dd.stderr
        it.unfill()
        remove_file(it)


class Background:
    def __init__(self, it):
        self.it, self.seen = it, None
        self._thread = threading.Thread(target=self._work)
        self._thread.start()
        wait_for("writes", lambda: it.control["written"] > 8 << 20)

    def _work(self):
        self.seen = Seen(self.it)

    def end(self):
        self._thread.join(60)
        assert self.seen is not None
        return self.seen


def test_hang_for_ever_until_told():
    with disk(hang_after=16 << 20) as it:
        background = Background(it)
        wait_for("the hang", lambda: it.control["waiting"] > 0)
        held = it.counters()
        assert held["in_flight"] > 0
        assert it.open_files() != []
        assert it.counters()["writes"] == held["writes"]
        it.unhang()
        assert background.end().dd.returncode == 0
        remove_file(it)


def test_leaving_a_hung_disk_does_not_hang():
    with disk(hang_after=16 << 20) as it:
        background = Background(it)
        wait_for("the hang", lambda: it.control["waiting"] > 0)
    background.end()


def test_removed_in_the_middle():
    with disk(rate=10 * MB) as it:
        background = Background(it)
        it.remove()
        seen = background.end()
        assert seen.dd.returncode != 0
        assert wait_for("no open files", lambda: it.open_files() == [])


@pytest.mark.parametrize("fs,message", [("ext4", "Read-only file system"), ("xfs", "Input/output error")])
def test_read_only_in_the_middle(fs, message):
    with disk(rate=10 * MB, fs=fs) as it:
        background = Background(it)
        it.go_read_only()
        seen = background.end()
        assert seen.dd.returncode != 0 and message in seen.dd.stderr
        it.heal()
        remove_file(it)


def test_other_writer():
    with disk(rate=20 * MB) as it:
        with it.other_writer():
            seen = Seen(it, 32)
            assert seen.mb > 32 * 1.048576 * 1.2
        remove_file(it)


def test_left_behind_is_seen():
    with disk() as it:
        (it.path / "stale").write_bytes(bytes(8 << 20))
        left = it.nothing_left(deadline_s=0)
        assert left["files"] == ["stale"] and left["lost_bytes"] >= 4 << 20
        with open(it.path / "stale", "rb"):
            assert it.nothing_left(deadline_s=0)["open"] != []


def test_two_partitions_on_one_disk():
    with two_partitions() as (one, two):
        assert one.name != two.name and one.name[:-1] == two.name[:-1]
        before = two.counters()["writes"]
        assert Seen(one).dd.returncode == 0
        assert two.counters()["writes"] == before
        remove_file(one)


@pytest.mark.parametrize("keep", [0, 50])
def test_what_was_not_flushed_is_lost_with_the_power(keep):
    size, block = 4 << 20, 4096
    with disk(volatile_cache=1, keep_percent=keep) as it, mmap.mmap(-1, size) as buffer:  # aligned, for O_DIRECT
        file = it.path / "file"
        file.write_bytes(b"a" * size)
        lab.run("sync", "-f", it.path)

        def overwrite_and_cut(flags):
            """How many blocks have the old content."""
            buffer[:] = b"b" * size
            fd = os.open(file, os.O_WRONLY | os.O_DIRECT | flags)
            assert os.write(fd, buffer) == size
            os.close(fd)
            it.cut_power()
            it.restore_power()
            text = file.read_bytes()
            return sum(text[at:at + block] == b"a" * block for at in range(0, size, block))
        lost = overwrite_and_cut(0)
        assert lost == size // block if keep == 0 else 300 < lost < 700
        assert it.control["lost_blocks"] >= lost
        assert overwrite_and_cut(os.O_DSYNC) == 0
