# SPDX-License-Identifier: Apache-2.0
"""The disks that the programs must judge: one line each, with the truth about it.

Limits and sizes are small, so that a slow and busy test machine comes to the same truth: a good disk takes
300 MB/s against a limit of 75, a bad one less than half the limit, and every second sample may be spoilt by what
else the machine does. Where the rule for samples matters a case sets its own ratio.
"""

import dataclasses

MB = 1_000_000
MIB = 1 << 20

LIMITS = {"write_mb_per_s": 75, "w_await_ms": 20, "pass_ratio": 0.5}


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


GOOD = 300 * MB
THROUGHPUT, LATENCY = "write_throughput_low", "write_latency_high"

CASES = [
    case("memory", {"programmable": False, "size": "1G"}, "pass", count=900),
    case("xfs", {"rate": GOOD}, "pass"),
    case("ext4", {"rate": GOOD, "fs": "ext4"}, "pass"),
    case("btrfs", {"rate": GOOD, "fs": "btrfs"}, "pass"),
    case("slow", {"rate": 30 * MB}, "fail", THROUGHPUT, never=[LATENCY, "unsteady"], count=64),
    case("slow-ext4", {"rate": 30 * MB, "fs": "ext4"}, "fail", THROUGHPUT, count=64),
    case("slow-btrfs", {"rate": 30 * MB, "fs": "btrfs"}, "fail", THROUGHPUT, never=["foreign_io"], count=64),
    case("latency", {"write_delay_us": 25000}, "fail", LATENCY, never=[THROUGHPUT], count=40,
         limits={**LIMITS, "write_mb_per_s": 5}),
    case("latency-ext4", {"write_delay_us": 25000, "fs": "ext4"}, "fail", LATENCY, never=[THROUGHPUT], count=40,
         limits={**LIMITS, "write_mb_per_s": 5}),
    case("both", {"rate": 20 * MB, "write_delay_us": 30000}, "fail", THROUGHPUT, LATENCY, count=32),
    case("third-slow", {"rate": GOOD, "slow_period_us": 900000, "slow_part_us": 300000, "slow_rate": 30 * MB}, "fail",
         "unsteady", never=[THROUGHPUT, LATENCY], count=400,
         limits={**LIMITS, "pass_ratio": 0.9}),
    case("cliff", {"rate": GOOD, "cliff_after": 64 * MIB, "cliff_rate": 30 * MB}, "fail", THROUGHPUT, count=128),
    case("first-write", {"rate": GOOD, "first_write_rate": 40 * MB}, "fail", THROUGHPUT, never=[LATENCY], count=64),
    case("stall", {"rate": GOOD, "stall_after": 64 * MIB, "stall_us": 5000000}, "fail", "stalled", THROUGHPUT),
    case("hang", {"rate": GOOD, "hang_after": 64 * MIB}, "fail", "stalled", "truncated", max_duration="2s",
         after="unhang"),
    case("eio", {"rate": GOOD, "error": 5, "error_after": 64 * MIB}, "fail", "write_error", after="heal"),
    case("eio-ext4", {"rate": GOOD, "fs": "ext4", "error": 5, "error_after": 64 * MIB}, "fail", "write_error",
         after="heal"),
    case("enospc", {"rate": 40 * MB}, "inconclusive", "no_space", during=("fill", "1M"), after="unfill",
         state="failed"),
    case("enospc-ext4", {"rate": 40 * MB, "fs": "ext4"}, "inconclusive", "no_space", during=("fill", "1M"),
         after="unfill", state="failed"),
    case("removed", {"rate": 40 * MB}, "fail", "write_error", during=("remove",), dead=True),
    case("read-only", {"rate": 40 * MB}, "fail", "write_error", during=("go_read_only",), after="heal"),
    case("read-only-ext4", {"rate": 40 * MB, "fs": "ext4"}, "fail", "write_error", during=("go_read_only",),
         after="heal"),
    case("other-writer", {"rate": 60 * MB}, "inconclusive", "foreign_io", THROUGHPUT, beside="other_writer", count=48),
    case("compressed", {"fs": "btrfs", "mount_options": ["compress=zstd"]}, "inconclusive", "bytes_mismatch"),
    # Each write is synced, so the slow file shows through the cache; that there is one the device's detail says.
    case("page-cache", {"rate": 30 * MB, "dio": False}, "fail", THROUGHPUT, count=64),
]
