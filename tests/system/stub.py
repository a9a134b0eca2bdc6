# SPDX-License-Identifier: Apache-2.0
"""The HTTP server over a made-up daemon (tests/tools/http-stub.c), started and talked to through raw sockets."""

import ctypes
import json
import os
import pathlib
import re
import socket
import subprocess

import pytest

from harness import BUILD, lab

STUB = BUILD / "tests/tools/http-stub"
SANITIZED = b"__asan_init" in STUB.read_bytes() if STUB.exists() else False
_get_version = ctypes.CDLL("libmicrohttpd.so.12").MHD_get_version
_get_version.restype = ctypes.c_char_p
LIBRARY = tuple(int(part) for part in _get_version().split(b"."))
GOOD = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Stub:
    def __init__(self, directory, **env):
        self.directory = directory
        full = dict(os.environ, STUB_DIR=str(directory))
        full.update({"STUB_" + key.upper(): str(value) for key, value in env.items()})
        self.process = subprocess.Popen(
            [str(STUB)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=full, text=True
        )
        self.addresses = []
        for line in self.process.stdout:
            if line == "ready\n":
                break
            self.addresses.append(line.split()[1])
        self.error = None if self.addresses else self.process.communicate()[1]

    @property
    def port(self):
        return int(self.addresses[0].rsplit(":", 1)[1])

    def command(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def sockets(self):
        """How many sockets the server has open."""
        return sum(link.startswith("socket:") for link in lab.links(self.process.pid))

    def connect(self):
        s = socket.create_connection(("127.0.0.1", self.port))
        s.settimeout(60)
        return s

    def raw(self, data, half_close=False):
        """Sends DATA, returns every answer until the server closes."""
        with self.connect() as s:
            if isinstance(data, str):
                data = data.encode()
            try:
                s.sendall(data)
                if half_close:
                    s.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # the server may have answered and closed before all was sent
            return read_all(s)

    def request(self, method, target, *headers, body=b"", host="localhost"):
        lines = [f"{method} {target} HTTP/1.1"] + ([f"Host: {host}"] if host else []) + list(headers)
        return self.raw("\r\n".join(lines + ["Connection: close", "", ""]).encode() + body)

    def close(self):
        """Ends the stub; what it says about memory (under sanitizers) fails the test."""
        _, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, err
        assert "Sanitizer" not in err, err
        return err


class Answer:
    def __init__(self, data):
        head, _, self.body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1]) if lines[0] else 0
        self.headers = {}
        for line in lines[1:]:
            key, _, value = line.partition(":")
            self.headers[key.lower()] = value.strip()
        if self.body and self.headers.get("transfer-encoding") == "chunked":
            self.body = dechunk(self.body)

    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        assert self.headers["content-type"] == "application/problem+json"
        document = self.json()
        assert document["status"] == self.status and document["title"] and document["detail"]
        return document["code"]


def dechunk(data):
    out = b""
    while True:
        size, _, data = data.partition(b"\r\n")
        n = int(size, 16)
        if n == 0:
            return out
        out, data = out + data[:n], data[n + 2 :]


def read_all(s):
    data = b""
    try:
        while chunk := s.recv(65536):
            data += chunk
    except ConnectionResetError:
        pass
    return data


def read_one(s):
    """One answer from a connection that stays open, with a Content-Length or in chunks."""
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = s.recv(65536)
        assert chunk, data
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    while len(body) < int(length.group(1)) if length else not body.endswith(b"\r\n0\r\n\r\n"):
        chunk = s.recv(65536)
        assert chunk
        body += chunk
    return Answer(head + b"\r\n\r\n" + body)


def served_again(stub):
    """Connections that were dropped count until the server has noticed: a few of ours may be turned away."""
    for _ in range(1000):
        answer = stub.request("GET", "/healthz")
        if answer:
            assert Answer(answer).status == 200
            return
    pytest.fail("not served any more")


def curl(*args):
    return subprocess.run(["curl", "-sS", "--max-time", "60", *args], capture_output=True, text=True)


