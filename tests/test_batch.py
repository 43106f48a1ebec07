"""Batch work: arrays, tasks after others, dates, retries, and what is stopped and removed by the hundred."""

import contextlib
import datetime
import json
import os
import pathlib
import signal
import time
import unittest

import drover


class BatchTest(drover.DaemonTest):
    profile = "k80"  # two GPUs

    def tearDown(self):
        self.daemon.end_tasks()
        for record in self.daemon.tasks():
            self.daemon.request("DELETE", f"/v1/tasks/{record['task']['id']}")

    def cli(self, *words, status=0):
        ran = self.daemon.cli(*words)
        self.assertEqual(ran.status, status, ran)
        return ran

    def detached(self, *words):
        return self.cli("run", "--detach", *words).out.split()

    def states(self, *words):
        ran = self.cli("ps", "-a", "--format", "id,state", "--no-header", *words)
        return dict(line.split() for line in ran.out.splitlines())

    def final(self, task):
        return self.daemon.wait_until_final(task)["state"]


class ArrayTest(BatchTest):
    def test_each_task_has_its_number(self):
        (array,) = self.detached("--array", "3,7-9", "--name", "sweep", "--", "sh", "-c",
                                 "echo $DROVER_ARRAY_INDEX of $DROVER_ARRAY_SIZE, $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_JOB_ID")
        for index in (3, 7, 8, 9):
            self.assertEqual(self.final(f"{array}-{index}"), "finished")
        lines = self.cli("logs", array).out.splitlines()
        self.assertEqual(lines, [f"[{i}] {i} of 4, {i} of {array}" for i in (3, 7, 8, 9)])
        self.assertEqual(self.cli("logs", "sweep").out.splitlines(), lines)
        self.assertEqual(self.cli("logs", f"{array}-8").out, f"8 of 4, 8 of {array}\n")

    def test_so_many_run_at_once_and_those_that_wait_are_one_row(self):
        (array,) = self.detached("--array", "0-99%2", "--name", "sweep", "--", "sleep", "1000")
        self.daemon.wait_until_running(f"{array}-0")
        self.daemon.wait_until_running(f"{array}-1")
        states = self.states()
        self.assertEqual(states, {f"{array}-0": "running", f"{array}-1": "running", f"{array}-[2-99]": "queued"})
        self.assertIn("no more than 2 of its array run at once", self.cli("ps").out)
        self.assertEqual(len(self.cli("ps", "-q").out.split()), 100)
        self.assertIn("it is number 5 of an array of 100", self.cli("explain", f"{array}-5").out)
        self.cli("stop", f"{array}-0")
        self.final(f"{array}-0")
        self.daemon.wait_until_running(f"{array}-2")
        self.cli("stop", "--force", array)
        for index in (1, 2, 99):
            self.assertEqual(self.final(f"{array}-{index}"), "killed")
        self.assertEqual(set(self.states().values()), {"killed"})

    def test_in_the_foreground_it_ends_as_the_first_that_failed(self):
        ran = self.cli("run", "--array", "0-3", "--", "sh", "-c", "echo $DROVER_ARRAY_INDEX; [ $DROVER_ARRAY_INDEX != 2 ] || exit 7",
                       status=7)
        self.assertEqual(sorted(ran.out.splitlines()), [f"[{i}] {i}" for i in range(4)])
        self.assertIn("rank 2", ran.err)

    def test_what_is_wrong_is_refused_whole(self):
        for words, said in ((["--array", "5-1"], "'5-1' is no range"), (["--array", "0-9", "--gang", "2"], "--array"),
                            (["--array", "0-5000", "--detach"], "4096 tasks at most, not 5001"),
                            (["--array", "0-200"], "cannot be followed at once"), (["--array", "0-9", "-i"], "--array"),
                            (["--array", "0-9", "--gpus", "9"], "this machine has 2")):
            with self.subTest(words):
                ran = self.cli("run", *words, "--", "true", status=64)
                self.assertIn(said, ran.err)
        self.assertEqual(self.daemon.tasks(), [])

    def test_a_restart_of_the_daemon_keeps_the_limit(self):
        (array,) = self.detached("--array", "0-3%1", "--", "sleep", "1000")
        self.daemon.wait_until_running(f"{array}-0")
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.states(), {f"{array}-0": "running", f"{array}-[1-3]": "queued"})
        self.cli("stop", f"{array}-0")
        self.daemon.wait_until_running(f"{array}-1")


