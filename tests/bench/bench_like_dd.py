#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The profile `procedure` beside the documented dd near the limit, where a few percent decide.

    bench_like_dd.py [--tierprobe build/src/tierprobe] [--mb-per-s 600] [--count 900] [--pairs 20]

Needs root, fio and what the system tests need for their disks; takes about three minutes. A disk answers each write
after a delay that is sought first, so that dd makes about so many MB/s (10^6 bytes). Then dd, tierprobe, the same with
blocks that are prepared (as fio does it) and fio's psync are run in turn, each going first equally often. Printed: the
median and the spread of each, and of the ratio to the dd of the same round. Short counts would show what dd counts in
before its first write. It judges nothing.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import lab  # noqa: E402

MIB = 1 << 20


def dd(disk, count):
    file = disk.path / "testfile"
    done = subprocess.run(["dd", "if=/dev/zero", f"of={file}", "bs=1M", f"count={count}", "oflag=direct,dsync"], check=True,
                          capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
    file.unlink()
    return count * MIB / 1e6 / float(re.search(r", ([0-9.e-]+) s, ", done.stderr)[1])


def tierprobe(program, disk, count):
    done = subprocess.run([program, "run", disk.path, "--count", str(count), "--json"], capture_output=True, text=True)
    run = json.loads(done.stdout)
    return run["bytes_written"] / 1e6 / run["elapsed_s"]


def prepared(program, disk, count):
    done = subprocess.run([program, f"--count={count}", disk.path], check=True, capture_output=True, text=True)
    result = json.loads(done.stdout)
    return result["bytes"] / 1e6 / result["seconds"]


def fio(disk, count):
    done = subprocess.run(["fio", "--name=one", f"--directory={disk.path}", "--rw=write", "--bs=1M", "--direct=1", "--sync=dsync",
                           "--ioengine=psync", f"--size={count}M", "--fallocate=none", "--file_append=1", "--create_on_open=1",
                           "--unlink=1", "--zero_buffers", "--thread=0", "--output-format=json"],
                          check=True, capture_output=True, text=True, cwd="/tmp")
    return json.loads(done.stdout)["jobs"][0]["write"]["bw_bytes"] / 1e6


def settle(disk, needed):
    """xfs gives space back after a while."""
    lab.wait_for("space", lambda: disk.free_bytes() > needed, 60)


def seek_delay(disk, wanted, count):
    """The delay of a write with which dd makes WANTED MB/s: throughput falls as it grows."""
    low, high = 0, 20000
    for _ in range(10):
        delay = (low + high) // 2
        disk.behave(write_delay_us=delay)
        low, high = (delay, high) if dd(disk, count) > wanted else (low, delay)
        settle(disk, count * MIB)
    return (low + high) // 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tierprobe", default="build/src/tierprobe")
    parser.add_argument("--probe-run", default="build/tests/tools/probe-run")
    parser.add_argument("--mb-per-s", type=float, default=600)
    parser.add_argument("--count", type=int, default=900)
    parser.add_argument("--pairs", type=int, default=20)
    arguments = parser.parse_args()

    count = arguments.count
    runs = {
        "dd": lambda d: dd(d, count),
        "tierprobe": lambda d: tierprobe(arguments.tierprobe, d, count),
        "prepared": lambda d: prepared(arguments.probe_run, d, count),
        "fio": lambda d: fio(d, count),
    }
    rates = {name: [] for name in runs}
    with lab.disk(size="1200M") as disk:
        delay = seek_delay(disk, arguments.mb_per_s, count)
        disk.behave(write_delay_us=delay)
        for i in range(arguments.pairs):
            names = list(runs)
            for name in names[i % len(names):] + names[:i % len(names)]:
                rates[name].append(runs[name](disk))
                settle(disk, count * MIB)
    print(f"  each write is answered after {delay} us; {arguments.pairs} rounds of {count} MiB, MB/s and ratio to dd:")
    for name, own in rates.items():
        ratios = [a / b for a, b in zip(own, rates["dd"])]
        low, _, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else (ratios[0],) * 3
        print(f"  {name:10} median {statistics.median(own):6.1f} ({min(own):.0f}..{max(own):.0f})"
              f"   ratio median {statistics.median(ratios):.3f} (quartiles {low:.3f}..{high:.3f})")


if __name__ == "__main__":
    main()
