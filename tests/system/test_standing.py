# SPDX-License-Identifier: Apache-2.0
"""Whose run decides: the verdict that stands for a target, when it is stale, when the device has become worse."""

import datetime
import json
import signal
import statistics

import pytest

import lab
from harness import config_text, sections_for
from lab.catalog import GOOD, MB

pytestmark = [pytest.mark.slow, pytest.mark.disk]

OTHER = {"profile other": {"block_size": "1M", "count": 200}}


def codes(document):
    return [reason["code"] for reason in document["reasons"]]


def detail(target, code):
    return next(reason["detail"] for reason in target["reasons"] if reason["code"] == code)


def reload(service, sections):
    sections.setdefault("http", {}).setdefault("listen", service.listen)
    (service.folder / "tierprobed.conf").write_text(config_text(sections))
    before = service.stderr.count("reloaded")
    service.process.send_signal(signal.SIGHUP)
    lab.wait_for("the reload", lambda: service.stderr.count("reloaded") > before)


def kept(service):
    return service.folder / "state" / "runs"


def rfc3339(**shift):
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(**shift)
    return at.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def ready(service):
    return service.get("/readyz").status == 200


# ---- whose run ----

def check_stands(service, run_id, verdict):
    target = service.target()
    assert (target["standing_run"]["id"], target["verdict"]) == (run_id, verdict), target
    assert target["standing_run"]["verdict"] == service.status["verdict"] == verdict
    assert ready(service) == (verdict == "pass" and not target["stale"])


@pytest.mark.parametrize("rate,verdict", [(GOOD, "pass"), (10 * MB, "fail")], ids=["pass", "fail"])
def test_only_the_official_profile_decides(rate, verdict, daemon, disk):
    it = disk(rate=rate, fs="ext4")
    sections = sections_for(it.path, count=60, **OTHER)
    service = daemon(sections=sections)
    assert not ready(service) and service.target()["standing_run"] is None
    run = service.whole_run()
    assert (run["verdict"], run["official"]) == (verdict, True)
    check_stands(service, run["id"], verdict)

    it.behave(rate=30 * MB)
    aborted = service.start_run()
    service.wait_writing(aborted)
    assert service.request("DELETE", f"/runs/{aborted}").status == 202
    assert service.wait_run(aborted)["state"] == "aborted"
    assert service.target()["last_run"]["id"] == aborted
    check_stands(service, run["id"], verdict)

    # A run of another profile, on a disk that would turn the verdict round.
    it.behave(rate=GOOD if verdict == "fail" else 5 * MB)
    other = service.whole_run(profile="other")
    assert (other["verdict"], other["official"]) == ("pass" if verdict == "fail" else "fail", False)
    assert service.target()["last_run"]["id"] == other["id"]
    check_stands(service, run["id"], verdict)

    # The daemon is stopped, and dies, in the middle of a run.
    for how in ("stop", "kill"):
        it.behave(rate=20 * MB)
        cut = service.start_run()
        service.wait_writing(cut)
        getattr(service, how)()
        lab.wait_for("the writers' end", lambda: it.open_files() == [])
        service = daemon(sections=sections)
        assert service.run(cut)["state"] == "aborted"
        check_stands(service, run["id"], verdict)

    # The next of its own profile does replace it.
    it.behave(rate=GOOD)
    again = service.whole_run()
    check_stands(service, again["id"], "pass")
    service.stop()


def test_a_run_that_could_not_be_made_decides(daemon, disk):
    """It ended by itself: that nothing could be measured is what is known now."""
    it = disk(rate=GOOD)
    service = daemon(it.path, count=200)
    first = service.whole_run()
    assert first["verdict"] == "pass", first["reasons"]
    lab.run("mount", "-o", "remount,ro", it.path)
    refused = service.whole_run()
    assert refused["verdict"] == "inconclusive"
    check_stands(service, refused["id"], "inconclusive")


def test_without_a_name_the_official_profile_is_run(daemon, disk):
    it = disk(rate=GOOD)
    service = daemon(sections=sections_for(it.path, count=60, official="other", **OTHER))
    run = service.wait_run(service.post("/run").json["runs"][0]["id"])
    assert (run["profile"], run["official"]) == ("other", True)
    check_stands(service, run["id"], "pass")


