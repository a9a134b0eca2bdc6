# SPDX-License-Identifier: Apache-2.0
"""tierprobed on a machine that gives it little, and with clients that want much."""

import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import pytest

import lab
from harness import free_port, sections_for
from lab.catalog import GOOD, MB

pytestmark = pytest.mark.slow


def codes(run):
    return [reason["code"] for reason in run["reasons"]]


def descriptors(service):
    return len(os.listdir(f"/proc/{service.process.pid}/fd"))


def zombies(service):
    def state(pid):
        with contextlib.suppress(OSError):
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return [pid for pid in service.children() if state(pid) == "Z"]


def samples_taken(connection):
    """How many there are, asked over a connection that is open already: it needs no descriptor."""
    connection.request("GET", "/status")
    return (json.loads(connection.getresponse().read())["targets"][0]["sample"] or {"seq": 0})["seq"]


# ---- little ----

def limit(service, what, number):
    status = pathlib.Path(f"/proc/{service.process.pid}/status").read_text()
    uid = next(line.split()[1] for line in status.splitlines() if line.startswith("Uid:"))
    subprocess.run(["setpriv", "--reuid", uid, "--regid", uid, "--clear-groups", "prlimit", "--pid", str(service.process.pid), f"--{what}={number}:"], check=True)


def test_no_descriptors_left(daemon, place):
    service = daemon(place, count=8)
    assert service.whole_run()["state"] == "finished"
    for spare in range(-2, 8):
        with contextlib.closing(service.connection()) as connection:
            samples = samples_taken(connection)
            highest = max(int(fd) for fd in os.listdir(f"/proc/{service.process.pid}/fd"))
            limit(service, "nofile", highest + 1 + spare)
            with contextlib.suppress(OSError, http.client.HTTPException):
                service.post("/run?profile=small", timeout=2)
            lab.wait_for("samples to go on", lambda: samples_taken(connection) > samples + 3)
        limit(service, "nofile", 1024)
        lab.wait_for("an answer", service.answers)
        lab.wait_for("the end of the run", lambda: service.target()["current_run"] is None, 60)
        last = service.target()["last_run"]
        assert last["state"] == "finished" or last["verdict"] == "inconclusive", last
    assert service.whole_run()["state"] == "finished"


def test_no_processes_left(daemon, folder):
    """As an unprivileged user: root is not bound by the limit."""
    folder.chmod(0o777)
    target = folder / "cache"
    target.mkdir()
    os.chown(target, 65533, 65533)
    service = daemon(target, count=4, prefix=["setpriv", "--reuid", "65533", "--regid", "65533", "--clear-groups"])
    lab.wait_for("a sample", lambda: service.target()["sample"])
    limit(service, "nproc", 0)
    run = service.whole_run()
    assert run["verdict"] == "inconclusive" and codes(run) == ["aborted"], run
    before = service.target()["sample"]["seq"]
    lab.wait_for("samples to go on", lambda: service.target()["sample"]["seq"] > before + 20)
    assert service.stderr.count("cannot look at its path") == 1
    limit(service, "nproc", 1000)
    assert service.whole_run()["state"] == "finished"
    lab.wait_for("no zombies", lambda: zombies(service) == [])


def test_stopped_and_continued(daemon, place):
    service = daemon(place)
    before = lab.wait_for("a sample", lambda: service.target()["sample"])["seq"]
    service.process.send_signal(signal.SIGSTOP)
    time.sleep(2)  # what is tested is that it passes
    service.process.send_signal(signal.SIGCONT)
    lab.wait_for("samples to go on", lambda: service.target()["sample"]["seq"] > before + 3)
    samples = [s for s in service.get("/history").json["samples"] if s["seq"] >= before]
    assert sum(s["interval_s"] > 1.8 for s in samples) == 1
    assert all(s["interval_s"] > 0.04 for s in samples), samples  # none was made up for


# ---- much ----

@pytest.fixture
def crowd(daemon, place):
    return daemon(place, count=4, listen=f"127.0.0.1:{free_port()}",
                  sampling={"interval": "100ms", "history": "1m"})


def raw(service, data, read=True):
    host, _, port = service.listen.rpartition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=2) as it:
        it.sendall(data)
        it.shutdown(socket.SHUT_WR)
        if read:
            it.recv(1 << 16)


def test_garbage_over_the_wire(crowd):
    for data in (b"\0" * 4096, os.urandom(1 << 16), b"GET " + b"/" * 100000, b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 1000,
                 b"POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
                 b"POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
                 b"POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\n" + b"x" * 10_000_000,
                 b"POST /run HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
                 b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n" * 500,
                 b"GET /status HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n"):
        raw(crowd, data)
        raw(crowd, data, read=False)
    assert crowd.get("/healthz").status == 200
    assert crowd.get("/runs").json["runs"] == []


