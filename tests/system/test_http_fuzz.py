# SPDX-License-Identifier: Apache-2.0
"""Requests that a machine has garbled, by the thousand, on the socket of a daemon: each gets an answer that is one, or
a closed connection; the daemon lives, and holds nothing of them afterwards.

TIERPROBE_FUZZ_REQUESTS says how many, TIERPROBE_FUZZ_SEED which."""

import os
import pathlib
import random
import re
import socket

import pytest

from harness import free_port, sections_for

pytestmark = pytest.mark.slow

REQUESTS = int(os.environ.get("TIERPROBE_FUZZ_REQUESTS", 6000))
SEED = int(os.environ.get("TIERPROBE_FUZZ_SEED", random.SystemRandom().randrange(1 << 32)))
TOKEN = "correct-horse-battery-staple-0123456789"

SEEDS = [f"{line} HTTP/1.1\r\nHost: {{host}}\r\n{fields}\r\n".encode() for line, fields in [
    ("GET /status", ""), ("GET /status?brief=yes", "If-None-Match: \"1-2\"\r\n"), ("HEAD /", "Accept: text/html\r\n"),
    ("GET /history?target=cache&limit=5&since=1", "Accept: text/csv, */*;q=0.1\r\n"), ("GET /metrics", "Accept-Encoding: gzip\r\n"),
    ("GET /history?step=60&from=2026-01-01T00:00:00Z&to=1893456000", ""), ("GET /runs?verdict=pass&before=z&limit=2", ""),
    ("GET /runs/20261130T222530-bb5322?wait=0", ""), ("DELETE /runs/20261130T222530-bb5322", f"Authorization: Bearer {TOKEN}\r\n"),
    ("OPTIONS *", ""), ("GET /openapi.json", "Connection: close\r\n"), ("GET /page/page.css", ""), ("GET /readyz", ""),
    ("POST /run?target=none", f"Content-Length: 2\r\nContent-Type: application/json\r\nAuthorization: Bearer {TOKEN}\r\n"),
    ("POST /run", "Transfer-Encoding: chunked\r\nOrigin: http://example.com\r\n"),
]]
SEEDS[-2] += b"{}"
SEEDS[-1] += b"2\r\n{}\r\n0\r\n\r\n"
PIECES = [b"\r\n", b"\n", b"\0", b" ", b"\t", b":", b"%00", b"%2e%2e/", b"?", b"&", b"=", b"#", b"*", b"\xff", b"http://a/", b"Host: a\r\n",
          b"Content-Length: 1\r\n", b"Transfer-Encoding: chunked\r\n", b"99999999999999999999", b"-1", b"\r\n ", b"A" * 2000,
          b"x=1&" * 400, b"Bearer ", b"HTTP/1.0", b"HTTP/2.0", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01"]


def garbled(rng, host):
    text = bytearray(rng.choice(SEEDS).replace(b"{host}", host))
    for _ in range(rng.choice((0, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(text) + 1)
        what = rng.randrange(6)
        if what == 0:
            text[at:at] = rng.choice(PIECES)
        elif what == 1:
            del text[at:at + rng.choice((1, 1, 2, 10, 100))]
        elif what == 2 and at < len(text):
            text[at] = rng.randrange(256)
        elif what == 3 and at < len(text):
            text[at] ^= 1 << rng.randrange(8)
        elif what == 4:
            text[at:at] = text[at:at + rng.choice((1, 5, 50))]
        else:
            text[at:at + rng.choice((1, 4))] = rng.choice(PIECES)
    return bytes(text)


LAST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
MORE_S = 0.25  # after so long without a byte the other end waits for more of a body, or of a head


def ask(address, text):
    """All that comes back until the other end closes, or waits: a request that is one follows what is garbled."""
    with socket.create_connection(address, 30) as it:
        answer = b""
        try:
            it.sendall(text + LAST)
            it.settimeout(MORE_S)
            while piece := it.recv(65536):
                answer += piece
        except (ConnectionResetError, BrokenPipeError, TimeoutError):
            pass  # it had answered, refused to read on, or has not got all of it
    return answer


def descriptors(service):
    return len(list(pathlib.Path(f"/proc/{service.process.pid}/fd").iterdir()))


def test_garbled_requests(daemon, memory, folder):
    tokens = folder / "tokens"
    tokens.write_text(f"ops {TOKEN}\n")
    tokens.chmod(0o600)
    port = free_port()
    sections = sections_for(memory(), count=5, http={"token_file": tokens}, guard={"cooldown": "1h"})
    service = daemon(sections=sections, listen=f"127.0.0.1:{port}")
    service.wait_run(service.start_run())
    before = descriptors(service)
    rng = random.Random(SEED)
    statuses = {}
    for n in range(REQUESTS):
        text = garbled(rng, service.listen.encode())
        answer = ask(("127.0.0.1", port), text)
        status = re.match(rb"HTTP/1\.[01] (\d{3}) [ -~]*\r\n", answer)
        assert status or not answer, (SEED, n, text, answer[:200])
        number = int(status[1]) if status else None
        assert number is None or number < 500 or number in (501, 503, 505), (SEED, n, text, answer[:500])
        statuses[number] = statuses.get(number, 0) + 1
    assert service.get("/healthz").status == 200
    assert descriptors(service) <= before + 2
    assert len(statuses) > 5, statuses
    print(f"{REQUESTS} requests, seed {SEED}: {statuses}")
