# SPDX-License-Identifier: Apache-2.0
"""The ramp: 1, 2, 4, ... writers until w_await reaches the limit, and what is left when it ends before that."""

import json
import time

import pytest

import lab
from harness import sections_for
from lab.catalog import GOOD, MB

pytestmark = [pytest.mark.disk, pytest.mark.installed]

FREE = {"write_mb_per_s": 1, "w_await_ms": 1000, "pass_ratio": 0}


def codes(run):
    return [reason["code"] for reason in run["reasons"]]


def ramp_sections(path, streams=8, count=200, duration="1s", **more):
    sections = sections_for(path, **more)
    sections["profile ramp"] = {"streams": streams, "count": count, "duration": duration}
    return sections


def check_curve(run, limit_ms):
    """What holds for every ramp that came to its end."""
    steps, headroom = run["ramp"], run["headroom"]
    assert [step["streams"] for step in steps] == [1 << n for n in range(len(steps))]
    assert run["profile"] == "ramp" and run["certifying"] is False and run["test"]["ramp"] is True
    for step in steps:
        assert set(step) == {"streams", "meets_latency", "wkB/s", "w_await", "w/s", "aqu-sz", "util", "app_write_mb_per_s",
                             "latency_ms"}
        assert step["meets_latency"] == (step["w_await"] < limit_ms)
        assert step["latency_ms"]["p50"] <= step["latency_ms"]["max"]
    # It ends where the latency is no longer met, or with the most streams there may be.
    assert all(step["meets_latency"] for step in steps[:-1])
    meeting = [step for step in steps if step["meets_latency"]]
    if not meeting:
        assert headroom is None
        return steps
    best = max(meeting, key=lambda step: step["wkB/s"])
    assert (headroom["streams"], headroom["w_await_ms"]) == (best["streams"], best["w_await"])
    assert headroom["write_mb_per_s"] == pytest.approx(best["wkB/s"] / 1000, rel=1e-9)
    # The run's own figures are those of the best step.
    assert run["measured"]["wkB/s"] == best["wkB/s"] and run["measured"]["w_await"] == best["w_await"]
    assert run["latency_ms"] == best["latency_ms"]
    return steps


def test_to_the_most_streams(daemon, disk):
    it = disk(rate=100 * MB, size="1G")  # one that takes seconds: a busy machine loses some samples
    service = daemon(sections=ramp_sections(it.path, duration="1m", limits=FREE))
    run_id = service.start_run(profile="ramp")

    def ended():
        run = service.run(run_id)
        if run["state"] == "running":  # nothing of a step passes for the result
            assert (run["verdict"], run["reasons"], run["progress"]) == (None, [], None)
            assert [c["value"] for c in run["criteria"]] == [None, None]
        return run["state"] not in ("queued", "running") and run
    run = lab.wait_for("the end", ended)
    steps = check_curve(run, 1000)
    assert (run["state"], run["verdict"], codes(run)) == ("finished", "pass", [])
    assert [step["streams"] for step in steps] == [1, 2, 4, 8]
    assert run["bytes_written"] == 4 * 200 << 20 and run["progress"] == 1
    assert it.nothing_left() is None


def test_latency_that_grows_with_the_writers(daemon, disk):
    """A disk that takes 100 MB/s one after another: n writers wait for n blocks of 10 ms each."""
    it = disk(rate=100 * MB)
    limits = {**FREE, "w_await_ms": 25}
    run = daemon(sections=ramp_sections(it.path, streams=64, limits=limits)).whole_run(profile="ramp")
    steps = check_curve(run, 25)
    assert steps[-1]["streams"] in (2, 4, 8, 16) and steps[-1]["w_await"] >= 25  # 10.5 ms a block; the log's are smaller
    assert all(a["w_await"] < b["w_await"] for a, b in zip(steps, steps[1:]))
    assert run["headroom"]["streams"] < steps[-1]["streams"]
    assert run["verdict"] == "pass"
    assert it.nothing_left() is None


