# SPDX-License-Identifier: Apache-2.0
"""The manners of tierprobe iostat: arguments, bad records, the ways to end. Needs neither root nor devices."""

import fcntl
import json
import os
import signal
import struct
import subprocess
import termios
import time

import pytest

from oracle import TIERPROBE, reports, run_replay, write_script

pytestmark = pytest.mark.installed

ROW = " 259       0 {name} 10 0 80 5 {ios} 0 1000 50 0 40 55 0 0 0 0 0 0\n"


def run(*arguments, **options):
    return subprocess.run([str(TIERPROBE), "iostat", *map(str, arguments)], capture_output=True, text=True, timeout=60,
                          **options)


def script(folder, n_steps=3, name="nvme0n1"):
    write_script(folder, [(10000 + 100 * i, ROW.format(name=name, ios=100 + i)) for i in range(n_steps)])


@pytest.mark.parametrize("arguments, word", [
    (["nope0"], "no such device: nope0"),
    (["./nope/at/all"], "no such path or device"),
    (["/dev/nope0"], "no such path or device"),
    (["0"], "an interval is seconds"),
    (["0.001"], "an interval is seconds"),
    (["1x"], "an interval is seconds"),
    (["9d"], "an interval is seconds"),
    (["1", "0"], "a count is a whole number"),
    (["1", "1.5"], "a count is a whole number"),
    (["1", "2", "3"], "interval and a count already"),
    ([""], "names nothing"),
    (["--nope"], "nope"),
    (["--replay"], "at least two"),
    (["--replay", "one"], "at least two"),
    (["1", "--replay", "one", "two"], "from the records"),
    (["--procfs"], "procfs"),
])
def test_usage(arguments, word):
    result = run(*arguments)
    assert result.returncode == 3
    assert word in result.stderr
    assert result.stdout == ""


def test_help_and_version():
    for option in ("--help", "-h"):
        result = run(option)
        assert result.returncode == 0 and "--replay DIR..." in result.stdout and result.stderr == ""
    assert run("--version").stdout.startswith("tierprobe ")


@pytest.mark.parametrize("file, text, word", [
    ("uptime", None, "uptime: No such file"),
    ("uptime", "", "uptime does not begin with a number"),
    ("uptime", "garbage\n", "uptime does not begin with a number"),
    ("uptime", "-5.00 1.00\n", "uptime does not begin with a number"),
    ("uptime", "99999999999999999999999.00 1.00\n", "uptime does not begin with a number"),
    ("uptime", "1" * 5000, "uptime: File too large"),
    ("diskstats", None, "diskstats: No such file"),
    ("diskstats", "no row at all\n", "has no row of block statistics"),
    ("diskstats", "\0" * 100, "has no row of block statistics"),
])
@pytest.mark.parametrize("step", [0, 2])
def test_bad_record(tmp_path, file, text, word, step):
    script(tmp_path)
    path = tmp_path / str(step) / file
    path.unlink()
    if text is not None:
        path.write_text(text)
    result = run_replay(tmp_path, 3, "--json", check=False)
    assert result.returncode == 3
    assert str(tmp_path / str(step)) in result.stderr and word in result.stderr
    if step == 0:
        assert result.stdout == ""
    else:  # what was good before is a whole document all the same
        assert len(json.loads(result.stdout)["sysstat"]["hosts"][0]["statistics"]) == 1


def test_odd_records(tmp_path):
    """Lines that are no rows are passed over; blanks, a missing last newline and an empty file are no fault."""
    write_script(tmp_path, [
        (100, "junk\n8 1 sda1 1 2 3 4\n3 0 39082680 hda 1 2 3 4 5 6 7 8 9 10 11\n" + ROW.format(name="a", ios=1)),
        (200, "\n\n" + ROW.format(name="a", ios=3).rstrip() + "   \r\n8 0 b 1 2 3"),
        (300, ROW.format(name="a", ios=7).rstrip() + "\t"),
        (400, ""),
        (500, ROW.format(name="\x1b[2J", ios=7) + ROW.format(name="x" * 5000, ios=7) + ROW.format(name="a", ios=9)),
    ])
    result = run_replay(tmp_path, 5)
    assert [report.get("a", "").split()[7:8] for report in reports(result.stdout)] == [["2.00"], ["4.00"], [], []]
    assert "\x1b" not in result.stdout + result.stderr


def test_named_devices(tmp_path):
    names = ["sda", "sdb", "cciss/c0d0"]
    write_script(tmp_path, [(100 * i, "".join(ROW.format(name=name, ios=i) for name in names)) for i in (1, 2)])
    dirs = [tmp_path / "0", tmp_path / "1"]
    result = run("cciss/c0d0", "/dev/sda", "--replay", *dirs)
    assert [list(report) for report in reports(result.stdout)] == [["cciss/c0d0", "sda"]]
    result = run("cciss!c0d0", "--replay", *dirs)  # as /sys spells it
    assert [list(report) for report in reports(result.stdout)] == [["cciss/c0d0"]]
    result = run("sda", "sdx", "--replay", *dirs)
    assert result.returncode == 3 and "no record has a row of sdx" in result.stderr


