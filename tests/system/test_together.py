# SPDX-License-Identifier: Apache-2.0
"""Tests of different disks that begin at the same moment, as a database uses all its caches at once."""

import datetime
import json
import subprocess

import pytest

import lab
from harness import TIERPROBE, sections_for
from lab.catalog import GOOD, MB

pytestmark = [pytest.mark.disk]

LIMITS = {"write_mb_per_s": 1, "w_await_ms": 1000, "pass_ratio": 0.5}


def began(run):
    return datetime.datetime.fromisoformat(run["started_at"].replace("Z", "+00:00")).timestamp()


def companions(run):
    return {(one["target"], one["run_id"]) for one in run["together"] or []}


def ended(service, answer):
    """{TARGET: RUN} of those that POST /run has started."""
    assert answer.status == 202, answer
    return {run["target"]: service.wait_run(run["id"]) for run in answer.json["runs"]}


@pytest.fixture
def two_disks(disk):
    return disk(rate=GOOD, size="1G"), disk(rate=GOOD, size="1G")


def test_all_disks_at_once_and_one_disk_in_turn(daemon, two_disks):
    one, two = two_disks
    targets = {"a": one.directory("a"), "b": one.directory("b"), "c": two.directory("c")}
    service = daemon(sections=sections_for(targets, limits=LIMITS, count=100))
    runs = ended(service, service.post("/run?together=yes"))
    assert [run["verdict"] for run in runs.values()] == ["pass"] * 3
    assert companions(runs["a"]) == {("c", runs["c"]["id"])} and companions(runs["c"]) == {("a", runs["a"]["id"])}
    assert runs["b"]["together"] is None  # on the disk of a: it came after
    assert began(runs["b"]) >= began(runs["a"]) + runs["a"]["elapsed_s"]
    assert abs(began(runs["a"]) - began(runs["c"])) < runs["a"]["elapsed_s"]

    # Each on its own, if nobody asks for more.
    alone = ended(service, service.post("/run"))
    assert [run["together"] for run in alone.values()] == [None] * 3


def test_none_begins_before_the_other_can(daemon, two_disks):
    """One of the disks is tested by somebody else: both wait."""
    one, two = two_disks
    service = daemon(sections=sections_for({"a": one.directory("a"), "b": two.directory("b")}, limits=LIMITS, count=100))
    two.control["rate"] = 20 * MB
    other = lab.spawn(TIERPROBE, "run", two.path, "--count", 600, "--json", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        lab.wait_for("the other's bytes", lambda: two.control["written"] > 8 << 20)
        answer = service.post("/run", body=json.dumps({"together": True}), headers={"Content-Type": "application/json"})
        ids = {run["target"]: run["id"] for run in answer.json["runs"]}
        lab.wait_for("that it waits", lambda: f"run {ids['b']} of target b waits" in service.stderr)
        assert {service.run(run_id)["state"] for run_id in ids.values()} == {"queued"}
    finally:
        lab.kill(other)
        other.stdout.close()
        two.control["rate"] = GOOD
    runs = ended(service, answer)
    assert companions(runs["a"]) == {("b", ids["b"])} and companions(runs["b"]) == {("a", ids["a"])}


def test_the_schedule_has_all_due_together(daemon, two_disks, tierprobed, folder):
    one, two = two_disks
    sections = sections_for({"a": one.directory("a"), "b": two.directory("b")}, limits=LIMITS, count=20,
                            schedule={"interval": "8s", "jitter": "4s", "together": "yes"},
                            guard={"max_foreign_mb_per_s": "none"})
    service = daemon(sections=sections)
    target_runs = lab.wait_for("a scheduled run of each", lambda: [service.target(name)["last_run"] for name in "ab"
                                                                 if service.target(name)["last_run"]][1:] and
                               [service.target(name)["last_run"] for name in "ab"])
    for run in target_runs:
        assert run["trigger"] == "schedule" and len(run["together"]) == 1, run
    service.stop()
    config = folder / "together.conf"
    config.write_text("[schedule]\ninterval = 6h\njitter = 2h\ntogether = yes\n"
                      f"[target a]\npath = {one.path}\n[target b]\npath = {two.path}\n")
    printed = tierprobed("--config", config, "--show-schedule").stdout
    a, b = (part.splitlines()[1:] for part in printed.split("\nb (")[0:2])
    assert a and a == b


@pytest.mark.parametrize("query, body", [("together=maybe", None), ("together=", None), ("", {"together": "yes"}),
                                         ("", {"together": 1})])
def test_bad_values_start_nothing(daemon, disk, query, body):
    service = daemon(sections=sections_for(disk(rate=20 * MB).path))
    answer = service.post(f"/run?{query}", body=json.dumps(body) if body else None,
                          headers={"Content-Type": "application/json"} if body else {})
    assert answer.status == 400 and "together" in answer.json["detail"], answer
    assert service.get("/runs").json["runs"] == []


def test_the_command_asks_for_it(daemon, two_disks, folder):
    one, two = two_disks
    daemon(sections=sections_for({"a": one.directory("a"), "b": two.directory("b")}, limits=LIMITS, count=20))
    done = lab.run(TIERPROBE, "start", f"--url=unix:{folder}/socket", "--together", "--wait", "--json", check=False)
    assert [len(run["together"]) for run in json.loads(done.stdout)["runs"]] == [1, 1]
