# SPDX-License-Identifier: Apache-2.0
"""Fixtures that start the programs and disks, and see that they end well."""

import contextlib
import json
import pathlib
import shutil
import tempfile
import urllib.parse
import urllib.request

import pytest

from harness import BUILD, TIERPROBE, TIERPROBED, Daemon, call, config_text, free_port, lab, sections_for
from stub import Stub


@pytest.fixture
def folder():
    """A folder for state, sockets and configuration with a name short enough for a socket."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="tp-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def place():
    """A folder to be a target, on the disk that holds the build."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="test-target-", dir=BUILD))
    yield path
    assert list(path.iterdir()) == []
    path.rmdir()


@pytest.fixture
def memory():
    """memory(NAME) makes a folder without a block device, where a run ends before it has begun."""
    top = pathlib.Path(tempfile.mkdtemp(prefix="tierprobe-memory-", dir="/dev/shm"))

    def make(name="cache"):
        (top / name).mkdir()
        return top / name
    yield make
    shutil.rmtree(top, ignore_errors=True)


@pytest.fixture
def daemon(folder):
    """daemon(TARGETS, count=, limits=, ...) starts a tierprobed and waits until it answers."""
    with contextlib.ExitStack() as stack:
        def start(targets=None, sections=None, listen=None, arguments=(), here=folder, environment=None, wait=True,
                  prefix=(), **more):
            listen = listen or f"unix:{here}/socket"
            sections = sections if sections is not None else sections_for(targets, **more)
            sections.setdefault("http", {}).setdefault("listen", listen)
            (here / "tierprobed.conf").write_text(config_text(sections))
            command = [*prefix, TIERPROBED, "--config", here / "tierprobed.conf", "--state-dir", here / "state", *arguments]
            it = Daemon(here, command, listen, environment)
            stack.callback(it.close)
            if wait:
                lab.wait_for("tierprobed to answer", it.answers, 60)
            return it
        yield start


@pytest.fixture
def disk():
    """disk(**behaviour) makes a disk that lives as long as the test."""
    with contextlib.ExitStack() as stack:
        yield lambda **behaviour: stack.enter_context(lab.disk(**behaviour))


@pytest.fixture
def make(tmp_path):
    """make(NAME=VALUE...) starts an HTTP server over a made-up daemon, with STUB_NAME=VALUE in its environment."""
    stubs = []

    def _make(**env):
        directory = tmp_path / f"state-{len(stubs)}"  # one writer each: rings are locked
        directory.mkdir()
        stub = Stub(directory, **env)
        stubs.append(stub)
        return stub

    yield _make
    for stub in stubs:
        if stub.error is None and stub.process.returncode is None:
            stub.close()


@pytest.fixture
def stub(make):
    return make()


@pytest.fixture
def tierprobe():
    return lambda *arguments, **options: call(TIERPROBE, *arguments, **options)


@pytest.fixture
def tierprobed():
    """For calls that end by themselves: --check-config, faults at start."""
    return lambda *arguments, **options: call(TIERPROBED, *arguments, **options)


@pytest.fixture
def other_releases(monkeypatch):
    """Documents of other releases are served as they were written, whatever the description says."""
    monkeypatch.setattr(Daemon, "described", False)


@pytest.fixture
def prometheus(tmp_path):
    """prometheus(TARGETS..., more configuration) starts one that scrapes them each second; it returns what evaluates a
    query: [(labels, value)]."""
    with contextlib.ExitStack() as stack:
        def start(*targets, **more):
            config = tmp_path / "prometheus.yml"
            config.write_text(json.dumps({
                "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
                "scrape_configs": [{"job_name": "tierprobe", "static_configs": [{"targets": list(targets)}]}],
                **more,
            }))
            port = free_port()
            log = stack.enter_context(open(tmp_path / "prometheus.log", "wb"))
            process = lab.spawn("prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path}/tsdb",
                                f"--web.listen-address=127.0.0.1:{port}", stdout=log, stderr=log)
            stack.callback(lab.kill, process)

            def ask(query):
                url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
                try:
                    with urllib.request.urlopen(url, timeout=30) as answer:
                        result = json.load(answer)["data"]["result"]
                except OSError:
                    assert process.poll() is None, (tmp_path / "prometheus.log").read_text()
                    return []
                return [(one["metric"], float(one["value"][1])) for one in result]

            return ask

        yield start