def test_many_starts_and_aborts_at_once(crowd):
    """However they race: never two runs at a time, none lost, each ends."""
    seen = set()

    def attack(number):
        for _ in range(15):
            with contextlib.suppress(OSError, http.client.HTTPException):
                answer = crowd.post("/run?profile=small")
                assert answer.status in (202, 409), answer
                if answer.status == 202:
                    seen.add(answer.json["runs"][0]["id"])
                for run_id in list(seen)[-3:]:
                    if number % 2:
                        assert crowd.request("DELETE", f"/runs/{run_id}").status in (202, 409)
                        assert crowd.request("DELETE", f"/runs/{run_id}").status in (202, 409)
                running = [r for r in crowd.get("/runs").json["runs"] if r["state"] in ("queued", "running")]
                assert len(running) <= 1, running
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(attack, number) for number in range(8)]:
            future.result()
    lab.wait_for("the last end", lambda: crowd.status["state"] == "idle")
    runs = {run["id"]: run for run in crowd.get("/runs?limit=1000").json["runs"]}
    assert seen <= set(runs) or len(runs) == 100
    assert all(run["state"] in ("finished", "aborted") for run in runs.values())
    lab.wait_for("no children", lambda: crowd.children() == [])


def test_200_clients_who_say_nothing(crowd):
    host, _, port = crowd.listen.rpartition(":")
    before = descriptors(crowd)
    clients = []
    try:
        for _ in range(200):
            with contextlib.suppress(OSError):
                client = socket.create_connection((host, int(port)), timeout=2)
                client.sendall(b"GET /status HT")
                clients.append(client)
        ring = crowd.folder / "state" / "cache.ring"
        before_ns = os.stat(ring).st_mtime_ns  # seen from outside: no connection is left
        lab.wait_for("samples to go on", lambda: os.stat(ring).st_mtime_ns > before_ns)
    finally:
        for client in clients:
            client.close()
    lab.wait_for("an answer", crowd.answers)
    lab.wait_for("descriptors to be given back", lambda: descriptors(crowd) <= before + 2)


def test_cursors_while_the_ring_wraps(crowd):
    lab.wait_for("some samples", lambda: (crowd.target()["sample"] or {"seq": 0})["seq"] > 20)
    for cursor in ("0", "1", "18446744073709551615", "18446744073709551616", "9223372036854775807", "-1", "x", "",
                   "99999999999999999999999"):
        answer = crowd.get(f"/history?since={cursor}")
        assert answer.status in (200, 400, 410), answer
        if answer.status == 200:
            assert len(answer.json["samples"]) <= 1000
    ring = crowd.folder / "state" / "cache.ring"
    os.truncate(ring, 0)  # by another hand
    assert crowd.get("/history").status == 200
    before = crowd.target()["sample"]["seq"]
    lab.wait_for("samples to go on", lambda: crowd.target()["sample"]["seq"] > before + 3)
    assert crowd.get("/history").json["samples"][-1]["seq"] > before
    ring.unlink()
    ring.mkdir()
    assert crowd.get("/history").status == 200
    crowd.process.send_signal(signal.SIGHUP)
    assert crowd.get("/status").status == 200


def test_a_page_is_whole_while_the_ring_wraps(crowd):
    """Following the cursor misses nothing and repeats nothing that it does not tell."""
    page = crowd.get("/history?limit=1").json
    last, dropped = page["samples"][-1]["seq"] if page["samples"] else 0, 0
    for _ in range(60):
        page = crowd.get(f"/history?since={page['next_cursor']}&limit=3").json
        for sample in page["samples"]:
            assert sample["seq"] > last
            last = sample["seq"]
        time.sleep(0.05)


# ---- disks that change ----

