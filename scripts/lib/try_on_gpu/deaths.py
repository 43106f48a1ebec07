"""Roles of `child`: one that takes memory until it is killed, one that goes on, and one that kills and watches."""

import ctypes
import json
import random
import select
import subprocess
import sys
import time

from . import kinds
from .cuda import MIB, Cuda, Nvml
from .machine import die_with_parent

PATIENCE = 10  # seconds that memory may take to be free
MOST = 256 * MIB


def _take_and_give_back(cuda, bytes_in_all):
    addresses = []
    for _ in range(bytes_in_all // kinds.PIECE):
        address = ctypes.c_uint64()
        if cuda.code("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(kinds.PIECE)) == 0:
            addresses.append(address)
    for address in addresses:
        cuda("cuMemFree_v2", address)


def victim():
    cuda = Cuda()
    cuda.start()
    print("ready", flush=True)
    while True:
        _take_and_give_back(cuda, MOST)


def survivor():
    """Until its input ends; then says how long the longest of its calls took, in ms. A line of input asks for that so far, and begins anew."""
    cuda = Cuda()
    cuda.start()
    _take_and_give_back(cuda, kinds.PIECE)
    print("ready", flush=True)
    longest = 0.0
    while True:
        began = time.perf_counter()
        _take_and_give_back(cuda, kinds.PIECE)
        longest = max(longest, time.perf_counter() - began)
        if select.select([sys.stdin], [], [], 0.001)[0]:
            print(json.dumps(longest * 1e3), flush=True)
            if not sys.stdin.readline():
                return {"longest_ms": longest * 1e3}
            longest = 0.0


def _start(role):
    words = [sys.executable, "-m", "try_on_gpu.child", f"deaths:{role}", "{}"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, preexec_fn=die_with_parent)
    if process.stdout.readline() != "ready\n":
        raise RuntimeError(f"the {role} did not start")
    return process


def _longest(process):
    process.stdin.write("\n")
    return json.loads(process.stdout.readline())


def watch(rounds, most_seconds, nvml, uuid):
    nvml, end, chance = Nvml(nvml, uuid), time.monotonic() + most_seconds, random.Random(7)
    living = _start("survivor")
    time.sleep(0.5)
    alone = _longest(living)
    before, after_ms, left = nvml.used() + 2 * kinds.PIECE, [], 0  # what the survivor takes comes and goes
    while len(after_ms) < rounds and time.monotonic() < end:
        process = _start("victim")
        time.sleep(chance.uniform(0, 0.03))
        process.kill()
        killed = time.monotonic()
        process.wait()
        while (left := max(0, nvml.used() - before)) and time.monotonic() < killed + PATIENCE:
            time.sleep(0.001)
        if left:
            break
        after_ms.append(round((time.monotonic() - killed) * 1e3, 2))
    longest = _longest(living)
    living.stdin.close()
    living.wait(10)
    return {"free_after_ms": after_ms, "left": left, "alone_ms": alone, "survivor_ms": longest}
