#!/usr/bin/env python3
"""How long the kubelet waits for a preferred allocation: `drover kube node` beside NVIDIA's device plugin, on the same simulated machine.

    bench/preferred_allocation.py [--profile dgx2] [--calls 3] [--sizes 2,3,4]

Of NVIDIA's it measures its library (go-gpuallocator) with the calls that the plugin makes for every request; Drover's is the whole call, over
gRPC. The library comes from Go's module proxy.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.dont_write_bytecode = True
from kube import golang  # noqa: E402

PEER = "github.com/NVIDIA/go-gpuallocator@v0.6.0"


def measured(command, **options):
    """Size -> seconds, out of what a program prints."""
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options)
    return {int(size): float(seconds) for size, seconds in map(str.split, done.stdout.splitlines())}


def build_peer(folder):
    shutil.copy(ROOT / "bench/preferred/peer.go", folder)
    go = golang.find((1, 23))
    if not go:
        sys.exit("bench/preferred_allocation.py: needs Go 1.23 or newer, and cgo")
    for words in (["mod", "init", "peer"], ["get", PEER], ["mod", "tidy"], ["build", "-o", "peer", "."]):
        subprocess.run([go, *words], cwd=folder, check=True, stderr=subprocess.DEVNULL)
    return folder / "peer"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", default="dgx2")
    parser.add_argument("--calls", type=int, default=3, help="of NVIDIA's; Drover's are a thousand")
    parser.add_argument("--sizes", default="2,3,4")
    options = parser.parse_args()
    sizes = options.sizes.split(",")
    build = ROOT / "build/release"
    with tempfile.TemporaryDirectory() as folder:
        peer = build_peer(pathlib.Path(folder))
        environment = {**os.environ, "DROVER_SIM_PROFILE": str(ROOT / f"sim/profiles/{options.profile}.yaml"),
                       "LD_LIBRARY_PATH": str(build / "lib/drover/sim")}
        theirs = measured([peer, str(options.calls), *sizes], env=environment)
        ours = measured([build / "bench/preferred", options.profile, "1000", *sizes])
    print(f"| GPUs of {options.profile} | NVIDIA's choice | Drover's whole call | ratio |")
    print("| --- | --- | --- | --- |")
    for size in map(int, sizes):
        print(f"| {size} | {theirs[size] * 1e3:.1f} ms | {ours[size] * 1e6:.0f} µs | {theirs[size] / ours[size]:.0f} |")


if __name__ == "__main__":
    main()
