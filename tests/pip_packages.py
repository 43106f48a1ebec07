"""Python packages that tests use and Debian has not, or not new enough: of fixed versions, in a folder of their own."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import unittest


def folder(name, packages):
    """It is whole or absent; what an interrupted installation still writes, it writes elsewhere. Skips the test where they cannot be had."""
    user_cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    digest = hashlib.sha256(repr((packages, sys.version)).encode()).hexdigest()[:8]
    made = user_cache / f"drover/{name}-{digest}"
    if made.is_dir():
        return made
    partial = made.with_name(f"{made.name}.partial-{os.getpid()}")
    installed = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:",
                                "--no-deps", "--target", partial, *packages], capture_output=True, text=True, timeout=600, check=False)
    if installed.returncode != 0:
        shutil.rmtree(partial, ignore_errors=True)
        raise unittest.SkipTest(f"{' '.join(packages)} cannot be installed here: {installed.stderr.strip()[-300:]}")
    try:
        partial.rename(made)
    except FileExistsError:
        shutil.rmtree(partial)
    return made
