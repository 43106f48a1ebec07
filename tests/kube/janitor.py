"""Tidies up after a cluster, also after one whose test process was killed.

    python3 -B janitor.py FOLDER CLUSTER CONTROLLERS    reads the cluster's lifeline as its standard input

It waits until the lifeline ends, as the cluster's machines do, and then removes what does not end by itself: control groups and the
folder. It is a process of its own so that nothing that happens to the tests happens to it.
"""

import os
import pathlib
import shutil
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from kube import cgroups  # noqa: E402

PATIENCE = 60


def main():
    folder, cluster, controllers = sys.argv[1:]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 4096):
        pass
    if not cgroups.remove(cluster, PATIENCE):
        for pid in cgroups.processes_of(cluster):
            os.kill(pid, signal.SIGKILL)
        cgroups.remove(cluster, PATIENCE)
    cgroups.disable_controllers(controllers.split())
    end = time.monotonic() + PATIENCE
    while os.path.exists(folder) and time.monotonic() < end:
        shutil.rmtree(folder, ignore_errors=True)  # again while a machine that is ending still writes


if __name__ == "__main__":
    main()
