# SPDX-License-Identifier: Apache-2.0
"""`tierprobe run` under hostile hands: signals in every phase, closed or full outputs, paths and values of all kinds."""

import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

import lab
from harness import ROOT, SANITIZED, TIERPROBE, checked
from lab.catalog import GOOD, MB

pytestmark = pytest.mark.slow


ASAN = b"__asan_init" in TIERPROBE.read_bytes()


def start(*arguments, **options):
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([TIERPROBE, "run", *map(str, arguments)], stdin=subprocess.DEVNULL, **options)


def finish(process, status=None):
    out, errors = process.communicate(timeout=90)
    assert not SANITIZED.search(errors or b""), errors
    assert process.returncode >= 0, f"killed by signal {-process.returncode}"
    if status is not None:
        assert process.returncode == status, (out, errors)
    return out


def the_run(out):
    """The one JSON document on stdout."""
    run = checked(json.loads(out))
    assert run["schema"] == 1 and run["state"] not in ("queued", "running") and run["verdict"]
    return run


def codes(run):
    return [reason["code"] for reason in run["reasons"]]


# ---- signals ----

@pytest.mark.disk
@pytest.mark.parametrize("phase", ["before", "writing", "hung", "hung before"])
def test_stopped_in_every_phase(phase, disk):
    it = disk(rate=20 * MB)
    if phase == "hung before":
        it.hang()
    # A hung writer must not hold a pipe open (only a sanitizer's report is worth that).
    process = start(it.path, "--count", 400, "--json", **({"stderr": subprocess.DEVNULL} if ASAN else {}))
    if phase == "before":
        lab.wait_for("its loop", lambda: any("timerfd" in link for link in lab.links(process.pid)))
        lab.wait_for("blocked signals", lambda: int(next(
            line.split()[1] for line in open(f"/proc/{process.pid}/status") if line.startswith("SigBlk")), 16) & 2)
    elif phase == "writing":
        lab.wait_for("bytes written", lambda: it.control["written"] > 8 << 20)
    elif phase == "hung":
        lab.wait_for("bytes written", lambda: it.control["written"] > 8 << 20)
        it.hang()
        lab.wait_for("the hang", lambda: it.control["waiting"] > 0)
    else:
        lab.wait_for("the hang", lambda: it.control["waiting"] > 0)
    end = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < end:
        process.send_signal(signal.SIGINT)  # again and again: impatience changes nothing
        time.sleep(0.2)
    run = the_run(finish(process, 3))
    assert (run["state"], run["verdict"], codes(run)[0]) == ("aborted", "inconclusive", "aborted"), run
    it.unhang()
    assert it.nothing_left() is None


