# SPDX-License-Identifier: Apache-2.0
"""deploy/clients as its reader would use it: collectd, check_http, curl and jq over a real daemon."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from harness import ROOT, TIERPROBE, free_port, lab, sections_for
from lab.catalog import GOOD, SLOW

FOLDER = ROOT / "deploy" / "clients"
CHECK_HTTP = pathlib.Path("/usr/lib/nagios/plugins/check_http")
COLLECTD = shutil.which("collectd", path="/usr/sbin:/usr/bin")

pytestmark = [pytest.mark.slow, pytest.mark.disk, pytest.mark.installed_only]


@pytest.fixture
def served(daemon, disk):
    """A daemon on a port of its own, whose one target has failed."""
    service = daemon(sections=sections_for(disk(rate=SLOW).path, count=16, limits={"write_mb_per_s": 30, "w_await_ms": 1000}),
                     listen=f"127.0.0.1:{free_port()}")
    service.port = service.listen.rpartition(":")[2]
    assert service.whole_run()["verdict"] == "fail"
    return service


def shown(text, service):
    """What the documentation shows, for a port that is free here."""
    return text.replace("7620", service.port)


def commands():
    return re.findall(r"^    (\S.*)$", (FOLDER / "README.md").read_text(), re.MULTILINE)


def run(command, service, **environment):
    return subprocess.run(["bash", "-c", shown(command, service)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PATH": f"{TIERPROBE.parent}:{os.environ['PATH']}", **environment})


@pytest.mark.skipif(not CHECK_HTTP.exists(), reason="monitoring-plugins-basic is not installed")
def test_check_http(served, disk, daemon):
    command = next(one for one in commands() if "check_http" in one)
    done = run(command, served)
    assert done.returncode == 2 and "503" in done.stdout, done
    # The same arguments as in the file for Icinga.
    icinga = (FOLDER / "icinga.conf").read_text()
    for argument in ("-I", "-H", "-p", "-u", "-e"):
        assert f'"{argument}" =' in icinga and f" {argument} " in command
    served.stop()
    good = daemon(sections=sections_for(disk(rate=GOOD).path, count=200), listen=served.listen)
    assert good.whole_run()["verdict"] == "pass"
    done = run(command, served)
    assert done.returncode == 0 and "200 OK" in done.stdout, done


def test_the_other_lines(served):
    lines = [one for one in commands() if "check_http" not in one]
    assert len(lines) == 3
    check, brief, changed = lines
    done = run(check, served)
    assert done.returncode == 2 and "CRITICAL" in done.stdout.upper(), done
    done = run(brief, served)
    assert done.stdout.rstrip("\n").split("\t") == ["cache", "fail", *(r["code"] for r in served.target()["reasons"])], done
    etag = served.get("/status?brief=yes").headers["ETag"]
    assert run(changed, served, ETAG=etag).stdout == "304\n"
    served.whole_run()
    assert run(changed, served, ETAG=etag).stdout == "200\n"


@pytest.mark.skipif(not COLLECTD, reason="collectd is not installed")
def test_collectd(served, tmp_path):
    (tmp_path / "tierprobe.conf").write_text(shown((FOLDER / "collectd.conf").read_text(), served))
    (tmp_path / "collectd.conf").write_text(f"""
Hostname "here"
Interval 1
BaseDir "{tmp_path}"
PIDFile "{tmp_path}/pid"
LoadPlugin csv
<Plugin csv>
  DataDir "{tmp_path}/data"
  StoreRates false
</Plugin>
Include "{tmp_path}/tierprobe.conf"
""")

    def last_values():
        """{name of the gauge: its last value}"""
        return {re.sub(r"-\d{4}-\d\d-\d\d$", "", path.name): float(path.read_text().split()[-1].rpartition(",")[2])
                for path in tmp_path.glob("data/here/curl_json-*/gauge-*") if path.read_text().count("\n") > 1}
    process = subprocess.Popen([COLLECTD, "-f", "-C", tmp_path / "collectd.conf"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        values = lab.wait_for("all gauges", lambda: (found := last_values()) and len(found) >= 6 and found, 60)
    finally:
        process.terminate()
        process.wait(60)
    target = served.target()
    assert values["gauge-severity"] == values["gauge-targets-0-severity"] == target["severity"] == 2
    for i, criterion in enumerate(target["standing_run"]["criteria"]):
        assert values[f"gauge-targets-0-standing_run-criteria-{i}-value"] == pytest.approx(criterion["value"], rel=1e-4)
