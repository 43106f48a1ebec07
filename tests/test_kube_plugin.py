"""`drover kube node` as a device plugin: real kubelets, a real scheduler, real containers; the GPUs are simulated."""

import json
import re
import unittest

import drover
import kube
from kube_node import GPU, TELLS, VISIBLE, NodeTest, gpu_pod, gpus_in
from kube.machine import wait_for
from kube.settings import SYSTEM_CONTAINERD, NodeSettings, Settings


class WholeGpusTest(NodeTest):
    config = {"version": "v1", "resources": {"gpus": [{"pattern": "*", "name": GPU}, {"pattern": "*A100*", "name": "nvidia.com/a100"}]}}

    @classmethod
    def names(cls):
        return (GPU, "nvidia.com/a100")

    def check_told(self, lines):
        """What TELLS has written; returns the numbers of the GPUs."""
        seen, told = gpus_in(lines[0]), lines[1].split(",")
        known = json.loads(self.node.path("/var/run/cdi/k8s.device-plugin.nvidia.com-gpu.json").read_text())["devices"]
        uuids = {int(device["containerEdits"]["deviceNodes"][0]["path"].removeprefix("/dev/nvidia")): device["name"] for device in known}
        self.assertEqual(told, sorted(uuids[gpu] for gpu in seen))
        return seen

    def test_a_stock_pod_sees_exactly_its_gpus(self):
        words = ["devices"]
        for minor in range(8):
            words += [",", "open", f"/dev/nvidia{minor}", ",", "mknod", f"/tmp{minor}", 195, minor]
        lines = self.run_gpu_pod("two", {GPU: 2}, *words, ",", "sleep", 10000)
        mine = gpus_in(lines[0])
        self.assertEqual(len(mine), 2, lines)
        for minor in range(8):
            opened, made = lines[1 + 2 * minor:3 + 2 * minor]
            # No driver answers behind a node of a simulated GPU: an open that is allowed says ENXIO.
            self.assertEqual((opened, made), ("ENXIO", "ENXIO") if minor in mine else ("ENOENT", "EPERM"))

    def test_pods_have_different_gpus_and_a_pod_too_many_waits_with_a_reason(self):
        seen = [gpus_in(self.run_gpu_pod(f"pod{index}", {GPU: 3})[0]) for index in range(2)]
        self.assertEqual(len(seen[0] | seen[1]), 6, seen)
        self.make_pod(gpu_pod("late", {GPU: 3}))
        told = wait_for(lambda: [event for event in self.cluster.events("late") if event["reason"] == "FailedScheduling"], "a reason")
        self.assertIn(f"Insufficient {GPU}", told[0]["message"])
        self.cluster.delete("pod", "pod0")
        self.cluster.wait_until_running("late")

    def test_a_pod_without_gpus_sees_none(self):
        lines = self.run_gpu_pod("none", {}, "devices", ",", "mknod", "/gpu", 195, 0, ",", "sleep", 10000,
                                 env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}])
        self.assertEqual(lines, ["", "EPERM"])

    def test_a_container_is_told_which_gpus_it_has_whatever_the_pod_says_and_whenever_it_starts(self):
        greedy = [{"name": VISIBLE, "value": "all"}]
        told = [self.check_told(self.run_gpu_pod(name, {GPU: count}, *TELLS, env=greedy)) for name, count in (("three", 3), ("one", 1))]
        self.assertEqual([len(gpus) for gpus in told], [3, 1])
        self.assertFalse(told[0] & told[1])
        # One that the kubelet starts again, as nobody is asked to give it anything.
        again = gpu_pod("again", {GPU: 2}, *TELLS[:-1], 5, env=greedy)
        again["spec"]["restartPolicy"] = "Always"
        self.run_pod(again)
        before = self.check_told(self.cluster.logs("again", lines=2).splitlines())
        self.agent.kill()
        self.agent.start()
        self.cluster.wait("pod", "again", lambda pod: kube.pod_is_ready(pod) and pod["status"]["containerStatuses"][0]["restartCount"] > 0)
        self.assertEqual(self.check_told(self.cluster.logs("again", lines=2).splitlines()), before)

    def test_a_model_is_a_second_name_of_the_same_gpus(self):
        self.wait_for_allocatable(8, "nvidia.com/a100")
        first = gpus_in(self.run_gpu_pod("by-model", {"nvidia.com/a100": 2})[0])
        self.wait_for_allocatable(6)
        second = gpus_in(self.run_gpu_pod("by-any", {GPU: 6})[0])
        self.assertEqual(len(first | second), 8)
        self.cluster.delete("pod", "by-model", "by-any")
        self.wait_for_allocatable(8)
        self.wait_for_allocatable(8, "nvidia.com/a100")

    def test_one_lost_gpu_is_the_only_one_that_is_lost(self):
        self.addCleanup(self.set_faults, {})
        self.set_faults({"3": {"lost": True}})
        self.wait_for_allocatable(7)
        self.assertNotIn(3, gpus_in(self.run_gpu_pod("others", {GPU: 7})[0]))
        self.set_faults({})
        self.wait_for_allocatable(8)
        self.assertEqual(gpus_in(self.run_gpu_pod("healed", {GPU: 1})[0]), {3})

    def test_a_gpu_whose_driver_never_answers_is_told_all_the_same(self):
        self.addCleanup(self.set_faults, {})
        self.set_faults({"6": {"slow_ms": 3600000}})
        self.wait_for_allocatable(7)
        self.assertNotIn(6, gpus_in(self.run_gpu_pod("beside", {GPU: 7})[0]))
        # A call that never returns keeps the program from nothing, its own end included.
        self.assertEqual(self.agent.stop(), 0)
        self.set_faults({})
        self.agent.start()
        self.wait_for_allocatable(8)

    def test_a_gpu_that_is_no_longer_listed_is_unhealthy_and_not_forgotten(self):
        self.addCleanup(self.set_faults, {})
        self.set_faults({"5": {"absent": True}})
        self.wait_for_allocatable(7)
        self.assertEqual(self.cluster.get("node", self.node.name)["status"]["capacity"][GPU], "8")
        self.assertEqual(len(gpus_in(self.run_gpu_pod("rest", {GPU: 7})[0]) - {5}), 7)
        self.set_faults({})
        self.wait_for_allocatable(8)

    def test_nothing_is_lost_or_given_twice_when_the_kubelet_and_the_plugin_crash(self):
        first = gpus_in(self.run_gpu_pod("before", {GPU: 4})[0])
        self.node.kubelet.restart()
        self.agent.kill()
        before = self.registrations()
        self.agent.start()
        wait_for(lambda: self.registrations() >= before + 2, self.agent.tail)
        second = gpus_in(self.run_gpu_pod_at_last("after", {GPU: 4})[0])
        self.assertEqual(len(first | second), 8)
        survivor = self.cluster.wait_until_running("before")
        self.assertEqual(survivor["status"]["containerStatuses"][0]["restartCount"], 0)

    def test_an_upgrade_waits_for_the_old_one_to_end(self):
        second = self.node.run_inside(self.agent.command, name="upgrade")
        wait_for(lambda: "waiting for it to end" in second.read_log(), second.tail)
        self.assertEqual(self.agent.stop(), 0)
        type(self).agent = second
        wait_for(lambda: self.registrations() == 2, second.tail)
        self.run_gpu_pod("upgraded", {GPU: 1})


