"""Pods with a share of a simulated GPU: what they are started from, and what they say."""

import pathlib
import re

import drover
import kube
import test_cdi
import test_guard
from kube import images

GIB = test_guard.GIB
CONTEXT = test_guard.CONTEXT


def reference(name):
    return f"drover.invalid/{name}:1"


def make_image(folder, name="cuda-check", more=(), links=()):
    """/probe, and /cuda_check with the C library that it and the driver need; `more` programs by their paths, and links. Returns the
    reference and the path of its archive."""
    folder.mkdir()
    probe = drover.build_probe(folder).read_bytes()

    def fill(layer):
        for path in ("bin", "dev", "etc", "proc", "root", "sys", "tmp"):
            layer.add_folder(path, 0o755)
        for path in test_cdi.libraries_of(test_guard.CHECK, *test_guard.LIBRARIES):
            layer.add_file(path, pathlib.Path(path).read_bytes(), 0o755)
        for program, content in {"probe": probe, "cuda_check": test_guard.CHECK.read_bytes(), **dict(more)}.items():
            layer.add_file(program, content, 0o755)
        for path, target in links:
            test_cdi.add_link(layer, path, target)

    return images.archive(folder, reference(name), fill, command=["/probe", "sleep", "1e9"])


def pod(name, *commands, claims=("gpus",), image="cuda-check", **more):
    """A container for each command; `claims` are names of ResourceClaims, all of which each container has."""
    made = kube.pod(name, image=reference(image), **more)
    (first,) = made["spec"]["containers"]
    made["spec"]["containers"] = [
        {**first, "name": f"c{index}", "command": list(map(str, command)), "args": [],
         "resources": {"claims": [{"name": claim} for claim in claims]}} for index, command in enumerate(commands)]
    made["spec"]["resourceClaims"] = [{"name": claim, "resourceClaimName": claim} for claim in claims]
    return made


def memory_in(text):
    """(free, total) in MiB, as a program was told; None where it was not."""
    found = re.search(r"^memory (\d+) (\d+)$", text, re.MULTILINE)
    return found and tuple(map(int, found.groups()))
