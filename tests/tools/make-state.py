#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a state directory as the built tierprobed leaves it, for tests/data/state: one for each released format.

Usage: TIERPROBE_BUILD=build tests/tools/make-state.py FOLDER (root, loop devices)

It has runs of each kind (passed, failed, aborted, refused, cut by a kill in the middle, several streams, a ramp) of
several targets, and rings that have gone round.
"""

import contextlib
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))

from harness import TIERPROBED, Daemon, config_text, lab, sections_for  # noqa: E402


MB = 1_000_000


def start(folder, sections):
    (folder / "conf").write_text(config_text(sections))
    listen = f"unix:{folder}/socket"
    it = Daemon(folder, [TIERPROBED, "--config", folder / "conf", "--state-dir", folder / "state", "--listen", listen],
                listen)
    lab.wait_for("tierprobed to answer", it.answers, 60)
    return it


def fill(folder, stack):
    good = stack.enter_context(lab.disk(programmable=False, size="2G"))
    slow = stack.enter_context(lab.disk(rate=20 * MB, fs="ext4", size="2G"))
    none = pathlib.Path("/dev/shm") / folder.name  # tmpfs: no block device
    none.mkdir()
    stack.callback(none.rmdir)
    sections = sections_for({"cache": good.path, "slow": slow.path, "none": none}, count=64)
    sections["sampling"] = {"interval": "500ms", "history": "1m"}
    sections["schedule"] = {"interval": "never"}
    sections["profile wide"] = {"count": 8, "streams": 4, "pattern": "random"}
    sections["profile steps"] = {"streams": 4, "ramp": "yes", "duration": "1s", "count": 8}
    daemon = start(folder, sections)
    assert daemon.whole_run("slow")["verdict"] == "fail"
    assert daemon.whole_run("none")["verdict"] == "inconclusive"
    daemon.whole_run("cache", "wide")
    daemon.whole_run("cache", "steps")
    assert daemon.whole_run("cache")["verdict"] == "pass"
    aborted = daemon.start_run("slow")
    daemon.wait_writing(aborted)
    daemon.request("DELETE", f"/runs/{aborted}")
    assert daemon.wait_run(aborted)["state"] == "aborted"
    # The ring of a minute goes round: the wait is for what it shall hold, not for an end.
    lab.wait_for("the ring to go round", lambda: daemon.target()["sample"]["seq"] > 140, 600)
    daemon.wait_writing(daemon.start_run("slow"))
    daemon.kill()


def main(to):
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="tp-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        fill(folder, stack)
        shutil.copytree(folder / "state", to)


if __name__ == "__main__":
    lab.private_mounts()
    main(pathlib.Path(sys.argv[1]))
