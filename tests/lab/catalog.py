# SPDX-License-Identifier: Apache-2.0
"""The disks that the programs must judge: one line each, with the truth about it.

Limits and sizes are small, so that a slow and busy test machine comes to the same truth. Between what a disk does
and each limit that it must not cross is a factor of four at least, and every second sample may be spoilt by what else
the machine does. A disk can be too slow for one limit only if the other one is far away: such cases have limits of
their own, as those have where the rule for samples matters.
"""

import dataclasses

MB = 1_000_000
MIB = 1 << 20

GOOD = 300 * MB  # at least half of it remains, with what a file system and a busy machine take
SLOW = 7 * MB    # w_await of some 100 ms with the requests that the kernel makes of 1 MiB

LIMITS = {"write_mb_per_s": 30, "w_await_ms": 40, "pass_ratio": 0.5}
ANY_LATENCY = {**LIMITS, "w_await_ms": 1000}
ANY_THROUGHPUT = {**LIMITS, "write_mb_per_s": 1, "w_await_ms": 20}
STEADY = {**LIMITS, "pass_ratio": 0.9}


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    disk: dict                 # arguments of disk()
    verdict: str
    reasons: frozenset = frozenset()   # codes that must be there
    never: frozenset = frozenset()     # codes that must not
    count: int = 300           # blocks of 1 MiB
    limits: dict = dataclasses.field(default_factory=lambda: dict(LIMITS))
    during: tuple = ()         # what happens to the disk in the middle: a method of Disk and its arguments
    beside: str = ""           # what goes on all the while: a method of Disk that is a context
    after: str = ""            # what makes the disk ordinary again, so that it can be looked at
    dead: bool = False         # nothing can: it is gone
    max_duration: str = "10m"  # of the run
    state: str = "finished"

    @property
    def whole(self):
        """Whether all bytes are written."""
        return not self.during and not self.after


def case(name, disk, verdict, *reasons, never=(), **more):
    return Case(name, disk, verdict, frozenset(reasons), frozenset(never), **more)


THROUGHPUT, LATENCY = "write_throughput_low", "write_latency_high"

CASES = [
    case("memory", {"programmable": False, "size": "1G"}, "pass", count=900),
    case("xfs", {"rate": GOOD}, "pass"),
    case("ext4", {"rate": GOOD, "fs": "ext4"}, "pass"),
    case("btrfs", {"rate": GOOD, "fs": "btrfs"}, "pass"),
    case("slow", {"rate": SLOW}, "fail", THROUGHPUT, never=[LATENCY, "unsteady"], count=16, limits=ANY_LATENCY),
    case("slow-ext4", {"rate": SLOW, "fs": "ext4"}, "fail", THROUGHPUT, never=[LATENCY], count=16, limits=ANY_LATENCY),
    case("slow-btrfs", {"rate": SLOW, "fs": "btrfs"}, "fail", THROUGHPUT, never=[LATENCY, "foreign_io"], count=16,
         limits=ANY_LATENCY),
    # A block takes such a delay twice, with what the file system writes for it: some 6 MB/s.
    case("latency", {"write_delay_us": 80000}, "fail", LATENCY, never=[THROUGHPUT], count=16, limits=ANY_THROUGHPUT),
    case("latency-ext4", {"write_delay_us": 80000, "fs": "ext4"}, "fail", LATENCY, never=[THROUGHPUT], count=16,
         limits=ANY_THROUGHPUT),
    case("both", {"rate": SLOW, "write_delay_us": 160000}, "fail", THROUGHPUT, LATENCY, count=12),
    # Four slow seconds, where one decides.
    case("half-slow", {"rate": GOOD, "slow_period_us": 1600000, "slow_part_us": 800000, "slow_rate": SLOW, "size": "2G"},
         "fail", "unsteady", never=[THROUGHPUT, LATENCY], count=1300, limits={**STEADY, "w_await_ms": 400}),
    case("cliff", {"rate": GOOD, "cliff_after": 16 * MIB, "cliff_rate": SLOW}, "fail", THROUGHPUT, count=32,
         limits={**ANY_LATENCY, "write_mb_per_s": 60}),
    case("first-write", {"rate": GOOD, "first_write_rate": SLOW}, "fail", THROUGHPUT, never=[LATENCY], count=16,
         limits=ANY_LATENCY),
    case("stall", {"rate": GOOD, "stall_after": 64 * MIB, "stall_us": 5000000}, "fail", "stalled", THROUGHPUT, count=100,
         limits={**LIMITS, "write_mb_per_s": 80}),
    case("hang", {"rate": GOOD, "hang_after": 64 * MIB}, "fail", "stalled", "truncated", max_duration="2s",
         after="unhang"),
    case("eio", {"rate": GOOD, "error": 5, "error_after": 64 * MIB}, "fail", "write_error", after="heal"),
    case("eio-ext4", {"rate": GOOD, "fs": "ext4", "error": 5, "error_after": 64 * MIB}, "fail", "write_error",
         after="heal"),
    # What happens in the middle has a quarter of a minute to come before the end.
    case("enospc", {"rate": 20 * MB}, "inconclusive", "no_space", during=("fill", "1M"), after="unfill",
         state="failed"),
    case("enospc-ext4", {"rate": 20 * MB, "fs": "ext4"}, "inconclusive", "no_space", during=("fill", "1M"),
         after="unfill", state="failed"),
    case("removed", {"rate": 20 * MB}, "fail", "write_error", during=("remove",), dead=True),
    case("read-only", {"rate": 20 * MB}, "fail", "write_error", during=("go_read_only",), after="heal"),
    case("read-only-ext4", {"rate": 20 * MB, "fs": "ext4"}, "fail", "write_error", during=("go_read_only",),
         after="heal"),
    case("other-writer", {"rate": SLOW}, "inconclusive", "foreign_io", THROUGHPUT, beside="other_writer", count=8),
    case("compressed", {"fs": "btrfs", "mount_options": ["compress=zstd"]}, "inconclusive", "bytes_mismatch"),
    # Each write is synced, so the slow file shows through the cache; that there is one the device's detail says.
    case("page-cache", {"rate": SLOW, "dio": False}, "fail", THROUGHPUT, count=16, limits=ANY_LATENCY),
]
