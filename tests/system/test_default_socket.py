# SPDX-License-Identifier: Apache-2.0
"""Where nothing else is said, the daemon listens on a socket in the service manager's folder as well."""

import os

import pytest

from harness import config_text, sections_for


@pytest.fixture
def configuration(folder, place):
    (folder / "run").mkdir()
    (folder / "tierprobed.conf").write_text(config_text(sections_for(place)))
    return folder / "tierprobed.conf"


@pytest.mark.parametrize("runtime,extra", [("{}/run", " unix:{}/run/tierprobed.sock"), ("", ""), ("relative", ""),
                                           ("{}/run:{}/other", ""), ("/" + "x" * 200, "")])
def test_addresses_in_force(tierprobed, configuration, folder, runtime, extra):
    done = tierprobed("--config", configuration, "--print-config",
                      env={**os.environ, "RUNTIME_DIRECTORY": runtime.format(folder, folder)})
    assert done.returncode == 0, done.stderr
    assert f"[http]\nlisten = 127.0.0.1:7620{extra.format(folder)}\n" in done.stdout


def test_a_set_address_stands_alone(tierprobed, configuration, folder):
    done = tierprobed("--config", configuration, "--listen", "127.0.0.1:7621", "--print-config",
                      env={**os.environ, "RUNTIME_DIRECTORY": str(folder / "run")})
    assert [line for line in done.stdout.split("\n") if line.startswith("listen")] == ["listen = 127.0.0.1:7621"]

