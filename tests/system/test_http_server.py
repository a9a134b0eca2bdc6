# SPDX-License-Identifier: Apache-2.0
"""The HTTP server over a made-up daemon (tests/tools/http-stub.c): no root, no disk.

Raw sockets where the wire matters, curl where a client does. Waiting is for an event (an answer, an end of
file), never for a time.
"""

import contextlib
import json
import multiprocessing
import os
import pathlib
import random
import re
import selectors
import socket
import stat
import struct
import threading
import time

import pytest

from harness import lab
from stub import GOOD, LIBRARY, SANITIZED, Answer, curl, read_all, read_one, served_again

SAMPLE_KEYS = ["seq", "time", "interval_s", "run_id", "device", "r/s", "w/s"]

# ---- routes -----------------------------------------------------------------


def test_status(stub):
    answer = Answer(stub.request("GET", "/status"))
    document = answer.json()
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert list(document)[:7] == ["schema", "service", "state", "verdict", "limits", "profiles", "targets"]
    assert document["limits"] == {"write_mb_per_s": 600, "w_await_ms": 20, "pass_ratio": 0.9}
    target = document["targets"][0]
    expected = "name path state verdict reasons age_s stale next_run_at device standing_run last_run " \
               "current_run sample degraded"
    assert list(target)[:14] == expected.split()
    assert target["path"] == "/db2/c\ufffdche"
    assert target["age_s"] is None and target["next_run_at"] is None
    assert list(target["last_run"])[0] == "id" and target["current_run"] is None
    assert document["targets"][1]["last_run"] is None


def test_etag(stub):
    first = Answer(stub.request("GET", "/status"))
    etag = first.headers["etag"]
    assert re.fullmatch(r'"[0-9a-f]{8}-\d+"', etag)
    for value in (etag, "W/" + etag, f'"x", {etag}', "*"):
        again = Answer(stub.request("GET", "/status", "If-None-Match: " + value))
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", etag)
    for value in ('"x"', etag[:-2] + '"', etag[1:-1]):
        assert Answer(stub.request("GET", "/status", "If-None-Match: " + value)).status == 200
    assert stub.command("change") == "ok"
    changed = Answer(stub.request("GET", "/status", "If-None-Match: " + etag))
    assert changed.status == 200 and changed.headers["etag"] != etag


def test_head_is_get_without_body(stub):
    for path in ("/healthz", "/readyz", "/"):
        get, head = Answer(stub.request("GET", path)), Answer(stub.request("HEAD", path))
        assert head.body == b"" and len(get.body) > 10
        assert head.status == get.status
        assert head.headers["content-length"] == get.headers["content-length"]
        assert head.headers["content-type"] == get.headers["content-type"]
    assert Answer(stub.request("HEAD", "/status")).headers["etag"]
    assert Answer(stub.request("HEAD", "/history?target=cache")).status == 200
    assert Answer(stub.request("HEAD", "/run")).status == 405


def test_options(stub):
    for path, allow in {
        "/status": "GET, HEAD, OPTIONS",
        "/run": "POST, OPTIONS",
        "/runs/x": "GET, HEAD, DELETE, OPTIONS",
        "*": "GET, HEAD, POST, DELETE, OPTIONS",
    }.items():
        answer = Answer(stub.request("OPTIONS", path))
        assert (answer.status, answer.body, answer.headers["allow"]) == (204, b"", allow)
        assert not [h for h in answer.headers if h.startswith("access-control")]
    assert Answer(stub.request("OPTIONS", "/nothing")).status == 404


def test_health(make):
    ready = make()
    assert Answer(ready.request("GET", "/healthz")).json() == {"schema": 1, "status": "ok"}
    assert Answer(ready.request("GET", "/readyz")).status == 200
    for verdict in ("fail", "inconclusive", "never_run"):
        other = make(verdict=verdict)
        assert Answer(other.request("GET", "/healthz")).status == 200
        answer = Answer(other.request("GET", "/readyz"))
        assert (answer.status, answer.code) == (503, "not_ready")
        assert answer.json()["targets"] == [
            {"name": name, "verdict": verdict, "stale": False} for name in ("cache", "logs")
        ]
        other.close()


def test_not_here(stub):
    for path in ("/nothing", "/status/", "//status", "/STATUS", "/runs/", "/runs/../status", "/metricss", "/%73tatus"):
        answer = Answer(stub.request("GET", path))
        assert (answer.status, answer.code) == (404, "not_found"), path
    assert Answer(stub.request("GET", "/runs/no-such-run")).code == "unknown_run"
    assert Answer(stub.request("GET", "/runs/..")).code == "unknown_run"
    assert Answer(stub.request("DELETE", "/runs/no-such-run")).code == "unknown_run"


def test_index_names_every_route(stub):
    routes = Answer(stub.request("GET", "/")).json()["routes"]
    assert {"method": "POST", "path": "/run"}.items() <= routes[3].items()
    for route in routes:
        if route["method"] == "GET" and "ID" not in route["path"]:
            query = "?target=cache" if route["path"] == "/history" else ""
            path = route["path"].replace("FILE", "page.css") + query
            assert Answer(stub.request("GET", path)).status == 200


# ---- runs -------------------------------------------------------------------


