# SPDX-License-Identifier: Apache-2.0
"""[publish] feature_file: the standing verdicts for Node Feature Discovery, written anew at each change."""

import os
import signal

import pytest

import lab
from harness import config_text, sections_for
from lab.catalog import GOOD, SLOW

pytestmark = [pytest.mark.disk]


def sections(targets, file):
    return sections_for(targets, count=100, **({"publish": {"feature_file": file}} if file else {}))


def reload(service, document):
    before = service.stderr.count("configuration reloaded")
    (service.folder / "tierprobed.conf").write_text(config_text(document))
    service.process.send_signal(signal.SIGHUP)
    lab.wait_for("the reload", lambda: service.stderr.count("configuration reloaded") > before)


def test_it_follows_the_standing_verdicts(daemon, disk, folder):
    good, other = disk(rate=GOOD), disk(rate=SLOW)
    targets = {"cache": good.path, "other": other.path}
    file = folder / "features.d" / "tierprobe"
    file.parent.mkdir()

    def holds(**verdicts):
        text = "".join(f"tierprobe-{name}={verdict}\n" for name, verdict in verdicts.items())
        lab.wait_for(f"{verdicts} in the file", lambda: file.exists() and file.read_text() == text)

    service = daemon(sections=sections(targets, file))
    holds(cache="never_run", other="never_run")
    assert file.stat().st_mode & 0o777 == 0o644
    service.whole_run("cache")
    holds(cache="pass", other="never_run")
    service.whole_run("other")
    holds(cache="pass", other="fail")
    # Nothing is written while nothing changes.
    inode = file.stat().st_ino
    seq = service.target()["sample"]["seq"]
    lab.wait_for("samples", lambda: service.target()["sample"]["seq"] > seq + 5)
    assert file.stat().st_ino == inode
    # A target that goes takes its label along; a daemon that starts anew writes what stands.
    reload(service, sections({"cache": good.path}, file))
    holds(cache="pass")
    service.stop()
    file.unlink()
    daemon(sections=sections(targets, file))
    holds(cache="pass", other="fail")
    assert os.listdir(file.parent) == ["tierprobe"]


def test_a_folder_that_is_not_there(daemon, disk, folder):
    it = disk(rate=GOOD)
    file = folder / "features.d" / "tierprobe"
    service = daemon(sections=sections(it.path, file))
    said = f"{file}: the verdicts cannot be published: No such file or directory; it is tried again."
    lab.wait_for("a word of it", lambda: said in service.stderr)
    assert service.whole_run()["verdict"] == "pass"  # it is no worse for it
    assert service.stderr.count("cannot be published") == 1
    file.parent.mkdir()
    lab.wait_for("the file", file.exists)
    assert file.read_text() == "tierprobe-cache=pass\n"
    lab.wait_for("a word of it", lambda: f"{file}: the verdicts are published again" in service.stderr)
    # Without the key nothing is written any more.
    reload(service, sections(it.path, None))
    file.unlink()
    seq = service.target()["sample"]["seq"]
    lab.wait_for("samples", lambda: service.target()["sample"]["seq"] > seq + 5)
    assert not file.exists()


def test_a_relative_path_is_refused(tierprobed, folder):
    config = folder / "tierprobed.conf"
    config.write_text(config_text(sections(folder, "features.d/tierprobe")))
    done = tierprobed("--config", config, "--check-config")
    assert done.returncode != 0
    assert "feature_file" in done.stderr and "absolute path" in done.stderr
