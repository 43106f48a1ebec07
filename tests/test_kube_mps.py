"""NVIDIA's ways to share a GPU, time slices and MPS, for claims and for limits: by real kubelets, with simulated programs of NVIDIA's."""

import contextlib
import json
import os
import pathlib
import random
import re
import unittest

import drover
import kube
from kube.machine import wait_for
from kube_node import NodeTest, gpu_pod, gpus_in
from test_kube_claims import DOCUMENT, DRIVER, ClaimsTest, claim, claiming, request

PIPE = "CUDA_MPS_PIPE_DIRECTORY"
SHARED = "nvidia.com/gpu.shared"
CLIENT = ("env", PIPE, ",", "exists", "/tmp/nvidia-mps/control", ",", "write", "/tmp/nvidia-mps/evil", "x", ",",
          "write", "/dev/shm/mine", "x", ",", "exists", "/tmp/nvidia-mps/../log", ",", "sleep", 10000)
IS_CLIENT = ["/tmp/nvidia-mps", "ok", "EROFS", "ok", "ENOENT"]


def configured(name, sharing):
    made = claim(name, [request()])
    made["spec"]["devices"]["config"] = [{"opaque": {"driver": DRIVER, "parameters": {
        "apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig", "sharing": sharing}}}]
    return made


class Shares:
    """What is seen of sharing on the node of a NodeTest."""

    def setting(self, name):
        """Of all GPUs that have one."""
        folder = self.node.path(f"{self.state}/sim/settings")
        return sorted(path.read_text().strip() for path in folder.glob(f"*.{name}"))

    def record(self):
        with contextlib.suppress(FileNotFoundError):
            return json.loads(self.node.path(f"{self.state}/sharing.json").read_text())
        return {"owners": {}, "gpus": {}}

    def processes(self):
        """Host's ids of what belongs to daemons: they, and their servers."""
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if f"DROVER_MPS={self.state}/mps/".encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
        return sorted(found)

    def log_of_daemon(self):
        return self.node.exec("sh", "-c", f"cat {self.state}/mps/*/log/control.log").stdout

    def left(self):
        """What is left of sharing."""
        record = self.record()
        mounts = [line for line in self.node.exec("cat", "/proc/self/mounts").stdout.splitlines() if "/mps/" in line]
        changed = [mode for mode in self.setting("compute-mode") + self.setting("timeslice") if mode != "0"]
        return [each for each in (record["owners"], record["gpus"], self.processes(), mounts, changed) if each]

    def wait_until_nothing_is_left(self):
        wait_for(lambda: not self.left(), lambda: f"nothing to be left: {self.left()}; {self.agent.tail()}")


