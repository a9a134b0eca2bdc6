# SPDX-License-Identifier: Apache-2.0
"""What the comparisons with the distribution's iostat share.

TIERPROBE_BUILD names the build directory (default: build).
"""

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


def iostat_version():
    if not IOSTAT:
        return (0,)
    text = subprocess.run([IOSTAT, "-V"], capture_output=True, text=True, env=PLAIN).stdout
    return tuple(int(part) for part in re.search(r"version ([\d.]+)", text).group(1).split("."))


def need_iostat():
    if not (12, 3, 1) <= iostat_version():
        pytest.skip("no iostat of sysstat 12.3.1 or later here")


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