def test_start(stub):
    answer = Answer(stub.request("POST", "/run"))
    runs = answer.json()["runs"]
    assert answer.status == 202
    assert [run["target"] for run in runs] == ["cache", "logs"]
    assert answer.headers["location"] == "/runs/" + runs[0]["id"]
    assert all(run["state"] == "queued" and run["verdict"] is None for run in runs)
    assert [c["value"] for c in runs[0]["criteria"]] == [None, None]

    again = Answer(stub.request("POST", "/run"))
    assert (again.status, again.code) == (409, "run_in_progress")
    assert [t["run_id"] for t in again.json()["targets"]] == ["20261130T131405-busy00"] * 2

    document = Answer(stub.request("GET", "/status")).json()
    assert document["targets"][0]["state"] == "queued"
    assert document["targets"][0]["current_run"]["id"] == runs[0]["id"]
    listed = Answer(stub.request("GET", "/runs")).json()["runs"]
    assert [run["target"] for run in listed] == ["logs", "cache", "cache"]
    assert len(Answer(stub.request("GET", "/runs?limit=1")).json()["runs"]) == 1
    only = Answer(stub.request("GET", "/runs?target=cache&limit=5")).json()["runs"]
    assert [run["target"] for run in only] == ["cache", "cache"]
    assert re.search(r"start cache by 127\.0\.0\.1:\d+", stub.close())


def test_start_one_target(stub):
    for target, body in (("/run?target=logs", b""), ("/run", b'{"target":"cache","profile":"procedure"}')):
        answer = Answer(
            stub.request(
                "POST", target, f"Content-Length: {len(body)}", "Content-Type: application/json", body=body
            )
        )
        assert answer.status == 202 and len(answer.json()["runs"]) == 1


@pytest.mark.parametrize(
    "target, body, status, code",
    [
        ("/run?target=nobody", b"", 404, "unknown_target"),
        ("/run?profile=nobody", b"", 404, "unknown_profile"),
        ("/run", b'{"target":"nobody"}', 404, "unknown_target"),
        ("/run?target=cache", b'{"target":"logs"}', 400, "contradiction"),
        ("/run", b'{"path":"/etc"}', 400, "bad_body"),
        ("/run", b'{"target":7}', 400, "bad_body"),
        ("/run", b"[" * 4096, 400, "bad_body"),
        ("/run", b"\x00\xff", 400, "bad_body"),
        ("/run?taget=cache", b"", 400, "unknown_parameter"),
        ("/run?target=cache&target=logs", b"", 400, "duplicate_parameter"),
    ],
)
def test_start_refused(stub, target, body, status, code):
    answer = Answer(stub.request("POST", target, f"Content-Length: {len(body)}", body=body))
    assert (answer.status, answer.code) == (status, code)
    assert Answer(stub.request("GET", "/status")).json()["targets"][0]["current_run"] is None


@pytest.mark.parametrize(
    "start, status, code, retry",
    [
        ("busy", 409, "run_in_progress", None),
        ("cooldown", 429, "cooldown", "90"),
        ("budget", 429, "over_budget", "3600"),
        ("refuse", 503, "no_space", None),
    ],
)
def test_start_not_now(make, start, status, code, retry):
    answer = Answer(make(start=start).request("POST", "/run"))
    assert (answer.status, answer.code, answer.headers.get("retry-after")) == (status, code, retry)
    assert [t["target"] for t in answer.json()["targets"]] == ["cache", "logs"]


def test_start_in_part(make):
    answer = Answer(make(start="mixed").request("POST", "/run"))
    assert answer.status == 202
    assert [run["target"] for run in answer.json()["runs"]] == ["cache"]
    assert [(t["target"], t["code"]) for t in answer.json()["not_started"]] == [("logs", "cooldown")]


def test_kept_run_is_served_as_kept(stub):
    answer = Answer(stub.request("GET", "/runs/20261130T131405-000000"))
    assert answer.json()["id"] == "20261130T131405-000000" and answer.json()["kept"] is True


def test_abort(stub):
    run = Answer(stub.request("POST", "/run?target=logs")).json()["runs"][0]
    current = Answer(stub.request("GET", "/runs/" + run["id"])).json()
    assert current["schema"] == 1 and current["evidence"]["samples"] == []
    answer = Answer(stub.request("DELETE", "/runs/" + run["id"]))
    assert (answer.status, answer.json()["state"]) == (202, "aborted")
    answer = Answer(stub.request("DELETE", "/runs/" + run["id"]))
    assert (answer.status, answer.code) == (409, "run_ended")


# ---- history ----------------------------------------------------------------


def history(stub, query):
    answer = Answer(stub.request("GET", "/history?" + query))
    assert answer.status == 200, answer.body
    return answer.json()


def test_history(stub):
    document = history(stub, "target=cache")
    keys = ["schema", "target", "interval_s", "capacity", "next_cursor", "dropped", "samples"]
    assert list(document) == keys
    assert (document["interval_s"], document["capacity"], document["dropped"]) == (1, 100, 0)
    samples = document["samples"]
    assert [s["seq"] for s in samples] == list(range(2, 51))  # the first has nothing before it
    assert all(list(s)[:7] == SAMPLE_KEYS for s in samples)
    assert samples[0]["wkB/s"] == 6400 and samples[0]["w_await"] == 5 and samples[0]["r_await"] is None
    gap = {s["seq"]: s["gap"] for s in samples if s["gap"]}
    assert sorted(gap) == [10, 11]
    assert all(samples[8][key] is None for key in ("interval_s", "w/s", "wkB/s", "util"))