class ClaimTest(Shares, ClaimsTest):
    def tearDown(self):
        self.doCleanups()
        self.wait_until_nothing_is_left()
        super().tearDown()

    def specifications(self):
        return [path.name for path in self.node.path("/var/run/cdi").iterdir() if "claim" in path.name]

    def refusal(self, name, sharing):
        """What is told of a pod whose claim cannot be prepared."""
        self.make(configured(name, sharing))
        self.make_pod(claiming(kube.pod(name, "sleep", 10000), claim_name=name))
        return wait_for(lambda: [event["message"] for event in self.cluster.events(name)
                                 if event["reason"] == "FailedPrepareDynamicResources"], "a reason")[0]

    def test_a_claim_has_a_daemon_until_it_is_given_back(self):
        documented = re.search(r"^apiVersion: [^\n]*\nkind: ResourceClaimTemplate\nmetadata:\n  name: by-mps\n.*?(?=^```)",
                               DOCUMENT.read_text(), re.MULTILINE | re.DOTALL).group()
        self.addCleanup(self.cluster.delete, "resourceclaimtemplate", "by-mps")
        self.apply_text(documented)
        pod = claiming(kube.pod("pair", *CLIENT), template="by-mps")
        pod["spec"]["containers"].append({**pod["spec"]["containers"][0], "name": "second"})
        self.run_pod(pod)
        for name in ("main", "second"):
            self.assertEqual(self.cluster.logs("pair", "--container", name, lines=5).splitlines(), IS_CLIENT)
        self.assertEqual(self.setting("compute-mode"), ["3"])
        told = wait_for(lambda: "get_server_list" in self.log_of_daemon() and self.log_of_daemon(), self.agent.tail)
        uuid = re.search("started for (GPU-.*)", told).group(1)
        self.assertIn("set_default_active_thread_percentage 50\n", told)
        self.assertIn(f"set_default_device_pinned_mem_limit {uuid} 8192M\n", told)
        before = self.processes()
        self.assertEqual(len(before), 2)
        self.agent.restart()
        self.cluster.delete("pod", "pair")
        self.wait_until_nothing_is_left()

    def test_a_compute_mode_that_somebody_has_set_stays(self):
        folder = self.node.path(f"{self.state}/sim/settings")
        folder.mkdir(exist_ok=True)
        for uuid in (device["attributes"]["uuid"]["string"] for device in self.devices().values()):
            (folder / f"{uuid}.compute-mode").write_text("2\n")
            self.addCleanup((folder / f"{uuid}.compute-mode").write_text, "0\n")
        self.assertIn("has the compute mode Prohibited, which somebody has set", self.refusal("prohibited", {"strategy": "MPS"}))
        self.assertEqual(set(self.setting("compute-mode")), {"2"})

    def test_a_pod_that_takes_a_daemons_name_is_none(self):
        """Neither is it asked or ended in the daemon's place, nor does it keep one from being started again."""
        self.make(configured("mine", {"strategy": "MPS"}))
        self.run_claiming("mine", claim_name="mine")
        daemon = self.processes()
        uid = self.cluster.get("resourceclaim", "mine")["metadata"]["uid"]
        evil = kube.pod("evil", "exists", f"{self.state}/mps/claim-{uid}/pipe/control", ",", "sleep", 10000)
        evil["spec"]["containers"][0]["env"] = [{"name": "DROVER_MPS", "value": f"{self.state}/mps/claim-{uid}"},
                                                {"name": "CUDA_MPS_LOG_DIRECTORY", "value": "/mnt/log"}]
        self.run_pod(evil)
        self.assertEqual(self.cluster.logs("evil").splitlines(), ["ENOENT"])
        impostors = set(self.processes()) - set(daemon)
        self.assertTrue(impostors)
        self.agent.kill()
        for pid in daemon:
            os.kill(pid, 9)
        self.agent.start()
        wait_for(lambda: len(set(self.processes()) - set(daemon) - impostors) == 2, self.agent.tail)
        self.cluster.delete("pod", "mine")
        wait_for(lambda: set(self.processes()) == impostors, self.agent.tail)
        self.assertEqual(self.cluster.get("pod", "evil")["status"]["containerStatuses"][0]["restartCount"], 0)

    def test_what_a_container_writes_ends_with_its_file_system(self):
        self.make(configured("full", {"strategy": "MPS"}))
        self.run_pod(claiming(kube.pod("full", "fill", "/dev/shm/all", 1 << 30, ",", "sleep", 10000), claim_name="full"))
        self.assertEqual(self.cluster.logs("full").splitlines(), ["failed"])

    def test_some_containers_of_a_claim_have_mps_and_others_take_turns(self):
        """As in NVIDIA's example gpu-test5."""
        made = configured("mixed", {"strategy": "MPS"})
        made["spec"]["devices"]["requests"] = [kube.device_request({**request(), "name": name}) for name in ("turns", "mps")]
        other = json.loads(json.dumps(made["spec"]["devices"]["config"][0]))
        other["opaque"]["parameters"]["sharing"] = {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}
        made["spec"]["devices"]["config"] = [{**made["spec"]["devices"]["config"][0], "requests": ["mps"]}, {**other, "requests": ["turns"]}]
        self.make(made)
        pod = claiming(kube.pod("mixed", "devices", ",", "env", PIPE, ",", "sleep", 10000), claim_name="mixed")
        pod["spec"]["containers"].append(json.loads(json.dumps({**pod["spec"]["containers"][0], "name": "second"})))
        for container, name in zip(pod["spec"]["containers"], ("mps", "turns")):
            container["resources"]["claims"][0]["request"] = name
        self.run_pod(pod)
        with_mps, in_turns = (self.cluster.logs("mixed", "--container", name, lines=2).splitlines() for name in ("main", "second"))
        self.assertEqual(with_mps[1], "/tmp/nvidia-mps")
        self.assertNotEqual(in_turns[1], "/tmp/nvidia-mps")
        self.assertNotEqual(gpus_in(with_mps[0]), gpus_in(in_turns[0]))
        self.assertEqual([[each for each in self.setting(name) if each != "0"] for name in ("timeslice", "compute-mode")], [["3"], ["3"]])

    def test_an_interval_is_set_and_put_back(self):
        self.make(configured("long", {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}))
        self.run_claiming("long", claim_name="long")
        self.assertEqual([each for each in self.setting("timeslice") if each != "0"], ["3"])
        self.cluster.delete("pod", "long")
        self.wait_until_nothing_is_left()
        self.assertIn("0", self.setting("timeslice"))

    def test_what_cannot_be_done_is_told_in_the_events_of_the_pod(self):
        self.assertIn("defaultActiveThreadPercentage", self.refusal("more", {"strategy": "MPS", "mpsConfig": {"defaultActiveThreadPercentage": 101}}))
        self.assertIn("none of its 1 GPUs", self.refusal("other", {"strategy": "MPS", "mpsConfig": {
            "defaultPerDevicePinnedMemoryLimit": {"7": "1Gi"}}}))

    def test_nothing_is_left_whoever_is_killed(self):
        chance = random.Random(7)
        for number in range(int(os.environ.get("DROVER_TEST_KILLS", 10)) // 2):
            name = f"storm{number}"
            self.cluster.apply(configured(name, {"strategy": "MPS"}))
            self.make_pod(claiming(kube.pod(name, "sleep", 10000), claim_name=name))
            if chance.random() < 0.5:
                self.cluster.wait_until_running(name)
            for pid in self.processes():
                if chance.random() < 0.5:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, 9)
            if chance.random() < 0.7:
                self.agent.kill()
                self.cluster.kubectl("delete", "pod", name, "--wait=false", "--grace-period=0")
                self.agent.start()
            self.cluster.delete("pod", name)
            self.cluster.delete("resourceclaim", name)
        self.wait_until_nothing_is_left()
        wait_for(lambda: self.specifications() == [], lambda: f"no claim to stay prepared: {self.specifications()}")


