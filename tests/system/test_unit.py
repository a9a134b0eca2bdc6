# SPDX-License-Identifier: Apache-2.0
"""The installed service in a real systemd: its user, its sandbox, readiness, journal, restart and watchdog."""

import contextlib
import json
import os
import pathlib
import subprocess

import pytest

import lab
from harness import (BUILD, TIERPROBE, TIERPROBED, Response, UnixConnection, config_text, sections_for,
                     skip_when_held_up)
from lab.catalog import GOOD, SLOW
from lab.container import container, tree

pytestmark = [pytest.mark.root, pytest.mark.disk, pytest.mark.installed_only, pytest.mark.xdist_group("unit")]

UNIT = "tierprobed.service"
CONFIG = "/etc/tierprobe/tierprobed.conf"
TARGET = "/srv/cache/db"  # of another user, who lets nobody in
SOCKET = "/run/tierprobe/tierprobed.sock"
SECTIONS = {
    **sections_for({"cache": TARGET, "default": "/var/cache/tierprobe"}, count=128),
    "schedule": {"interval": "never"},
    "profile short": {"block_size": "1M", "count": 16},
}


class Service:
    """The daemon in the container, asked over its socket."""

    def __init__(self, machine, disk):
        self.machine, self.disk = machine, disk

    def request(self, method, path):
        with contextlib.closing(UnixConnection(self.machine.path(SOCKET), 30)) as connection:
            connection.request(method, path)
            return Response(connection.getresponse())

    def get(self, path):
        answer = self.request("GET", path)
        assert answer.status == 200, answer
        return answer.json

    def systemctl(self, *arguments, check=True):
        return self.machine.run("systemctl", *arguments, check=check)

    def show(self, *names):
        return self.machine.show(UNIT, *names)

    def start_run(self, target="cache", profile="small"):
        answer = self.request("POST", f"/run?target={target}&profile={profile}")
        assert answer.status == 202, answer
        return answer.json["runs"][0]["id"]

    def wait_run(self, run_id):
        def ended():
            run = self.get(f"/runs/{run_id}")
            return run["state"] not in ("queued", "running") and run
        run = lab.wait_for("the end of the run", ended, 60)
        skip_when_held_up(run)
        return run

    def wait_running(self, run_id):
        return lab.wait_for("bytes written", lambda: self.get(f"/runs/{run_id}")["bytes_written"] > 0, 60)

    def wait_answers(self):
        def answers():
            with contextlib.suppress(OSError):
                return self.request("GET", "/healthz").status == 200
        lab.wait_for("the service to answer", answers, 60)


def install(machine):
    """What a package would do: files, user. And what an administrator does: one file."""
    subprocess.run(["meson", "install", "-C", str(BUILD), "--no-rebuild", "--destdir", str(machine.root)], check=True,
                   stdout=subprocess.DEVNULL)
    lab.run("chroot", machine.root, "systemd-sysusers")
    machine.write(CONFIG, config_text(SECTIONS))


@pytest.fixture(scope="module")
def service():
    if not TIERPROBED.exists():
        pytest.fail(f"{TIERPROBED} is not built")
    if b"libasan" in subprocess.run(["ldd", TIERPROBED], capture_output=True).stdout:
        pytest.skip("the sandbox and AddressSanitizer exclude each other")
    folder, why = tree(str(TIERPROBED), str(TIERPROBE))
    if not folder:
        pytest.skip(f"no container: {why}")
    with lab.disk(rate=GOOD) as disk:
        outside, inside = disk.directory("srv"), disk.directory("var-cache")

        def prepare(machine):
            install(machine)
            lab.run("chroot", machine.root, "useradd", "db2inst1")
            passwd = (machine.root / "etc/passwd").read_text()
            uid, gid = next(line.split(":")[2:4] for line in passwd.splitlines() if line.startswith("db2inst1:"))
            (outside / "db").mkdir(mode=0o700)
            os.chown(outside / "db", int(uid), int(gid))
        with container(folder, binds=[(outside, "/srv/cache"), (inside, "/var/cache/tierprobe")], prepare=prepare) as machine:
            it = Service(machine, disk)
            disk.remember()
            yield it


