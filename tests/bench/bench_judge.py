#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Time and memory of `tierprobe judge` over a day of iostat: 86,400 reports of 8 devices, some 130 MB.

usage: bench_judge.py PROGRAM [ARGUMENT...]   (PROGRAM is run as PROGRAM ARGUMENT... FILE, e.g. bench_judge.py build/tierprobe judge)

Prints seconds, MB/s and the peak memory. No limit is enforced; the aim is 3 s on two slow cores, and memory that
does not grow with the file.
"""

import os
import random
import resource
import subprocess
import sys
import tempfile
import time

REPORTS, DEVICES = 86400, 8
HEADER = ("Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz"
          "     d/s     dkB/s   drqm/s  %drqm d_await dareq-sz     f/s f_await  aqu-sz  %util\n")
CPU = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n           0.49    0.00   20.59   30.39    0.00   48.53\n\n"


def generate(out, reports):
    """Writes a capture; a thousand different reports, repeated in random order."""
    rng = random.Random(1)
    some = []
    for _ in range(1000):
        text = "\n" + CPU + HEADER
        for device in range(DEVICES):
            w_s = rng.uniform(500, 1500)
            text += (f"nvme{device}n1     {1:7.2f} {4:9.2f} {0:8.2f} {0:6.2f} {0.12:7.2f} {4:8.2f} {w_s:7.2f} {w_s * 1024:9.2f} {0:8.2f} "
                     f"{0:6.2f} {rng.uniform(0.5, 19):7.2f} {1024:8.2f} {0:7.2f} {0:9.2f} {0:8.2f} {0:6.2f} {0:7.2f} {0:8.2f} {20:7.2f} "
                     f"{0.03:7.2f} {1.49:7.2f} {84:6.2f}\n")
        some.append(text)
    out.write("Linux 6.1.0-28-amd64 (db2-node1) \t11/30/26 \t_x86_64_\t(2 CPU)\n\n")
    for _ in range(reports):
        out.write(rng.choice(some))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for reports in (REPORTS // 10, REPORTS):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as capture:
            generate(capture, reports)
            capture.flush()
            size = os.path.getsize(capture.name)
            start = time.monotonic()
            result = subprocess.run(sys.argv[1:] + [capture.name], stdout=subprocess.PIPE, check=False)
            seconds = time.monotonic() - start
            peak_kb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            print(f"{reports} reports, {size / 1e6:.0f} MB: {seconds:.2f} s, {size / 1e6 / seconds:.0f} MB/s, peak {peak_kb / 1024:.1f} MiB, "
                  f"exit status {result.returncode}, {len(result.stdout)} bytes out")


if __name__ == "__main__":
    main()