class DocumentedConfigTest(NodeTest):
    """The configuration of docs/kubernetes.md, as it stands there."""

    document = (drover.ROOT / "docs/kubernetes.md").read_text()
    config = re.search(r"^version: v1\n.*?(?=^```)", document, re.MULTILINE | re.DOTALL).group()

    @classmethod
    def names(cls):
        return (GPU, "nvidia.com/a100", "nvidia.com/a100.shared")

    def test_its_gpus_have_the_names_that_it_gives_them(self):
        self.assertEqual([self.allocatable(name) for name in self.names()], [8, 6, 8])
        self.assertEqual(len(gpus_in(self.run_gpu_pod("part", {"nvidia.com/a100.shared": 1})[0])), 1)
        self.wait_for_allocatable(7)


class SharedGpusTest(NodeTest):
    profile = "k80"
    config = {"version": "v1", "sharing": {"timeSlicing": {"renameByDefault": True, "resources": [{"name": GPU, "replicas": 2}]}}}

    @classmethod
    def names(cls):
        return (f"{GPU}.shared",)

    def test_a_gpu_is_given_as_often_as_it_is_shared(self):
        self.wait_for_allocatable(4, f"{GPU}.shared")
        seen = [gpus_in(self.run_gpu_pod(f"part{index}", {f"{GPU}.shared": 1})[0]) for index in range(4)]
        self.assertEqual(sorted(sum(map(list, seen), [])), [0, 0, 1, 1])

    def test_a_container_with_several_parts_of_a_gpu_is_told_of_it_once(self):
        seen, told = self.run_gpu_pod("both", {f"{GPU}.shared": 4}, *TELLS)
        self.assertEqual(gpus_in(seen), {0, 1})
        self.assertEqual(len(set(told.split(","))), 2, told)
        self.assertRegex(told, r"^GPU-[0-9a-f-]+,GPU-[0-9a-f-]+$")


class WithoutCdiTest(NodeTest):
    """containerd 1.6 does not know CDI, and starts containers without what it does not understand."""

    settings = Settings(nodes=(NodeSettings(containerd=SYSTEM_CONTAINERD),))

    def test_a_pod_gets_its_devices_and_the_driver_all_the_same(self):
        lines = self.run_gpu_pod("old", {GPU: 2}, "devices", ",", "open", "/usr/local/nvidia/lib64/libnvidia-ml.so.1", ",",
                                 "env", VISIBLE, ",", "sleep", 10000)
        self.assertEqual(len(gpus_in(lines[0])), 2)
        self.assertEqual(lines[1], "EROFS")  # it is there, and cannot be written
        self.assertRegex(lines[2], r"^GPU-[0-9a-f-]+,GPU-[0-9a-f-]+$")
        self.assertIn("containerd does CDI from 1.7 on", self.agent.read_log())


if __name__ == "__main__":
    unittest.main()
