# SPDX-License-Identifier: Apache-2.0
"""Small helpers of the lab: running programs, waiting for a condition, clearing up what a dead test left."""

import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

ROOM = pathlib.Path("/dev/shm")
PREFIX = "tierprobe-lab"


def parse_size(text):
    """"512M" -> bytes; numbers are bytes."""
    if isinstance(text, int):
        return text
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    if not match:
        raise ValueError(f"not a size: {text!r}")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]


def run(*command, check=True, timeout=60):
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=timeout)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit status {done.returncode}: {done.stderr.strip()}")
    return done


def spawn(*command, **options):
    """Starts a program that dies with this process, so that a killed test run leaves no disk behind."""
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *map(str, command)], **options)


@functools.cache
def hardware():
    """What begins the command of a program that plays hardware: no other program on this machine holds up a disk."""
    return next((prefix for prefix in (("chrt", "--rr", "1"), ("nice", "-n", "-20"))
                 if run(*prefix, "true", check=False).returncode == 0), ())


def wait_for(what, condition, deadline_s=120):
    """Polls until condition() is true and returns its value. The deadline only ends a hopeless wait."""
    end = time.monotonic() + deadline_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"waited {deadline_s} s in vain for {what}")
        time.sleep(0.01)


def links(pid):
    """What the process has open, as /proc says it; a descriptor that is closed meanwhile is left out."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except FileNotFoundError:
            pass
    return found


def kill(process):
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait()


def mounts():
    """[(mount point, file system, source)], the newest last."""
    result = []
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file.read().decode(errors="surrogateescape").splitlines():
            before, _, after = line.partition(" - ")
            point = re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), before.split()[4])
            result.append((point, after.split()[0], after.split()[1]))
    return result


def unmount(point):
    """Politely while that works; in the end lazily, so that nothing can keep the test from going on."""
    if not os.path.ismount(point) and str(point) not in [m[0] for m in mounts()]:
        return
    for _ in range(20):
        if run("umount", point, check=False).returncode == 0:
            return
        time.sleep(0.1)
    run("umount", "-l", point, check=False)


def new_dir():
    for number in range(100000):
        path = ROOM / f"{PREFIX}-{os.getpid()}-{number}"
        try:
            path.mkdir(mode=0o755)
            return path
        except FileExistsError:
            continue
    raise RuntimeError(f"no free name in {ROOM}")


def sweep():
    """Removes what a test run that was killed left: its mounts, loop devices and files."""
    for path in ROOM.glob(f"{PREFIX}-*-*"):
        pid = int(path.name.split("-")[2])
        if pathlib.Path(f"/proc/{pid}").exists():
            continue
        for point, _, _ in reversed(mounts()):
            if point.startswith(f"{path}/"):
                run("umount", "-l", point, check=False)
        for line in run("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE").stdout.splitlines():
            name, _, backing = line.partition(" ")
            if backing.strip().startswith(f"{path}/"):
                run("losetup", "-d", name, check=False)
        shutil.rmtree(path, ignore_errors=True)
