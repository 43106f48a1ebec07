"""Beside kube-scheduler, which fills the processors of the same nodes: a real kubelet rejects what both have put there at the same moment.

Who uses which GPU is looked at from inside, by locks. DROVER_BESIDE_PODS says how many pods of ours end, and DROVER_BESIDE_SECONDS
how long those of kube-scheduler live: whenever one ends, both go for its room.
"""

import os
import time
import unittest

import drover
import kube
from kube.machine import wait_for
from kube.settings import NodeSettings, Settings
from kube_node import GPU, gpu_pod, run_agent
from test_kube_chaos import SHARED, WORK, reason_of

PODS = int(os.environ.get("DROVER_BESIDE_PODS", "30"))
SECONDS = int(os.environ.get("DROVER_BESIDE_SECONDS", "5"))
CPU = "200m"
FILLERS = 24  # that are wanted at any time: more than there is room for
INDEX = "batch.kubernetes.io/job-completion-index"


def job(name, pod, completions, parallelism):
    """What the kubelet rejects is made again, under the same index."""
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {
        "completions": completions, "parallelism": parallelism, "backoffLimit": 1000, "completionMode": "Indexed",
        "template": {"metadata": {"labels": {"of": name}}, "spec": pod["spec"]}}}


class BesideTest(kube.ClusterTest):
    settings = Settings(nodes=(NodeSettings(), NodeSettings()))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.agents = [run_agent(node, f"beside-{node.name}", "dgx1-v100", cls.cluster.kubeconfig, "--roles", "device-plugin")
                      for node in cls.cluster.nodes]
        for agent in cls.agents:
            cls.addClassCleanup(agent.stop)
        wait_for(lambda: all(cls.cluster.get("node", node.name)["status"]["allocatable"].get(GPU) == "8" for node in cls.cluster.nodes),
                 lambda: "\n".join(agent.tail() for agent in cls.agents))
        scheduler = cls.cluster.run_inside([drover.BINARY, "kube", "scheduler", "--kubeconfig", cls.cluster.kubeconfig], name="drover-scheduler")
        cls.addClassCleanup(scheduler.stop)
        for node in cls.cluster.nodes:
            node.path(SHARED).mkdir()

    def ours(self):
        variables = [{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                     {"name": "COUNT", "value": "1"}, {"name": "DURATION", "value": "1"}]
        pod = gpu_pod("ours", {GPU: 1, "cpu": CPU}, image=kube.SHELL, command=["sh", "-c", WORK], env=variables,
                      volumeMounts=[{"name": "shared", "mountPath": SHARED}])
        pod["spec"].update(schedulerName="drover", volumes=[{"name": "shared", "hostPath": {"path": SHARED}}])
        return pod

    def start(self, made):
        name = made["metadata"]["name"]
        self.addCleanup(wait_for, lambda: not self.cluster.list("pods", labelSelector=f"of={name}"), f"the pods of {name} to go")
        self.addCleanup(self.cluster.delete, "job", name, options=("--cascade=foreground",))
        self.cluster.apply(made)

    def held_nodes(self):
        """Their names: other schedulers keep off them."""
        return {node["metadata"]["name"] for node in self.cluster.list("nodes")
                if any(taint["key"] == "drover.dev/held" for taint in node["spec"].get("taints", []))}

    def follow(self):
        """Until all of ours have ended; returns by uid what was seen of each: index, and when it was first seen, bound, and failed."""
        seen = {}

        def note():
            now = time.monotonic()
            self.held |= self.held_nodes()
            for pod in self.cluster.list("pods", labelSelector="of=ours"):
                one = seen.setdefault(pod["metadata"]["uid"], {"index": pod["metadata"]["labels"][INDEX], "made": now})
                if pod["spec"].get("nodeName"):
                    one.setdefault("bound", now)
                if pod["status"].get("phase") == "Failed":
                    one.setdefault("failed", now)
                    one["why"] = reason_of(pod["status"])
            return self.cluster.get("job", "ours")["status"].get("succeeded", 0) == PODS

        wait_for(note, lambda: f"{PODS} pods to succeed: {self.cluster.get('job', 'ours')['status']}", timeout=60 + 10 * PODS, pause=0.1)
        return seen

    def test_few_pods_are_rejected_each_is_tried_again_and_no_gpu_has_two_users(self):
        filler = kube.pod("filler", "sleep", SECONDS, resources={"requests": {"cpu": CPU}})
        self.start(job("filler", filler, 100000, FILLERS))
        wait_for(lambda: [pod for pod in self.cluster.list("pods", labelSelector="of=filler") if pod["status"]["phase"] == "Succeeded"],
                 "the processors to be filled")
        self.held = set()
        self.start(job("ours", self.ours(), PODS, 6))
        seen = self.follow()
        wait_for(lambda: not self.held_nodes(), "nodes to be everybody's again", timeout=15)
        rejected = [one for one in seen.values() if "failed" in one]
        again = []
        for one in rejected:
            after = min((other for other in seen.values() if other["index"] == one["index"] and other["made"] >= one["failed"]),
                        key=lambda other: other["made"])
            again.append((after["made"] - one["failed"], after["bound"] - after["made"]))
        lost = [pod for pod in self.cluster.list("pods", labelSelector="of=filler") if pod["status"].get("phase") == "Failed"]
        print(f"{len(seen)} pods of ours for {PODS} that were to end: {len(rejected)} rejected ({sorted(one['why'] for one in rejected)}); "
              f"made again after, and then bound within: {[f'{made:.1f} s, {bound:.1f} s' for made, bound in again]}; "
              f"kube-scheduler lost {len(lost)}", flush=True)
        self.assertTrue(self.held)
        self.assertEqual({one["why"] for one in rejected} - {"OutOfcpu"}, set())
        violations = [line for node in self.cluster.nodes for line in self.lines(node, "violations")]
        self.assertEqual(violations, [])
        self.assertEqual(sum(len(self.lines(node, "log")) for node in self.cluster.nodes), 2 * PODS)
        self.assertLessEqual(len(rejected), max(2, len(seen) // 100))  # how many depends on how long the API server takes to tell of pods
        self.assertLess(max((bound for _, bound in again), default=0), 5)

    def lines(self, node, name):
        path = node.path(f"{SHARED}/{name}")
        return path.read_text().splitlines() if path.exists() else []


if __name__ == "__main__":
    unittest.main()
