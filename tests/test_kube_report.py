"""What `drover kube node` tells the cluster of its GPUs: labels, conditions, Events; the GPUs are simulated."""

import unittest

import kube
from kube.machine import wait_for
from kube.settings import SYSTEM_CONTAINERD, NodeSettings, Settings
from kube_node import GPU, SEES, NodeTest, gpu_pod, gpus_in
from test_kube_claims import ClaimsTest, claim, claiming, request

# All that is needed for labels, conditions and Events.
RIGHTS = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]},
          {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
          {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]}]


def wait_for_condition(test, kind, status, words=""):
    def there():
        conditions = test.cluster.get("node", test.node.name)["status"]["conditions"]
        return any((found["type"], found["status"]) == (kind, status) and words in found["message"] for found in conditions)
    wait_for(there, lambda: f"{kind} to be {status}, '{words}'; {test.agent.tail()}")


class ReportTest(NodeTest):
    """With these rights only, which is why it is no DRA driver."""

    @classmethod
    def kubeconfig(cls):
        return cls.cluster.make_account("reporter", RIGHTS)

    @classmethod
    def flags(cls):
        return ("--roles", "device-plugin")

    def events_of(self, pod):
        """As `kubectl describe` looks for them."""
        uid = self.cluster.get("pod", pod)["metadata"]["uid"]
        return [event for event in self.cluster.events(pod) if event["involvedObject"].get("uid") == uid]

    def wait_for_event(self, pod, reason):
        def there():
            return next((event for event in self.events_of(pod) if event["reason"] == reason), None)
        return wait_for(there, lambda: f"{reason} among {self.events_of(pod)}; {self.agent.tail()}")

    def test_labels_are_those_of_feature_discovery(self):
        def labels():
            return self.cluster.get("node", self.node.name)["metadata"]["labels"]
        wait_for(lambda: "nvidia.com/gpu.count" in labels(), self.agent.tail)
        self.assertEqual({name: labels().get(f"nvidia.com/{name}") for name in ("gpu.count", "gpu.family", "gpu.compute.major")},
                         {"gpu.count": "8", "gpu.family": "ampere", "gpu.compute.major": "8"})
        self.assertRegex(labels()["nvidia.com/gpu.product"], "A100")
        pod = gpu_pod("chooses", {GPU: 1})
        pod["spec"]["nodeSelector"] = {"nvidia.com/gpu.family": "ampere"}
        self.run_pod(pod)

    def test_a_pod_is_told_that_its_gpu_fails_and_that_it_is_back(self):
        self.addCleanup(self.set_faults, {})
        wait_for_condition(self, "DroverGpusReady", "True")
        mine = min(gpus_in(self.run_gpu_pod("hit", {GPU: 1})[0]))
        self.run_gpu_pod("spared", {GPU: 1})
        self.set_faults({str(mine): {"lost": True}})
        told = self.wait_for_event("hit", "GpuUnhealthy")
        self.assertEqual(told["type"], "Warning")
        self.assertIn(f"GPU {mine} (GPU-", told["message"])
        wait_for_condition(self, "DroverGpusReady", "False", f"1 of 8 GPUs is given to nobody; GPU {mine} (GPU-")
        self.set_faults({})
        self.wait_for_event("hit", "GpuHealthy")
        wait_for_condition(self, "DroverGpusReady", "True")
        self.assertEqual([event["reason"] for event in self.events_of("spared") if event["reason"].startswith("Gpu")], [])
        self.assertEqual({event["reason"] for event in self.cluster.events(self.node.name) if event["reason"].startswith("Gpu")},
                         {"GpuUnhealthy", "GpuHealthy"})

    def test_an_error_of_the_program_is_told_and_takes_nothing_out(self):
        self.addCleanup(self.set_faults, {})
        self.wait_for_allocatable(8)
        mine = min(gpus_in(self.run_gpu_pod("wild", {GPU: 1})[0]))
        self.set_faults({str(mine): {"xid": [31]}})
        self.assertIn("XID 31", self.wait_for_event("wild", "GpuError")["message"])
        self.assertEqual(self.allocatable(), 8)


class ClaimingPodTest(ClaimsTest):
    def test_a_pod_with_a_claim_is_told_too(self):
        self.addCleanup(self.set_faults, {})
        wait_for_condition(self, "DroverClaimsServed", "True")
        self.make(claim("one", [request()]))
        self.run_pod(claiming(kube.pod("claimant", *SEES), claim_name="one"))
        mine = min(gpus_in(self.cluster.logs("claimant")))
        self.set_faults({str(mine): {"lost": True}})
        wait_for(lambda: [event for event in self.cluster.events("claimant") if event["reason"] == "GpuUnhealthy"], self.agent.tail)
        wait_for(lambda: "gpu.nvidia.com/gpu-lost" in self.taints_of(f"gpu-{mine}"), lambda: f"a taint: {self.devices()}")


class WithoutCdiTest(NodeTest):
    settings = Settings(nodes=(NodeSettings(containerd=SYSTEM_CONTAINERD),))

    def test_the_node_says_that_its_runtime_does_no_cdi(self):
        wait_for_condition(self, "DroverCdiSupported", "False", "containerd does CDI from 1.7 on")
        wait_for_condition(self, "DroverClaimsServed", "False", "CDI")


if __name__ == "__main__":
    unittest.main()
