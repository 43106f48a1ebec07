"""A GPU's time between programs, and whether the machine has what other ways to share need."""

import concurrent.futures
import shutil
import time

from ..trial import Answer, Check

LENGTHS_US = (100, 1000, 10_000)


def run_together(trial, length, count, seconds, guarded=False, loops=None):
    """What so many programs had of the GPU at the same time: milliseconds in a second, by how many kernels of a length they ended. `loops`:
    what one alone has found a microsecond to be."""
    begin = int((time.monotonic() + (0.5 if trial.machine.profile else 4)) * 1000)  # a real context takes its time
    words = [trial.machine.built("cuda_check"), *spinning(begin, length, seconds)]
    environment = {"LOOPS_PER_US": str(loops)} if loops else None
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        running = [pool.submit(trial.command, words, guarded, environment=environment) for _ in range(count)]
        return [had_by(each.result(), length) for each in running]


def spinning(begin, length, seconds):
    """What cuda_check is told: from a moment on, in milliseconds of the monotonic clock, kernels of so many microseconds, for so long."""
    return ["spin", "0", "sync", "until", str(begin), "share", str(length), str(seconds)]


def had_by(said, length):
    _, kernels, took, loops = said.split()
    return {"ms_in_a_second": int(kernels) * length / float(took), "loops_per_us": float(loops)}


def shares(programs):
    had = [each["ms_in_a_second"] for each in programs]
    return [round(100 * each / sum(had), 1) for each in had]


def unthrottled(trial):
    seconds = 1 if trial.settings.brief else 3
    found = {}
    for length in LENGTHS_US:
        alone, = run_together(trial, length, 1, seconds)
        two = run_together(trial, length, 2, seconds, loops=alone["loops_per_us"])
        found[str(length)] = {"alone": alone, "two": two, "shares": shares(two)}
    words = "; ".join(f"kernels of {length} us: {each['alone']['ms_in_a_second']:.0f} ms of the GPU in a second alone, two have "
                      f"{' and '.join(format(one['ms_in_a_second'], '.0f') for one in each['two'])}" for length, each in found.items())
    return Answer(words, found)


def mps(trial):
    found = {name: shutil.which(name) for name in ("nvidia-cuda-mps-control", "nvidia-cuda-mps-server")}
    there = [name for name, path in found.items() if path]
    found["compute_mode"] = trial.child("mode", nvml=trial.machine.nvml, uuid=trial.machine.gpu["uuid"])["mode"]
    return Answer(f"{' and '.join(there) or 'neither program of MPS'} is there; compute mode {found['compute_mode']} (0: default)", found)


CHECKS = [
    Check("time", "How is a GPU's time divided when nobody sees to it?", 90, unthrottled),
    Check("mps", "Are the programs of MPS there?", 15, mps),
]
