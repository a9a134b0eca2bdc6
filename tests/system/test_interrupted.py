# SPDX-License-Identifier: Apache-2.0
"""A test interrupted at each of its system calls, by a signal or by an error, on a file system that makes files without
a name and on one that cannot: no file is left, and what is said is true.

TIERPROBE_EVERY_CALL=1 takes every call of every process; else those by which a writer makes, fills and removes its file,
and the first of the others.
"""

import collections
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

import lab
from harness import ROOT, TIERPROBE, checked

# Sanitizers look for leaks as a tracer does, and there is room for one.
pytestmark = [pytest.mark.slow, pytest.mark.installed_only, pytest.mark.skipif(not shutil.which("strace"), reason="no strace")]

EVERY = bool(os.environ.get("TIERPROBE_EVERY_CALL"))
COUNT = 3
MAKING = ("openat", "flock", "unlinkat", "write", "prctl", "rt_sigprocmask", "getrandom")
OTHERS = ("fstatfs", "newfstatat", "getdents64", "close", "sendto", "recvfrom", "read", "pread64", "mmap",
          "epoll_wait", "clone")
FAILING = ("openat", "flock", "unlinkat", "write", "getrandom", "fstatfs", "newfstatat", "getdents64", "close", "pread64")


@pytest.fixture(params=["without a name", "with a name"])
def environment(request, folder):
    """On the disk of the build, which knows O_TMPFILE; and as if it did not."""
    if request.param == "without a name":
        return dict(os.environ)
    shim = folder / "shim.so"
    lab.run("cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", shim, ROOT / "tests/lab/no-tmpfile-shim.c")
    return {**os.environ, "LD_PRELOAD": str(shim), "LAB_CREATE_MS": "0",
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}


