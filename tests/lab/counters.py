# SPDX-License-Identifier: Apache-2.0
"""A device's counters as a script tells them: what no real device can be made to do here.

The device, its file system and the writes are real. The programs read a tree of links into the real /sys in which
one file, the device's stat, is written anew every millisecond: the real numbers, changed by the script.
"""

import contextlib
import os
import pathlib
import shutil
import threading
import time

from .process import new_dir

W_IOS, W_SECTORS, W_MS, IO_MS, QUEUE_MS = 4, 6, 7, 9, 10
TIMES = (3, W_MS, IO_MS, QUEUE_MS)


class Counters:
    def __init__(self, disk, root):
        self.root = root          # for --sysfs
        self._real = pathlib.Path(f"/sys/class/block/{disk.name}")
        self._script = None
        self._first = None        # the real numbers when the script began
        self._stop = threading.Event()
        for place in os.scandir("/sys"):
            if place.name != "class":
                os.symlink(place.path, root / place.name)
        block = root / "class" / "block"
        block.mkdir(parents=True)
        for device in os.scandir("/sys/class/block"):
            if device.name != disk.name:
                os.symlink(device.path, block / device.name)
        self._own = block / disk.name
        self._own.mkdir()
        for entry in os.scandir(self._real):
            if entry.name != "stat":
                os.symlink(entry.path, self._own / entry.name)
        self._write()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def script(self, script):
        """SCRIPT(now, first) gives the numbers to show, or a text; FIRST were the real ones when it began."""
        self._first = self.real()
        self._script = script

    def real(self):
        return [int(value) for value in (self._real / "stat").read_text().split()]

    def _write(self):
        shown = self.real()
        script = self._script
        if script:
            shown = script(shown, self._first)
        text = shown if isinstance(shown, str) else " ".join(f"{value:8}" for value in shown) + "\n"
        (self.root / "new").write_text(text)
        os.replace(self.root / "new", self._own / "stat")

    def _work(self):
        with contextlib.suppress(OSError):  # the kernel writes its counters whatever else the machine does
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        while not self._stop.is_set():
            self._write()
            time.sleep(0.001)

    def close(self):
        self._stop.set()
        self._thread.join()


@contextlib.contextmanager
def counters(disk):
    root = new_dir()
    it = Counters(disk, root)
    try:
        yield it
    finally:
        it.close()
        shutil.rmtree(root, ignore_errors=True)


# ---- scripts ----

def untimed(now, first):
    """As bio based rows without start times: everything is counted, nothing timed."""
    return [first[i] if i in TIMES else value for i, value in enumerate(now)]


def still(now, first):
    """Another device, or a cache, does the work."""
    return first


def half(now, first):
    return [first[i] + (value - first[i]) // 2 if i in (W_IOS, W_SECTORS) else value for i, value in enumerate(now)]


def after(mib, then):
    """THEN from MIB on."""
    return lambda now, first: then(now, first) if now[W_SECTORS] - first[W_SECTORS] > mib * 2048 else now


def reset(now, first):
    """All begins at 0 again, as when a driver makes its device anew."""
    return [0 if i != 8 else value for i, value in enumerate(now)]


def unreadable(now, first):
    return "no numbers\n"


def jump(column, by):
    """The number has jumped far ahead."""
    return lambda now, first: [value + by if i == column else value for i, value in enumerate(now)]
