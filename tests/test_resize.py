"""Another share of a simulated GPU for a task that runs: its programs get more without being started again, or no more until they hold less;
what was said is kept, whenever the daemon is killed."""

import concurrent.futures
import json
import os
import re
import signal
import threading
import unittest

import drover
import test_guard
import test_memory_limits
from test_guard import BEHIND, CONTEXT, GIB


class GuardedTest(test_guard.ImagesTest):
    def resize(self, task, share, uid=None):
        return self.daemon.api("PATCH", f"/v1/tasks/{task}", {"gpu_share": share}, uid=uid)

    def refused(self, task, share):
        with self.assertRaises(drover.ApiError) as refused:
            self.resize(task, share)
        return str(refused.exception)

    def exec_hold(self, task, mib):
        """The exit status of another program of the task that wants so much."""
        return self.daemon.cli("exec", task, "--", "/cuda_check", "hold", str(mib)).status

    def told(self, task, kind):
        return [event["message"] for event in self.daemon.api("GET", f"/v1/events?follow=false&kind={kind}")["events"] if event["task"] == task]

    def test_a_program_that_runs_gets_more(self):
        task = self.submit("hold", 6 * GIB, "insist", 5 * GIB, "info", "sleep", 1000)
        self.daemon.wait_for_output(task, f"held {6 * GIB}")
        self.assertEqual(self.exec_hold(task, 2 * GIB), 2)
        said = self.daemon.cli("resize", task, "--gpu-share", "12GiB").out
        self.assertIn(f"Task {task} has 12 GiB of 0 (guarded)", said)
        self.daemon.wait_for_output(task, f"memory {GIB - CONTEXT} {12 * GIB}")
        record = self.daemon.task(task)
        self.assertEqual([(grant["memory"], grant["tier"]) for grant in record["grants"]], [(12 << 30, "guarded")])
        self.assertEqual(len(self.told(task, "share_resized")), 1)
        self.assertRegex(self.told(task, "share_resized")[0], r"it has 12 GiB \(0\.\d+\) of GPU 0 instead of 8 GiB \(0\.\d+\)")
        (_, limit), = [one for one in self.series("drover_container_gpu_memory_limit_bytes") if one[0]["task_id"] == task]
        self.assertEqual(limit, 12 << 30)
        for words, said in ((("ps",), "12 GiB"), (("show", task), "12 GiB"), (("gpus",), "0.303 (guarded)")):
            self.assertIn(said, self.daemon.cli(*words).out, words)

    def test_who_holds_more_than_a_smaller_share_keeps_it_and_gets_no_more(self):
        task = self.hold(2 * GIB)
        second = self.start_cli("exec", task, "--", "/cuda_check", "hold", str(4 * GIB), "sleep", "1000")
        pid = drover.wait_for(lambda: self.holder_of_more(task, 4 * GIB), "it to hold its memory")
        said = json.loads(self.daemon.cli("resize", task, "--gpu-share", "4GiB", "--json").out)
        self.assertEqual((said["grants"][0]["memory"], said["shrunk_from"]), (4 << 30, 8 << 30))
        drover.wait_for(lambda: self.told(task, "share_overrun"), "its owner to be told")
        self.assertNotEqual(self.exec_hold(task, 16), 0, "not even a context")
        self.assertEqual(self.daemon.task(task)["state"], "running", "it was within its share")
        os.kill(pid, signal.SIGKILL)
        second.wait()
        drover.wait_for(lambda: self.exec_hold(task, GIB) == 0, "there to be room again")
        self.assertEqual(self.exec_hold(task, 2 * GIB), 2)

    def holder_of_more(self, task, mib):
        gpus = self.daemon.api("GET", "/v1/gpus?usage=true")["gpus"]
        return next((each["pid"] for gpu in gpus for each in gpu["usage"]["processes"]
                     if each["task"] == task and each["memory_bytes"] > mib << 20), None)

    def test_who_goes_round_the_guard_is_ended_when_he_takes_more_than_he_had(self):
        task = self.hold(6 * GIB, env={"CUDA_LIBRARY": BEHIND})
        self.resize(task, "4GiB")
        drover.wait_for(lambda: self.told(task, "share_overrun"), "its owner to be told")
        for _ in range(2):
            self.assertEqual(self.daemon.task(task)["state"], "running", "it holds what it held")
            self.daemon.kill()
            self.daemon.start()
        more = self.start_cli("exec", task, "--", "/cuda_check", "hold", str(GIB), "sleep", "1000")
        self.assertEqual(self.daemon.wait_until_final(task)["cause"], "share")
        more.wait()

    def test_the_daemon_is_killed_before_it_comes_to_the_pages(self):
        task = self.submit("hold", 6 * GIB, "insist", 5 * GIB, "sleep", 1000)
        self.daemon.wait_for_output(task, f"held {6 * GIB}")
        page = self.daemon.state / "tasks" / task / "share/limits"
        before = page.read_bytes()
        self.resize(task, "12GiB")
        self.daemon.kill()
        with page.open("r+b") as file:  # the same file, which the container has mounted
            file.write(before)
        self.daemon.start()
        self.daemon.wait_for_output(task, f"held {5 * GIB}")
        self.assertEqual(self.daemon.task(task)["grants"][0]["memory"], 12 << 30)

    def test_of_two_who_grow_into_the_same_room_one_does(self):
        tasks = [self.daemon.submit(command=["/probe", "sleep", "1000"], image=self.images["plain"], gpu_share="15GiB") for _ in range(2)]
        for task in tasks:
            self.daemon.wait_until_running(task)
        self.assertEqual(*(self.daemon.task(task)["gpus"] for task in tasks))
        for _ in range(10):
            barrier = threading.Barrier(2)

            def grow(task, barrier=barrier):
                barrier.wait()
                try:
                    return bool(self.resize(task, "22GiB"))
                except drover.ApiError as error:
                    self.assertIn("are free with the 15 GiB that the task has", str(error))
                    return False

            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                self.assertEqual(sorted(pool.map(grow, tasks)), [False, True])
            self.assertEqual(sorted(self.daemon.task(task)["grants"][0]["memory"] >> 30 for task in tasks), [15, 22])
            self.assertTrue(self.daemon.grants_are_sound())
            for task in tasks:
                self.resize(task, "15GiB")

    def test_what_is_given_back_starts_who_waits(self):
        tasks = [self.daemon.submit(command=["/probe", "sleep", "1000"], image=self.images["plain"], gpu_share="30GiB") for _ in range(8)]
        for task in tasks:
            self.daemon.wait_until_running(task)
        waits = self.daemon.submit(command=["/probe", "sleep", "1000"], image=self.images["plain"], gpu_share="20GiB")
        self.assertEqual(self.daemon.task(waits)["state"], "queued")
        self.resize(tasks[0], "10GiB")
        self.daemon.wait_until_running(waits)
        self.assertEqual(self.daemon.task(waits)["gpus"], self.daemon.task(tasks[0])["gpus"])

    def test_time_follows(self):
        most, least = (self.submit("share", 2000, 10, gpu_share=share) for share in (0.75, 0.2))
        for task in (most, least):
            self.daemon.wait_until_running(task)
        self.resize(most, 0.2)
        self.resize(least, 0.75)
        ran = {}
        for task in (most, least):
            self.daemon.wait_until_final(task)
            ran[task] = int(re.search(r"shared (\d+)", self.daemon.output(task))[1])
        self.assertLess(1.3 * ran[most], ran[least], "they have changed places")

    def test_what_cannot_be_is_refused_in_a_sentence(self):
        task = self.hold(100)
        for share, words in (("41GiB", "are asked for"), ("512MiB", "Nothing is held to less than 1 GiB"), (1.0, "less than a whole GPU"),
                             (0, "more than 0"), (-0.5, "more than 0"), (2, "at most 1"), ("-4GiB", "gpu_share"), ("much", "gpu_share"),
                             (None, "gpu_share"), ([1], "gpu_share"), (True, "gpu_share")):
            with self.subTest(share):
                self.assertIn(words, self.refused(task, share))
        counted = self.hold(10, share_by="none")
        self.resize(counted, "512MiB")
        self.assertEqual(self.daemon.task(counted)["grants"][0]["tier"], "counted")
        whole = self.hold(10, gpu_share=None, gpus=1)
        self.assertIn("whole GPUs", self.refused(whole, 0.5))
        self.assertIn("group 'team'", self.refused(self.hold(10, group="team"), "2GiB"))
        self.assertIn("no GPU", self.refused(self.daemon.submit("sleep", 1000), 0.5))
        self.assertIn("There is no task", self.refused("nobody", 0.5))
        refused = self.daemon.cli("resize", task, "--gpu-share", "41GiB")
        self.assertNotEqual(refused.status, 0)
        self.assertIn("--gpu-share", refused.err)


class HardTest(test_memory_limits.UnifiedTest):
    """Who is held by the driver itself."""

    def test_the_drivers_limit_follows_also_when_the_daemon_is_killed(self):
        task = self.submit("hold", 6 * GIB, "insist", 5 * GIB, "sleep", 1000, env={"CUDA_LIBRARY": BEHIND})
        self.daemon.wait_for_output(task, f"held {6 * GIB}")
        self.assertEqual(self.daemon.task(task)["grants"][0]["tier"], "hard")
        self.daemon.api("PATCH", f"/v1/tasks/{task}", {"gpu_share": "12GiB"})
        self.daemon.kill()
        self.daemon.start()
        self.daemon.wait_for_output(task, f"held {5 * GIB}")
        self.daemon.api("PATCH", f"/v1/tasks/{task}", {"gpu_share": "4GiB"})
        drover.wait_for(lambda: "CUDA_ERROR_OUT_OF_MEMORY" in self.daemon.cli("exec", task, "--", "/cuda_check", "hold", "16").err,
                        "the driver to refuse it even a context")
        self.assertEqual(self.daemon.task(task)["state"], "running")


if __name__ == "__main__":
    unittest.main()