class AfterTest(BatchTest):
    def test_one_after_the_other(self):
        order = self.daemon.folder / "order"
        go = self.daemon.folder / "go"
        (first,) = self.detached("--name", "prepare", "--", "sh", "-c", f"until [ -e {go} ]; do sleep 0.1; done; echo first >> {order}")
        (second,) = self.detached("--after", "prepare", "--", "sh", "-c", f"echo second >> {order}")
        self.assertIn(f"it waits until 'prepare' ({first}) has succeeded", self.cli("explain", second).out)
        go.touch()
        self.assertEqual(self.final(second), "finished")
        self.assertEqual(order.read_text(), "first\nsecond\n")

    def test_what_would_wait_in_vain_is_told(self):
        (bad,) = self.detached("--", "sh", "-c", "sleep 1; exit 3")
        (good,) = self.detached("--after", bad, "--", "true")
        (repair,) = self.detached("--after", f"{bad}:failed", "--", "true")
        (always,) = self.detached("--after", f"{bad}:any", "--", "true")
        self.assertEqual([self.final(each) for each in (good, repair, always)], ["killed", "finished", "finished"])
        self.assertIn("never started", self.cli("explain", good).out)
        ran = self.cli("run", "--after", bad, "--", "true", status=125)
        self.assertIn("It would never start", ran.err)
        self.assertIn("There is no task 'nobody'", self.cli("run", "--after", "nobody", "--", "true", status=125).err)

    def test_nobody_waits_for_a_stranger_s_task(self):
        (mine,) = self.detached("--name", "secret", "--", "sleep", "1000")
        for name in (mine, "secret"):
            ran = self.daemon.cli("run", "--after", name, "--", "true", uid=drover.NOBODY)
            self.assertEqual(ran.status, 125, ran)
            self.assertIn(f"There is no task '{name}'", ran.err)

    def test_a_date(self):
        ran = self.daemon.cli("run", "--begin", "1s", "--", "sh", "-c", "echo ran")
        self.assertEqual((ran.status, ran.out), (0, "ran\n"), ran)
        (later,) = self.detached("--begin", "tomorrow", "--", "true")
        self.assertIn("it begins at", self.cli("explain", later).out)
        begin = datetime.datetime.fromisoformat(self.daemon.task(later)["task"]["begin"])
        self.assertGreater(begin, datetime.datetime.now(datetime.timezone.utc))
        self.assertIn("--begin: 'soon' is neither", self.cli("run", "--begin", "soon", "--", "true", status=64).err)


class RetryTest(BatchTest):
    def test_it_is_tried_again_and_knows_it(self):
        before = time.monotonic()
        ran = self.daemon.cli("run", "--retries", "2", "--", "sh", "-c", "echo attempt ${DROVER_ATTEMPT:-0}; exit ${DROVER_ATTEMPT:-9}")
        self.assertEqual(ran.status, 2, ran)
        self.assertEqual(ran.out, "attempt 0\nattempt 1\nattempt 2\n")
        self.assertGreater(time.monotonic() - before, 14)

    def test_a_kill_of_the_daemon_loses_no_attempt(self):
        (task,) = self.detached("--retries", "3", "--", "sh", "-c", "[ -n \"$DROVER_ATTEMPT\" ] || exit 1")
        drover.wait_for(lambda: self.daemon.task(task).get("failures") == 1, "the first failure")
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.final(task), "finished")
        self.assertEqual(self.daemon.task(task)["failures"], 1)

    def shims_of(self, task):
        for pid in self.daemon.shims():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if words[1:2] == [b"shim"] and words[2].endswith(task.encode()):
                    yield pid

    def test_a_shim_that_dies(self):
        (task,) = self.detached("--requeue", "--", "sh", "-c", "[ -n \"$DROVER_ATTEMPT\" ] || sleep 1000")
        (other,) = self.detached("--", "sleep", "1000")
        for each in (task, other):
            self.daemon.wait_until_running(each)
            for pid in self.shims_of(each):
                os.kill(pid, signal.SIGKILL)
        self.assertEqual(self.final(other), "lost")
        self.assertEqual(self.final(task), "finished")


