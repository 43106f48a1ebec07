"""Claims of MIG devices, by real schedulers and kubelets; the GPUs are simulated, the device nodes are not."""

import json
import unittest

import kube
import mig_profile
from kube.machine import wait_for
from kube_node import SEES, TELLS
from test_kube_claims import DRIVER, ClaimsTest, claim, claiming

FIXED = {"id": 5, "profile": "2g.10gb", "start": 0, "compute": [{"id": 0, "start": 0, "slices": 2}]}


def mig_request(profile, gpu):
    expression = (f"device.attributes['{DRIVER}'].profile == '{profile}' && "
                  f"device.attributes['{DRIVER}'].parentUUID == '{gpu}'")
    return {"name": "gpus", "exactly": {"deviceClassName": "mig.nvidia.com", "count": 1,
                                        "selectors": [{"cel": {"expression": expression}}]}}


class MigNodeTest(ClaimsTest):
    @classmethod
    def setUpClass(cls):
        cls.profile = mig_profile.made_for(cls)
        super().setUpClass()

    @classmethod
    def wait_for_devices(cls):
        wait_for(lambda: len([name for name in cls.devices() if "-mig-" in name]) > 25, lambda: f"MIG devices; {cls.agent.tail()}")

    def tearDown(self):
        self.doCleanups()
        wait_for(lambda: self.specifications() == [], lambda: f"no claim to stay prepared: {self.specifications()}")
        super().tearDown()

    @property
    def state_file(self):
        return self.node.path(f"{self.state}/sim/mig.yaml")

    def instances(self, gpu):
        """As the simulated driver has them."""
        return json.loads(self.state_file.read_text())[str(gpu)]["instances"] if self.state_file.exists() else []

    def set_instances(self, instances):
        """Of the last GPU, while no claim has a part of any."""
        new = self.state_file.with_suffix(".new")
        new.write_text(json.dumps({"2": {"enabled": True}, "3": {"enabled": True, "instances": instances}}))
        new.rename(self.state_file)

    def bring_fixed_instance(self):
        """Waits until it is offered: what others take its place for is chosen from what is offered then."""
        self.addCleanup(self.set_instances, [])
        self.set_instances([FIXED])
        wait_for(lambda: "uuid" in self.devices().get("gpu-3-mig-2g10gb-14-0", {}).get("attributes", {}),
                 lambda: f"a device with a UUID; {self.agent.tail()}")

    def parent(self, gpu):
        return next(device["attributes"]["parentUUID"]["string"] for name, device in self.devices().items()
                    if name.startswith(f"gpu-{gpu}-mig-"))

    def claim_part(self, name, profile, gpu=2):
        self.make(claim(name, [mig_request(profile, self.parent(gpu))]))
        return claiming(kube.pod(name, *SEES), claim_name=name)

    def run_part(self, name, profile, gpu=2):
        """Waits until it runs; returns numbers of its device nodes by their paths."""
        self.run_pod(self.claim_part(name, profile, gpu))
        uid = self.cluster.get("resourceclaim", name)["metadata"]["uid"]
        specification = json.loads(self.node.path(f"/var/run/cdi/k8s.{DRIVER}-claim_{uid}.json").read_text())
        nodes = specification["devices"][0]["containerEdits"]["deviceNodes"]
        return {node["path"]: (node["major"], node["minor"]) for node in nodes}

    def device_of(self, name):
        return self.cluster.get("resourceclaim", name)["status"]["allocation"]["devices"]["results"][0]["device"]

    def labels(self):
        return self.cluster.get("node", self.node.name)["metadata"]["labels"]

    def opens(self, pod, number):
        """ENXIO when the kernel allows it: nothing is behind simulated nodes."""
        return self.cluster.exec(pod, "/probe", "mknod", "/node", *map(str, number)).stdout.strip()