class LimitTest(Shares, NodeTest):
    config = {"version": "v1", "sharing": {"mps": {"renameByDefault": True, "resources": [{"name": "nvidia.com/gpu", "replicas": 4, "devices": [0]}]}}}

    @classmethod
    def names(cls):
        return (SHARED,)

    def test_pods_share_a_daemon_as_long_as_one_of_them_has_the_gpu(self):
        for name in ("one", "two"):
            self.assertEqual(self.run_gpu_pod(name, {SHARED: 1}, *CLIENT), IS_CLIENT)
        self.assertEqual(len(self.processes()), 2)
        told = wait_for(lambda: "get_server_list" in self.log_of_daemon() and self.log_of_daemon(), self.agent.tail)
        self.assertIn("set_default_active_thread_percentage 25\n", told)
        self.assertRegex(told, r"set_default_device_pinned_mem_limit GPU-\S+ 10134M\n")
        labels = self.cluster.get("node", self.node.name)["metadata"]["labels"]
        self.assertEqual((labels["nvidia.com/mps.capable"], labels["nvidia.com/gpu.sharing-strategy"]), ("true", "mps"))
        self.cluster.delete("pod", "one")
        self.agent.restart()
        wait_for(lambda: self.allocatable(SHARED) == 4, self.agent.tail)
        self.assertEqual(len(self.processes()), 2)
        self.cluster.delete("pod", "two")
        self.wait_until_nothing_is_left()

    def test_a_container_has_one_replica_at_most(self):
        self.make_pod(gpu_pod("greedy", {SHARED: 2}))
        pod = self.cluster.wait("pod", "greedy", lambda pod: pod and pod["status"].get("phase") == "Failed")
        self.assertIn("maximum request size", pod["status"]["message"])


if __name__ == "__main__":
    unittest.main()
