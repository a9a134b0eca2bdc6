# SPDX-License-Identifier: Apache-2.0
"""[target] confirm: a fail that follows a pass is tested once more before the verdict turns."""

import datetime
import json
import time

import pytest

import lab
from harness import sections_for
from lab.catalog import MB

pytestmark = [pytest.mark.disk]

GOOD, SLOW = 40 * MB, 2 * MB
LIMITS = {"write_mb_per_s": 10, "w_await_ms": 10000, "pass_ratio": 0.5}


def codes(document):
    return [reason["code"] for reason in document["reasons"]]


def sections(it, confirm, **more):
    made = sections_for(it.path, count=40, limits=LIMITS, **more)
    made["schedule"] = {"interval": "never", **more.get("schedule", {})}
    made["target cache"]["confirm"] = confirm
    made["profile small"].update(duration="2s", count=10)
    return made


def passed(service):
    run = service.wait_run(service.start_run())
    assert run["verdict"] == "pass" and run["to_confirm"] is None and run["confirms"] is None, run["reasons"]
    return run


def failed(service, it):
    it.control["rate"] = SLOW
    run = service.wait_run(service.start_run())
    assert run["verdict"] == "fail", run["reasons"]
    return run


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@pytest.mark.parametrize("mended", [True, False])
def test_a_fail_after_a_pass_is_tested_once_more(daemon, disk, mended):
    it = disk(rate=GOOD)
    service = daemon(sections=sections(it, "3s"))
    first = passed(service)
    fail = failed(service, it)
    assert "unconfirmed" in codes(fail)
    assert seconds(fail["to_confirm"]["at"]) == pytest.approx(seconds(fail["finished_at"]) + 3, abs=0.01)
    if mended:
        it.control["rate"] = GOOD

    def standing():
        target = service.target()
        if target["standing_run"]["id"] == first["id"]:  # until the second one has ended
            assert target["verdict"] == "pass" and codes(target) == ["unconfirmed"], target["reasons"]
            return None
        return target
    target = lab.wait_for("the second test", standing)
    second = target["standing_run"]
    assert second["confirms"] == fail["id"] and second["trigger"] == "schedule" and second["to_confirm"] is None
    assert target["verdict"] == ("pass" if mended else "fail")
    assert service.stderr.count("the verdict is now fail") == (0 if mended else 1)
    assert target["next_run_at"] is None


def test_it_outlives_a_restart(daemon, disk):
    it = disk(rate=GOOD)
    service = daemon(sections=sections(it, "1h"))
    first = passed(service)
    fail = failed(service, it)
    service.stop()
    service = daemon(sections=sections(it, "1h"))
    target = service.target()
    assert (target["verdict"], target["standing_run"]["id"], codes(target)) == ("pass", first["id"], ["unconfirmed"])
    assert target["next_run_at"] == fail["to_confirm"]["at"] and target["next_run_why"] == "confirm"
    # One that is asked for decides as well.
    run = service.wait_run(service.start_run())
    assert run["confirms"] == fail["id"] and run["verdict"] == "fail" and service.target()["verdict"] == "fail"


@pytest.mark.parametrize("confirm, budget", [("3s", 45 << 20), ("none", "none")])
def test_what_is_not_confirmed_counts_at_once(daemon, disk, confirm, budget):
    """No budget for another test, or nobody asked for it."""
    it = disk(rate=GOOD)
    made = sections(it, confirm, guard={"daily_write_budget": budget})
    made["profile small"] = {"block_size": "1M", "count": 20}
    service = daemon(sections=made)
    passed(service)
    fail = failed(service, it)
    assert fail["to_confirm"] is None and "unconfirmed" not in codes(fail)
    assert service.target()["verdict"] == "fail"


def test_the_fail_counts_when_nothing_confirms_it_in_time(daemon, disk, folder):
    it = disk(rate=GOOD)
    service = daemon(sections=sections(it, "1h"))
    passed(service)
    fail = failed(service, it)
    service.stop()
    kept = folder / "state" / "runs" / f"{fail['id']}.json"
    document = json.loads(kept.read_text())
    soon = datetime.datetime.fromtimestamp(time.time() + 4, datetime.timezone.utc)
    document["to_confirm"]["counts_from"] = soon.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    kept.write_text(json.dumps(document))
    service = daemon(sections=sections(it, "1h"))
    lab.wait_for("the fail to count", lambda: service.target()["verdict"] == "fail")
    assert service.target()["standing_run"]["id"] == fail["id"] and service.target()["next_run_at"] is None
