# SPDX-License-Identifier: Apache-2.0
"""Starting the built programs and talking to them, for tests that see them only from outside.

TIERPROBE_BUILD names the build directory (default: build).
"""

import contextlib
import http.client
import itertools
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import pytest  # noqa: E402

import lab  # noqa: E402
from described import Description  # noqa: E402
from lab.catalog import LIMITS  # noqa: E402

BUILD = pathlib.Path(os.environ.get("TIERPROBE_BUILD", ROOT / "build")).resolve()
TIERPROBED = BUILD / "src" / "tierprobed"
TIERPROBE = BUILD / "src" / "tierprobe"
SANITIZED = re.compile(rb"ERROR: \w+Sanitizer|runtime error:|Assertion .* failed")


# A reason is a sentence with the number or name that decided it, and one that says what to do.
ACTION = re.compile(r"(?:^|[.:;,] )(?:and )?(?:Capture|Free|Give|Judge|Keep|Look|Make|Mount|Name|Raise|Run|See|Set|Test|Use|"
                    r"Write) ")


def checked(document):
    """DOCUMENT; every reason in it has been looked at."""
    if isinstance(document, dict):
        if set(document) == {"code", "detail"}:
            detail = document["detail"]
            assert 20 <= len(detail.encode()) < 400 and detail.endswith("."), document
            assert ACTION.search(detail) and re.search(r"\d|/|\(", detail), document
        for value in document.values():
            checked(value)
    elif isinstance(document, list):
        for value in document:
            checked(value)
    return document


class Response:
    def __init__(self, answer):
        self.status = answer.status
        self.headers = answer.headers
        self.body = answer.read()

    @property
    def json(self):
        return checked(json.loads(self.body))

    @property
    def code(self):
        """The stable code of a problem document."""
        assert self.headers["Content-Type"] == "application/problem+json", self.body
        return self.json["code"]

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


PORTS = itertools.cycle(random.sample(range(10000, 32768), 20000))


def free_port():
    """A port that nobody listens on, and that the kernel gives to no client: those begin at 32768."""
    for port in PORTS:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def skip_when_held_up(run):
    """A machine without a processor for the writers cannot show what the disk would have been found to be; that the
    verdict says so, and says nothing of the disk, is right. How often that may happen tests/conftest.py bounds."""
    if run.get("verdict") == "inconclusive" and run["reasons"] and lab.HELD_UP in run["reasons"][0]["detail"]:
        pytest.skip(run["reasons"][0]["detail"])


