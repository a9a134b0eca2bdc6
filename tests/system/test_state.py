# SPDX-License-Identifier: Apache-2.0
"""What the daemon keeps: state of other releases, state that is damaged or cannot be read, and what tests have written
to a disk, whatever becomes of the process that counts it."""

import itertools
import json
import shutil

import pytest

import lab
from harness import ROOT, sections_for
from lab.catalog import GOOD, MB, MIB

RELEASE_1 = ROOT / "tests" / "data" / "state" / "release-1"


def ledger(folder):
    return json.loads((folder / "state" / "ledger.json").read_text())


def runs(service):
    return service.get("/runs?limit=1000").json["runs"]


# ---- other releases ----

@pytest.mark.usefixtures("other_releases")
@pytest.mark.slow
def test_a_state_directory_of_release_1(daemon, folder):
    shutil.copytree(RELEASE_1, folder / "state")
    documents = {path.stem: json.loads(path.read_text()) for path in (RELEASE_1 / "runs").glob("*.json")}
    service = daemon("/dev/shm")
    served = {run["id"]: run for run in runs(service)}
    assert set(served) == set(documents)
    for run_id, document in documents.items():
        if document["state"] == "running":
            assert served[run_id]["state"] == "aborted"
            continue
        assert service.get(f"/runs/{run_id}").json == document
        evidence = {"schema", "evidence"}
        assert served[run_id] == {key: value for key, value in document.items() if key not in evidence}
    assert service.status["set_aside"] == 0
    # What its runs wrote is in the new ledger.
    lab.wait_for("the ledger", (folder / "state" / "ledger.json").exists, 60)
    lifetime = {disk["disk"]: disk["lifetime_bytes"] for disk in ledger(folder)["disks"]}
    assert sorted(lifetime.values()) == [(64 + 1) * MIB, (64 + 32 + 24) * MIB]


@pytest.mark.usefixtures("other_releases")
@pytest.mark.slow
def test_documents_of_a_later_release(daemon, folder):
    """An unknown reason, a missing field, a new field with another schema, a new state: all are served."""
    shutil.copytree(RELEASE_1, folder / "state")
    paths = sorted((folder / "state" / "runs").glob("*.json"))
    changes = [lambda d: d["reasons"].append({"code": "of_the_moon", "detail": "Run at night, 1 moon."}),
               lambda d: d.pop("bytes_total"), lambda d: d.update(schema=2, phase="full"),
               lambda d: d.update(verdict="splendid"), lambda d: d.update(trigger="tide")]
    expected = {}
    for path, change in zip(paths, changes):
        document = json.loads(path.read_text())
        change(document)
        path.write_text(json.dumps(document))
        expected[path.stem] = document
    service = daemon("/dev/shm")
    assert len(runs(service)) == len(paths)
    for run_id, document in expected.items():
        assert json.loads(service.get(f"/runs/{run_id}").body) == document
    assert service.status["set_aside"] == 0


@pytest.mark.usefixtures("other_releases")
@pytest.mark.slow
def test_damaged_documents_are_set_aside_and_counted(daemon, folder):
    shutil.copytree(RELEASE_1, folder / "state")
    paths = sorted((folder / "state" / "runs").glob("*.json"))
    texts = {path.name: path.read_bytes()[:-30] for path in paths[:3]}
    for path in paths[:3]:
        path.write_bytes(texts[path.name])
    (folder / "state" / "cache.ring").write_bytes(b"no ring")
    service = daemon("/dev/shm")
    assert len(runs(service)) == len(paths) - 3
    assert service.get(f"/runs/{paths[0].stem}").status == 404
    assert service.status["set_aside"] == 4
    aside = {path.name.removesuffix(".damaged"): path for path in (folder / "state" / "runs").glob("*.damaged")}
    assert {name: path.read_bytes() for name, path in aside.items()} == texts
    assert (folder / "state" / "cache.ring.damaged").read_bytes() == b"no ring"
    service.stop()
    again = daemon("/dev/shm")
    assert again.status["set_aside"] == 4


# ---- what is kept ----

@pytest.mark.disk
def test_keep_runs(daemon, disk, folder):
    it = disk(rate=GOOD)
    service = daemon(it.path, count=2, history={"keep_runs": 3})
    ids = [service.whole_run()["id"] for _ in range(5)]
    assert [run["id"] for run in runs(service)] == ids[:1:-1]
    assert service.get(f"/runs/{ids[0]}").status == 404
    lab.wait_for("the others to be removed", lambda: len(list((folder / "state" / "runs").iterdir())) == 3)


# ---- what was written ----

