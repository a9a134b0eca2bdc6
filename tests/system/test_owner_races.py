# SPDX-License-Identifier: Apache-2.0
"""A folder whose owner is no friend of the user that tests it: while root tests, he swaps the folder, its parent and all
that appears in it for links to what is not his. No file outside is opened for writing, cut or removed.

TIERPROBE_RACES says how many tests each way (default 3).
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

import lab
from harness import ROOT, TIERPROBE

# Sanitizers look for leaks as a tracer does, and there is room for one.
pytestmark = [pytest.mark.slow, pytest.mark.installed_only, pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("strace"),
                                                        reason="not root, or no strace")]

RACES = int(os.environ.get("TIERPROBE_RACES", "3"))
OWNER = 65534
CALLS = "open,openat,creat,truncate,ftruncate,unlink,unlinkat,rename,renameat,renameat2,link,linkat,flock,newfstatat,faccessat2"
DELAYED = "openat,unlinkat,flock,newfstatat,faccessat2"

# What the owner does, for as long as he lives: DEEP/cache is what is tested, OUTSIDE is not his.
ATTACK = r"""
import os, random, sys
home, outside = sys.argv[1:]
deep, cache = home + "/deep", home + "/deep/cache"
def tried(call, *arguments):
    try:
        return call(*arguments)
    except OSError:
        return None
def swap(path):
    '''The folder away, a link to OUTSIDE in its place, and back.'''
    if tried(os.rename, path, path + ".away") is None and os.path.lexists(path):
        return
    tried(os.symlink, outside, path)
    tried(os.stat, path)
    tried(os.unlink, path)
    tried(os.rename, path + ".away", path)
while True:
    for name in tried(os.listdir, cache) or ():
        if name.startswith(".tierprobe-"):
            tried(os.rename, f"{cache}/{name}", f"{cache}/taken")
            tried(os.symlink, f"{outside}/canary0", f"{cache}/{name}")
            tried(os.unlink, f"{cache}/{name}")
            tried(os.link, f"{cache}/taken", f"{cache}/{name}")
    for i in range(4):
        name = f"{cache}/.tierprobe-{random.getrandbits(128):032x}"
        tried(os.symlink, f"{outside}/canary{i}", name) if i % 2 else tried(os.link, f"{outside}/canary{i}", name)
        tried(os.unlink, name)
    tried(os.symlink, outside, cache + "/.tierprobe")
    tried(os.unlink, cache + "/.tierprobe")
    swap(random.choice((deep, cache)))
"""


@pytest.fixture
def home():
    """A folder of OWNER's on the disk of the build, which he can reach."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="tierprobe-test-", dir="/var/tmp"))
    path.chmod(0o755)
    (path / "home" / "deep" / "cache").mkdir(parents=True)
    for folder in (path / "home", path / "home/deep", path / "home/deep/cache"):
        os.chown(folder, OWNER, OWNER)
    outside = path / "outside"
    (outside / "cache").mkdir(parents=True)
    for folder in (outside, outside / "cache"):
        for i in range(4):
            (folder / f"canary{i}").write_bytes(b"sings" * i)
            os.chmod(folder / f"canary{i}", 0o666)  # so that hard links to it are allowed
        (folder / f".tierprobe-{'7' * 32}").write_bytes(b"not empty")
    yield path
    shutil.rmtree(path)


