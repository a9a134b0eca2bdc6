#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A ramp beside fio: the same number of writers, blocks and flags on the same disks, as the kernel's row shows both.

    bench_ramp.py [--tierprobe build/src/tierprobe] [--streams 16] [--seconds 2] [--rounds 3]

Needs root, fio and what the system tests need for their disks. For each depth both are run in alternation, each in a
round of its own; medians are printed. It judges nothing.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import lab  # noqa: E402

MIB = 1 << 20
DISKS = {
    "memory, fast": {"programmable": False, "size": "900M"},
    "8 ms for each request": {"write_delay_us": 8000, "size": "900M"},
}


def fio(disk, streams, mib, seconds):
    """What the row shows while fio writes: MB/s as wkB/s / 1000, and w_await."""
    before = disk.counters()
    # Files that grow as they are written, as dd's do. Each job has its own.
    done = subprocess.run(
        ["fio", "--name=ramp", f"--directory={disk.path}", "--rw=write", "--bs=1M", "--direct=1", "--sync=dsync",
         "--ioengine=psync", f"--numjobs={streams}", "--group_reporting", f"--size={max(1, mib // streams)}M",
         f"--runtime={seconds}", "--fallocate=none", "--file_append=1", "--create_on_open=1", "--unlink=1", "--zero_buffers",
         "--thread=0", "--output-format=json"],
        check=True, capture_output=True, text=True, cwd="/tmp")
    after = disk.counters()
    job = json.loads(done.stdout)["jobs"][0]["write"]
    writes, ms, sectors = (after[key] - before[key] for key in ("writes", "ms", "sectors"))
    return {"MB/s": sectors / 2 / job["runtime"], "w_await": ms / writes, "calls MB/s": job["bw_bytes"] / 1e6}


def ramp(program, disk, config):
    done = subprocess.run([program, "run", disk.path, "--config", config, "--profile", "ramp", "--w-await-ms", "1000000",
                           "--json"], capture_output=True, text=True)
    run = json.loads(done.stdout)
    return {step["streams"]: {"MB/s": step["wkB/s"] / 1000, "w_await": step["w_await"],
                              "calls MB/s": step["app_write_mb_per_s"]} for step in run["ramp"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tierprobe", default="build/src/tierprobe")
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    absent = lab.missing() or (None if shutil.which("fio") else "fio not installed")
    if absent:
        print(f"left out: {absent}")
        return

    lab.private_mounts()
    depths = [1 << n for n in range(arguments.streams.bit_length())]
    for name, how in DISKS.items():
        ours, theirs = {d: [] for d in depths}, {d: [] for d in depths}
        with lab.disk(**how) as disk:
            config = disk.folder / "ramp.conf"
            config.write_text(f"[profile ramp]\nduration = {arguments.seconds}s\nstreams = {arguments.streams}\n"
                              f"count = {arguments.count}\n")
            for _ in range(arguments.rounds):
                for depth, step in ramp(arguments.tierprobe, disk, config).items():
                    ours[depth].append(step)
                for depth in depths:
                    theirs[depth].append(fio(disk, depth, arguments.count, arguments.seconds))
                    disk.nothing_left()

        print(f"{name}: medians of {arguments.rounds}, MB/s is the row's wkB/s / 1000")
        print("  streams    ours MB/s     fio MB/s  ratio   ours w_await  fio w_await")
        for depth in depths:
            row = [statistics.median(step[key] for step in steps[depth]) for key in ("MB/s", "w_await")
                   for steps in (ours, theirs)]
            print(f"  {depth:7} {row[0]:12.1f} {row[1]:12.1f} {row[0] / row[1]:6.3f} {row[2]:14.3f} {row[3]:12.3f}")


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C"
    main()
