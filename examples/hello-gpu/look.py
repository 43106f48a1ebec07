"""Says which GPUs a task has, and proves that it can open no others.

It opens each GPU of the machine that it has a device node for. For every other it makes a node of its own, as a program that breaks
out of its limits might, and the kernel answers "Operation not permitted", to root too.
"""

import argparse
import errno
import os
import re
import time

NVIDIA_MAJOR = 195


def names(pattern):
    return sorted(name for name in os.listdir("/dev") if re.fullmatch(pattern, name))


def try_to_open(minor):
    """What the kernel says when the task opens the GPU, by a node that it makes if it has none."""
    given = node = f"/dev/nvidia{minor}"
    if not os.path.exists(given):
        node = f"gpu-{minor}-{os.getpid()}"
        try:
            os.mknod(node, 0o20600, os.makedev(NVIDIA_MAJOR, minor))
        except PermissionError:
            return "denied: it may not even make the node"
    try:
        os.close(os.open(node, os.O_RDWR))
        return "opened"
    except OSError as error:
        if error.errno == errno.ENXIO:
            return "allowed (no driver behind it: the GPU is simulated)"
        return f"denied: {error.strerror}" if error.errno == errno.EPERM else error.strerror
    finally:
        if node != given:
            os.unlink(node)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine-gpus", type=int, default=8, help="how many GPUs to try")
    parser.add_argument("--hold", type=float, default=0, metavar="SECONDS", help="keep the GPUs for a while")
    arguments = parser.parse_args()

    print(f"GPUs given to this task: {', '.join(names(r'nvidia[0-9]+')) or 'none'}")
    print(f"Control devices:         {', '.join(names(r'nvidia[^0-9].*')) or 'none'}")
    for minor in range(arguments.machine_gpus):
        print(f"  GPU {minor}: {try_to_open(minor)}", flush=True)
    time.sleep(arguments.hold)


if __name__ == "__main__":
    main()
