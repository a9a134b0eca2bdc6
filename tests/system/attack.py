#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A mixed attack on one daemon: hung, failing and good disks, reloads, aborts, runs asked for at random, clients of
every kind, kills and restarts.

    TIERPROBE_BUILD=build /usr/bin/python3 tests/system/attack.py --minutes 20 --seed 7

At the end every good disk's runs that were not aborted, cut or held up by the host have passed, nothing is left on any
disk, and memory, descriptors and processes were as many before the last kill as before the first."""

import argparse
import collections
import contextlib
import http.client
import os
import pathlib
import random
import shutil
import signal
import socket
import statistics
import struct
import sys
import tempfile
import threading
import time

from harness import Daemon, TIERPROBED, config_text, free_port, lab, sections_for
from lab.catalog import GOOD

MIB = 1 << 20
LIFE_S = 20  # of one daemon, from its start to its kill

HELD_UP = (lab.HELD_UP, "this host kept the measurement from its work")

MALFORMED = (b"\0" * 512, b"GET " + b"/" * 9000 + b"\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 400,
             b"POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
             b"GET /status HTTP/1.1\r\nHost: localhost\r\nContent-Length : 3\r\n\r\nabc",
             b"POST /run HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
             b"GET /runs?" + b"a=b&" * 600 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
             b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)


class Life:
    """What one daemon had, between its clients' last word and its kill."""

    def __init__(self, process, runs):
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        self.memory_mib = int(status.partition("VmRSS:")[2].split()[0]) / 1024
        self.threads = int(status.partition("Threads:")[2].split()[0])
        # The least that is seen in two seconds: a child that saves samples is there half of the time, with a socket.
        self.descriptors = min(_count_descriptors(process.pid) for _ in range(40))
        self.runs = runs


def _count_descriptors(pid):
    time.sleep(0.05)
    return len(os.listdir(f"/proc/{pid}/fd"))


def _identity(pid):
    """The process's name and its start's tick, or None when it has gone."""
    with contextlib.suppress(OSError):
        name, _, rest = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        return name + ")", rest.split()[19]
    return None


