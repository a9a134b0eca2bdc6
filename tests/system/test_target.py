# SPDX-License-Identifier: Apache-2.0
"""tierprobe target: directories of other owners made ready for the service's user, and what it must not be led to."""

import os
import pathlib
import pwd
import shutil
import subprocess

import pytest

from harness import BUILD

pytestmark = pytest.mark.root
USER, OWNER = "nobody", "daemon" # stand for the service's user and the owner of the cache


def ids(name):
    entry = pwd.getpwnam(name)
    return entry.pw_uid, entry.pw_gid


@pytest.fixture
def cache(place):
    """A directory of OWNER, who lets nobody in, on the disk that holds the build."""
    top = place / "db2"
    path = top / "cache"
    path.mkdir(parents=True)
    for one in (path, top):
        os.chown(one, *ids(OWNER))
        one.chmod(0o700)
    yield path
    shutil.rmtree(top)


@pytest.fixture
def config(folder):
    (folder / "t.conf").write_text("[sampling]\ninterval = 1s\n")
    return folder / "t.conf"


def add(tierprobe, path, config, *more):
    return tierprobe("target", "add", path, "--user", USER, "--config", config, *more)


def writes(path):
    """Whether USER can make a file in the working folder, by the path."""
    code = f"import os; os.setgid({ids(USER)[1]}); os.setuid({ids(USER)[0]}); open({str(path / '.tierprobe/x')!r}, 'w')"
    done = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True)
    (path / ".tierprobe/x").unlink(missing_ok=True)
    return done.returncode == 0


def test_a_directory_of_another_owner_is_ready_and_named_at_once(tierprobe, tierprobed, cache, config):
    if not reachable(cache):
        pytest.skip("the checkout itself lets nobody in")
    done = add(tierprobe, cache, config)
    assert done.returncode == 0, done.stderr
    assert writes(cache)
    assert (cache.stat().st_uid, cache.stat().st_mode & 0o7007) == (ids(OWNER)[0], 0)
    assert "[target cache]" in (config.parent / "t.conf.d/target-cache.conf").read_text()
    assert "target cache already" in add(tierprobe, cache, config).stdout
    again = tierprobe("target", "prepare", "--user", USER, "--config", config)
    assert again.returncode == 0 and again.stdout == f"{cache}: user {USER} has written there\n"


def reachable(path):
    return all(parent.stat().st_mode & 0o001 for parent in BUILD.parents) and BUILD.stat().st_mode & 0o001


@pytest.mark.parametrize("what", ["link to a directory", "file", "directory of another", "dangling link"])
def test_what_the_owner_has_put_in_the_way_is_not_touched(tierprobe, cache, config, folder, what):
    bait = folder / "bait"
    bait.mkdir(mode=0o755)
    trap = cache / ".tierprobe"
    if what == "link to a directory":
        trap.symlink_to(bait)
    elif what == "file":
        trap.write_text("mine")
    elif what == "directory of another":
        trap.mkdir()
        os.chown(trap, *ids(OWNER))
    else:
        trap.symlink_to(folder / "nothing")
    before = (os.lstat(trap).st_uid, bait.stat().st_uid)
    done = add(tierprobe, cache, config)
    assert done.returncode == 3 and ".tierprobe" in done.stderr
    assert (os.lstat(trap).st_uid, bait.stat().st_uid) == before
    assert list(bait.iterdir()) == []
    assert not (config.parent / "t.conf.d").exists()


def test_a_link_of_the_owner_is_not_followed(tierprobe, cache, config, folder):
    bait = folder / "bait"
    bait.mkdir()
    link = cache / "link"
    link.symlink_to(bait)
    os.chown(link, *ids(OWNER), follow_symlinks=False)
    done = add(tierprobe, link, config)
    assert done.returncode == 3 and str(bait) in done.stderr and "symbolic link" in done.stderr
    assert list(bait.iterdir()) == []


def test_a_name_that_is_taken_stays(tierprobe, cache, config):
    config.write_text("[target cache]\npath = /elsewhere\n")
    done = add(tierprobe, cache, config)
    assert done.returncode == 3 and "/elsewhere" in done.stderr and "--name" in done.stderr
    assert not (config.parent / "t.conf.d").exists()


@pytest.mark.parametrize("arguments", [[], ["add"], ["add", "a", "b"], ["prepare", "x"], ["remove", "x"], ["add", "/nonexistent"],
                                       ["add", "/", "--name", "a b"], ["add", "/tmp", "--user", "no-such-user"], ["--bogus"]])
def test_bad_usage_is_said(tierprobe, folder, arguments):
    config = folder / "t.conf"
    config.write_text("")
    done = tierprobe("target", *arguments, "--config", config)
    assert done.returncode == 3 and done.stderr
    assert not pathlib.Path(f"{config}.d").exists()
