"""Python packages of exact versions, as pip brings them, in a folder of their own in the user's cache."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

PYTHON = pathlib.Path(sys.executable).resolve()


class CannotInstall(unittest.SkipTest):
    """What pip says of it. A test that needs them is skipped."""


def provide(name, packages):
    """The folder that has them, and nothing else: each is named, "yaml==6.0", those that others need too. It is whole or absent; what an
    interrupted installation still writes, it writes elsewhere."""
    user_cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    digest = hashlib.sha256(repr((packages, sys.version)).encode()).hexdigest()[:8]
    folder = user_cache / f"drover/{name}-{digest}"
    if not folder.is_dir():
        partial = folder.with_name(f"{folder.name}.partial-{os.getpid()}")
        installed = subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:", "--no-deps",
                                    "--target", partial, *packages], capture_output=True, text=True, timeout=600, check=False)
        if installed.returncode != 0:
            shutil.rmtree(partial, ignore_errors=True)
            raise CannotInstall(f"the Python packages of {name} cannot be installed here: {installed.stderr.strip()[-300:]}")
        try:
            partial.rename(folder)
        except OSError:
            shutil.rmtree(partial)
    return folder