@pytest.fixture
def started(service):
    """The service, running with the usual configuration."""
    service.machine.write(CONFIG, config_text(SECTIONS))
    service.systemctl("reset-failed", UNIT, check=False)
    started = service.systemctl("start", UNIT, check=False)
    assert started.returncode == 0, service.machine.run("journalctl", "-u", UNIT, "--no-pager").stdout
    service.wait_answers()
    return service


def test_ready_and_unprivileged(started):
    # systemctl start of Type=notify came back: READY=1 was sent.
    facts = started.show("ActiveState", "SubState", "MainPID", "StatusText", "NRestarts", "Result")
    assert facts["ActiveState"] == "active" and facts["SubState"] == "running" and facts["Result"] == "success"
    assert facts["StatusText"]
    status = started.machine.run("cat", f"/proc/{facts['MainPID']}/status").stdout
    uid = next(line.split()[1] for line in status.splitlines() if line.startswith("Uid:"))
    passwd = started.machine.run("getent", "passwd", uid).stdout
    assert passwd.startswith("tierprobe:")
    assert "CapEff:\t0000000000000000" in status and "NoNewPrivs:\t1" in status


def test_status_answers_on_both_listeners(started):
    """Without a word in the configuration; the command line finds the socket by itself."""
    assert {t["name"] for t in started.get("/status")["targets"]} == {"cache", "default"}
    # Its network is its own: the answer must come from inside.
    probe = started.machine.run("sh", "-c", "exec 2>&1; cat /proc/net/tcp")
    assert f"0100007F:{7620:04X}" in probe.stdout
    status = started.machine.run("tierprobe", "status", check=False)
    assert status.returncode in (0, 2, 3) and "cache" in status.stdout and "default" in status.stdout
    assert started.machine.run("stat", "-c", "%U:%G %a", SOCKET).stdout == "tierprobe:tierprobe 660\n"


@pytest.mark.parametrize("target", ["cache", "default"])
def test_a_run_in_the_sandbox_and_its_journal(started, target):
    run = started.wait_run(started.start_run(target))
    assert run["verdict"] == "pass", (run["reasons"], started.machine.run("journalctl", "-u", UNIT, "--no-pager").stdout[-3000:])
    assert run["device"]["name"] == started.disk.name
    entries = started.machine.journal(f"TIERPROBE_RUN_ID={run['id']}")
    assert len(entries) >= 2  # begun, ended
    end = next(e for e in entries if e.get("TIERPROBE_VERDICT") == "pass")
    assert end["TIERPROBE_TARGET"] == target
    assert end["TIERPROBE_DEVICE"] == started.disk.name
    assert float(end["TIERPROBE_WKB_PER_S"]) == pytest.approx(run["measured"]["wkB/s"], rel=0.01)
    assert float(end["TIERPROBE_W_AWAIT_MS"]) == pytest.approx(run["measured"]["w_await"], abs=0.01)
    assert all(len(e["MESSAGE_ID"]) == 32 for e in entries)
    assert len({e["MESSAGE_ID"] for e in entries}) == len(entries)
    assert started.disk.nothing_left() is None


def test_a_failed_run_has_a_reason_in_the_journal(started):
    started.disk.behave(rate=SLOW)
    try:
        run = started.wait_run(started.start_run(profile="short"))
    finally:
        started.disk.behave(rate=GOOD)
    assert run["verdict"] == "fail"
    end = started.machine.journal(f"TIERPROBE_RUN_ID={run['id']}", "TIERPROBE_VERDICT=fail")
    assert len(end) == 1
    assert "write_throughput_low" in json.dumps(end[0]["TIERPROBE_REASON"])


