#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The writer beside dd: throughput, CPU, what the histogram costs, and what random data costs.

    bench_writer.py [--fs xfs] [--count 2000] [--pairs 7] [--probe-run build/tests/tools/probe-run]

Needs root. A loop device on a file in /dev/shm (written once before, since the first write of its pages is
several times slower) carries the file system. Programs are run in alternation, so that a machine which slows
down slows all; medians, the median of the ratios within each round and the ratio of the best rounds (which is what
counts on a machine that others use) are printed. It judges nothing.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import tempfile
import time

MIB = 1 << 20
MKFS = {
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "ext4": ["mkfs.ext4", "-q", "-F"],
    "btrfs": ["mkfs.btrfs", "-q", "-f"],
}


@contextlib.contextmanager
def mounted(fs, size_mib):
    """A mounted file system on a loop device whose pages exist."""
    image = pathlib.Path(f"/dev/shm/tierprobe-bench-{os.getpid()}.img")
    with contextlib.ExitStack() as stack:
        stack.callback(image.unlink)
        with image.open("wb") as f:
            for _ in range(size_mib):
                f.write(b"\xa5" * MIB)
        loop = subprocess.run(
            ["losetup", "--find", "--show", "--direct-io=off", image], check=True, capture_output=True, text=True
        ).stdout.strip()
        stack.callback(subprocess.run, ["losetup", "-d", loop], check=True)
        # Discarding would punch the pages out of the file again.
        flag = {"xfs": ["-K"], "ext4": ["-E", "nodiscard"], "btrfs": ["-K"]}[fs]
        subprocess.run([*MKFS[fs], *flag, loop], check=True, stdout=subprocess.DEVNULL)
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="tierprobe-bench-"))
        subprocess.run(["mount", "-o", "nodiscard", loop, directory], check=True)
        stack.callback(subprocess.run, ["umount", directory], check=True)
        yield directory


def cpu_seconds():
    """User and system time of this process and of all its children that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def run_dd(directory, count):
    """The documented command, and its file's removal."""
    path = os.path.join(directory, "testfile")
    before = cpu_seconds()
    dd = subprocess.run(
        ["dd", "if=/dev/zero", f"of={path}", "bs=1M", f"count={count}", "oflag=direct,dsync"],
        check=True,
        capture_output=True,
        text=True,
        env={"LC_ALL": "C", "PATH": os.environ["PATH"]},
    )
    os.unlink(path)
    cpu = cpu_seconds() - before
    seconds = float(re.search(r", ([0-9.e-]+) s, ", dd.stderr).group(1))
    return {"MB/s": count * MIB / 1e6 / seconds, "CPU s/GB": cpu / (count * MIB / 1e9)}


def run_probe(program, directory, count, *options):
    """One plan of one stream."""
    before = cpu_seconds()
    output = subprocess.run(
        [program, f"--count={count}", *options, directory], check=True, capture_output=True, text=True
    ).stdout
    cpu = cpu_seconds() - before
    result = json.loads(output)
    assert result["outcome"] == "ok", result
    return {
        "MB/s": result["bytes"] / 1e6 / result["seconds"],
        "CPU s/GB": cpu / (result["bytes"] / 1e9),
        "latency_ms": result.get("latency_ms", {}),
    }


def short_pairs(program, directory, over, under, pairs, count=256):
    """OVER beside UNDER in many short pairs, since a machine that others use drifts."""
    option = {"zero": [], "bare": ["--bare"], "random": ["--random"]}
    rows = {over: [], under: []}
    for i in range(pairs):
        for name in ((over, under), (under, over))[i % 2]:
            output = subprocess.run(
                [program, f"--count={count}", *option[name], directory], check=True, capture_output=True, text=True
            ).stdout
            result = json.loads(output)
            rows[name].append((result["seconds"] / count * 1e6, result["writing_cpu_seconds"] / count * 1e6))
            settle(directory, (count + 100) * MIB)
    print(f"  {pairs} short pairs of {count} blocks, {over} - {under}:")
    for column, what in enumerate(("time a block", "CPU time a block, user + system")):
        differences = sorted(a[column] - b[column] for a, b in zip(rows[over], rows[under]))
        low, middle, high = statistics.quantiles(differences, n=4)
        base = statistics.median(row[column] for row in rows[under])
        print(
            f"    {what}: {middle:+.2f} us ({low:+.2f}..{high:+.2f}) of {base:.1f} us;"
            f" at 2 GB/s (524 us a block) {100 * middle / 524.3:+.2f} %"
        )
    fastest = [min(row[0] for row in rows[name]) for name in (over, under)]
    ratios = sorted(b[0] / a[0] for a, b in zip(rows[over], rows[under]))
    print(f"    throughput, {over} / {under}: median {statistics.median(ratios):.3f}, fastest {fastest[1] / fastest[0]:.3f}")


