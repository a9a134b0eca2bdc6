# SPDX-License-Identifier: Apache-2.0
"""/metrics as its readers see it: promtool, and a Prometheus that scrapes."""

import datetime
import json
import math
import re
import shutil
import signal
import subprocess

import pytest

from harness import free_port, lab, sections_for
from stub import Answer

CONTRACT = """build_info target_info verdict last_run_timestamp_seconds last_run_duration_seconds
    last_run_write_bytes_per_second last_run_write_await_seconds write_latency_seconds limit_write_bytes_per_second
    limit_write_await_seconds runs_total test_written_bytes_total stale degraded test_written_lifetime_bytes
    tls_certificate_expiry_timestamp_seconds config_error next_run_timestamp_seconds samples_missed_total
    http_requests_total device_write_bytes_per_second device_write_await_seconds device_utilization_ratio""".split()
OPEN = "application/openmetrics-text"


def parse(text):
    """{(name, ((label, value), ...)): value} of the text format, whose every line must be one that is allowed."""
    series = {}
    for line in text.splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP tierprobe_\w+ \S.*|TYPE tierprobe_\w+ (gauge|counter|histogram|info)|UNIT \S+ \w+|EOF)", line)
            continue
        match = re.fullmatch(r'(tierprobe_\w+)(?:\{(.*)\})? (\S+)', line)
        assert match, line
        labels = tuple(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
        assert (match[1], labels) not in series, line
        series[match[1], labels] = float(match[3])
    return series


def metrics(stub, *headers):
    answer = Answer(stub.request("GET", "/metrics", *headers))
    assert answer.status == 200
    return answer


def of(series, name, **labels):
    return series["tierprobe_" + name, tuple(labels.items())]


promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")


@promtool
def test_promtool_finds_nothing(make):
    for env in ({}, {"verdict": "never_run", "targets": ""}, {"verdict": "fail", "targets": "a b c"}):
        stub = make(**env)
        stub.request("POST", "/run")
        done = subprocess.run(["promtool", "check", "metrics"], input=metrics(stub).body, capture_output=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_names_and_forms(make):
    stub = make()
    stub.request("GET", "/nothing")
    answer = metrics(stub)
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    text = answer.body.decode()
    series = parse(text)
    for name in CONTRACT:
        assert f"# HELP tierprobe_{name} " in text and f"# TYPE tierprobe_{name} " in text, name
    assert of(series, "limit_write_bytes_per_second") == 614400000 and of(series, "limit_write_await_seconds") == 0.02
    assert of(series, "verdict", target="cache", verdict="pass") == 1
    assert of(series, "verdict", target="cache", verdict="never_run") == 0
    assert of(series, "http_requests_total", code="404", method="GET") == 1
    assert of(series, "target_info", target="cache", path="/db2/c?che", device="", filesystem="", mount_point="") == 1
    assert math.isnan(of(series, "last_run_timestamp_seconds", target="logs"))
    bounds = [labels[1][1] for name, labels in series if name.endswith("_bucket") and labels[0][1] == "cache"]
    assert bounds[-1] == "+Inf" and [float(b) for b in bounds] == sorted(float(b) for b in bounds)

    answer = metrics(stub, f"Accept: {OPEN};version=1.0.0,{OPEN};version=0.0.1;q=0.75,text/plain;q=0.5,*/*;q=0.1")
    assert answer.headers["content-type"] == f"{OPEN}; version=1.0.0; charset=utf-8"
    assert answer.headers["vary"] == "Accept"
    text = answer.body.decode()
    assert text.endswith("\n# EOF\n") and text.count("# EOF") == 1
    assert set(parse(text)) >= {key for key in series if not key[0].endswith("_bucket")}
    for kind in ("# TYPE tierprobe_build info", "# TYPE tierprobe_runs counter",
                 "# UNIT tierprobe_limit_write_await_seconds seconds"):
        assert kind + "\n" in text
    for unit in re.findall(r"# UNIT tierprobe_(\w+) (\w+)", text):
        assert unit[0].endswith("_" + unit[1])
    for accept in (f"{OPEN};q=0", f"{OPEN};q=0.3,text/plain", "*/*", "text/html", f"{OPEN};q=0.5,*/*"):
        assert metrics(stub, "Accept: " + accept).headers["content-type"].startswith("text/plain"), accept


def test_series_stay(make):
    """While a target exists, whatever becomes of it, every series that it had is there."""
    stub = make(verdict="never_run")
    before = set(parse(metrics(stub).body.decode()))
    for command in ("change", "append 3"):
        stub.command(command)
        stub.request("POST", "/run")
        now = set(parse(metrics(stub).body.decode()))
        assert before <= now and all(name == "tierprobe_http_requests_total" for name, _ in now - before)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("prometheus"), reason="prometheus is not installed")
def test_a_prometheus_scrapes(prometheus, daemon, place):
    it = daemon(sections=sections_for(place, count=4), listen=f"127.0.0.1:{free_port()}")
    ask = prometheus(it.listen)
    lab.wait_for("a scrape", lambda: ask("up == 1"), 60)
    assert [value for _, value in ask('tierprobe_verdict{target="cache",verdict="never_run"}')] == [1]
    run = it.whole_run()
    ended = lab.wait_for("the run in Prometheus", lambda: ask("tierprobe_last_run_timestamp_seconds > 0"), 60)
    assert ended[0][0]["target"] == "cache"
    assert ask(f'tierprobe_verdict{{verdict="{run["verdict"]}"}}')[0][1] == 1
    written = ask("tierprobe_last_run_write_bytes_per_second")[0][1]
    if run["measured"]["wkB/s"] is not None:
        assert written == pytest.approx(run["measured"]["wkB/s"] * 1024, rel=1e-5)  # six digits
    assert ask("tierprobe_write_latency_seconds_count")[0][1] == 4
    assert ask("histogram_quantile(0.5, tierprobe_write_latency_seconds_bucket)")[0][1] > 0
    assert ask("tierprobe_test_written_bytes_total")[0][1] == 4 << 20
    assert ask("tierprobe_build_info")[0][0]["version"]


def test_a_refused_reload_is_seen(daemon, place):
    it = daemon(place)

    def error():
        return of(parse(it.get("/metrics").body.decode()), "config_error")

    assert error() == 0
    config = it.folder / "tierprobed.conf"
    good = config.read_text()
    for text, expected in ((good + "[nonsense]\n", 1), (good, 0)):
        config.write_text(text)
        it.process.send_signal(signal.SIGHUP)
        lab.wait_for(f"config_error {expected}", lambda: error() == expected, 60)
        said = it.status["config_error"]
        if expected:
            assert str(config) in said and "unknown section [nonsense]" in said and "known sections" in said
            assert "unknown section [nonsense]" in it.get("/", headers={"Accept": "text/html"}).body.decode()
        else:
            assert said is None


@pytest.mark.disk
def test_figures_have_six_digits_and_times_and_bytes_all(daemon, disk):
    service = daemon(disk(rate=40_000_000).path, count=40)
    run = service.whole_run()
    lab.wait_for("a sample with all of it over", lambda: service.target()["sample"] and not service.target()["sample"]["run_id"])
    values = dict(line.rsplit(" ", 1) for line in service.get("/metrics").body.decode().splitlines() if not line.startswith("#"))
    for name, value in values.items():
        exact = re.match(r"tierprobe_(\w+_total|\w+_timestamp_seconds|limit_\w+|write_latency_\w+)\b", name)
        exact = exact or (re.match(r"\w*_bytes\b", name) and value.isdigit())
        digits = re.sub(r"e.*|[-.]", "", value).lstrip("0")
        assert exact or value == "NaN" or len(digits) <= 6, (name, value)
    started = datetime.datetime.fromisoformat(service.status["service"]["started_at"].replace("Z", "+00:00")).timestamp()
    assert float(values["tierprobe_start_timestamp_seconds"]) == pytest.approx(started, abs=0.002)
    assert float(values['tierprobe_last_run_timestamp_seconds{target="cache"}']) == pytest.approx(run["finished_epoch_s"], abs=1)
    assert int(values['tierprobe_test_written_bytes_total{target="cache"}']) == 40 << 20