def start_traced(place, environment, log, *options):
    """`tierprobe run`, traced from the second in which it watches the disk on. None: it could not be stopped in it."""
    process = subprocess.Popen([TIERPROBE, "run", place, "--count", str(COUNT), "--json"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    process.stderr.readline()  # what it will write
    os.kill(process.pid, signal.SIGSTOP)
    status = pathlib.Path(f"/proc/{process.pid}/status")
    lab.wait_for("the stop", lambda: "\nState:\tT" in status.read_text())
    if b"tierprobe-write" in b"".join(pathlib.Path(f"/proc/{pid}/comm").read_bytes() for pid in
                                      pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()):
        process.kill()
        process.communicate()
        return None, None
    tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", log, "-p", str(process.pid), *options],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        lab.wait_for("the tracer", lambda: tracer.poll() is not None or "\nTracerPid:\t0\n" not in status.read_text())
    finally:
        os.kill(process.pid, signal.SIGCONT)
    return process, tracer


def run_traced(place, environment, log, *options):
    """(status, document or None, stderr), once every process of the run has ended."""
    process = None
    for _ in range(5):
        process, tracer = start_traced(place, environment, log, *options)
        if process:
            break
    assert process, "never stopped in time"
    out, errors = process.communicate(timeout=90)
    _, said = tracer.communicate(timeout=90)
    if b"ptrace" in said and b"not permitted" in said:
        pytest.skip(said.decode())
    run = None
    with contextlib.suppress(json.JSONDecodeError):  # its own write to stdout may be the one that fails
        run = checked(json.loads(out))
    return process.returncode, run, errors.decode()


def calls_of_a_run(place, environment, log):
    """How often the writer makes which call; with EVERY, the process that makes most of them."""
    _, run, _ = run_traced(place, environment, log)
    assert run["state"] == "finished" and run["bytes_written"] == COUNT << 20, run
    counts = collections.defaultdict(collections.Counter)
    for line in log.read_text().splitlines():
        pid, call = line.split(maxsplit=1)
        if re.match(r"\w+\(", call):
            counts[pid][call.partition("(")[0]] += 1
        if 'PR_SET_NAME, "tierprobe-write"' in call:
            writer = pid
    if not EVERY:
        return counts[writer]
    return {name: max(of[name] for of in counts.values()) for name in (*MAKING, *OTHERS, *FAILING)}


def cases(most):
    for names, what in ((dict.fromkeys(MAKING + OTHERS), "signal=SIGTERM"), (dict.fromkeys(FAILING), "error=EIO")):
        for name in names:
            n = most[name] if EVERY or name in MAKING else min(most[name], 1)
            yield from ((name, f"{what}:when={i}") for i in range(1, n + 1))


def check(name, what, status, run, errors, left):
    """What is wrong after this, or None."""
    if [entry for entry in left if not (name == "unlinkat" and "error" in what and entry[1] == 0)]:
        return f"left {left}"
    if run is None and status == -signal.SIGTERM and "signal" in what:
        return None  # before it had begun
    if run is None:
        return None if "tierprobe run: the result could not be printed: " in errors and status == 3 else f"no document, status {status}: {errors}"
    if (run["verdict"], status) not in (("pass", 0), ("fail", 2), ("inconclusive", 3)):
        return f"status {status} of {run['verdict']}"
    failed = run["reasons"] and "(EIO)" in run["reasons"][0]["detail"]
    if failed and "EIO" not in what or name == "unlinkat" and "EIO" in what and not failed:
        return f"not said, or not so: {run['reasons']}"
    if run["verdict"] != "inconclusive" and not failed and (run["state"] != "finished" or run["bytes_written"] != COUNT << 20):
        return f"a verdict without a test: {run['state']}, {run['bytes_written']} bytes"
    return None


def test_at_each_call(environment, place, folder):
    most = calls_of_a_run(place, environment, folder / "calls")

    def one(case):
        number, (name, what) = case
        here = place / str(number)
        here.mkdir()
        try:
            status, run, errors = run_traced(here, environment, folder / f"log{number}", "-e", f"trace={name}",
                                             "-e", f"inject={name}:{what}")
            left = [(path.name, path.stat().st_size) for path in here.iterdir()]
            return name, what, status, run, errors, left, check(name, what, status, run, errors, left)
        finally:
            shutil.rmtree(here)

    with concurrent.futures.ThreadPoolExecutor(4 * os.cpu_count()) as pool:
        found = list(pool.map(one, enumerate(cases(most))))
    for name, what, status, run, errors, left, _ in found:
        reasons = [reason["detail"] for reason in run["reasons"]] if run else errors
        print(name, what, status, run and (run["state"], run["verdict"], run["bytes_written"]), left, reasons)
    assert len(found) >= 30
    assert [one for one in found if one[-1]] == []


HANG = "inject=unlinkat:delay_enter=900000000"  # longer than any deadline here
BY_NAME = pytest.mark.parametrize("environment", ["with a name"], indirect=True)


@BY_NAME
@pytest.mark.parametrize("interrupted", [False, True])
def test_an_unlink_that_hangs(interrupted, environment, place, folder):
    """The command ends, by itself or when it is told to, and says what did not answer."""
    for _ in range(5):
        process, tracer = start_traced(place, environment, folder / "log", "-e", "trace=unlinkat", "-e", HANG)
        if process:
            break
    try:
        lab.wait_for("a file with a name", lambda: list(place.iterdir()))
        if interrupted:
            process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=90)
    finally:
        tracer.terminate()
        tracer.communicate(timeout=30)
    run = checked(json.loads(out))
    assert process.returncode == 3 and run["verdict"] == "inconclusive" and run["bytes_written"] == 0, run
    assert run["reasons"][0]["code"] == ("aborted" if interrupted else "stalled"), run
    assert interrupted or f"{place} does not answer" in run["reasons"][0]["detail"], run
    assert interrupted or b"waiting for the file system to make the test file\n" in errors
    for path in place.iterdir():  # the writer has been killed
        assert path.stat().st_size == 0
        path.unlink()


@BY_NAME
def test_an_unlink_that_hangs_in_the_daemon(environment, place, folder, daemon):
    """It serves meanwhile, and ends the run."""
    service = daemon(place, count=COUNT, environment=environment)
    tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", folder / "log", "-p", str(service.process.pid), "-P", place,
                               "-e", "trace=unlinkat", "-e", HANG], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        status = pathlib.Path(f"/proc/{service.process.pid}/status")
        lab.wait_for("the tracer", lambda: tracer.poll() is not None or "\nTracerPid:\t0\n" not in status.read_text())
        if tracer.poll() is not None:
            pytest.skip(tracer.stderr.read().decode())
        run_id = service.start_run()
        lab.wait_for("a file with a name", lambda: list(place.iterdir()))
        assert service.answers() and service.run(run_id)["state"] == "running"
        run = service.wait_run(run_id)
    finally:
        tracer.terminate()
        tracer.communicate(timeout=30)
    assert (run["verdict"], run["reasons"][0]["code"], run["bytes_written"]) == ("inconclusive", "stalled", 0), run
    assert service.wait_run(service.start_run())["bytes_written"] == COUNT << 20
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("name, what", [("unlinkat", "signal=SIGTERM"), ("unlinkat", "error=EPERM")])
@BY_NAME
def test_a_run_of_the_daemon(name, what, environment, place, daemon, folder):
    """Its writer is hit at a call in the directory: the run ends, is said to be what it is, and the daemon serves."""
    service = daemon(place, count=COUNT, environment=environment)
    tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", folder / "log", "-p", str(service.process.pid), "-P", place,
                               "-e", f"trace={name}", "-e", f"inject={name}:{what}"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        status = pathlib.Path(f"/proc/{service.process.pid}/status")
        lab.wait_for("the tracer", lambda: tracer.poll() is not None or "\nTracerPid:\t0\n" not in status.read_text())
        if tracer.poll() is not None:
            pytest.skip(tracer.stderr.read().decode())
        run = service.wait_run(service.start_run())
        left = list(place.iterdir())
        assert run["verdict"] == "inconclusive" and run["bytes_written"] == 0, run
        assert run["reasons"][0]["code"] == ("not_permitted" if "EPERM" in what else "aborted"), run
        assert not left or "EPERM" in what and [path.stat().st_size for path in left] == [0]
        assert service.answers()
    finally:
        tracer.terminate()
        tracer.communicate(timeout=30)
    # What could not be removed then is by the next run.
    assert service.wait_run(service.start_run())["bytes_written"] == COUNT << 20
    assert list(place.iterdir()) == []