def test_latency_that_does_not_grow(daemon, disk):
    """A disk that needs 40 ms for every write, however many there are at once: throughput grows instead."""
    it = disk(write_delay_us=40000)
    run = daemon(sections=ramp_sections(it.path, limits=FREE)).whole_run(profile="ramp")
    steps = check_curve(run, 1000)
    assert [step["streams"] for step in steps] == [1, 2, 4, 8]
    assert all(step["w_await"] >= 40 for step in steps)
    # How much it grows is a matter of the file system's log, for which the writers wait in turn, and of the processor that
    # is left for what plays the disk: with one writer it does 20 blocks a second at most.
    assert max(step["wkB/s"] for step in steps[1:]) > 1.2 * steps[0]["wkB/s"]
    assert all(step["meets_latency"] for step in steps)
    assert run["headroom"]["streams"] > 1
    assert it.nothing_left() is None


def test_no_step_meets_the_latency(daemon, tierprobe, disk):
    it = disk(write_delay_us=80000)
    limits = {"write_mb_per_s": 1, "w_await_ms": 20, "pass_ratio": 0.9}
    run = daemon(sections=ramp_sections(it.path, limits=limits)).whole_run(profile="ramp")
    assert len(check_curve(run, 20)) == 1
    assert (run["verdict"], codes(run)) == ("fail", ["write_latency_high"])
    assert it.nothing_left() is None


def test_command(tierprobe, folder, disk):
    it = disk(rate=200 * MB)
    (folder / "c").write_text("[profile ramp]\nduration = 1s\nstreams = 4\ncount = 100\n")
    done = tierprobe("run", it.path, "--config", folder / "c", "--profile", "ramp", "--w-await-ms", 1000,
                     "--write-mb-per-s", 20, "--pass-ratio", 0, "--json")
    run = json.loads(done.stdout)
    assert done.returncode == 0 and len(check_curve(run, 1000)) == 3
    done = tierprobe("run", it.path, "--config", folder / "c", "--profile", "ramp", "--w-await-ms", 1000,
                     "--write-mb-per-s", 20, "--pass-ratio", 0)
    assert done.returncode == 0
    rows = [line.split() for line in done.stdout.splitlines() if line.split()[:1] in (["1"], ["2"], ["4"])]
    assert len(rows) == 3 and sum("most that meets the latency" in line for line in done.stdout.splitlines()) == 1
    assert it.nothing_left() is None


def test_space_of_one_step_is_enough(daemon, disk):
    """What the guard asks for is what a step needs, not count times streams."""
    it = disk(programmable=False, size="700M")
    empty = it.free_bytes()
    service = daemon(sections=ramp_sections(it.path, streams=64, count=400, limits=FREE))
    run = service.whole_run(profile="ramp")
    assert len(check_curve(run, 1000)) == 7 and run["verdict"] == "pass"
    def accepted():  # xfs gives the space of 64 files back in its own time
        answer = service.post("/run?profile=ramp")
        return answer.status == 202 and answer
    service.wait_run(lab.wait_for("the space", accepted).json["runs"][0]["id"])
    lab.wait_for("all of the space", lambda: it.free_bytes() > empty - (10 << 20))
    it.fill(leave="300M")
    answer = service.post("/run?profile=ramp")
    if answer.status == 202:  # the daemon has not looked at the space since
        assert codes(service.wait_run(answer.json["runs"][0]["id"])) == ["no_space"]
    else:
        assert (answer.status, answer.code) == (503, "no_space")
    it.unfill()


def in_the_second_step(service, run_id):
    return lab.wait_for("the second step", lambda: len(service.run(run_id)["ramp"]) == 1 and
                        service.target()["current_run"], 60)


def test_abort_in_the_middle(daemon, disk):
    it = disk(rate=60 * MB)
    service = daemon(sections=ramp_sections(it.path, limits=FREE))
    run_id = service.start_run(profile="ramp")
    in_the_second_step(service, run_id)
    assert service.request("DELETE", f"/runs/{run_id}").status == 202
    run = service.wait_run(run_id)
    assert (run["state"], run["verdict"], codes(run)) == ("aborted", "inconclusive", ["aborted"])
    assert [step["streams"] for step in run["ramp"]] == [1]
    assert it.nothing_left() is None


