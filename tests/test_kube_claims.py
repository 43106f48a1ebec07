"""`drover kube node` as a DRA driver: claims of GPUs, by real schedulers and kubelets; the GPUs are simulated."""

import json
import re
import unittest

import drover
import kube
from kube.components import KUBERNETES_MINOR
from kube.machine import wait_for
from kube_node import GPU, SEES, NodeTest, gpu_pod, gpus_in

DRIVER = "gpu.nvidia.com"
DOCUMENT = drover.ROOT / "docs/kubernetes-dra.md"


def claim(name, requests, constraints=(), kind="ResourceClaim"):
    devices = {"requests": [kube.device_request(each) for each in requests], "constraints": list(constraints)}
    spec = {"devices": devices} if kind == "ResourceClaim" else {"spec": {"devices": devices}}
    return {"apiVersion": kube.RESOURCE_API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def request(count=1, **exactly):
    return {"name": "gpus", "exactly": {"deviceClassName": DRIVER, "count": count, **exactly}}


def claiming(pod, claim_name=None, template=None):
    """The pod, each of whose containers has the claim."""
    source = {"resourceClaimName": claim_name} if claim_name else {"resourceClaimTemplateName": template}
    pod["spec"]["resourceClaims"] = [{"name": "gpus", **source}]
    for container in pod["spec"]["containers"]:
        container["resources"] = {"claims": [{"name": "gpus"}]}
    return pod


class ClaimsTest(NodeTest):
    classes = "device-classes.yaml"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.apply_text((drover.ROOT / "packaging/kubernetes" / cls.classes).read_text())
        cls.wait_for_devices()

    @classmethod
    def wait_for_devices(cls):
        wait_for(lambda: len(cls.devices()) == 8, lambda: f"slices of 8 GPUs; {cls.agent.tail()}")

    @classmethod
    def apply_text(cls, manifest):
        cls.cluster.kubectl("apply", "-f", "-", input=manifest.replace("resource.k8s.io/v1\n", f"{kube.RESOURCE_API}\n"))

    @classmethod
    def devices(cls):
        """Name -> device, of all slices of this node."""
        return {device["name"]: device for found in cls.cluster.list("resourceslices") if found["spec"]["driver"] == DRIVER
                for device in found["spec"].get("devices", ())}

    @classmethod
    def taints_of(cls, device):
        """None while a kubelet that has just started has removed its node's slices."""
        return {taint["key"]: taint for taint in cls.devices().get(device, {}).get("taints", ())}

    @classmethod
    def end_agent(cls):
        """The kubelet takes its slices away after a while; until then they would be taken for those of the next one."""
        super().end_agent()
        for found in cls.cluster.list("resourceslices"):
            cls.cluster.delete("resourceslice", found["metadata"]["name"])

    def make(self, thing):
        kind, name = thing["kind"].lower(), thing["metadata"]["name"]
        self.addCleanup(self.cluster.delete, kind, name)
        self.cluster.apply(thing)

    def run_claiming(self, name, **source):
        """Waits until it runs; returns the numbers of its GPUs."""
        self.run_pod(claiming(kube.pod(name, *SEES), **source))
        return gpus_in(self.cluster.logs(name))

    def specifications(self):
        return [path.name for path in self.node.path("/var/run/cdi").iterdir() if "claim" in path.name]


class ExtendedResourceTest(ClaimsTest):
    """Without a device plugin: Kubernetes makes claims out of limits."""

    classes = "device-class-extended-resource.yaml"

    @classmethod
    def flags(cls):
        return ("--roles", "dra")

    @classmethod
    def names(cls):
        return ()

    def test_a_gpu_without_its_device_file_is_claimed_by_nobody_and_the_log_says_so(self):
        file = self.node.path(f"{self.state}/sim/dev/nvidia5")
        away = file.with_name("away")
        file.rename(away)
        try:
            wait_for(lambda: f"{DRIVER}/no-device-files" in self.taints_of("gpu-5"), lambda: f"a taint; {self.agent.tail()}")
        finally:
            away.rename(file)
        self.assertEqual(self.agent.read_log().count("1 of 8 GPUs are given to no pod"), 1)
        wait_for(lambda: f"{DRIVER}/no-device-files" not in self.taints_of("gpu-5"), lambda: f"no taint; {self.agent.tail()}")

    def test_a_limit_becomes_a_claim(self):
        seen = [gpus_in(self.run_gpu_pod(f"limit-{count}", {GPU: count})[0]) for count in (2, 6)]
        self.assertEqual((len(seen[0]), len(seen[0] | seen[1])), (2, 8))
        made = self.cluster.get("pod", "limit-2")["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
        chosen = self.cluster.get("resourceclaim", made)["status"]["allocation"]["devices"]["results"]
        self.assertEqual({int(result["device"].removeprefix("gpu-")) for result in chosen}, seen[0])
        self.cluster.delete("pod", "limit-2", "limit-6")
        wait_for(lambda: self.specifications() == [], lambda: f"no claim to stay prepared: {self.specifications()}")

    def test_drovers_scheduler_makes_that_claim_too(self):
        scheduler = self.cluster.run_inside([drover.BINARY, "kube", "scheduler", "--kubeconfig", self.cluster.kubeconfig], name="drover-scheduler")
        self.addCleanup(scheduler.stop)
        pod = gpu_pod("ours", {GPU: 3})
        pod["spec"]["schedulerName"] = "drover"
        self.run_pod(pod)
        seen = gpus_in(self.cluster.logs("ours"))
        made = self.cluster.get("pod", "ours")["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
        chosen = self.cluster.get("resourceclaim", made)["status"]["allocation"]["devices"]["results"]
        self.assertEqual((len(seen), {int(result["device"].removeprefix("gpu-")) for result in chosen}), (3, seen))


class WholeGpusTest(ClaimsTest):
    def tearDown(self):
        """Cleanups come after this, and pods end before their claims: nothing stays prepared."""
        self.doCleanups()
        wait_for(lambda: self.specifications() == [], lambda: f"no claim to stay prepared: {self.specifications()}")
        super().tearDown()

    def test_two_containers_of_a_pod_share_the_gpu_of_a_claim(self):
        self.make(claim("shared", [request()]))
        pod = claiming(kube.pod("pair", *SEES), claim_name="shared")
        pod["spec"]["containers"].append({**pod["spec"]["containers"][0], "name": "second"})
        self.run_pod(pod)
        seen = [self.cluster.logs("pair", "--container", name) for name in ("main", "second")]
        self.assertEqual(seen[0], seen[1])
        self.assertEqual(len(gpus_in(seen[0])), 1)

    def test_two_joined_gpus_with_enough_memory_as_documented(self):
        documented = re.search(r"^apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\n.*?(?=^```)", DOCUMENT.read_text(),
                               re.MULTILINE | re.DOTALL).group()
        self.addCleanup(self.cluster.delete, "resourceclaimtemplate", "two-joined")
        self.apply_text(documented)
        self.assertEqual(len(self.run_claiming("joined", template="two-joined")), 2)

    def test_claims_and_limits_share_the_gpus_and_never_the_same_one(self):
        self.make(claim("three", [request(3)]))
        claimed = self.run_claiming("by-claim", claim_name="three")
        self.wait_for_allocatable(5)
        limited = gpus_in(self.run_gpu_pod("by-limit", {GPU: 5})[0])
        self.assertEqual((len(claimed), len(claimed | limited)), (3, 8))
        wait_for(lambda: sum(f"{DRIVER}/in-use" in self.taints_of(name) for name in self.devices()) == 5,
                 lambda: f"taints of what the other has: {json.dumps(self.devices())}")
        self.cluster.delete("pod", "by-claim", "by-limit")
        self.wait_for_allocatable(8)

    def test_a_gpu_that_fails_is_claimed_by_nobody_and_the_others_are(self):
        self.addCleanup(self.set_faults, {})
        self.set_faults({"2": {"xid": [79], "recovery_action": "reset"}})
        wait_for(lambda: "gpu.nvidia.com/xid" in self.taints_of("gpu-2"), lambda: f"a taint; {self.agent.tail()}")
        taint = self.taints_of("gpu-2")["gpu.nvidia.com/xid"]
        self.assertEqual((taint["value"], taint["effect"]), ("79", "NoSchedule"))
        self.make(claim("rest", [request(7)]))
        self.assertEqual(len(self.run_claiming("others", claim_name="rest") - {2}), 7)
        self.set_faults({"2": {"xid": [79], "recovery_action": "none"}})  # it was reset
        wait_for(lambda: self.taints_of("gpu-2") == {}, lambda: f"no taint; {self.agent.tail()}", timeout=180)

    @unittest.skipIf(KUBERNETES_MINOR < (1, 35), "the API server knows no taints that only tell")
    def test_what_takes_no_gpu_out_is_told_by_a_taint_that_keeps_nobody_away(self):
        self.addCleanup(self.set_faults, {})
        self.set_faults({"4": {"xid": [31]}})
        wait_for(lambda: "gpu.nvidia.com/xid" in self.taints_of("gpu-4"), lambda: f"a taint; {self.agent.tail()}")
        taint = self.taints_of("gpu-4")["gpu.nvidia.com/xid"]
        self.assertEqual((taint["value"], taint["effect"]), ("31", "None"))
        self.make(claim("everything", [request(8)]))
        self.assertEqual(len(self.run_claiming("everybody", claim_name="everything")), 8)

    def test_a_pod_gets_no_devices_by_naming_them(self):
        """By what container engines read of annotations and of the environment."""
        self.make(claim("private", [request()]))
        self.run_claiming("owner", claim_name="private")
        made = [json.loads(path.read_text()) for path in self.node.path("/var/run/cdi").glob("*claim*")]
        names = [f"{each['kind']}={device['name']}" for each in made for device in each["devices"]]
        self.assertNotEqual(names, [])
        thief = kube.pod("thief", *SEES, env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}])
        thief["metadata"]["annotations"] = {f"cdi.k8s.io/{index}": name for index, name in enumerate(names)}
        self.run_pod(thief)
        self.assertEqual(gpus_in(self.cluster.logs("thief")), set())

    def test_a_claim_is_not_that_of_a_pod_in_another_namespace(self):
        self.make(claim("mine", [request()]))
        self.run_claiming("owner", claim_name="mine")
        prepared = self.specifications()
        self.cluster.kubectl("create", "namespace", "others")
        self.addCleanup(self.cluster.delete, "namespace", "others")
        for pod in (claiming(kube.pod("thief", *SEES), claim_name="mine"), kube.pod("bystander", *SEES)):
            pod["metadata"]["namespace"] = "others"
            self.cluster.apply(pod)
        self.cluster.wait("pod", "bystander", kube.pod_is_ready, namespace="others")
        self.assertNotIn("nodeName", self.cluster.get("pod", "thief", "others")["spec"])
        self.assertEqual(self.specifications(), prepared)

    def test_other_users_of_the_node_reach_none_of_its_sockets(self):
        sockets = [path for folder in ("plugins", "plugins_registry", "device-plugins")
                   for path in self.node.path(f"/var/lib/kubelet/{folder}").rglob("*") if path.is_socket()]
        ours = [path for path in sockets if re.search("nvidia|drover-gpu", str(path))]
        self.assertGreaterEqual(len(ours), 3, sockets)  # the plugin's, the driver's, and that of its registration
        for path in ours:
            with self.subTest(path.name):
                self.assertEqual(path.stat().st_mode & 0o077, 0)

    def test_a_claim_outlives_the_driver_and_ends_without_it_too(self):
        self.make(claim("long", [request(2)]))
        before = self.run_claiming("survivor", claim_name="long")
        self.agent.kill()
        self.agent.start()
        self.make(claim("others", [request(6)]))
        after = self.run_claiming("rest", claim_name="others")
        self.assertEqual(len(before | after), 8)


class SharesTest(ClaimsTest):
    @classmethod
    def flags(cls):
        return ("--claim-sharing", "share")

    def test_half_a_gpu_twice_on_one_gpu_and_no_third_half(self):
        only = {"cel": {"expression": f"device.attributes['{DRIVER}'].uuid == '{self.uuid_of('gpu-0')}'"}}
        half = request(selectors=[only], capacity={"requests": {"share": "500"}})
        for index in range(3):
            self.make(claim(f"half{index}", [half]))
        seen = [self.run_claiming(f"half{index}", claim_name=f"half{index}") for index in range(2)]
        self.assertEqual(seen, [{0}, {0}])
        self.make_pod(claiming(kube.pod("half2", *SEES), claim_name="half2"))
        told = wait_for(lambda: [event for event in self.cluster.events("half2") if event["reason"] == "FailedScheduling"], "a reason")
        self.assertIn("cannot allocate all claims", told[0]["message"])
        self.cluster.delete("pod", "half0")
        self.cluster.delete("resourceclaim", "half0")
        self.cluster.wait_until_running("half2")

    def uuid_of(self, name):
        return self.devices()[name]["attributes"]["uuid"]["string"]


if __name__ == "__main__":
    unittest.main()
