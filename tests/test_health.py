"""A GPU that fails leaves the pool with its reason, alone, and comes back when it has recovered."""

import unittest

import drover


class HealthTest(drover.DaemonTest):
    def tearDown(self):
        self.daemon.end_tasks()

    def gpus(self):
        return self.daemon.api("GET", "/v1/gpus")["gpus"]

    def unfit(self):
        return {gpu["index"]: gpu["unfit"] for gpu in self.gpus() if not gpu["healthy"]}

    def test_an_xid_takes_one_gpu_out_until_the_driver_asks_for_nothing(self):
        self.daemon.set_faults("3: {xid: [31, 119], recovery_action: reset}")
        drover.wait_for(lambda: all(reason in self.unfit().get(3, "") for reason in ("reset", "XID 119")), "GPU 3 to be unfit")
        self.assertEqual(list(self.unfit()), [3])
        self.assertIn("XID 119: its system processor does not answer", self.unfit()[3])
        self.assertNotIn("XID 31", self.unfit()[3])
        self.assertIn("XID 119", self.daemon.cli("gpus").out)
        bad = self.gpus()[3]["uuid"]
        task = self.daemon.submit("sleep", 60, gpus=7)
        self.daemon.wait_until_running(task)
        self.assertNotIn(bad, self.daemon.task(task)["gpus"])
        self.daemon.stop_task(task)
        waits = self.daemon.submit("exit", 0, gpus=8)
        self.daemon.set_faults("3: {xid: [31, 119], recovery_action: none}")
        self.assertEqual(self.daemon.wait_until_final(waits)["state"], "finished")
        self.assertEqual(self.unfit(), {})
        log = self.daemon.read_log()
        self.assertIn(f"({bad}) is fit", log)

    def test_lost_gpus_take_none_with_them(self):
        self.daemon.set_faults("{1: {lost: true}, 2: {slow_ms: 3000}}")
        drover.wait_for(lambda: set(self.unfit()) == {1, 2}, "two GPUs to be unfit")
        self.daemon.set_faults("")
        drover.wait_for(lambda: not self.unfit(), "both to be back")

    def test_a_driver_that_never_answers_keeps_the_daemon_from_nothing(self):
        holder = self.daemon.submit("sleep", 1000, gpus=1)
        self.daemon.wait_until_running(holder)
        self.daemon.set_faults("2: {slow_ms: 3600000}")
        drover.wait_for(lambda: set(self.unfit()) == {2}, "the GPU to be unfit")
        self.assertEqual(self.daemon.stop(), 0)
        self.daemon.start()
        self.assertEqual(self.daemon.task(holder)["state"], "running")
        self.assertIn("does not answer", str(self.daemon.api("GET", "/v1/gpus")))
        self.assertEqual(self.daemon.wait_until_final(self.daemon.submit("exit", 0))["state"], "finished")
        self.daemon.set_faults("")
        drover.wait_for(lambda: len(self.gpus()) == 8 and not self.unfit(), "the next look to find the GPUs")
        self.assertEqual(list(self.daemon.held_gpus().values()), [holder])
        self.assertEqual(self.daemon.stop(), 0)
        self.daemon.start()


if __name__ == "__main__":
    unittest.main()
