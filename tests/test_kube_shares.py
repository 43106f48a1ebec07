"""Shares of GPUs, and groups of tasks with the same ones, on a real cluster: by claims that its scheduler and its kubelets keep to.

One node gives parts of its GPUs in thousandths, the other one by memory.
"""

import unittest

import drover
from cluster_daemon import ClusterDaemon, ClusterDaemonTest, equipped
from kube.components import KUBERNETES_MINOR
from kube.machine import wait_for
from kube_node import VISIBLE


class ShareDaemon(ClusterDaemon):
    equip = staticmethod(lambda profile: equipped(profile, sharing=("share", "memory")))

    def claims(self):
        return self.cluster.api.request("GET", "/apis/resource.k8s.io/v1/resourceclaims")["items"]


@unittest.skipIf(KUBERNETES_MINOR < (1, 36), "parts of devices are given since 1.36")
class ShareTest(ClusterDaemonTest):
    kind_of_daemon = ShareDaemon
    profile = "k80"  # two GPUs for each node

    def tearDown(self):
        self.daemon.end_tasks()
        wait_for(lambda: not self.daemon.claims(), lambda: f"no claim to be left: {self.daemon.claims()}")

    def run_task(self, *words, **fields):
        task = self.daemon.submit(*(words or ("say", "up", ",", "sleep", 1000)), **fields)
        self.daemon.wait_for_output(task, "up")
        return self.daemon.wait_until_running(task)

    def wait_for_reason(self, task, words):
        wait_for(lambda: words in (self.daemon.task(task).get("reason") or ""), lambda: self.daemon.task(task))
        self.assertIn(words, self.daemon.cli("explain", task).out)

    def test_a_gpu_is_shared_until_it_is_full(self):
        words = ("devices", ",", "env", "DROVER_GPU_SHARE", ",", "env", VISIBLE, ",", "say", "up", ",", "sleep", 1000)
        one, two = (self.run_task(*words, gpus=0.5) for _ in range(2))
        self.assertEqual(one["gpus"], two["gpus"])
        self.assertEqual(len(one["gpus"]), 1, one)
        outputs = [self.daemon.output(record["task"]["id"]).splitlines() for record in (one, two)]
        self.assertEqual(outputs[0], outputs[1], "they see the same device")
        self.assertEqual(outputs[0][1:3], ["0.5", one["gpus"][0]])
        self.assertEqual(one["grants"], two["grants"])
        self.assertEqual(one["grants"][0]["milli"], 500)
        three = self.run_task(gpus=0.75)
        self.assertEqual(three["node"], one["node"], "the other node gives no thousandths")
        self.assertNotEqual(three["gpus"], one["gpus"])
        waits = self.daemon.submit("exit", 0, gpus=0.5)
        self.wait_for_reason(waits, "no GPU with 0.5 left")
        for words in (["gpus"], ["ps"]):
            self.assertIn("0.5", self.daemon.cli(*words).out)
        self.daemon.end_task(one["task"]["id"])
        self.assertEqual(self.daemon.wait_until_final(waits)["state"], "finished")

    def test_shares_of_memory_and_whole_gpus_keep_off_each_other(self):
        words = ("env", "DROVER_GPU_MEMORY", ",", "say", "up", ",", "sleep", 1000)
        one = self.run_task(*words, gpu_share="4GiB")
        self.assertEqual(self.daemon.output(one["task"]["id"]).splitlines()[0], str(4 << 30))
        self.assertEqual(one["grants"][0]["memory"], 4 << 30)
        two, large = self.run_task(gpu_share="4GiB"), self.run_task(gpu_share="8GiB")
        self.assertEqual(one["gpus"], two["gpus"])
        self.assertNotEqual(one["gpus"], large["gpus"])
        whole = [self.run_task(gpus=1) for _ in range(2)]
        self.assertEqual({record["node"] for record in whole} & {one["node"]}, set())
        self.assertEqual(len({gpu for record in (one, large, *whole) for gpu in record["gpus"]}), 4)
        waits = self.daemon.submit("exit", 0, gpus=1)
        wait_for(lambda: "nodes are available" in self.daemon.task(waits)["reason"], lambda: self.daemon.task(waits))
        self.daemon.stop_task(waits)

    def test_a_share_of_each_of_two_gpus(self):
        record = self.run_task(gpus=2, gpu_share=0.25)
        self.assertEqual(len(set(record["gpus"])), 2, record)
        self.assertEqual([grant["tier"] for grant in record["grants"]], ["guarded", "guarded"])

    def test_its_tier_is_what_the_node_says(self):
        for share, tier in (("4GiB", "guarded"), ("512MiB", "counted")):
            with self.subTest(share):
                record = self.run_task(gpu_share=share)
                self.assertEqual([grant["tier"] for grant in record["grants"]], [tier])
                line, = (line for line in self.daemon.cli("ps").out.splitlines() if record["task"]["id"] in line)
                self.assertIn(f"({tier}", line)

    def test_the_members_of_a_group_have_the_same_gpus(self):
        words = ("devices", ",", "env", VISIBLE, ",", "say", "up", ",", "sleep", 1000)
        members = [self.run_task(*words, gpus=2, group="pair") for _ in range(3)]
        self.assertEqual(len({tuple(record["gpus"]) for record in members}), 1, members)
        (output,) = {self.daemon.output(record["task"]["id"]) for record in members}
        self.assertEqual(output.splitlines()[1].split(","), sorted(members[0]["gpus"]))
        self.assertEqual(len(self.daemon.claims()), 1)
        other = self.daemon.submit("exit", 0, gpus=1, group="pair")
        self.wait_for_reason(other, "it asks for other GPUs than its group has")
        self.daemon.kill()
        self.daemon.start()
        for record in members[:2]:
            self.daemon.end_task(record["task"]["id"])
        late = self.run_task(gpus=2, group="pair")
        self.assertEqual(late["gpus"], members[0]["gpus"], "the third still has them")
        self.daemon.end_task(members[2]["task"]["id"])
        self.daemon.end_task(late["task"]["id"])
        self.assertEqual(self.daemon.wait_until_final(other)["state"], "finished")

    def test_a_group_of_a_share_and_of_particular_gpus(self):
        share = [self.run_task(gpus=0.5, group="half") for _ in range(2)]
        self.assertEqual(share[0]["gpus"], share[1]["gpus"])
        self.assertEqual(self.run_task(gpus=0.5)["gpus"], share[0]["gpus"], "half of it is free")
        particular = [self.run_task(gpus=1, gpu_model="K80", group="old") for _ in range(2)]
        self.assertEqual(particular[0]["gpus"], particular[1]["gpus"])

    def test_nobody_comes_into_the_group_of_another_user(self):
        own = self.run_task(gpus=2, group="pair")
        stranger = self.daemon.submit("say", "up", ",", "sleep", 1000, gpus=2, group="pair", uid=drover.NOBODY)
        self.daemon.wait_until_running(stranger)
        self.assertNotEqual(own["gpus"], self.daemon.task(stranger)["gpus"])
        self.assertEqual(len({claim["metadata"]["namespace"] for claim in self.daemon.claims()}), 2)

    def test_a_gang_of_shares(self):
        body = {"gang": {"size": 3}, "command": [str(self.daemon.probe), "say", "up", ",", "sleep", "1"], "gpus": 0.5, "cpus": 0.1,
                "memory": "64MiB"}
        for record in self.daemon.api("POST", "/v1/tasks", body)["tasks"]:
            self.assertEqual(self.daemon.wait_until_final(record["task"]["id"])["state"], "finished")

    def test_after_a_crash_at_any_moment_each_has_its_claim(self):
        tasks = []
        for moment in range(6):
            tasks.append(self.daemon.submit("sleep", 1, gpus=0.25))
            tasks.append(self.daemon.submit("sleep", 1, gpus=1, group="crash"))
            if moment % 2:
                self.daemon.kill()
                self.daemon.start()
        for task in tasks:
            self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished", self.daemon.task(task))

    def test_what_no_gpu_gives_is_refused_or_waits_with_a_reason(self):
        with self.assertRaises(drover.ApiError) as refused:
            self.daemon.submit("exit", 0, gpu_share="100GiB")
        self.assertIn("/gpu_share", str(refused.exception))
        with self.assertRaises(drover.ApiError) as refused:
            self.daemon.submit("exit", 0, gpus=3, group="large")
        self.assertIn("GPU", str(refused.exception))
        node = next(node["metadata"]["name"] for node in self.daemon.cluster.list("nodes")
                    if self.daemon.cluster.nodes[1].name == node["metadata"]["name"])
        task = self.daemon.submit("exit", 0, gpus=0.5, constraints={"hostname": [node]})
        self.wait_for_reason(task, "parts are given by 'share'")
        self.daemon.stop_task(task)


if __name__ == "__main__":
    unittest.main()