@pytest.mark.disk
def test_the_budget_counts_whoever_asked(daemon, disk, folder):
    """Many quick runs, most of them aborted somewhere on the way: no more is written than the budget has."""
    it = disk(rate=GOOD)
    budget = 200 * MIB
    service = daemon(it.path, count=20, guard={"daily_write_budget": budget}, history={"keep_runs": 2})
    written = 0
    for n in itertools.count():
        answer = service.post("/run?profile=small")
        if answer.status == 429:
            break
        run_id = answer.json["runs"][0]["id"]
        if n % 3:
            service.request("DELETE", f"/runs/{run_id}")
        written += service.wait_run(run_id)["bytes_written"]
        assert written <= budget
    assert answer.code == "over_budget" and 0 < int(answer.headers["Retry-After"]) <= 86400 + 600
    assert written > budget - 20 * MIB
    target = service.target()
    assert target["disk_written_day_bytes"] == target["disk_written_lifetime_bytes"] == written
    assert target["test_bytes"] == 20 * MIB
    assert target["budget_left_bytes"] == budget - written < target["test_bytes"]
    metrics = service.get("/metrics").body.decode()
    assert f'tierprobe_budget_left_bytes{{target="cache"}} {budget - written}\n' in metrics
    assert f'tierprobe_test_bytes{{target="cache"}} {20 * MIB}\n' in metrics
    assert service.post("/run?profile=small").status == 429
    service.stop()
    assert [disk["lifetime_bytes"] for disk in ledger(folder)["disks"]] == [written]
    again = daemon(it.path, count=20, guard={"daily_write_budget": budget}, history={"keep_runs": 2})
    assert again.post("/run?profile=small").code == "over_budget"
    assert again.target()["disk_written_day_bytes"] == written


@pytest.mark.disk
def test_what_a_killed_daemon_was_writing_counts(daemon, disk, folder):
    it = disk(rate=30 * MB)
    options = {"count": 200, "guard": {"daily_write_budget": 300 * MIB}}
    service = daemon(it.path, **options)
    run_id = service.start_run()
    service.wait_writing(run_id, 4 * MIB)
    lab.wait_for("the reservation on the disk", lambda: (folder / "state" / "ledger.json").exists()
                 and ledger(folder)["runs"] and ledger(folder)["runs"][0]["disks"], 60)
    service.kill()
    again = daemon(it.path, **options)
    # Nobody knows how far it came: it counts whole.
    assert again.target()["disk_written_day_bytes"] == 200 * MIB
    assert again.post("/run?profile=small").code == "over_budget"


@pytest.mark.disk
def test_targets_on_one_disk_share_its_budget_and_rest(daemon, folder):
    with lab.two_partitions() as disks:
        options = {"count": 8, "guard": {"daily_write_budget": 20 * MIB}}
        service = daemon({"a": disks[0].path, "b": disks[1].path}, **options)
        answer = service.post("/run?profile=small")
        ends = [service.wait_run(run["id"]) for run in answer.json["runs"]]
        assert sum(run["bytes_written"] for run in ends) == 16 * MIB
        assert {t["disk_written_day_bytes"] for t in service.status["targets"]} == {16 * MIB}
        assert service.post("/run?profile=small&target=a").code == "over_budget"
        assert service.post("/run?profile=small&target=b").code == "over_budget"
        service.stop()
        sections = sections_for({"a": disks[0].path, "b": disks[1].path}, guard={"cooldown": "1h", "daily_write_budget": "none"},
                                **{"profile small": {"count": 100, "duration": "3s"}},
                                limits={"write_mb_per_s": 1, "w_await_ms": 1000, "pass_ratio": 0.5})
        rests = daemon(sections=sections)
        assert rests.wait_run(rests.start_run("a"))["verdict"] == "pass"
        assert rests.post("/run?profile=small&target=b").code == "cooldown"


@pytest.mark.disk
def test_the_ledger_cannot_be_read_or_is_damaged(daemon, disk, folder):
    it = disk(rate=GOOD)
    service = daemon(it.path, count=8)
    service.whole_run()
    service.stop()
    path = folder / "state" / "ledger.json"
    kept = path.read_bytes()
    path.unlink()
    path.symlink_to("ledger.json")  # ELOOP stands for a disk that cannot be read now
    service = daemon(it.path, count=8)
    service.whole_run()
    assert path.is_symlink() and service.status["set_aside"] == 0
    path.unlink()
    path.write_bytes(kept)
    service.whole_run()
    # What was there, and what was written since.
    lab.wait_for("the sum in the file", lambda: ledger(folder)["disks"][0]["lifetime_bytes"] == 24 * MIB, 60)
    service.stop()
    path.write_bytes(b"{")
    service = daemon(it.path, count=8)
    assert service.status["set_aside"] == 1
    assert (folder / "state" / "ledger.json.damaged").read_bytes() == b"{"
    # It begins anew with what is known of the runs that are kept.
    assert service.target()["disk_written_lifetime_bytes"] == 24 * MIB
