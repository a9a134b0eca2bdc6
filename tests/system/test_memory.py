# SPDX-License-Identifier: Apache-2.0
"""The kernel kills for want of memory: a writer, or the daemon in the middle of a run."""

import os
import pathlib
import signal

import pytest

import lab
from lab.catalog import GOOD, MB

# With sanitizers the daemon itself would be too large for the control group.
pytestmark = [pytest.mark.slow, pytest.mark.disk, pytest.mark.installed_only]

MIB = 1 << 20


def set_limit(group, limit):
    for name in ("memory.max", "memory.limit_in_bytes"):
        if (group / name).exists():
            (group / name).write_text(str(limit))
    if (group / "memory.swap.max").exists():
        (group / "memory.swap.max").write_text("0")


def kills(group):
    for name in ("memory.events", "memory.oom_control"):
        if (group / name).exists():
            return int(dict(line.split() for line in (group / name).read_text().splitlines())["oom_kill"])
    return 0


@pytest.fixture
def group():
    """A control group with a limit of memory that can be set."""
    for base in (pathlib.Path("/sys/fs/cgroup/memory"), pathlib.Path("/sys/fs/cgroup")):
        it = base / f"tierprobe-memory-{os.getpid()}"
        try:
            it.mkdir()
        except OSError:
            continue
        if (it / "memory.max").exists() or (it / "memory.oom_control").exists():
            break
        it.rmdir()
    else:
        pytest.skip("no control group with a limit of memory")
    yield it
    lab.wait_for("an empty group", lambda: not (it / "cgroup.procs").read_text())
    it.rmdir()


def inside(group):
    return ["sh", "-c", f"echo $$ > {group}/cgroup.procs; exec \"$@\"", "sh"]


def test_a_writer_is_killed(group, daemon, disk):
    """Its buffers are more than the group may have."""
    it = disk(rate=GOOD)
    it.remember()
    service = daemon(it.path, prefix=inside(group),
                     **{"profile large": {"block_size": "16M", "count": 2, "streams": 8}})
    set_limit(group, 48 * MIB)
    run = service.wait_run(service.start_run(profile="large"))
    if not kills(group):
        pytest.skip("the kernel kills nobody in this group")
    assert run["verdict"] == "inconclusive", run["reasons"]
    detail = run["reasons"][0]["detail"]
    assert "was killed: the kernel found no memory for it (oom_kill in " in detail and str(group.name) in detail, detail
    assert service.status and service.process.poll() is None
    assert it.nothing_left() is None
    set_limit(group, 512 * MIB)
    assert service.whole_run()["state"] == "finished"
    service.stop()


def test_the_daemon_is_killed(daemon, disk):
    """As the kernel does it, without a chance to clear up: the run is cut, its file goes, the verdict stays."""
    it = disk(rate=GOOD)
    it.remember()
    service = daemon(it.path, count=300)
    standing = service.whole_run()
    assert standing["verdict"] == "pass", standing["reasons"]
    lab.wait_for("the run on the disk", lambda: (service.folder / "state" / "runs" / f"{standing['id']}.json").exists())
    it.behave(rate=20 * MB)
    cut = service.start_run()
    service.wait_writing(cut, 4 * MIB)
    service.process.send_signal(signal.SIGKILL)
    service.kill()
    it.behave(rate=GOOD)
    again = daemon(it.path, count=300)
    run = again.run(cut)
    assert run["state"] == "aborted" and "daemon ended in the middle of the run" in run["reasons"][0]["detail"], run
    assert again.target()["verdict"] == "pass"
    assert it.nothing_left() is None
    again.stop()