class Daemon:
    """One tierprobed: started, asked over its socket, and stopped."""
    _description = None
    described = True  # each answer is held against the description; documents of other releases need not be

    def __init__(self, folder, command, listen, environment=None):
        self.folder = folder
        self.listen = listen
        self._killed = False
        self._log = open(folder / "stderr", "ab+")
        self.process = lab.spawn(*command, stdout=self._log, stderr=self._log,
                                 env={**os.environ, **(environment or {})})

    def connection(self, timeout=30):
        if self.listen.startswith("unix:"):
            return UnixConnection(self.listen.removeprefix("unix:"), timeout)
        host, _, port = self.listen.rpartition(":")
        return http.client.HTTPConnection(host.strip("[]"), int(port), timeout=timeout)

    def request(self, method, path, body=None, headers=None, timeout=30):
        with contextlib.closing(self.connection(timeout)) as connection:
            connection.request(method, path, body=body, headers=headers or {})
            answer = Response(connection.getresponse())
        if self.described and answer.body:
            self.description().check(method, path, answer.status, answer.headers["Content-Type"],
                                     lambda: json.loads(answer.body))
        return answer

    def description(self):
        """What the programs say of themselves; the same for all daemons of a build."""
        if Daemon._description is None:
            with contextlib.closing(self.connection(60)) as connection:
                connection.request("GET", "/openapi.json")
                Daemon._description = Description(json.loads(connection.getresponse().read()))
        return Daemon._description

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, **options):
        return self.request("POST", path, **options)

    @property
    def status(self):
        answer = self.get("/status")
        assert answer.status == 200, answer
        return answer.json

    def target(self, name="cache"):
        return next(t for t in self.status["targets"] if t["name"] == name)

    def start_run(self, target="cache", profile="small"):
        answer = self.post(f"/run?target={target}&profile={profile}")
        assert answer.status == 202, answer
        run = answer.json["runs"][0]
        assert answer.headers["Location"] == f"/runs/{run['id']}"
        return run["id"]

    def run(self, run_id):
        answer = self.get(f"/runs/{run_id}")
        assert answer.status == 200, answer
        return answer.json

    def wait_run(self, run_id, deadline_s=120, must_tell=True):
        """The run when it has ended. MUST_TELL: of the disk, or the test is skipped; see skip_when_held_up()."""
        def ended():
            run = self.run(run_id)
            return run if run["state"] not in ("queued", "running") else None
        run = lab.wait_for(f"the end of run {run_id}", ended, deadline_s)
        if must_tell:
            skip_when_held_up(run)
        return run

    def wait_writing(self, run_id, at_least=1, deadline_s=60):
        """Waits until the run has written something. A run that ends first is an error of the test."""
        def writing():
            run = self.run(run_id)
            assert run["state"] in ("queued", "running"), run
            return run["bytes_written"] >= at_least and run
        return lab.wait_for("bytes written", writing, deadline_s)

    def whole_run(self, target="cache", profile="small", deadline_s=120):
        return self.wait_run(self.start_run(target, profile), deadline_s)

    @property
    def stderr(self):
        self._log.flush()
        return (self.folder / "stderr").read_text(errors="replace")

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError(f"tierprobed ended with {self.process.returncode}:\n{self.stderr}")
        try:
            return self.get("/healthz").status == 200
        except OSError:
            return False

    def children(self):
        """The processes that the daemon has forked and that still live."""
        pids = []
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                pids += [int(pid) for pid in task.read_text().split()]
        return pids

    def kill(self):
        self._killed = True
        lab.kill(self.process)

    def stop(self, how=signal.SIGTERM, deadline_s=60):
        """Asks it to end and sees that it does so cleanly."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        assert self.process.wait(deadline_s) == 0, self.stderr
        return self

    def close(self):
        failed = None
        try:
            if not self._killed:
                self.stop()  # also looks at the status of one that has ended by itself
        except (subprocess.TimeoutExpired, AssertionError) as error:
            failed = error
        self.kill()
        text = self.stderr
        self._log.close()
        if self.listen.startswith("unix:"):
            pathlib.Path(self.listen.removeprefix("unix:")).unlink(missing_ok=True)
        assert not SANITIZED.search(text.encode()), text
        if failed:
            raise AssertionError(f"tierprobed did not end cleanly ({self.process.returncode}):\n{text}") from failed


def config_text(sections):
    """{"limits": {"w_await_ms": 20}} as the configuration file; a list is a key given several times."""
    lines = []
    for section, keys in sections.items():
        lines.append(f"[{section}]")
        for key, value in keys.items():
            for one in value if isinstance(value, (list, tuple)) else [value]:
                lines.append(f"{key} = {one}")
    return "\n".join(lines) + "\n"


def sections_for(targets, count=300, limits=None, official="small", **more):
    """The usual configuration of a test: short samples, and a profile `small` of COUNT blocks of 1 MiB, which is the
    targets' official one."""
    if not isinstance(targets, dict):
        targets = {"cache": targets}
    sections = {
        "sampling": {"interval": "100ms", "history": "1h"},
        "limits": dict(limits or LIMITS),
        "profile small": {"block_size": "1M", "count": count},
        **{f"target {name}": {"path": path, "profile": official} for name, path in targets.items()},
    }
    for section, keys in more.items():
        sections.setdefault(section, {}).update(keys)
    return sections


def call(program, *arguments, timeout=120, **options):
    """Runs a program to its end; stdout and stderr as text."""
    # Not a pipe for stderr: with sanitizers, a child that a disk holds keeps it open for their reports.
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        done = subprocess.run([str(program), *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=errors, text=True, timeout=timeout, **options)
        errors.seek(0)
        done.stderr = errors.read()
    assert not SANITIZED.search(done.stderr.encode()), done.stderr
    assert done.returncode >= 0, f"killed by signal {-done.returncode}: {done.stderr}"
    if "--json" in arguments and done.stdout:
        document = checked(json.loads(done.stdout))
        if isinstance(document, dict) and document.get("reasons"):
            skip_when_held_up(document)
    return done
