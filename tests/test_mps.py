"""MPS between the tasks of a group on one machine: one daemon for them, there while they are, and nothing of it afterwards."""

import os
import random
import time

import drover
import mps_host

GROUP = "group-0-train"
CLIENT = ("exists", f"{mps_host.INSIDE}/control", ",", "write", f"{mps_host.INSIDE}/mine", "x", ",", "write", "/dev/shm/mine", "x", ",")
IS_CLIENT = [mps_host.INSIDE, "ok", "EROFS", "ok", "up"]


class MpsTest(mps_host.HostTest, drover.DaemonTest):
    kind_of_daemon = drover.Daemon  # pods have claims for it

    def test_the_tasks_of_a_group_are_clients_of_one_daemon(self):
        first = self.start(*CLIENT)
        self.assertEqual(self.daemon.output(first).splitlines(), IS_CLIENT)
        self.assertEqual(self.host.modes(), {self.gpus_of(first)[0]: mps_host.EXCLUSIVE})
        self.assertEqual(self.host.groups(), [GROUP])
        before = self.host.processes()
        self.assertEqual(len(before), 2)
        second = self.start("exists", "/dev/shm/mine", ",")
        self.assertEqual(self.daemon.output(second).splitlines(), [mps_host.INSIDE, "ok", "up"])
        self.assertEqual((self.gpus_of(second), self.host.processes()), (self.gpus_of(first), before))
        self.end(first)
        self.assertEqual(self.host.processes(), before)
        self.end(second)
        self.assertEqual(self.host.left(), [], "it is gone before the end is told")

    def test_an_image_changes_nothing(self):
        image = drover.make_probe_image(self.daemon.folder / "image", self.daemon.probe)
        task = self.daemon.submit(command=["/probe", "env", mps_host.PIPE, ",", *CLIENT, "say", "up", ",", "sleep", "600"],
                                  image=image, gpus=2, group="train", share_by="mps")
        self.daemon.wait_for_output(task, "up")
        self.assertEqual(self.daemon.output(task).splitlines(), IS_CLIENT)
        self.assertEqual(set(self.host.modes()), set(self.gpus_of(task)))
        self.end(task)
        self.assertEqual(self.host.left(), [])

    def test_what_the_task_says_of_itself_stays_its_own(self):
        task = self.start("env", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", ",",
                          env={"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "30", mps_host.PIPE: "/elsewhere"})
        self.assertEqual(self.daemon.output(task).splitlines(), [mps_host.INSIDE, "30", "up"])

    def test_groups_have_daemons_of_their_own(self):
        one, other = self.start(), self.start(uid=60001)
        self.assertEqual(self.host.groups(), [GROUP, "group-60001-train"])
        self.assertFalse(set(self.gpus_of(one)) & set(self.gpus_of(other)))
        self.end(one)
        self.assertEqual(self.host.groups(), ["group-60001-train"])
        self.assertEqual(len(self.host.processes()), 2)

    def test_a_group_may_come_again(self):
        for _ in range(3):
            self.end(self.start())
            self.assertEqual(self.host.left(), [])

    def test_a_gpu_is_given_on_as_it_was(self):
        group = self.start(gpus=8)
        waiting = self.daemon.submit("env", mps_host.PIPE, ",", "sleep", "600", gpus=1)
        self.assertEqual(self.daemon.task(waiting)["state"], "queued")
        self.end(group)
        self.daemon.wait_until_running(waiting)
        self.assertEqual(self.host.left(), [])

    def test_lists_say_so(self):
        task = self.start()
        self.assertEqual(self.daemon.task(task)["task"]["share_by"], "mps")
        self.assertIn("by MPS", self.daemon.cli("show", task).out)
        self.assertIn(f"root {task} by MPS (group train)", self.daemon.cli("gpus").out)
        self.assertIn(" by MPS, with its group 'train'", self.daemon.cli("explain", task).out)
        holder, = [holder for gpu in self.daemon.api("GET", "/v1/gpus")["gpus"] for holder in gpu["holders"]]
        self.assertEqual((holder["share_by"], holder["group"]), ("mps", "train"))


class RefusalTest(mps_host.HostTest, drover.DaemonTest):
    kind_of_daemon = drover.Daemon

    def test_what_contradicts_itself(self):
        for fields, words in (({"gpus": 1}, "group"), ({"group": "g", "gpu_share": "4GiB"}, "whole GPUs"),
                              ({"group": "g", "gpus": 0.5}, "whole GPUs"), ({"group": "g"}, "no GPUs")):
            self.assertIn(words, self.refusal(share_by="mps", **fields), fields)

    def test_all_members_say_the_same(self):
        one = self.start()
        self.assertIn("has its GPUs by MPS", self.refusal(gpus=1, group="train"))
        self.end(one)
        plain = self.daemon.submit("sleep", 600, gpus=1, group="train")
        self.daemon.wait_until_running(plain)
        self.assertIn("has its GPUs without MPS", self.refusal(gpus=1, group="train", share_by="mps"))

    def test_a_compute_mode_that_somebody_has_set_stays(self):
        self.host.settings.mkdir(exist_ok=True)
        gpus = [gpu["uuid"] for gpu in self.daemon.api("GET", "/v1/gpus")["gpus"]]
        for gpu in gpus:
            drover.replace(self.host.settings / f"{gpu}.compute-mode", "2\n")
        self.addCleanup(lambda: [drover.replace(self.host.settings / f"{gpu}.compute-mode", "0\n") for gpu in gpus])
        task = self.daemon.submit("exit", 0, gpus=1, group="train", share_by="mps")
        self.assertIn("has the compute mode Prohibited, which somebody has set", self.daemon.wait_until_final(task)["reason"])
        self.assertEqual(set(self.host.modes().values()), {"2"})


class FailureTest(mps_host.HostTest, drover.DaemonTest):
    kind_of_daemon = drover.Daemon

    def stuck(self):
        gpus = [gpu["uuid"] for gpu in self.daemon.api("GET", "/v1/gpus")["gpus"]]
        return [self.host.settings / f"{gpu}.stuck" for gpu in gpus]

    def mend(self):
        for path in self.stuck():
            path.unlink(missing_ok=True)

    def test_a_gpu_that_cannot_be_put_back_is_given_to_nobody(self):
        self.host.settings.mkdir(exist_ok=True)
        self.addCleanup(self.mend)
        for path in self.stuck():
            path.touch()
        # It fails when MPS is there already: there is no such image.
        first = self.daemon.submit("exit", 0, gpus=8, group="train", share_by="mps", image="oci:/nothing/here")
        told = "its GPUs are its own until they are as they were"
        drover.wait_for(lambda: told in self.daemon.cli("show", first).out, lambda: f"it to be told: {self.daemon.cli('show', first).out}")
        second = self.daemon.submit("sleep", 600, gpus=1)
        for _ in range(2):
            self.assertEqual([self.daemon.task(task)["state"] for task in (first, second)], ["starting", "queued"])
            self.assertEqual(len(self.host.modes()), 8)
            self.daemon.kill()
            self.daemon.start()
        self.mend()
        record = self.daemon.wait_until_final(first)
        self.assertIn("/nothing/here", record["reason"])
        self.daemon.wait_until_running(second)
        self.assertEqual(self.host.left(), [])


class SurvivalTest(mps_host.HostTest, drover.DaemonTest):
    kind_of_daemon = drover.Daemon

    def test_the_daemon_may_come_and_go(self):
        task = self.start()
        before = self.host.processes()
        self.daemon.kill()
        self.daemon.start()
        self.daemon.wait_until_running(task)
        self.assertEqual(self.host.processes(), before)
        self.start()
        self.assertEqual(self.host.processes(), before)

    def test_a_group_that_ended_meanwhile_has_none(self):
        task = self.daemon.submit("say", "up", ",", "sleep", "1", gpus=1, group="train", share_by="mps")
        self.daemon.wait_for_output(task, "up")
        self.daemon.kill()
        drover.wait_for(lambda: not self.daemon.shims(), "the task to end")
        self.assertTrue(self.host.left())
        self.daemon.start()
        self.daemon.wait_until_final(task)
        self.assertEqual(self.host.left(), [])

    def test_a_daemon_of_mps_that_dies_is_started_again_and_told_of(self):
        task = self.start()
        for is_there in (True, False):
            before = self.host.processes()
            if not is_there:
                self.daemon.kill()
            for pid in before:
                mps_host.end_process(pid)
            if not is_there:
                self.daemon.start()
            drover.wait_for(lambda before=before: len(set(self.host.processes()) - set(before)) == 2, self.daemon.read_log)
            drover.wait_for(lambda is_there=is_there: len(self.losses(task)) == (1 if is_there else 2), lambda: f"{self.daemon.api('GET', '/v1/events')}")
        self.assertIn("the MPS daemon of its group 'train' had ended", self.losses(task)[-1])
        self.assertIn(f"the MPS control daemon of '{GROUP}' had ended: it is started again", self.daemon.read_log())

    def losses(self, task):
        return [event["message"] for event in self.daemon.api("GET", "/v1/events?follow=false&kind=mps_restarted")["events"] if event["task"] == task]

    def test_kill_at_any_moment_leaves_nothing(self):
        seed = int(os.environ.get("DROVER_TEST_SEED", random.randrange(1 << 30)))
        print(f"seed {seed}", flush=True)
        chance = random.Random(seed)
        for _ in range(int(os.environ.get("DROVER_TEST_MPS_ROUNDS", "20"))):
            tasks = [self.daemon.submit("sleep", "0.1", gpus=1, group=group, share_by="mps") for group in ("train", "train", "other")]
            time.sleep(chance.random() * 0.8)
            if chance.random() < 0.3:
                for pid in self.host.processes()[:1]:
                    mps_host.end_process(pid)
            self.daemon.kill()
            self.daemon.start()
            for task in tasks:
                self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished")
            self.assertEqual(self.host.left(), [])
