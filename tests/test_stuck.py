"""Tasks whose processes take no signal, not even SIGKILL, as those that hang in a driver: frozen, until the test thaws them.

With DROVER_TEST_STUCK as many as that.
"""

import os
import pathlib
import time
import unittest

import drover

FREEZER = pathlib.Path("/sys/fs/cgroup/freezer")
COUNT = int(os.environ.get("DROVER_TEST_STUCK", "20"))


@unittest.skipUnless((FREEZER / "tasks").exists(), "needs control groups of version 1: of version 2, what is frozen can be killed")
class StuckTest(drover.DaemonTest):
    def setUp(self):
        self.stuck = []
        self.addCleanup(self.daemon.end_tasks)
        self.addCleanup(self.thaw)

    def put_state(self, task, state):
        for path in drover.cgroups_of([task]):
            if path.startswith(str(FREEZER)):
                pathlib.Path(path, "freezer.state").write_text(state)

    def thaw(self):
        for task in self.stuck:
            self.put_state(task, "THAWED")

    def start_stuck(self, count, **fields):
        started = [self.daemon.submit("say", "up", ",", "sleep", 1000, grace="1s", name=f"stuck{i}", **fields) for i in range(count)]
        for task in started:
            self.daemon.wait_for_output(task, "up")
            self.stuck.append(task)
            self.put_state(task, "FROZEN")
        return started

    def why(self, task):
        return "; ".join(self.daemon.api("GET", f"/v1/tasks/{task}/explain")["reasons"])

    def test_what_does_not_end_keeps_its_gpus_and_says_so(self):
        stuck, = self.start_stuck(1, gpus=8)
        self.daemon.stop_task(stuck)
        waiting = self.daemon.submit("sleep", 1, gpus=1)
        drover.wait_for(lambda: "hangs in the kernel" in self.why(stuck), "the reason")
        self.assertRegex(self.why(stuck), r"it was killed and has not ended: process \d+ \(.+\) hangs in the kernel.*; until then nobody else is given its GPUs")
        self.assertIn("hangs in the kernel", self.daemon.cli("ps").out)
        self.assertEqual(self.daemon.task(waiting)["state"], "queued")
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.daemon.task(waiting)["state"], "queued", "nor after a restart")
        drover.wait_for(lambda: "hangs in the kernel" in self.why(stuck), "the reason, anew")
        self.thaw()
        self.assertEqual(self.daemon.wait_until_final(stuck)["state"], "killed")
        self.assertEqual(self.daemon.wait_until_final(waiting)["state"], "finished")

    def test_nobody_waits_for_many_that_do_not_end(self):
        tasks = self.start_stuck(COUNT)
        shims = self.daemon.shims()
        for task in tasks:
            self.daemon.stop_task(task)
        slowest = 0
        for _ in range(10):
            began = time.monotonic()
            self.daemon.wait_until_final(self.daemon.submit("say", "x"))
            slowest = max(slowest, time.monotonic() - began)
        for pid in shims:  # and nobody watches over them any more
            os.kill(pid, 9)
        for _ in range(10):
            began = time.monotonic()
            self.daemon.wait_until_final(self.daemon.submit("say", "x"))
            slowest = max(slowest, time.monotonic() - began)
        self.assertEqual({self.daemon.task(task)["state"] for task in tasks}, {"stopping"})
        print(f"\n{COUNT} tasks that do not end: the slowest of 20 others took {slowest:.2f} s from submission to end", flush=True)
        self.thaw()
        for task in tasks:
            self.daemon.wait_until_final(task)
        self.assertLess(slowest, drover.PATIENCE / 2)


if __name__ == "__main__":
    unittest.main()
