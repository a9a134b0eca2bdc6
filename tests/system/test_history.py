# SPDX-License-Identifier: Apache-2.0
"""/history in all its forms: buckets against the samples that they sum up, parts of it by time, CSV."""

import csv
import datetime
import gzip
import io
import json
import subprocess

import pytest

import lab
from lab.catalog import GOOD

pytestmark = [pytest.mark.disk]

RATES = ("r/s", "w/s", "wkB/s", "util")


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@pytest.fixture
def service(daemon, disk):
    """A daemon that has samples of a test, and of the time around it."""
    it = daemon(disk(rate=GOOD).path)
    it.run_id = it.start_run()
    it.wait_run(it.run_id)
    lab.wait_for("samples after the run", lambda: it.target()["sample"]["seq"] >= 30 and not it.target()["sample"]["run_id"])
    return it


def curl(folder, path, *options):
    return subprocess.run(["curl", "-sS", "--fail", "--unix-socket", f"{folder}/socket", *options, f"http://localhost{path}"],
                          check=True, capture_output=True, timeout=120)


@pytest.mark.parametrize("query", ["limit=10000", "limit=1", "step=2", "limit=5&run=RUN"])
@pytest.mark.parametrize("accept", ["application/json", "text/csv"])
def test_compressed_is_the_same(service, folder, query, accept):
    """A real client; the page's end is fixed by a cursor, since samples go on coming."""
    query = query.replace("RUN", service.run_id)
    if "step" in query:
        query += f"&to={int(seconds(samples(service)[-1]['time']))}"  # past: no sample goes into the last bucket any more
    elif "run" not in query:
        query += "&since=5"
    path = f"/history?target=cache&{query}"
    plain = curl(folder, path, "-H", f"Accept: {accept}").stdout
    encoded = curl(folder, path, "-H", f"Accept: {accept}", "-H", "Accept-Encoding: br;q=1, gzip;q=0.5", "-D", folder / "head").stdout
    head = (folder / "head").read_text().lower()
    assert "content-encoding: gzip\n" in head and "vary: accept, accept-encoding\n" in head
    unzipped = gzip.decompress(encoded)
    assert curl(folder, path, "-H", f"Accept: {accept}", "--compressed").stdout[:200] == unzipped[:200]
    if accept == "text/csv":
        one, other = plain.decode().splitlines(), unzipped.decode().splitlines()
    else:
        one, other = (json.loads(text) for text in (plain, unzipped))
        one, other = one.get("samples", one.get("buckets")), other.get("samples", other.get("buckets"))
    assert len(one) >= 1 and other[:len(one)] == one  # samples may have come in between
    if len(plain) > 10000:
        assert len(encoded) < len(plain) / 3
    refused = curl(folder, path, "-H", "Accept-Encoding: gzip;q=0", "-D", folder / "head")
    assert "content-encoding" not in (folder / "head").read_text().lower() and refused.stdout[:1] in b"{t"


def samples(service, query=""):
    return service.get(f"/history?target=cache&limit=10000{query}").json["samples"]


def mean(members, key, weight):
    pairs = [(sample[key], sample[weight]) for sample in members if sample[key] is not None and sample[weight]]
    total = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / total if total else None


