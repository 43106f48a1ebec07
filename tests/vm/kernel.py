"""The kernel of Debian's package linux-image-amd64, which is not installed for this: it lies in ~/.cache/drover/linux."""

import dataclasses
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

PACKAGE = "linux-image-amd64"
DEPMOD = "/sbin/depmod"


@dataclasses.dataclass(frozen=True)
class Kernel:
    release: str
    image: pathlib.Path
    modules: pathlib.Path  # a folder as /lib/modules/RELEASE


def find():
    """Fetches it when it is not there. Raises SkipTest where it cannot be had."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "drover/linux"
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        package = newest()
        folder = cache / package
        if not folder.exists():
            fetch(package, folder)
    release = package.removeprefix("linux-image-")
    return Kernel(release, folder / f"boot/vmlinuz-{release}", folder / "lib/modules" / release)


def newest():
    """The package that PACKAGE stands for now."""
    if os.uname().machine != "x86_64":
        raise unittest.SkipTest("the virtual machine is one for x86-64")
    shown = subprocess.run(["apt-cache", "depends", PACKAGE], capture_output=True, text=True)
    found = re.search(r"Depends: (linux-image-\S+)", shown.stdout)
    if not found:
        raise unittest.SkipTest(f"apt knows no {PACKAGE}: {shown.stderr.strip() or 'run apt-get update'}")
    return found[1]


def fetch(package, folder):
    with tempfile.TemporaryDirectory(dir=folder.parent) as partial:
        fetched = subprocess.run(["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", package], cwd=partial, capture_output=True,
                                 text=True)
        files = list(pathlib.Path(partial).glob("*.deb"))
        if fetched.returncode != 0 or not files:
            raise unittest.SkipTest(f"the kernel cannot be had: {fetched.stderr.strip()}")
        subprocess.run(["dpkg-deb", "--extract", files[0], f"{partial}/root"], check=True)
        release = package.removeprefix("linux-image-")
        subprocess.run([DEPMOD, "--basedir", f"{partial}/root", release], check=True)
        shutil.move(f"{partial}/root", folder)
