#!/usr/bin/env python3
"""What `drover top` takes of a processor: in a pseudo terminal, with a load that moves, every GPU with a task and a process.

    bench/top_cost.py [--seconds 60] [--interval 1s] [--profile dgx2]

Needs root and a release build. The processor time is what the kernel tells of the process when it has ended, start and end included; of the
daemon, what it took more than in as long a time without anybody who looks.
"""

import argparse
import os
import pathlib
import random
import select
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
sys.dont_write_bytecode = True
import drover  # noqa: E402
import in_terminal  # noqa: E402

ROWS, COLUMNS = 60, 250


def processor_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def move(daemon, gpus, generator):
    daemon.set_faults({gpu["uuid"]: {"utilization": {"gpu": generator.randrange(101), "memory": 30},
                                     "processes": [{"pid": os.getpid(), "memory_mib": generator.randrange(1, 30000)}]} for gpu in gpus})


def play(daemon, gpus, seconds, screen=None):
    """Seconds that the daemon took, and bytes that came to the terminal."""
    generator, before, count = random.Random(3), processor_seconds(daemon.process.pid), 0
    end, due = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        if time.monotonic() >= due:
            move(daemon, gpus, generator)
            due = time.monotonic() + 1
        if screen is None:
            time.sleep(0.1)
        elif select.select([screen.master], [], [], 0.1)[0]:
            count += len(os.read(screen.master, 65536))
    return processor_seconds(daemon.process.pid) - before, count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--interval", default="1s")
    parser.add_argument("--profile", default="dgx2")
    options = parser.parse_args()
    test = unittest.TestCase()
    daemon = drover.Daemon(options.profile).start()
    try:
        gpus = daemon.api("GET", "/v1/gpus")["gpus"]
        for _ in gpus:
            daemon.wait_for_output(daemon.submit("say", "up", ",", "sleep", 100000, gpus=1), "up")
        for _ in range(20):
            daemon.submit("sleep", 1, gpus=1)
        idle, _ = play(daemon, gpus, options.seconds)
        environment = {**daemon.environment, "DROVER_SOCKET": str(daemon.socket), "TERM": "xterm", "LC_ALL": "C.UTF-8"}
        screen = in_terminal.Terminal(test, daemon.cli_command("top", "--interval", options.interval), ROWS, COLUMNS, env=environment)
        watched, count = play(daemon, gpus, options.seconds, screen)
        screen.type("q")
        _, status, usage = os.wait4(screen.process.pid, 0)
        screen.process.returncode = status
        used = usage.ru_utime + usage.ru_stime
        print(f"{len(gpus)} GPUs, {options.seconds} s, a look every {options.interval}, {COLUMNS}x{ROWS}")
        print(f"drover top: {used:.2f} s, {100 * used / options.seconds:.2f} % of a processor; {usage.ru_maxrss / 1024:.0f} MiB; "
              f"{count / options.seconds / 1024:.1f} KiB a second to the terminal")
        print(f"the daemon: {watched - idle:.2f} s more than without, {100 * (watched - idle) / options.seconds:.2f} %")
    finally:
        test.doCleanups()
        daemon.close()


if __name__ == "__main__":
    main()
