"""GPUs and the machine out of use for new work: `drover cordon`, `uncordon`, `drain`."""

import subprocess
import unittest

import drover


class CordonTest(drover.DaemonTest):
    def tearDown(self):
        self.daemon.end_tasks()
        self.daemon.cli("uncordon", "--machine")
        self.daemon.cli("uncordon", *(str(number) for number in range(8)))

    def gpu_of(self, task):
        (uuid,) = self.daemon.task(task)["gpus"]
        (gpu,) = [gpu for gpu in self.daemon.api("GET", "/v1/gpus")["gpus"] if gpu["uuid"] == uuid]
        return gpu

    def run_on_one(self, **fields):
        task = self.daemon.submit("sleep", 1000, gpus=1, **fields)
        self.daemon.wait_until_running(task)
        return task

    def test_a_gpu_gets_no_new_work_and_what_runs_goes_on(self):
        task = self.run_on_one()
        gpu = self.gpu_of(task)
        ran = self.daemon.cli("cordon", str(gpu["index"]), "--reason", "a fan is loud")
        self.assertEqual(ran.status, 0, ran)
        self.assertIn(task, ran.out)
        self.assertEqual(self.gpu_of(task)["cordoned"], "cordoned by root: a fan is loud")
        self.assertIn("a fan is loud", self.daemon.cli("gpus").out)
        self.daemon.end_task(task)
        others = [self.run_on_one() for _ in range(7)]
        self.assertNotIn(gpu["uuid"], [self.gpu_of(other)["uuid"] for other in others])
        waits = self.daemon.submit("sleep", 1000, gpus=1)
        self.assertIn("cordoned by root: a fan is loud", self.daemon.cli("explain", waits).out)
        self.assertIn("1 GPU is wanted and 0 of 8 are free, 1 cordoned", self.daemon.cli("ps").out)
        self.daemon.kill()
        self.daemon.start()  # it outlives the daemon
        self.assertEqual(self.daemon.task(waits)["state"], "queued")
        self.assertEqual(self.daemon.cli("uncordon", gpu["uuid"]).status, 0)
        self.daemon.wait_until_running(waits)
        self.assertEqual(self.gpu_of(waits)["cordoned"], "")

    def test_the_machine(self):
        self.assertEqual(self.daemon.cli("cordon", "--machine").status, 0)
        task = self.daemon.submit("sleep", 1000)
        self.assertEqual(self.daemon.task(task)["state"], "queued")
        self.assertIn("cordoned (by root)", self.daemon.cli("explain", task).out)
        self.assertIn("is cordoned by root", self.daemon.cli("node").out)
        self.assertEqual(self.daemon.cli("uncordon", "--machine").status, 0)
        self.daemon.wait_until_running(task)

    def test_a_drain_waits_for_what_runs(self):
        task = self.run_on_one()
        index = str(self.gpu_of(task)["index"])
        late = self.daemon.cli("drain", index, "--timeout", "1s")
        self.assertEqual(late.status, 75, late)
        self.assert_one_sentence(late, "1 task still runs there")
        draining = subprocess.Popen(self.daemon.cli_command("drain", index), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                    env={**self.daemon.environment, "DROVER_SOCKET": str(self.daemon.socket)}, text=True)
        self.assertIsNone(draining.poll())
        self.daemon.end_task(task)
        _, errors = draining.communicate(timeout=drover.PATIENCE)
        self.assertEqual((draining.returncode, errors.count("nothing runs there")), (0, 1), errors)
        other = self.run_on_one()
        self.assertEqual(self.daemon.cli("drain", str(self.gpu_of(other)["index"]), "--stop").status, 0)
        self.assertEqual(self.daemon.task(other)["state"], "killed")

    def test_who_may_not_and_what_makes_no_sense(self):
        refused = self.daemon.cli("cordon", "0", uid=drover.NOBODY)
        self.assertEqual(refused.status, 77, refused)
        self.assert_one_sentence(self.daemon.cli("cordon", "12"), "There is no GPU '12'")
        self.assert_one_sentence(self.daemon.cli("cordon"), "--machine")
        self.assert_one_sentence(self.daemon.cli("uncordon", "0"), "is not cordoned")
        self.assertEqual(self.daemon.cli("cordon", "1").status, 0)
        self.assertEqual(self.daemon.cli("uncordon", "0", "1", "2").status, 66)
        self.assertEqual([gpu["cordoned"] for gpu in self.daemon.api("GET", "/v1/gpus")["gpus"]], [""] * 8)


if __name__ == "__main__":
    unittest.main()
