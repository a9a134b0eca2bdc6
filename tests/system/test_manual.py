# SPDX-License-Identifier: Apache-2.0
"""The manuals: what the programs have is in them and nothing else, they are sound, and their examples work."""

import json
import re
import shutil
import subprocess

import pytest

from harness import BUILD, ROOT, TIERPROBE, TIERPROBED, free_port, lab, sections_for
from lab.catalog import GOOD

PAGES = ("tierprobe.1", "tierprobed.8", "tierprobed.conf.5", "tierprobe-api.7")
COMMANDS = ("run", "judge", "iostat", "target", "status", "check", "start", "abort", "history", "report")
COMMON = {"--url", "--token-file", "--cacert", "--timeout", "--json", "--help", "--version"}


def page(name):
    """Its text without the markup of words."""
    text = (ROOT / "man" / name).read_text()
    return re.sub(r"\\f[BIR]|\\&", "", text).replace("\\-", "-").replace("\\e", "\\")


def part(text, head):
    """What stands below a heading of a page, up to the next one of its rank or above."""
    rank = head.split()[0]
    ends = r"^\.SH " if rank == ".SH" else r"^\.S[HS] "
    after = text[text.index(f"{head}\n") + len(head) + 1:]
    return re.split(ends, after, maxsplit=1, flags=re.MULTILINE)[0]


def terms(text):
    return [line for line in re.findall(r"^\.TP\n(?:\.BR? )?(.*)$", text, re.MULTILINE)]


def options(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))


def helped(program, *command):
    return subprocess.run([program, *command, "--help"], capture_output=True, text=True, timeout=30).stdout


def examples(name):
    """The blocks of lines that are shown as they are to be typed."""
    return [block.strip("\n").split("\n") for block in re.findall(r"^\.nf\n\.RS 4\n(.*?)^\.RE", page(name), re.DOTALL | re.MULTILINE)]


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
@pytest.mark.parametrize("name", PAGES)
def test_nothing_to_complain_of(name):
    done = subprocess.run(["groff", "-ww", "-man", "-Tutf8", "-Kutf8", "-z", ROOT / "man" / name], capture_output=True,
                          text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "SPDX-License-Identifier" in (ROOT / "man" / name).read_text().split("\n")[0]
    assert f"'{name}'" in (ROOT / "man" / "meson.build").read_text()


# ---- options ----

def test_commands():
    listed = re.findall(r"^  (\w+)  ", helped(TIERPROBE), re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)
    assert sorted(re.findall(r"^\.SS (\w+)$", page("tierprobe.1"), re.MULTILINE)) == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_options_of_a_command(command):
    text = part(page("tierprobe.1"), f".SS {command}")
    has = options(" ".join(line for line in helped(TIERPROBE, command).split("\n") if line.startswith("  --")))
    named = options(" ".join(terms(text)))
    shared = COMMON if command not in ("run", "judge", "iostat", "target") else set()
    assert named == has - shared
    assert has >= shared


def test_options_of_all_clients():
    assert options(" ".join(terms(part(page("tierprobe.1"), ".SS Options of all commands that ask a daemon")))) == COMMON


def test_options_of_the_daemon():
    text = helped(TIERPROBED)
    assert options(" ".join(terms(part(page("tierprobed.8"), ".SH OPTIONS")))) == options(
        " ".join(line for line in text.split("\n") if line.startswith("  --")))


# ---- configuration ----

def test_keys():
    def keys_of(text, comment):
        found, section = set(), None
        for line in text.split("\n"):
            if match := re.fullmatch(comment + r"\[(\w+)(?: \w+)?\]", line):
                section = match[1]
            elif match := re.match(comment + r"(\w+) = ", line):
                found.add((section, match[1]))
        return found

    shipped = keys_of((ROOT / "etc" / "tierprobed.conf").read_text(), "#?")
    named = set()
    for section, body in re.findall(r"^\.SH \[(\w+)(?: NAME)?\]\n(.*?)(?=^\.SH )", page("tierprobed.conf.5"), re.DOTALL | re.MULTILINE):
        named |= {(section, term.split(" = ")[0]) for term in terms(body)}
    table = set()
    for room, section in (("schedule/rules.c", "schedule"), ("schedule/rules.c", "guard"), ("history/keep.c", "history"),
                          ("run/profile.c", "profile"), *(("config/sections.c", name) for name in
                                                          ("http", "sampling", "publish", "target"))):
        source = (ROOT / "src" / room).read_text()
        rows = re.search(rf"{section}_parameters\[\] = \{{(.*?)^\}};|static const Parameter parameters\[\] = \{{(.*?)^\}};",
                         source, re.DOTALL | re.MULTILINE)
        table |= {(section, key) for key in re.findall(r'^        \{ "(\w+)"', rows[1] or rows[2], re.MULTILINE)}
    assert named == shipped
    assert named - {pair for pair in named if pair[0] == "limits"} == table


# ---- the interface ----

@pytest.fixture
def description(daemon, place):
    return json.loads(daemon(place).get("/openapi.json").body)


def test_routes(description):
    text = part(page("tierprobe-api.7"), ".SH ROUTES")
    routes = {(verb.upper(), re.sub(r"\{(\w+)\}", lambda match: match[1].upper(), path)):
              [one["name"] for one in operation["parameters"] if one["in"] == "query"]
              for path, item in description["paths"].items() for verb, operation in item.items()}
    named, current = {}, None
    for term in terms(text):
        if match := re.fullmatch(r"([A-Z]+) (/\S*)", term):
            current = match.groups()
            named[current] = []
        else:
            named[current].append(term)
    assert named == routes


def test_reasons_and_codes(description):
    text = page("tierprobe-api.7")
    reasons = set(re.findall(r'\[REASON_\w+\] = "(\w+)"', (ROOT / "src/verdict/verdict.c").read_text()))
    codes = set(description["components"]["schemas"]["Problem"]["properties"]["code"]["enum"])
    assert set(terms(part(text, ".SH REASONS"))) == reasons
    assert set(re.findall(r"^(\w+)[,.]$", part(text, ".SH PROBLEMS"), re.MULTILINE)) == codes - reasons


def test_metrics(daemon, place):
    told = set(re.findall(r"^# HELP (\S+)", daemon(place).get("/metrics").body.decode(), re.MULTILINE))
    named = set(terms(part(page("tierprobe-api.7"), ".SH METRICS")))
    # Those of which this daemon has none: it has no certificate, and answered no request but this one.
    assert named >= told and named - told <= {"tierprobe_tls_certificate_expiry_timestamp_seconds", "tierprobe_http_requests_total"}


def test_journal():
    text = part(page("tierprobed.8"), ".SH JOURNAL")
    sources = "".join((ROOT / "src" / path).read_text() for path in ("daemon/journal.c", "verdict/criteria.c"))
    fields = set(re.findall(r'"(TIERPROBE_[A-Z_]+)"', sources))
    ids = set(re.findall(r'"([0-9a-f]{32})"', (ROOT / "include/tierprobe/message-ids.h").read_text()))
    assert len(fields) >= 7 and len(ids) >= 11
    assert set(terms(text)) == fields | ids


# ---- examples ----

def check_config(tierprobed, folder, text):
    config = folder / "tierprobed.conf"
    config.write_text(text)
    return tierprobed("--config", config, "--check-config")


def test_examples_of_the_configuration(tierprobed, folder, place):
    least = examples("tierprobed.conf.5")[0]
    assert least == ["[target cache]", "path = /db2/cache"]
    done = check_config(tierprobed, folder, "\n".join(least).replace("/db2/cache", str(place)))
    assert done.returncode == 0, done.stderr


def test_the_example_to_be_reached(tierprobed, folder, place):
    """As shown, but for the files, which are made here."""
    shown = "\n".join(next(block for block in examples("tierprobed.8") if "[http]" in block))
    files = {"/etc/tierprobe/token": folder / "token", "/etc/tierprobe/cert.pem": folder / "cert.pem",
             "/etc/tierprobe/key.pem": folder / "key.pem"}
    (folder / "token").write_text("0123456789abcdef" * 2)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=node1.example.com", "-days", "30",
                    "-keyout", files["/etc/tierprobe/key.pem"], "-out", files["/etc/tierprobe/cert.pem"]], check=True,
                   capture_output=True, timeout=120)
    for path in files.values():
        path.chmod(0o600)
    for there, here in files.items():
        assert there in shown
        shown = shown.replace(there, str(here))
    done = check_config(tierprobed, folder, f"{shown}\n[target cache]\npath = {place}\n")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.disk
