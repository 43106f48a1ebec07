#!/usr/bin/env python3
"""How long it takes from asking for a task to its first instruction, side by side with the bare runtime and with Docker.

    bench/start_latency.py [--rounds 40] [--seed 1] [--before BINARY]

Every way runs the same static program on the same root file system. The ways take turns in a shuffled order, so that what
else the machine does hits all of them alike: compare the ratios, not the milliseconds of two runs. Needs root, a release
build, runc, and for the Docker row dockerd (scripts/install-dependencies --tests).
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.dont_write_bytecode = True
import drover  # noqa: E402
import oci_layout  # noqa: E402


def milliseconds(begin, output):
    """From `begin` to the instant that the program printed."""
    return (int(output.split()[-1]) - begin) / 1e6


def time_command(command, **options):
    """Milliseconds to the first instruction, and to the end of the command."""
    begin = time.monotonic_ns()
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True,
                          **options)
    return milliseconds(begin, done.stdout), (time.monotonic_ns() - begin) / 1e6


class BareRuntime:
    name = "`runc run`"

    def __init__(self, folder, root):
        self._bundle = folder / "bundle"
        self._bundle.mkdir()
        subprocess.run(["runc", "spec", "--bundle", str(self._bundle)], check=True)
        spec = json.loads((self._bundle / "config.json").read_text())
        spec["process"].update(args=["/first"], terminal=False)
        spec["root"].update(path=str(root), readonly=True)
        (self._bundle / "config.json").write_text(json.dumps(spec))
        self._count = 0

    def measure(self):
        self._count += 1
        return time_command(["runc", "run", "--bundle", self._bundle, f"drover-bench-{os.getpid()}-{self._count}"])

    def close(self):
        pass


class Docker:
    """A Docker Engine of its own, on its own socket and data folder."""

    name = "`docker run --rm`"

    def __init__(self, folder, root):
        client = "/usr/bin/docker" if os.path.exists("/usr/bin/docker") else shutil.which("docker")
        engine = shutil.which("dockerd")
        if not client or not engine:
            raise RuntimeError("dockerd is not installed: run scripts/install-dependencies --tests")
        socket = f"unix://{folder}/docker.sock"
        self._folder, self._docker = folder, [client, "--host", socket]
        self._log = open(folder / "docker.log", "w+")
        self._engine = subprocess.Popen(
            [engine, "--bridge=none", "--iptables=false", "--host", socket, "--data-root", str(folder / "docker"),
             "--exec-root", str(folder / "exec"), "--pidfile", str(folder / "docker.pid")],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log)
        try:
            drover.wait_for(self._answers, "dockerd to answer", timeout=60)
            tar = subprocess.run(["tar", "-C", str(root), "-c", "."], capture_output=True, check=True).stdout
            subprocess.run([*self._docker, "import", "-", "first"], input=tar, capture_output=True, check=True)
        except BaseException:
            self.close()
            raise

    def _answers(self):
        if self._engine.poll() is not None:
            self._log.seek(0)
            raise RuntimeError(f"dockerd ended: {self._log.read()[-500:]}")
        return subprocess.run([*self._docker, "version"], capture_output=True).returncode == 0

    def measure(self):
        return time_command([*self._docker, "run", "--rm", "--network", "host", "first", "/first"])

    def close(self):
        self._engine.terminate()
        self._engine.wait()
        self._log.close()
        for mount in drover.mounts_of(self._folder):  # it leaves its network namespace mounted
            subprocess.run(["umount", mount], check=False)


class DroverCommand:
    def __init__(self, daemon, image, gpus, note=""):
        self.name = "`drover run`" + (f" with {gpus} GPU" if gpus else "") + note
        self._command = daemon.cli_command("--socket", daemon.socket, "run", "--image", image, "--gpus", gpus, "--mem", "64M",
                                           "--", "/first")

    def measure(self):
        return time_command(self._command)

    def close(self):
        pass


class DroverRequest:
    def __init__(self, daemon, image, note=""):
        self.name = "Drover's API" + note
        self._daemon, self._image = daemon, image

    def measure(self):
        begin = time.monotonic_ns()
        task = self._daemon.submit(command=["/first"], image=self._image)
        self._daemon.request("GET", f"/v1/tasks/{task}/logs?follow=true")  # ends with the task
        whole = (time.monotonic_ns() - begin) / 1e6
        return milliseconds(begin, self._daemon.output(task)), whole

    def close(self):
        pass


def memory_kib(pid):
    """Resident and proportional size: the second shares what several processes use alike."""
    values = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    return tuple(int(values[name].split()[0]) for name in ("Rss", "Pss"))


def measure_memory(daemon):
    """(what, resident KiB, proportional KiB): the idle daemon with its GPUs, and one shim with a sleeping task."""
    rows = [("idle daemon, 8 simulated GPUs", *memory_kib(daemon.process.pid))]
    task = daemon.submit("say", "up", ",", "sleep", 600)
    daemon.wait_for_output(task, "up")
    rows += [("one shim", *memory_kib(pid)) for pid in daemon.shims()
             if b"shim" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]
    daemon.stop_task(task, force=True)
    daemon.wait_until_final(task)
    return rows


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.1f} ({low:.1f}–{high:.1f})"


def print_table(what, times, index):
    """One row a way; `index` chooses the first instruction (0) or the end (1)."""
    medians = {name: statistics.median(pair[index] for pair in pairs) for name, pairs in times.items()}
    print(f"| way | ms to {what}: median (quartiles) | ÷ bare runtime | faster than Docker by |")
    print("| --- | --- | --- | --- |")
    for name, pairs in times.items():
        faster = f"{medians[Docker.name] / medians[name]:.1f} ×" if Docker.name in medians else "–"
        print(f"| {name} | {quartiles([pair[index] for pair in pairs])} | {medians[name] / medians[BareRuntime.name]:.2f} "
              f"| {faster} |")
    print()


def print_tables(times, memory, rounds, skipped):
    print_table("the task's first instruction", times, 0)
    print_table("the end of the command", times, 1)
    print("| process | resident MiB | proportional MiB |\n| --- | --- | --- |")
    for what, resident, proportional in memory:
        print(f"| {what} | {resident / 1024:.1f} | {proportional / 1024:.1f} |")
    print("\n".join([f"\n{rounds} rounds of each way.", *skipped]))


def start_daemon(stack, *binary):
    daemon = drover.Daemon("dgx-a100", (), None, *binary)
    stack.callback(daemon.close)
    daemon.start()
    return daemon


def make_root(folder):
    root = folder / "root"
    for name in ("dev", "proc", "sys", "tmp", "etc"):
        (root / name).mkdir(parents=True)
    subprocess.run(["clang-19", "-static", "-Os", "-o", str(root / "first"), str(ROOT / "bench/first.c")], check=True)
    return root


def make_image(folder, root):
    def fill(layer):
        for name in ("dev", "proc", "sys", "tmp", "etc"):
            layer.add_folder(name)
        layer.add_file("first", (root / "first").read_bytes(), 0o755)

    oci_layout.write(folder / "image", fill, command=["/first"])
    return f"oci:{folder / 'image'}"


def run_rounds(ways, rounds, order):
    """name -> [(ms to the first instruction, ms to the end)]; two rounds before the first warm every way up."""
    times = {way.name: [] for way in ways}
    for number in range(-2, rounds):
        for way in order.sample(ways, len(ways)):
            pair = way.measure()
            if number >= 0:
                times[way.name].append(pair)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1, help="of the order in which the ways take turns")
    parser.add_argument("--before", type=pathlib.Path, metavar="BINARY", help="another build of Drover, measured beside it")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("start_latency: needs root, as container runtimes do")

    skipped = []
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="drover-bench-")))
        folder.chmod(0o755)
        root = make_root(folder)
        daemon = start_daemon(stack)
        memory = measure_memory(daemon)
        image = make_image(folder, root)
        ways = [BareRuntime(folder, root), DroverRequest(daemon, image), DroverCommand(daemon, image, 0),
                DroverCommand(daemon, image, 1)]
        if arguments.before:
            before = start_daemon(stack, arguments.before)
            ways += [DroverRequest(before, image, " of before"), *(DroverCommand(before, image, gpus, " of before") for gpus in (0, 1))]
        try:
            ways.append(Docker(folder, root))
        except RuntimeError as error:
            skipped.append(f"Skipped Docker: {error}")
        for way in ways:
            stack.callback(way.close)
        times = run_rounds(ways, arguments.rounds, random.Random(arguments.seed))
    print_tables(times, memory, arguments.rounds, skipped)


if __name__ == "__main__":
    main()
