"""What a cluster may have left behind. There should be none of it."""

import contextlib
import os
import pathlib
import tempfile

from kube import cgroups
from kube.node import KERNEL_SETTINGS

# Where a cluster's programs would write if they were not kept from it, and other tests' programs do not.
WRITTEN = ("/opt/cni", "/run/nri", "/usr/libexec/kubernetes", "/var/lib/kubelet", "/var/log/containers", "/var/log/pods", "~/.kube")


def find(cluster):
    """What can be known by the cluster's name, which is its folder's."""
    found = []
    for pid in _processes():
        with contextlib.suppress(OSError):
            folder = pathlib.Path("/proc", str(pid))
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if cluster in line or cluster in (folder / "cgroup").read_text():
                found.append(f"process {pid}: {line}")
            elif cluster in (folder / "mountinfo").read_text():
                found.append(f"process {pid} sees mounts of it: {line}")
    found += [f"control group {group}" for group in cgroups.groups_of(cluster)]
    return found + [f"folder {path}" for path in pathlib.Path(tempfile.gettempdir()).glob(f"{cluster}*")]


def _processes():
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and int(entry) != os.getpid()]


def host_state():
    """What belongs to the whole machine and might have been changed."""
    state = {}
    for name in KERNEL_SETTINGS:
        with contextlib.suppress(OSError):
            state[f"/proc/sys/{name}"] = pathlib.Path("/proc/sys", name).read_text().strip()
    for name in WRITTEN:
        path = pathlib.Path(name).expanduser()
        state[str(path)] = sorted(os.listdir(path)) if path.is_dir() else None
    return state


def changes(before):
    after = host_state()
    return [f"{name}: was {before[name]}, is {after[name]}" for name in before if before[name] != after[name]]
