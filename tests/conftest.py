# SPDX-License-Identifier: Apache-2.0
"""What pytest needs around all tests: the marks, what is skipped where, and a view of the mounts of their own.

Marks say what a test needs and with which programs it is worth running; a test without one of the latter two runs
with the sanitizers' programs alone, which are the stricter ones.
"""

import os
import pathlib
import signal

import pytest

import lab

MARKS = """
disk: needs root and loop devices
root: needs root
slow: waits for what takes its time; not in the fast part
installed: goes through the programs as they are installed, too: depends on speed, the optimiser or the installation
installed_only: goes only through those: sanitizers would change or forbid what it looks at
xdist_group(name): the tests of a group share what is costly to make, so one worker has them all
"""


def take_signals_back():
    """As nohup and a shell's background leave some signals ignored, and so they stay in a program that is started: those
    that are caught here have their default there."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def pytest_configure(config):
    take_signals_back()
    for line in MARKS.strip().splitlines():
        config.addinivalue_line("markers", line)
    if os.geteuid() == 0:
        lab.private_mounts()
        lab.sweep()


def pytest_collection_modifyitems(items):
    absent = lab.missing()
    for item in items:
        if absent and item.get_closest_marker("disk"):
            item.add_marker(pytest.mark.skip(reason=f"no disks here: {absent}"))
        if os.geteuid() != 0 and item.get_closest_marker("root"):
            item.add_marker(pytest.mark.skip(reason="not root"))
    # What takes longest comes first, so that nothing is left to wait for in the end.
    items.sort(key=lambda item: not item.get_closest_marker("xdist_group"))


# Of how many tests the host may say that it had no processor for the writers. More of them, and nothing was tested.
HELD_UP_MOST = 10


def pytest_sessionfinish(session):
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    if not reporter or hasattr(session.config, "workerinput"):
        return
    held_up = [report for report in reporter.stats.get("skipped", []) if lab.HELD_UP in str(report.longrepr)]
    if len(held_up) > HELD_UP_MOST:
        reporter.write_line(f"{len(held_up)} tests found this host too busy to judge a disk; at most {HELD_UP_MOST} may",
                            red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
