# SPDX-License-Identifier: Apache-2.0
"""Paths that do not answer: at the start, at a reload, when they are looked at, below a loop device. The daemon and
every other target must not notice."""

import contextlib
import os
import pathlib
import signal
import time

import pytest

import lab
from harness import config_text, free_port, sections_for
from lab.catalog import GOOD

pytestmark = [pytest.mark.slow, pytest.mark.disk]

MANY = 10


def codes(run):
    return [reason["code"] for reason in run["reasons"]]


def looks(service):
    """The children that look at a path: {pid: state}."""
    found = {}
    for pid in service.children():
        with contextlib.suppress(OSError):
            name, _, rest = pathlib.Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
            if name == "tierprobe-look":
                found[pid] = rest.split()[0]
    return found


@pytest.fixture
def hung(disk):
    """hung() makes a disk with MANY folders, nothing of which is in the kernel's caches, that does not answer."""
    made = []

    def make():
        it = disk(fs="ext4", size="512M")
        it.folders = {f"hung{i}": it.directory(f"hung{i}") for i in range(MANY)}
        lab.run("umount", it.path)
        it.mount()
        made.append(it)
        it.hang()
        return it
    yield make
    for it in made:
        it.unhang()


def samples(service, target="good"):
    return (service.target(target)["sample"] or {"seq": 0})["seq"]


def check_good_goes_on(service, it):
    """The good target is sampled and tested as if it were alone."""
    before = samples(service)
    lab.wait_for("samples to go on", lambda: samples(service) > before + 10)
    run = service.whole_run("good")
    assert (run["verdict"], run["device"]["name"]) == ("pass", it.name), run


def check_hung(service, names):
    """Each of them says that it does not answer, is refused, and is looked at by one child."""
    lab.wait_for("a look at each path", lambda: list(looks(service).values()) == ["D"] * len(names))
    for name in names:
        target = service.target(name)
        assert target["device"] is None and target["verdict"] == "never_run"
        assert codes(target) == ["stalled"] and str(target["path"]) in target["reasons"][0]["detail"], target
    children = set(looks(service))
    for _ in range(3):
        service.process.send_signal(signal.SIGHUP)
        run = service.whole_run(names[0])
        assert (run["verdict"], codes(run)) == ("inconclusive", ["stalled"]), run
    lab.wait_for("the reloads", lambda: service.stderr.count("configuration reloaded") >= 3)
    lab.wait_for("no other child", lambda: set(looks(service)) == children)


def check_answers_again(service, names, it):
    it.unhang()
    lab.wait_for("the paths to be seen", lambda: all(service.target(n)["device"] for n in names))
    lab.wait_for("the children's end", lambda: looks(service) == {})
    assert service.whole_run(names[0])["state"] == "finished"


def test_at_the_start(daemon, disk, hung):
    """Were they waited for one after another, the daemon would not answer in time."""
    bad, good = hung(), disk(rate=GOOD)
    service = daemon({**bad.folders, "good": good.path}, count=200)
    assert all(service.target(n)["state"] == "looking" for n in bad.folders)
    check_good_goes_on(service, good)
    check_hung(service, list(bad.folders))
    check_answers_again(service, list(bad.folders), bad)
    service.stop()


def test_at_a_reload(daemon, disk, hung, folder):
    bad, good = hung(), disk(rate=GOOD)
    service = daemon({"good": good.path}, count=200)
    lab.wait_for("a sample", lambda: samples(service) > 5)
    first = samples(service)
    sections = sections_for({"good": good.path, **bad.folders}, count=200)
    sections["http"] = {"listen": service.listen}
    (folder / "tierprobed.conf").write_text(config_text(sections))
    service.process.send_signal(signal.SIGHUP)
    lab.wait_for("the reload", lambda: "configuration reloaded: 11 targets" in service.stderr)
    lab.wait_for("samples to go on", lambda: samples(service) > first + 20)
    taken = service.get(f"/history?target=good&since={first}&limit=1000").json["samples"]
    # One of the paths alone would have held up the loop for a second.
    assert max(sample["interval_s"] for sample in taken) < 0.9, taken
    check_good_goes_on(service, good)
    check_hung(service, list(bad.folders))
    check_answers_again(service, list(bad.folders), bad)
    service.stop()


def test_a_fault_beside_a_path_that_hangs(tierprobed, daemon, hung, folder):
    """What is wrong is said, and the path that hangs is not waited for for ever; nor is it a fault."""
    bad = hung()
    paths = {"missing": folder / "none", **bad.folders}
    (folder / "check.conf").write_text(config_text(sections_for(paths)))
    done = tierprobed("--config", folder / "check.conf", "--check-config")
    assert done.returncode == 78 and done.stderr.count("\n") == 1 and str(folder / "none") in done.stderr
    done = tierprobed("--config", folder / "check.conf", "--state-dir", folder / "other")
    assert done.returncode == 78 and done.stderr.count("\n") == 1 and str(folder / "none") in done.stderr
    (folder / "check.conf").write_text(config_text(sections_for(bad.folders)))
    assert tierprobed("--config", folder / "check.conf", "--check-config").returncode == 0


