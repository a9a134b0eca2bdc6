# SPDX-License-Identifier: Apache-2.0
"""Disks for tests: a loop device on a file in memory, or on a programmable disk, with a file system.

`with disk(rate=100 << 20) as d:` is a mounted xfs whose device takes 100 MiB/s. Leaving the block removes
everything, also when the disk hangs or is gone. Needs root and the programs that missing() names.
"""

import contextlib
import ctypes
import fcntl
import functools
import os
import pathlib
import shutil
import stat
import struct
import socket as socketlib
import subprocess
import sys
import tempfile

from .control import BEHAVIOUR, FIELDS, Control
from .process import hardware, kill, new_dir, parse_size, run, spawn, unmount, wait_for

HERE = pathlib.Path(__file__).parent
TOOLS = ("nbdkit", "nbdfuse", "losetup", "mkfs.xfs", "mkfs.ext4", "mkfs.btrfs", "e2fsck", "xfs_io", "setpriv", "cc")

# No background work of the file system after mkfs: it would be foreign I/O in a test.
MKFS = {
    "xfs": ("mkfs.xfs", "-q", "-K"),
    "ext4": ("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"),
    "btrfs": ("mkfs.btrfs", "-q", "-f", "-K"),
}


@functools.cache
def missing():
    """Why there can be no disks here, or None."""
    if os.geteuid() != 0:
        return "not root"
    if not os.path.exists("/dev/loop-control"):
        return "no loop devices"
    if not os.path.exists("/dev/fuse"):
        return "no /dev/fuse"
    if not os.access("/dev/shm", os.W_OK):
        return "no /dev/shm"
    absent = [tool for tool in TOOLS if not shutil.which(tool)]
    return f"{', '.join(absent)} not installed" if absent else None