def settle(directory, needed):
    """Leaves nothing of the last program for the next: xfs and btrfs give space back after a while."""
    for _ in range(600):
        subprocess.run(["sync", "-f", directory], check=True)
        stat = os.statvfs(directory)
        if stat.f_bavail * stat.f_frsize >= needed:
            return
        time.sleep(0.05)
    raise SystemExit("the file system does not give its space back")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fs", choices=MKFS, default="xfs")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--short-pairs", type=int, default=60)
    parser.add_argument("--probe-run", default="build/tests/tools/probe-run")
    arguments = parser.parse_args()

    count, program = arguments.count, arguments.probe_run
    runs = {
        "dd": lambda d: run_dd(d, count),
        "zero": lambda d: run_probe(program, d, count),
        "bare": lambda d: run_probe(program, d, count, "--bare"),
        "random": lambda d: run_probe(program, d, count, "--random"),
    }
    results = {name: [] for name in runs}
    with mounted(arguments.fs, count + 800) as directory:
        for run in runs.values():  # a round for the caches, not counted
            run(directory)
            settle(directory, (count + 100) * MIB)
        # Histogram and progress against the calls alone; what random data costs.
        short_pairs(program, directory, "zero", "bare", arguments.short_pairs)
        short_pairs(program, directory, "random", "zero", arguments.short_pairs)
        for i in range(arguments.pairs):
            # Each goes first equally often.
            names = list(runs)
            for name in names[i % len(names) :] + names[: i % len(names)]:
                results[name].append(runs[name](directory))
                settle(directory, (count + 100) * MIB)

    print(f"{arguments.fs}, {count} MiB in 1 MiB blocks, {arguments.pairs} rounds, medians:")
    for name, rows in results.items():
        rates = sorted(row["MB/s"] for row in rows)
        print(
            f"  {name:7} {statistics.median(rates):8.1f} MB/s ({rates[0]:.0f}..{rates[-1]:.0f})"
            f"  {statistics.median(row['CPU s/GB'] for row in rows):.4f} CPU s/GB"
        )
    latency = results["zero"][-1]["latency_ms"]
    print("  zero, last round, latency in ms:", ", ".join(f"{k}: {v}" for k, v in latency.items()))
    for title, over, under, key in (
        ("throughput, zero / dd", "zero", "dd", "MB/s"),
        ("CPU, zero / dd", "zero", "dd", "CPU s/GB"),
        ("throughput, zero / bare (histogram, progress, child)", "zero", "bare", "MB/s"),
        ("throughput, random / zero", "random", "zero", "MB/s"),
        ("CPU, random / zero", "random", "zero", "CPU s/GB"),
    ):
        ratios = [a[key] / b[key] for a, b in zip(results[over], results[under])]
        best = max if key == "MB/s" else min
        of_best = best(a[key] for a in results[over]) / best(b[key] for b in results[under])
        print(
            f"  {title}: {statistics.median(ratios):.3f} ({min(ratios):.3f}..{max(ratios):.3f}),"
            f" best rounds {of_best:.3f}"
        )
    # What it costs beside a device of 2 GB/s, whatever this one's speed is.
    block_us = MIB / 2e9 * 1e6
    for name in ("dd", "random", "bare"):
        best = {n: max(row["MB/s"] for row in results[n]) for n in (name, "zero")}
        more_us = (1 / best[name] - 1 / best["zero"]) * MIB
        print(f"  {name} at 2 GB/s, from the best rounds: {block_us / (block_us + more_us):.3f} of zero's rate")


if __name__ == "__main__":
    main()
