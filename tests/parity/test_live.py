# SPDX-License-Identifier: Apache-2.0
"""tierprobe iostat beside the distribution's iostat on a real device while dd writes (root, loop devices).

The two read at different moments and iostat's clock ticks in hundredths, so single rows differ; what was written
in all, and the mean latency of it, must not.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import subprocess
import time

import pytest

import lab
from oracle import IOSTAT, PLAIN, TIERPROBE, need_iostat

pytestmark = [pytest.mark.installed, pytest.mark.disk]

INTERVAL_S = 4


def counters(it):
    now = it.counters()
    return now["writes"], now["sectors"], now["ms"]


def rows(document, name):
    reports = json.loads(document)["sysstat"]["hosts"][0]["statistics"]
    return [row for report in reports for row in report["disk"] if row["disk_device"] == name]


def totals(table):
    """Of rows with this interval: writes, KiB, mean w_await."""
    writes = sum(row["w/s"] for row in table)
    return (writes * INTERVAL_S, sum(row["wkB/s"] for row in table) * INTERVAL_S,
            sum(row["w/s"] * row["w_await"] for row in table) / writes)


class Watcher:
    """A tool that prints reports as JSON, unbuffered, and what it has printed."""

    def __init__(self, *command):
        self.process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True, env=PLAIN)
        self.text = ""

    def wait_rows(self, number):
        while self.text.count("disk_device") < number:
            line = self.process.stdout.readline()
            assert line
            self.text += line

    def rest(self):
        self.text += self.process.stdout.read()
        assert self.process.wait(60) == 0
        return self.text


def test_beside_iostat(capsys):
    need_iostat()
    with lab.disk(programmable=False, size="400M") as it:
        before = counters(it)
        # iostat's first report, of the time since the boot, is the second's start.
        iostat = Watcher(IOSTAT, "-dx", "-o", "JSON", it.name, INTERVAL_S, 3)
        ours = Watcher(TIERPROBE, "iostat", "--json", it.name, INTERVAL_S, 2)
        ours.wait_rows(1)
        iostat.wait_rows(2)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            lab.run("dd", "if=/dev/zero", f"of={it.path}/testfile", "bs=1M", "count=100", "oflag=direct,dsync", "conv=notrunc")
        after = counters(it)
        if iostat.process.poll() is not None or ours.process.poll() is not None:
            pytest.skip(f"it took longer than {INTERVAL_S} s here to write for one")
        tables = [rows(iostat.rest(), it.name)[1:], rows(ours.rest(), it.name)]
    assert [len(table) for table in tables] == [2, 2]
    writes, sectors, ms = (b - a for a, b in zip(before, after))
    truth = (writes, sectors / 2, ms / writes)
    sums = [totals(table) for table in tables]
    with capsys.disabled():
        print()
        for what, values in zip(("kernel", "iostat", "tierprobe"), (truth, *sums)):
            print(f"{what:10} {values[0]:12.1f} writes {values[1]:14.1f} KiB, w_await {values[2]:8.4f}")
    # Rows are rates over intervals that have their length give or take the wake-up, so their sum is as good as that.
    for values in sums:
        assert values[0] == pytest.approx(truth[0], rel=0.1)
        assert values[1] == pytest.approx(truth[1], rel=0.1)
        assert values[2] == pytest.approx(truth[2], rel=0.1, abs=0.02)
    assert sums[1][2] == pytest.approx(sums[0][2], rel=0.1, abs=0.02)


def test_path_and_node():
    with lab.disk(programmable=False) as it:
        folder = it.directory("folder")
        for argument in (it.name, it.device, it.path, folder):
            result = subprocess.run([str(TIERPROBE), "iostat", "--json", str(argument), "0.05", "1"], capture_output=True,
                                    text=True, check=True)
            assert len(rows(result.stdout, it.name)) == 1, argument
            assert result.stderr == ""


@pytest.fixture
def device(tmp_path):
    """A loop device with a number so high that nobody else is given it while it is free for a moment."""
    number = 10000 + os.getpid() % 900000
    device = f"/dev/loop{number}"
    yield device
    lab.run("losetup", "-d", device, check=False)
    with open("/dev/loop-control", "rb") as control, contextlib.suppress(OSError):
        fcntl.ioctl(control, 0x4C81, number)  # LOOP_CTL_REMOVE


def test_replaced(tmp_path, device):
    """Another disk under the same name and number, whose counters go on where the old one's were."""
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20))
    lab.run("losetup", device, image)
    name = device.removeprefix("/dev/")
    if not pathlib.Path(f"/sys/block/{name}/diskseq").exists():
        pytest.skip("this kernel does not number disks")
    tool = subprocess.Popen([str(TIERPROBE), "iostat", name, "0.05"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)
    try:
        while name not in tool.stdout.readline():
            assert tool.poll() is None
        lab.run("losetup", "-d", device)
        lab.run("losetup", device, image)
        assert "another device" in tool.stderr.readline()
        tool.terminate()
        tool.communicate(timeout=60)
        assert tool.returncode == 0
    finally:
        tool.kill()
        tool.communicate()
