"""Tasks as pods of a real cluster, by the same commands as on one machine."""

import time
import unittest

from cluster_daemon import ClusterDaemonTest
from kube.machine import wait_for


class EngineTest(ClusterDaemonTest):
    @property
    def nodes(self):
        return [node.name for node in self.daemon.cluster.nodes]

    def run_probe(self, options, *words):
        return self.daemon.run_probe(["--cpus", "0.1", "--mem", "64MiB", *options], *words)

    def test_a_task_runs_with_its_gpus_its_output_and_its_exit_status(self):
        ran = self.run_probe(["--gpus", "3"], "devices", ",", "say", "hello", ",", "exit", "7")
        self.assertEqual(ran.status, 7, ran)
        devices, hello = ran.out.splitlines()
        record = self.daemon.tasks()[-1]
        self.assertEqual(hello, "hello")
        self.assertEqual(len([name for name in devices.split() if name[6:].isdigit()]), 3, devices)
        self.assertEqual(len(record["gpus"]), 3, record)
        self.assertIn(record["node"], self.nodes)
        wait_for(lambda: not self.daemon.pods(), "the pod to go when its end is recorded")
        self.assertEqual(self.daemon.output(record["task"]["id"]), ran.out)

    def test_one_that_waits_says_why_and_is_stopped(self):
        task = self.daemon.submit("sleep", "1000", gpus=8, name="large")
        self.daemon.wait_until_running(task)
        other = self.daemon.submit("sleep", "1000", gpus=8)
        self.daemon.wait_until_running(other)
        third = self.daemon.submit("sleep", "1000", gpus=8)
        wait_for(lambda: "0/2 nodes are available" in self.daemon.task(third)["reason"], lambda: self.daemon.task(third))
        self.daemon.stop_task(third)
        self.assertEqual(self.daemon.wait_until_final(third)["state"], "killed")
        self.daemon.stop_task(task)
        ended = self.daemon.wait_until_final(task)
        self.assertEqual(ended["state"], "killed", ended)
        self.daemon.end_task(other)
        wait_for(lambda: not self.daemon.pods(), "the pods to go")

    def test_a_gang_starts_together(self):
        body = {"gang": {"size": 2}, "command": ["/probe", "env", "RANK", ",", "env", "MASTER_ADDR", ",", "sleep", "1"], "gpus": 8,
                "cpus": 0.1, "memory": "64MiB"}
        ids = [record["task"]["id"] for record in self.daemon.api("POST", "/v1/tasks", body)["tasks"]]
        records = [self.daemon.wait_until_final(task) for task in ids]
        self.assertEqual([record["state"] for record in records], ["finished"] * 2, records)
        self.assertEqual(len({record["node"] for record in records}), 2, "each needs a whole node")
        said = [self.daemon.output(task).splitlines() for task in ids]
        self.assertEqual([lines[0] for lines in said], ["0", "1"])
        self.assertEqual(said[0][1], said[1][1])
        self.assertRegex(said[0][1], r"^drover-[0-9a-f]+\.drover-root\.svc$")

    def test_after_a_crash_all_is_found_again(self):
        runs = self.daemon.submit("say", "before", ",", "sleep", "4", ",", "say", "after", ",", "exit", "5")
        self.daemon.wait_for_output(runs, "before")
        ends = self.daemon.submit("exit", "3")
        self.daemon.kill()
        time.sleep(3)
        self.daemon.start()
        self.assertEqual(self.daemon.wait_until_final(ends)["exit_status"], 3)
        self.assertEqual(self.daemon.wait_until_final(runs)["exit_status"], 5)
        self.assertEqual(self.daemon.output(runs), "before\nafter\n")


if __name__ == "__main__":
    unittest.main()