def state_of(folder):
    """Everything that a test could change in what is outside."""
    found = {}
    for path in sorted(folder.rglob("*")):
        st = path.lstat()
        found[str(path)] = (st.st_ino, st.st_mode, st.st_uid, st.st_size, st.st_mtime_ns if path.is_file() else 0,
                            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
    return found


def environment(kind, folder):
    if kind == "without a name":
        return dict(os.environ)
    shim = folder / "shim.so"
    lab.run("cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", shim, ROOT / "tests/lab/no-tmpfile-shim.c")
    return {**os.environ, "LD_PRELOAD": str(shim), "LAB_CREATE_MS": "200",
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}


def whole_calls(log):
    """One line a call: strace parts those that another process's call comes between."""
    begun = {}
    for line in log.read_text(errors="replace").splitlines():
        pid, _, call = line.partition(" ")
        call = call.lstrip()
        if call.endswith("<unfinished ...>"):
            begun[pid] = call.removesuffix("<unfinished ...>")
        elif resumed := re.match(r"<\.\.\. \w+ resumed>(.*)", call):
            yield begun.pop(pid, "") + resumed[1]
        else:
            yield call


def bad_calls(log, outside):
    """Calls that opened a file outside for writing, or removed one. A file that is made without a name is none."""
    bad = []
    for line in whole_calls(log):
        done = re.search(r"= (-?\d+)(<[^>]*>)?", line)
        if not done or int(done[1]) < 0 or str(outside) not in line:
            continue
        made = "O_TMPFILE" in line or ("O_CREAT|O_EXCL" in line and ".tierprobe-" in line)
        if ("open" in line and re.search(r"O_WRONLY|O_RDWR|O_TRUNC", line) and not made) or "truncate" in line:
            bad.append(line)
        if "unlink" in line and not re.search(r'"\.tierprobe-[0-9a-f]{32}"', line):
            bad.append(line)
    return bad


def test_what_a_bad_call_is(tmp_path):
    """Also one that is in two lines."""
    log = tmp_path / "log"
    log.write_text('''7 openat(AT_FDCWD, "/x/out/a", O_RDWR <unfinished ...>
8 openat(AT_FDCWD, "/x/out/b", O_WRONLY|O_TRUNC) = 3</x/out/b>
7 <... openat resumed>) = 4</x/out/a>
7 unlinkat(5</x/out>, "c", 0 <unfinished ...>
8 openat(AT_FDCWD, "/x/out/d", O_RDONLY) = 3</x/out/d>
7 <... unlinkat resumed>) = -1 ENOENT (No such file or directory)
9 unlinkat(5</x/out>, "e", 0)               = 0
9 unlinkat(5</x/out>, ".tierprobe-0123456789abcdef0123456789abcdef", 0) = 0
''')
    assert [line.split('"')[1] for line in bad_calls(log, "/x/out")] == ["/x/out/b", "/x/out/a", "e"]


def attack(home):
    return lab.spawn("setpriv", f"--reuid={OWNER}", f"--regid={OWNER}", "--clear-groups", sys.executable, "-c", ATTACK,
                     home / "home", home / "outside")


@pytest.mark.parametrize("delay_us", [0, 2000])
@pytest.mark.parametrize("kind", ["without a name", "with a name"])
def test_a_run_by_root(kind, delay_us, home, folder):
    """DELAY_US before each call that takes a path or a lock leaves him time for his tricks between any two."""
    before, written, log, surroundings = state_of(home / "outside"), 0, folder / "log", environment(kind, folder)
    owner = attack(home)
    try:
        for _ in range(8 * RACES):
            done = subprocess.run(["strace", "-f", "-qq", "-y", "-o", log, "-e", f"trace={CALLS}",
                                   *(["-e", f"inject={DELAYED}:delay_enter={delay_us}"] if delay_us else []), TIERPROBE, "run",
                                   home / "home/deep/cache", "--count", "8", "--json"], env=surroundings,
                                  stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
            assert done.returncode in (0, 2, 3), done
            assert bad_calls(log, home / "outside") == []
            assert state_of(home / "outside") == before
            written += json.loads(done.stdout)["bytes_written"] > 0
            if written == RACES:
                break
        assert owner.poll() is None  # he was at it
    finally:
        lab.kill(owner)
    assert written > 0
    # A test file that he got hold of while it had a name has given its space back.
    taken = [path for path in (home / "home").rglob("*")
             if path.is_file() and not path.is_symlink() and path.lstat().st_uid == 0]
    assert [path for path in taken if path.stat().st_size > 64] == [] and (taken or kind == "without a name")


@pytest.mark.parametrize("kind", ["without a name", "with a name"])
def test_a_daemon_of_root(kind, home, folder, daemon):
    before, written = state_of(home / "outside"), 0
    service = daemon(home / "home/deep/cache", count=8, environment=environment(kind, folder))
    owner = attack(home)
    try:
        for _ in range(40 * RACES):
            answer = service.post("/run?target=cache&profile=small")
            if answer.status == 202:
                written += service.wait_run(answer.json["runs"][0]["id"])["bytes_written"] > 0
            assert state_of(home / "outside") == before
            if written == RACES:
                break
        assert owner.poll() is None
    finally:
        lab.kill(owner)
    assert service.answers() and written > 0
