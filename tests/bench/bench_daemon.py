#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the idle daemon costs, and how fast it is there: resident memory, wake-ups and processor time a second
with one target sampled every second, and milliseconds from exec to the first answered /status.

Usage: bench_daemon.py TIERPROBED [DIR]     (DIR: the target's path, default: a temporary directory)
"""
import http.client
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

SETTLE_S = 6  # past the trim of start-up memory
MEASURE_S = 20
STARTS = 15


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def start(binary, target, work, *listen):
    path = os.path.join(work, "sock")
    began = time.monotonic()
    process = subprocess.Popen([binary, "--path", target, "--listen", ",".join(["unix:" + path, *listen]),
                                "--state-dir", os.path.join(work, "state")], stderr=subprocess.DEVNULL)
    while True:
        try:
            connection = UnixConnection(path)
            connection.request("GET", "/status")
            connection.getresponse().read()
            connection.close()
            return process, time.monotonic() - began
        except OSError:
            if process.poll() is not None or time.monotonic() - began > 10:
                sys.exit("tierprobed did not start")
            time.sleep(0.0005)


def stop(process):
    process.send_signal(signal.SIGTERM)
    process.wait(10)


def status(pid, key):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(key + ":"))


def cpu_ns(pid):
    with open(f"/proc/{pid}/schedstat") as f:
        return int(f.read().split()[0])


def main():
    binary = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="tierprobe-bench-") as work:
        target = sys.argv[2] if len(sys.argv) > 2 else os.path.join(work, "target")
        os.makedirs(target, exist_ok=True)
        times = []
        for _ in range(STARTS):
            process, seconds = start(binary, target, work)
            stop(process)
            times.append(seconds * 1000)
        print(f"exec to /status: median {statistics.median(times):.1f} ms, max {max(times):.1f} ms of {STARTS}")

        shutil.rmtree(os.path.join(work, "state"))
        process, _ = start(binary, target, work)
        time.sleep(SETTLE_S)
        switches, cpu = status(process.pid, "voluntary_ctxt_switches"), cpu_ns(process.pid)
        time.sleep(MEASURE_S)
        switches = status(process.pid, "voluntary_ctxt_switches") - switches
        cpu = cpu_ns(process.pid) - cpu
        print(f"idle: resident {status(process.pid, 'VmRSS') / 1024:.2f} MiB "
              f"(anonymous {status(process.pid, 'RssAnon') / 1024:.2f}), {switches / MEASURE_S:.2f} wake-ups/s, "
              f"{cpu / 1e6 / MEASURE_S:.3f} ms of processor time a second")
        stop(process)


if __name__ == "__main__":
    main()
