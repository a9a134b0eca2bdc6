# SPDX-License-Identifier: Apache-2.0
"""Real devices through the resolver: what device-show says of mounted file systems is what the kernel shows."""

import contextlib
import os
import pathlib
import struct
import subprocess

import pytest

from harness import BUILD
from lab import disk, run

DEVICE_SHOW = BUILD / "tests" / "tools" / "device-show"

pytestmark = [pytest.mark.disk, pytest.mark.installed]


def show(path, *options):
    done = subprocess.run([DEVICE_SHOW, path, *options], capture_output=True, text=True, timeout=30, check=True)
    answer = {}
    for line in done.stdout.splitlines():
        key, _, value = line.partition(":")
        answer[key] = value.strip()
    return answer


def mount_line(path):
    """The last line of mountinfo for this mount point, as fields."""
    lines = [line.split() for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
    return [line for line in lines if line[4] == str(path)][-1]


@contextlib.contextmanager
def mounted(*arguments):
    """`mount ARGUMENTS`, the last of which is the mount point."""
    arguments[-1].mkdir(exist_ok=True)
    run("mount", *arguments)
    try:
        yield arguments[-1]
    finally:
        run("umount", arguments[-1])


@contextlib.contextmanager
def loop(file, size=256 << 20):
    with open(file, "wb") as f:
        f.truncate(size)
    device = run("losetup", "--find", "--show", "--direct-io=on", file).stdout.strip()
    try:
        yield device
    finally:
        run("losetup", "-d", device)


@pytest.mark.parametrize("fs", ["xfs", "ext4", "btrfs"])
def test_file_systems(fs):
    with disk(fs=fs, programmable=False) as d:
        answer = show(d.directory("cache"))
        queue = pathlib.Path("/sys/class/block") / d.name / "queue"
        assert answer["status"] == "ok"
        assert answer["name"] == answer["rows"] == d.name
        assert answer["number"] == d.major_minor
        assert answer["filesystem"] == fs
        assert answer["mount_point"] == str(d.path)
        assert answer["mount_source"] == d.device
        assert answer["leaves_serve"] == "no"
        assert answer[f"{d.name}.kind"] == "loop"
        assert answer[f"{d.name}.dio"] == "1"
        assert answer[f"{d.name}.backing_file"].startswith(str(d.folder))
        for name in ("iostats", "rotational", "max_sectors_kb", "nr_requests", "logical_block_size", "write_cache"):
            assert answer[f"{d.name}.{name}"] == (queue / name).read_text().strip()
        assert answer[f"{d.name}.size_bytes"] == run("blockdev", "--getsize64", d.device).stdout.strip()
        assert answer[f"{d.name}.diskseq"] == (queue.parent / "diskseq").read_text().strip()
        if fs == "btrfs":
            # The very trap: three numbers for one file system, none of them the device's.
            assert os.major(os.stat(d.path).st_dev) == 0 and mount_line(d.path)[2].startswith("0:")
            assert answer["fs_uuid"] == run("blkid", "-p", "-o", "value", "-s", "UUID", d.device).stdout.strip()


def test_page_cache_is_named():
    with disk(dio=False, programmable=False) as d:
        answer = show(d.path)
        assert answer["name"] == d.name
        assert answer[f"{d.name}.dio"] == "0"
        assert f"{d.name} writes through the page cache" in answer["detail"]


def test_loop_on_loop():
    """A file on a loop device carries another: the stack shows both, the upper one is judged."""
    with disk(programmable=False) as d, loop(d.path / "inner image", 64 << 20) as device:
        run("mkfs.ext4", "-q", "-F", device)
        with mounted(device, d.folder / "inner") as path:
            answer = show(path)
            name = device.removeprefix("/dev/")
            assert answer["rows"] == name
            assert answer["stack"] == f"{name} {name}>{d.name}"


def test_btrfs_on_two_devices_and_subvolume():
    with disk(programmable=False) as d, loop(d.folder / "one") as one, loop(d.folder / "two") as two:
        names = sorted(device.removeprefix("/dev/") for device in (one, two))
        options = f"device={one},device={two}"
        run("mkfs.btrfs", "-q", "-f", "-K", "-d", "raid1", one, two)
        with mounted("-o", options, one, d.folder / "pair") as path:
            run("btrfs", "subvolume", "create", path / "sub")
            assert os.stat(path).st_dev != os.stat(path / "sub").st_dev
            for inside in (path, path / "sub"):
                answer = show(inside)
                assert answer["status"] == "ok", answer
                assert answer["rows"].split() == names
                assert answer["name"] == "+".join(names)
                assert "2 devices" in answer["detail"]
        with mounted("-o", f"subvol=sub,{options}", two, d.folder / "sub") as path:
            answer = show(path)
            assert answer["mount_root"] == "/sub"
            assert answer["rows"].split() == names


def test_overlay():
    with disk(programmable=False) as d:
        for name in ("lower", "up,per dir", "work"):
            d.directory(name)
        upper = str(d.path / "up,per dir").replace(",", "\\,")
        options = f"lowerdir={d.path}/lower,upperdir={upper},workdir={d.path}/work"
        with mounted("-t", "overlay", "overlay", "-o", options, d.folder / "merged") as path:
            answer = show(path)
            assert answer["status"] == "ok", answer
            assert answer["filesystem"] == "overlay"
            assert answer["name"] == d.name
            assert str(d.path / "up,per dir") in answer["detail"]


def test_overlay_with_relative_upperdir():
    with disk(programmable=False) as d:
        for name in ("lower", "upper", "work"):
            d.directory(name)
        point = d.folder / "merged"
        point.mkdir()
        # mount(8) makes paths absolute where it can; the system call does not.
        code = ("import ctypes, os, sys; os.chdir(sys.argv[1]); libc = ctypes.CDLL(None, use_errno=True)\n"
                "r = libc.mount(b'overlay', sys.argv[2].encode(), b'overlay', 0,"
                " b'lowerdir=lower,upperdir=upper,workdir=work')\n"
                "sys.exit(0 if r == 0 else os.strerror(ctypes.get_errno()))")
        run("/usr/bin/python3", "-c", code, d.path, point)
        try:
            answer = show(point)
            assert answer["status"] == "unresolvable", answer
            assert "upperdir upper is relative" in answer["detail"]
            assert answer["rows"] == ""
        finally:
            run("umount", point)


def test_overlay_without_upperdir():
    with disk(programmable=False) as d:
        d.directory("one"), d.directory("two")
        with mounted("-t", "overlay", "overlay", "-o", f"lowerdir={d.path}/one:{d.path}/two",
                     d.folder / "merged") as path:
            assert show(path)["status"] == "no_block_device"


def test_bind_over_and_hidden_mounts():
    with disk(programmable=False) as d, disk(programmable=False) as other:
        d.directory("sub dir")
        with mounted("--bind", d.path / "sub dir", d.folder / "bound") as path:
            answer = show(path)
            assert answer["name"] == d.name
            assert answer["mount_root"] == "/sub dir"
        # A file system over another, with a mount inside that it hides.
        inside = d.directory("inside")
        with mounted("-t", "tmpfs", "tmpfs", inside):
            assert show(inside)["status"] == "no_block_device"
            with mounted(other.device, d.path):
                other.directory("inside")
                answer = show(inside)
                assert (answer["status"], answer["name"]) == ("ok", other.name)
                assert answer["mount_point"] == str(d.path)
                assert os.stat(inside).st_dev == os.stat(other.path).st_dev
            assert show(d.path)["name"] == d.name


def test_partition():
    with disk(programmable=False) as d, loop(d.path / "parts", 64 << 20) as device:
        # An MBR of two partitions of 16 MiB.
        entries = [struct.pack("<BxxxBxxxII", 0, 0x83, 2048 + i * 32768, 32768) for i in range(2)]
        with open(device, "r+b") as f:
            f.write((bytes(446) + b"".join(entries)).ljust(510, b"\0") + b"\x55\xaa")
        run("partx", "-a", device)
        name = device.removeprefix("/dev/")
        try:
            run("mkfs.ext4", "-q", "-F", f"{device}p2")
            with mounted(f"{device}p2", d.folder / "p2") as path:
                answer = show(path)
                assert answer["name"] == answer["rows"] == name
                assert answer["stack"] == f"{name}p2 {name}p2>{name} {name}>{d.name}"
                assert answer[f"{name}p2.kind"] == "partition"
                assert show(path, "--device", f"{name}p2")["rows"] == f"{name}p2"
        finally:
            run("partx", "-d", device)


def test_disabled_counters_are_named():
    with disk(programmable=False) as d:
        iostats = pathlib.Path("/sys/class/block") / d.name / "queue" / "iostats"
        iostats.write_text("0")
        try:
            answer = show(d.path)
            assert answer["rows"] == d.name
            assert answer[f"{d.name}.iostats"] == "0"
            assert f"the row of {d.name} stands still" in answer["detail"]
        finally:
            iostats.write_text("1")


def test_no_block_device(tmp_path):
    assert show("/proc")["status"] == "no_block_device"
    with mounted("-t", "tmpfs", "tmpfs", tmp_path / "memory") as path:
        answer = show(path)
        assert answer["status"] == "no_block_device"
        assert "tmpfs keeps its files in memory" in answer["detail"]


def test_links_below_dev(tmp_path):
    """`device = /dev/disk/by-id/...`: a link that /sys does not know."""
    with disk(programmable=False) as d:
        link = pathlib.Path("/dev") / f"tierprobe-test-{os.getpid()}"
        link.symlink_to(d.device)
        try:
            assert show("/", "--device", str(link))["rows"] == d.name
        finally:
            link.unlink()


def test_chroot_without_sys_and_mount():
    """In a chroot whose root is no mount only stat() and diskstats are left."""
    with disk(programmable=False) as d:
        root = d.directory("root")
        for name in ("proc", "usr", "work"):
            (root / name).mkdir()
        folders = ["lib", "lib64", *(["bin"] if os.path.islink("/bin") else [])]
        for name in folders:
            (root / name).symlink_to(f"usr/{name}")
        tool = root / "device-show"
        tool.write_bytes(DEVICE_SHOW.read_bytes())
        tool.chmod(0o755)
        with mounted("--bind", "/usr", root / "usr"), mounted("-t", "proc", "proc", root / "proc"):
            answer = dict(line.partition(":")[::2] for line in run("chroot", root, "/device-show", "/work").stdout
                          .splitlines())
        assert answer["status"].strip() == "ok", answer
        assert answer["rows"].strip() == d.name
        assert answer["mount_point"].strip() == ""
        assert answer["number"].strip() == d.major_minor


# ---- what the kernel says beside the counters ----

def condition(path, prefix=()):
    done = subprocess.run([*prefix, DEVICE_SHOW, path, "--condition"], capture_output=True, text=True, timeout=30,
                          check=True)
    return done.stdout.splitlines()


@contextlib.contextmanager
def control_group(device, bytes_per_s):
    """A control group with a limit on DEVICE, of whatever version is here; gives the file with the limit."""
    major_minor = pathlib.Path(f"/sys/class/block/{device}/dev").read_text().strip()
    for base, file, line in [("/sys/fs/cgroup/blkio", "blkio.throttle.write_bps_device", f"{major_minor} {bytes_per_s}"),
                             ("/sys/fs/cgroup", "io.max", f"{major_minor} wbps={bytes_per_s}")]:
        group = pathlib.Path(base) / f"tierprobe-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / file).write_text(line)
        except OSError:
            group.rmdir()
            continue
        try:
            yield group / file
        finally:
            group.rmdir()
        return
    pytest.skip("no control group with a limit of writing can be made here")


def test_own_limits():
    """The kernel's own limits, on the process that asks."""
    with disk(fs="ext4", programmable=False) as d:
        device = show(d.path)["name"]
        with control_group(device, 123456789) as file:
            enter = f'echo $$ > {file.parent}/cgroup.procs; ulimit -f 1000; exec ionice -c 3 "$@"'
            lines = condition(d.path, ["sh", "-c", enter, "sh"])
        words = [line.split() for line in lines]
        assert ["limit:", "write_bytes_per_s", "123456789", device] in [line[:4] for line in words]
        assert any(line.startswith("limit: write_bytes") and f"/{file.parent.name}/{file.name} " in line for line in lines)
        assert any(line.startswith("limit: file_size_bytes 512000 ") for line in lines)
        assert any(line.startswith("limit: idle_io ") for line in lines)
        assert not any("limit: write" in line or "idle" in line for line in condition(d.path))
        assert any(line.startswith(f'state: {device} ext4.errors "0"') for line in lines)


def test_journaled_data():
    with disk(fs="ext4", programmable=False) as d:
        assert show(d.path)["journals_data"] == "no"
        device = show(d.path)["mount_source"]
        run("umount", d.path)
        run("tune2fs", "-o", "journal_data", device)
        run("mount", device, d.path)
        assert show(d.path)["journals_data"] == "yes"  # though the mount table does not say so
