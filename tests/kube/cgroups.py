"""Control groups of a cluster's nodes, in every hierarchy of this machine: version 1, version 2, or both side by side.

A kubelet tidies all pods below the cgroup that it is given, so that each has one of its own: /<cluster>-<node>.
"""

import contextlib
import os
import pathlib
import time
import unittest

TOP = pathlib.Path("/sys/fs/cgroup")
WANTED = ("cpu", "cpuset", "memory", "pids", "io", "hugetlb")  # controllers that a kubelet asks for under version 2


def hierarchies():
    """Where hierarchies are mounted."""
    found = set()
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        words = line.split()
        if words[words.index("-") + 1] in ("cgroup", "cgroup2"):
            found.add(pathlib.Path(words[4]))
    return sorted(path for path in found if path == TOP or TOP in path.parents)


def is_unified():
    return (TOP / "cgroup.controllers").exists()


@contextlib.contextmanager
def needed():
    """Where control groups cannot be made, as in many containers, tests are skipped."""
    try:
        yield
    except OSError as error:
        raise unittest.SkipTest(f"control groups cannot be made here: {error}") from None


@needed()
def enable_controllers():
    """Lets groups at the top have a kubelet's controllers; returns those that they did not have before."""
    if not is_unified():
        return []
    switch = TOP / "cgroup.subtree_control"
    available, enabled = (TOP / "cgroup.controllers").read_text().split(), switch.read_text().split()
    missing = [name for name in WANTED if name in available and name not in enabled]
    if missing:
        switch.write_text(" ".join(f"+{name}" for name in missing))
    return missing


def disable_controllers(names):
    for name in names:
        with contextlib.suppress(OSError):  # somebody else uses it by now
            (TOP / "cgroup.subtree_control").write_text(f"-{name}")


@needed()
def make(name):
    for hierarchy in hierarchies():
        (hierarchy / name).mkdir()


def groups_of(cluster):
    """All groups of a cluster's nodes, children before parents."""
    return [pathlib.Path(folder) for hierarchy in hierarchies() for top in sorted(hierarchy.glob(f"{cluster}-*"))
            for folder, _, _ in os.walk(top, topdown=False)]


def processes_of(cluster):
    found = set()
    for group in groups_of(cluster):
        with contextlib.suppress(OSError):
            found.update(int(word) for word in (group / "cgroup.procs").read_text().split())
    return sorted(found)


def remove(cluster, patience):
    """Removes the groups of a cluster whose processes are ending; returns whether all are gone."""
    end = time.monotonic() + patience
    while groups_of(cluster):
        for group in groups_of(cluster):
            with contextlib.suppress(OSError):
                group.rmdir()
        if time.monotonic() > end:
            return not groups_of(cluster)
        time.sleep(0.02)
    return True
