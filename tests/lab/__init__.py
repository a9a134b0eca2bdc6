# SPDX-License-Identifier: Apache-2.0
"""Programmable disks for the system tests.

    from lab import disk
    with disk(rate=30_000_000) as d:        # a mounted xfs on a disk that takes 30 MB/s
        ...                                 # d.path, d.name, d.major_minor, d.behave(), d.hang(), d.nothing_left()

catalog.py names the disks that the programs must judge, each with the truth about it.
"""

from .counters import counters
from .disk import Disk, disk, missing, private_mounts, two_partitions
from .process import kill, links, run, spawn, sweep, wait_for

__all__ = ["HELD_UP", "Disk", "counters", "disk", "kill", "links", "missing", "private_mounts", "run", "spawn", "sweep",
           "two_partitions", "wait_for"]

# How a verdict's reason begins when the measuring host, not the disk, was what held a test up.
HELD_UP = "This host held the test up"
