"""podman with images and containers of a test's own, in one folder."""

import shutil
import unittest

# Limits are named because podman's own are higher than what a root without capabilities may set.
LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")


def command(folder):
    """The first words of every command; SkipTest where there is no podman."""
    program = shutil.which("podman")
    if not program:
        raise unittest.SkipTest("podman is not installed: run scripts/install-dependencies --tests")
    return [program, "--root", folder / "root", "--runroot", folder / "run", "--tmpdir", folder / "tmp",
            "--runtime", "runc", "--cgroup-manager", "cgroupfs"]
