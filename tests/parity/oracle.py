# SPDX-License-Identifier: Apache-2.0
"""What the comparisons with the distribution's iostat share.

TIERPROBE_BUILD names the build directory (default: build).
"""

import functools
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TIERPROBE_BUILD", ROOT / "build")).resolve()
TIERPROBE = BUILD / "src" / "tierprobe"
SHIM = BUILD / "tests" / "parity" / "iostat-shim.so"
IOSTAT = shutil.which("iostat")
PLAIN = {**os.environ, "LC_ALL": "C", "S_COLORS": "never"}

COLUMNS = ("r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s wrqm/s %wrqm w_await wareq-sz "
           "d/s dkB/s drqm/s %drqm d_await dareq-sz f/s f_await aqu-sz %util").split()

# Counters of a row that are milliseconds, which the kernel prints as 32 bits.
IO_MS, QUEUE_MS = 9, 10
MS = {3, 7, IO_MS, QUEUE_MS, 14, 16}
WRAP = 1 << 32


@functools.cache
def iostat_version():
    if not IOSTAT:
        return (0,)
    text = subprocess.run([IOSTAT, "-V"], capture_output=True, text=True, env=PLAIN).stdout
    return tuple(int(part) for part in re.search(r"version ([\d.]+)", text).group(1).split("."))


def need_iostat():
    if not (12, 3, 1) <= iostat_version():
        pytest.skip("no iostat of sysstat 12.3.1 or later here")


def known(n_counters):
    """How many of the counters of a row mean something: kernels print 11, 15 or 17."""
    return next(n for n in (17, 15, 11) if n_counters >= n)


def figures(before, now, cs):
    """The 22 figures of a sane row as sysstat's formulas give them, from the counters that two reports CS hundredths
    of a second apart print: {column: text}. What a row lacks counts as 0."""
    old, new = ((list(map(int, row[:known(len(row))])) + [0] * 6)[:17] for row in (before, now))
    d = [(b - a) % WRAP if i in MS else b - a for i, (a, b) in enumerate(zip(old, new))]
    def per_second(i):
        return d[i] / cs * 100
    cells = []
    for ios, merges, sectors, ms in (0, 1, 2, 3), (4, 5, 6, 7), (11, 12, 13, 14):
        all_ios = d[merges] + d[ios]
        cells += [per_second(ios), per_second(sectors) / 2, per_second(merges),
                  d[merges] / all_ios * 100 if all_ios else 0, d[ms] / d[ios] if d[ios] else 0,
                  d[sectors] / d[ios] / 2 if d[ios] else 0]
    cells += [per_second(15), d[16] / d[15] if d[15] else 0, per_second(QUEUE_MS) / 1000, per_second(IO_MS) / 10]
    return {column: f"{cell:.2f}" for column, cell in zip(COLUMNS, cells)}


def differ_by_design(before, now):
    """The columns of a sane row where this iostat prints 0.00 and tierprobe what is right: sysstat 12.7.3 and later
    take a wrap of the 32 bits of these two counters, though not of the others, for a counter that went back."""
    if iostat_version() < (12, 7, 3):
        return []
    return [column for column, field in (("aqu-sz", QUEUE_MS), ("%util", IO_MS)) if int(now[field]) < int(before[field])]


def mended(line, columns, right):
    """LINE of iostat's, a row of text or of JSON, with the figures RIGHT in COLUMNS, where it must have 0.00."""
    for column in columns:
        if line.lstrip().startswith("{"):
            key = f'"{column.removeprefix("%")}": '
            assert line.count(f"{key}0.00") == 1, line
            line = line.replace(f"{key}0.00", key + right[column])
        else:  # the last two columns, 7 and 6 wide, or as wide as the figure is
            begin, aqu_sz, util, end = re.fullmatch(r"(.*\S) +(\S+) +(\S+)(\n?)", line).groups()
            cells = {"aqu-sz": aqu_sz, "%util": util}
            assert cells[column] == "0.00", line
            cells[column] = right[column]
            line = f"{begin} {cells['aqu-sz']:>7} {cells['%util']:>6}{end}"
    return line


def write_script(folder, steps):
    """Lays down STEPS, each (uptime in hundredths, text of diskstats), as FOLDER/0, FOLDER/1, ..."""
    for i, (cs, diskstats) in enumerate(steps):
        step = folder / str(i)
        step.mkdir(parents=True)
        (step / "uptime").write_text(f"{cs // 100}.{cs % 100:02} 1.00\n")
        (step / "diskstats").write_text(diskstats)


def run_iostat(folder, n_steps, *options):
    """The oracle over a script. Preloaded, so it must be the plain binary."""
    env = {**PLAIN, "FAKE_DIR": str(folder), "LD_PRELOAD": str(SHIM)}
    result = subprocess.run([IOSTAT, "-dx", "-p", "ALL", "-y", *options, "1", str(n_steps - 1)],
                            capture_output=True, text=True, env=env, timeout=300, check=True)
    return result.stdout


def run_replay(folder, n_steps, *options, check=True):
    dirs = [str(folder / str(i)) for i in range(n_steps)]
    return subprocess.run([str(TIERPROBE), "iostat", *options, "--replay", *dirs], capture_output=True, text=True,
                          env=PLAIN, timeout=300, check=check)


def reports(text):
    """Text to a list of reports, each {device: line as printed}."""
    result = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["Device"]:
            assert words[1:] == COLUMNS
            result.append({})
        elif words and result:
            result[-1][words[0]] = line
    return result