class MigTest(MigNodeTest):
    def test_parts_of_one_gpu_are_side_by_side_and_each_opens_only_its_own(self):
        parts = {"small": self.run_part("small", "1g.5gb"), "large": self.run_part("large", "3g.20gb")}
        self.assertEqual([len(nodes) for nodes in parts.values()], [3, 3])
        self.assertEqual(sorted(instance["profile"] for instance in self.instances(2)), ["1g.5gb", "3g.20gb"])
        for pod, other in (("small", "large"), ("large", "small")):
            self.assertIn("nvidia2 ", self.cluster.logs(pod).replace("\n", " "))
            for path, number in parts[pod].items():
                self.assertEqual(self.opens(pod, number), "ENXIO", (pod, path))
            for path, number in parts[other].items():
                if path != "/dev/nvidia2":
                    self.assertEqual(self.opens(pod, number), "EPERM", (pod, path))
        self.cluster.delete("pod", "small", "large")
        wait_for(lambda: self.instances(2) == [], lambda: f"no instance to stay: {self.instances(2)}")

    def test_what_does_not_fit_waits_until_it_does(self):
        self.run_part("first", "1g.5gb")
        self.make_pod(self.claim_part("all", "7g.40gb"))
        told = wait_for(lambda: [event for event in self.cluster.events("all") if event["reason"] == "FailedScheduling"], "a reason")
        self.assertIn("cannot allocate all claims", told[0]["message"])
        self.run_part("second", "3g.20gb", gpu=3)
        self.cluster.delete("pod", "first")
        self.cluster.delete("resourceclaim", "first")
        self.cluster.wait_until_running("all")
        self.assertEqual([instance["profile"] for instance in self.instances(2)], ["7g.40gb"])

    def test_no_instance_stays_when_the_driver_dies_before_its_claim_ends(self):
        before = self.run_part("survivor", "2g.10gb")
        self.agent.kill()
        self.cluster.delete("pod", "survivor", wait=False)
        self.agent.start()
        wait_for(lambda: self.instances(2) == [], lambda: f"no instance to stay: {self.instances(2)}; {self.agent.tail()}")
        wait_for(lambda: not self.cluster.list("pods"), lambda: f"the pod to end: {self.cluster.list('pods')}; {self.agent.tail()}")
        self.cluster.delete("resourceclaim", "survivor")
        wait_for(lambda: not any(device.get("taints") for device in self.devices().values()), lambda: f"no taint: {self.devices()}")
        self.assertEqual(self.run_part("again", "2g.10gb"), before)

    def test_an_error_in_one_part_takes_out_that_part_only(self):
        self.addCleanup(self.set_faults, {})
        self.run_part("broken", "3g.20gb")
        self.run_part("whole", "1g.5gb")
        broken = self.device_of("broken")
        instance = next(one["id"] for one in self.instances(2) if one["profile"] == "3g.20gb")
        self.set_faults({"2": {"xid": [{"xid": 48, "gpu_instance": instance, "compute_instance": 0}]}})
        wait_for(lambda: "gpu.nvidia.com/xid" in self.taints_of(broken), lambda: f"a taint; {self.agent.tail()}")
        self.assertEqual({name for name in self.devices() if self.taints_of(name)}, {broken})
        def told(pod):
            return [event["reason"] for event in self.cluster.events(pod) if event["reason"].startswith("Gpu")]
        wait_for(lambda: told("broken") == ["GpuUnhealthy"], lambda: f"an Event; {self.agent.tail()}")
        self.assertEqual(told("whole"), [])

    def test_an_instance_of_somebody_else_is_given_and_never_destroyed(self):
        self.bring_fixed_instance()
        self.assertNotIn("gpu-3-mig-1g5gb-19-1", self.devices())
        self.assertIn("gpu-3-mig-1g5gb-19-2", self.devices())
        name = "gpu-3-mig-2g10gb-14-0"
        only = {"cel": {"expression": f"device.attributes['{DRIVER}'].?uuid.orValue('') == "
                                      f"'{self.devices()[name]['attributes']['uuid']['string']}'"}}
        self.make(claim("fixed", [{"name": "gpus", "exactly": {"deviceClassName": "mig.nvidia.com", "selectors": [only]}}]))
        self.run_pod(claiming(kube.pod("fixed", *SEES), claim_name="fixed"))
        self.assertEqual(self.device_of("fixed"), name)
        self.run_part("beside", "3g.20gb", gpu=3)
        self.cluster.delete("pod", "fixed", "beside")
        wait_for(lambda: self.instances(3) == [FIXED], lambda: f"the one instance to stay: {self.instances(3)}")