def test_the_schedule_is_for_the_official_profile(daemon, disk):
    """Runs of other profiles do not put it off, and it runs its own."""
    it = disk(rate=GOOD)
    sections = sections_for(it.path, count=60, schedule={"interval": "24h", "jitter": "none"}, **OTHER)
    service = daemon(sections=sections)
    first = service.whole_run()
    planned = service.target()["next_run_at"]
    service.whole_run(profile="other")
    assert service.target()["next_run_at"] == planned
    # An abort does not put it off by a day, and does not bring it back at once either.
    service.stop()
    document = kept(service) / f"{first['id']}.json"
    run = json.loads(document.read_text())
    for time in ("queued_at", "started_at", "finished_at"):
        run[time] = rfc3339(hours=-30)
    document.write_text(json.dumps(run))
    service = daemon(sections=sections)
    assert service.target()["next_run_at"] < rfc3339(minutes=3) and service.target()["next_run_why"] == "missed"
    it.behave(rate=20 * MB)
    aborted = service.start_run()
    service.wait_writing(aborted)
    assert service.request("DELETE", f"/runs/{aborted}").status == 202
    service.wait_run(aborted)
    assert rfc3339(minutes=55) < service.target()["next_run_at"] < rfc3339(minutes=65)


def test_certifying(daemon, tierprobe, disk):
    """Exactly the documented procedure, its limits included; and complete."""
    it = disk(rate=GOOD)
    documented = {"write_mb_per_s": 600, "w_await_ms": 20, "pass_ratio": 0.9}
    sections = sections_for(it.path, count=10000, limits=documented, guard={"max_duration": "1s", "min_free": "0"},
                            **{"profile less": {"block_size": "1M", "count": 9999}})
    service = daemon(sections=sections)
    certifying = {profile["name"]: profile["certifying"] for profile in service.status["profiles"]}
    assert certifying["small"] and certifying["procedure"] and not certifying["less"] and not certifying["quick"]
    reload(service, {**sections, "limits": {**documented, "w_await_ms": 500}})
    certifying = {profile["name"]: profile["certifying"] for profile in service.status["profiles"]}
    assert not any(certifying.values())
    for arguments in (["--count", 60], ["--count", 60, "--w-await-ms", 500]):
        run = json.loads(tierprobe("run", it.path, "--json", *arguments).stdout)
        assert run["certifying"] is False


# ---- stale ----

def stale(service, code):
    """Waits until the verdict is stale for this reason alone; returns the sentence."""
    def now():
        target = service.target()
        return target if target["stale"] and codes(target) == [code] else None
    target = lab.wait_for(f"a verdict that is stale: {code}", now)
    assert target["verdict"] == "pass" and not ready(service)
    return detail(target, code)


def fresh(service):
    lab.wait_for("a fresh verdict", lambda: ready(service) and service.target()["reasons"] == [])


def test_what_makes_it_stale(daemon, disk):
    it = disk(rate=GOOD)
    sections = sections_for(it.path, count=60, **OTHER)
    with lab.counters(it) as row:
        device = row.root / "class" / "block" / it.name / "device"
        device.mkdir()
        (device / "firmware_rev").write_text("1.0\n")
        service = daemon(sections=sections, arguments=["--sysfs", row.root])
        assert service.whole_run()["verdict"] == "pass"
        fresh(service)

        reload(service, {**sections, "limits": {**sections["limits"], "w_await_ms": 12.5}})
        assert "12.5" in stale(service, "limits_changed")
        reload(service, sections)
        fresh(service)
        reload(service, {**sections, "profile small": {"block_size": "1M", "count": 61}})
        assert "small" in stale(service, "profile_changed")
        reload(service, {**sections, "target cache": {"path": it.path, "profile": "other"}})
        assert "other" in stale(service, "profile_changed")
        reload(service, sections)
        fresh(service)

        (device / "firmware_rev").write_text("2.0\n")
        service.process.send_signal(signal.SIGHUP)
        assert "2.0" in stale(service, "firmware_changed")
        (device / "firmware_rev").write_text("1.0\n")
        service.process.send_signal(signal.SIGHUP)
        fresh(service)

        lab.run("umount", it.path)
        assert it.name in stale(service, "device_changed")
        it.mount()
        fresh(service)
        # Limits, profile, firmware, device: there and back again. Another reason is no other verdict.
        assert service.stderr.count("the verdict is now pass, stale") == 4
        assert service.stderr.count("the verdict is now pass, it was pass, stale") == 4
        service.stop()


