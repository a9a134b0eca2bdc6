# SPDX-License-Identifier: Apache-2.0
"""tierprobe judge, from outside: exit status, the JSON document, the text, and what it says of bad input."""

import json
import pathlib
import subprocess

import pytest
from harness import ROOT, SANITIZED, TIERPROBE

CAPTURES = ROOT / "tests" / "data" / "judge" / "layouts"
PUBLISHED = ROOT / "tests" / "data" / "judge" / "published"
REPORTS = [ROOT / "tests" / "data" / "judge" / name for name in ("reports", "mangled")]
STATUS = {"pass": 0, "fail": 2, "inconclusive": 3}
EXPECTED = [line.split("\t") for line in (PUBLISHED / "expected.tsv").read_text().splitlines()[1:]]
HEADER = "Device r/s w/s rkB/s wkB/s w_await %util\n"
ROW = "sdc 0.00 1000.00 0.00 700000.00 5.00 90.00\n"


def judge(*arguments, capture=None, **options):
    result = subprocess.run([TIERPROBE, "judge", *arguments], input=capture, capture_output=True, timeout=60, check=False,
                            **options)
    assert not SANITIZED.search(result.stderr), result.stderr.decode()
    return result


@pytest.mark.parametrize("file,device,verdict", [row[:3] for row in EXPECTED], ids=[row[0] for row in EXPECTED])
def test_published(file, device, verdict):
    result = judge("--json", str(PUBLISHED / file), "--device", device)
    document = json.loads(result.stdout)
    assert result.returncode == STATUS[verdict]
    assert result.stderr == b""
    assert document["schema"] == 1
    assert (document["device"], document["verdict"]) == (device, verdict)
    assert bool(document["reasons"]) == (verdict != "pass")
    [judged] = [entry for entry in document["devices"] if entry["device"] == device]
    assert judged["verdict"] == verdict
    assert judged["reasons"] == document["reasons"]
    assert [criterion["column"] for criterion in judged["criteria"]] == ["wkB/s", "w_await"]
    assert set(judged["samples"]) == {"total", "passing"}


REPORTED = [(folder / row[0], *row[1:3]) for folder in REPORTS
            for row in (line.split("\t") for line in (folder / "expected.tsv").read_text().splitlines()[1:])]


@pytest.mark.parametrize("file,device,accepted", REPORTED, ids=[f"{row[0].name}/{row[1]}" for row in REPORTED])
def test_reports(file, device, accepted):
    """Exit status and document agree, whatever the file holds."""
    arguments = ["--json", str(file)] + (["--device", device] if device != "-" else [])
    result = judge(*arguments)
    document = json.loads(result.stdout)
    assert document["verdict"] in accepted.split("|")
    assert result.returncode == STATUS[document["verdict"]]
    assert document["notes"] == [line.removeprefix("tierprobe judge: ") for line in result.stderr.decode().splitlines()]


def test_every_report_has_its_line():
    files = {path for folder in REPORTS for path in folder.iterdir() if path.name != "expected.tsv"}
    assert files == {row[0] for row in REPORTED}


def test_document():
    document = json.loads(judge("--json", str(CAPTURES / "published-pass.txt")).stdout)
    assert document["devices"][0]["criteria"] == [
        {"name": "write_throughput", "value": 803.52, "unit": "MB/s", "limit": 600, "column": "wkB/s", "pass": True},
        {"name": "write_latency", "value": 11.3, "unit": "ms", "limit": 20, "column": "w_await", "pass": True}]
    assert document["devices"][0]["samples"] == {"total": 1, "passing": 1}
    # No device decides: the document says so, and why.
    document = json.loads(judge("--json", "--device", "sdq", str(CAPTURES / "published-pass.txt")).stdout)
    assert (document["device"], document["verdict"]) == (None, "inconclusive")
    assert [reason["code"] for reason in document["reasons"]] == ["no_rows"]


def test_text():
    result = judge(str(CAPTURES / "published-fail.txt"))
    lines = result.stdout.decode().splitlines()
    assert result.returncode == 2
    assert [line.split()[0] for line in lines if line.startswith(("PASS", "FAIL"))] == ["PASS", "FAIL", "FAIL"]
    assert any("53.85 ms" in line and "20 ms" in line and "w_await" in line for line in lines)


TWO = (HEADER + "sdb 0.00 100.00 0.00 {}.00 9.00 90.00\n" + ROW)