def test_history_newest(stub):
    document = history(stub, "target=logs&limit=3")
    assert [s["seq"] for s in document["samples"]] == [48, 49, 50]
    assert history(stub, "target=logs&since=" + document["next_cursor"])["samples"] == []
    stub.command("append 2")
    document = history(stub, "target=logs&since=" + document["next_cursor"])
    assert [s["seq"] for s in document["samples"]] == [51, 52]


def test_history_pages_join(make):
    stub = make(records=250)
    seen, cursor, dropped = [], "1", 0
    while True:
        document = history(stub, f"target=cache&limit=7&since={cursor}")
        dropped += document["dropped"]
        seen += [s["seq"] for s in document["samples"]]
        if document["next_cursor"] == cursor:
            break
        cursor = document["next_cursor"]
    assert dropped == 150
    assert seen == list(range(152, 251))


def test_history_of_a_run(stub):
    run = "run=20261130T131405-000000"
    document = history(stub, "target=cache&" + run)
    assert [s["seq"] for s in document["samples"]] == list(range(20, 30))
    assert [s["seq"] for s in history(stub, f"target=cache&limit=3&{run}")["samples"]] == [27, 28, 29]
    first = history(stub, f"target=cache&limit=4&since=1&{run}")
    assert [s["seq"] for s in first["samples"]] == [20, 21, 22, 23]
    rest = history(stub, f"target=cache&since={first['next_cursor']}&{run}")
    assert [s["seq"] for s in rest["samples"]] == list(range(24, 30))
    answer = Answer(stub.request("GET", "/history?target=cache&run=unknown"))
    assert (answer.status, answer.code) == (404, "unknown_run")


@pytest.mark.parametrize(
    "query, status, code",
    [
        ("", 400, "target_needed"),
        ("target=nobody", 404, "unknown_target"),
        ("target=cache&since=52", 400, "bad_cursor"),
        ("target=cache&since=-1", 400, "bad_cursor"),
        ("target=cache&since=x", 400, "bad_cursor"),
        ("target=cache&since=99999999999999999999", 400, "bad_cursor"),
        ("target=cache&limit=0", 400, "bad_parameter"),
        ("target=cache&limit=10001", 400, "bad_parameter"),
        ("target=cache&limit=", 400, "bad_parameter"),
        ("target=cache&run=../x", 400, "bad_parameter"),
        ("target=cache&run=0123456789012345678901234", 400, "bad_parameter"),
        ("target=cache%00", 400, "bad_parameter"),
        ("target=cache&Limit=5", 400, "unknown_parameter"),
        ("target=cache&limit=5&limit=6", 400, "duplicate_parameter"),
        ("target", 400, "bad_parameter"),
        ("&".join("target=cache" for _ in range(50)), 400, "duplicate_parameter"),
    ],
)
def test_history_refused(stub, query, status, code):
    answer = Answer(stub.request("GET", "/history?" + query))
    assert (answer.status, answer.code) == (status, code)


def test_history_target_may_be_left_out_when_there_is_one(make):
    assert history(make(targets="only"), "limit=1")["target"] == "only"


def test_long_history_is_streamed(make):
    """10,000 samples come in chunks, whole and in order, in a bounded growth of memory."""
    stub = make(records=12000, capacity=20000)
    Answer(stub.request("GET", "/history?target=cache&limit=10"))
    status = pathlib.Path(f"/proc/{stub.process.pid}/status")

    def peak_kb():
        return int(re.search(r"VmHWM:\s+(\d+)", status.read_text()).group(1))

    before = peak_kb()
    answer = Answer(stub.request("GET", "/history?target=cache&limit=10000"))
    assert answer.headers["transfer-encoding"] == "chunked"
    assert [s["seq"] for s in answer.json()["samples"]] == list(range(2001, 12001))
    assert len(answer.body) > 3_000_000
    if not SANITIZED:
        assert peak_kb() - before < 1024


def test_a_run_far_back_is_found(make):
    stub = make(records=30000, capacity=40000)
    document = history(stub, "target=cache&run=20261130T131405-000000")
    assert [s["seq"] for s in document["samples"]] == list(range(20, 30))


