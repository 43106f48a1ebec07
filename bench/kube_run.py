#!/usr/bin/env python3
"""How long it takes on a Kubernetes cluster from asking for a task to its first instruction, and to its exit status: `drover run` beside
`kubectl run`, a bare Job, and a pod that is one request to the API server.

    bench/kube_run.py [--rounds 20] [--seed 1] [--gpus 1]

Two real kubelets with simulated GPUs, each way with the same image, which is there already. The ways take turns in a shuffled order, so that
what else the machine does hits all of them alike: compare the ratios. Needs root, a release build, and what tests/kube needs (CONTRIBUTING.md).
"""

import argparse
import itertools
import json
import pathlib
import random
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.dont_write_bytecode = True
import kube  # noqa: E402
from cluster_daemon import ClusterDaemon  # noqa: E402
from kube import case  # noqa: E402
from kube_node import GPU  # noqa: E402

COMMAND = ("cat", "/proc/uptime")  # the clock of this machine, in hundredths of a second
LIMIT = 60  # seconds
names = (f"way-{number}" for number in itertools.count())


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def first_instruction(output):
    return float(output.split()[0])


class Way:
    def __init__(self, daemon, gpus):
        self.daemon, self.cluster, self.gpus = daemon, daemon.cluster, gpus
        self.resources = {"limits": {"cpu": "100m", "memory": "64Mi", **({GPU: str(gpus)} if gpus else {})}}

    def pod(self, name):
        pod = kube.pod(name, resources=self.resources, image=kube.SHELL, command=list(COMMAND))
        pod["metadata"]["namespace"] = "default"
        return pod

    def kubectl(self, *words, **options):
        return self.cluster.kubectl(*words, **options).stdout

    def wait_for_end(self, name):
        """As everybody does it who wants to know: with a watch."""
        self.kubectl("wait", f"pod/{name}", "--for=jsonpath={.status.phase}=Succeeded", f"--timeout={LIMIT}s")

    def measure(self):
        """Seconds to the first instruction, and to the known exit status."""
        name, begin = next(names), now()
        output = self.run(name)
        end = now()
        return first_instruction(output) - begin, end - begin


class OneRequest(Way):
    name = "a pod, by one request"

    def run(self, name):
        self.cluster.api.request("POST", "/api/v1/namespaces/default/pods", self.pod(name))
        self.wait_for_end(name)
        return self.kubectl("logs", name)


class KubectlRun(Way):
    name = "`kubectl run --attach`"

    def run(self, name):
        return self.kubectl("run", name, f"--image={kube.SHELL}", "--restart=Never", "--attach", "--quiet",
                            f"--overrides={json.dumps({'apiVersion': 'v1', 'spec': self.pod(name)['spec']})}")


class Job(Way):
    name = "a Job"

    def run(self, name):
        self.kubectl("create", "--filename=-", input=json.dumps({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"},
            "spec": {"backoffLimit": 0, "template": {"spec": self.pod(name)["spec"]}}}))
        self.kubectl("wait", f"job/{name}", "--for=condition=Complete", f"--timeout={LIMIT}s")
        return self.kubectl("logs", f"job/{name}")


class DroverRun(Way):
    name = "`drover run`"

    def run(self, name):
        ran = self.daemon.cli("run", "--name", name, "--gpus", str(self.gpus), "--cpus", "0.1", "--mem", "64MiB", "--image", kube.SHELL, "--", *COMMAND)
        assert ran.status == 0, ran
        return ran.out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gpus", type=int, default=1)
    options = parser.parse_args()
    shuffle = random.Random(options.seed)
    daemon = ClusterDaemon()
    try:
        daemon.start()
        ways = [kind(daemon, options.gpus) for kind in (OneRequest, KubectlRun, Job, DroverRun)]
        times = {way: [] for way in ways}
        for number in range(-1, options.rounds):  # the first is for the caches
            for way in shuffle.sample(ways, len(ways)):
                taken = way.measure()
                if number >= 0:
                    times[way].append(taken)
            daemon.cluster.kubectl("delete", "job,pod", "--all", "--namespace=default", "--wait=true")
    finally:
        daemon.close()
        case.close()
    floor = [statistics.median(values) for values in zip(*times[ways[0]])]
    print(f"\nMedian of {options.rounds} rounds, {options.gpus} GPUs; quartiles\n")
    print("| | first instruction, s | ÷ one request | exit status known, s | ÷ one request |\n| --- | --- | --- | --- | --- |")
    for way in ways:
        columns = [way.name]
        for values, least in zip(zip(*times[way]), floor):
            low, middle, high = statistics.quantiles(values, n=4)
            columns += [f"{middle:.2f} ({low:.2f}–{high:.2f})", f"{middle / least:.2f}"]
        print(f"| {' | '.join(columns)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