def test_examples_of_the_interface(daemon, disk):
    it = disk(rate=GOOD)
    port = free_port()
    service = daemon(sections=sections_for(it.path), listen=f"127.0.0.1:{port}")
    run_id = service.whole_run()["id"]
    blocks = examples("tierprobe-api.7")
    lines = [line for block in blocks for line in block]
    assert len(lines) >= 5
    for line in lines:
        command = line.replace("localhost:7620", f"localhost:{port}").replace("/ID", f"/{run_id}")
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and done.stdout, (command, done.stdout, done.stderr)


@pytest.mark.disk
def test_examples_of_the_command_line(daemon, disk, folder):
    it = disk(rate=GOOD, size="1536M")
    port = free_port()
    service = daemon(sections=sections_for(it.path), listen=f"127.0.0.1:{port}")
    (folder / "iostat.txt").write_bytes((ROOT / "tests" / "data" / "judge" / "mangled" / "progress-of-dd.txt").read_bytes())
    places = {"/db2/cache": str(it.path), "localhost:7620": f"localhost:{port}",
              "tierprobe start": f"tierprobe start --url http://127.0.0.1:{port}",
              "tierprobe report": f"tierprobe report --url http://127.0.0.1:{port}",
              "--profile quick": "--profile quick --write-mb-per-s 30 --w-await-ms 1000 --pass-ratio 0.5"}
    statuses = set()
    for line in [line for block in examples("tierprobe.1")[1:] for line in block]:
        for there, here in places.items():
            line = line.replace(there, here)
        done = subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=300,
                              env={"PATH": f"{BUILD / 'src'}:/usr/bin:/bin:/usr/sbin:/sbin"})
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        statuses.add(line.split()[1])
    assert {"run", "judge", "start", "report"} <= statuses
    assert (folder / "report.html").read_text().startswith("<!DOCTYPE html>")
    lab.wait_for("the end", lambda: service.status["state"] == "idle")
