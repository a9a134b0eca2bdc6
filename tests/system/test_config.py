# SPDX-License-Identifier: Apache-2.0
"""Configuration and options: what is wrong is said with its place, and loses nothing."""

import os
import pathlib
import signal
import socket
import subprocess

import pytest

import lab
from harness import TIERPROBED, config_text, free_port, sections_for


@pytest.fixture
def check(tierprobed, folder):
    """check(TEXT) runs --check-config on a file with that text."""
    def run(text, *arguments):
        path = folder / "tierprobed.conf"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return tierprobed("--config", path, "--check-config", *arguments), path
    return run


# ---- the command line ----

@pytest.mark.parametrize("arguments", [["--no-such-option"], ["--config"], ["stray"], ["--listen", ""], ["-x"],
                                       ["--path=", "--check-config"]])
def test_usage_errors(arguments, tierprobed):
    done = tierprobed(*arguments)
    assert done.returncode == 2
    assert "--help" in done.stderr
    assert done.stdout == ""


def test_help_and_version(tierprobed):
    done = tierprobed("--help")
    assert done.returncode == 0
    for option in ("--config", "--path", "--listen", "--state-dir", "--procfs", "--sysfs", "--check-config",
                   "--print-config", "--show-schedule", "--verbose"):
        assert option in done.stdout
    done = tierprobed("--version")
    assert done.returncode == 0 and done.stdout.startswith("tierprobed ")


@pytest.mark.parametrize("option, value, right", [("--listen", "127.0.0.1:1", "commas"), ("--path", "/tmp", "configuration")])
def test_an_option_that_would_have_no_effect(option, value, right, tierprobed):
    done = tierprobed(option, value, option, value, "--check-config")
    assert done.returncode == 2 and f"{option} is given twice" in done.stderr and right in done.stderr


# ---- where it comes from ----

