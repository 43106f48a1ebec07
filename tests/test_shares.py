"""Shares of one GPU, CPUs near the GPUs, and work that makes room for more urgent work."""

import os
import tempfile
import unittest

import drover


class ShareTest(drover.DaemonTest):
    profile = "k80"  # two GPUs

    def tearDown(self):
        self.daemon.end_tasks()

    def holders(self):
        """UUID -> thousandths that are held, summed over the running tasks."""
        held = {}
        for record in self.daemon.tasks():
            if record["state"] in ("starting", "running", "stopping"):
                for grant in record["grants"]:
                    held[grant["gpu"]] = held.get(grant["gpu"], 0) + grant["milli"]
        return held

    def test_several_tasks_share_one_gpu_until_it_is_full(self):
        words = ("env", "DROVER_GPU_SHARE", ",", "env", "NVIDIA_VISIBLE_DEVICES", ",", "devices", ",", "say", "up", ",",
                 "sleep", 600)
        first = self.daemon.submit(*words, gpu_share=0.5)
        second = self.daemon.submit(*words, gpu_share=0.25)
        for task in (first, second):
            self.daemon.wait_for_output(task, "up")
        self.assertEqual(self.daemon.task(first)["gpus"], self.daemon.task(second)["gpus"])
        share, visible, devices = self.daemon.output(first).splitlines()[:3]
        self.assertEqual((share, visible), ("0.5", self.daemon.task(first)["gpus"][0]))
        self.assertIn("nvidia", devices)
        self.assertEqual(list(self.holders().values()), [750])
        whole = self.daemon.submit("say", "up", ",", "sleep", 600, gpus=1)
        self.daemon.wait_for_output(whole, "up")
        self.assertEqual(sorted(self.holders().values()), [750, 1000])
        waiting = self.daemon.submit("sleep", 0, gpu_share=0.251)
        self.assertEqual(self.daemon.task(waiting)["state"], "queued")
        self.daemon.kill()
        self.daemon.start()
        self.daemon.wait_until_running(second)
        self.assertEqual(sorted(self.holders().values()), [750, 1000])
        self.assertEqual(self.daemon.task(waiting)["state"], "queued")
        self.daemon.stop_task(second, force=True)
        self.assertEqual(self.daemon.wait_until_final(waiting)["state"], "finished")

    def test_a_share_by_memory_counts_in_the_same_way(self):
        task = self.daemon.submit("env", "DROVER_GPU_MEMORY", gpu_share="4GiB")
        record = self.daemon.wait_until_final(task)
        self.assertEqual(record["grants"][0]["memory"], 4 << 30)
        self.assertEqual(self.daemon.output(task), f"{4 << 30}\n")

    def test_explain_says_where_a_task_is_pinned_or_why_it_is_not(self):
        task = self.daemon.submit("sleep", 600, gpus=1)
        self.daemon.wait_until_running(task)
        said = self.daemon.cli("explain", task).out
        if self.daemon.task(task)["cpus"]:
            self.assertRegex(said, "pinned")


class PreemptionTest(drover.DaemonTest):
    profile = "k80"

    def tearDown(self):
        self.daemon.end_tasks()

    def test_urgent_work_takes_the_place_of_other_work_that_starts_afresh_later(self):
        low = self.daemon.submit("env", "DROVER_PREEMPTIONS", ",", "append", "ran", "line", ",", "say", "up", ",", "sleep",
                                 600, gpus=2)
        self.daemon.wait_for_output(low, "up")
        high = self.daemon.submit("sleep", 0.5, gpus=1, priority=10)
        self.assertEqual(self.daemon.wait_until_final(high)["state"], "finished")
        drover.wait_for(lambda: self.daemon.output(low).count("up") == 2, "the task to start afresh")
        record = self.daemon.wait_until_running(low)
        self.assertEqual(record["preemptions"], 1)
        self.assertEqual(self.daemon.file(low, "ran"), "line\nline\n", "the sandbox stays")
        self.assertEqual(self.daemon.output(low).splitlines(), ["(unset)", "ok", "up", "1", "ok", "up"])

    def test_only_root_is_urgent_by_itself(self):
        with self.assertRaises(drover.ApiError) as refused:
            self.daemon.submit("sleep", 0, uid=drover.NOBODY, priority=1)
        self.assertEqual(refused.exception.status, 403)

    def test_a_daemon_that_dies_meanwhile_forgets_neither(self):
        for moment in range(4):
            with self.subTest(moment=moment):
                low = self.daemon.submit("append", "ran", "line", ",", "say", "up", ",", "sleep", 0.3, gpus=2)
                self.daemon.wait_for_output(low, "up")
                high = self.daemon.submit("sleep", 0.1, gpus=2, priority=10)
                if moment > 0:
                    drover.wait_for(lambda: self.daemon.task(low)["preempted"] or self.daemon.task(low)["preemptions"]
                                    or self.daemon.task(low)["state"] == "finished", "the task to be preempted")
                if moment > 1:
                    drover.wait_for(lambda: self.daemon.task(low)["state"] != "stopping", "the task to stop")
                if moment > 2:
                    self.daemon.wait_until_final(high)
                self.daemon.kill()
                self.daemon.start()
                self.assertEqual(self.daemon.wait_until_final(high)["state"], "finished")
                record = self.daemon.wait_until_final(low)
                self.assertEqual((record["state"], record["exit_status"]), ("finished", 0), record)
                self.assertIn(self.daemon.file(low, "ran").count("line"), range(1, record["preemptions"] + 2))


class PinningTest(unittest.TestCase):
    """A simulated machine of the two CPUs that this host surely has, with its GPUs at the second."""

    def test_a_task_with_gpus_runs_on_the_cpus_near_them(self):
        if not {0, 1} <= os.sched_getaffinity(0) or os.geteuid() != 0:
            self.skipTest("needs root and the CPUs 0 and 1")
        profile = (drover.ROOT / "sim/profiles/k80.yaml").read_text()
        for old, new in (("cpus: 32", "cpus: 2"), ('"0-7,16-23"', '"0"'), ('"8-15,24-31"', '"1"'), ("numa: 0,", "numa: 1,")):
            self.assertIn(old, profile)
            profile = profile.replace(old, new)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(profile)
            file.flush()
            daemon = drover.Daemon(file.name)
            self.addCleanup(lambda: self.assertEqual(daemon.close(), []))
            daemon.start()
            allowed = ["grep", "Cpus_allowed_list", "/proc/self/status"]
            tasks = {gpus: daemon.submit(command=allowed, gpus=gpus) for gpus in (1, 0)}
            for task in tasks.values():
                self.assertEqual(daemon.wait_until_final(task)["state"], "finished")
            self.assertEqual(daemon.output(tasks[1]).split()[1], "1")
            self.assertEqual(daemon.task(tasks[1])["cpus"], [1])
            self.assertNotEqual(daemon.output(tasks[0]).split()[1], "1", "without GPUs it may go anywhere")


if __name__ == "__main__":
    unittest.main()