def test_buckets_are_sums_of_samples(service):
    page = service.get("/history?target=cache&step=2").json
    assert page["target"] == "cache" and page["step_s"] == 2
    *whole, _ = page["buckets"]  # the last one goes on growing
    assert len(whole) >= 1
    all_samples = samples(service)
    for bucket in whole:
        begin = seconds(bucket["time"])
        assert begin % 2 == 0
        members = [s for s in all_samples if begin <= seconds(s["time"]) < begin + 2 and s["interval_s"] is not None]
        assert bucket["count"] == len(members)
        assert bucket["runs"] == sorted({s["run_id"] for s in members if s["run_id"]})
        for key in (*RATES, "w_await", "aqu-sz"):
            known = [s[key] for s in members if s[key] is not None]
            assert bucket[key]["min"] == (min(known) if known else None)
            assert bucket[key]["max"] == (max(known) if known else None)
        for key in RATES:
            assert bucket[key]["mean"] == pytest.approx(mean(members, key, "interval_s"), rel=1e-4, abs=1e-4)
        # Weighted by operations, of which a sample has as many as its rate and length say.
        for sample in members:
            sample["writes"] = sample["w/s"] * sample["interval_s"]
        latency = mean(members, "w_await", "writes")
        assert bucket["w_await"]["mean"] == (None if latency is None else pytest.approx(latency, rel=1e-3, abs=1e-3))
    assert [service.run_id] in [bucket["runs"] for bucket in page["buckets"]]


def test_parts_by_time(service):
    everything = samples(service)
    first, last = everything[5]["time"], everything[-5]["time"]
    part = samples(service, f"&from={first}&to={last}")
    assert [s["seq"] for s in part] == [s["seq"] for s in everything[5:-5]]
    whole = int(seconds(last))
    assert [s["seq"] for s in samples(service, f"&to={whole}")] == [s["seq"] for s in everything if seconds(s["time"]) < whole]
    assert samples(service, "&from=4000000000") == samples(service, "&to=1000000000") == []
    assert service.get("/history?step=60&from=4000000000").json["buckets"] == []
    # A cursor is one whatever "to" says.
    cursor = service.get("/history?target=cache&limit=1").json["next_cursor"]
    page = service.get(f"/history?target=cache&since={cursor}&to={first}").json
    assert page["samples"] == [] and page["next_cursor"] == cursor
    of_run = service.get(f"/history?step=1&run={service.run_id}").json["buckets"]
    assert sum(b["count"] for b in of_run) == sum(s["run_id"] == service.run_id for s in everything)


def test_csv(service):
    answer = service.get("/history?target=cache&limit=20", headers={"Accept": "text/csv"})
    assert answer.headers["Content-Type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.body.decode())))
    assert len(rows) == 20 and {"time", "w/s", "wkB/s", "w_await", "aqu-sz", "%util"} <= set(rows[0])
    same = {s["seq"]: s for s in samples(service)}
    for row in rows:
        sample = same[int(row["seq"])]
        assert row["time"] == sample["time"] and float(row["wkB/s"]) == sample["wkB/s"]
        assert row["w_await"] == "" if sample["w_await"] is None else float(row["w_await"]) == sample["w_await"]
    answer = service.get("/history?target=cache&step=1", headers={"Accept": "text/csv;q=1, application/json;q=0.5"})
    buckets = list(csv.DictReader(io.StringIO(answer.body.decode())))
    assert all(float(b["wkB/s min"]) <= float(b["wkB/s"]) <= float(b["wkB/s max"]) for b in buckets)
    assert service.get("/history?limit=1", headers={"Accept": "*/*"}).headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("query,code", [
    ("step=0", "bad_parameter"), ("step=x", "bad_parameter"), ("step=-1", "bad_parameter"), ("step=99999999", "bad_parameter"),
    ("from=yesterday", "bad_parameter"), ("to=", "bad_parameter"), ("from=2026-13-01T00:00:00Z", "bad_parameter"), ("from=2026-02-30T00:00:00Z", "bad_parameter"),
    ("from=99999999999999999999", "bad_parameter"), ("from=20&to=10", "bad_parameter"), ("from=10&to=10", "bad_parameter"),
    ("step=1&since=1", "bad_parameter"), ("step=1&limit=5", "bad_parameter"), ("run=20200101T000000-aaaaaa", "unknown_run")])
def test_what_cannot_be_meant_is_refused(daemon, place, query, code):
    service = daemon(place)
    answer = service.get(f"/history?target=cache&{query}")
    assert answer.status == (404 if code == "unknown_run" else 400) and answer.code == code, answer