@pytest.mark.disk
@pytest.mark.parametrize("how", ["unmounted", "read-only", "link", "file"])
def test_the_target_changes_between_runs(how, daemon, disk):
    it = disk(rate=GOOD)
    target = it.path if how in ("unmounted", "read-only") else it.directory("cache")
    service = daemon(target, count=100)
    assert service.whole_run()["state"] == "finished"
    if how == "unmounted":
        lab.run("umount", it.path)
        wanted = "not_mounted"
    elif how == "read-only":
        lab.run("mount", "-o", "remount,ro", it.path)
        wanted = "not_permitted"
    elif how == "link":
        target.rename(it.path / "elsewhere")
        target.symlink_to(it.path / "elsewhere")
        wanted = "wrong_device"
    else:
        target.rmdir()
        target.write_text("x")
        wanted = "path_missing"
    run = service.whole_run()
    assert (run["verdict"], codes(run)[0]) == ("inconclusive", wanted), run
    assert service.status["verdict"] == "inconclusive"
    # And back.
    if how == "unmounted":
        it.mount()
    elif how == "read-only":
        lab.run("mount", "-o", "remount,rw", it.path)
    else:
        target.unlink()
        target.mkdir()
    assert service.whole_run()["state"] == "finished"
    service.stop()


@pytest.mark.disk
def test_mounted_over_during_a_run(daemon, disk):
    """The run goes on where its file is, and is judged by that device."""
    one, two = disk(rate=60 * MB), disk(rate=GOOD, fs="ext4")
    target = one.directory("cache")
    service = daemon(target, count=200)
    run_id = service.start_run()
    service.wait_writing(run_id, 16 << 20)
    lab.run("mount", "--bind", two.path, target)
    try:
        run = service.wait_run(run_id)
        assert (run["state"], run["device"]["name"]) == ("finished", one.name), run
        assert run["bytes_written"] == run["bytes_total"]
        assert "bytes_mismatch" not in codes(run)
        assert run["samples"]["total"] > 5, run
        assert service.whole_run()["device"]["name"] == two.name
        service.stop()
    finally:
        lab.run("umount", "-l", target)
    assert one.nothing_left() is None


@pytest.mark.disk
@pytest.mark.parametrize("phase", ["queued", "hung", "closing"])
def test_killed_in_every_phase(phase, daemon, disk):
    it = disk(rate=60 * MB)
    service = daemon({"a": it.directory("a"), "b": it.directory("b")}, count=100)
    run_ids = [run["id"] for run in service.post("/run?profile=small").json["runs"]]
    if phase == "hung":
        lab.wait_for("bytes written", lambda: it.control["written"] > 8 << 20)
        it.hang()
        lab.wait_for("the hang", lambda: it.control["waiting"] > 0)
    elif phase == "closing":
        lab.wait_for("the last block", lambda: any(
            service.run(i)["bytes_written"] >= 99 << 20 for i in run_ids))
    service.kill()
    it.unhang()
    lab.wait_for("the writers' end", lambda: it.open_files() == [])
    again = daemon({"a": it.path / "a", "b": it.path / "b"}, count=100)
    assert again.status["state"] == "idle"
    for run in again.get("/runs").json["runs"]:
        assert run["state"] in ("aborted", "finished") and run["verdict"], run
    service.process.wait()
    it.behave(rate=GOOD)
    assert again.whole_run("a")["state"] == "finished"
    again.stop()
    assert it.nothing_left() is None


# ---- schedules ----

@pytest.mark.disk
def test_a_schedule_with_a_procedure_of_the_operators_own(daemon, disk):
    """Scheduled runs take the official profile; a `procedure` that is not the documented one does not certify."""
    it = disk(rate=GOOD)
    sections = sections_for(it.path, official="procedure", schedule={"interval": "2s", "jitter": "none"},
                            **{"profile procedure": {"count": 10}})
    service = daemon(sections=sections)
    target = service.target()
    assert target["last_run"] is None and target["current_run"] is None and target["next_run_at"]
    lab.wait_for("three scheduled runs", lambda: len(service.get("/runs").json["runs"]) >= 3, 60)
    runs = service.get("/runs").json["runs"]
    assert all(run["trigger"] == "schedule" and run["test"]["count"] == 10 for run in runs)
    assert not any(run["certifying"] for run in runs)
    ended = [run for run in runs if run["state"] == "finished"]
    assert service.target()["next_run_at"] > ended[0]["started_at"]


@pytest.mark.disk
def test_the_schedule_respects_the_cooldown(daemon, disk):
    it = disk(rate=10 * MB)
    sections = sections_for(it.path, official="procedure", schedule={"interval": "1s", "jitter": "none"}, guard={"cooldown": "1h"},
                            **{"profile procedure": {"count": 30}})
    service = daemon(sections=sections)
    lab.wait_for("the first run", lambda: service.target()["last_run"], 60)
    lab.wait_for("the refusal", lambda: "cooldown" in service.stderr, 60)
    assert len(service.get("/runs").json["runs"]) == 1
    target = service.target()
    assert target["next_run_at"] > target["last_run"]["finished_at"] and target["next_run_why"] == "retry"
