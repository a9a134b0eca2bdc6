# SPDX-License-Identifier: Apache-2.0
"""tierprobe iostat --replay beside the distribution's iostat over the same scripted counters.

Where the script is sane, every row must be the same to the last character. Where a counter goes back, a device
is away or time stands still, iostat prints what means nothing, and tierprobe must print no row (JSON: nulls).
What is sane is worked out here, in Python, from the script.
"""

import json
import random

import pytest

from oracle import (COLUMNS, MS, WRAP, differ_by_design, figures, iostat_version, known, mended, need_iostat, reports, run_iostat,
                    run_replay, write_script)

pytestmark = pytest.mark.installed

KINDS = ["sda", "nvme0n1", "dm-3", "md127", "vda", "mmcblk0", "loop7", "sr0", "cciss/c0d0", "zram0", "rbd4", "nbd12p3",
         "xvda1", "nvme0c0n1", "a_name_of_thirty_one_characters"]
WIDTHS = [14, 15, 16, 17, 18, 19, 20, 22]  # fields of a line, three of them before the counters
IN_FLIGHT = 8
COMPLETIONS = {3: [0], 7: [4], 14: [11], 16: [15], 9: [0, 4, 11, 15], 10: [0, 4, 11, 15]}


class Disk:
    """One row and its true counters in full width."""

    def __init__(self, rng, number, name, width, near_wrap):
        self.rng, self.name, self.major, self.minor = rng, name, 8 + number, number
        self.n = width - 3
        self.known = known(self.n)
        self.truth = [rng.getrandbits(rng.randrange(1, 50)) for _ in range(self.n)]
        for field in range(self.n):
            if field in MS and near_wrap:
                self.truth[field] = WRAP - 1 - rng.randrange(20000)
        self.draw_in_flight()

    def draw_in_flight(self):
        self.truth[IN_FLIGHT] = self.rng.choice([0, 0, 1, 7, 64, "-3", 4294967295])

    def printed(self):
        return [v if isinstance(v, str) else v % WRAP if f in MS else v for f, v in enumerate(self.truth)]

    def line(self):
        return f"{self.major:4} {self.minor:7} {self.name} {' '.join(str(v) for v in self.printed())}\n"

    def live(self, cs):
        """Some work of an interval of CS hundredths."""
        rng = self.rng
        grown = [0] * self.n
        for field in range(self.n):
            if field not in MS and field != IN_FLIGHT and rng.random() < 0.8:
                grown[field] = rng.getrandbits(rng.choice([1, 4, 8, 14, 22, 34]))
        for field in range(self.n):
            if field in MS and field < self.known:
                ios = sum(grown[f] for f in COMPLETIONS[field] if f < self.known)
                grown[field] = rng.randrange(min(ios * cs * 10, WRAP // 2) + 1)
        for field in range(self.n):
            if field != IN_FLIGHT:
                self.truth[field] += grown[field]
        self.draw_in_flight()


def signed(value):
    value = int(value) % WRAP
    return value - WRAP if value >= WRAP // 2 else value


def is_sane(before, now, cs):
    """The rule for one row, from the printed values."""
    if before is None or now is None or cs <= 0:
        return False
    in_flight = max(0, signed(before[IN_FLIGHT]), signed(now[IN_FLIGHT]))
    n_known = known(len(now))
    for field in range(n_known):
        if field == IN_FLIGHT or now[field] >= before[field]:
            continue
        if field not in MS or before[field] < WRAP // 2:
            return False
        ios = sum(now[f] - before[f] for f in COMPLETIONS[field] if f < n_known)
        if (now[field] - before[field]) % WRAP > (cs * 10 + 1) * (ios + in_flight) + 1000:
            return False
    return True


class Script:
    """Counters of all KINDS in N_STEPS reports: STEPS as write_script() takes them, and what is true of them."""

    def __init__(self, seed, n_steps, faults):
        rng = random.Random(seed)
        disks = [Disk(rng, i, name, WIDTHS[(i + rng.randrange(2)) % len(WIDTHS)], rng.random() < 0.5)
                 for i, name in enumerate(KINDS)]
        uptime = 100000
        self.steps, self.rows, self.cs = [], [], []
        for step in range(n_steps):
            cs = rng.choice([1, 10, 99, 100, 101, 103, 250, 1000, 6000])
            for disk in disks:
                disk.live(cs)
            if faults and step and rng.random() < 0.03:
                cs = rng.choice([0, -50, -1000])
            uptime += cs if step else 0
            present = [disk for disk in disks if not (faults and step and self.goes_wrong(rng, disk))]
            self.steps.append((uptime, "".join(disk.line() for disk in present)))
            self.rows.append({disk.name: disk.printed() for disk in present})
            self.cs.append(cs)

    @staticmethod
    def goes_wrong(rng, disk):
        """Whether the disk is away in this report; of one that is there a counter may go back, or all."""
        absent = rng.random() < 0.02
        if rng.random() < 0.03:
            field = rng.choice([f for f in range(disk.known) if f != IN_FLIGHT])
            disk.truth[field] -= min(disk.truth[field] % WRAP, rng.choice([1, 2, 100, 10**6]) + rng.randrange(2000))
        if rng.random() < 0.01:
            disk.truth = [0 if f != IN_FLIGHT else v for f, v in enumerate(disk.truth)]
        return absent

    def intervals(self):
        """(number of the second report, {device: (before, now, hundredths)} of the sane rows) of each interval."""
        for i in range(1, len(self.steps)):
            pairs = {name: (self.rows[i - 1].get(name), self.rows[i].get(name), self.cs[i]) for name in KINDS}
            yield i, {name: it for name, it in pairs.items() if is_sane(*it)}

    def cut_short(self, i):
        """The devices with a line that does not fit into iostat's buffer of 256 bytes: it misreads the last numbers."""
        return {line.split()[2] for _, text in self.steps[i - 1:i + 1] for line in text.splitlines() if len(line) > 254}


class Tally:
    """How many rows were looked at in which way: none is left out without being counted."""

    def __init__(self):
        self.equal = self.by_design = self.cut_short = self.not_sane = 0

    def done(self, n_rows, capsys):
        with capsys.disabled():
            print(f"\niostat {'.'.join(map(str, iostat_version()))}: {n_rows} rows of {len(COLUMNS)} columns: {self.equal} "
                  f"equal, {self.by_design} differ by design, {self.cut_short} longer than iostat reads, {self.not_sane} "
                  "not sane and dropped")
        assert self.equal + self.by_design + self.cut_short + self.not_sane == n_rows
        assert bool(self.by_design) == (iostat_version() >= (12, 7, 3))


def test_random_steps(tmp_path, capsys):
    """Each sane row is that of the formulas, and that of iostat but for what differs by design."""
    need_iostat()
    tally, n_steps, n_seeds, wrong = Tally(), 301, 4, []
    for seed in range(n_seeds):
        script = Script(seed, n_steps, faults=True)
        folder = tmp_path / str(seed)
        write_script(folder, script.steps)
        theirs, ours = reports(run_iostat(folder, n_steps)), reports(run_replay(folder, n_steps).stdout)
        assert len(theirs) == len(ours) == n_steps - 1
        for i, sane in script.intervals():
            assert set(ours[i - 1]) == set(sane), f"seed {seed} step {i}"
            tally.not_sane += len(KINDS) - len(sane)
            cut_short = script.cut_short(i)
            for name, (before, now, cs) in sane.items():
                mine, right = ours[i - 1][name], figures(before, now, cs)
                if mine.split()[1:] != list(right.values()):
                    wrong.append(f"seed {seed} step {i}\n{' '.join(right.values())}\n{mine}")
                if name in cut_short:
                    tally.cut_short += 1
                    continue
                other, columns = theirs[i - 1][name], differ_by_design(before, now)
                tally.by_design += bool(columns)
                tally.equal += not columns
                if mine != mended(other, columns, right):
                    wrong.append(f"seed {seed} step {i}\n{other}\n{mine}")
    assert not wrong, "\n".join(wrong[:5])
    tally.done(n_seeds * (n_steps - 1) * len(KINDS), capsys)
    assert tally.equal > 10000 and tally.not_sane > 500


@pytest.mark.parametrize("options", [([], []), (["-o", "JSON"], ["--json"])], ids=["text", "json"])
def test_whole_output(tmp_path, capsys, options):
    """Without faults every byte is iostat's: first line, blank lines, widths, the document around the rows."""
    need_iostat()
    tally, n_steps = Tally(), 200
    script = Script(77, n_steps, faults=False)
    write_script(tmp_path, script.steps)
    result = run_replay(tmp_path, n_steps, *options[1])
    ours, theirs = result.stdout.splitlines(True), run_iostat(tmp_path, n_steps, *options[0]).splitlines(True)
    at = [i for i, line in enumerate(theirs) if any(line.split()[:1] == [name] or f'"{name}"' in line for name in KINDS)]
    rows = [(name, *it) for _, sane in script.intervals() for name, it in sane.items()]
    assert len(at) == len(rows) == (n_steps - 1) * len(KINDS)
    for i, (name, before, now, cs) in zip(at, rows):
        columns = differ_by_design(before, now)
        assert name in theirs[i]
        theirs[i] = mended(theirs[i], columns, figures(before, now, cs))
        tally.by_design += bool(columns)
        tally.equal += not columns
    differ = [(i, *pair) for i, pair in enumerate(zip(theirs, ours)) if pair[0] != pair[1]]
    assert not differ[:1] and len(ours) == len(theirs)
    assert result.stderr == ""
    tally.done(len(rows), capsys)


def test_json(tmp_path, capsys):
    need_iostat()
    tally, n_steps = Tally(), 201
    script = Script(5, n_steps, faults=True)
    write_script(tmp_path, script.steps)
    theirs = json.loads(run_iostat(tmp_path, n_steps, "-o", "JSON"), parse_float=str)["sysstat"]["hosts"][0]
    ours = json.loads(run_replay(tmp_path, n_steps, "--json").stdout, parse_float=str)["sysstat"]["hosts"][0]
    assert list(ours) == list(theirs)
    assert {k: v for k, v in ours.items() if k != "statistics"} == {k: v for k, v in theirs.items() if k != "statistics"}
    n_rows = 0
    for i, sane in script.intervals():
        mine = {row.pop("disk_device"): row for row in ours["statistics"][i - 1]["disk"]}
        other = {row.pop("disk_device"): row for row in theirs["statistics"][i - 1]["disk"]}
        assert set(mine) == set(script.rows[i])
        n_rows += len(mine)
        for name in mine:
            assert list(mine[name]) == list(other[name])
            if name not in sane:
                assert all(value is None for value in mine[name].values())
                tally.not_sane += 1
                continue
            before, now, cs = sane[name]
            right = {column.removeprefix("%"): cell for column, cell in figures(before, now, cs).items()}
            assert mine[name] == right
            if name in script.cut_short(i):
                tally.cut_short += 1
                continue
            columns = [column.removeprefix("%") for column in differ_by_design(before, now)]
            assert all(other[name][column] == "0.00" for column in columns)
            assert mine[name] == {**other[name], **{column: right[column] for column in columns}}
            tally.by_design += bool(columns)
            tally.equal += not columns
    tally.done(n_rows, capsys)
    assert tally.equal > 1500


BEFORE = "10 0 80 5 100 0 1000 50 0 40 55 0 0 0 0 0 0"
AFTER = "10 0 80 5 1300 0 1201000 12050 0 1040 12055 0 0 0 0 0 0"
NORMAL = {"w/s": "1200.00", "wkB/s": "600000.00", "w_await": "10.00", "wareq-sz": "500.00", "aqu-sz": "12.00",
          "%util": "100.00", "r/s": "0.00", "r_await": "0.00", "f/s": "0.00"}

# name, (uptime, counters)..., the last interval's row or None, the word on stderr
CASES = [
    ("normal", [(100, BEFORE), (101, AFTER)], NORMAL, ""),
    ("ms-wrap", [(100, "10 0 80 5 100 0 1000 4294967000 0 4294967200 4294967100 0 0 0 0 0 0"),
                 (101, "10 0 80 5 1300 0 1201000 11704 0 704 11804 0 0 0 0 0 0")], {**NORMAL, "%util": "80.00"}, ""),
    ("w_ms-back-by-1", [(100, BEFORE), (101, "10 0 80 5 110 0 1080 49 0 40 54 0 0 0 0 0 0")], None, "went back"),
    ("reset", [(100, AFTER), (101, BEFORE)], None, "went back"),
    ("mixed-back", [(100, AFTER), (101, "9000 0 72000 500 100 0 1000 50 0 40 55 0 0 0 0 0 0")], None, "went back"),
    ("in-flight", [(100, "10 0 80 5 100 0 1000 50 4294967295 40 55"),
                   (101, "10 0 80 5 1300 0 1201000 12050 -3 1040 12055")], NORMAL, ""),
    ("uptime-back", [(200, BEFORE), (101, AFTER)], None, "no time passed"),
    ("uptime-equal", [(100, BEFORE), (100, AFTER)], None, "no time passed"),
    ("gap", [(100, BEFORE), (101, AFTER), (102, None), (103, "10 0 80 5 3700 0 3601000 36050 0 4040 36055 0 0 0 0 0 0")],
     None, "is not there"),
    ("after-gap", [(100, BEFORE), (101, None), (102, BEFORE), (103, AFTER)], NORMAL, "is not there"),
    ("after-reset", [(100, AFTER), (101, BEFORE), (102, AFTER)], NORMAL, "went back"),
    ("hung", [(100, "10 0 80 5 100 0 1000 50 3 40 55"), (101, "10 0 80 5 100 0 1000 50 3 1040 3055")],
     {"w/s": "0.00", "w_await": "0.00", "aqu-sz": "3.00", "%util": "100.00"}, ""),
]


@pytest.mark.parametrize("steps, wanted, word", [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_table(tmp_path, steps, wanted, word):
    other = "   8       0 sda 1 0 8 1 0 0 0 0 0 1 1\n"
    write_script(tmp_path, [(s * 100, other + (f" 259       0 nvme0n1 {row}\n" if row else "")) for s, row in steps])
    result = run_replay(tmp_path, len(steps))
    last = reports(result.stdout)[-1]
    if wanted is None:
        assert "nvme0n1" not in last
    else:
        row = dict(zip(COLUMNS, last["nvme0n1"].split()[1:]))
        assert {column: row[column] for column in wanted} == wanted
    assert word in result.stderr and bool(word) == bool(result.stderr)
