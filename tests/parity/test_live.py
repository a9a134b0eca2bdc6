# SPDX-License-Identifier: Apache-2.0
"""tierprobe iostat beside the distribution's iostat on a real device while dd writes (root, loop devices).

The two read at different moments and iostat's clock ticks in hundredths, so single rows differ; what was written
in all, and the mean latency of it, must not.
"""

import json
import os
import pathlib
import shutil
import subprocess
import time

import pytest

from oracle import IOSTAT, PLAIN, TIERPROBE, need_iostat

IMAGE_MB, WRITE_MB, ROUNDS, REPORTS = 800, 500, 6, 10


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def attach(image, device=None):
    return run("losetup", "--show", *([device] if device else ["-f"]), str(image)).strip()


@pytest.fixture
def image():
    if os.geteuid() != 0 or not shutil.which("losetup") or not pathlib.Path("/dev/loop-control").exists():
        pytest.skip("needs root and loop devices")
    path = pathlib.Path(f"/dev/shm/tierprobe-iostat-{os.getpid()}.img")
    yield path
    path.unlink(missing_ok=True)


@pytest.fixture
def disk(image, tmp_path):
    """A loop device with xfs on pages that are there already: name, mount point."""
    if not shutil.which("mkfs.xfs"):
        pytest.skip("no mkfs.xfs here")
    run("dd", "if=/dev/zero", f"of={image}", "bs=1M", f"count={IMAGE_MB}")
    device = attach(image)
    mount_point = tmp_path / "disk"
    mount_point.mkdir()
    try:
        run("mkfs.xfs", "-q", "-K", device)
        run("mount", device, str(mount_point))
        try:
            yield device.removeprefix("/dev/"), mount_point
        finally:
            run("umount", str(mount_point))
    finally:
        run("losetup", "-d", device)


def counters(name):
    fields = [int(v) for v in pathlib.Path(f"/sys/block/{name}/stat").read_text().split()]
    return fields[4], fields[6], fields[7]  # writes, sectors, milliseconds


def rows(document, name):
    reports = json.loads(document)["sysstat"]["hosts"][0]["statistics"]
    return [row for report in reports for row in report["disk"] if row["disk_device"] == name]


def totals(document, name):
    """Of a run with intervals of 1 s: writes, KiB, mean w_await."""
    table = rows(document, name)
    writes = sum(row["w/s"] for row in table)
    return writes, sum(row["wkB/s"] for row in table), sum(row["w/s"] * row["w_await"] for row in table) / writes


@pytest.mark.disk
def test_beside_iostat(disk, capsys):
    need_iostat()
    name, mount_point = disk
    before = counters(name)
    commands = [[IOSTAT, "-dxy", "-o", "JSON", name, "1", str(REPORTS)],
                [str(TIERPROBE), "iostat", "--json", name, "1", str(REPORTS)]]
    tools = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=PLAIN) for command in commands]
    time.sleep(1.5)  # so that the writing begins within their second interval; nothing depends on it
    began = time.monotonic()
    for _ in range(ROUNDS):
        run("dd", "if=/dev/zero", f"of={mount_point}/testfile", "bs=1M", f"count={WRITE_MB}",
            "oflag=direct,dsync", "conv=notrunc")
        time.sleep(0.5)  # spreads it over several rows
    took = time.monotonic() - began
    after = counters(name)
    if took > REPORTS - 3:
        for tool in tools:
            tool.kill()
            tool.communicate()
        pytest.skip(f"writing took {took:.1f} s here, longer than the two tools watched")
    documents = [tool.communicate(timeout=60)[0] for tool in tools]

    theirs, ours = (rows(document, name) for document in documents)
    assert len(theirs) == len(ours) == REPORTS
    with capsys.disabled():
        print(f"\n{'':8} {'iostat':>44} {'tierprobe':>44}")
        for i, pair in enumerate(zip(theirs, ours)):
            print(f"{i:8}", *(f"{row['w/s']:10.2f} {row['wkB/s']:13.2f} {row['w_await']:9.2f} {row['util']:9.2f}"
                              for row in pair), sep="  ")
    writes, sectors, ms = (b - a for a, b in zip(before, after))
    truth = (writes, sectors / 2, ms / writes)
    sums = [totals(document, name) for document in documents]
    with capsys.disabled():
        for what, values in zip(("kernel", "iostat", "tierprobe"), (truth, *sums)):
            print(f"{what:10} {values[0]:12.1f} writes {values[1]:14.1f} KiB, w_await {values[2]:8.4f}")
    # Rows are rates over intervals that are 1 s give or take the wake-up, so their sum is as good as that.
    for values in sums:
        assert values[0] == pytest.approx(truth[0], rel=0.05)
        assert values[1] == pytest.approx(truth[1], rel=0.05)
        assert values[2] == pytest.approx(truth[2], rel=0.05, abs=0.02)
    assert sums[1][2] == pytest.approx(sums[0][2], rel=0.05, abs=0.02)


def test_path_and_node(disk):
    name, mount_point = disk
    (mount_point / "folder").mkdir()
    for argument in (name, f"/dev/{name}", str(mount_point), str(mount_point / "folder")):
        result = subprocess.run([str(TIERPROBE), "iostat", "--json", argument, "0.05", "1"], capture_output=True,
                                text=True, check=True)
        assert len(rows(result.stdout, name)) == 1, argument
        assert result.stderr == ""


def test_replaced(image):
    """Another disk under the same name and number, whose counters go on where the old one's were."""
    image.write_bytes(bytes(1 << 20))
    device = attach(image)
    name = device.removeprefix("/dev/")
    if not pathlib.Path(f"/sys/block/{name}/diskseq").exists():
        run("losetup", "-d", device)
        pytest.skip("this kernel does not number disks")
    tool = None
    try:
        tool = subprocess.Popen([str(TIERPROBE), "iostat", name, "0.05"], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
        while name not in tool.stdout.readline():
            assert tool.poll() is None
        run("losetup", "-d", device)
        attach(image, device)
        assert "another device" in tool.stderr.readline()
        tool.terminate()
        tool.communicate(timeout=60)
        assert tool.returncode == 0
    finally:
        if tool:
            tool.kill()
            tool.communicate()
        run("losetup", "-d", device)