def test_restart_keeps_the_runs(started):
    run = started.wait_run(started.start_run())
    started.systemctl("restart", UNIT)
    started.wait_answers()
    kept = started.get(f"/runs/{run['id']}")
    assert (kept["verdict"], kept["bytes_written"]) == (run["verdict"], run["bytes_written"])
    target = next(t for t in started.get("/status")["targets"] if t["name"] == "cache")
    assert target["last_run"]["id"] == run["id"]


def test_kill_in_the_middle_of_a_run(started):
    restarts = int(started.show("NRestarts")["NRestarts"])
    started.disk.behave(rate=20_000_000)
    try:
        run_id = started.start_run()
        started.wait_running(run_id)
        started.systemctl("kill", "--kill-whom=main", "--signal=KILL", UNIT)
        lab.wait_for("the restart", lambda: int(started.show("NRestarts")["NRestarts"]) == restarts + 1)
    finally:
        started.disk.behave(rate=GOOD)
    started.wait_answers()
    run = started.get(f"/runs/{run_id}")
    assert (run["state"], run["verdict"]) == ("aborted", "inconclusive")
    assert [r["code"] for r in run["reasons"]] == ["aborted"]
    assert started.disk.nothing_left() is None


def test_stop_in_the_middle_of_a_run_is_clean(started):
    started.disk.behave(rate=20_000_000)
    try:
        run_id = started.start_run()
        started.wait_running(run_id)
        started.systemctl("stop", UNIT)
    finally:
        started.disk.behave(rate=GOOD)
    facts = started.show("ActiveState", "Result", "ExecMainStatus")
    assert facts == {"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0"}
    assert started.disk.nothing_left() is None
    started.systemctl("start", UNIT)
    started.wait_answers()
    assert started.get(f"/runs/{run_id}")["state"] == "aborted"


def test_reload(started):
    before = started.show("MainPID")
    started.systemctl("reload", UNIT)
    started.wait_answers()
    assert started.show("MainPID") == before
    assert started.show("ActiveState")["ActiveState"] == "active"


def test_a_faulty_configuration_is_named_and_not_retried(service):
    service.systemctl("stop", UNIT)
    service.machine.write(CONFIG, "[limits]\nw_await_ms = fast\n")
    assert service.systemctl("start", UNIT, check=False).returncode != 0
    facts = service.show("ActiveState", "ExecMainStatus", "Result")
    assert facts == {"ActiveState": "failed", "ExecMainStatus": "78", "Result": "exit-code"}
    messages = [e["MESSAGE"] for e in service.machine.journal("-u", UNIT)]
    assert any(f"{CONFIG}:2" in message for message in messages), messages[-5:]


def test_watchdog_restarts_a_stuck_daemon(started):
    drop_in = f"/etc/systemd/system/{UNIT}.d/watchdog.conf"
    started.machine.write(drop_in, "[Service]\nWatchdogSec=2s\n")
    started.systemctl("daemon-reload")
    started.systemctl("restart", UNIT)
    started.wait_answers()
    restarts = int(started.show("NRestarts")["NRestarts"])
    started.systemctl("kill", "--kill-whom=main", "--signal=STOP", UNIT)
    lab.wait_for("the restart", lambda: int(started.show("NRestarts")["NRestarts"]) > restarts, 60)
    started.wait_answers()
    pathlib.Path(started.machine.path(drop_in)).unlink()
    started.systemctl("daemon-reload")
    started.systemctl("restart", UNIT)


