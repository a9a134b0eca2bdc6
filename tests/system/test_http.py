# SPDX-License-Identifier: Apache-2.0
"""The HTTP surface from outside: what the contract promises, and what hostile or broken clients get."""

import concurrent.futures
import contextlib
import datetime
import json
import os
import re
import socket
import time

import pytest

import lab
from harness import LIMITS, free_port, sections_for
from lab.catalog import MB

pytestmark = pytest.mark.slow

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@pytest.fixture
def service(daemon, place):
    for name in ("one", "two"):
        (place / name).mkdir()
    sections = sections_for({"cache": place / "one", "other": place / "two"}, schedule={"interval": "never"})
    # A run writes little, and the guard for space does not depend on the machine's disk.
    sections["profile small"]["count"] = 2
    sections["guard"] = {"min_free": "0"}
    yield daemon(sections=sections, listen=f"127.0.0.1:{free_port()}")
    for name in ("one", "two"):
        (place / name).rmdir()  # fails unless empty: nothing was left there


def raw(service, data, deadline_s=3):
    """Sends bytes as they are and returns what comes back until the server closes or pauses; b"" is no answer."""
    host, _, port = service.listen.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=deadline_s) as sock:
        with contextlib.suppress(OSError):
            sock.sendall(data)
        answer = b""
        with contextlib.suppress(OSError):
            while block := sock.recv(65536):
                answer += block
                if b"\r\n\r\n" in answer:
                    sock.settimeout(1)
        return answer


