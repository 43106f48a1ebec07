"""Small images made on the spot, as archives that containerd imports.

PROBE holds nothing but tests/probe.c as /probe, which runs the verbs that a container's `args` name; SHELL has busybox' tools
beside it. Pods use them with `imagePullPolicy: Never`. PYTHON, which a test has to ask for, has this machine's Python besides.
"""

import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import unittest

import drover
import oci_layout

PROBE = "drover.invalid/probe:1"
SHELL = "drover.invalid/shell:1"
PYTHON = "drover.invalid/python:1"
PAUSE = "drover.invalid/pause:1"  # what holds a pod's namespaces


def make(folder):
    """Makes the archives in a new folder; returns the reference and the path of each."""
    folder.mkdir()
    probe = drover.build_probe(folder).read_bytes()
    forever = ["sleep", "1e9"]
    return [archive(folder, PAUSE, _with(probe), entrypoint=["/probe"], command=forever),
            archive(folder, PROBE, _with(probe), entrypoint=["/probe"], command=forever),
            archive(folder, SHELL, _with(probe, _busybox()), command=["sleep", "1000000000"])]


def make_python(folder, files):
    """PYTHON, with these programs by their paths in it; returns the reference and the path of the archive."""
    probe, busybox = drover.build_probe(folder).read_bytes(), _busybox()
    library = pathlib.Path(sysconfig.get_paths()["stdlib"])
    program = pathlib.Path(sys.executable).resolve()
    wanted = [*library.glob("*.py"), *library.glob("lib-dynload/*.so")]
    for part in ("collections", "email", "encodings", "http", "importlib", "json", "re", "urllib"):
        wanted += (library / part).rglob("*.py")
    objects = [program, *(path for path in wanted if path.suffix == ".so")]
    linked = subprocess.run(["ldd", *objects], capture_output=True, text=True, check=True).stdout.split()
    libraries = sorted({word for word in linked if word.startswith("/") and not word.endswith(":")})

    def add(layer):
        busybox(layer)
        for path in (program, *wanted, *map(pathlib.Path, libraries)):
            layer.add_file(str(path), path.read_bytes(), path.stat().st_mode & 0o777)
        layer.add_link("bin/python3", str(program))
        for path, text in files.items():
            layer.add_file(path, text.encode())

    return archive(folder, PYTHON, _with(probe, add), command=["sleep", "1000000000"])


def _busybox():
    """Adds all of busybox' tools to a layer."""
    program = shutil.which("busybox")
    if not program:
        raise unittest.SkipTest("busybox is not installed: run scripts/install-dependencies --tests --kubernetes")
    tools = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split()

    def add(layer):
        layer.add_file("bin/busybox", pathlib.Path(program).read_bytes(), 0o755)
        for tool in tools:
            if tool != "busybox":
                layer.add_link(f"bin/{tool}", "busybox")

    return add


def _with(probe, add_more=None):
    def fill(layer):
        for path, mode in (("bin", 0o755), ("dev", 0o755), ("etc", 0o755), ("proc", 0o755), ("root", 0o700), ("sys", 0o755),
                           ("tmp", 0o1777)):
            layer.add_folder(path, mode)
        layer.add_file("probe", probe, 0o755)
        layer.add_file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\napp:x:1234:1234::/:/bin/sh\n")
        layer.add_file("etc/group", b"root:x:0:\napp:x:1234:\n")
        if add_more:
            add_more(layer)

    return fill


def archive(folder, reference, fill, **settings):
    """An image whose content `fill(layer)` writes; returns its reference and its path, as nodes import it."""
    name, tag = reference.rsplit("/", 1)[1].split(":")
    layout, path = folder / f"{name}.layout", folder / f"{name}.tar"
    oci_layout.write(layout, fill, tag=tag, **settings)
    with tarfile.open(path, "w") as archive:
        archive.add(layout, arcname=".")
    shutil.rmtree(layout)
    return reference, path
