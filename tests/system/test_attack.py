# SPDX-License-Identifier: Apache-2.0
"""The mixed attack, for a few minutes; see attack.py. TIERPROBE_ATTACK_MINUTES makes it longer."""

import os
import random

import pytest

from attack import attack


@pytest.mark.slow
@pytest.mark.disk
@pytest.mark.xdist_group("attack")
def test_mixed_attack():
    minutes = float(os.environ.get("TIERPROBE_ATTACK_MINUTES", "2"))
    assert attack(minutes, random.SystemRandom().randrange(1 << 30)) == []