def test_a_slow_disk_does_not_trip_the_watchdog(started):
    """The watchdog proves that the loop turns, not that the disk is good."""
    drop_in = f"/etc/systemd/system/{UNIT}.d/watchdog.conf"
    started.machine.write(drop_in, "[Service]\nWatchdogSec=2s\n")
    started.systemctl("daemon-reload")
    started.systemctl("restart", UNIT)
    started.wait_answers()
    pid = started.show("MainPID")
    run_id = started.start_run()
    started.wait_running(run_id)
    started.disk.hang()
    try:
        held = started.get(f"/runs/{run_id}")["elapsed_s"]
        lab.wait_for("5 s of hanging", lambda: started.get(f"/runs/{run_id}")["elapsed_s"] > held + 5, 60)
        assert started.show("MainPID") == pid
    finally:
        started.disk.unhang()
        pathlib.Path(started.machine.path(drop_in)).unlink()
    started.wait_run(run_id)
    started.systemctl("daemon-reload")
    started.systemctl("restart", UNIT)


def test_unit_verifies(service):
    done = service.machine.run("systemd-analyze", "verify", UNIT, check=False)
    assert done.returncode == 0, done.stderr



@pytest.fixture
def mounted(service):
    """A target on a mount of its own inside the container, with the service started on it."""
    machine = service.machine
    machine.run("mkdir", "-p", "/mnt/disk")
    machine.run("mount", "--bind", "/srv/cache", "/mnt/disk")
    sections = {**SECTIONS, "target moving": {"path": "/mnt/disk/db"}}
    machine.write(CONFIG, config_text(sections))
    service.systemctl("restart", UNIT)
    service.wait_answers()
    yield service
    machine.write(CONFIG, config_text(SECTIONS))
    service.systemctl("restart", UNIT)
    machine.run("umount", "/mnt/disk", check=False)
    service.wait_answers()


def target_of(service, name):
    return next(t for t in service.get("/status")["targets"] if t["name"] == name)


def test_an_unmount_frees_the_disk_at_once_and_the_daemon_sees_it(mounted):
    """Nothing in the sandbox holds a target's file system: what the host unmounts is gone for the service as well."""
    mounts = f"/proc/{mounted.show('MainPID')['MainPID']}/mountinfo"
    run = mounted.wait_run(mounted.start_run("moving"))
    assert run["verdict"] == "pass", run["reasons"]
    assert " /mnt/disk " in mounted.machine.run("cat", mounts).stdout
    mounted.machine.run("umount", "/mnt/disk")
    assert " /mnt/disk " not in mounted.machine.run("cat", mounts).stdout
    lab.wait_for("the daemon to see it", lambda: target_of(mounted, "moving")["reasons"] != [] or
                 target_of(mounted, "moving")["device"] is None, 60)
    refused = mounted.wait_run(mounted.start_run("moving"))
    assert refused["verdict"] == "inconclusive" and refused["bytes_written"] == 0
    assert {r["code"] for r in refused["reasons"]} <= {"path_missing", "not_mounted", "wrong_device"}
    # And back: no restart is needed.
    mounted.machine.run("mount", "--bind", "/srv/cache", "/mnt/disk")

    def works():
        return mounted.wait_run(mounted.start_run("moving"))["verdict"] == "pass"
    lab.wait_for("a run after the mount came back", works, 60)


def test_a_reload_takes_a_second_target_and_fails_with_a_faulty_file(started):
    more = {**SECTIONS, "target second": {"path": "/srv/cache/second"}}
    (started.disk.path / "srv" / "second").mkdir(mode=0o700, exist_ok=True)
    started.machine.write(CONFIG, config_text(more))
    started.systemctl("reload", UNIT)
    lab.wait_for("the second target", lambda: any(t["name"] == "second" for t in started.get("/status")["targets"]), 60)
    assert started.wait_run(started.start_run("second"))["verdict"] == "pass"
    started.machine.write(CONFIG, "[limits]\nw_await_ms = fast\n")
    assert started.systemctl("reload", UNIT, check=False).returncode != 0
    messages = [e["MESSAGE"] for e in started.machine.journal("-u", UNIT)]
    assert any(f"{CONFIG}:2" in message for message in messages), messages[-5:]
    assert any(t["name"] == "second" for t in started.get("/status")["targets"])