def test_target_that_goes_cuts_the_stream(make):
    stub = make(records=12000, capacity=20000)
    with stub.connect() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.sendall(b"GET /history?target=logs&limit=10000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        data = s.recv(1000)
        assert b" 200 " in data
        assert stub.command("drop") == "ok"
        data += read_all(s)
    assert not data.endswith(b"0\r\n\r\n")  # an unfinished reply must not look like a whole one
    assert Answer(stub.request("GET", "/healthz")).status == 200


# ---- what the library lets pass ---------------------------------------------


@pytest.mark.parametrize(
    "head, status, code",
    [
        ("POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 50\r\n\r\n", 400, "bad_framing"),
        ("POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400, "bad_framing"),
        (
            "POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
            "bad_framing",
        ),
        ("POST /run HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411, "length_required"),
        (
            "POST /run HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            501,
            "transfer_encoding_unknown",
        ),
        ("GET /status HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400, "bad_host"),
        ("GET /status HTTP/1.0\r\n\r\n", 400, "bad_host"),
        ("GET /status HTTP/1.1\r\nHost: \r\n\r\n", 400, "bad_host"),
        ("GET /status HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "bad_host"),
        ("GET /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", 400, "unexpected_body"),
        ("DELETE /runs/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", 400, "unexpected_body"),
        (
            "POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\n"
            "Content-Type: application/x-www-form-urlencoded\r\n\r\ntarget=cache",
            415,
            "not_json",
        ),
    ],
)
def test_refused_and_closed(stub, head, status, code):
    """The next request on the connection must not be read: it could be the tail of this one."""
    data = stub.raw(head + GOOD)
    answer = Answer(data)
    if LIBRARY >= (1,) and "content-type" not in answer.headers:
        assert answer.status == 400  # the library's own
    else:
        assert (answer.status, answer.code) == (status, code)
    assert answer.headers["connection"].lower() == "close"
    assert data.count(b"HTTP/1.1 ") == 1
    assert stub.process.stderr is not None and Answer(stub.request("GET", "/runs")).json()["runs"][0]["target"] == "cache"
    assert len(Answer(stub.request("GET", "/runs")).json()["runs"]) == 1


HEAD_LINES = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Some: thing\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    [
        # a field's name is a token, the colon follows at once: RFC 9112, 5.1; RFC 9110, 5.1
        b"POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Length : 5\r\n\r\nhello",
        b"POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Length\t: 5\r\n\r\nhello",
        b"POST /run HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"POST /run HTTP/1.1\r\nHost: localhost\r\nOrigin : http://evil.example\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost : localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost : evil.example\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n: nothing\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX Y: z\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX(Y): z\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX\x01Y: z\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX\xffY: z\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n Host: localhost\r\n\r\n",  # blank before the first line: 2.2
        b"GET /healthz HTTP/1.1\r\n X: y\r\nHost: localhost\r\n\r\n",
        # folded lines: 5.2
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n .evil.example\r\n\r\n",
        b"POST /run HTTP/1.1\r\nHost: localhost\r\nX: a\r\n\tContent-Length: 5\r\n\r\nhello",
        # control characters in a value: RFC 9110, 5.5
        b"GET /healthz HTTP/1.1\r\nHost: localhost\0.evil.example\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\0\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: \0\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX:y\r\nY: a\0\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\nY:z\r\nZ:z\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX\0: y\r\n\r\n",
        b"POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\0 50\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\rY: b\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\x7fb\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\x0bb\r\n\r\n",
        # a NUL that would end the head, and what would be smuggled behind it
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\0\r\nX: y\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\0X: y\r\n\r\n",
        # lines end with CR LF: 2.2 lets a server take a bare LF, but then not all agree
        b"GET /healthz HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: y\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: y\r\n\n",
        b"GET /healthz HTTP/1.1\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\nHost: localhost\n\n",
        # the request line: 3
        b"GET  /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz  HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1 \r\nHost: localhost\r\n\r\n",
        b"GET /healthz x HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /runs?limit=1 HTTP/1.1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /runs?limit=1\x01 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET\t/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz\0/x HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /runs?limit=1\0&x HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GE\0T /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b" GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\0\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.2x\r\nHost: localhost\r\n\r\n",
        b"GET /healthz http/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1,1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/11\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/2.0\r\nHost: localhost\r\n\r\n",
        b"GET /healthz\r\nHost: localhost\r\n\r\n",
        b"GET\r\nHost: localhost\r\n\r\n",
        b"\r\n\0GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nX",
    ],
)
def test_malformed_head(stub, head):
    """RFC 9112 as a table. One answer at most, a refusal, and then the end: what follows must not be read. A request
    line that is none is closed upon by the library without an answer."""
    data = stub.raw(head + GOOD.encode() * 2)
    assert data == b"" or Answer(data).status in (400, 501, 505), data
    assert data.count(b"HTTP/1.1 ") <= 1
    assert not data or Answer(data).headers["connection"].lower() == "close"
    assert len(Answer(stub.request("GET", "/runs")).json()["runs"]) == 1
    assert stub.raw(HEAD_LINES + HEAD_LINES.replace(b"thing", b"\x80 \t~") + GOOD.replace("\r\n\r\n", "\r\nConnection:close\r\n\r\n").encode()).count(b" 200 OK") == 3


def test_well_formed_heads(stub):
    """What the grammar allows is served, in whatever pieces it comes and however large it is."""
    rng = random.Random(20261130)
    token = "!#$%&'*+-.^_`|~09AZaz"
    for _ in range(100):
        fields = ["Host:" + rng.choice(["", " ", "\t", "  \t "]) + "localhost"]
        for _ in range(rng.randrange(30)):
            name = "X" + "".join(rng.choice(token) for _ in range(rng.randrange(20)))
            value = "".join(rng.choice("a b\t\xff!\"();:/") for _ in range(rng.choice([0, 3, 30, 500]))).strip(" \t")
            fields.append(name + ":" + rng.choice(["", " ", "\t", "   "]) + value)
        rng.shuffle(fields)
        target = rng.choice(["/healthz", "/runs?limit=5", "/history?target=cache&limit=2&since=1", "/runs?limit=%35"])
        data = ("\r\n".join([f"GET {target} HTTP/1.1", *fields]) + "\r\n\r\n").encode("latin-1")
        data = rng.choice([b"", b"\r\n"]) + data
        data += GOOD.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n").encode()
        with stub.connect() as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            at = 0
            while at < len(data):
                size = rng.choice([1, 7, 100, 3000, 100000])
                s.sendall(data[at : at + size])
                at += size
            assert read_all(s).count(b"HTTP/1.1 200 OK") == 2, data


@pytest.mark.parametrize("n", [100, 500, 2000])
def test_many_parameters(stub, n):
    """Refused at once, and the connection serves on."""
    for one in ("limit=5", "a=1", "a", "limit=5&a", "&"):
        with stub.connect() as s:
            s.sendall(b"GET /runs?%s HTTP/1.1\r\nHost: localhost\r\n\r\n" % "&".join([one] * n).encode())
            assert read_one(s).status in (400, 414)
            s.sendall(GOOD.encode())
            assert read_one(s).status == 200


def test_no_host(stub):
    data = stub.raw("GET /status HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert b" 400 " in data.split(b"\r\n")[0]


@pytest.mark.parametrize("method", ["FOO", "PUT", "PATCH", "TRACE", "get", "CONNECT"])
def test_unknown_method(stub, method):
    answer = Answer(stub.request(method, "/status"))
    assert (answer.status, answer.code, answer.headers["allow"]) == (405, "method_not_allowed", "GET, HEAD, OPTIONS")


def test_encoded_path_is_nothing(stub):
    for path in ("/status%00x", "/healthz%00", "/%2e%2e/status", "/runs/%2e%2e"):
        assert Answer(stub.request("GET", path)).code == "not_found"


def test_absolute_form(stub):
    answer = Answer(stub.request("GET", "http://localhost/status"))
    assert (answer.status, answer.code) == (400, "bad_path")


def test_bad_lines(make):
    stub = make(idle_timeout_s=1)
    for data in (
        b"GET /status HTTP/1.1\r\nHost : localhost\r\n\r\n",
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /status HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ):
        answer = stub.raw(data, half_close=True)
        assert b" 200 " not in answer and b" 202 " not in answer, (data, answer)
    assert Answer(stub.request("GET", "/healthz")).status == 200


@pytest.mark.slow
def test_random_requests(make):
    """Damaged requests of every kind: no crash (sanitizers tell), and served afterwards as before."""
    stub = make(idle_timeout_s=1)
    rng = random.Random(20261130)
    seeds = [
        b"GET /status HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: W/\"a\", *\r\n\r\n",
        b"GET /history?target=cache&limit=5&since=3&run=a-b HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
        b'PUT /run?target=cache HTTP/1.1\r\nHost: localhost\r\nContent-Length: 18\r\n\r\n{"target":"cache"}\n',
        b"DELETE /runs/20261130T131405-9 HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n\r\n",
        b"OPTIONS * HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ]
    for _ in range(400):
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.randrange(4)):
            at = rng.randrange(len(data))
            data[at : at + rng.randrange(3)] = rng.choice([b"\0", b"%", b"&", b"=", b"\r\n", b" ", b":", b"\xff", b"[", b","])
        with stub.connect() as s:
            try:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                s.recv(1)
            except OSError:
                pass  # turned away: the limit of connections
    served_again(stub)


# ---- who may do what --------------------------------------------------------


def test_host_names(make):
    stub = make(hosts="node1.example")
    port = stub.port
    for host in ("localhost", f"localhost:{port}", "127.0.0.1", f"[::1]:{port}", "node1.example", "NODE1.example:80"):
        assert Answer(stub.request("GET", "/status", host=host)).status == 200, host
    for host in ("attacker.example", "localhost.attacker.example", "0.0.0.0", "10.0.0.1", "node1.example.evil"):
        for method, path in (("GET", "/status"), ("POST", "/run"), ("OPTIONS", "/run"), ("GET", "/nothing")):
            answer = Answer(stub.request(method, path, host=host))
            assert (answer.status, answer.code) == (403, "host_not_allowed"), host


@pytest.mark.parametrize(
    "header, good",
    [
        ("Origin: http://localhost", True),
        ("Sec-Fetch-Site: same-origin", True),
        ("Sec-Fetch-Site: none", True),
        ("Origin: http://evil.example", False),
        ("Origin: null", False),
        ("Origin: http://localhost:81", False),
        ("Sec-Fetch-Site: cross-site", False),
        ("Sec-Fetch-Site: same-site", False),
    ],
)
def test_pages_of_other_sites(stub, header, good):
    assert Answer(stub.request("GET", "/status", header)).status == 200
    answer = Answer(stub.request("POST", "/run", header))
    assert answer.status == (202 if good else 403)
    gone = Answer(stub.request("DELETE", "/runs/20261130T131405-000000", header))
    assert gone.code == ("run_ended" if good else "foreign_origin")


def outside_address():
    """An address of this host that is not loopback, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))
            return s.getsockname()[0]
        except OSError:
            return None


def test_outside_listener_only_reads(make):
    stub = make(listen="0.0.0.0:0 127.0.0.1:0")
    first, second = (int(a.rsplit(":", 1)[1]) for a in stub.addresses)

    def status(port, *args, host="127.0.0.1"):
        return curl("-o", "/dev/null", "-w", "%{http_code}", *args, f"http://{host}:{port}/run").stdout

    assert curl(f"http://127.0.0.1:{first}/healthz").stdout.startswith("{")
    problem = json.loads(curl("-X", "POST", f"http://127.0.0.1:{first}/run").stdout)
    assert (problem["status"], problem["code"]) == (403, "read_only_listener")
    assert status(first, "-X", "POST", "-H", "Authorization: Bearer x") == "403"
    assert status(second, "-X", "POST") == "202"
    outside = outside_address()
    if outside:  # the address the client used is an answerable name, by whatever listener it came
        assert curl(f"http://{outside}:{first}/healthz").stdout.startswith("{")


def test_unix_socket(make, tmp_path):
    path = tmp_path / "s"
    stub = make(listen=f"unix:{path}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    base = ["--unix-socket", str(path)]
    assert json.loads(curl(*base, "http://localhost/status").stdout)["schema"] == 1
    assert json.loads(curl(*base, "http://any.name/healthz").stdout)["status"] == "ok"
    assert json.loads(curl(*base, "-X", "POST", "http://localhost/run").stdout)["runs"]
    assert f"by uid {os.getuid()} pid " in stub.close()
    assert not path.exists()


# ---- listening --------------------------------------------------------------


def test_address_in_use(make):
    first = make()
    second = make(listen=f"127.0.0.1:{first.port}")
    assert f"127.0.0.1:{first.port}: address in use" in second.error
    assert second.process.wait() == 1


def test_restart_on_the_same_port(make):
    first = make()
    port = first.port
    with first.connect() as s:  # the server closes first, so that TIME_WAIT is on its side
        s.sendall(GOOD.encode())
        read_one(s)
        first.close()
    assert make(listen=f"127.0.0.1:{port}").port == port


def test_unix_socket_left_behind(make, tmp_path):
    path = tmp_path / "s"
    first = make(listen=f"unix:{path}")
    refused = make(listen=f"unix:{path}")
    assert "address in use" in refused.error
    first.process.kill()
    first.process.wait()
    assert path.exists()
    again = make(listen=f"unix:{path}")
    assert json.loads(curl("--unix-socket", str(path), "http://localhost/healthz").stdout)["status"] == "ok"
    again.close()


def test_foreign_file_is_left_alone(make, tmp_path):
    path = tmp_path / "file"
    path.write_text("precious")
    assert "not a socket" in make(listen=f"unix:{path}").error
    assert path.read_text() == "precious"
    assert "does not exist" in make(listen=f"unix:{tmp_path}/no/s").error


# ---- clients that misbehave -------------------------------------------------


def test_pipelining(stub):
    data = stub.raw(GOOD * 20 + GOOD.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"))
    assert data.count(b"HTTP/1.1 200 OK") == 21


def test_byte_by_byte(stub):
    with stub.connect() as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in GOOD.encode():
            s.sendall(bytes([byte]))
        assert read_one(s).status == 200


def test_slow_request_is_cut(make):
    """A client that keeps sending is never idle: only the time for the whole request ends it."""
    stub = make(request_timeout_ms=700, idle_timeout_s=600)
    with stub.connect() as s:
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ")
        s.settimeout(0.05)
        closed = False
        for _ in range(2000):
            try:
                s.sendall(b"a")
                closed = s.recv(100) == b""
            except socket.timeout:
                continue
            except OSError:
                closed = True
            if closed:
                break
        assert closed
    assert Answer(stub.request("GET", "/healthz")).status == 200


@pytest.mark.slow
def test_request_time_counts_from_the_last_reply(make):
    """Keep-alive clients that ask in time stay connected for longer than one request may take."""
    stub = make(request_timeout_ms=1500, idle_timeout_s=600)
    ended = threading.Event()
    with stub.connect() as s, stub.connect() as silent:
        threading.Thread(target=lambda: (silent.recv(1), ended.set()), daemon=True).start()
        asked = 0
        while not ended.is_set():  # until the silent one, which came at the same time, was cut off
            s.sendall(GOOD.encode())
            assert read_one(s).status == 200
            asked += 1
            ended.wait(0.02)  # a connection has a number of requests, too
        s.sendall(GOOD.encode())
        assert read_one(s).status == 200
        assert asked > 1


def test_idle_connection_is_closed(make):
    stub = make(idle_timeout_s=1)
    with stub.connect() as s:
        s.sendall(GOOD.encode())
        assert read_one(s).status == 200
        assert s.recv(1) == b""


@pytest.mark.slow
def test_idle_connection_costs_nothing(stub):
    """The trap of libmicrohttpd's timeout: read in the wrong unit, one idle connection spins the loop."""
    with stub.connect() as s:
        s.sendall(GOOD.encode())
        assert read_one(s).status == 200
        before = int(stub.command("loops"))
        for _ in range(100):  # each command is one turn; between them the loop has all the time it wants
            last = int(stub.command("loops"))
        with pytest.raises(socket.timeout):
            s.settimeout(2)
            s.recv(1)
        after = int(stub.command("loops"))
    assert last - before <= 110
    assert after - last <= 10


def test_large_head(stub):
    line = "X-Filler: " + "x" * 40000
    assert b" 431 " in stub.raw(f"GET /healthz HTTP/1.1\r\nHost: localhost\r\n{line}\r\n\r\n").split(b"\r\n")[0]
    assert b" 414 " in stub.raw(f"GET /{'x' * 40000} HTTP/1.1\r\nHost: localhost\r\n\r\n").split(b"\r\n")[0]
    many = "".join(f"X-{i}: y\r\n" for i in range(5000))
    assert b" 200 " not in stub.raw(f"GET /healthz HTTP/1.1\r\nHost: localhost\r\n{many}\r\n").split(b"\r\n")[0]
    assert Answer(stub.request("GET", "/healthz")).status == 200


def test_large_body(stub, tmp_path):
    body = tmp_path / "body"
    body.write_bytes(b"x" * 10_000_000)
    result = curl(
        "-o", "/dev/null", "-w", "%{http_code}", "-X", "POST", "-H", "Content-Type: application/json",
        "--data-binary", f"@{body}", f"http://localhost:{stub.port}/run",
    )
    assert result.stdout == "413"
    with stub.connect() as s:  # without waiting for "100 Continue"
        s.sendall(b"POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\n")
        answer = Answer(read_all(s))
    assert (answer.status, answer.code) == (413, "body_too_large")
    assert Answer(stub.request("GET", "/runs")).status == 200


def test_body_in_pieces(stub):
    body = b'{"target":' + b" " * 4000 + b'"logs"}'
    with stub.connect() as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.sendall(b"POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body))
        for i in range(0, len(body), 100):
            s.sendall(body[i : i + 100])
        answer = read_one(s)
    assert answer.status == 202 and [r["target"] for r in answer.json()["runs"]] == ["logs"]


def test_body_that_never_comes(make):
    stub = make(request_timeout_ms=300, idle_timeout_s=600)
    with stub.connect() as s:
        s.sendall(b"POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{")
        assert read_all(s) == b""
    assert len(Answer(stub.request("GET", "/runs")).json()["runs"]) == 1


def test_half_closed(make):
    """A client that has said all it will say gets its answers, and then an end long before any time out."""
    stub = make(idle_timeout_s=600, request_timeout_ms=600000)
    assert stub.raw(GOOD, half_close=True).count(b"HTTP/1.1 200 OK") == 1
    assert stub.raw(GOOD * 3, half_close=True).count(b"HTTP/1.1 200 OK") == 3
    assert stub.raw("", half_close=True) == b""
    assert Answer(stub.request("GET", "/healthz")).status == 200


def test_half_a_request_and_an_end(make):
    stub = make(idle_timeout_s=1)
    assert not stub.raw(GOOD[:20], half_close=True).startswith(b"HTTP/1.1 2")
    assert Answer(stub.request("GET", "/healthz")).status == 200


def test_gone_before_the_answer(stub):
    for _ in range(50):
        s = stub.connect()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        s.sendall(b"GET /history?target=cache HTTP/1.1\r\nHost: localhost\r\n\r\n")
        s.close()
    served_again(stub)


def test_reader_that_stops(make):
    """One who takes nothing of a long reply is cut off as idle; the others are served meanwhile."""
    stub = make(records=12000, capacity=20000, idle_timeout_s=1)
    with stub.connect() as s:
        s.sendall(b"GET /history?target=cache&limit=10000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for _ in range(20):
            assert Answer(stub.request("GET", "/status")).status == 200
        for _ in range(6000):  # until only the listener is left
            if stub.sockets() <= 1:
                break
            time.sleep(0.01)
        else:
            pytest.fail("still connected")
        assert int(stub.command("loops")) < 1500  # a reply that cannot go on must not spin the loop
        unread = len(read_all(s))
    assert 0 < unread < 2_000_000  # what the kernel held for it was bounded


@pytest.mark.parametrize("path", ["/history?target=cache&limit=10000", "/history?target=cache&step=1", "/runs?limit=1000", "/metrics", "/"])
def test_gone_in_each_phase_of_an_answer(make, path):
    """After the request, in the middle of the head, of the body, and before the last byte."""
    stub = make(records=12000, capacity=20000)
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    with stub.connect() as s:
        s.sendall(request)
        whole = len(read_all(s))
    for part in [0, 1, 20, 150, *(whole * n // 16 for n in range(1, 16)), whole - 1]:
        s = stub.connect()
        s.sendall(request)
        left = part
        while left > 0 and (piece := s.recv(left)):
            left -= len(piece)
        if part % 2:  # a reset, where the others end in good order
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
    served_again(stub)


def test_errors_keep_the_connection(stub):
    """A complete request that is refused costs no connection."""
    with stub.connect() as s:
        for head, status in (("GET /nothing", 404), ("POST /status", 405), ("GET /status?x=1", 400), ("OPTIONS /run", 204)):
            s.sendall(f"{head} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            data = b""
            while b"\r\n\r\n" not in data:
                chunk = s.recv(65536)
                assert chunk, head
                data += chunk
            assert Answer(data).status == status
        s.sendall(GOOD.encode())
        assert read_one(s).status == 200


def test_many_connections(make, tmp_path):
    """200 at once: those over the limit are turned away or wait, and nothing is lost for good."""
    stub = make(listen=f"127.0.0.1:0 unix:{tmp_path}/s")
    waiting = [stub.connect() for _ in range(200)]
    answered = 0
    for s in waiting:
        try:
            s.sendall(GOOD.encode())
        except OSError:
            pass
    assert json.loads(curl("--unix-socket", f"{tmp_path}/s", "http://localhost/healthz").stdout)["status"] == "ok"
    for s in waiting:
        try:
            answered += s.recv(65536).startswith(b"HTTP/1.1 200")
        except OSError:
            pass
        s.close()
    assert 16 <= answered <= 200
    served_again(stub)
    assert len(os.listdir(f"/proc/{stub.process.pid}/fd")) < 40


def from_address(stub, address):
    s = socket.create_connection(("127.0.0.1", stub.port), source_address=(address, 0))
    s.settimeout(60)
    return s


def ask(s):
    s.sendall(GOOD.encode())
    return read_one(s).status


def greedy_client(port, taken, n=16):
    """Asks for long histories on N connections, again and again, and counts the bytes."""
    sockets = selectors.DefaultSelector()

    def begin():
        s = socket.create_connection(("127.0.0.1", port))
        s.sendall(b"GET /history?target=cache&limit=10000 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        sockets.register(s, selectors.EVENT_READ)

    for _ in range(n):
        begin()
    while True:
        for key, _ in sockets.select():
            data = key.fileobj.recv(1 << 20)
            taken.value += len(data)
            if not data:
                sockets.unregister(key.fileobj)
                key.fileobj.close()
                begin()


@pytest.mark.slow
def test_listeners_take_turns(make, tmp_path):
    """A client with sixteen long answers on TCP, without a pause, keeps nobody on the Unix socket waiting: an answer
    there comes long before the sixteen histories are through."""
    stub = make(listen=f"127.0.0.1:0 unix:{tmp_path}/s", records=12000, capacity=20000)
    taken = multiprocessing.Value("Q", 0, lock=False)
    greedy = multiprocessing.get_context("fork").Process(target=greedy_client, args=(stub.port, taken), daemon=True)
    greedy.start()
    try:
        lab.wait_for("histories", lambda: taken.value > 50_000_000, 120)
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(120)
            s.connect(f"{tmp_path}/s")
            before = taken.value
            for _ in range(100):
                assert ask(s) == 200
            between = taken.value - before
        lab.wait_for("more histories", lambda: taken.value > before + between + 50_000_000, 120)
    finally:
        greedy.kill()
        greedy.join()
    assert between < 100 * 4 * 3_500_000, between  # four whole histories for each of a hundred answers


def test_idle_ones_make_room(make):
    """Keep-alive clients from two addresses hold every place, and go on asking: the next client is served, whoever was
    idle longest goes, and a client that asks more often than the others is never the one."""
    stub = make(idle_timeout_s=600)
    held = [from_address(stub, f"127.0.0.{1 + i % 2}") for i in range(32)]
    for s in held:
        assert ask(s) == 200
    busy = held[0]
    for i in range(40):
        assert ask(busy) == 200
        with from_address(stub, "127.0.0.3") as new:
            assert ask(new) == 200
    lost = 0
    for s in held[1:]:
        s.settimeout(0)
        with contextlib.suppress(BlockingIOError, ConnectionResetError):
            lost += s.recv(1) == b""
    assert 1 <= lost <= 40 and ask(busy) == 200
    for s in held:
        s.close()


def test_the_greedy_make_room_first(make):
    """Who holds one connection keeps it, however many another one opens."""
    stub = make(idle_timeout_s=600)
    with from_address(stub, "127.0.0.9") as modest:
        assert ask(modest) == 200
        greedy = []
        for _ in range(200):
            greedy.append(from_address(stub, "127.0.0.2"))
            assert ask(greedy[-1]) == 200
        assert ask(modest) == 200
        for s in greedy:
            s.close()


@pytest.mark.slow
def test_slow_drips(make):
    """A thousand connections from many addresses that begin a request and never end it."""
    stub = make(idle_timeout_s=600, request_timeout_ms=600000)
    drips = []
    for i in range(1000):
        drips.append(from_address(stub, f"127.0.{i % 200}.7"))
        drips[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: loc")
        if i % 50 == 49:
            for s in drips:
                with contextlib.suppress(OSError):
                    s.send(b"a")
            assert Answer(stub.request("GET", "/healthz")).status == 200
    assert stub.sockets() < 80
    for s in drips:
        s.close()
    served_again(stub)


def test_a_connection_has_a_number_of_requests(stub):
    with stub.connect() as s:
        for i in range(1000):
            s.sendall(GOOD.encode())
            answer = read_one(s)
            assert answer.status == 200
            assert (answer.headers.get("connection", "").lower() == "close") == (i == 999)
        assert s.recv(1) == b""


def test_many_unix_clients(make, tmp_path):
    """200 at once: one that is slow to ask may have to come again, and every one is answered."""
    stub = make(listen=f"unix:{tmp_path}/s")
    answers = []
    lock = threading.Lock()

    def once():
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(f"{tmp_path}/s")
            try:
                s.sendall(GOOD.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n").encode())
            except OSError:
                return b""
            return read_all(s)

    def until_answered():
        while not (data := once()):
            pass
        with lock:
            answers.append(data)

    threads = [threading.Thread(target=until_answered) for _ in range(200)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(answers) == 200 and all(a.startswith(b"HTTP/1.1 200") for a in answers)


def test_end_with_open_connections(make):
    """The server goes with clients in every state: nothing is leaked (sanitizers tell) and nothing hangs."""
    stub = make(records=12000, capacity=20000)
    clients = [stub.connect() for _ in range(4)]
    clients[0].sendall(GOOD.encode())
    clients[1].sendall(b"GET /histo")
    clients[2].sendall(b"GET /history?target=cache&limit=10000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    clients[3].sendall(b"POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{")
    assert clients[2].recv(100)
    assert read_one(clients[0]).status == 200
    stub.close()
    for s in clients:
        s.close()


def test_counts(stub):
    stub.request("GET", "/status")
    stub.request("GET", "/nothing")
    stub.request("BREW", "/status")
    stub.request("POST", "/run")
    stub.request("HEAD", "/status")
    assert stub.command("counts").split() == ["GET:200:1", "GET:404:1", "HEAD:200:1", "POST:202:1", "other:405:1"]


def test_memory(make):
    """After thousands of requests of every kind the server is as large as after a few."""
    stub = make()

    def resident_kb():
        text = pathlib.Path(f"/proc/{stub.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text).group(1))

    def work(n):
        for _ in range(n):
            with stub.connect() as s:
                for path in ("/status", "/runs", "/runs/x", "/status?x=1", "/healthz") * 100:
                    s.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                    read_one(s)

    work(1)
    before = resident_kb()
    work(5)
    if not SANITIZED:
        assert resident_kb() - before < 256