def test_ten_thousand_devices(tmp_path):
    write_script(tmp_path, [(100 * i, "".join(ROW.format(name=f"sd{n}", ios=n * i) for n in range(10000)))
                            for i in (1, 2, 3)])
    result = run_replay(tmp_path, 3)
    assert [len(report) for report in reports(result.stdout)] == [10000, 10000]


def fake_roots(folder, names):
    for name in names:
        device = folder / "sys" / "block" / name
        device.mkdir(parents=True)
        (device / "stat").write_text("1 0 8 1 1 0 8 1 0 1 1 0 0 0 0 0 0\n")
    return ["--procfs", str(folder / "proc"), "--sysfs", str(folder / "sys")]


def test_all_devices(tmp_path):
    """Those that ever did I/O, in the order of their names."""
    roots = fake_roots(tmp_path, ["sdb", "sda", "cciss!c0d0", "loop0"])
    (tmp_path / "sys/block/loop0/stat").write_text("0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n")
    assert [list(report) for report in reports(run(*roots, "0.02", "2").stdout)] == [["cciss/c0d0", "sda", "sdb"]] * 2
    assert [list(report) for report in reports(run(*roots, "loop0", "sda", "0.02", "1").stdout)] == [["loop0", "sda"]]


def test_without_sysfs(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "diskstats").write_text(ROW.format(name="sdb", ios=1) + ROW.format(name="sda", ios=1))
    roots = ["--procfs", str(tmp_path / "proc"), "--sysfs", str(tmp_path / "none")]
    assert [list(report) for report in reports(run(*roots, "0.02", "1").stdout)] == [["sdb", "sda"]]
    assert [list(report) for report in reports(run(*roots, "sda", "0.02", "1").stdout)] == [["sda"]]
    (tmp_path / "proc" / "diskstats").unlink()
    assert run(*roots, "0.02", "1").returncode == 3


def start(roots, *arguments, stdout=subprocess.PIPE):
    return subprocess.Popen([str(TIERPROBE), "iostat", *roots, *arguments], stdout=stdout, stderr=subprocess.PIPE,
                            text=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(tmp_path, number):
    tool = start(fake_roots(tmp_path, ["sda"]), "--json", "0.02")
    begin = ""
    while "disk_device" not in begin:
        line = tool.stdout.readline()
        assert line
        begin += line
    tool.send_signal(number)
    rest = tool.stdout.read()  # not communicate(), which knows nothing of what readline() took in
    assert tool.stderr.read() == "" and tool.wait(timeout=60) == 0
    assert json.loads(begin + rest)["sysstat"]["hosts"][0]["statistics"]


def test_reader_gone(tmp_path):
    tool = start(fake_roots(tmp_path, ["sda"]), "0.01")
    assert tool.stdout.readline()
    tool.stdout.close()
    assert tool.stderr.read() == ""
    assert tool.wait(timeout=60) == 0


def pending(pipe):
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]


@pytest.mark.parametrize("room", [False, True])
def test_reader_asleep(room, tmp_path):
    """Interrupted while nobody takes what it writes: it ends nevertheless."""
    reader, writer = os.pipe()
    tool = start(fake_roots(tmp_path, [f"sd{n}" for n in range(2000)]), "0.01", stdout=writer)
    os.close(writer)
    deadline = time.monotonic() + 60
    while pending(reader) < 60000 and time.monotonic() < deadline:
        time.sleep(0.01)  # until it can write no more: a report is longer than a pipe
    tool.send_signal(signal.SIGINT)
    for _ in range(10 * room):  # for a part of the rest, in the second that it waits
        os.read(reader, 4096)
        time.sleep(0.05)
    try:
        assert tool.wait(timeout=60) == 0
    finally:
        os.close(reader)
        tool.kill()
        tool.communicate()


def test_full_disk(tmp_path):
    with open("/dev/full", "w", encoding="ascii") as full:
        tool = start(fake_roots(tmp_path, ["sda"]), "0.01", stdout=full)
        assert "No space left" in tool.stderr.read()
        assert tool.wait(timeout=60) == 3


def test_gaps_while_watching(tmp_path):
    """A device breaks, goes, comes back: no row then, a word on stderr, and rows again."""
    roots = fake_roots(tmp_path, ["sda"])
    stat = tmp_path / "sys/block/sda/stat"
    tool = start(roots, "sda", "0.02")

    def put(text):
        other = tmp_path / "next"
        other.write_text(text)
        other.rename(stat)

    while not (line := tool.stdout.readline()).startswith("sda"):
        assert line
    put("0 0 8 1 1 0 8 1 0 1 1 0 0 0 0 0 0\n")
    assert "a counter went back" in tool.stderr.readline()
    put("broken\n")
    assert "could not be read" in tool.stderr.readline()
    put("0 0 8 1 1 0 8 1 0 1 1 0 0 0 0 0 0\n")
    # Of rows that were printed before, at most a few are still in the pipe; these can only be new ones.
    for _ in range(200):
        assert tool.stdout.readline()
    stat.unlink()
    while "could not be read" in (line := tool.stderr.readline()):
        pass
    assert "is not there" in line
    tool.terminate()
    tool.stdout.read()
    assert tool.stderr.read() == "" and tool.wait(timeout=60) == 0
