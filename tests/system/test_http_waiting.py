# SPDX-License-Identifier: Apache-2.0
"""Requests that wait for a run, and streams of its events. Nothing here sleeps for a guess: a waiting request is seen
by the server's not having answered while it answered others, and ends by what it waited for."""

import json
import select
import socket
import subprocess
import time

from harness import free_port, lab
from stub import GOOD, Answer, read_all, read_one

WAITING_MAX, EVENTS_MAX = 16, 8


def begin(stub, method, target, *headers):
    s = stub.connect()
    s.sendall("\r\n".join([f"{method} {target} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode())
    return s


def start(stub, target="logs"):
    return Answer(stub.request("POST", f"/run?target={target}")).json()["runs"][0]["id"]


def silent(stub, s):
    """Nothing has come on S, although the server has answered what came later."""
    for _ in range(3):
        assert Answer(stub.request("GET", "/healthz")).status == 200
    return not select.select([s], [], [], 0)[0]


def events(data):
    """[(name, document)] of a stream so far."""
    found = []
    for block in data.decode().split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if len(lines) == 2:
            found.append((lines[0].removeprefix("event: "), json.loads(lines[1].removeprefix("data: "))))
    return found


def test_wait_for_a_run(stub):
    run = start(stub)
    with begin(stub, "GET", f"/runs/{run}?wait=3600") as s:
        assert silent(stub, s)
        stub.command("change")
        assert silent(stub, s)
        stub.command("finish")
        assert read_one(s).json()["verdict"] == "pass"
        s.sendall(GOOD.encode())  # and the connection serves on
        assert read_one(s).status == 200
    assert Answer(stub.request("GET", f"/runs/{run}?wait=3600")).json()["state"] == "finished"  # has ended: at once


def test_the_time_is_up(stub):
    run = start(stub)
    began = time.monotonic()
    assert Answer(stub.request("GET", f"/runs/{run}?wait=1")).json()["state"] == "queued"
    assert time.monotonic() - began >= 1
    assert Answer(stub.request("GET", f"/runs/{run}?wait=0")).json()["state"] == "queued"
    for bad in ("-1", "x", "3601", "", "1.5"):
        assert Answer(stub.request("GET", f"/runs/{run}?wait={bad}")).code == "bad_parameter"
    assert Answer(stub.request("GET", "/runs/none?wait=3600")).code == "unknown_run"


def test_start_and_wait(stub):
    with begin(stub, "POST", "/run?wait=3600") as s:
        assert silent(stub, s)
        stub.command("finish")
        answer = read_one(s)
        assert answer.status == 202 and answer.headers["location"].startswith("/runs/")
        assert [run["verdict"] for run in answer.json()["runs"]] == ["pass", "pass"]
    assert Answer(stub.request("POST", "/run?target=cache&wait=x")).code == "bad_parameter"
    assert len(Answer(stub.request("GET", "/runs")).json()["runs"]) == 3  # nothing was started by it


def test_an_abort_ends_the_wait(stub):
    run = start(stub)
    with begin(stub, "GET", f"/runs/{run}?wait=3600") as s:
        assert silent(stub, s)
        assert Answer(stub.request("DELETE", f"/runs/{run}")).status == 202
        assert read_one(s).json()["state"] == "aborted"


def test_too_many_wait(stub):
    run = start(stub)
    waiting = [begin(stub, "GET", f"/runs/{run}?wait=3600") for _ in range(WAITING_MAX)]
    assert all(silent(stub, s) for s in waiting)
    answer = Answer(stub.request("GET", f"/runs/{run}?wait=3600"))
    assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "too_many_waiting", "1")
    assert Answer(stub.request("POST", "/run?target=cache&wait=3600")).status == 202  # is told of at once
    # Places run short: those that wait keep theirs.
    others = [stub.connect() for _ in range(60)]
    for s in others:
        s.close()
    stub.command("finish")
    assert all(read_one(s).json()["verdict"] == "pass" for s in waiting)
    for s in waiting:
        s.close()


def test_waiting_costs_nothing(stub):
    run = start(stub)
    with begin(stub, "GET", f"/runs/{run}?wait=3600") as s:
        assert silent(stub, s)
        before = int(stub.command("loops"))
        assert not select.select([s], [], [], 1)[0]
        assert int(stub.command("loops")) - before < 20


def test_events(stub):
    run = start(stub)
    with begin(stub, "GET", f"/runs/{run}/events") as s:
        data = b""

        def read_until(n):
            nonlocal data
            while data.count(b"event: ") < n or not data.endswith(b"\n\n\r\n"):
                chunk = s.recv(65536)
                assert chunk
                data += chunk

        read_until(1)
        assert silent(stub, s)  # one event for each state, and nothing between
        before = int(stub.command("loops"))
        assert not select.select([s], [], [], 1)[0]
        assert int(stub.command("loops")) - before < 20
        assert b"content-type: text/event-stream" in data.lower()
        stub.command("change")
        read_until(2)
        stub.command("finish")
        body = Answer(data + read_all_chunks(s)).body
    told = events(body)
    assert [name for name, _ in told] == ["progress", "progress", "run"]
    assert all(document["id"] == run for _, document in told) and told[-1][1]["verdict"] == "pass"
    ended = Answer(stub.request("GET", f"/runs/{run}/events"))
    assert [name for name, _ in events(ended.body)] == ["run"]
    assert Answer(stub.request("GET", "/runs/none/events")).code == "unknown_run"
    assert Answer(stub.request("POST", f"/runs/{run}/events")).status == 405


def read_all_chunks(s):
    data = b""
    while not data.endswith(b"0\r\n\r\n"):
        chunk = s.recv(65536)
        assert chunk
        data += chunk
    return data


def test_too_many_streams_of_events(stub):
    run = start(stub)
    streams = [begin(stub, "GET", f"/runs/{run}/events") for _ in range(EVENTS_MAX)]
    for s in streams:
        assert s.recv(65536).startswith(b"HTTP/1.1 200")
    answer = Answer(stub.request("GET", f"/runs/{run}/events"))
    assert (answer.status, answer.code) == (503, "too_many_waiting") and answer.headers["retry-after"]
    for s in streams:
        s.close()

    def again():
        stub.command("change")  # who has gone is noticed with the next state
        with begin(stub, "GET", f"/runs/{run}/events") as s:
            return s.recv(65536).startswith(b"HTTP/1.1 200")

    lab.wait_for("a place", again, 60)


def test_clients_that_go_while_they_wait(stub):
    run = start(stub)
    for _ in range(5):
        gone = [begin(stub, "GET", f"/runs/{run}{what}") for what in ("?wait=3600", "/events") * 4]
        for s in gone:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            s.close()
        stub.command("change")
    lab.wait_for("their connections to go", lambda: stub.command("change") and stub.sockets() < 10, 60)
    assert Answer(stub.request("GET", "/healthz")).status == 200


def test_the_end_with_requests_that_wait(stub):
    """The server ends: all are answered or cut, nothing hangs and nothing is leaked (sanitizers tell)."""
    run = start(stub)
    waiting = [begin(stub, "GET", f"/runs/{run}{what}") for what in ("?wait=3600", "/events") * 4]
    assert silent(stub, waiting[0])
    stub.close()
    for s in waiting:
        read_all(s)
        s.close()


def test_one_line_of_shell(daemon, place):
    """Tests a host and exits by its verdict."""
    it = daemon(place, count=4, listen=f"127.0.0.1:{free_port()}")
    line = f"curl -fsS -X POST 'http://{it.listen}/run?profile=small&wait=600' | jq -e '.runs[0].verdict == \"pass\"'"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, timeout=600)
    run = it.get("/runs").json["runs"][0]
    assert run["state"] == "finished" and (done.returncode == 0) == (run["verdict"] == "pass"), done