class LimitsTest(MigNodeTest):
    config = {"version": "v1", "flags": {"migStrategy": "mixed"}}
    resource = "nvidia.com/mig-2g.10gb"

    def test_a_part_that_was_there_is_given_by_a_limit_and_to_no_claim(self):
        self.bring_fixed_instance()
        self.wait_for_allocatable(1, self.resource)
        self.assertEqual(self.allocatable(), 2)
        claimed = self.run_part("claimed", "3g.20gb", gpu=3)
        seen, told = self.run_gpu_pod("limited", {self.resource: 1}, *TELLS)
        self.assertIn("nvidia3 ", seen + " ")
        specification = json.loads(self.node.path("/var/run/cdi/k8s.device-plugin.nvidia.com-gpu.json").read_text())
        part = next(device for device in specification["devices"] if device["name"].startswith("MIG-"))
        self.assertEqual(told, part["name"])
        nodes = {node["path"]: (node["major"], node["minor"]) for node in part["containerEdits"]["deviceNodes"]}
        self.assertEqual(len(nodes), 3)
        for path, number in nodes.items():
            self.assertEqual(self.opens("limited", number), "ENXIO", path)
            if path != "/dev/nvidia3":
                self.assertEqual(self.opens("claimed", number), "EPERM", path)
        wait_for(lambda: f"{DRIVER}/in-use" in self.taints_of("gpu-3-mig-2g10gb-14-0"), lambda: f"a taint; {self.agent.tail()}")
        self.assertEqual(self.allocatable(self.resource), 1)  # what a claim made is no limit's

    def test_labels_tell_of_the_parts_that_limits_give(self):
        self.bring_fixed_instance()
        self.run_part("claimed", "3g.20gb", gpu=3)
        part = "nvidia.com/mig-2g.10gb"
        wait_for(lambda: f"{part}.count" in self.labels(), lambda: f"{self.labels()}; {self.agent.tail()}")
        self.assertEqual({name.removeprefix(f"{part}."): value for name, value in self.labels().items() if name.startswith(part)},
                         {"count": "1", "product": "NVIDIA-A100-PCIE-40GB-MIG-2g.10gb", "replicas": "1", "sharing-strategy": "none",
                          "memory": "9856", "multiprocessors": "28", "slices.gi": "2", "slices.ci": "2", "engines.copy": "2",
                          "engines.decoder": "1", "engines.encoder": "0", "engines.jpeg": "0", "engines.ofa": "0"})
        self.assertEqual({name: value for name, value in self.labels().items() if name.startswith("nvidia.com/mig-3g")}, {})
        self.assertEqual(self.labels()["nvidia.com/mig.strategy"], "mixed")
        self.assertIn("V100", self.labels()["nvidia.com/gpu.product"])
        self.set_instances([])
        wait_for(lambda: f"{part}.count" not in self.labels(), lambda: f"{self.labels()}; {self.agent.tail()}")


class SingleTest(MigNodeTest):
    config = {"version": "v1", "flags": {"migStrategy": "single"}}

    def test_labels_say_that_gpus_are_not_cut_alike(self):
        wanted = {"product": "NVIDIA-A100-PCIE-40GB-MIG-INVALID", "count": "0", "replicas": "0", "memory": "0"}
        wait_for(lambda: {name: self.labels().get(f"nvidia.com/gpu.{name}") for name in wanted} == wanted,
                 lambda: f"{self.labels()}; {self.agent.tail()}")
        self.assertEqual(self.labels()["nvidia.com/mig.strategy"], "single")


if __name__ == "__main__":
    unittest.main()