class Attack:
    def __init__(self, folder, disks, seed):
        self.folder, self.disks, self.seed = folder, disks, seed
        self.port = free_port()
        self.stop, self.calm = threading.Event(), threading.Event()
        self.lock = threading.Lock()
        self.did = collections.Counter()
        self.faults, self.lives = [], []
        self.runs, self.ends = {}, collections.Counter()
        self.service = None
        self.write_config(random.Random(seed))

    # ---- the daemon ----

    def write_config(self, choice):
        sections = sections_for({name: it.path for name, it in self.disks.items()}, count=200)
        sections["sampling"]["history"] = choice.choice(["1h", "10m"])
        sections["guard"] = {"max_duration": "20s"}
        sections["history"] = {"keep_runs": 5000}
        sections["http"] = {"listen": [f"unix:{self.folder}/socket", f"127.0.0.1:{self.port}"]}
        new = self.folder / "tierprobed.conf.new"
        new.write_text(config_text(sections))
        new.rename(self.folder / "tierprobed.conf")

    def start(self):
        command = [TIERPROBED, "--config", self.folder / "tierprobed.conf", "--state-dir", self.folder / "state"]
        # What AddressSanitizer holds back from reuse would look like a leak.
        options = f"{os.environ.get('ASAN_OPTIONS', '')}:quarantine_size_mb=4".lstrip(":")
        self.service = Daemon(self.folder, command, f"unix:{self.folder}/socket", {"ASAN_OPTIONS": options})
        lab.wait_for("tierprobed to answer", self.service.answers, 60)

    def measure(self):
        """Stops the clients, waits until the daemon has nothing to do, notes what it has."""
        self.calm.set()
        try:
            for it in self.disks.values():
                it.unhang()
            lab.wait_for("no run", lambda: self.service.status["state"] == "idle", 120)
            self.wait_childless()
            self.note_runs()
            self.lives.append(Life(self.service.process, len(self.runs)))
        except (TimeoutError, AssertionError, OSError) as error:
            self.faults.append(f"life {len(self.lives) + 1}: {error}")
        finally:
            self.calm.clear()

    def wait_childless(self):
        """Each child that there is now ends. Others may have come since: the daemon saves its samples all the time."""
        def children():
            return {(pid, identity) for pid in self.service.children() if (identity := _identity(pid))}
        first = children()
        try:
            lab.wait_for("the children to end", lambda: not first & children())
        except TimeoutError:
            raise TimeoutError(f"children that do not end: {sorted(first & children())}") from None

    def note_runs(self):
        """Those that have ended; a page holds more than one life makes."""
        self.runs.update({run["id"]: run for run in self.service.get("/runs?limit=1000").json["runs"]
                          if run["state"] not in ("queued", "running")})

    # ---- who attacks ----

    def every(self, name, what, pause_s):
        """A thread that does WHAT at random intervals of about PAUSE_S; a daemon that is dead just now is no fault."""
        choice = random.Random(f"{self.seed} {name}")

        def loop():
            while not self.stop.wait(choice.expovariate(1 / pause_s)):
                if self.calm.is_set():
                    continue
                try:
                    what(choice)
                    self.did[name] += 1
                except (OSError, http.client.HTTPException, TimeoutError):
                    self.did[f"{name}, refused or cut"] += 1
                except Exception as error:  # an answer that no client expects
                    self.faults.append(f"{name}: {error!r}")
        return threading.Thread(target=loop, name=name)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=5)

    def post(self, choice):
        answer = self.service.post(f"/run?target={choice.choice(list(self.disks))}", timeout=10)
        if answer.status not in (202, 409, 429, 503):
            self.faults.append(f"POST: {answer}")

    def abort(self, choice):
        running = [run for run in self.service.get("/runs?limit=20", timeout=10).json["runs"]
                   if run["state"] in ("queued", "running")]
        if running:
            answer = self.service.request("DELETE", f"/runs/{choice.choice(running)['id']}", timeout=10)
            if answer.status not in (202, 409, 404):
                self.faults.append(f"DELETE: {answer}")

    def reload(self, choice):
        if choice.random() < 0.2:
            (self.folder / "tierprobed.conf").write_text("[target x\npath = no\n")
            self.service.process.send_signal(signal.SIGHUP)
            time.sleep(0.05)  # not a wait: whether it reads this one or the next is as it comes
        self.write_config(choice)
        self.service.process.send_signal(signal.SIGHUP)

    def hang(self, choice):
        self.disks["hung"].hang()
        self.stop.wait(choice.uniform(0.5, 8))
        self.disks["hung"].unhang()

    def fail(self, choice):
        it = self.disks["failing"]
        if it.control["error"] and choice.random() < 0.3:
            with contextlib.suppress(TimeoutError):  # a run has a file open there
                it.heal()
            it.behave(rate=GOOD)
        else:
            it.behave(rate=GOOD, error=5, error_after=choice.randrange(1, 150) * MIB)

    def read_history(self, choice):
        target = choice.choice(list(self.disks))
        answer = self.service.get(f"/history?target={target}&limit={choice.choice([1, 100, 2000])}", timeout=10)
        if answer.status != 200:
            self.faults.append(f"/history: {answer}")

    def keep_alive(self, choice):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)) as connection:
            for _ in range(choice.randrange(1, 30)):
                connection.request("GET", choice.choice(["/status", "/healthz", "/metrics", "/runs", "/", "/history"]))
                if connection.getresponse().read() == b"":
                    self.faults.append("an empty answer")

    def drip(self, choice):
        with self.connect() as it:
            for byte in b"GET /status HTTP/1.1\r\nHost: localhost\r\n":
                if self.stop.wait(choice.uniform(0, 0.2)) or self.calm.is_set():
                    return
                it.sendall(bytes([byte]))

    def wait_for_news(self, choice):
        self.service.get(f"/status?wait={choice.randrange(1, 4)}", timeout=10)

    def follow_events(self, choice):
        runs = self.service.get("/runs?limit=1", timeout=10).json["runs"]
        if runs:
            with self.connect() as it:
                it.sendall(f"GET /runs/{runs[0]['id']}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                it.settimeout(choice.uniform(0.1, 3))
                with contextlib.suppress(TimeoutError):  # goes away in the middle
                    while it.recv(1 << 16):
                        pass

    def reset(self, choice):
        it = self.connect()
        it.sendall(b"GET /history?limit=2000 HTTP/1.1\r\nHost: localhost\r\n\r\n"[:choice.randrange(1, 60)])
        it.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        it.close()

    def half_close(self, choice):
        with self.connect() as it:
            it.sendall(b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n"[:choice.choice([20, 100])])
            it.shutdown(socket.SHUT_WR)
            it.recv(1 << 16)

    def malform(self, choice):
        with self.connect() as it:
            it.sendall(choice.choice(MALFORMED))
            it.recv(1 << 16)

    def attackers(self):
        return [self.every(name, what, pause_s) for name, what, pause_s in (
            ("runs asked for", self.post, 0.7), ("aborts", self.abort, 3), ("reloads", self.reload, 3),
            ("hangs", self.hang, 4), ("failures", self.fail, 4), ("history readers", self.read_history, 0.5),
            ("keep-alive clients", self.keep_alive, 0.7), ("slow drips", self.drip, 2),
            ("clients that wait", self.wait_for_news, 1), ("event followers", self.follow_events, 1),
            ("resets", self.reset, 0.3), ("half-closed", self.half_close, 0.5), ("malformed", self.malform, 0.3))]

    # ---- the whole ----

    def run(self, minutes):
        end = time.monotonic() + 60 * minutes
        self.start()
        threads = self.attackers()
        for thread in threads:
            thread.start()
        try:
            while time.monotonic() < end:
                life = min(LIFE_S, max(1, end - time.monotonic()))
                dead = time.monotonic() + life
                while time.monotonic() < dead and self.service.process.poll() is None:
                    time.sleep(0.2)
                if self.service.process.poll() is not None:
                    self.faults.append(f"the daemon ended with {self.service.process.returncode}:\n"
                                       f"{self.service.stderr[-3000:]}")
                    break
                self.measure()
                time.sleep(random.Random(self.seed + len(self.lives)).uniform(0, 1.5))  # where it is when it is killed
                self.service.kill()
                self.did["kills"] += 1
                self.service.close()
                self.start()
        finally:
            self.stop.set()
            for thread in threads:
                thread.join(30)
            for it in self.disks.values():
                it.unhang()
        self.finish()

    def finish(self):
        service = self.service
        lab.wait_for("no run", lambda: service.status["state"] == "idle", 120)
        self.note_runs()
        for run in self.runs.values():
            codes = [reason["code"] for reason in run["reasons"]]
            is_held_up = any(words in reason["detail"] for words in HELD_UP for reason in run["reasons"])
            how = run["verdict"] if run["state"] != "aborted" else "aborted or cut"
            how = "held up by the host" if is_held_up else how
            self.ends[run["target"], how] += 1
            if run["target"].startswith("good") and how not in ("pass", "held up by the host", "aborted or cut"):
                self.faults.append(f"{run['id']} of {run['target']}: {run['verdict']}, {codes}: {run['reasons']}")
        if not any(how == "pass" and name.startswith("good") for name, how in self.ends):
            self.faults.append("no good disk has passed once")
        service.stop()
        service.close()
        for name, it in self.disks.items():
            it.heal()
            if it.files():
                self.faults.append(f"left on {name}: {it.files()}")
        self.check_flat()

    def check_flat(self):
        """The middle of the last lives against that of the first ones."""
        n = max(1, len(self.lives) // 3)
        if not self.lives:
            self.faults.append("nothing was measured")
            return
        for what, slack in (("memory_mib", 16), ("descriptors", 2), ("threads", 0)):
            first, last = (statistics.median(getattr(life, what) for life in lives)
                           for lives in (self.lives[:n], self.lives[-n:]))
            # What is known of past runs grows with their number.
            if last > first * (1.25 if what == "memory_mib" else 1) + slack:
                self.faults.append(f"{what}: {first} before the first kills, {last} before the last")

    def print(self):
        print(f"seed {self.seed}")
        print("life  memory MiB  descriptors  threads   runs kept")
        for number, life in enumerate(self.lives, 1):
            print(f"{number:4} {life.memory_mib:11.1f} {life.descriptors:12} {life.threads:8} {life.runs:11}")
        for (target, how), number in sorted(self.ends.items()):
            print(f"{number:6} {target}: {how}")
        for what, number in sorted(self.did.items()):
            print(f"{number:6} {what}")
        for fault in self.faults:
            print(f"FAULT {fault}")


def attack(minutes, seed):
    """Attacks for so long; returns what was wrong."""
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="tp-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        disks = {"good": stack.enter_context(lab.disk(rate=GOOD)),
                 "good-ext4": stack.enter_context(lab.disk(rate=GOOD, fs="ext4")),
                 "hung": stack.enter_context(lab.disk(rate=GOOD)),
                 "failing": stack.enter_context(lab.disk(rate=GOOD))}
        it = Attack(folder, disks, seed)
        try:
            it.run(minutes)
        finally:
            if it.service:
                it.service.kill()
            it.print()
        return it.faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    options = parser.parse_args()
    lab.private_mounts()
    lab.sweep()
    return 1 if attack(options.minutes, options.seed) else 0


if __name__ == "__main__":
    sys.exit(main())