def status_of(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else None


# ---- reading ----

def test_status(service):
    status = service.status
    assert status["schema"] == 1
    assert status["service"]["name"] == "tierprobed"
    assert status["service"]["pid"] == service.process.pid
    assert RFC3339.fullmatch(status["service"]["started_at"])
    assert status["state"] == "idle" and status["verdict"] == "never_run"
    assert status["limits"] == LIMITS
    assert [t["name"] for t in status["targets"]] == ["cache", "other"]
    for target in status["targets"]:
        assert target["last_run"] is None and target["current_run"] is None and target["next_run_at"] is None
        assert target["age_s"] is None
        assert target["verdict"] == "never_run"


def test_etag(service):
    lab.wait_for("a first sample", lambda: all(t["sample"] or not t["device"] for t in service.status["targets"]))
    answer = service.get("/status")
    assert service.get("/status", headers={"If-None-Match": '"other"'}).status == 200
    tag = answer.headers["ETag"]
    assert tag.startswith('"')
    # Samples change the document, so that the same tag may be gone by now; what holds is held by one connection.
    for _ in range(50):
        tag = service.get("/status").headers["ETag"]
        again = service.get("/status", headers={"If-None-Match": tag})
        if again.status == 304:
            assert again.body == b"" and again.headers["ETag"] == tag
            break
    else:
        pytest.fail("never a 304")


@pytest.mark.disk
def test_status_in_brief(daemon, disk):
    service = daemon(disk(rate=20 * MB).path, count=30)
    target = lambda: service.get("/status?brief=yes").json["targets"][0]  # noqa: E731
    assert (target()["verdict"], target()["severity"], target()["run_id"]) == ("never_run", 3, None)
    tag = service.get("/status?brief=yes").headers["ETag"]
    first = lab.wait_for("a sample", lambda: service.target()["sample"])["seq"]
    lab.wait_for("more samples", lambda: service.target()["sample"]["seq"] > first + 20)
    answer = service.get("/status?brief=yes", headers={"If-None-Match": tag})
    assert answer.status == 304 and answer.body == b""  # though samples have come
    run = service.wait_run(service.start_run())
    answer = service.get("/status?brief=yes", headers={"If-None-Match": tag})
    assert answer.status == 200 and len(answer.body) < 1024
    brief = answer.json["targets"][0]
    assert (brief["verdict"], brief["severity"], brief["run_id"]) == ("fail", 2, run["id"])
    assert brief["reasons"][0] == "write_throughput_low" and answer.json["severity"] == 2
    assert brief["finished_epoch_s"] == run["finished_epoch_s"] == \
        int(datetime.datetime.fromisoformat(run["finished_at"].replace("Z", "+00:00")).timestamp())
    assert (run["severity"], service.target()["severity"], service.status["severity"]) == (2, 2, 2)
    for bad in ("brief=maybe", "brief=", "brief=yes&brief=no", "short=yes"):
        assert service.get(f"/status?{bad}").status == 400
    assert service.get("/status?brief=no").json["service"]


@pytest.mark.disk
def test_runs_in_pages_and_by_verdict(daemon, disk):
    it = disk(rate=20 * MB, size="1G")
    service = daemon(sections=sections_for({"a": it.directory("a"), "b": it.directory("b")}, count=8,
                                           limits={"write_mb_per_s": 1, "w_await_ms": 10000, "pass_ratio": 0.1}))
    ids = [service.wait_run(service.start_run("ab"[i % 2]))["id"] for i in range(5)]
    runs = service.get("/runs").json
    assert [run["id"] for run in runs["runs"]] == ids[::-1] and runs["next_cursor"] is None
    verdicts = {run["id"]: run["verdict"] for run in runs["runs"]}

    seen, query = [], "limit=2"
    while query:
        page = service.get(f"/runs?{query}").json
        seen += [run["id"] for run in page["runs"]]
        query = page["next_cursor"] and f"limit=2&before={page['next_cursor']}"
    assert seen == ids[::-1]
    for verdict in ("pass", "fail", "inconclusive"):
        chosen = service.get(f"/runs?verdict={verdict}").json["runs"]
        assert [run["id"] for run in chosen] == [run_id for run_id in ids[::-1] if verdicts[run_id] == verdict]
    third = next(run for run in runs["runs"] if run["id"] == ids[2])
    assert [run["id"] for run in service.get(f"/runs?since={third['queued_at']}").json["runs"]] == ids[:1:-1]
    assert [run["id"] for run in service.get(f"/runs?target=b&since={third['queued_at']}").json["runs"]] == [ids[3]]
    later = int(time.time()) + 1000
    assert service.get(f"/runs?since={later}").json == {"schema": 1, "runs": [], "next_cursor": None}
    # A run under way comes first, and once.
    it.control["rate"] = MB
    running = service.start_run("a")
    page = service.get("/runs?limit=1").json
    assert [run["id"] for run in page["runs"]] == [running]
    assert [run["id"] for run in service.get(f"/runs?before={page['next_cursor']}").json["runs"]] == ids[::-1]
    assert running not in [run["id"] for run in service.get("/runs?verdict=pass").json["runs"]]
    service.request("DELETE", f"/runs/{running}")
    service.wait_run(running)


@pytest.mark.parametrize("query", ["verdict=never_run", "verdict=good", "since=yesterday", "before=../x", "before=", "limit=0",
                                   "limit=1001", "since=99999999999999999999"])
def test_bad_filters_of_runs(service, query):
    assert service.get(f"/runs?{query}").status == 400


def test_head_and_options(service):
    answer = service.request("HEAD", "/status")
    assert answer.status == 200 and answer.body == b"" and int(answer.headers["Content-Length"]) > 100
    answer = service.request("OPTIONS", "/run")
    assert answer.status == 204 and "POST" in answer.headers["Allow"]
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_health(service):
    assert service.get("/healthz").status == 200
    answer = service.get("/readyz")
    assert answer.status == 503  # never run


def test_headers_of_every_answer(service):
    for path in ("/status", "/runs", "/history?target=cache", "/healthz", "/nothing"):
        answer = service.get(path)
        assert answer.headers["Content-Type"], path
        assert answer.headers["X-Content-Type-Options"] == "nosniff", path
        assert answer.headers["Cache-Control"], path


# ---- runs ----

def test_a_run_over_http(service):
    answer = service.post("/run?target=cache&profile=small")
    assert answer.status == 202
    run = answer.json["runs"][0]
    assert answer.headers["Location"] == f"/runs/{run['id']}"
    assert run["target"] == "cache" and run["profile"] == "small" and run["trigger"] == "manual"
    assert run["certifying"] is False
    assert run["state"] in ("queued", "running") and run["verdict"] is None
    run = service.wait_run(run["id"])
    assert run["verdict"] in ("pass", "fail", "inconclusive")
    assert run["test"].items() >= {"block_size": 1 << 20, "count": 2, "streams": 1, "pattern": "zero"}.items()
    assert service.get("/runs").json["runs"][0]["id"] == run["id"]
    assert service.request("DELETE", f"/runs/{run['id']}").status == 409
    assert service.target()["last_run"]["id"] == run["id"]


def test_post_without_target_runs_all(service):
    answer = service.post("/run?profile=small")
    assert answer.status == 202
    runs = answer.json["runs"]
    assert sorted(run["target"] for run in runs) == ["cache", "other"]
    ends = [service.wait_run(run["id"]) for run in runs]
    assert len({run["id"] for run in ends}) == 2
    third = service.whole_run()
    listed = [run["id"] for run in service.get("/runs").json["runs"]]
    assert listed[0] == third["id"]  # newest first
    assert sorted(listed[1:]) == sorted(run["id"] for run in ends)


def test_body_may_choose_too(service):
    answer = service.post("/run", body=json.dumps({"target": "cache", "profile": "small"}),
                          headers={"Content-Type": "application/json"})
    assert answer.status == 202
    service.wait_run(answer.json["runs"][0]["id"])


@pytest.mark.parametrize("query,status", [
    ("target=nobody", 404), ("target=cache&profile=none", 404), ("target=", None), ("path=/etc", 400),
    ("target=cache&target=other", 400), ("target=../../etc", 404), ("target=cache&count=5", 400),
    ("target=" + "x" * 5000, None), ("profile=%00", None), ("target=%ff%fe", None)], ids=lambda v: str(v)[:40])
def test_bad_queries_start_nothing(query, status, service):
    answer = service.post(f"/run?{query}")
    assert 400 <= answer.status < 500
    if status:
        assert answer.status == status and answer.code
    assert service.get("/runs").json["runs"] == []


BODIES = {
    "garbage": b"\x00\xff{]" * 100,
    "not an object": b"[]",
    "unknown key": b'{"target": "cache", "path": "/etc"}',
    "wrong type": b'{"target": 5}',
    "wrong type of together": b'{"target": "cache", "together": 1}',
    "duplicate key": b'{"target": "cache", "target": "other"}',
    "deep": b"[" * 4000,
    "cut": b'{"target": "ca',
    "contradiction": b'{"target": "other", "profile": "small"}',
}


@pytest.mark.parametrize("name", BODIES)
def test_bad_bodies_start_nothing(name, service):
    answer = service.post("/run?target=cache&profile=small", body=BODIES[name],
                          headers={"Content-Type": "application/json"})
    assert answer.status == 400 and answer.code, answer
    assert service.get("/runs").json["runs"] == []


def test_a_body_of_another_type(service):
    answer = service.post("/run?target=cache&profile=small", body=b"a=b",
                          headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert answer.status == 415
    assert service.get("/runs").json["runs"] == []


def test_a_body_of_ten_megabytes(service):
    head = b"POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10485760\r\n\r\n"
    answer = raw(service, head + b"x" * (10 << 20))
    assert status_of(answer) in (413, None)  # None: it hung up while we were still sending
    answer = raw(service, head + b"x" * 1000)
    assert status_of(answer) == 413
    assert service.get("/runs").json["runs"] == []
    assert service.get("/healthz").status == 200


@pytest.mark.parametrize("method,path,status", [
    ("POST", "/nothing", 404), ("GET", "/nothing", 404), ("GET", "/status/", 404), ("GET", "/../etc/passwd", 404),
    ("GET", "/%2e%2e/etc/passwd", 404), ("GET", "/status%00", 404), ("GET", "/run", 405), ("POST", "/status", 405),
    ("DELETE", "/runs", 405), ("PUT", "/run", 405), ("FOO", "/status", 405), ("GET", "/runs/none", 404),
    ("DELETE", "/runs/none", 404), ("GET", "/runs/..", 404), ("GET", "/runs/" + "a" * 3000, 404),
    ("GET", "/runs/a/b", 404), ("GET", "/runs/%2e%2e%2fstate", 404)], ids=lambda v: str(v)[:40])
def test_unknown_routes_and_methods(method, path, status, service):
    answer = service.request(method, path)
    assert answer.status == status
    assert answer.code
    if status == 405:
        assert answer.headers["Allow"]


def test_problem_documents(service):
    problem = service.post("/run?target=nobody").json
    assert problem["status"] == 404 and problem["code"] == "unknown_target"
    assert problem["title"] and problem["detail"] and problem["type"]


# ---- history ----

def test_history_follows_without_holes(service):
    if not service.target()["device"]:
        pytest.skip("the build is on no block device")
    lab.wait_for("three samples", lambda: len(service.get("/history?target=cache").json["samples"]) >= 3)
    first = service.get("/history?target=cache&limit=2").json
    assert first["schema"] == 1 and first["target"] == "cache" and first["interval_s"] == 0.1
    assert first["capacity"] == 36000
    seen = [s["seq"] for s in first["samples"]]
    cursor = first["next_cursor"]

    def more():
        nonlocal cursor
        page = service.get(f"/history?target=cache&since={cursor}&limit=3").json
        assert page["dropped"] == 0
        seen.extend(s["seq"] for s in page["samples"])
        cursor = page["next_cursor"]
        return len(seen) >= 15
    lab.wait_for("fifteen samples", more)
    assert seen == list(range(seen[0], seen[0] + len(seen)))


def test_samples_have_iostats_keys(service):
    if not service.target()["device"]:
        pytest.skip("the build is on no block device")
    sample = lab.wait_for("a sample", lambda: service.get("/history?target=cache&limit=1").json["samples"])[0]
    for key in ("r/s", "w/s", "d/s", "f/s", "rkB/s", "wkB/s", "dkB/s", "rrqm/s", "wrqm/s", "drqm/s", "rrqm", "wrqm",
                "drqm", "r_await", "w_await", "d_await", "f_await", "rareq-sz", "wareq-sz", "dareq-sz", "aqu-sz", "util"):
        assert key in sample
    # "other": the disk is one that other tests may be using.
    assert RFC3339.fullmatch(sample["time"]) and sample["run_id"] in (None, "other")


@pytest.mark.parametrize("query", ["target=nobody", "target=cache&limit=0", "target=cache&limit=-1",
                                   "target=cache&limit=x", "target=cache&limit=99999999999999999999",
                                   "target=cache&since=nonsense", "target=cache&since=-5", "target=cache&x=1"])
def test_bad_history_queries(query, service):
    answer = service.get(f"/history?{query}")
    assert answer.status in (400, 404) and answer.code


def test_history_survives_a_restart(daemon, place):
    service = daemon(place)
    if not service.target()["device"]:
        pytest.skip("the build is on no block device")
    lab.wait_for("samples", lambda: (service.target()["sample"] or {"seq": 0})["seq"] >= 5)
    before = service.get("/history?target=cache&limit=5").json["samples"]
    # Samples are written by a child of the daemon: those of the last moment are in memory alone.
    lab.wait_for("later samples", lambda: service.target()["sample"]["seq"] >= before[-1]["seq"] + 5)
    service.kill()
    again = daemon(place)
    lab.wait_for("a sample more", lambda: (again.target()["sample"] or {"seq": 0})["seq"] > before[-1]["seq"] + 1)
    after = {s["seq"]: s for s in again.get("/history?target=cache&limit=1000").json["samples"]}
    for sample in before:
        assert after[sample["seq"]] == sample


# ---- who is asked, who asks ----

@pytest.mark.parametrize("host,status", [("localhost", 200), ("localhost:7620", 200), ("127.0.0.1", 200), ("[::1]", 200),
                                         ("attacker.example", 403), ("localhost.attacker.example", 403),
                                         ("127.0.0.1.attacker.example", 403), ("", 400), ("a b", 400)])
def test_host(host, status, service):
    answer = raw(service, f"GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    assert status_of(answer) == status


def test_two_hosts_or_none(service):
    for hosts in ("Host: localhost\r\nHost: attacker.example\r\n", ""):
        assert status_of(raw(service, f"GET /status HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n".encode())) == 400


@pytest.mark.parametrize("headers", [{"Origin": "http://attacker.example"}, {"Origin": "null"},
                                     {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}])
@pytest.mark.parametrize("method,path", [("POST", "/run?target=cache&profile=small"), ("DELETE", "/runs/none")])
def test_pages_of_other_sites_change_nothing(method, path, headers, service):
    assert service.request(method, path, headers=headers).status == 403
    assert service.get("/runs").json["runs"] == []


def test_curl_without_a_body_works(service):
    done = lab.run("curl", "-sS", "-X", "POST", f"http://{service.listen}/run?profile=small", check=False) \
        if os.path.exists("/usr/bin/curl") else pytest.skip("no curl")
    assert done.returncode == 0
    for run in json.loads(done.stdout)["runs"]:
        service.wait_run(run["id"])


# ---- broken and hostile clients ----

@pytest.mark.parametrize("data", [
    b"\x00" * 100, b"GARBAGE\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /status HTTP/1.1\r\nHost: localhost\r\n" +
    b"X: y\r\n" * 20000, b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\x02\x00\x01",
    b"POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 18446744073709551616\r\n\r\n",
], ids=["zeros", "garbage", "version", "headers", "target", "tls", "negative length", "huge length"])
def test_garbage_gets_an_error_and_nothing_else(data, service):
    answer = raw(service, data)
    assert status_of(answer) is None or status_of(answer) >= 400
    assert service.get("/healthz").status == 200
    assert service.get("/runs").json["runs"] == []


@pytest.mark.parametrize("headers", ["Content-Length: 3\r\nContent-Length: 50\r\n",
                                     "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
                                     "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip, chunked\r\n"])
def test_no_request_is_smuggled_in_a_body(headers, service):
    smuggled = b"POST /run?target=cache&profile=small HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = raw(service, f"POST /run?target=nobody HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode() + b"abc" + smuggled)
    assert status_of(answer) >= 400
    assert answer.count(b"HTTP/1.1 ") == 1
    assert service.get("/runs").json["runs"] == []


def test_idle_and_slow_clients_do_not_keep_others_out(service):
    host, _, port = service.listen.rpartition(":")
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            sock = stack.enter_context(socket.create_connection((host, int(port))))
            sock.sendall(b"GET /status HT")
        for _ in range(20):
            assert service.get("/healthz").status == 200


def test_a_client_that_never_ends_its_request_is_hung_up_on(service):
    host, _, port = service.listen.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=90) as sock:
        sock.sendall(b"GET /status HTTP/1.1\r\nX: ")
        sock.settimeout(0.2)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                sock.sendall(b"y")
                if not sock.recv(1000):
                    return
            except socket.timeout:
                continue
            except OSError:
                return
        pytest.fail("still connected after 60 s")


def test_many_at_once(service):
    def ask(number):
        path = ("/status", "/runs", "/history?target=cache&limit=100", "/nothing")[number % 4]
        return service.get(path).status
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(400)))
    assert set(answers) == {200, 404}