class SubmitTest(BatchTest):
    def setUp(self):
        self.folder = self.daemon.folder / "scripts"
        self.folder.mkdir(exist_ok=True)

    def submit(self, text, *words, status=0):
        script = self.folder / "train.sh"
        script.write_text(text)
        return self.cli("submit", *(word if word != "SCRIPT" else str(script) for word in words or ["SCRIPT"]), status=status)

    def test_a_script_says_what_it_needs(self):
        ran = self.submit("#!/bin/sh\n#DROVER --gpus 1 --label 'team=a b'\n#DROVER -e WHO=script\necho $WHO $1 $0; sleep 1; echo end\n",
                          "-e", "MORE=1", "SCRIPT", "--epochs")
        task = ran.out.strip()
        (self.folder / "train.sh").write_text("#!/bin/sh\nexit 9\n")  # it runs as it was
        self.assertEqual(self.final(task), "finished")
        record = self.daemon.task(task)["task"]
        self.assertEqual((record["gpus"], record["labels"], record["name"]), (1, {"team": "a b"}, "train.sh"))
        self.assertEqual(self.daemon.output(task), f"script --epochs {self.folder / 'train.sh'}\nend\n")

    def test_the_line_goes_before_the_script(self):
        ran = self.submit("#!/bin/sh\n#DROVER --gpus 2 --name from-script --array 0-1\ntrue\n", "--gpus", "0", "--name", "mine", "SCRIPT")
        task = ran.out.strip() + "-1"
        self.final(task)
        record = self.daemon.task(task)["task"]
        self.assertEqual((record["gpus"], record["name"], record["array"]["size"]), (0, "mine", 2))

    def test_what_is_wrong_is_told_with_its_line(self):
        for text, said in (("#!/bin/sh\n\n#DROVER --gpuss 2\n", "train.sh:3"), ("#!/bin/sh\n#DROVER --gpus x\n", "train.sh:2"),
                           ("#!/bin/sh\n#DROVER --gpus 2 python\n", "'python' is no flag"), ("echo hi\n", "#!/bin/bash"),
                           ("#!/bin/sh\n#DROVER 'x\n", "line 2")):
            with self.subTest(text):
                self.assertIn(said, self.submit(text, status=64).err)
        self.assertIn("drover run --detach -- nosuch", self.cli("submit", "nosuch", status=66).err)
        self.assertIn("Which script", self.cli("submit", status=64).err)
        self.assertIn("#DROVER --gpus 2", self.submit("#!/bin/sh\n#SBATCH -n 1\ntrue\n").err)


class IdleTest(BatchTest):
    def work(self, percent):
        self.daemon.set_faults({gpu["uuid"]: {"utilization": {"gpu": percent}} for gpu in self.daemon.api("GET", "/v1/gpus")["gpus"]})

    def processes_of(self, task):
        """Its own, without the init, as the kernel counts them outside."""
        return [int(line) for line in pathlib.Path(drover.cgroups_of([task])[0], "cgroup.procs").read_text().split()[1:]]

    def tearDown(self):
        self.work(0)
        self.cli("queue", "set", "default", "--idle-timeout", "none", "--timeout", "none")
        super().tearDown()

    def test_a_task_whose_gpu_does_nothing_is_stopped_and_says_so(self):
        self.work(60)
        busy, = self.detached("--gpus", "1", "--idle-timeout", "10s", "sleep", "1000")
        forever, = self.detached("--gpus", "1", "sleep", "1000")
        self.daemon.wait_until_running(busy)
        time.sleep(13)
        self.assertEqual(self.states(), {busy: "running", forever: "running"})
        self.work(0)
        self.assertEqual(self.final(busy), "failed")
        self.assertEqual(self.daemon.task(busy)["cause"], "idle")
        self.assertIn("its GPUs did nothing for 10s", self.cli("explain", busy).out)
        self.assertEqual(self.daemon.task(forever)["state"], "running")

    def test_of_those_who_share_a_gpu_each_is_judged_by_what_it_does_itself(self):
        share = ("--gpus", "0.5", "--idle-timeout", "10s", "--", str(self.daemon.probe), "sleep", "1000")
        tasks = [self.detached("--cpus", "1", *share)[0] for _ in range(2)]
        for task in tasks:
            self.daemon.wait_until_running(task)
        self.assertEqual(len({gpu for task in tasks for gpu in self.daemon.task(task)["gpus"]}), 1)
        works = drover.wait_for(lambda: self.processes_of(tasks[1]), "its process")[0]
        gpu, = self.daemon.task(tasks[1])["gpus"]
        self.daemon.set_faults({gpu: {"utilization": {"gpu": 50}, "processes": [
            {"pid": works, "memory_mib": 64, "utilization": {"sm": 50, "memory": 1, "encoder": 0, "decoder": 0}}]}})
        self.assertEqual(self.final(tasks[0]), "failed")
        self.assertEqual(self.daemon.task(tasks[1])["state"], "running")

    def test_a_queue_sets_it_for_all(self):
        told = self.cli("queue", "set", "default", "--idle-timeout", "10s", "--timeout", "1h").out
        self.assertIn("tasks run for 1h at most, GPUs are idle for 10s at most", told)
        task, = self.detached("--gpus", "1", "sleep", "1000")
        self.assertIn("at most, then it is stopped", self.cli("show", task).out)
        refused = self.cli("run", "--timeout", "2h", "true", status=64)
        self.assertIn("--timeout: The queue 'default' lets tasks run for 1h at most, and 2h are asked for", refused.err)
        self.assertEqual(self.final(task), "failed")
        self.assertIn("--idle-timeout: a task without GPUs", self.cli("run", "--idle-timeout", "1h", "true", status=64).err)

    def test_the_queue_keeps_it_over_a_restart(self):
        self.cli("queue", "set", "default", "--timeout", "90m")
        self.assertEqual(self.daemon.stop(), 0)
        self.daemon.start()
        queue = next(each for each in self.daemon.api("GET", "/v1/queues")["queues"] if each["queue"] == "default")
        self.assertEqual(queue["timeout"], "1h30m")