@pytest.mark.parametrize("pieces", [1, 7, 4096])
@pytest.mark.parametrize("where", ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"])
def test_from_a_pipe(pieces, where, folder):
    text = f"[target cache]\npath = {folder}\n"
    process = subprocess.Popen([TIERPROBED, "--config", where, "--check-config"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for at in range(0, len(text), pieces):
        process.stdin.write(text[at:at + pieces])
        process.stdin.flush()
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "") and "1 target" in out


def test_from_a_process(folder):
    (folder / "t.conf").write_text(f"[target cache]\npath = {folder}\n[limits]\nw_await_ms = x\n")
    done = subprocess.run(["bash", "-c", f"{TIERPROBED} --config <(sleep 0.1; cat {folder}/t.conf) --check-config"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 78 and ":4: w_await_ms" in done.stderr


def test_a_pipe_cannot_be_read_again(folder):
    process = subprocess.Popen([TIERPROBED, "--config", "/dev/stdin", "--state-dir", folder / "state"],
                               stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdin.write(f"[http]\nlisten = unix:{folder}/socket\n[target cache]\npath = {folder}\n")
    process.stdin.close()
    try:
        next(line for line in process.stderr if "serves 1 target" in line)
        process.send_signal(signal.SIGHUP)
        next(line for line in process.stderr if "cannot be read again" in line)
        process.terminate()
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.wait()


# ---- the file ----

GOOD = "[target cache]\npath = {place}\n"

FAULTS = {
    "unknown key": ("[limits]\nw_await = 20\n", 2, "w_await"),
    "unknown section": ("\n[limit]\nw_await_ms = 20\n", None, "limit"),
    "not a number": ("[limits]\nw_await_ms = fast\n", 2, "w_await_ms"),
    "out of range": ("[limits]\n\npass_ratio = 1.5\n", 3, "pass_ratio"),
    "negative": ("[limits]\nwrite_mb_per_s = -1\n", 2, "write_mb_per_s"),
    "interval too short": ("[sampling]\ninterval = 99ms\n", 2, "interval"),
    "interval too long": ("[sampling]\ninterval = 61s\n", 2, "interval"),
    "no unit": ("[schedule]\ninterval = 24\n", 2, "interval"),
    "block size odd": ("[profile p]\nblock_size = 1000\ncount = 1\n", 2, "block_size"),
    "no blocks": ("[profile p]\nblock_size = 1M\ncount = 0\n", 3, "count"),
    "too many streams": ("[profile p]\ncount = 1\nstreams = 129\n", 3, "streams"),
    "unknown pattern": ("[profile p]\ncount = 1\npattern = ones\n", 3, "pattern"),
    "no equals sign": ("[limits]\nw_await_ms\n", 2, None),
    "key before a section": ("w_await_ms = 20\n", 1, None),
    "bad name": ("[target a/b]\npath = /tmp\n", 1, None),
    "target without path": ("[target cache]\n", 1, "path"),
    "relative path": ("[target cache]\npath = cache\n", 2, "path"),
    "listen without port": ("[http]\nlisten = 127.0.0.1\n", 2, "listen"),
    "listen on a name": ("[http]\nlisten = example.com:80\n", 2, "listen"),
    "listen port": ("[http]\nlisten = 127.0.0.1:65536\n", 2, "listen"),
    "missing path": ("[target cache]\npath = /no/such/place\n", 2, "/no/such/place"),
    "path is a file": ("[target cache]\npath = /etc/passwd\n", 2, "/etc/passwd"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_have_a_place(name, check):
    text, line, word = FAULTS[name]
    done, path = check(text)
    assert done.returncode == 78, done.stderr
    assert done.stdout == ""
    place = f"{path}:{line}" if line else f"{path}:"
    assert place in done.stderr
    if word:
        assert word in done.stderr


def test_every_fault_is_named_at_once(check):
    done, path = check("[limits]\nw_await_ms = fast\npass_ratio = 7\n[nonsense]\na = b\n")
    assert done.returncode == 78
    assert f"{path}:2" in done.stderr and f"{path}:3" in done.stderr and "nonsense" in done.stderr
    assert all(line.startswith(f"{path}:") for line in done.stderr.splitlines()), "one line a fault"


def test_two_targets_with_one_name(check, place):
    done, path = check(f"[target cache]\npath = {place}\n\n[target cache]\npath = {place}\n")
    assert done.returncode == 78
    assert f"{path}:4" in done.stderr or f"{path}:5" in done.stderr
    assert "cache" in done.stderr


def test_path_is_a_symbolic_link(check, place, folder):
    """One that leads to a directory is followed, as dd does; one that leads nowhere is said."""
    link = folder / "link"
    link.symlink_to(place)
    done, path = check(f"[target cache]\npath = {link}\n")
    assert done.returncode == 0, done.stderr
    link.unlink()
    link.symlink_to("nowhere")
    done, path = check(f"[target cache]\npath = {link}\n")
    assert done.returncode == 78 and f"{path}:2" in done.stderr and "no such directory" in done.stderr
    link.unlink()
    link.symlink_to("link")
    done, path = check(f"[target cache]\npath = {link}\n")
    assert done.returncode == 78 and f"{path}:2" in done.stderr and "circle" in done.stderr


@pytest.mark.parametrize("text", [b"\xff\xfe\x00garbage", b"[" * 5000, b"a" * 100000, b"[limits]\nw_await_ms = 20\x00\n",
                                  b"[target " + b"x" * 1000 + b"]\npath = /\n", os.urandom(4096)],
                         ids=["utf16", "brackets", "long line", "nul", "long name", "noise"])
def test_garbage(text, check):
    done, _ = check(text)
    assert done.returncode == 78
    assert done.stderr
    assert len(done.stderr) < 100000


def test_missing_file_that_was_named(tierprobed, folder):
    done = tierprobed("--config", folder / "none.conf", "--check-config")
    assert done.returncode == 78
    assert "none.conf" in done.stderr


def test_good_file_and_what_is_printed_reads_back(check, tierprobed, place, folder):
    sections = sections_for(place, count=7, schedule={"interval": "6h", "jitter": "30m"}, guard={"cooldown": "10m"},
                            http={"listen": ["127.0.0.1:7621", f"unix:{folder}/s"]})
    done, path = check(config_text(sections))
    assert done.returncode == 0, done.stderr
    printed = tierprobed("--config", path, "--print-config")
    assert printed.returncode == 0
    second = folder / "second.conf"
    second.write_text(printed.stdout)
    again = tierprobed("--config", second, "--print-config")
    assert again.returncode == 0 and again.stdout == printed.stdout
    for word in ("7621", f"unix:{folder}/s", str(place), "count = 7", "jitter"):
        assert word in printed.stdout


def test_drop_ins_in_their_order_and_options_on_top(tierprobed, place, folder):
    path = folder / "tierprobed.conf"
    path.write_text("[limits]\nw_await_ms = 1\n")
    drop_ins = folder / "tierprobed.conf.d"
    drop_ins.mkdir()
    (drop_ins / "20-second.conf").write_text("[limits]\nw_await_ms = 3\n")
    (drop_ins / "10-first.conf").write_text("[limits]\nw_await_ms = 2\nwrite_mb_per_s = 77\n")
    (drop_ins / "30-ignored").write_text("[limits]\nw_await_ms = 9\n")
    done = tierprobed("--config", path, "--path", place, "--listen", "127.0.0.1:7699", "--print-config")
    assert done.returncode == 0, done.stderr
    lines = [line.replace(" ", "") for line in done.stdout.splitlines()]
    assert "w_await_ms=3" in lines and "write_mb_per_s=77" in lines and "listen=127.0.0.1:7699" in lines
    assert f"path={place}" in lines and "[targetcache]" in lines
    (drop_ins / "20-second.conf").write_text("[limits]\nw_await_ms = three\n")
    done = tierprobed("--config", path, "--check-config")
    assert done.returncode == 78 and "20-second.conf:2" in done.stderr


# ---- starting ----

def start(tierprobed, folder, *arguments, state=None):
    return tierprobed("--config", "/dev/null", "--state-dir", state or folder / "state", *arguments, timeout=60)


@pytest.mark.parametrize("path", ["/no/such/place", "/etc/passwd", "/proc/self/exe"])
def test_start_with_a_bad_path(path, tierprobed, folder):
    done = start(tierprobed, folder, "--path", path, "--listen", f"unix:{folder}/socket")
    assert done.returncode == 78
    assert path in done.stderr and "--path" in done.stderr
    assert not (folder / "socket").exists()


def test_listen_address_in_use(tierprobed, folder, place):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = start(tierprobed, folder, "--path", place, "--listen", f"127.0.0.1:{port}")
    assert done.returncode == 1
    assert f"127.0.0.1:{port}" in done.stderr and "in use" in done.stderr


def test_listen_address_of_another_host(tierprobed, folder, place):
    done = start(tierprobed, folder, "--path", place, "--listen", "192.0.2.1:7620")
    assert done.returncode == 1
    assert "192.0.2.1:7620" in done.stderr


def test_unix_socket_in_a_missing_folder(tierprobed, folder, place):
    done = start(tierprobed, folder, "--path", place, "--listen", f"unix:{folder}/none/socket")
    assert done.returncode == 1
    assert f"{folder}/none/socket" in done.stderr


def test_unix_socket_where_a_file_is(tierprobed, folder, place):
    (folder / "file").write_text("precious")
    done = start(tierprobed, folder, "--path", place, "--listen", f"unix:{folder}/file")
    assert done.returncode == 1
    assert (folder / "file").read_text() == "precious"


def test_state_directory_that_is_a_file(tierprobed, folder, place):
    (folder / "state").write_text("precious")
    done = start(tierprobed, folder, "--path", place, "--listen", f"unix:{folder}/socket")
    assert done.returncode == 1
    assert f"{folder}/state" in done.stderr
    assert (folder / "state").read_text() == "precious"


@pytest.mark.root
def test_state_directory_that_cannot_be_written(folder):
    state, place = folder / "state", folder / "target"
    state.mkdir(mode=0o755)
    place.mkdir(mode=0o755)
    folder.chmod(0o755)
    done = lab.run("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", TIERPROBED, "--config",
                   "/dev/null", "--path", place, "--listen", f"127.0.0.1:{free_port()}", "--state-dir", state, check=False)
    assert done.returncode == 1
    assert str(state) in done.stderr


def test_a_second_daemon_on_one_state_directory(daemon, tierprobed, folder, place):
    """Whether refused or not, the first one's data must live on."""
    service = daemon(place)
    done = start(tierprobed, folder, "--path", place, "--listen", service.listen)
    assert done.returncode == 1
    assert service.get("/status").status == 200


def test_stale_socket_is_replaced(daemon, folder, place):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(f"{folder}/socket")
    assert daemon(place).get("/healthz").status == 200


# ---- reload ----

def test_reload_takes_a_good_configuration_and_refuses_a_bad_one(daemon, folder, place):
    sections = sections_for(place)
    service = daemon(sections=sections)
    sections["limits"]["w_await_ms"] = 7
    (folder / "tierprobed.conf").write_text(config_text(sections))
    service.process.send_signal(signal.SIGHUP)
    lab.wait_for("the new limit", lambda: service.status["limits"]["w_await_ms"] == 7)

    (folder / "tierprobed.conf").write_text("[limits]\nw_await_ms = fast\n")
    service.process.send_signal(signal.SIGHUP)
    lab.wait_for("the fault in the log", lambda: "tierprobed.conf:2" in service.stderr)
    assert service.status["limits"]["w_await_ms"] == 7
    assert service.get("/healthz").status == 200

    sections["target second"] = {"path": place / "none"}
    (folder / "tierprobed.conf").write_text(config_text(sections))
    service.process.send_signal(signal.SIGHUP)
    lab.wait_for("the fault in the log", lambda: str(place / "none") in service.stderr)
    assert [t["name"] for t in service.status["targets"]] == ["cache"]


def test_other_roots(daemon, folder, place):
    """--procfs and --sysfs: the row that is sampled is that of the given files."""
    procfs = folder / "proc"
    (procfs / "self").mkdir(parents=True)
    mountinfo = pathlib.Path("/proc/self/mountinfo").read_text()
    (procfs / "self/mountinfo").write_text(mountinfo)
    (procfs / "diskstats").write_text("")
    service = daemon(place, arguments=["--procfs", procfs, "--sysfs", "/sys"])
    assert service.get("/status").status == 200


def test_arguments_may_be_all_there_is(folder, place, daemon):
    service = daemon(sections={}, listen=f"unix:{folder}/socket", arguments=["--path", place])
    target = service.target()
    assert (target["name"], target["path"]) == ("cache", str(place))
    assert service.status["limits"] == {"write_mb_per_s": 600, "w_await_ms": 20, "pass_ratio": 0.9}
    assert target["next_run_at"] is not None  # every 24 h by default
    assert target["current_run"] is None


def test_stop_signals(daemon, place, folder):
    for how in (signal.SIGTERM, signal.SIGINT):
        daemon(place).stop(how)
        assert not (folder / "socket").exists()
