"""Whom `drover kube scheduler` ends, on a real API server: whom a PodDisruptionBudget protects, and whose devices have a taint."""

import json
import unittest

import drover
import test_kube_scheduling as scheduling
from kube.components import KUBERNETES_MINOR


def target(pod):
    """Why it is to end: its condition DisruptionTarget."""
    return [condition for condition in pod["status"].get("conditions", ()) if condition["type"] == "DisruptionTarget"]


class BudgetTest(scheduling.SchedulerTest):
    def setUp(self):
        self.cluster.apply({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000})
        self.addCleanup(self.cluster.delete, "priorityclass", "urgent")

    def make_running(self, name, **labels):
        self.make_gpu_pod(name, 1, terminationGracePeriodSeconds=0)
        self.cluster.kubectl("label", "pod", name, *[f"{key}={value}" for key, value in labels.items()])
        self.bound(name)
        self.cluster.kubectl("patch", "pod", name, "--subresource=status", "--type=strategic", "--patch", json.dumps(
            {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}))

    def make_budget(self, allowed, **spec):
        """Waits until Kubernetes says that so many may be disrupted."""
        self.cluster.apply({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
                            "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}})
        self.addCleanup(self.cluster.delete, "poddisruptionbudget", "web")
        self.cluster.wait("poddisruptionbudget", "web", lambda budget: budget.get("status", {}).get("expectedPods") == 2
                          and budget["status"]["disruptionsAllowed"] == allowed)

    def make_urgent(self, name):
        self.make_gpu_pod(name, 1, priorityClassName="urgent")
        self.bound(name)

    def left(self, *names):
        return [name for name in names if self.cluster.get("pod", name)]

    def test_others_go_first_and_budgets_give_way_where_there_are_none(self):
        self.make_node("only", 3)
        self.make_running("other", app="db")  # it is the oldest: without the budget it would go last
        self.make_running("web-1", app="web")
        self.make_running("web-2", app="web")
        self.make_budget(0, minAvailable=2)
        self.make_urgent("first")
        self.assertEqual(self.left("other", "web-1", "web-2"), ["web-1", "web-2"])
        drover.wait_for(lambda: [event["message"] for event in self.cluster.events("other") if event["reason"] == "Preempted"] ==
                        ["The pod is ended by the scheduler to make room for the pod 'first', which has a higher priority"],
                        lambda: f"to be told for whom: {self.cluster.events('other')}")
        self.make_urgent("second")
        self.assertEqual(len(self.left("web-1", "web-2")), 1)

    def test_what_a_budget_allows_is_taken_and_no_more(self):
        self.make_node("only", 3)
        self.make_running("other", app="db")
        self.make_running("web-1", app="web")
        self.make_running("web-2", app="web")
        self.make_budget(1, minAvailable=1)
        self.make_urgent("first")
        self.make_urgent("second")
        self.assertEqual(len(self.left("web-1", "web-2")), 1)
        self.assertEqual(self.left("other"), [])


@unittest.skipIf(KUBERNETES_MINOR < (1, 36), "limits are given by claims from Kubernetes 1.36 on")
class DeviceTaintTest(scheduling.DeviceTest):
    """By a claim and by limits that a claim gives: who ends the pod is another one each time."""

    def test_who_has_a_device_that_gets_a_taint_is_ended(self):
        self.cluster.kubectl("patch", "deviceclass", "gpu.example.com", "--type=merge",
                             f'--patch={json.dumps({"spec": {"extendedResourceName": scheduling.GPU}})}')
        self.make_node("dra", 0)
        self.publish("dra", 3)
        self.make_gpu_pod("by-limits", 1, terminationGracePeriodSeconds=300)
        self.bound("by-limits")
        self.make_claiming_pod("by-claim", 1)
        self.bound("by-claim")
        self.make_gpu_pod("spared", 1)
        self.bound("spared")
        had = {claim["status"]["reservedFor"][0]["name"]: claim["status"]["allocation"]["devices"]["results"][0]["device"]
               for claim in self.cluster.list("resourceclaim")}
        slices = self.cluster.get("resourceslice", "dra-gpus")
        for device in slices["spec"]["devices"]:
            if device["name"] != had["spared"]:
                device["taints"] = [{"key": "sick", "effect": "NoExecute"}]
        self.cluster.apply(slices)
        said = {}
        for name in ("by-limits", "by-claim"):
            drover.wait_for(lambda name=name: (pod := self.cluster.get("pod", name)) is None or
                            target(pod) and "deletionTimestamp" in pod["metadata"], f"{name} to be ended")
            said[name] = self.cluster.get("pod", name)
        self.assertEqual(target(said["by-limits"])[0]["reason"], "DeletionByDeviceTaintManager")
        # From 1.37 on Kubernetes ends pods with such claims too: whoever comes first says it.
        others = KUBERNETES_MINOR >= (1, 37) and "due to NoExecute taint" in target(said["by-limits"])[0]["message"]
        self.assertTrue(others or "the taint 'sick'" in target(said["by-limits"])[0]["message"], said["by-limits"]["status"])
        self.assertIn("deletionTimestamp", said["by-limits"]["metadata"])
        if not others:
            drover.wait_for(lambda: "Evicted" in [event["reason"] for event in self.cluster.events("by-limits")], "the Event")
        self.assertNotIn("deletionTimestamp", self.cluster.get("pod", "spared")["metadata"])


if __name__ == "__main__":
    unittest.main()
