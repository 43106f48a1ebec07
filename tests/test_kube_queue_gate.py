"""Pods that kube-scheduler binds wait in Drover's queues behind a scheduling gate: a real API server, and the real kube-scheduler."""

import unittest

import drover
import test_kube_scheduling as scheduling

GATES = [{"name": "drover.dev/queue"}]


class QueueGateTest(scheduling.SchedulerTest):
    def make_gated_pod(self, name, gpus, **spec):
        self.make_gpu_pod(name, gpus, **{"schedulerName": "default-scheduler", "schedulingGates": GATES, **spec})

    def annotations(self, name):
        return self.cluster.get("pod", name)["metadata"].get("annotations", {})

    def reasons(self, name):
        return [event["reason"] for event in self.cluster.events(name)]

    def test_kube_scheduler_binds_it_when_its_turn_has_come(self):
        self.make_node("only", 4)
        self.make_gpu_pod("ours", 3)
        self.bound("ours")
        self.make_gated_pod("theirs", 2)
        said = self.refusal("theirs", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu")
        condition = [each for each in self.cluster.get("pod", "theirs")["status"]["conditions"] if each["type"] == "PodScheduled"]
        self.assertEqual([each["reason"] for each in condition], ["SchedulingGated"], said)
        self.cluster.delete("pod", "ours", options=("--force", "--grace-period=0"))
        self.assertEqual(self.bound("theirs"), ("only", None))
        self.assertEqual(self.annotations("theirs")["drover.dev/expected-node"], "only")
        self.assertIn("drover.dev/released", self.annotations("theirs"))
        drover.wait_for(lambda: {"Released", "Scheduled"} <= set(self.reasons("theirs")), "the Events")
        # What it has counts.
        self.make_gpu_pod("late", 3)
        self.refusal("late", "Insufficient nvidia.com/gpu")

    def test_its_room_is_kept_until_it_is_bound_also_by_who_takes_over(self):
        self.make_node("only", 4)
        # kube-scheduler knows more than we do: it does not bind this one yet.
        self.make_gated_pod("theirs", 3, volumes=[{"name": "late", "persistentVolumeClaim": {"claimName": "not-there-yet"}}])
        self.cluster.wait("pod", "theirs", lambda pod: not pod["spec"].get("schedulingGates"))
        self.make_gpu_pod("late", 2)
        self.refusal("late", "Insufficient nvidia.com/gpu")
        type(self).scheduler.stop()
        type(self).scheduler = self.start_scheduler()
        self.addClassCleanup(self.scheduler.stop)
        self.make_gpu_pod("later", 2)
        self.refusal("later", "Insufficient nvidia.com/gpu")
        self.assertNotIn("nodeName", self.cluster.get("pod", "theirs")["spec"])
        drover.wait_for(lambda: "RoomGivenBack" in self.reasons("theirs"), "its room to be given back", 90)
        drover.wait_for(lambda: any(self.cluster.get("pod", name)["spec"].get("nodeName") for name in ("late", "later")), "one to be bound")

    def test_a_pod_that_we_cannot_decide_on_is_told_of_it(self):
        self.make_node("only", 1)
        volumes = [{"name": "disk", "rbd": {"monitors": ["m"], "image": "i", "pool": "p"}}]
        self.make_gpu_pod("refused", 1, volumes=volumes)
        self.refusal("refused", "with the scheduling gate 'drover.dev/queue'")
        self.make_gated_pod("again", 1, volumes=volumes)
        self.assertEqual(self.bound("again")[0], "only")

    def test_a_gang_is_released_together(self):
        self.make_node("only", 4)
        self.make_gated_pod("train-0", 2, schedulingGates=[*GATES, {"name": "example.com/own"}])
        self.make_gated_pod("train-1", 2, schedulingGates=[*GATES, {"name": "example.com/own"}])
        for name in ("train-0", "train-1"):
            self.cluster.kubectl("label", "pod", name, "drover/gang=train")
            self.cluster.kubectl("annotate", "pod", name, "drover/gang-size=2")
        own = '--patch={"spec":{"schedulingGates":[{"name":"example.com/own","$patch":"delete"}]}}'
        self.cluster.kubectl("patch", "pod", "train-0", "--type=strategic", own)
        self.refusal("train-0", "Waits for 1 of 2 pods of the gang")
        self.assertTrue(self.cluster.get("pod", "train-0")["spec"].get("schedulingGates"))
        self.cluster.kubectl("patch", "pod", "train-1", "--type=strategic", own)
        for name in ("train-0", "train-1"):
            self.assertEqual(self.bound(name)[0], "only")


if __name__ == "__main__":
    unittest.main()