def test_reloads_that_are_refused_leave_one_child_a_path(daemon, disk, hung, folder):
    bad, good = hung(), disk(rate=GOOD)
    service = daemon({"good": good.path})
    sections = sections_for({"good": good.path, "missing": folder / "none", **bad.folders})
    sections["http"] = {"listen": service.listen}
    (folder / "tierprobed.conf").write_text(config_text(sections))
    for number in range(1, 5):
        service.process.send_signal(signal.SIGHUP)
        lab.wait_for("the refusal", lambda: service.stderr.count("stays as it was") >= number)
        lab.wait_for("no other child", lambda: len(looks(service)) == MANY)
    assert [t["name"] for t in service.status["targets"]] == ["good"]
    bad.unhang()
    lab.wait_for("the children's end", lambda: looks(service) == {})
    service.stop()


def test_while_it_serves(daemon, disk, folder):
    """A path that was well and hangs now keeps its device and its verdict; that it hangs is told beside them."""
    it, good = disk(fs="ext4", rate=GOOD), disk(rate=GOOD)
    target = it.directory("cache")
    service = daemon({"cache": target, "good": good.path}, count=200)
    assert service.whole_run("cache")["verdict"] == "pass"
    lab.wait_for("an empty disk", lambda: it.open_files() == [])
    lab.run("umount", it.path)
    lab.wait_for("the change", lambda: service.target("cache")["device"] is None)
    it.mount()
    it.hang()
    service.process.send_signal(signal.SIGHUP)
    lab.wait_for("the look", lambda: list(looks(service).values()) == ["D"])
    child = set(looks(service))
    check_good_goes_on(service, good)
    for _ in range(5):
        service.process.send_signal(signal.SIGHUP)
        lab.run("mount", "-t", "tmpfs", "tmpfs", folder)  # the table of mounts changes
        lab.run("umount", folder)
    lab.wait_for("the time's end", lambda: codes({"reasons": service.target("cache")["problems"]}) == ["stalled"], 60)
    lab.wait_for("no other child", lambda: set(looks(service)) == child)
    run = service.whole_run("cache")
    assert (run["verdict"], codes(run)) == ("inconclusive", ["stalled"]), run
    it.unhang()
    lab.wait_for("the device", lambda: service.target("cache")["device"] and not service.target("cache")["problems"])
    assert service.whole_run("cache")["verdict"] == "pass"
    service.stop()


def test_below_a_loop_device(daemon, disk):
    """The backing file's file system hangs. In the lab it lies below /dev, where devices are looked for by name."""
    it, good = disk(rate=GOOD), disk(rate=GOOD)
    service = daemon({"cache": it.path, "good": good.path}, count=200)
    assert service.target("cache")["device"]["name"] == it.name
    nbdfuse = it._servers[1]
    nbdfuse.send_signal(signal.SIGSTOP)
    try:
        lab.wait_for("the end of what the kernel remembers", lambda: lab.run(
            "timeout", "-s", "KILL", "1", "stat", it.folder / "image", check=False).returncode != 0)
        before = service.stderr.count("reloaded")
        service.process.send_signal(signal.SIGHUP)
        lab.wait_for("the reload", lambda: service.stderr.count("reloaded") > before)
        check_good_goes_on(service, good)
        assert service.target("cache")["device"]["name"] == it.name
    finally:
        nbdfuse.send_signal(signal.SIGCONT)
    assert service.whole_run("cache")["state"] == "finished"
    service.stop()


def test_prepared_beside_paths_that_hang(tierprobe, hung, disk, folder):
    """The service's start waits for this: one after another, ten of them would take longer than systemd allows."""
    bad, good = hung(), disk(rate=GOOD)
    targets = {**bad.folders, "good": good.path}
    (folder / "t.conf").write_text("".join(f"[target {name}]\npath = {path}\n" for name, path in targets.items()))
    begin = time.monotonic()
    done = tierprobe("target", "prepare", "--user", "nobody", "--config", folder / "t.conf", timeout=MANY * 5)
    assert time.monotonic() - begin < MANY * 5 / 2  # the sum of what is granted to each
    assert done.returncode == 1
    assert done.stdout == f"{good.path}: {good.path}/.tierprobe made; user nobody has written there\n"
    for path in bad.folders.values():
        assert f"{path}: {path} did not answer in 5 s: its file system hangs\n" in done.stderr
    (good.path / ".tierprobe").rmdir()
