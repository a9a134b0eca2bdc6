# SPDX-License-Identifier: Apache-2.0
"""scripts/quickstart: from the checkout to a verdict. (On a fresh system it also installs and builds; see .ci.)"""

import contextlib
import os
import re
import signal
import socket
import subprocess

import pytest

import lab
from harness import ROOT
from lab.catalog import GOOD, MB

pytestmark = pytest.mark.installed_only

QUICKSTART = ROOT / "scripts" / "quickstart"
built = pytest.mark.skipif(not (ROOT / "build/src/tierprobed").exists(), reason="nothing is built in build/")


def quickstart(*arguments, timeout=300):
    return subprocess.run([str(QUICKSTART), *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=timeout)


def test_bad_arguments():
    assert quickstart("--help").returncode == 0
    for arguments in (["--nonsense"], ["a", "b"], ["--count"], ["--count", "many"]):
        done = quickstart(*arguments)
        assert done.returncode == 3 and done.stderr, arguments


@built
def test_bad_paths():
    done = quickstart("/no/such/place", "--once")
    assert done.returncode == 3 and "/no/such/place" in done.stderr
    done = quickstart("/etc/passwd", "--once")
    assert done.returncode == 3 and "/etc/passwd" in done.stderr


@built
@pytest.mark.disk
@pytest.mark.parametrize("rate,status,word", [(30 * MB, 2, "FAIL"), (None, 3, "INCONCLUSIVE")])
def test_once(rate, status, word, disk):
    it = disk(rate=rate or GOOD)
    # Without --count it is the documented test, for which this disk has no room.
    done = quickstart(it.path, "--once", *(["--count", 96] if rate else []))
    assert done.returncode == status, done.stdout + done.stderr
    assert word in done.stdout
    assert "curl" not in done.stdout  # there is no daemon any more
    if rate:
        assert re.search(r"^FAIL +write throughput: [\d.]+ MB/s", done.stdout, re.M)
        assert "write_throughput_low" in done.stdout
        assert re.search(r"running +\d+%", done.stdout)
    else:
        assert "no_space" in done.stdout
    assert it.nothing_left() is None


@built
@pytest.mark.disk
def test_pass():
    with lab.disk(programmable=False, size="1G") as it:
        done = quickstart(it.path, "--once", "--count", 700)
        assert done.returncode in (0, 2), done.stdout + done.stderr  # 600 MB/s is up to this machine's memory
        assert (done.returncode == 0) == (re.search(r"^PASS  loop", done.stdout, re.M) is not None)


@built
@pytest.mark.disk
def test_foreground_until_interrupted(disk):
    it = disk(rate=GOOD)
    with socket.socket() as other:  # the usual port is taken: the next one serves
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

        def taken():
            try:
                other.bind(("127.0.0.1", 7620))
                other.listen()
            except OSError:
                return False
            return True
        # Another test may have it for a moment; who has it for longer will have it still.
        with contextlib.suppress(TimeoutError):
            lab.wait_for("the usual port", taken, 30)
        process = lab.spawn("env", "--default-signal=INT", QUICKSTART, it.path, "--count", "32", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, start_new_session=True)
        text = ""
        for line in process.stdout:
            text += line
            if "Ctrl-C" in line:
                break
        url = re.search(r"serving (http://127\.0\.0\.1:(\d+))", text)
        assert url and url[2] != "7620", text
        assert text.count("    curl ") == 3
        status = lab.run("curl", "-sS", f"{url[1]}/status").stdout
        assert '"tierprobed"' in status
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(60) == 130
        process.stdout.close()
    assert lab.run("curl", "-s", f"{url[1]}/healthz", check=False).returncode != 0
    assert it.nothing_left() is None


def test_every_message_is_explained():
    """journalctl -x has something to say of every event."""
    ids = re.findall(r'#define MESSAGE_\w+ "([0-9a-f]{32})"', (ROOT / "include/tierprobe/message-ids.h").read_text())
    explained = re.findall(r"^-- ([0-9a-f]{32})$", (ROOT / "systemd/tierprobe.catalog").read_text(), re.M)
    assert len(ids) == len(set(ids)) >= 10
    assert sorted(explained) == sorted(ids)
