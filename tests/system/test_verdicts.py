"""The truth about real disks: both programs must come to what the lab's catalog says of each."""

import json

import pytest

import lab
from harness import config_text, sections_for
from lab.catalog import CASES, GOOD, MB

pytestmark = pytest.mark.disk

EXIT = {"pass": 0, "fail": 2, "inconclusive": 3}


def check(case, run, disk):
    codes = {reason["code"] for reason in run["reasons"]}
    assert run["verdict"] == case.verdict, run["reasons"]
    assert case.reasons <= codes, run["reasons"]
    assert not case.never & codes, run["reasons"]
    assert all(reason["detail"] for reason in run["reasons"])
    assert (run["verdict"] == "pass") == (codes == set()), run["reasons"]
    assert run["device"]["name"] == disk.name
    assert run["device"]["major_minor"] == disk.major_minor
    assert run["device"]["filesystem"] == disk.filesystem
    assert run["state"] == "finished"
    assert [c["name"] for c in run["criteria"]] == ["write_throughput", "write_latency"]
    assert [c["column"] for c in run["criteria"]] == ["wkB/s", "w_await"]
    if "write_error" not in codes:
        assert run["bytes_written"] == run["bytes_total"] == case.count << 20
        assert run["progress"] == 1
        passed = {c["name"]: c["pass"] for c in run["criteria"]}
        assert passed["write_throughput"] == ("write_throughput_low" not in codes)
        assert passed["write_latency"] == ("write_latency_high" not in codes)
        assert run["measured"]["wkB/s"] / 1000 == pytest.approx(run["criteria"][0]["value"], rel=1e-9)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_daemon(case, daemon, disk):
    it = disk(**case.disk)
    service = daemon(it.directory("cache"), count=case.count, limits=case.limits)
    if it.control:
        it.control.mark()
    run = service.whole_run()
    check(case, run, it)
    status = service.status
    assert status["verdict"] == case.verdict
    assert status["targets"][0]["last_run"]["id"] == run["id"]
    assert {r["code"] for r in status["targets"][0]["reasons"]} == {r["code"] for r in run["reasons"]}
    assert service.get("/readyz").status == (200 if case.verdict == "pass" else 503)
    service.stop()
    if "write_error" in case.reasons:
        it.heal()
    assert it.nothing_left() is None


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_run_command(case, tierprobe, folder, disk):
    it = disk(**case.disk)
    (folder / "config").write_text(config_text(sections_for(it.path, count=case.count, limits=case.limits)))
    if it.control:
        it.control.mark()
    done = tierprobe("run", it.path, "--config", folder / "config", "--profile", "small", "--json")
    run = json.loads(done.stdout)
    check(case, run, it)
    assert done.returncode == EXIT[case.verdict]
    if "write_error" in case.reasons:
        it.heal()
    assert it.nothing_left() is None


def test_the_documented_limits_on_a_fast_disk(tierprobe, disk):
    """600 MB/s and 20 ms, where a plain dd shows that this machine's memory can do it."""
    it = disk(programmable=False, size="1600M")
    dd = lab.run("dd", "if=/dev/zero", f"of={it.path}/dd", "bs=1M", "count=1200", "oflag=direct,dsync")
    (it.path / "dd").unlink()
    seconds = float(dd.stderr.split(" copied, ")[1].split(" s,")[0])
    if 1200 * 1.048576 / seconds < 1200:
        pytest.skip(f"dd makes {1200 * 1.048576 / seconds:.0f} MB/s here, too close to 600")
    done = tierprobe("run", it.path, "--count", 1200)
    assert done.returncode == 0, done.stdout
    assert "PASS" in done.stdout and "at least 600 MB/s" in done.stdout and "under 20 ms" in done.stdout


def test_btrfs_that_compresses_cannot_be_judged(daemon, disk):
    """Zeros that never reach the device say nothing about it."""
    it = disk(fs="btrfs", mount_options=["compress=zstd"])
    run = daemon(it.path).whole_run()
    assert run["verdict"] == "inconclusive"
    assert "bytes_mismatch" in {r["code"] for r in run["reasons"]}


def test_page_cache_in_front_is_said(daemon, disk):
    """A loop device without direct I/O takes writes into memory: what it measures is not the disk below."""
    it = disk(rate=GOOD, dio=False)
    run = daemon(it.path).whole_run()
    assert "page cache" in json.dumps(run)


def test_first_writes_are_slow_and_later_ones_are_not(daemon, disk):
    it = disk(rate=GOOD, first_write_rate=30 * MB)
    service = daemon(it.path, count=150)
    first = service.whole_run()
    assert first["verdict"] == "fail"
    it.behave(rate=GOOD)
    assert service.whole_run()["verdict"] == "pass"


def test_somebody_else_writing_is_no_verdict_on_the_disk(daemon, disk):
    it = disk(rate=130 * MB)
    service = daemon(it.path, count=64)
    with it.other_writer():
        run = service.whole_run()
    # The device as a whole takes 130 MB/s, but half of it is not ours, or the test is slowed by the other.
    codes = {r["code"] for r in run["reasons"]}
    assert run["foreign_write_ratio"] > 0.2
    assert run["verdict"] == "pass" or (run["verdict"] == "inconclusive" and "foreign_io" in codes), run
    assert service.whole_run()["foreign_write_ratio"] < 0.1


def test_streams_are_parallel_writers_each_with_a_file(daemon, disk):
    it = disk(rate=GOOD)
    sections = sections_for(it.path)
    sections["profile small"].update(count=32, streams=4)
    service = daemon(sections=sections)
    it.behave(rate=40 * MB)
    run_id = service.start_run()
    service.wait_writing(run_id)
    lab.wait_for("four files", lambda: len({link for _, link in it.open_files()}) == 4)
    assert it.files() == []
    run = service.wait_run(run_id)
    assert run["bytes_total"] == run["bytes_written"] == 4 * 32 << 20
    assert run["test"]["streams"] == 4
    assert it.nothing_left() is None


def test_random_pattern_gets_through_compression(daemon, disk):
    it = disk(fs="btrfs", mount_options=["compress=zstd"], rate=GOOD)
    sections = sections_for(it.path, limits={"write_mb_per_s": 1, "w_await_ms": 1000})
    sections["profile small"].update(pattern="random", count=64)
    run = daemon(sections=sections).whole_run()
    assert "bytes_mismatch" not in {r["code"] for r in run["reasons"]}
    assert run["test"]["pattern"] == "random"
