# SPDX-License-Identifier: Apache-2.0
"""Memory that runs out in the middle of a request, at each of its allocations in turn: whoever asked gets an answer or
a closed connection, the next one gets the whole answer, and nothing is left over."""

import contextlib
import http.client
import mmap
import os
import pathlib
import struct

import pytest

import lab
from harness import free_port, sections_for

pytestmark = [pytest.mark.slow, pytest.mark.installed_only]

ROOT = pathlib.Path(__file__).parents[2]
MOST = 150  # places in a request where it is tried, spread over all of its allocations
NEVER = -1


class Memory:
    """The daemon's allocations, as tests/lab/malloc-shim.c counts and fails them."""

    def __init__(self, folder):
        self.file = folder / "allocations"
        self.file.write_bytes(struct.pack("qqq", NEVER, 0, 0))
        self.shim = folder / "malloc-shim.so"
        lab.run("cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", self.shim,
                ROOT / "tests/lab/malloc-shim.c")
        with self.file.open("r+b") as it:
            self.map = mmap.mmap(it.fileno(), 24)

    @property
    def environment(self):
        return {**os.environ, "LD_PRELOAD": str(self.shim), "LAB_MALLOC": str(self.file)}

    @property
    def failed(self):
        return struct.unpack_from("q", self.map, 8)[0]

    @property
    def in_use(self):
        return struct.unpack_from("q", self.map, 16)[0]

    def left(self):
        return struct.unpack_from("q", self.map, 0)[0]

    def fail_after(self, n):
        struct.pack_into("q", self.map, 0, n)


@pytest.fixture
def memory_of_it(folder):
    return Memory(folder)


ROUTES = [
    ("GET", "/", "application/json"), ("GET", "/", "text/html"), ("GET", "/status", "*/*"), ("GET", "/status?brief=yes", "*/*"),
    ("GET", "/metrics", "text/plain"), ("GET", "/metrics", "application/openmetrics-text"), ("GET", "/healthz", "*/*"),
    ("GET", "/readyz", "*/*"), ("GET", "/history?limit=50", "*/*"), ("GET", "/history?step=1", "text/csv"),
    ("GET", "/runs?limit=20", "*/*"), ("GET", "/runs/ID", "*/*"), ("GET", "/runs/ID", "text/html"),
    ("GET", "/runs/ID/events", "*/*"), ("GET", "/runs/none", "*/*"), ("GET", "/openapi.json", "*/*"),
    ("GET", "/page/page.js", "*/*"), ("GET", "/status?no=such", "*/*"), ("POST", "/run?profile=nosuch", "*/*"),
    ("POST", "/run", "*/*"), ("DELETE", "/runs/ID", "*/*"), ("OPTIONS", "/run", "*/*"),
]


def ask(service, method, path, accept):
    """The status, or None when the connection was closed before there was a whole answer."""
    with contextlib.closing(service.connection(30)) as connection:
        try:
            connection.request(method, path, headers={"Accept": accept, "Accept-Encoding": "gzip"})
            answer = connection.getresponse()
            answer.read()
            return answer.status
        except (http.client.HTTPException, ConnectionError):
            return None


def test_each_allocation_of_each_route(daemon, memory, memory_of_it):
    sections = sections_for(memory(), count=5)
    service = daemon(sections=sections, listen=f"127.0.0.1:{free_port()}", environment=memory_of_it.environment)
    run_id = service.wait_run(service.start_run())["id"]
    lab.wait_for("samples", lambda: service.target()["sample"] is None or service.target()["sample"]["seq"] > 2)
    outcomes = {}
    for method, path, accept in [(m, p.replace("ID", run_id), a) for m, p, a in ROUTES]:
        whole = ask(service, method, path, accept)
        assert whole, (method, path)
        memory_of_it.fail_after(1 << 40)
        ask(service, method, path, accept)
        used = (1 << 40) - memory_of_it.left()
        memory_of_it.fail_after(NEVER)
        for n in range(0, used + 1, max(1, used // MOST)):
            memory_of_it.fail_after(n)
            status = ask(service, method, path, accept)
            memory_of_it.fail_after(NEVER)
            outcomes[status] = outcomes.get(status, 0) + 1
            good = (whole, 409, 500, 503)  # 409: a run that was begun before
            assert status is None or status in good or status // 100 == 2, (method, path, n, status)
            again = ask(service, method, path, accept)
            assert again in (whole, 202, 409) and (again == whole or method == "POST"), (method, path, n, again)
    assert memory_of_it.failed > 500, memory_of_it.failed
    print(f"{memory_of_it.failed} allocations failed; answers: {outcomes}")


def test_nothing_is_left_over(daemon, memory, memory_of_it):
    """As many blocks are in use after a thousand failures as before."""
    service = daemon(sections=sections_for(memory(), count=5), listen=f"127.0.0.1:{free_port()}",
                     environment=memory_of_it.environment)
    run_id = service.wait_run(service.start_run())["id"]
    reads = [(m, p.replace("ID", run_id), a) for m, p, a in ROUTES if m == "GET"]

    def blocks():
        """What is in use when each document was made anew, and nothing is under way."""
        for one in reads:
            assert ask(service, *one)
        seen = [memory_of_it.in_use for _ in range(20) if ask(service, "GET", "/healthz", "*/*")]
        return min(seen)
    before = blocks()
    for n in range(0, 50):
        for one in reads:
            memory_of_it.fail_after(n)
            ask(service, *one)
            memory_of_it.fail_after(NEVER)
    assert memory_of_it.failed > 500
    assert blocks() - before < 50, (before, blocks())