@functools.cache
def plugin():
    """The programmable disk's plugin, built once a session."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tierprobe-plugin-"))
    target = folder / "lab.so"
    run("cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread", "-o", target, HERE / "plugin.c")
    # Left open and nameless: nothing to remove at the end.
    fd = os.open(target, os.O_RDONLY)
    os.set_inheritable(fd, True)
    shutil.rmtree(folder)
    return fd


class Disk:
    """What a test may know of its disk and do to it."""

    def __init__(self, folder):
        self.folder = folder
        self.path = None        # the mounted file system's top directory
        self.device = None      # "/dev/loop3"
        self.filesystem = None
        self.control = None     # of a programmable disk
        self._servers = []
        self._free = None
        self._dev = None
        self._mount_options = ""

    @property
    def name(self):
        return self.device.removeprefix("/dev/")

    @property
    def major_minor(self):
        device = os.stat(self.device).st_rdev
        return f"{os.major(device)}:{os.minor(device)}"

    def directory(self, name, mode=0o755):
        """A directory on the disk for one target."""
        path = self.path / name
        path.mkdir(mode=mode, exist_ok=True)
        path.chmod(mode)
        return path

    def mount(self):
        run("mount", "-t", self.filesystem, "-o", self._mount_options, self.device, self.path)
        self._dev = os.stat(self.path).st_dev

    # ---- doing something to it ----

    def behave(self, **behaviour):
        """Makes the disk behave so from now on, and only so; bytes and time count from here."""
        self.control.behave(**behaviour)

    def hang(self):
        self.control["hang"] = 1

    def unhang(self):
        self.control["hang_after"] = 0
        self.control["hang"] = 0

    def remove(self):
        """Pulls the disk out: every request from now on fails."""
        for server in self._servers:
            kill(server)

    def go_read_only(self):
        """What a file system does on its own when its metadata could not be written."""
        if self.filesystem == "ext4":
            pathlib.Path(f"/sys/fs/ext4/{self.name}/trigger_fs_error").write_text("1")
        elif self.filesystem == "xfs":
            run("xfs_io", "-x", "-c", "shutdown", self.path)
        else:
            raise NotImplementedError(self.filesystem)

    def cut_power(self):
        """From here on nothing works; of what was not flushed keep_percent of its blocks will be there again."""
        self.control["power"] = 1

    def restore_power(self):
        """As after a boot: mounted anew, by the file system's own recovery."""
        wait_for("no open file", lambda: not self.open_files())
        unmount(self.path)
        self.control["power"] = 2
        self.mount()

    def heal(self):
        """An ordinary disk again, mounted anew: what a reboot after the failure would find."""
        if self.control:
            self.behave()
        wait_for("no open file", lambda: not self.open_files())
        unmount(self.path)
        if self.filesystem == "ext4":
            run("e2fsck", "-fy", self.device, check=False)  # after an error a mount alone does not free lost files
        self.mount()

    def fill(self, leave):
        """Takes all space but LEAVE bytes, by a file that a call of unfill() removes."""
        leave = parse_size(leave)
        with open(self.path / ".lab-fill", "ab") as file:
            chunk = 1 << 30
            while chunk >= 4096:
                end = os.fstat(file.fileno()).st_size
                if self._free_now() - chunk < leave:
                    chunk //= 2
                    continue
                try:
                    os.posix_fallocate(file.fileno(), end, chunk)
                except OSError:  # metadata needs some too, or somebody else was quicker
                    os.ftruncate(file.fileno(), end)
                    chunk //= 2

    def unfill(self):
        (self.path / ".lab-fill").unlink(missing_ok=True)

    @contextlib.contextmanager
    def other_writer(self, block="1M"):
        """Somebody else writes to the disk, for as long as the block lasts."""
        code = ("import mmap, os, sys\n"
                "fd = os.open(sys.argv[1], os.O_TMPFILE | os.O_WRONLY | os.O_DIRECT | os.O_DSYNC, 0o600)\n"
                "block = mmap.mmap(-1, int(sys.argv[2]))\n"
                "while True:\n"
                "    for i in range(32):\n"
                "        os.pwrite(fd, block, i * len(block))\n"
                "        if i == 0: print(flush=True)\n")
        writer = spawn(sys.executable, "-c", code, self.path, parse_size(block), stdout=subprocess.PIPE)
        try:
            writer.stdout.readline()
            yield writer
        finally:
            kill(writer)
            writer.stdout.close()

    # ---- looking at it ----

    def counters(self):
        """{"writes", "sectors", "ms", "in_flight", "flushes"} of the row, since the kernel made the device."""
        values = [int(v) for v in pathlib.Path(f"/sys/class/block/{self.name}/stat").read_text().split()]
        return {"writes": values[4], "sectors": values[6], "ms": values[7], "in_flight": values[8],
                "flushes": values[15] if len(values) > 15 else 0}

    def free_bytes(self):
        run("sync", "-f", self.path, check=False)
        return self._free_now()

    def _free_now(self):
        facts = os.statvfs(self.path)
        return facts.f_bfree * facts.f_frsize

    def files(self):
        """Every name on the disk, relative, except what belongs to the file system or the lab."""
        found = []
        for folder, folders, names in os.walk(self.path):
            if "lost+found" in folders:
                folders.remove("lost+found")
            found += [os.path.relpath(os.path.join(folder, name), self.path) for name in names]
        return [name for name in found if name != ".lab-fill"]

    def open_files(self):
        """[(pid, link)] of every process with a file open on the disk, unlinked ones included."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):  # processes come and go
                for entry in os.scandir(f"/proc/{pid}/fd"):
                    with contextlib.suppress(OSError):
                        link = os.readlink(entry.path)
                        # A broken file system does not even answer stat().
                        if link.startswith(f"{self.path}/") or self._is_ours(os.stat(entry.path)):
                            found.append((int(pid), link))
        return found

    def _is_ours(self, st):
        return st.st_dev == self._dev and stat.S_ISREG(st.st_mode)

    def remember(self):
        """Takes the present free space as what nothing_left() must find again."""
        self._free = self.free_bytes()

    def nothing_left(self, slack=4 << 20, deadline_s=120):
        """Waits until no file, open file or lost space is left; says what remains when that does not come."""
        def left():
            lost = self._free - self.free_bytes()
            return {"files": self.files(), "open": self.open_files(), "lost_bytes": lost if lost > slack else 0}
        try:
            wait_for("an empty disk", lambda: not any(left().values()), deadline_s)
        except TimeoutError:
            pass
        return left() if any(left().values()) else None


def _memory_file(folder, size, written):
    path = folder / "data"
    with open(path, "wb") as file:
        if written:  # the first write of a page in /dev/shm is several times slower than later ones
            block = bytes(1 << 20)
            for _ in range(size >> 20):
                file.write(block)
        file.truncate(size)
    return path


def _listens(path):
    """Whether somebody takes connections there: the file is there a moment before."""
    with socketlib.socket(socketlib.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def _serve(stack, disk, data):
    """nbdkit with the plugin, and nbdfuse that shows it as a file. Returns that file."""
    control = Control(disk.folder / "control")
    stack.callback(control.close)
    disk.control = control
    socket, image = disk.folder / "socket", disk.folder / "image"
    image.touch()
    log = stack.enter_context(open(disk.folder / "log", "wb"))
    fd = plugin()
    nbdkit = spawn(*hardware(), "nbdkit", "--foreground", "--unix", socket, "--threads", "16", f"/proc/self/fd/{fd}",
                   f"file={data}", f"control={disk.folder / 'control'}", f"fields={len(FIELDS)}",
                   pass_fds=(fd,), stdout=log, stderr=log)
    stack.callback(kill, nbdkit)

    def alive(process, condition):
        if process.poll() is not None:
            raise RuntimeError((disk.folder / "log").read_text(errors="replace"))
        return condition()
    wait_for("nbdkit to listen", lambda: alive(nbdkit, lambda: _listens(socket)))
    nbdfuse = spawn(*hardware(), "nbdfuse", image, "--unix", socket, stdout=log, stderr=log)
    disk._servers = [nbdkit, nbdfuse]
    stack.callback(kill, nbdfuse)
    stack.callback(unmount, image)
    size = data.stat().st_size

    def shown():
        try:
            return os.stat(image).st_size == size
        except OSError:
            return False
    wait_for("nbdfuse", lambda: alive(nbdfuse, shown))
    return image


def _loop(stack, file, dio, sector_size=512):
    command = ["losetup", "--find", "--show", f"--direct-io={'on' if dio else 'off'}", f"--sector-size={sector_size}"]
    for _ in range(20):  # another process may take the free one first
        done = run(*command, file, check=False)
        if done.returncode == 0:
            break
    else:
        raise RuntimeError(f"losetup: {done.stderr}")
    device = done.stdout.strip()
    stack.callback(run, "losetup", "-d", device, check=False)
    shown = pathlib.Path(f"/sys/block/{device.removeprefix('/dev/')}/loop/dio").read_text().strip()
    if shown != str(int(dio)):
        raise RuntimeError(f"{device}: dio is {shown}, asked for {int(dio)}")
    return device


def _mount(stack, it, filesystem, mount_options, point, mkfs_options=()):
    run(*MKFS[filesystem], *mkfs_options, it.device)
    point.mkdir()
    it.path, it.filesystem = point, filesystem
    it._mount_options = ",".join(["noatime", *(["errors=remount-ro"] if filesystem == "ext4" else []), *mount_options])
    it.mount()
    stack.callback(unmount, point)
    it.remember()


@contextlib.contextmanager
def disk(size="512M", fs="xfs", dio=True, mount_options=(), programmable=True, sector_size=512,
         mkfs_options=(), **behaviour):
    """A mounted disk; see Disk, and plugin.c for the behaviours. Not programmable: straight on memory, fast."""
    unknown = set(behaviour) - set(BEHAVIOUR)
    if unknown or (behaviour and not programmable):
        raise TypeError(f"no such behaviour: {', '.join(sorted(unknown or behaviour))}")
    with contextlib.ExitStack() as stack:
        it = Disk(new_dir())
        stack.callback(shutil.rmtree, it.folder, ignore_errors=True)
        file = _memory_file(it.folder, parse_size(size), written=not programmable)
        if programmable:
            file = _serve(stack, it, file)
        it.device = _loop(stack, file, dio, sector_size)
        _mount(stack, it, fs, mount_options, it.folder / "mnt", mkfs_options)
        if programmable:
            stack.callback(it.behave)  # first of all at the end: nothing may hang while the rest is taken down
            it.behave(**behaviour)
        yield it


ADD_PARTITION, DELETE_PARTITION = 1, 2


def _partition(operation, device, number, start=0, sectors=0):
    """BLKPG of linux/blkpg.h: straight to the kernel, since not every kernel reads partition tables."""
    blkpg = 0x1269
    partition = ctypes.create_string_buffer(struct.pack("=qqi64s64s", start * 512, sectors * 512, number, b"", b""), 152)
    with open(device, "rb") as file:
        fcntl.ioctl(file, blkpg, struct.pack("@iiiP", operation, 0, len(partition), ctypes.addressof(partition)))


@contextlib.contextmanager
def two_partitions(size="1G", fs="xfs"):
    """Two mounted file systems on one fast disk: [Disk, Disk] with names like loop3p1."""
    with contextlib.ExitStack() as stack:
        folder = new_dir()
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        file = _memory_file(folder, parse_size(size), written=False)
        device = _loop(stack, file, dio=True)
        sectors = parse_size(size) // 2 // 512 - 2048
        disks = []
        for number in (1, 2):
            it = Disk(folder)
            it.device = f"{device}p{number}"
            _partition(ADD_PARTITION, device, number, 2048 + (number - 1) * sectors, sectors)
            stack.callback(_partition, DELETE_PARTITION, device, number)
            wait_for(it.device, lambda it=it: os.path.exists(it.device))
            _mount(stack, it, fs, (), folder / f"mnt{number}")
            disks.append(it)
        yield disks


def private_mounts():
    """Gives this process its own view of mounts, so that they vanish with it, whatever ends it."""
    clone_newns = 0x00020000
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(clone_newns) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    run("mount", "--make-rprivate", "/")
