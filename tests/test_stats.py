"""What tasks use over their lives: looked at, kept over a crash of the daemon, followed, summed up at the end, and told to operators of Mesos."""

import json
import os
import pathlib
import time
import unittest

import drover

BUSY = ["/bin/sh", "-c", "while :; do :; done"]
MANY = 100
MOST_CPU_PERCENT = 0.1  # of a processor, for each task


class StatsTest(drover.DaemonTest):
    profile = "dgx-a100"

    def setUp(self):
        self.daemon.set_faults({})
        self.addCleanup(self.daemon.end_tasks)

    def stats(self, task, query="", uid=None):
        return self.daemon.api("GET", f"/v1/tasks/{task}/stats{query}", uid=uid)

    def looked_at(self, task, times=1, query=""):
        def enough():
            stats = self.stats(task, query)
            return stats if len(stats["time"]) >= times else None

        return drover.wait_for(enough, f"{times} looks at {task}")

    def sleeper(self, **fields):
        task = self.daemon.submit("say", "up", ",", "sleep", 1000, **fields)
        self.daemon.wait_for_output(task, "up")
        return task

    def load(self, percent):
        self.daemon.set_faults({gpu["uuid"]: {"utilization": {"gpu": percent}} for gpu in self.daemon.api("GET", "/v1/gpus")["gpus"]})

    # What is seen

    def test_a_load_that_moves_is_seen_second_by_second(self):
        self.load(0)
        task = self.sleeper(gpus=2)
        self.looked_at(task)
        for percent in (20, 80):
            self.load(percent)
            stats = drover.wait_for(lambda wanted=percent: (now := self.stats(task))["gpu_percent"][-1:] == [wanted] and now, f"{percent} %")
        times = stats["time"]
        self.assertEqual(times, sorted(set(times)))
        self.assertLess(abs(times[-1] - time.time()), 5)
        columns = [name for name, values in stats.items() if isinstance(values, list)]
        self.assertEqual({len(stats[name]) for name in columns}, {len(times)})
        self.assertEqual(stats["resolution"], 1)
        self.assertEqual(stats["use"]["gpus"], 2)
        self.assertEqual(stats["use"]["gpu_percent_max"], 80)
        self.assertIn(None, stats["network_sent_rate"], "it has the machine's network")

    def test_processors_and_memory_are_counted(self):
        task = self.daemon.submit(command=BUSY, cpus=1)
        self.daemon.wait_until_running(task)
        stats = drover.wait_for(lambda: (now := self.looked_at(task, 3)) and (now["cpus"][-1] or 0) > 0.2 and now, "a busy processor")
        self.assertLess(stats["cpus"][-1], os.cpu_count() + 0.5)
        self.assertGreater(stats["memory_bytes"][-1], 0)
        self.assertNotIn("gpu_percent_mean", stats["use"])
        self.daemon.stop_task(task, force=True)
        use = self.daemon.wait_until_final(task)["use"]
        self.assertGreater(use["cpu_seconds"], 0.2)
        self.assertEqual(use["gpus"], 0)

    def test_of_those_who_share_a_gpu_each_has_what_it_does_itself(self):
        tasks = [self.sleeper(gpus=1, gpu_share=0.5, cpus=1) for _ in range(2)]
        gpu, = self.daemon.task(tasks[0])["gpus"]
        self.assertEqual(self.daemon.task(tasks[1])["gpus"], [gpu])
        works = int(pathlib.Path(drover.cgroups_of([tasks[1]])[0], "cgroup.procs").read_text().split()[1])
        self.daemon.set_faults({gpu: {"utilization": {"gpu": 50}, "processes": [
            {"pid": works, "memory_mib": 64, "utilization": {"sm": 30, "memory": 1, "encoder": 0, "decoder": 0}},
            {"pid": os.getpid(), "memory_mib": 32, "utilization": {"sm": 20, "memory": 1, "encoder": 0, "decoder": 0}}]}})
        drover.wait_for(lambda: self.stats(tasks[1])["gpu_percent"][-1:] == [30], "the half that works")
        self.assertEqual(self.stats(tasks[1])["gpu_memory_bytes"][-1], 64 << 20)
        self.assertEqual(self.looked_at(tasks[0])["gpu_percent"][-1], 0)

    def test_what_nobody_has_looked_at_has_no_values(self):
        task = self.daemon.submit("sleep", 1000, begin="2040-01-01T00:00:00Z")
        stats = self.stats(task)
        self.assertEqual(stats["time"], [])
        self.assertEqual(stats["use"], {"gpus": 0, "seconds": 0})
        self.assertIn("Nobody has looked", self.daemon.cli("stats", task).out)

    def test_wrong_questions_are_refused(self):
        task = self.sleeper()
        for query in ("?resolution=2", "?resolution=x", "?since=never", "?nonsense=1", "?follow=perhaps"):
            with self.assertRaises(drover.ApiError) as refused:
                self.stats(task, query)
            self.assertEqual(refused.exception.status, 400, query)
        with self.assertRaises(drover.ApiError) as refused:
            self.stats("nobody")
        self.assertEqual(refused.exception.status, 404)

    # What is kept

    def test_a_crash_of_the_daemon_loses_only_the_time_without_one(self):
        self.load(40)
        task = self.sleeper(gpus=1)
        before = self.looked_at(task, 12)
        self.daemon.kill()
        self.daemon.start()
        after = drover.wait_for(lambda: (now := self.stats(task))["time"][-1] > before["time"][-1] + 2 and now, "looks of the new daemon")
        self.assertEqual(after["time"][:len(before["time"])], before["time"])
        self.assertGreater(after["use"]["seconds"], before["use"]["seconds"])
        self.assertGreaterEqual(len(self.stats(task, "?resolution=10")["time"]), 1)
        self.daemon.stop_task(task, force=True)
        record = self.daemon.wait_until_final(task)
        self.assertEqual(round(record["use"]["gpu_percent_mean"]), 40)
        self.assertLess(abs(record["use"]["gpu_seconds_used"] - 0.4 * record["use"]["seconds"]), 1)
        self.assertGreaterEqual(len(self.stats(task)["time"]), len(after["time"]), "it stays when the task has ended")

    def test_a_task_that_ends_without_a_daemon_has_what_was_seen_before(self):
        self.load(30)
        task = self.daemon.submit("say", "up", ",", "sleep", 6, gpus=1)
        self.looked_at(task, 2)
        self.daemon.kill()
        drover.wait_for(lambda: not drover.cgroups_of([task]), "it to end")
        self.daemon.start()
        self.assertEqual(round(self.daemon.wait_until_final(task)["use"]["gpu_percent_mean"]), 30)

    def test_a_file_that_is_damaged_begins_anew(self):
        task = self.sleeper()
        self.looked_at(task)
        self.daemon.kill()
        (self.daemon.state / "tasks" / task / "use").write_bytes(os.urandom(9000))
        self.daemon.start()
        self.assertLess(len(self.looked_at(task)["time"]), 5)

    def test_a_driver_that_hangs_holds_up_nothing_else(self):
        task = self.sleeper(gpus=1)
        self.looked_at(task)
        gpu, = self.daemon.task(task)["gpus"]
        self.daemon.set_faults({gpu: {"slow_ms": 60000}})
        other = self.sleeper()
        self.assertGreater(self.looked_at(other, 3)["memory_bytes"][-1], 0)
        drover.wait_for(lambda: self.stats(task)["gpu_percent"][-1:] == [None], "the GPU to be unknown")
        self.assertGreater(self.stats(task)["memory_bytes"][-1], 0)

    # What people see

    def test_the_command_line_shows_a_life_and_follows_one(self):
        self.load(50)
        task = self.sleeper(gpus=1, name="train")
        self.looked_at(task, 2)
        table = self.daemon.cli("stats", "train").out
        self.assertRegex(table, r"TIME +GPU +GPU MEMORY +CPUS")
        self.assertRegex(table, r"GPU use +mean \d+ %, at most 50 %")
        self.assertRegex(self.daemon.cli("stats").out, rf"{task} +train +50 %")
        self.assertEqual(json.loads(self.daemon.cli("stats", "--json").out)["tasks"][0]["task"], task)
        self.assertEqual(json.loads(self.daemon.cli("stats", "--json", task).out)["task"], task)
        short = self.daemon.submit("say", "up", ",", "sleep", 3, gpus=1)
        followed = self.daemon.cli("stats", "--follow", short).out
        self.assertGreaterEqual(followed.count(" 50 %"), 2)
        self.assertRegex(followed, r"CPU time +\d")
        self.assertRegex(self.daemon.cli("show", short).out, r"GPU use +mean 50 %")
        self.assertIn("one task can be followed", self.daemon.cli("stats", "--follow").err)

    def test_others_see_nothing_of_it(self):
        task = self.sleeper()
        self.looked_at(task)
        for query in ("", "?follow=true"):
            with self.assertRaises(drover.ApiError) as refused:
                self.stats(task, query, uid=drover.NOBODY)
            self.assertEqual(refused.exception.status, 404)
        self.assertEqual(self.daemon.api("GET", "/monitor/statistics", uid=drover.NOBODY), [])

    def test_operators_of_mesos_read_statistics(self):
        self.daemon.api("POST", "/v2/apps", {"id": "/busy", "cmd": "while :; do :; done", "cpus": 0.5, "mem": 64})

        def measured():
            for container in self.daemon.api("GET", "/monitor/statistics"):
                if container["statistics"].get("cpus_user_time_secs", 0) > 0:
                    return container["statistics"]
            return None

        statistics = drover.wait_for(measured, "what it used")
        self.assertEqual(statistics["mem_limit_bytes"], 64 << 20)
        self.assertGreater(statistics["mem_total_bytes"], 0)
        self.assertIn("mem_rss_bytes", statistics)
        self.assertIn("cpus_system_time_secs", statistics)

    # What it costs

    @unittest.skipIf(drover.is_sanitized(), "a sanitizer's time is not the program's")
    def test_a_hundred_tasks_cost_little(self):
        def cpu_seconds():
            fields = pathlib.Path(f"/proc/{self.daemon.process.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        def percent_over(seconds):
            before, began = cpu_seconds(), time.monotonic()
            time.sleep(seconds)
            return (cpu_seconds() - before) / (time.monotonic() - began) * 100

        idle = percent_over(5)
        tasks = [self.daemon.submit("sleep", 1000, cpus=0.01, memory=8 << 20) for _ in range(MANY)]
        for task in tasks:
            self.looked_at(task, 2)
        busy = percent_over(10)
        each = (busy - idle) / MANY
        print(f"\nfigures: {MANY} tasks looked at each second: {each:.4f} % of a processor each ({busy:.2f} %; without tasks {idle:.2f} %)", flush=True)
        self.assertLess(each, MOST_CPU_PERCENT)


if __name__ == "__main__":
    unittest.main()
