# SPDX-License-Identifier: Apache-2.0
"""What production shows between tests: of a disk that others write to, with the tests left out, over a restart."""

import signal

import pytest

import lab
from harness import config_text, sections_for
from lab.catalog import GOOD, MIB, SLOW

pytestmark = [pytest.mark.disk]

LIMITS = {"write_mb_per_s": 30, "w_await_ms": 20, "pass_ratio": 0.5}


def write(it, blocks):
    """What a database would: synced, past the cache, until it is done."""
    lab.run("dd", "if=/dev/zero", f"of={it.path}/production", "bs=1M", f"count={blocks}", "oflag=direct,dsync")


def hour(service):
    return service.target()["observed"]["hour"]


def seen(service):
    """The hour, once the last day's samples have been gone through."""
    return lab.wait_for("what production shows", lambda: hour(service))


def metric(service, name, **labels):
    text = service.get("/metrics").body.decode()
    start = f"tierprobe_observed_{name}{{" + ",".join(f'{key}="{value}"' for key, value in labels.items()) + "} "
    return float(next(line for line in text.splitlines() if line.startswith(start)).split()[-1])


def test_a_slow_disk_under_load(daemon, disk):
    """At 7 MB/s a write of 1 MiB takes some 100 ms, five times the limit."""
    it = disk(rate=SLOW)
    service = daemon(sections=sections_for(it.path, limits=LIMITS))
    quiet = seen(service)
    assert quiet["samples_with_writes"] == 0 and quiet["over_limit_ratio"] is None
    assert quiet["w_await"] == {"p50": None, "p95": None, "p99": None, "max": None}
    assert quiet["held_10s"] == {"wkB/s": None, "w_await": None, "started_at": None}
    write(it, 100)
    lab.wait_for("the samples", lambda: hour(service)["samples_with_writes"] >= 50)
    busy = hour(service)
    assert busy["over_limit_ratio"] > 0.5
    assert 20 <= busy["w_await"]["p50"] <= busy["w_await"]["p99"] <= busy["w_await"]["max"]
    assert 1000 < busy["held_10s"]["wkB/s"] < 4 * SLOW / 1024 and busy["held_10s"]["w_await"] > 20
    assert busy["longest_over_limit"]["duration_s"] > 0 and busy["longest_over_limit"]["started_at"]
    assert service.target()["observed"]["day"]["samples_with_writes"] >= busy["samples_with_writes"]
    # No verdict comes from it.
    assert service.target()["verdict"] == "never_run"
    assert metric(service, "over_limit_ratio", target="cache", span="hour") > 0.5
    assert metric(service, "write_await_seconds", target="cache", span="day", statistic="p99") >= 0.02

    # The same after a restart, from the samples that were kept.
    before = hour(service)
    service.stop()
    again = daemon(sections=sections_for(it.path, limits=LIMITS))
    after = seen(again)
    assert after["samples_with_writes"] >= before["samples_with_writes"]
    for key in ("w_await", "held_10s", "longest_over_limit"):
        assert after[key] == before[key]


def test_tests_are_left_out(daemon, disk):
    it = disk(rate=GOOD)
    service = daemon(sections=sections_for(it.path))
    seen(service)
    run = service.wait_run(service.start_run())
    assert run["bytes_written"] == 300 * MIB
    samples = hour(service)["samples"]
    lab.wait_for("samples after the run", lambda: hour(service)["samples"] > samples + 5)
    # What a file system writes after a test is production's: some kB.
    assert hour(service)["samples_with_writes"] < 5
    history = service.get("/history?limit=10000").json["samples"]
    assert sum(sample["run_id"] is not None for sample in history) >= 3
    assert {sample["run_id"] for sample in history} <= {None, run["id"]}


def test_another_limit_is_another_count(daemon, disk, folder):
    it = disk(rate=SLOW)
    sections = sections_for(it.path, limits=LIMITS)
    service = daemon(sections=sections)
    write(it, 20)
    lab.wait_for("the samples", lambda: (hour(service) or {"samples_with_writes": 0})["samples_with_writes"] >= 10)
    assert hour(service)["over_limit_ratio"] > 0
    sections["limits"]["w_await_ms"] = 60000
    (folder / "tierprobed.conf").write_text(config_text(sections))
    service.process.send_signal(signal.SIGHUP)
    lab.wait_for("the new limit", lambda: hour(service) and hour(service)["over_limit_ratio"] == 0)
    assert hour(service)["samples_with_writes"] >= 10


def test_a_test_of_a_neighbour_on_the_disk_is_left_out(daemon, disk):
    it = disk(rate=GOOD)
    service = daemon({"one": it.directory("one"), "two": it.directory("two")})
    lab.wait_for("what production shows", lambda: all(target["observed"]["hour"] for target in service.status["targets"]))
    run = service.wait_run(service.start_run("one"))
    samples = service.target("two")["observed"]["hour"]["samples"]
    lab.wait_for("samples after the run", lambda: service.target("two")["observed"]["hour"]["samples"] > samples + 5)
    assert run["bytes_written"] == 300 * MIB
    for name in ("one", "two"):
        assert service.target(name)["observed"]["hour"]["samples_with_writes"] < 5
        taken = service.get(f"/history?target={name}&limit=10000").json["samples"]
        assert sum(sample["run_id"] == run["id"] for sample in taken) >= 3
