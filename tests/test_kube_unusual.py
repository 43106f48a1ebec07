"""What seldom happens to `drover kube node`: checkpoints are lost, a second one is started, pods want everything at once."""

import re
import unittest

import drover
import kube
from kube.machine import wait_for
from kube_node import GPU, SEES, gpu_pod, gpus_in
from test_kube_claims import ClaimsTest, claim, claiming, request

CHECKPOINT = "/var/lib/kubelet/plugins/gpu.nvidia.com/checkpoint.json"
DEVICE_CHECKPOINT = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
MONITORING = "monitoring"  # a namespace


class UnusualTest(ClaimsTest):
    def tearDown(self):
        """Cleanups come after this, and pods end before their claims."""
        self.doCleanups()
        wait_for(lambda: self.specifications() == [], lambda: f"no claim to stay prepared: {self.specifications()}")
        self.wait_for_allocatable(8)
        super().tearDown()

    def test_a_pod_has_gpus_by_a_limit_and_by_a_claim(self):
        self.make(claim("two", [request(2)]))
        pod = gpu_pod("both", {GPU: 1})
        pod["spec"]["resourceClaims"] = [{"name": "gpus", "resourceClaimName": "two"}]
        pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpus"}]
        self.run_pod(pod)
        self.assertEqual(len(gpus_in(self.cluster.logs("both"))), 3)

    def test_nothing_is_given_twice_by_a_kubelet_that_has_lost_its_checkpoint(self):
        before = gpus_in(self.run_gpu_pod("before", {GPU: 2})[0])
        self.wait_until_told()
        self.node.kubelet.kill()
        self.node.path(DEVICE_CHECKPOINT).unlink()
        self.node.kubelet.start()
        wait_for(lambda: "the kubelet has lost its record of the devices of 'default/before'" in self.agent.read_log(), self.agent.tail)
        after = gpus_in(self.run_gpu_pod_at_last("after", {GPU: 6})[0])
        self.assertEqual(len(before | after), 8)

    def wait_until_told(self):
        """The plugin has heard of the pods' devices: only then does it know more than a kubelet that forgets them. It asks again when
        it has taken in the last answer, so that the second time from now on comes after an answer of now.
        """
        before = self.times_asked()
        wait_for(lambda: self.times_asked() >= before + 2, lambda: f"the plugin to ask twice; {self.agent.tail()}")

    def times_asked(self):
        """How often the kubelet was asked for its pods' devices."""
        metrics = self.cluster.api.request("GET", f"/api/v1/nodes/{self.node.name}/proxy/metrics", accept="text/plain")
        return int(re.search(r'^kubelet_pod_resources_endpoint_requests_list{server_api_version="v1"} (\d+)$', metrics, re.MULTILINE)[1])

    def test_claims_outlive_a_checkpoint_that_nobody_can_read(self):
        for number, damage in enumerate((lambda path: path.write_text("{"), lambda path: (path.unlink(), path.mkdir()))):
            with self.subTest(number):
                self.make(claim(f"three{number}", [request(3)]))
                claimed = self.run_claiming(f"claimed{number}", claim_name=f"three{number}")
                self.agent.kill()
                damage(self.node.path(CHECKPOINT))
                self.agent.start()
                wait_for(lambda: self.agent.read_log().count("it is set aside") == number + 1, self.agent.tail)
                self.wait_for_allocatable(5)
                limited = gpus_in(self.run_gpu_pod(f"limited{number}", {GPU: 5})[0])
                self.assertEqual(len(claimed | limited), 8)
                self.doCleanups()
                wait_for(lambda: self.specifications() == [], lambda: f"no claim to stay prepared: {self.specifications()}")

    def test_a_second_one_with_another_folder_waits_for_the_first(self):
        other = f"{self.state}-second"
        self.node.path(other).mkdir()
        before = self.registrations()
        second = self.node.run_inside([drover.BINARY, "kube", "node", "--simulate", self.profile, "--state", other, "--node-name",
                                       self.node.name, "--kubeconfig", self.cluster.kubeconfig], name="second")
        self.addCleanup(second.stop)
        second.wait_until(lambda: "waiting for it to end" in second.read_log(), "it to wait")
        self.run_gpu_pod("served", {GPU: 1})
        self.assertEqual((self.registrations(), second.read_log().count("registered")), (before, 0))

    def test_who_looks_after_gpus_has_those_too_that_fail(self):
        self.addCleanup(self.set_faults, {})
        self.cluster.kubectl("create", "namespace", MONITORING)
        self.addCleanup(self.cluster.delete, "namespace", MONITORING)
        self.cluster.kubectl("label", "namespace", MONITORING, "resource.kubernetes.io/admin-access=true")
        self.set_faults({"5": {"lost": True}})
        wait_for(lambda: "gpu.nvidia.com/gpu-lost" in self.taints_of("gpu-5"), lambda: f"a taint; {self.agent.tail()}")
        self.run_gpu_pod("limited", {GPU: 2})
        self.wait_until_told()
        looks = {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All", "adminAccess": True,
                 "tolerations": [{"operator": "Exists"}]}
        made = [claim("all", [{"name": "gpus", "exactly": looks}]), claiming(kube.pod("monitor", *SEES), claim_name="all")]
        for thing in made:
            thing["metadata"]["namespace"] = MONITORING
        self.cluster.apply(made)
        self.cluster.wait_until_running("monitor", namespace=MONITORING)
        self.assertEqual(len(gpus_in(self.cluster.logs("monitor", namespace=MONITORING))), 8)
        self.assertEqual(self.allocatable(), 7)


if __name__ == "__main__":
    unittest.main()
