"""Tasks wait for GPUs in the order in which they came; what can never run is refused at once."""

import unittest

import drover


class QueueTest(drover.DaemonTest):
    profile = "k80"  # two GPUs

    def tearDown(self):
        self.daemon.end_tasks()  # a test that failed must not keep the GPUs from the next

    def occupy(self, gpus):
        task = self.daemon.submit("say", "up", ",", "sleep", 600, gpus=gpus)
        self.daemon.wait_for_output(task, "up")
        return task

    def end(self, *tasks):
        for task in tasks:
            self.daemon.stop_task(task, force=True)
        for task in tasks:
            self.daemon.wait_until_final(task)

    def test_tasks_start_in_the_order_in_which_they_came(self):
        holder = self.occupy(2)
        order = self.daemon.folder / "order"
        order.touch()
        order.chmod(0o666)
        waiting = [self.daemon.submit("append", order, number, gpus=2) for number in range(5)]
        self.assertEqual({self.daemon.task(task)["state"] for task in waiting}, {"queued"})
        self.end(holder)
        for task in waiting:
            self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished")
        starts = [self.daemon.task(task)["started_at"] for task in waiting]
        self.assertEqual(starts, sorted(starts))

    def test_a_small_task_does_not_overtake_a_large_one(self):
        holder = self.occupy(1)
        large = self.daemon.submit("sleep", 0, gpus=2)
        small = self.daemon.submit("sleep", 0, gpus=1)
        self.assertEqual(self.daemon.task(large)["state"], "queued")
        self.assertEqual(self.daemon.task(small)["state"], "queued")
        self.end(holder)
        large_record, small_record = self.daemon.wait_until_final(large), self.daemon.wait_until_final(small)
        self.assertLessEqual(large_record["started_at"], small_record["started_at"])

    def test_why_a_task_waits_is_told_in_words(self):
        holder = self.occupy(2)
        waiting = self.daemon.submit("sleep", 0, gpus=1)
        ran = self.daemon.cli("explain", waiting)
        self.assertEqual(ran.status, 0, ran)
        self.assertIn("GPU", ran.out)
        self.end(waiting, holder)  # the other way round it might run
        self.assertEqual(self.daemon.task(waiting)["state"], "killed")

    def test_a_queued_task_can_be_stopped(self):
        holder = self.occupy(2)
        waiting = self.daemon.submit("sleep", 0, gpus=1)
        self.daemon.stop_task(waiting)
        record = self.daemon.wait_until_final(waiting)
        self.assertEqual((record["state"], record["gpus"]), ("killed", []))
        self.end(holder)

    def test_more_gpus_than_exist_are_refused(self):
        ran = self.daemon.run_probe(["--gpus", "3"], "sleep", 0)
        self.assert_one_sentence(ran, "3", "2", "GPU")

    def test_more_memory_than_exists_is_refused(self):
        ran = self.daemon.run_probe(["--mem", "900T"], "sleep", 0)
        self.assert_one_sentence(ran, "memory")

    def test_more_than_one_gpu_and_a_part_is_refused_with_the_reason(self):
        ran = self.daemon.run_probe(["--gpus", "1.5"], "sleep", 0)
        self.assert_one_sentence(ran, "1.5", "whole")

    def test_gpus_come_back_however_a_task_ends(self):
        for words in (["exit", 0], ["exit", 9], ["crash"]):
            task = self.daemon.submit(*words, gpus=2)
            self.daemon.wait_until_final(task)
            self.assertEqual(self.daemon.held_gpus(), {})

    def test_a_restart_keeps_the_queue_and_the_running_tasks(self):
        holder = self.occupy(2)
        waiting = self.daemon.submit("sleep", 0, gpus=1)
        before = self.daemon.task(holder)
        self.daemon.stop()
        self.daemon.start()
        after = self.daemon.wait_until_running(holder)
        self.assertEqual((after["gpus"], after["started_at"]), (before["gpus"], before["started_at"]))
        self.assertEqual(self.daemon.task(waiting)["state"], "queued")
        self.end(holder)
        self.assertEqual(self.daemon.wait_until_final(waiting)["state"], "finished")


if __name__ == "__main__":
    unittest.main()
