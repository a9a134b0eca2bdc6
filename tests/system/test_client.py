# SPDX-License-Identifier: Apache-2.0
"""The commands that ask a daemon: status, check, start, abort, history; with a real daemon, and with hosts that answer
too late, too much, or what no daemon would."""

import contextlib
import http.server
import json
import re
import threading

import pytest

import lab

SMALL = {"count": 40}


@contextlib.contextmanager
def host(body, status=200, hold=None):
    """A host that answers every GET with BODY, or after HOLD (an event) never."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if hold:
                hold.wait(60)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(body)

        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        if hold:
            hold.set()
        server.shutdown()
        server.server_close()


def document(**target):
    target = {"name": "cache", "path": "/db2/cache", "verdict": "pass", "reasons": [], "age_s": 60.0, "stale": False, **target}
    run = {"criteria": [{"name": "write_throughput", "value": 803.52, "unit": "MB/s", "limit": 600, "pass": True},
                        {"name": "write_latency", "value": 11.3, "unit": "ms", "limit": 20, "pass": True}]}
    target.setdefault("standing_run", run)
    return json.dumps({"schema": 1, "targets": [target]}).encode()


def test_a_daemon_from_its_first_run_to_its_history(daemon, place, folder, tierprobe):
    it = daemon({"cache": place}, limits={"write_mb_per_s": 0.001, "w_await_ms": 60000}, **SMALL)
    url = f"--url=unix:{folder}/socket"
    never = tierprobe("status", url)
    assert never.returncode == 3 and "never_run" in never.stdout
    assert "cache never_run" in tierprobe("check", url).stdout

    done = tierprobe("start", url, "--profile", "small", "--wait", "--json")
    run = json.loads(done.stdout)["runs"][0]
    assert run["state"] == "finished", done.stderr
    assert done.returncode == {"pass": 0, "fail": 2, "inconclusive": 3}[run["verdict"]]

    history = tierprobe("history", url, "--limit", "5")
    assert history.returncode == 0 and history.stdout.splitlines()[0].split()[:3] == ["time", "w/s", "wkB/s"]
    assert json.loads(tierprobe("history", url, "--json").stdout)["target"] == "cache"
    assert it.status["targets"][0]["last_run"]["id"] == run["id"]


@pytest.mark.disk
def test_start_and_abort(daemon, disk, folder, tierprobe):
    slow = disk(rate=10_000_000)
    it = daemon({"cache": slow.directory("cache")}, count=300)
    url = f"--url=unix:{folder}/socket"
    accepted = tierprobe("start", url, "--profile", "small", "--json")
    run_id = json.loads(accepted.stdout)["runs"][0]["id"]
    assert accepted.returncode == 0
    again = tierprobe("start", url, "--profile", "small")
    assert again.returncode == 3 and run_id in again.stderr
    it.wait_writing(run_id)
    assert tierprobe("abort", url, run_id).returncode == 0
    assert it.wait_run(run_id)["state"] == "aborted"
    late = tierprobe("abort", url, run_id)
    assert late.returncode == 3 and "ended" in late.stderr


@pytest.mark.parametrize("target, status, word", [
    ({}, 0, "OK"),
    ({"stale": True}, 1, "WARNING"),
    ({"degraded": True}, 1, "WARNING"),
    ({"verdict": "fail", "reasons": [{"code": "write_latency_high", "detail": "w_await 53.85 ms | too high"}]}, 2, "CRITICAL"),
    ({"verdict": "inconclusive"}, 3, "UNKNOWN"),
    ({"verdict": "never_run", "standing_run": None, "last_run": None, "age_s": None}, 3, "UNKNOWN"),
    ({"verdict": "a verdict of another release"}, 3, "UNKNOWN"),
    ({"verdict": None}, 3, "UNKNOWN"),
])
def test_exit_status_and_the_plugins_line(tierprobe, target, status, word):
    with host(document(**target)) as url:
        check = tierprobe("check", "--url", url)
        assert (check.returncode, tierprobe("status", url).returncode) == (status, status)
    assert check.stdout.count("\n") == 1 and check.stdout.startswith(f"TIERPROBE {word} - ")
    text, _, data = check.stdout.partition(" | ")
    for item in data.split():
        assert re.fullmatch(r"'cache_[a-z_]+'=[\d.]+(ms|s)?;[\d.:]*;[\d.:]*;[\d.]*", item), item
    if status == 0:
        assert data.split()[:2] == ["'cache_write_mb_per_s'=803.52;;600:;0", "'cache_w_await'=11.300ms;;20;0"]


def test_many_hosts_with_the_reasons_of_those_that_are_not_green(tierprobe):
    with contextlib.ExitStack() as stack:
        good = [stack.enter_context(host(document())) for _ in range(5)]
        bad = stack.enter_context(host(document(verdict="fail", reasons=[{"code": "write_throughput_low", "detail": "Only 13 MB/s."}])))
        wrong = stack.enter_context(host(b"<html>"))
        done = tierprobe("status", *good, bad, wrong, "127.0.0.1:1")
    assert done.returncode == 2
    lines = done.stdout.splitlines()
    assert lines[0].split()[0] == "HOST" and sum(line.split()[2:3] == ["pass"] for line in lines) == 5
    assert f"{bad} cache: write_throughput_low: Only 13 MB/s." in lines
    assert any(line.startswith(f"{wrong}: no answer: ") for line in lines)
    assert any(line.startswith("127.0.0.1:1: no answer: ") for line in lines)


@pytest.mark.parametrize("observed, column", [
    ({"hour": None, "day": {"w_await": {"p99": 31.25}}}, "31.25"),
    ({"hour": None, "day": {"w_await": {"p99": None}}}, "-"),
    ({"hour": None, "day": None}, "-"),
    (None, "-"),
])
def test_what_production_shows_is_in_the_table(tierprobe, observed, column):
    with host(document(observed=observed)) as url:
        head, row = tierprobe("status", url).stdout.splitlines()[:2]
    assert row[head.index("P99 DAY ms"):].split()[0] == column


def test_a_host_that_does_not_answer_is_one_line(tierprobe):
    hold = threading.Event()
    with host(b"", hold=hold) as url:
        done = tierprobe("status", "--timeout", "500ms", url)
        hold.set()
    assert done.returncode == 3 and done.stdout.count("\n") == 1 and url in done.stdout


def test_text_of_a_hostile_host_is_harmless(tierprobe):
    evil = "\x1b[2J\x07|'=\nTIERPROBE OK\u009b31m"
    body = document(verdict="fail", name=evil, path=evil, reasons=[{"code": evil, "detail": evil}])
    with host(body) as url:
        for arguments in (["status", url], ["check", "--url", url]):
            done = tierprobe(*arguments)
            assert done.returncode == 2
            assert not re.search("[\x00-\x09\x0b-\x1f\x7f\x80-\x9f]", done.stdout)
        assert done.stdout.count("\n") == 1 and done.stdout.count("|") <= 1


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'{"targets": 3}', b'{"targets": [null, 3, {}]}', b'{"targets": []}',
                                  b"\xff\xfe", b"[" * 5000, json.dumps({"targets": [{"verdict": {}, "name": [], "reasons": 7,
                                  "standing_run": {"criteria": [1, {"name": "write_latency", "value": "x"}]}}]}).encode()])
def test_what_no_daemon_would_answer(tierprobe, body):
    with host(body) as url:
        for arguments in (["status", url], ["check", "--url", url], ["status", "--json", url]):
            assert tierprobe(*arguments).returncode == 3, arguments


def test_the_token_is_sent_and_its_file_checked(tierprobe, folder):
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.headers.get("Authorization"))
            body = document()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"127.0.0.1:{server.server_port}"
    try:
        for text, token in [("abc123\n", "abc123"), ("# mine\n\nops  xyz-789 \r\n", "xyz-789")]:
            (folder / "token").write_text(text)
            assert tierprobe("check", "--url", url, "--token-file", folder / "token").returncode == 0
            assert seen[-1] == f"Bearer {token}"
        for text in ("", "# nothing\n", "a\x01b\n"):
            (folder / "token").write_text(text)
            bad = tierprobe("check", "--url", url, "--token-file", folder / "token")
            assert bad.returncode == 3 and "token" in bad.stderr
    finally:
        server.shutdown()
        server.server_close()
    missing = tierprobe("check", "--url", url, "--token-file", "/nonexistent")
    assert missing.returncode == 3 and "/nonexistent" in missing.stderr


@pytest.mark.parametrize("arguments", [
    ["start", "extra"], ["abort"], ["abort", "a/../b"], ["abort", "a", "b"], ["check", "extra"], ["history", "extra"],
    ["status", "--timeout", "never"], ["status", "--cacert", "/nonexistent", "127.0.0.1:1"], ["check", "--target", ""],
    ["check", "--url", "ftp://127.0.0.1"], ["check", "--url", "::::"], ["status", "--bogus"],
])
def test_bad_usage_is_said(tierprobe, arguments):
    done = tierprobe(*arguments)
    assert done.returncode == 3 and (done.stderr or "no answer" in done.stdout or "UNKNOWN" in done.stdout)


@pytest.mark.parametrize("command", ["status", "check", "start", "abort", "history"])
def test_help_and_version(tierprobe, command):
    text = tierprobe(command, "--help")
    assert text.returncode == 0 and f"tierprobe {command}" in text.stdout and "--token-file" in text.stdout
    assert tierprobe(command, "--version").stdout.startswith("tierprobe ")


def test_a_report_of_a_run_and_of_hosts(daemon, place, folder, tierprobe):
    daemon({"cache": place}, limits={"write_mb_per_s": 0.001, "w_await_ms": 60000}, **SMALL)
    url = f"unix:{folder}/socket"
    run = json.loads(tierprobe("start", "--url", url, "--profile", "small", "--wait", "--json").stdout)["runs"][0]
    html = folder / "report.html"
    tierprobe("report", url, "127.0.0.1:1", "--html", html)
    text = html.read_text()
    assert text.startswith("<!DOCTYPE html>") and "<svg" in text and "<script" not in text
    assert not re.search(r"(?:src|href)=", text)
    assert run["id"] in text and "no answer" in text and "dd if=/dev/zero" in text
    markdown = tierprobe("report", "--url", url, run["id"]).stdout
    assert markdown.startswith("# ") and "dd if=/dev/zero" in markdown
    (folder / "run.json").write_text(json.dumps(run))
    assert run["id"] in tierprobe("report", folder / "run.json").stdout


@pytest.mark.parametrize("text", ["", "[]", "{}", "{\"id\": 3}", "\xff"])
def test_a_report_of_what_is_no_run(tierprobe, folder, text):
    (folder / "x").write_bytes(text.encode("latin-1"))
    assert tierprobe("report", folder / "x").returncode == 3


def test_a_report_that_cannot_be_written_is_said(tierprobe, folder):
    (folder / "run.json").write_text('{"id": "x", "verdict": "pass"}')
    done = tierprobe("report", folder / "run.json", "--html", folder / "none/report.html")
    assert done.returncode == 3 and "none/report.html" in done.stderr
