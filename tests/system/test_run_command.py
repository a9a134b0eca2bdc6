# SPDX-License-Identifier: Apache-2.0
"""`tierprobe run`: the test in the foreground, on a terminal and elsewhere."""

import json
import os
import pty
import select
import signal
import subprocess

import pytest

import lab
from harness import SANITIZED, TIERPROBE
from lab.catalog import GOOD, MB

pytestmark = pytest.mark.installed


@pytest.mark.parametrize("arguments", [[], ["no-such-command"], ["run"], ["run", "a", "b"], ["run", "--nonsense", "/tmp"],
                                       ["run", "/tmp", "--count", "0"], ["run", "/tmp", "--count", "many"],
                                       ["run", "/tmp", "--count", "-1"], ["run", "/tmp", "--block-size", "1"],
                                       ["run", "/tmp", "--block-size", "1000G"], ["run", "/tmp", "--streams", "0"],
                                       ["run", "/tmp", "--streams", "1000"], ["run", "/tmp", "--pattern", "ones"],
                                       ["run", "/tmp", "--pass-ratio", "2"], ["run", "/tmp", "--w-await-ms", "0"],
                                       ["run", "/tmp", "--w-await-ms", "nan"], ["run", "/tmp", "--write-mb-per-s", "x"],
                                       ["run", "/tmp", "--max-duration", "5"], ["run", "/tmp", "--profile", "none"],
                                       ["run", "/tmp", "--config", "/no/such/file"], ["run", "--count"], ["run", ""]])
def test_usage_errors(arguments, tierprobe):
    done = tierprobe(*arguments)
    assert done.returncode == 3
    assert done.stdout == "" and done.stderr


def test_help_and_version(tierprobe):
    assert "run" in tierprobe("--help").stdout
    assert "--count" in tierprobe("run", "--help").stdout
    assert tierprobe("--version").stdout.startswith("tierprobe ")


def test_bad_paths(tierprobe, folder):
    (folder / "link").symlink_to("link")
    for path, code in (("/no/such/place", "path_missing"), ("/etc/passwd", "path_missing"),
                       (folder / "link", "wrong_device")):
        done = tierprobe("run", path, "--count", 2, "--json")
        assert done.returncode == 3, done
        run = json.loads(done.stdout)
        assert (run["verdict"], [r["code"] for r in run["reasons"]]) == ("inconclusive", [code])
        assert str(path) in run["reasons"][0]["detail"]


def test_proc_is_no_place_for_files(tierprobe):
    done = tierprobe("run", "/proc/self", "--count", 2)
    assert done.returncode == 3
    assert "INCONCLUSIVE" in done.stdout


@pytest.mark.disk
def test_plain_lines_when_there_is_no_terminal(tierprobe, disk):
    it = disk(rate=30 * MB)
    done = tierprobe("run", it.path, "--count", 96, "--write-mb-per-s", 5, "--w-await-ms", 1000, "--pass-ratio", 0)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\x1b" not in done.stdout + done.stderr and "\r" not in done.stdout + done.stderr
    assert "MB/s" in done.stderr
    lines = done.stdout.splitlines()
    assert sum("write throughput" in line and line.startswith("PASS") for line in lines) == 1
    assert sum("write latency" in line and line.startswith("PASS") for line in lines) == 1
    assert any("wkB/s" in line for line in lines) and any("w_await" in line for line in lines)
    assert it.nothing_left() is None


@pytest.mark.disk
def test_fail_lines_and_status(tierprobe, disk):
    it = disk(rate=30 * MB)
    done = tierprobe("run", it.path, "--count", 64)
    assert done.returncode == 2
    assert any(line.startswith("FAIL") and "write throughput" in line for line in done.stdout.splitlines())
    assert "write_throughput_low" in done.stdout


@pytest.mark.disk
def test_json_is_one_document_and_progress_is_elsewhere(tierprobe, disk):
    it = disk(rate=GOOD)
    done = tierprobe("run", it.path, "--count", 200, "--write-mb-per-s", 30, "--pass-ratio", 0, "--json")
    run = json.loads(done.stdout)
    assert run["verdict"] == "pass" and done.returncode == 0
    assert run["schema"] == 1 and run["test"]["count"] == 200


@pytest.mark.disk
def test_a_test_by_duration_ends_with_its_time(tierprobe, folder, disk):
    """Its file starts anew again and again, and the time is no limit that cut it short."""
    it = disk(programmable=False, size="600M")
    (folder / "config").write_text("[profile timed]\nblock_size = 1M\ncount = 100\nduration = 2s\n")
    done = tierprobe("run", it.path, "--config", folder / "config", "--profile", "timed", "--write-mb-per-s", 50,
                     "--pass-ratio", 0, "--json")
    run = json.loads(done.stdout)
    assert run["verdict"] == "pass" and run["reasons"] == [] and not run["certifying"], run
    # The window ends with the last write that ended in time.
    assert 1.5 <= run["elapsed_s"] and run["progress"] > 0.9
    assert run["bytes_written"] > 2 * 100 << 20
    assert it.nothing_left() is None


@pytest.mark.disk
def test_progress_bar_on_a_terminal(disk):
    it = disk(rate=30 * MB)
    master, slave = pty.openpty()
    process = subprocess.Popen([TIERPROBE, "run", it.path, "--count", "96"], stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    seen = b""
    while True:
        ready, _, _ = select.select([master], [], [], 60)
        assert ready, seen
        try:
            block = os.read(master, 65536)
        except OSError:
            break  # the other side is closed
        if not block:
            break
        seen += block
    os.close(master)
    status = process.wait(60)
    if status == 3 and lab.HELD_UP.encode() in seen:
        pytest.skip(lab.HELD_UP)
    assert status == 2, seen
    assert b"#" in seen and b"%" in seen and b"MB/s" in seen and b"left" in seen
    assert b"w_await" in seen and it.name.encode() in seen
    assert b"FAIL" in seen
    assert not SANITIZED.search(seen)


@pytest.mark.disk
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_interrupted(how, disk):
    it = disk(rate=20 * MB)
    process = subprocess.Popen([TIERPROBE, "run", it.path, "--count", "400", "--json"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lab.wait_for("bytes written", lambda: it.control["written"] > 8 << 20)
    process.send_signal(how)
    out, errors = process.communicate(timeout=60)
    assert not SANITIZED.search(errors)
    if how == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 3
        run = json.loads(out)
        assert (run["state"], run["verdict"]) == ("aborted", "inconclusive")
        assert "aborted" in [r["code"] for r in run["reasons"]]
    assert it.nothing_left() is None


@pytest.mark.disk
def test_relative_path(disk):
    it = disk(rate=GOOD)
    it.directory("cache")
    done = subprocess.run([TIERPROBE, "run", "cache", "--count", "200", "--pass-ratio", "0", "--write-mb-per-s", "30"], cwd=it.path,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    assert f"{it.path}/cache" in done.stdout
