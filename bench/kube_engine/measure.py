#!/usr/bin/env python3
"""What a control plane on Kubernetes does with many tasks: apps of Marathon's API on Nodes that have no kubelet.

    bench/kube_engine/measure.py [--nodes 500] [--tasks 2000] [--rate 50] [--instances 10] [--upgraded 100]

How long it takes from the request that asks for a task until its pod is bound, when so many come each second; how many requests that write the
API server had for each; and how few instances run while an app is replaced, looked at with every event of a pod. Pods begin and end as
pretended_nodes.py says, whose own writes are not counted. Needs root, a release build, and what tests/kube needs (CONTRIBUTING.md).
"""

import argparse
import contextlib
import pathlib
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "kube_cluster"))
from measured import Drover, MeasuredCluster, drover  # noqa: E402
from pretended_nodes import PretendedNodes  # noqa: E402

PATIENCE = 300  # seconds
MINIMUM = 0.8  # of the instances of an app that is replaced


class ControlPlane(drover.Daemon):
    def __init__(self, cluster):
        self.cluster = cluster
        super().__init__(None, ["--engine", "kubernetes", "--kubeconfig", cluster.drover_config, "--default-image", "none.invalid/none",
                                "--limit", "waiting-tasks=100000"])

    def command(self):
        return [str(word) for word in self.cluster.reaching(*super().command())]


class Tasks:
    """What was seen of the pods of tasks, by app."""

    def __init__(self):
        self.bound, self.running, self.least, self._mutex = {}, {}, {}, threading.Lock()

    def see(self, kind, pod, now):
        labels = pod["metadata"].get("labels", {})
        app = pod["metadata"].get("annotations", {}).get("drover.dev/name", "")
        if "drover.dev/task" not in labels:
            return
        with self._mutex:
            if pod["spec"].get("nodeName"):
                self.bound.setdefault(app, {}).setdefault(labels["drover.dev/task"], now)
            runs = (kind != "DELETED" and pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"])
            running = self.running.setdefault(app, set())
            (running.add if runs else running.discard)(pod["metadata"]["uid"])
            if app in self.least:
                self.least[app] = min(self.least[app], len(running))

    def count(self, app):
        with self._mutex:
            return len(self.running.get(app, ()))


def app(name, instances, command="true"):
    return {"id": f"/{name}", "cmd": command, "instances": instances, "cpus": 0.1, "mem": 32, "gpus": 1,
            "upgradeStrategy": {"minimumHealthCapacity": MINIMUM, "maximumOverCapacity": 0.1}}


def say(words):
    print(words, file=sys.stderr, flush=True)


def quantile(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def submit(daemon, tasks, options):
    """An open loop: who is late catches up. Returns seconds from due to bound."""
    asked, begin = {}, time.monotonic()
    for number in range(options.tasks // options.instances):
        due = begin + number * options.instances / options.rate
        time.sleep(max(0, due - time.monotonic()))
        name = f"app-{number}"
        asked[name] = due
        daemon.api("POST", "/v2/apps", app(name, options.instances))
    drover.wait_for(lambda: sum(map(len, list(tasks.bound.values()))) >= options.tasks,
                    lambda: f"all to be bound: {daemon.api('GET', '/v2/queue')} {daemon.read_log()[-2000:]}", PATIENCE, pause=0.2)
    names = {name.strip("/").split("/")[-1].split(".")[0]: name for name in tasks.bound}
    return [when - asked[short] for short, name in names.items() for when in tasks.bound[name].values()]


def wait_until_gone(cluster, daemon, nodes):
    def left():
        pods = cluster.api.list("pods")
        return f"no pod to be left of {len(pods)}: {pods[:1]} {nodes.trouble} {daemon.read_log()[-2000:]}"

    drover.wait_for(lambda: cluster.count("/api/v1/pods") == 0, left, PATIENCE, pause=0.5)


def replace(daemon, tasks, count):
    """How few of the instances ran at any moment, and how long it took."""
    daemon.api("POST", "/v2/apps", app("replaced", count))
    name = drover.wait_for(lambda: next((name for name in tasks.running if "replaced" in name and tasks.count(name) == count), None),
                           "the app to run", 300, pause=0.2)
    before = set(tasks.bound[name])
    tasks.least[name], begin = count, time.monotonic()
    daemon.api("PUT", "/v2/apps/replaced", app("replaced", count, "another"))
    drover.wait_for(lambda: not daemon.api("GET", "/v2/deployments"), "the deployment to end", 600, pause=0.2)
    assert len(set(tasks.bound[name]) - before) >= count
    return tasks.least[name], time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("nodes", 500), ("tasks", 2000), ("rate", 50), ("instances", 10), ("upgraded", 100)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    cluster, tasks = MeasuredCluster(claims=True), Tasks()  # with what makes accounts in namespaces
    with contextlib.ExitStack() as stack:
        stack.callback(cluster.close)
        cluster.start()
        cluster.load("nodes", count=options.nodes)
        daemon = ControlPlane(cluster)
        stack.callback(daemon.close)
        with Drover(cluster).running(), PretendedNodes(cluster.api.socket, tasks.see) as nodes:
            daemon.start()
            before, pretended = cluster.writes(), nodes.writes
            say(f"{options.tasks} tasks come, {options.rate} a second")
            taken = submit(daemon, tasks, options)
            say(f"all are bound: half of them within {statistics.median(taken):.2f} s, the last one after {max(taken):.2f} s; they are ended")
            for number in range(options.tasks // options.instances):
                daemon.api("DELETE", f"/v2/apps/app-{number}")
            wait_until_gone(cluster, daemon, nodes)
            writes = cluster.writes() - before - (nodes.writes - pretended)
            say(f"all have ended; {options.upgraded} instances of an app are replaced")
            breaks = nodes.breaks
            least, seconds = replace(daemon, tasks, options.upgraded)
            breaks = nodes.breaks - breaks
            daemon.api("DELETE", "/v2/apps/replaced")
            wait_until_gone(cluster, daemon, nodes)
    print(f"\n| {options.tasks} tasks, {options.rate} a second, on {options.nodes} nodes: from due to bound | median, s | p90 | p99 | longest | "
          "requests that write, a task |\n| --- | --- | --- | --- | --- | --- |")
    print(f"| apps of {options.instances} instances | {statistics.median(taken):.2f} | {quantile(taken, 0.9):.2f} | {quantile(taken, 0.99):.2f} | "
          f"{max(taken):.2f} | {writes / options.tasks:.1f} |")
    print(f"\n{options.upgraded} instances replaced in {seconds:.0f} s: never fewer than {least} ran (at least {MINIMUM * options.upgraded:.0f})"
          + (f"; {breaks} times the watch broke off, and something may have been missed" if breaks else ""))
    return 0 if least >= MINIMUM * options.upgraded else 1


if __name__ == "__main__":
    sys.exit(main())