def test_clients_that_leave_at_once(service):
    host, _, port = service.listen.rpartition(":")
    for _ in range(200):
        with socket.create_connection((host, int(port))) as sock:
            sock.sendall(b"GET /history?target=cache HTTP/1.1\r\nHost: localhost\r\n\r\n")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    lab.wait_for("an answer", service.answers)
    fds = lab.wait_for("closed connections", lambda: len(os.listdir(f"/proc/{service.process.pid}/fd")) < 40)
    assert fds


def test_unix_socket(daemon, place, folder):
    service = daemon(place, listen=f"unix:{folder}/socket")
    assert service.get("/status", headers={"Host": "anything"}).status == 200
    assert (os.stat(folder / "socket").st_mode & 0o007) == 0


def test_a_listener_that_is_not_loopback_serves_reads_only(daemon, place):
    port = free_port()
    service = daemon(place, listen=f"0.0.0.0:{port}", wait=False)
    service.listen = f"127.0.0.1:{port}"
    lab.wait_for("an answer", service.answers)
    assert service.get("/status").status == 200
    answer = service.post("/run?profile=small")
    assert answer.status in (401, 403)
    assert service.get("/runs").json["runs"] == []


def test_the_start_names_every_listener(daemon, place, folder):
    addresses = [f"unix:{folder}/socket", f"127.0.0.1:{free_port()}"]
    service = daemon(sections={**sections_for(place), "http": {"listen": addresses}})
    assert f"serves 1 target on {', '.join(addresses)}" in service.stderr
