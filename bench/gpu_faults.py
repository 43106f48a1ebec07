#!/usr/bin/env python3
"""What is left of a Kubernetes node when one of its GPUs fails: `drover kube node` beside NVIDIA's device plugin.

    bench/gpu_faults.py [--patience 300] [--peer BINARY]

Each serves, in its turn, a real kubelet of a cluster of its own with the same eight simulated GPUs, one of which fails on purpose. What is
counted is what the scheduler sees: the Node's allocatable GPUs. NVIDIA's plugin comes from Go's module proxy, and is built with cgo. Needs
root, a release build, and what the tests on clusters need (scripts/install-dependencies --tests --kubernetes).
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.dont_write_bytecode = True
import drover  # noqa: E402
import kube  # noqa: E402
from kube import golang  # noqa: E402

MODULE = "github.com/NVIDIA/k8s-device-plugin"
VERSION = "v0.18.0"
GPU, GPUS, BROKEN = "nvidia.com/gpu", 8, "3"
PROFILE = ROOT / "sim/profiles/dgx-a100.yaml"
STATE = "/var/lib/kubelet/plugins/drover"
FAULTS = f"{STATE}/sim/faults.yaml"
SETTLE = 30  # seconds after which what is offered is taken for what stays


def build_peer(folder):
    go = golang.find((1, 24))
    if not go:
        sys.exit("bench/gpu_faults.py: needs Go 1.24 or newer, and cgo")
    environment = {**os.environ, "CGO_ENABLED": "1", "GOFLAGS": "-mod=mod"}
    linked = "-extldflags '-Wl,--export-dynamic -Wl,--unresolved-symbols=ignore-in-object-files'"
    for words in (["mod", "init", "peer.invalid/built"], ["get", f"{MODULE}@{VERSION}"],
                  ["build", "-ldflags", linked, "-o", "peer", f"{MODULE}/cmd/nvidia-device-plugin"]):
        subprocess.run([go, *words], cwd=folder, env=environment, check=True, stdout=sys.stderr)
    return folder / "peer"


def command_of_drover(cluster, node):
    return [drover.BINARY, "kube", "node", "--roles", "device-plugin", "--simulate", "dgx-a100", "--state", STATE, "--node-name", node.name,
            "--kubeconfig", cluster.kubeconfig], None


def command_of_peer(peer):
    library = drover.BUILD / "lib/drover/sim"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library), "DROVER_SIM_PROFILE": str(PROFILE), "DROVER_SIM_FAULTS": FAULTS}
    return lambda cluster, node: ([peer, "--device-discovery-strategy=nvml", "--fail-on-init-error=false"], environment)


class Bench:
    """One plugin on a cluster of its own."""

    def __init__(self, cluster, command, patience):
        self.cluster, self.node, self.patience = cluster, cluster.nodes[0], patience
        self.node.path(FAULTS).parent.mkdir(parents=True)
        words, environment = command(cluster, self.node)
        self.plugin = self.node.run_inside(words, name="plugin", environment=environment)

    def allocatable(self):
        return int(self.cluster.get("node", self.node.name)["status"]["allocatable"].get(GPU, 0))

    def break_gpu(self, fault):
        file = self.node.path(FAULTS)
        file.with_suffix(".new").write_text(json.dumps({BROKEN: fault} if fault else {}))
        file.with_suffix(".new").rename(file)

    def seconds_until(self, count):
        """None when it does not come to that."""
        start = time.monotonic()
        while time.monotonic() - start < self.patience:
            if self.allocatable() == count:
                return time.monotonic() - start
            time.sleep(0.2)
        return None

    def restart(self):
        """With nothing broken any more."""
        self.break_gpu({})
        self.plugin.restart()
        time.sleep(SETTLE)
        assert self.seconds_until(GPUS) is not None, self.plugin.tail()

    def measure(self):
        result = {}
        assert self.seconds_until(GPUS) is not None, self.plugin.tail()
        self.break_gpu({"xid": [79], "recovery_action": "reset"})
        result["an XID 79: the GPU is out after"] = self.seconds_until(GPUS - 1)
        time.sleep(5)
        self.break_gpu({"xid": [79], "recovery_action": "none"})
        result["the card was reset: the GPU is back after"] = self.seconds_until(GPUS)
        self.restart()
        self.break_gpu({"lost": True})
        time.sleep(SETTLE)
        left = result["a GPU is lost: GPUs that can still be given"] = self.allocatable()
        self.break_gpu({})
        result["it answers again: all GPUs are back after"] = "it was never out" if left == GPUS else self.seconds_until(GPUS)
        self.restart()
        self.plugin.kill()
        self.break_gpu({"lost": True})
        time.sleep(1)
        self.plugin.start()
        time.sleep(SETTLE)
        result["the plugin starts while a GPU is lost: GPUs that can be given"] = self.allocatable()
        return result


def shown(value, patience):
    if value is None:
        return f"not in {patience} s"
    return f"{value:.1f} s" if isinstance(value, float) else str(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--patience", type=int, default=300, help="seconds that a recovery may take")
    parser.add_argument("--peer", type=pathlib.Path, help="NVIDIA's plugin, when it is built already")
    options = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        peer = options.peer or build_peer(pathlib.Path(folder))
        for name, command in ((f"NVIDIA's {VERSION}", command_of_peer(peer)), ("Drover's", command_of_drover)):
            cluster = kube.Cluster(kube.Settings(nodes=(kube.NodeSettings(),))).start()
            try:
                results[name] = Bench(cluster, command, options.patience).measure()
            finally:
                cluster.close()
    theirs, ours = results.values()
    print(f"| of {GPUS} GPUs one fails | " + " | ".join(results) + " |")
    print("| --- | --- | --- |")
    for what in theirs:
        print(f"| {what} | {shown(theirs[what], options.patience)} | {shown(ours[what], options.patience)} |")


if __name__ == "__main__":
    main()