class ManyTest(BatchTest):
    def test_all_of_a_kind(self):
        (first,) = self.detached("--label", "team=vision", "--", "sleep", "1000")
        (second,) = self.detached("--name", "sweep-1", "--", "sleep", "1000")
        foreign = self.daemon.submit("sleep", 1000, uid=drover.NOBODY)
        for each in (first, second, foreign):
            self.daemon.wait_until_running(each)
        self.assertIn("1 task was asked to end", self.cli("stop", "--label", "team=vision", "--force").err)
        self.assertEqual(self.final(first), "killed")
        self.assertIn("1 task was", self.cli("stop", "--name", "sweep-*", "--force").err)
        self.assertEqual(self.final(second), "killed")
        self.cli("stop", "--all")
        self.assertEqual(self.daemon.task(foreign)["state"], "running", "it is nobody's of root's")
        self.assertIn("2 tasks were removed", self.cli("rm", "--ended").err)
        self.assertEqual([record["task"]["id"] for record in self.daemon.tasks()], [foreign])
        self.assertEqual(self.daemon.cli("stop", "--all", "--force", uid=drover.NOBODY).status, 0)
        self.assertEqual(self.final(foreign), "killed")
        self.assertIn("0 tasks were removed", self.cli("rm", "--ended", "--user", "nobody", "--older-than", "1h").err)
        self.assertIn("Which tasks", self.cli("stop", status=64).err)
        self.assertIn("one of the two", self.cli("stop", first, "--all", status=64).err)
        self.assertIn("add --ended", self.cli("rm", first, "--older-than", "1h", status=64).err)

    def test_what_waits_is_stopped_first(self):
        running = [self.daemon.submit("sleep", 1000, gpus=1) for _ in range(2)]
        for each in running:
            self.daemon.wait_until_running(each)
        waiting = [self.daemon.submit("sleep", 1000, gpus=1) for _ in range(20)]
        self.cli("stop", "--all", "--force")
        for each in running + waiting:
            self.assertEqual(self.final(each), "killed")
        self.assertTrue(all("started_at" not in self.daemon.task(each) for each in waiting))

    def test_a_thousand(self):
        (array,) = self.detached("--array", "0-999", "--begin", "1h", "--", "true")
        before = time.monotonic()
        self.assertIn("1000 tasks were asked to end", self.cli("stop", "--all").err)
        self.assertIn("1000 tasks were removed", self.cli("rm", "--ended").err)
        print(f"\n1000 tasks were stopped and removed in {time.monotonic() - before:.1f} s")
        self.assertEqual(json.loads(self.cli("ps", "-a", "--json").out)["tasks"], [], array)


if __name__ == "__main__":
    unittest.main()