def test_abort_at_any_moment(daemon, disk):
    """Between two steps as well: an abort that was answered with 202 ends the ramp there."""
    it = disk(programmable=False, size="300M")
    service = daemon(sections=ramp_sections(it.path, streams=128, count=4, limits=FREE))
    ends, number = set(), 0
    deadline = time.monotonic() + 120
    while (number < 40 or len(ends) < 3) and time.monotonic() < deadline:
        run_id = service.start_run(profile="ramp")
        time.sleep(number * 0.004)  # no wait for anything: just another moment each time
        number += 1
        status = service.request("DELETE", f"/runs/{run_id}").status
        assert status in (202, 409)
        run = service.wait_run(run_id)
        assert (run["state"], codes(run)) == (("aborted", ["aborted"]) if status == 202 else ("finished", codes(run)))
        ends.add(len(run["ramp"]))
    assert len(ends) > 2, ends
    assert it.nothing_left() is None


def test_daemon_ends_in_the_middle(daemon, disk):
    it = disk(rate=60 * MB)
    service = daemon(sections=ramp_sections(it.path, limits=FREE))
    run_id = service.start_run(profile="ramp")
    in_the_second_step(service, run_id)
    service.stop()
    assert it.nothing_left() is None
    run = daemon(sections=ramp_sections(it.path, limits=FREE)).run(run_id)
    assert (run["state"], codes(run)) == ("aborted", ["aborted"])
    assert [step["streams"] for step in run["ramp"]] == [1]


def test_error_in_the_middle(daemon, disk):
    it = disk(rate=GOOD, error=5, error_after=150 << 20)
    service = daemon(sections=ramp_sections(it.path, count=100, limits=FREE))
    it.control.mark()
    run = service.whole_run(profile="ramp")
    assert (run["state"], run["verdict"], codes(run)[0]) == ("finished", "fail", "write_error")
    assert [step["streams"] for step in run["ramp"]] == [1]
    service.stop()
    it.heal()
    assert it.nothing_left() is None


def test_hang_in_the_middle(daemon, disk):
    """Writers that do not come back are the result, however good the steps before were."""
    it = disk(rate=GOOD, hang_after=150 << 20)
    service = daemon(sections=ramp_sections(it.path, count=100, limits={**FREE, "pass_ratio": 0.9}))
    it.control.mark()
    run = service.whole_run(profile="ramp")
    assert run["state"] == "finished" and run["verdict"] != "pass" and "stalled" in codes(run), run["reasons"]
    assert [step["streams"] for step in run["ramp"]] == [1]
    it.unhang()
    assert it.nothing_left() is None


def test_time_limit_in_the_middle(daemon, disk):
    """The step that the limit cuts does not count; those before it do."""
    it = disk(rate=150 * MB)
    service = daemon(sections=ramp_sections(it.path, streams=64, limits=FREE, guard={"max_duration": "3500ms"}))
    run = service.whole_run(profile="ramp")
    steps = check_curve(run, 1000)
    assert (run["state"], run["verdict"], codes(run)) == ("finished", "pass", ["truncated"]), run["reasons"]
    assert 1 <= len(steps) < 7  # each takes a second at least
    assert f"at {2 * steps[-1]['streams']} streams" in run["reasons"][0]["detail"]
    assert it.nothing_left() is None


def test_time_limit_in_the_first_step(tierprobe, disk):
    """With no whole step, what was measured of the first is judged."""
    it = disk(rate=GOOD)
    done = tierprobe("run", it.path, "--profile", "ramp", "--count", 400, "--max-duration", "1s", "--write-mb-per-s", 20,
                     "--w-await-ms", 1000, "--pass-ratio", 0, "--json")
    run = json.loads(done.stdout)
    assert run["ramp"] == [] and run["headroom"] is None
    assert (run["state"], run["verdict"], codes(run)) == ("finished", "pass", ["truncated"]), run["reasons"]
    assert it.nothing_left() is None


def test_steps_in_history_and_after_a_restart(daemon, disk):
    it = disk(rate=GOOD)
    service = daemon(sections=ramp_sections(it.path, streams=2, count=100, limits=FREE))
    run = service.whole_run(profile="ramp")
    service.stop()
    again = daemon(sections=ramp_sections(it.path, limits=FREE))
    kept = again.run(run["id"])
    assert (kept["ramp"], kept["headroom"]) == (run["ramp"], run["headroom"])
    assert service.process.returncode == 0
