#!/usr/bin/env python3
"""What the journal's disk costs whom: many submit at once, one reads, and each write takes longer and longer to be on the disk.

    bench/slow_disk.py [--delays 0,10,100] [--clients 20] [--tasks 200] [--before BINARY]

The disk is made slow by a library that is loaded into the daemon alone (bench/slow_disk.c). Needs root and a release build.
"""

import argparse
import contextlib
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.dont_write_bytecode = True
import drover  # noqa: E402


class Load:
    """Clients that submit tasks, which wait for the GPUs that somebody has, and one who reads a task."""

    def __init__(self, daemon, clients, tasks):
        self._daemon, self._tasks = daemon, tasks
        self._holder = daemon.submit("sleep", 6000, gpus=len(daemon.api("GET", "/v1/gpus")["gpus"]))
        daemon.wait_until_running(self._holder)
        self._clients = [threading.Thread(target=self._submit) for _ in range(clients)]
        self._left = iter(range(tasks))
        self._lock = threading.Lock()
        self._answered = []
        self._read = []

    def _submit(self):
        while True:
            with self._lock:
                if next(self._left, None) is None:
                    return
            began = time.monotonic()
            self._daemon.submit("sleep", 1, gpus=1)
            self._answered.append(time.monotonic() - began)

    def run(self):
        """Submissions a second, and the times in ms of submissions and of reads."""
        began = time.monotonic()
        for client in self._clients:
            client.start()
        while any(client.is_alive() for client in self._clients):
            asked = time.monotonic()
            self._daemon.task(self._holder)
            self._read.append(time.monotonic() - asked)
            time.sleep(0.005)
        took = time.monotonic() - began
        return self._tasks / took, [1000 * each for each in self._answered], [1000 * each for each in self._read]


def row(binary, library, delay, arguments):
    daemon = drover.Daemon("k40m", (), {"LD_PRELOAD": str(library), "SLOW_DISK_MS": str(delay)}, binary)
    with contextlib.closing(daemon):
        daemon.start()
        return Load(daemon, arguments.clients, arguments.tasks).run()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--delays", default="0,10,100", help="milliseconds that each write takes longer")
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--before", type=pathlib.Path, metavar="BINARY", help="another build of Drover, measured beside it")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("slow_disk: needs root, as the daemon does")
    builds = [("", drover.BINARY)] + ([(" of before", arguments.before)] if arguments.before else [])
    with tempfile.TemporaryDirectory(prefix="drover-bench-") as folder:
        library = pathlib.Path(folder, "slow_disk.so")
        subprocess.run(["clang-19", "-shared", "-fPIC", "-O2", "-o", library, ROOT / "bench/slow_disk.c"], check=True)
        print("| a write takes longer by | submissions a second | ms of a submission: median | ms of a read: median | p99 | longest |")
        print("| --- | --- | --- | --- | --- | --- |")
        for delay in map(int, arguments.delays.split(",")):
            for note, binary in builds:
                rate, answered, read = row(binary, library, delay, arguments)
                late = statistics.quantiles(read, n=100)[98]
                print(f"| {delay} ms{note} | {rate:.0f} | {statistics.median(answered):.1f} | {statistics.median(read):.2f} | {late:.1f} "
                      f"| {max(read):.1f} |", flush=True)


if __name__ == "__main__":
    main()
