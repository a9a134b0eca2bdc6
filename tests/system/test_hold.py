# SPDX-License-Identifier: Apache-2.0
"""Nothing of a test stays behind: what a kill has left is removed by the next start, and nothing else is."""

import fcntl
import os



def leftover(folder, digit, content=b""):
    """A file named as a killed test leaves it, where the file system cannot make one without a name."""
    path = folder / f".tierprobe-{digit * 32}"
    path.write_bytes(content)
    return path


def test_swept_at_the_start_of_a_daemon(daemon, place, folder):
    """Those that are empty, the daemon's own, and nobody's at the time; and it is said."""
    gone = [leftover(place, digit) for digit in "ab"]
    locked, linked, written = leftover(place, "c"), leftover(place, "d"), leftover(place, "e", b"1")
    os.link(linked, place / "other name")
    outside = leftover(folder, "f")
    (place / f".tierprobe-{'0' * 32}").symlink_to(outside)
    (place / f".tierprobe-{'1' * 31}").touch()
    (place / f".tierprobe-{'2' * 32}.conf").touch()
    (place / f".tierprobe-{'3' * 32}").mkdir()
    if os.geteuid() == 0:
        os.chown(leftover(place, "4"), 65534, 65534)
    kept = {path.name for path in place.iterdir()} - {path.name for path in gone}
    with open(locked, "rb") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        service = daemon(place)
        service.stop()
        assert {path.name for path in place.iterdir()} == kept and outside.exists()
    assert written.read_bytes() == b"1"
    assert service.stderr.count(f"removed 2 empty files that a killed test had left in {place}") == 1, service.stderr
    for path in place.iterdir():
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
