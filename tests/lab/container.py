# SPDX-License-Identifier: Apache-2.0
"""A real systemd to run the unit in: a small tree of this distribution, booted by systemd-nspawn.

The tree is made once by debootstrap and kept below CACHE; a container is an overlay on it that vanishes. Needs
root, and the network the first time.
"""

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import pathlib
import shutil
import subprocess

from .process import kill, mounts, new_dir, run, spawn, unmount, wait_for

CACHE = pathlib.Path(os.environ.get("TIERPROBE_TEST_CACHE", "/var/cache/tierprobe-test"))
MIRROR = "http://deb.debian.org/debian"
TOOLS = ("debootstrap", "systemd-nspawn", "nsenter", "unshare")


def _os_release():
    pairs = (line.partition("=") for line in pathlib.Path("/etc/os-release").read_text().splitlines())
    return {key: value.strip('"') for key, _, value in pairs}


def _packages_of_libraries(program):
    """The packages that hold what PROGRAM is linked with."""
    names = set()
    for line in run("ldd", program).stdout.splitlines():
        path = line.split("=>")[-1].split("(")[0].strip()
        if path.startswith("/"):
            # Since /lib is a link to /usr/lib a package may know the file under either name.
            for name in (path, path.removeprefix("/usr"), f"/usr{path}", os.path.realpath(path)):
                done = run("dpkg-query", "-S", name, check=False)
                owners = [line for line in done.stdout.splitlines() if not line.startswith("diversion")]
                if owners:
                    names.add(owners[0].split(":")[0])
                    break
    return names


@functools.cache
def tree(*programs):
    """(folder, None), or (None, why there is none)."""
    absent = [tool for tool in TOOLS if not shutil.which(tool)]
    if os.geteuid() != 0 or absent:
        return None, "not root" if os.geteuid() != 0 else f"{', '.join(absent)} not installed"
    if _os_release().get("ID") != "debian":
        return None, "not Debian"
    if "/sys/fs/cgroup" not in [point for point, _, _ in mounts()]:
        return None, "no cgroup hierarchy is mounted"
    if run("unshare", "--user", "true", check=False).returncode != 0:
        return None, "no user namespaces here (a chroot?), which the unit's sandbox needs"
    suite = _os_release()["VERSION_CODENAME"]
    packages = sorted({"systemd", "systemd-sysv"}.union(*map(_packages_of_libraries, programs)))
    name = f"{suite}-{hashlib.sha256(' '.join(packages).encode()).hexdigest()[:12]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (CACHE / name).exists():
            half = CACHE / f"{name}.part"
            shutil.rmtree(half, ignore_errors=True)
            done = run("debootstrap", "--variant=minbase", f"--include={','.join(packages)}", suite, half, MIRROR,
                       check=False, timeout=900)
            if done.returncode != 0:
                shutil.rmtree(half, ignore_errors=True)
                last = (done.stdout + done.stderr).strip().splitlines()[-1:]
                return None, f"debootstrap failed: {''.join(last)}"
            half.rename(CACHE / name)
    return CACHE / name, None


class Container:
    def __init__(self, root):
        self.root = root    # the file system as seen from here, before and while it runs
        self.leader = None  # pid of its systemd

    def run(self, *command, check=True, timeout=120):
        """Runs a program in it, as root."""
        return run("nsenter", "--target", self.leader, "--all", "--root", "--wd", *command, check=check, timeout=timeout)

    def path(self, inside):
        """How a path inside is reached from here while it runs (for sockets on its tmpfs too)."""
        return f"/proc/{self.leader}/root{inside}"

    def show(self, unit, *names):
        """Properties of a unit: {"ActiveState": "active", ...}."""
        out = self.run("systemctl", "show", unit, *[f"--property={n}" for n in names]).stdout
        return dict(line.split("=", 1) for line in out.splitlines() if "=" in line)

    def journal(self, *matches):
        """The journal's entries as dicts, oldest first."""
        self.run("journalctl", "--sync", check=False)
        out = self.run("journalctl", "--output=json", "--all", "--no-pager", *matches).stdout
        return [json.loads(line) for line in out.splitlines() if line.strip()]

    def write(self, inside, text):
        path = pathlib.Path(self.path(inside) if self.leader else f"{self.root}{inside}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@contextlib.contextmanager
def container(folder, binds=(), prepare=lambda it: None):
    """Boots an overlay of FOLDER. BINDS: (path here, path inside). PREPARE sees the Container before it boots."""
    with contextlib.ExitStack() as stack:
        work = new_dir()
        stack.callback(shutil.rmtree, work, ignore_errors=True)
        for name in ("upper", "work", "root"):
            (work / name).mkdir()
        root = work / "root"
        run("mount", "-t", "overlay", "overlay", "-o",
            f"lowerdir={folder},upperdir={work / 'upper'},workdir={work / 'work'}", root)
        stack.callback(unmount, root)
        it = Container(root)
        prepare(it)

        log = stack.enter_context(open(work / "log", "wb"))
        options = [f"--bind={here}:{inside}" for here, inside in binds]
        # nspawn keeps files below /run that a host without systemd does not have: it gets a /run of its own.
        nspawn = spawn("unshare", "--mount", "--propagation", "private", "sh", "-c",
                       'mount -t tmpfs tmpfs /run && exec "$@"', "sh",
                       "systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network", "--boot",
                       f"--machine={work.name}", f"--directory={root}", *options,
                       # An argument of its init is a container's kernel command line. Without this one systemd 256
                       # and 257 refuse a host whose cgroups are of version 1; others ignore it.
                       "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1", stdout=log, stderr=subprocess.STDOUT)

        def stop():
            if it.leader and nspawn.poll() is None:
                run("kill", "-s", "RTMIN+4", it.leader, check=False)  # systemd's "power off"
                with contextlib.suppress(subprocess.TimeoutExpired):
                    nspawn.wait(20)
            if it.leader:
                run("kill", "-9", it.leader, check=False)
            kill(nspawn)
        stack.callback(stop)

        def booted():
            if nspawn.poll() is not None:
                raise RuntimeError((work / "log").read_text(errors="replace"))
            children = pathlib.Path(f"/proc/{nspawn.pid}/task/{nspawn.pid}/children").read_text().split()
            for pid in children:
                with contextlib.suppress(OSError):
                    if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "systemd":
                        it.leader = int(pid)
            if not it.leader:
                return False
            state = it.run("systemctl", "is-system-running", check=False).stdout.strip()
            return state in ("running", "degraded")
        try:
            wait_for("the container's systemd", booted, 60)
        except TimeoutError as error:
            raise RuntimeError((work / "log").read_text(errors="replace")) from error
        yield it
