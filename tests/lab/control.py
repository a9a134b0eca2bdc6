# SPDX-License-Identifier: Apache-2.0
"""The control file of the programmable disk: numbers that a test and plugin.c share while the disk is in use."""

import mmap
import struct
import time

# plugin.c has the same names in the same order; it refuses to start with another number of them.
FIELDS = (
    "write_delay_us", "rate", "cliff_after", "cliff_rate", "stall_after", "stall_us", "hang", "hang_after",
    "error", "error_after", "slow_period_us", "slow_part_us", "slow_rate", "first_write_rate", "volatile_cache", "keep_percent",
    "mark_us", "power", "lost_blocks", "written", "writes", "stall_end_us", "waiting",
)
BEHAVIOUR = FIELDS[:FIELDS.index("mark_us")]


class Control:
    def __init__(self, path):
        with open(path, "w+b") as file:
            file.truncate(8 * len(FIELDS))
            self._map = mmap.mmap(file.fileno(), 8 * len(FIELDS))

    def __getitem__(self, name):
        return struct.unpack_from("=Q", self._map, 8 * FIELDS.index(name))[0]

    def __setitem__(self, name, value):
        struct.pack_into("=Q", self._map, 8 * FIELDS.index(name), int(value))

    def mark(self):
        """From here on bytes and time count anew for cliff, stall, hang, error and slow seconds."""
        self["mark_us"] = time.monotonic_ns() // 1000
        self["written"] = 0
        self["writes"] = 0
        self["stall_end_us"] = 0

    def behave(self, **behaviour):
        """Sets the named fields from now on; all others become ordinary (0)."""
        unknown = set(behaviour) - set(BEHAVIOUR)
        if unknown:
            raise TypeError(f"no such behaviour: {', '.join(sorted(unknown))}; there are {', '.join(BEHAVIOUR)}")
        self.mark()
        # A hang comes last: what it holds must find everything else set already.
        for name in sorted(BEHAVIOUR, key=lambda n: n == "hang"):
            self[name] = behaviour.get(name, 0)

    def close(self):
        self._map.close()
