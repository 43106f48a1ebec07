"""The GPUs that were decided are those that a pod has, on real kubelets: by claims, by limits for which the scheduler makes claims, and by
limits of a device plugin. The GPUs are simulated.

DROVER_EXACT_PODS says how many pods come and go under Drover's scheduler, and a third of them under kube-scheduler; DROVER_TEST_SEED plays
one run again.
"""

import collections
import contextlib
import itertools
import json
import os
import random
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

import drover
import kube
from kube.api import ApiError
from kube.components import KUBERNETES_MINOR
from kube.machine import wait_for
from kube.settings import NodeSettings, Settings
from kube_node import GPU, gpu_pod, gpus_in, run_agent
from test_kube_chosen import CHOSEN, TOPOLOGY, chosen, was_corrected
from test_kube_claims import DRIVER, claim, claiming, request

PODS = int(os.environ.get("DROVER_EXACT_PODS", "36"))
CLAIMS, MADE_CLAIMS, LIMITS = "claims", "limits, over claims", "limits, over the device plugin"
DROVER, KUBERNETES = "drover", "default-scheduler"
EVERY = 8  # GPUs of a node
SHORT = 0.3  # of the pods end by themselves, and the next one is made at once


@unittest.skipIf(KUBERNETES_MINOR < (1, 36), "limits are given by claims from Kubernetes 1.36 on")
class ExactTest(kube.ClusterTest):
    """The first node has its GPUs for claims, the second one for limits."""

    settings = Settings(nodes=(NodeSettings(), NodeSettings()))
    profile = "dgx1-v100"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.claiming_node, cls.limits_node = cls.cluster.nodes
        cls.agents = {node.name: run_agent(node, f"{cls.__name__}-{role}", cls.profile, cls.cluster.kubeconfig, "--roles", role)
                      for node, role in ((cls.claiming_node, "dra"), (cls.limits_node, "device-plugin"))}
        cls.addClassCleanup(cls.end_agents)
        cls.cluster.apply([claim(f"take-{count}", [request(count)], kind="ResourceClaimTemplate") for count in range(1, 5)])
        cls.cluster.kubectl("apply", "-f", drover.ROOT / "packaging/kubernetes/device-class-extended-resource.yaml")
        wait_for(lambda: all(len(cls.topology(node).get("gpus", ())) == EVERY for node in cls.cluster.nodes), cls.tails)
        wait_for(lambda: len(cls.devices()) == EVERY and cls.allocatable() == EVERY, cls.tails)
        cls.scheduler = cls.cluster.run_inside([drover.BINARY, "kube", "scheduler", "--kubeconfig", cls.cluster.kubeconfig],
                                               name=f"scheduler-{cls.__name__}")
        cls.addClassCleanup(cls.scheduler.stop)

    @classmethod
    def end_agents(cls):
        for agent in cls.agents.values():
            agent.stop()
        for found in cls.cluster.list("resourceslices"):
            cls.cluster.delete("resourceslice", found["metadata"]["name"])

    @classmethod
    def tails(cls):
        return "\n".join(agent.tail() for agent in cls.agents.values())

    @classmethod
    def topology(cls, node):
        return json.loads(cls.cluster.get("node", node.name)["metadata"].get("annotations", {}).get(TOPOLOGY, "{}"))

    @classmethod
    def devices(cls):
        return [device for found in cls.cluster.list("resourceslices") for device in found["spec"].get("devices", ())]

    @classmethod
    def allocatable(cls):
        return int(cls.cluster.get("node", cls.limits_node.name)["status"]["allocatable"].get(GPU, 0))

    # Pods: GPUs are numbers of the node's

    def make(self, name, tier, count, scheduler=DROVER, lasts=10000, metadata=None, **spec):
        words = ("devices", ",", "sleep", lasts)
        made = claiming(kube.pod(name, *words), template=f"take-{count}") if tier == CLAIMS else gpu_pod(name, {GPU: count}, *words)
        node = self.limits_node if tier == LIMITS else self.claiming_node
        made["metadata"].update(metadata or {})
        made["spec"].update({"schedulerName": scheduler, "nodeSelector": {"kubernetes.io/hostname": node.name}, **spec})
        self.addCleanup(self.end, name)
        self.cluster.api.request("POST", "/api/v1/namespaces/default/pods", made)

    def claim_of(self, pod, tier):
        """Its name; None before it has one."""
        status = pod["status"]
        if tier == MADE_CLAIMS:
            return status.get("extendedResourceClaimStatus", {}).get("resourceClaimName")
        return next((entry["resourceClaimName"] for entry in status.get("resourceClaimStatuses", ())), None)

    def decided(self, pod, tier):
        """What stands in its claim or its annotation, once it is bound."""
        if tier == LIMITS:
            uuids = [gpu["uuid"] for gpu in self.topology(self.limits_node)["gpus"]]
            return {uuids.index(uuid) for uuid in chosen(pod)}
        results = self.cluster.get("resourceclaim", self.claim_of(pod, tier))["status"]["allocation"]["devices"]["results"]
        return {int(result["device"].removeprefix("gpu-")) for result in results}

    def wait_until_bound(self, name):
        return self.cluster.wait("pod", name, lambda pod: pod["spec"].get("nodeName"))

    def given(self, name):
        """What it sees; None when the kubelet has rejected it."""
        def told():
            if self.cluster.get("pod", name)["status"].get("phase") == "Failed":
                return "rejected"
            with contextlib.suppress(ApiError):  # until its container is there
                return self.cluster.api.request("GET", f"/api/v1/namespaces/default/pods/{name}/log")
            return ""

        text = wait_for(told, lambda: f"{name} to say what it has: {self.cluster.get('pod', name)}", pause=0.1)
        return None if text == "rejected" else gpus_in(text)

    def end(self, *names):
        """They are away, and their claims."""
        for name in names:
            with contextlib.suppress(ApiError):
                self.cluster.api.request("DELETE", f"/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds=1")
        wait_for(lambda: not any(self.cluster.get("pod", name) for name in names), f"{names} to end", pause=0.1)
        wait_for(lambda: not any(owner["name"] in names for found in self.cluster.list("resourceclaims")
                                 for owner in found["metadata"].get("ownerReferences", ())), f"the claims of {names} to go", pause=0.1)

    def churn(self, tiers, count, scheduler, randomness):
        """One pod after the other is decided, on one node, while those before start and end; returns what became of each."""
        node = self.limits_node if LIMITS in tiers else self.claiming_node
        links = self.topology(node)["links"]
        outcomes, running = [], {}

        def joined(gpus):
            return sum(links[max(pair)][min(pair)][0] for pair in itertools.combinations(gpus, 2))

        def end(names):
            for name in names:
                del running[name]
            for outcome in outcomes:
                if outcome["name"] in names:
                    outcome["given"].result()
            self.end(*names)
            time.sleep(0.1)  # the scheduler hears of claims and of pods by different ways

        with ThreadPoolExecutor(EVERY) as watchers:
            for number in range(count):
                size = randomness.randint(1, 4)
                while EVERY - sum(map(len, running.values())) < size:
                    end(randomness.sample(sorted(running), (len(running) + 1) // 2))
                tier, is_short = tiers[number % len(tiers)], randomness.random() < SHORT
                name = f"{scheduler}-{node.name}-{number}"
                self.make(name, tier, size, scheduler, lasts=1 if is_short else 10000)
                pod = self.wait_until_bound(name)
                knows = tier != LIMITS or scheduler == DROVER
                decided = self.decided(pod, tier) if knows else self.given(name)
                free = set(range(EVERY)) - set().union(*running.values())
                best = max(map(joined, itertools.combinations(free, size)))
                outcomes.append({"name": name, "tier": tier, "decided": decided, "lost": best - joined(decided or ()), "best": best,
                                 "given": watchers.submit(self.given, name)})
                if is_short:
                    self.cluster.wait_until_ended(name)
                else:
                    running[name] = decided or set()
        for outcome in outcomes:
            outcome["given"] = outcome["given"].result()
            outcome["corrected"] = was_corrected(self.cluster.get("pod", outcome["name"]) or {"metadata": {}})
        self.end(*(outcome["name"] for outcome in outcomes))
        return outcomes

    def play(self, scheduler, seed, pods):
        """The same script for each scheduler; the nodes are independent of each other."""
        with ThreadPoolExecutor(2) as nodes:
            parts = [nodes.submit(self.churn, tiers, count, scheduler, random.Random(f"{seed} {tiers}"))
                     for tiers, count in (((CLAIMS, MADE_CLAIMS), pods * 2 // 3), ((LIMITS,), pods // 3))]
            return [outcome for part in parts for outcome in part.result()]

    def test_a_pod_has_what_was_decided_and_nothing_better_was_free(self):
        seed = int(os.environ.get("DROVER_TEST_SEED", time.time()))
        print(f"seed {seed}\n| scheduler | asked by | pods | inside = decided | not the best free set | NVLinks lost | rejected |\n"
              "| --- | --- | --- | --- | --- | --- | --- |", flush=True)
        wrong = []
        for scheduler, pods in ((DROVER, PODS), (KUBERNETES, PODS // 3)):  # to compare with, the first third is enough
            outcomes = self.play(scheduler, seed, pods)
            for tier, of_tier in itertools.groupby(sorted(outcomes, key=lambda one: one["tier"]), lambda one: one["tier"]):
                of_tier = list(of_tier)
                count = collections.Counter()
                for one in of_tier:
                    count.update(same=one["given"] == one["decided"], worse=one["lost"] > 0, lost=one["lost"], best=one["best"],
                                 rejected=one["given"] is None)
                print(f"| {scheduler} | {tier} | {len(of_tier)} | {count['same']} | {count['worse']} | {count['lost']} of {count['best']} | "
                      f"{count['rejected']} |", flush=True)
            wrong += [one for one in outcomes if one["given"] != one["decided"]]
            if scheduler == DROVER:
                wrong += [one for one in outcomes if one["lost"] or one["corrected"]]
        self.assertEqual(wrong, [], self.tails())

    def test_what_a_pod_leaves_is_nobodys_before_the_driver_has_it_back(self):
        holders = {"holder-claims": CLAIMS, "holder-limits": MADE_CLAIMS}
        nexts = {"next-claims": CLAIMS, "next-limits": MADE_CLAIMS}
        for name, tier in holders.items():
            self.make(name, tier, 4)
        had = {name: self.given(name) for name in holders}
        self.assertEqual(set().union(*had.values()), set(range(EVERY)))
        for name, tier in nexts.items():
            self.make(name, tier, 4)
        claims = {name: self.claim_of(self.cluster.get("pod", name), tier) for name, tier in holders.items()}
        driver = self.agents[self.claiming_node.name]
        driver.kill()
        self.cluster.delete("pod", *holders, wait=False)
        wait_for(lambda: not any(self.runs(name) for name in holders), "the containers to end")
        end = time.monotonic() + 8
        while time.monotonic() < end:
            for name in nexts:
                self.assertNotIn("nodeName", self.cluster.get("pod", name)["spec"], f"{name} was bound too early")
            for name in claims.values():
                self.assertIn("allocation", self.cluster.get("resourceclaim", name)["status"], f"{name} is given back too early")
            time.sleep(0.2)
        begin = time.monotonic()
        driver.start()
        for name in nexts:
            self.wait_until_bound(name)
        took = time.monotonic() - begin
        given = {name: self.given(name) for name in nexts}
        for name, tier in nexts.items():
            self.assertEqual(given[name], self.decided(self.cluster.get("pod", name), tier), name)
        self.assertEqual(set().union(*given.values()), set(range(EVERY)))
        print(f"what was left was given again {took:.1f} s after the driver was back", flush=True)

    def runs(self, name):
        """Whether its container does, as the node's kernel knows it."""
        uid = self.cluster.get("pod", name)["metadata"]["uid"]
        listed = self.claiming_node.exec("ps", "-eo", "cgroup", check=False).stdout
        return uid in listed or uid.replace("-", "_") in listed

    def test_what_tenants_forge_has_no_effect(self):
        self.make("victim", LIMITS, 2)
        self.wait_until_bound("victim")
        victim = self.given("victim")
        uuids = [self.topology(self.limits_node)["gpus"][number]["uuid"] for number in sorted(victim)]
        # Annotations, of a pod that the scheduler decides on and of one that goes past it.
        forged = {"annotations": {CHOSEN: ",".join(uuids)}}
        self.make("forged", LIMITS, 2, metadata=forged)
        self.make("past", LIMITS, 2, metadata=forged, nodeName=self.limits_node.name)
        given = {name: self.given(name) for name in ("forged", "past")}
        self.assertEqual(len(victim.union(*given.values())), 6, given)
        for name in ("victim", "forged", "past"):
            self.cluster.wait("pod", name, lambda pod, name=name: self.decided(pod, LIMITS) == given.get(name, victim), timeout=30)
        self.assertFalse(was_corrected(self.cluster.get("pod", "victim")))
        self.make("after", LIMITS, 2)
        self.wait_until_bound("after")
        self.assertEqual(victim.union(self.given("after"), *given.values()), set(range(EVERY)))

    def test_claims_that_say_that_they_are_anothers_hold_nobody_up(self):
        """Somebody makes them in a namespace of his own, as fast as Kubernetes tidies them up."""
        self.cluster.kubectl("create", "namespace", "foreign")
        self.addCleanup(self.cluster.delete, "namespace", "foreign")
        self.make("pursued", MADE_CLAIMS, 2, schedulingGates=[{"name": "example.com/wait"}])
        uid = self.cluster.get("pod", "pursued")["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "pursued", "uid": uid, "controller": True}
        path, forged, forging = self.cluster.api.path("resourceclaims", "foreign"), [], True

        def forge():
            while forging:
                made = claim(f"forged-{len(forged)}", [request()])
                made["metadata"].update(ownerReferences=[owner], annotations={"resource.kubernetes.io/extended-resource-claim": "true"})
                forged.append(self.cluster.api.request("POST", path, made))

        with ThreadPoolExecutor(1) as tenant:
            done = tenant.submit(forge)
            try:
                wait_for(lambda: len(forged) > 20 or done.done(), "claims to be forged")
                self.cluster.kubectl("patch", "pod", "pursued", "--type=merge", '--patch={"spec":{"schedulingGates":[]}}')
                self.cluster.wait("pod", "pursued", lambda pod: pod["spec"].get("nodeName"), timeout=20)
            finally:
                forging = False
            done.result()
        print(f"{len(forged)} claims were forged meanwhile", flush=True)
        self.assertEqual(self.given("pursued"), self.decided(self.cluster.get("pod", "pursued"), MADE_CLAIMS))


if __name__ == "__main__":
    unittest.main()