def test_another_disk_and_another_file_system(daemon, disk):
    it, other = disk(rate=GOOD), disk(rate=GOOD, fs="ext4")
    service = daemon(it.path, count=60)
    assert service.whole_run()["verdict"] == "pass"
    fresh(service)
    lab.run("umount", it.path)
    lab.run("mount", other.device, it.path)
    try:
        target = lab.wait_for("a stale verdict", lambda: (lambda t: t if t["stale"] and t["device"] and
                                                          t["device"]["name"] == other.name else None)(service.target()))
        assert codes(target) == ["device_changed", "filesystem_changed"]
        assert other.name in detail(target, "device_changed") and it.name in detail(target, "device_changed")
        assert "ext4" in detail(target, "filesystem_changed") and "xfs" in detail(target, "filesystem_changed")
    finally:
        lab.run("umount", it.path)
    it.mount()
    fresh(service)
    # The same disk with another file system.
    lab.run("umount", it.path)
    lab.run("mkfs.ext4", "-q", "-F", it.device)
    it.filesystem = "ext4"
    it.mount()
    assert "ext4" in stale(service, "filesystem_changed")
    assert service.whole_run()["verdict"] == "pass"
    fresh(service)


def test_too_old(daemon, disk):
    it = disk(rate=GOOD)
    sections = sections_for(it.path, count=60, schedule={"interval": "never"})
    service = daemon(sections=sections)
    run_id = service.whole_run()["id"]
    service.stop()
    document = kept(service) / f"{run_id}.json"
    run = json.loads(document.read_text())
    document.write_text(json.dumps({**run, "finished_at": rfc3339(days=-8)}))
    service = daemon(sections=sections)
    assert "168" in stale(service, "too_old")
    assert service.target()["age_s"] > 8 * 86400 - 60


# ---- degraded ----

def test_degraded(daemon, disk):
    """Six certifying runs are made up beside a real one, which then is the worst of them by far."""
    it = disk(rate=GOOD)
    sections = sections_for(it.path, count=60)
    service = daemon(sections=sections)
    run_id = service.whole_run()["id"]
    assert service.target()["degraded"] is False
    service.stop()
    run = json.loads((kept(service) / f"{run_id}.json").read_text())
    run["certifying"] = True
    (kept(service) / f"{run_id}.json").write_text(json.dumps(run))
    day = f"{datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=1):%Y%m%d}"
    ids = [f"{day}T00000{number}-000000" for number in range(6)]
    throughput = [run["measured"]["wkB/s"] * (2 + 0.01 * i) for i in range(6)]
    for past_id, value in zip(ids, throughput):
        past = {**run, "id": past_id, "measured": {**run["measured"], "wkB/s": value}}
        (kept(service) / f"{past['id']}.json").write_text(json.dumps(past, separators=(",", ":")))
    service = daemon(sections=sections)
    target = lab.wait_for("the warning", lambda: (lambda t: t if t["degraded"] else None)(service.target()))
    assert (target["verdict"], codes(target)) == ("pass", ["degraded"])
    said = detail(target, "degraded")
    assert it.name in said and "write throughput" in said and "last 6 certifying runs" in said
    assert f"{statistics.median(throughput) / 1000:.4g}" in said and f"{run['measured']['wkB/s'] / 1000:.4g}" in said
    assert ready(service)  # a warning beside a pass

    # With fewer than five, and with those of another disk, there is nothing to compare with.
    service.stop()
    for past_id in ids[:2]:
        (kept(service) / f"{past_id}.json").unlink()
    service = daemon(sections=sections)
    lab.wait_for("the device", lambda: service.target()["device"])
    assert service.target()["degraded"] is False and service.target()["reasons"] == []