def test_bystanders():
    """When two devices were written and differ, nobody can tell which one was tested."""
    differ = TWO.format(100000).encode()
    result = judge("--json", capture=differ)
    document = json.loads(result.stdout)
    assert (result.returncode, document["device"], document["verdict"]) == (3, None, "inconclusive")
    assert [reason["code"] for reason in document["reasons"]] == ["wrong_device"]
    assert "--device sdc" in document["reasons"][0]["detail"]
    assert [(entry["device"], entry["verdict"]) for entry in document["devices"]] == [("sdc", "pass"), ("sdb", "fail")]
    assert judge("--device", "sdc", capture=differ).returncode == 0
    assert judge("--device", "sdb", capture=differ).returncode == 2
    # The same bytes are those of one stack: the one written most decides.
    assert judge(capture=TWO.format(690000).replace("9.00 90", "29.00 90").encode()).returncode == 0


def test_idle_devices_are_no_failures():
    idle = TWO.format(100).encode()
    result = judge("--json", capture=idle)
    document = json.loads(result.stdout)
    assert (result.returncode, document["device"]) == (0, "sdc")
    [entry] = [entry for entry in document["devices"] if entry["device"] == "sdb"]
    assert (entry["verdict"], [reason["code"] for reason in entry["reasons"]]) == ("inconclusive", ["idle"])
    table = judge(capture=idle).stdout.decode()
    assert "fail" not in table and [line for line in table.splitlines() if line.startswith("sdb")][0].endswith("idle")
    assert judge("--device", "sdb", capture=idle).returncode == 2


def test_one_column_proves_a_failure():
    """A fail needs one requirement missed, a pass needs both measured."""
    def run(columns, figures):
        result = judge("--json", capture=f"Device w/s {columns}\nsdc 1000.00 {figures}\n".encode())
        document = json.loads(result.stdout)
        return result.returncode, [reason["code"] for reason in document["reasons"]]
    assert run("wkB/s", "2000.00") == (2, ["write_throughput_low", "column_missing"])
    assert run("wkB/s", "700000.00") == (3, ["column_missing"])
    assert run("w_await", "25.00") == (2, ["write_latency_high", "column_missing"])
    assert run("w_await", "2.00") == (3, ["column_missing"])


def test_standard_input_and_limits():
    capture = (HEADER + ROW).encode()
    assert judge(capture=capture).returncode == 0
    assert judge("-", capture=capture).returncode == 0
    assert judge("--write-mb-per-s", "700", capture=capture).returncode == 0
    assert judge("--write-mb-per-s", "700.001", capture=capture).returncode == 2
    assert judge("--w-await-ms", "5", capture=capture).returncode == 2
    rows = "".join(HEADER + (ROW if n % 4 else ROW.replace("5.00", "25.00")) for n in range(42)).encode()
    assert judge(capture=rows).returncode == 2
    assert judge("--pass-ratio", "0.7", capture=rows).returncode == 0


@pytest.mark.parametrize("arguments,said", [
    (["/nonexistent/capture"], "No such file"),
    (["/"], "directory"),
    (["--frobnicate"], "unrecognized"),
    (["a", "b"], "one FILE"),
    (["--pass-ratio", "2"], "from 0 to 1"),
    (["--w-await-ms", "0"], "from 0.001"),
    (["--write-mb-per-s", "1e400"], "from 0.001"),
    (["--device", ""], "name"),
    (["--device"], "argument"),
])
def test_bad_usage(arguments, said):
    result = judge(*arguments, capture=b"")
    assert result.returncode == 3
    assert result.stdout == b""
    assert said in result.stderr.decode()


def test_unreadable():
    result = judge("/proc/self/mem")  # opens, but reading at 0 is an input/output error, for root as well
    assert result.returncode == 3
    assert b"cannot read /proc/self/mem" in result.stderr


def test_files_may_not_grow():
    """What does not fit the memory goes to a file; where that may not grow (ulimit -f), it is said."""
    rows = "".join(f"sd{n % 4000:x} " + ROW.split(" ", 1)[1] for n in range(60000))
    result = subprocess.run(["bash", "-c", f"ulimit -f 100; exec {TIERPROBE} judge"], input=(HEADER + rows).encode(),
                            capture_output=True, timeout=60, check=False)
    assert (result.returncode, result.stdout) == (3, b"")
    assert b"File too large" in result.stderr


def test_output_full():
    with pathlib.Path("/dev/full").open("wb") as full:
        result = subprocess.run([TIERPROBE, "judge"], input=(HEADER + ROW).encode(), stdout=full, stderr=subprocess.PIPE,
                                timeout=60, check=False)
    assert result.returncode == 3
    assert b"cannot write" in result.stderr


def test_names_that_are_no_text():
    result = judge("--json", capture=HEADER.encode() + b"s\xff\xfe 0.00 1000.00 0.00 700000.00 5.00 90.00\n")
    assert json.loads(result.stdout)["device"] == "s\ufffd\ufffd"


def test_help():
    for option in ("--help", "-h"):
        result = judge(option)
        assert result.returncode == 0
        assert b"--device" in result.stdout
    assert judge("--version").stdout.startswith(b"tierprobe ")