@pytest.mark.disk
@pytest.mark.parametrize("ignored", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_signal_ignored_at_start_stays_ignored(ignored, disk):
    """As nohup has it for SIGHUP, and a shell for SIGINT in the background."""
    it = disk(rate=20 * MB)
    process = start(it.path, "--count", 400, "--json", preexec_fn=lambda: signal.signal(ignored, signal.SIG_IGN))
    lab.wait_for("bytes written", lambda: it.control["written"] > 8 << 20)
    process.send_signal(ignored)
    lab.wait_for("more bytes written", lambda: it.control["written"] > 32 << 20)
    process.send_signal(signal.SIGTERM if ignored == signal.SIGINT else signal.SIGINT)
    run = the_run(finish(process, 3))
    assert run["bytes_written"] > 16 << 20 and run["reasons"][0]["detail"].startswith(
        "Terminated by a signal" if ignored == signal.SIGINT else "Interrupted (Ctrl-C)"), run


@pytest.mark.disk
def test_stopped_and_continued(disk):
    """The seconds that nobody looked are one long interval, not many empty ones."""
    it = disk(rate=30 * MB)
    process = start(it.path, "--count", 240, "--write-mb-per-s", 5, "--w-await-ms", 10000, "--json")
    lab.wait_for("bytes written", lambda: it.control["written"] > 60 << 20)
    process.send_signal(signal.SIGSTOP)
    lab.wait_for("more bytes written", lambda: it.control["written"] > 180 << 20)
    process.send_signal(signal.SIGCONT)
    run = the_run(finish(process))
    assert run["verdict"] == "pass", run
    assert run["samples"]["total"] == run["samples"]["passing"]


@pytest.mark.disk
def test_a_writer_that_is_stopped_is_killed_in_the_end(disk):
    it = disk(rate=30 * MB)
    process = start(it.path, "--count", 400, "--max-duration", "5s", "--json")
    lab.wait_for("bytes written", lambda: it.control["written"] > 8 << 20)
    os.kill(it.open_files()[0][0], signal.SIGSTOP)
    run = the_run(finish(process))
    assert "stalled" in codes(run) and run["verdict"] != "pass", run
    assert it.nothing_left() is None


@pytest.mark.disk
def test_a_writer_that_is_stopped_is_no_fault_of_the_disk(disk):
    """300 MB/s without the twelve seconds, 23 with them, where 30 are required."""
    it = disk(rate=GOOD)
    process = start(it.path, "--count", 300, "--write-mb-per-s", 30, "--w-await-ms", 1000, "--json")
    lab.wait_for("bytes written", lambda: it.control["written"] > 64 << 20)
    writer = it.open_files()[0][0]
    os.kill(writer, signal.SIGSTOP)
    begin = time.monotonic()
    lab.wait_for("the time to be up", lambda: time.monotonic() > begin + 12)
    os.kill(writer, signal.SIGCONT)
    run = the_run(finish(process, 3))
    assert run["verdict"] == "inconclusive" and codes(run)[0] == "throttled", run["reasons"]
    assert "nothing was on its way" in run["reasons"][0]["detail"]
    assert not any("was outstanding" in reason["detail"] for reason in run["reasons"])
    assert it.nothing_left() is None


@pytest.fixture
def freezer():
    """A control group of its own that freezes what is in it: freezer(PID, True)."""
    two = pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists()
    top = pathlib.Path("/sys/fs/cgroup" if two else "/sys/fs/cgroup/freezer")
    path = top / f"tierprobe-test-{os.getpid()}"
    if not os.access(top, os.W_OK):
        pytest.skip("no freezer of control groups here")
    path.mkdir()
    file, words = (path / "cgroup.freeze", "01") if two else (path / "freezer.state", ("THAWED", "FROZEN"))

    def freeze(pid, yes):
        if yes:
            for one in [pid, *map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]:
                (path / "cgroup.procs").write_text(str(one))
        file.write_text(words[yes])
    yield freeze
    file.write_text(words[False])
    lab.wait_for("the group to be empty", lambda: not (path / "cgroup.procs").read_text())
    path.rmdir()


@pytest.mark.disk
def test_a_frozen_program_is_no_fault_of_the_disk(disk, freezer):
    """The command, its writer and its watcher, as a container that is paused."""
    it = disk(rate=GOOD)
    process = start(it.path, "--count", 300, "--write-mb-per-s", 30, "--w-await-ms", 1000, "--json")
    lab.wait_for("bytes written", lambda: it.control["written"] > 64 << 20)
    freezer(process.pid, True)
    begin = time.monotonic()
    lab.wait_for("the time to be up", lambda: time.monotonic() > begin + 12)
    freezer(process.pid, False)
    run = the_run(finish(process, 3))
    assert run["verdict"] == "inconclusive" and codes(run)[0] in ("throttled", "too_few_samples"), run["reasons"]
    assert it.nothing_left() is None


# ---- outputs ----

@pytest.mark.parametrize("arguments", [["--json"], []])
@pytest.mark.parametrize("closed", ["stdout", "stdout pipe", "stdout full"])
def test_no_stdout(closed, arguments, place):
    if closed == "stdout":
        process = start(place, "--count", 16, *arguments, preexec_fn=lambda: os.close(1))
    elif closed == "stdout pipe":
        process = start(place, "--count", 16, *arguments)
        process.stdout.close()
        process.stdout = None
    else:
        with open("/dev/full", "wb") as full:
            process = start(place, "--count", 16, *arguments, stdout=full)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 3  # nobody has got the verdict
    assert b"tierprobe run: " in errors and not SANITIZED.search(errors)


@pytest.mark.disk
@pytest.mark.parametrize("closed", ["stderr", "stderr pipe", "all but stdout"])
def test_no_stderr(closed, disk):
    it = disk(rate=60 * MB)

    def close():
        os.close(2)
        if closed == "all but stdout":
            os.close(0)
    process = start(it.path, "--count", 200, "--json", preexec_fn=close if closed != "stderr pipe" else None)
    if closed == "stderr pipe":
        process.stderr.close()
        process.stderr = None
    run = the_run(finish(process))
    assert run["state"] == "finished" and run["bytes_written"] == run["bytes_total"]


# ---- paths ----

@pytest.mark.parametrize("name", [b"with space", b"\xff\xfe not utf-8", b"new\nline \x1b[31m", b"%s%n quote\"\\", b"-dash"])
def test_names(name, place):
    """What is printed is one JSON document, or lines of which none is made by the path."""
    folder = os.path.join(os.fsencode(place), name)
    os.mkdir(folder)
    try:
        run = the_run(finish(start(os.fsdecode(folder), "--count", 4, "--json")))
        assert (run["state"], run["bytes_written"]) == ("finished", 4 << 20)
        lines = finish(start("--count", 4, "--", os.fsdecode(name), cwd=place)).splitlines()
        assert sum(line.startswith(b"path ") for line in lines) == 1
        assert b"\x1b" not in b"".join(lines) and not any(line.startswith(b"line") for line in lines)
    finally:
        os.rmdir(folder)


@pytest.mark.parametrize("path", [".", "./", "{0}/", "{0}///", "{0}/../{1}", "../{1}"])
def test_spellings(path, place):
    run = the_run(finish(start(path.format(place, place.name), "--count", 4, "--json", cwd=place)))
    assert (run["state"], run["bytes_written"]) == ("finished", 4 << 20), run


def test_places_that_cannot_be_tested(place, folder):
    (place / "file").write_text("x")
    (folder / "link").symlink_to(place / "file")
    (folder / "loop").symlink_to("loop")
    try:
        for path, wanted in ((place / "file", "path_missing"), (f"{place}/file/", "path_missing"),
                             (f"{place}/file/x", "path_missing"), (folder / "link", "path_missing"),
                             (f"{folder}/link/", "path_missing"), (folder / "loop", "wrong_device"),
                             ("/" + "x" * 300, "path_missing"), ("/" + "x/" * 2047, "path_missing"),
                             ("/" + "x/" * 2048, "path_missing"), ("/" + "x/" * 40000, "path_missing"),
                             ("/proc", None), ("/sys", None), ("/dev", "no_block_device"), ("/dev/shm", "no_block_device"),
                             ("/dev/null", "path_missing"), (f"/proc/{os.getpid()}/fd", None),
                             ("/" + "é" * 120 + "/" + "é" * 120, "path_missing")):
            run = the_run(finish(start(path, "--count", 2, "--json"), 3))
            assert run["verdict"] == "inconclusive" and len(codes(run)) >= 1, run
            if wanted:
                assert codes(run)[0] == wanted, (path, run["reasons"])
            assert b"INCONCLUSIVE" in finish(start(path, "--count", 2), 3)
    finally:
        (place / "file").unlink()


@pytest.mark.parametrize("spelling", ["{0}/link", "{0}/link/", "link"])
def test_a_link_is_followed(spelling, place, folder):
    """As dd does it, and both names are shown."""
    (folder / "link").symlink_to(place)
    run = the_run(finish(start(spelling.format(folder), "--count", 4, "--json", cwd=folder)))
    assert (run["state"], run["bytes_written"]) == ("finished", 4 << 20), run
    assert run["path"].rstrip("/") == f"{folder}/link" and run["leads_to"] == str(place)
    out = finish(start(spelling.format(folder), "--count", 4, cwd=folder)).decode()
    assert f"link -> {place}" in out or f"link/ -> {place}" in out, out


def test_a_working_directory_that_is_gone(folder):
    gone = folder / "gone"
    gone.mkdir()
    process = start(".", "--json", cwd=gone, preexec_fn=lambda: os.rmdir(gone))
    out = finish(process, 3)
    assert process.returncode == 3
    run = the_run(out)
    assert codes(run) == ["path_missing"], run


# ---- values ----

@pytest.mark.parametrize("option, values", [
    ("--count", ["0", "-1", "", " 1", "1 ", "1.5", "1e3", "0x10", "1000000001", "18446744073709551616", "9" * 400]),
    ("--block-size", ["0", "-4K", "", "4095", "4097", "65M", "1E", "16777216T", "K", "1MM", "9" * 400, "nan"]),
    ("--streams", ["0", "129", "-1", "", "4294967297", "one"]),
    ("--pattern", ["", "ZERO", "zero ", "zerorandom"]),
    ("--max-duration", ["", "0", "0s", "999ms", "745h", "-1s", "1", "1y", "9" * 400 + "s", "inf"]),
    ("--write-mb-per-s", ["", "-1", "0", "nan", "inf", "1e7", "1e400", "6OO", "1,5", "0x10", "-0.1"]),
    ("--w-await-ms", ["", "0", "-0", "nan", "-inf", "1e-400", "1e7"]),
    ("--pass-ratio", ["", "-0.1", "1.0001", "nan", "90%", "."]),
    ("--profile", ["", "none", "Procedure", "../procedure", "x" * 10000]),
])
def test_bad_values(option, values, place, tierprobe):
    for value in values:
        for arguments in ([option, value], [f"{option}={value}"]):
            done = tierprobe("run", place, "--json", *arguments)
            assert (done.returncode, done.stdout) == (3, ""), (option, value, done)
            assert done.stderr.startswith("tierprobe run: "), done.stderr


def test_the_last_of_repeated_options_counts(place, tierprobe):
    done = tierprobe("run", place, "--count", "400", "--count", "3", "--json", "--json")
    run = the_run(done.stdout)
    assert run["test"]["count"] == 3


def test_extreme_sizes_are_refused_for_space(place, tierprobe):
    for arguments in (["--count", "1000000000", "--block-size", "64M", "--streams", "128"],
                      ["--count", "1000000000", "--block-size", "64M"], ["--count", "1000000000"]):
        run = the_run(tierprobe("run", place, "--json", *arguments).stdout)
        assert run["verdict"] == "inconclusive" and codes(run)[0] == "no_space", run


# ---- a machine that gives nothing ----

@pytest.mark.parametrize("limit", [4, 5, 6, 7, 8, 9, 10, 12, 15, 18])
def test_few_descriptors(limit, place):
    process = subprocess.Popen(["prlimit", f"--nofile={limit}", TIERPROBE, "run", place, "--count", "8", "--streams", "3",
                                "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, errors = process.communicate(timeout=60)
    assert not SANITIZED.search(errors) and process.returncode >= 0, (process.returncode, errors)
    if b"error while loading shared libraries" in errors:
        pytest.skip("not even the program starts")
    run = the_run(out)
    assert run["state"] == "finished" or run["verdict"] == "inconclusive", run
    assert "path_missing" not in codes(run), run  # it is there


@pytest.mark.parametrize("missing", ["--procfs", "--sysfs"])
@pytest.mark.parametrize("what", ["nothing", "empty", "garbage"])
def test_no_kernel_tables(missing, what, place, folder):
    tree = folder / "tree"
    if what != "nothing":
        tree.mkdir()
    if what == "garbage":
        (tree / "self").mkdir()
        (tree / "self" / "mountinfo").write_bytes(os.urandom(1 << 16))
        (tree / "diskstats").write_bytes(os.urandom(1 << 16))
        (tree / "dev").mkdir()
        (tree / "dev" / "block").write_bytes(b"x")
    run = the_run(finish(start(place, "--count", 4, "--json", missing, tree)))
    # One of the two may make up for the other; without either there is no verdict.
    assert run["verdict"] == "inconclusive" or (run["device"]["name"] and run["measured"]["wkB/s"] > 0), run
    assert the_run(finish(start(place, "--count", 4, "--json", "--procfs", tree, "--sysfs", tree), 3))


# ---- a file system that cannot make a file without a name ----

@pytest.fixture
def nameful(folder):
    """The environment in which test files have a name for a while, and the file that tells when."""
    shim = folder / "shim.so"
    lab.run("cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", shim, ROOT / "tests/lab/no-tmpfile-shim.c")
    creating = folder / "creating"
    return {**os.environ, "LD_PRELOAD": str(shim), "LAB_CREATE_MS": "700", "LAB_CREATING": str(creating),
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}, creating


@pytest.mark.parametrize("whom", ["parent", "writer"])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_ended_while_the_file_has_a_name(how, whom, place, nameful):
    """Whoever is ended, and however: the name goes, but for a SIGKILL of the writer itself."""
    environment, creating = nameful
    process = start(place, "--count", 8, "--json", env=environment)
    lab.wait_for("a file with a name", creating.exists)
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    writer = next(int(pid) for pid in children if pathlib.Path(f"/proc/{pid}/comm").read_text() == "tierprobe-write\n")
    assert len(list(place.iterdir())) == 1
    os.kill(process.pid if whom == "parent" else writer, how)
    process.communicate(timeout=60)
    lab.wait_for("the writer's end", lambda: not pathlib.Path(f"/proc/{writer}").exists())
    left = list(place.iterdir())
    if (how, whom) == (signal.SIGKILL, "writer"):
        assert len(left) == 1 and left[0].stat().st_size == 0
        creating.unlink()
        # The next test clears up, and says so.
        out = finish(start(place, "--count", 8, env={**environment, "LAB_CREATE_MS": "0"}))
        assert b"removed      1 empty file of a test that was killed" in out
        left = list(place.iterdir())
    assert left == []
