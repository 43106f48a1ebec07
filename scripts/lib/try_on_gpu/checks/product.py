"""Drover itself: whether it finds the GPUs, brings the driver into containers, and keeps GPUs from those who have none."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import oci_layout

from ..machine import end, start, tail
from ..trial import Answer, Check, Failed, NotPossible
from .sharing import had_by, shares, spinning

RUNTIMES = ("runc", "crun", "youki")
MOST_OFF = 3  # points of a share of time
LEAST_HALF = 47  # percent, of what a program has alone, beside one that takes all it gets

# What a task can open: its own node by name, and one that it would make itself.
OPENS = """
import errno, glob, json, os, sys
def said(call):
    try:
        call()
        return "opened"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
def made():
    os.mknod("node", 0o20600, os.makedev(195, 0))
    os.close(os.open("node", os.O_RDWR))
nodes = sorted(path for path in glob.glob("/dev/nvidia*") if path[11:].isdigit())
print(json.dumps({"nodes": {node: said(lambda: os.close(os.open(node, os.O_RDWR))) for node in nodes}, "made": said(made)}))
"""


class Daemon:
    """`drover serve` on a folder of its own; what is left of it when the block ends is ended."""

    def __init__(self, trial):
        self.trial, machine = trial, trial.machine
        self.program = machine.built("drover")
        if os.geteuid() != 0:
            raise NotPossible("'drover serve' needs root")
        if not any(map(shutil.which, RUNTIMES)):
            raise NotPossible(f"there is no OCI runtime here: none of {', '.join(RUNTIMES)} is in PATH")
        self.folder = machine.folder / f"drover.{len(trial.results)}"
        self.folder.mkdir()
        self.socket, self.log = self.folder / "socket", self.folder / "log"
        self.words = [self.program, "serve", "--state", self.folder / "state", "--socket", self.socket]
        if machine.profile:
            self.words += ["--simulate", machine.profile]

    def __enter__(self):
        with open(self.log, "ab") as log:
            self.process = start(self.words, os.environ, stdout=log, stderr=log)
        try:
            self._wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _wait(self):
        while True:
            with contextlib.suppress(Failed):
                return self("gpus", seconds=5)
            if self.process.poll() is not None or self.trial.deadline - time.monotonic() < 15:
                raise Failed(f"the daemon does not answer: {tail(self.log.read_bytes())}")
            time.sleep(0.2)

    def __exit__(self, *_):
        with contextlib.suppress(Failed):  # a task that hangs would outlive the daemon
            self._end_tasks()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            end(self.process)

    def _end_tasks(self, seconds=10):
        words = [self.program, "--socket", self.socket]
        tasks = json.loads(self.trial.machine.command([*words, "ps", "--json"], seconds))["tasks"]
        if tasks:
            self.trial.machine.command([*words, "stop", "--force", *(each["task"]["id"] for each in tasks)], seconds)

    def __call__(self, *words, seconds=60):
        return self.trial.command([self.program, "--socket", self.socket, *words], seconds=seconds)


def doctor(trial):
    """It exits with 1 when something is missing, the daemon among it."""
    checks = json.loads(trial.command([trial.machine.built("drover"), "doctor", "--json"], accepted=(0, 1)))["checks"]
    missing = [f"{check['name']} ({check['found']})" for check in checks if check["state"] != "found"]
    return Answer(f"of {len(checks)} things it does not find: {', '.join(missing) or 'none'}", {"checks": checks})


def discovery(trial):
    with Daemon(trial) as drover:
        gpus = json.loads(drover("gpus", "--json"))
        topology, cdi = drover("topo"), json.loads(drover("cdi"))
    found = {gpu["uuid"] for gpu in gpus["gpus"]}
    cuda = {gpu["uuid"] for gpu in trial.machine.gpus}
    for gpu in gpus["gpus"]:  # the report is for others to read
        for private in ("node", "serial"):
            gpu.pop(private, None)
    figures = {"gpus": gpus, "topology": topology, "cdi": cdi}
    verdict = f"Drover lists {len(found)} GPUs, CUDA {len(cuda)}; topology and CDI specification are written"
    return Answer(verdict, figures, cuda <= found and "cdiVersion" in cdi)


def isolation(trial):
    with Daemon(trial) as drover:
        asked = [sys.executable, "-c", OPENS]
        one = json.loads(drover("run", "--gpus", "1", "--", *asked).splitlines()[-1])
        none = json.loads(drover("run", "--", *asked).splitlines()[-1])
    # Simulated nodes have no driver behind them, which is another thing than not to be allowed to open them.
    opened = [node for node, said in one["nodes"].items() if said in (("ENXIO", "opened") if trial.machine.profile else ("opened",))]
    denied = all(said in ("EPERM", "EACCES") for said in none["nodes"].values()) and none["made"] != "opened"
    verdict = f"with one GPU a task opens {len(opened)} of {len(one['nodes'])} nodes, with none {'none' if denied else 'some'}"
    return Answer(verdict, {"one": one, "none": none}, len(opened) == 1 and denied)


def libraries_of(programs):
    """The files of the C library that programs need, as this machine has them."""
    said = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=True, timeout=20).stdout
    return sorted(set(re.findall(r"(/\S+) \(0x", said)))


def image_of(folder, program, driver):
    def fill(layer):
        for name in ("dev", "etc", "proc", "sys", "tmp"):
            layer.add_folder(name)
        for path in libraries_of([program, *driver]):
            layer.add_file(path, pathlib.Path(path).read_bytes(), 0o755)
        layer.add_file("cuda_check", program.read_bytes(), 0o755)

    oci_layout.write(folder, fill, command=["/cuda_check"], environment=["PATH=/"])
    return f"oci:{folder}"


def driver_in_image(trial):
    program = trial.machine.built("cuda_check")
    with Daemon(trial) as drover:
        image = image_of(drover.folder / "image", program, trial.machine.driver["files"].values())
        said = drover("run", "--gpus", "1", "--image", image, "--", "/cuda_check", "list", "hold", "256", "info", "spins", "1000", "10")
    gpus = re.findall(r"^gpu \d+ (\S+)", said, re.MULTILINE)
    known = {gpu["uuid"] for gpu in trial.machine.gpus}
    return Answer(f"an image with nothing but a program sees {len(gpus)} GPU, takes memory and runs kernels", {"said": said},
                  len(gpus) == 1 and set(gpus) <= known and "spun" in said)


def share(trial):
    """What `views` and `fill-alloc` ask, of a task."""
    program, size = trial.machine.built("cuda_check"), trial.settings.share >> 20
    if "--share-by" not in trial.command([trial.machine.built("drover"), "run", "--help"]):
        raise NotPossible("this Drover does not put the guard into containers")
    with Daemon(trial) as drover:
        image = image_of(drover.folder / "image", program, trial.machine.driver["files"].values())
        said = drover("run", "--gpus", "1", "--gpu-share", f"{size}MiB", "--image", image, "--", "/cuda_check", "fill", "2", "info")
    filled, free, total = (int(word) for word in re.search(r"filled (\d+)\nmemory (\d+) (\d+)", said).groups())
    return Answer(f"a task with a share of {size} MiB sees {total}, took {filled}, and has {free} left", {"said": said},
                  total == size and filled <= size and free <= 4)


def turns(trial):
    """Two tasks at once, for kernels of several lengths: points that the first is off its share, and what it has of what it has alone."""
    program, machine, found = trial.machine.built("cuda_check"), trial.machine, {}
    seconds, lengths = (2, (1000,)) if trial.settings.brief else (6, (100, 1000, 10_000))
    with Daemon(trial) as drover, concurrent.futures.ThreadPoolExecutor(2) as pool:
        image = image_of(drover.folder / "image", program, machine.driver["files"].values())

        def run(parts, length, loops=None):
            begin = int((time.monotonic() + (3 if machine.profile else 8)) * 1000)  # containers and contexts take their time
            loops_known = ["--env", f"LOOPS_PER_US={loops}"] if loops else []
            tasks = [pool.submit(drover, "run", "--gpu-share", str(part), *loops_known, "--image", image, "--", "/cuda_check",
                                 *spinning(begin, length, seconds)) for part in parts]
            return [had_by(task.result(), length) for task in tasks]

        for length in lengths:
            alone, = run([0.5], length)
            for percent in (25, 50):
                two = run([percent / 100, 1 - percent / 100], length, alone["loops_per_us"])
                found[f"{percent} of kernels of {length} us"] = {
                    "alone": alone, "two": two, "percent": shares(two)[0], "off": round(abs(shares(two)[0] - percent), 1),
                    "of_alone": round(100 * two[0]["ms_in_a_second"] / alone["ms_in_a_second"], 1)}
    worst = max(each["off"] for each in found.values())
    least = min(each["of_alone"] for name, each in found.items() if name.startswith("50"))
    words = "; ".join(f"{name}: {each['percent']} %" for name, each in found.items())
    return Answer(f"{words}; a half is {least} % of what one has alone", found, machine.judged(worst <= MOST_OFF and least >= LEAST_HALF))


CHECKS = [
    Check("doctor", "What does 'drover doctor' say?", 30, doctor),
    Check("discovery", "Does Drover find the GPUs that CUDA has?", 60, discovery),
    Check("isolation", "Can a task open its GPU, and no other?", 60, isolation),
    Check("task-share", "Is a task held to its share?", 60, share, "A1"),
    Check("turns", "Are shares of a GPU's time kept?", 150, turns, "A11, A12"),
    Check("driver", "Does Drover bring the driver into an image that has none?", 60, driver_in_image),
]
