#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How many requests a second the daemon answers, beside the least that its library can do (/healthz) and beside
prometheus-node-exporter; how late /status is at 500 requests a second while a test writes at full speed and a client
reads history; and what clients cost in memory.

Usage: bench_http.py TIERPROBED [DIR]     (DIR: the target's path, on a disk with 2 GB free; needs wrk)
"""
import http.client
import json
import os
import re
import shutil
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from bench_daemon import UnixConnection, start, status, stop

SECONDS = 4
LISTEN, SECURE, EXPORTER = "127.0.0.1:17621", "127.0.0.1:17622", "127.0.0.1:17623"
RATE_HZ, LATE_S = 500, 10
CLIENTS = 32


def rate(url, clients):
    """Requests a second, keep-alive."""
    said = subprocess.run(["wrk", "-t1", f"-c{clients}", f"-d{SECONDS}s", url], capture_output=True, text=True, check=True).stdout
    assert "Non-2xx" not in said, said
    return float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1])


def rates():
    for clients in (1, CLIENTS):
        floor = rate(f"http://{LISTEN}/healthz", clients)
        print(f"{clients} client{'s' * (clients > 1)}: /healthz {floor:.0f}/s")
        for path in ("/status", "/status?brief=yes", "/metrics", "/openapi.json"):
            one = rate(f"http://{LISTEN}{path}", clients)
            print(f"    {path:20} {one:7.0f}/s  ratio {one / floor:.2f}")


def exporter(ours):
    if not shutil.which("prometheus-node-exporter"):
        print("prometheus-node-exporter: left out, it is not installed")
        return
    process = subprocess.Popen(["prometheus-node-exporter", f"--web.listen-address={EXPORTER}"], stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        theirs = rate(f"http://{EXPORTER}/metrics", 1)
    finally:
        process.kill()
        process.wait()
    print(f"/metrics of prometheus-node-exporter: {theirs:.0f}/s; ours is {ours / theirs:.0f} times as fast")


def ask(connection, path, method="GET"):
    connection.request(method, path)
    return connection.getresponse().read()


def lateness(path):
    """Latency of /status from when it was due, in ms, sorted."""
    connection, found, began = http.client.HTTPConnection(LISTEN), [], time.monotonic()
    for n in range(RATE_HZ * LATE_S):
        due = began + n / RATE_HZ
        time.sleep(max(0, due - time.monotonic()))
        ask(connection, path)
        found.append((time.monotonic() - due) * 1000)
    return sorted(found)


def say_lateness(what, found):
    print(f"{what}: p50 {found[len(found) // 2]:.2f} ms, p99 {found[len(found) * 99 // 100]:.2f} ms, max {found[-1]:.2f} ms")


def under_load(unix):
    say_lateness(f"/status at {RATE_HZ}/s, nothing beside", lateness("/status"))
    over = threading.Event()

    def read_history():
        connection = http.client.HTTPConnection(LISTEN)
        while not over.is_set():
            ask(connection, "/history?limit=10000")

    def keep_testing():
        connection = UnixConnection(unix)
        while not over.is_set():
            ask(connection, "/run?profile=quick&wait=60", "POST")
    threads = [threading.Thread(target=one) for one in (read_history, keep_testing)]
    for thread in threads:
        thread.start()
    say_lateness(f"/status at {RATE_HZ}/s beside tests and a reader of history", lateness("/status"))
    over.set()
    for thread in threads:
        thread.join()
    service = json.loads(ask(UnixConnection(unix), "/status"))["service"]
    print(f"sampler, all the while: p99 {service['tick_lateness_p99_ms']} ms late, max {service['tick_lateness_max_ms']} ms")


def history():
    """10,000 samples, if the daemon has been sampling that long."""
    connection, times = http.client.HTTPConnection(LISTEN), []
    for _ in range(10):
        began = time.monotonic()
        size = len(ask(connection, "/history?limit=10000"))
        times.append((time.monotonic() - began) * 1000)
    print(f"/history?limit=10000: {size / 1e3:.0f} kB in {statistics.median(times):.1f} ms")


def memory(pid):
    open_ones = [http.client.HTTPConnection(LISTEN) for _ in range(CLIENTS)]
    for one in open_ones:
        ask(one, "/status")
    print(f"resident with {CLIENTS} clients: {status(pid, 'VmRSS') / 1024:.1f} MiB")
    for one in open_ones:
        one.close()


def memory_tls(binary, target, work):
    key, cert = os.path.join(work, "key"), os.path.join(work, "cert")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key,
                    "-out", cert, "-days", "2", "-subj", "/CN=localhost"], check=True, capture_output=True)
    config = os.path.join(work, "tierprobed.conf")
    with open(config, "w") as out:
        out.write(f"[target cache]\npath = {target}\n[http]\nlisten = unix:{work}/sock\nlisten = {SECURE}\n"
                  f"tls_cert = {cert}\ntls_key = {key}\n")
    process = subprocess.Popen([binary, "--config", config, "--state-dir", os.path.join(work, "state-tls")], stderr=subprocess.DEVNULL)
    context = ssl._create_unverified_context()
    try:
        while not os.path.exists(os.path.join(work, "sock")):
            time.sleep(0.01)
        time.sleep(1)
        open_ones = [http.client.HTTPSConnection(SECURE, context=context) for _ in range(CLIENTS)]
        for one in open_ones:
            ask(one, "/status")
        print(f"resident with {CLIENTS} TLS clients: {status(process.pid, 'VmRSS') / 1024:.1f} MiB")
    finally:
        stop(process)


def main():
    if not shutil.which("wrk"):
        print("left out, it needs wrk")
        return
    with tempfile.TemporaryDirectory(prefix="tierprobe-bench-") as work, \
            tempfile.TemporaryDirectory(prefix="tierprobe-bench-", dir=sys.argv[2] if len(sys.argv) > 2 else ".") as target:
        process, _ = start(sys.argv[1], target, work, LISTEN)
        try:
            rates()
            exporter(rate(f"http://{LISTEN}/metrics", 1))
            under_load(os.path.join(work, "sock"))
            history()
            memory(process.pid)
        finally:
            stop(process)
        memory_tls(sys.argv[1], target, work)


if __name__ == "__main__":
    main()
