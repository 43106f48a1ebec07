"""What the daemon tells Prometheus: of real tasks; what their processes do is simulated."""

import json
import os
import pathlib
import unittest

import drover
from prometheus import parse, require_parser

OTHER = 4321  # a user without an account


class MetricsTest(drover.DaemonTest):
    @classmethod
    def setUpClass(cls):
        require_parser()
        super().setUpClass()

    def tearDown(self):
        self.daemon.end_tasks()
        self.daemon.set_faults({})
        drover.wait_for(lambda: "drover_process_gpu_memory_bytes" not in self.scrape(), "the GPUs to be idle")

    def scrape(self, uid=None):
        """Name -> [(labels, value)]."""
        status, headers, text = self.daemon.request("GET", "/v1/metrics", uid=uid)
        self.assertEqual((status, headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
        return parse(text.decode())

    def scrape_when_busy(self):
        """None until one is: a sample that was under way when the faults were written has some of them only."""
        found = self.scrape()
        busy = any(value for _, value in found["DCGM_FI_DEV_GPU_UTIL"])
        return found if busy and "drover_process_gpu_memory_bytes" in found else None

    def process_of(self, task):
        """Its own first process, after the init, as the kernel counts them outside."""
        return int(pathlib.Path(drover.cgroups_of([task])[0], "cgroup.procs").read_text().split()[1])

    def test_a_task_and_its_process_are_told_to_its_owner_and_the_gpus_to_everybody(self):
        task = self.daemon.submit("say", "up", ",", "sleep", 60, gpus=1)
        self.daemon.wait_for_output(task, "up")
        gpu = next(gpu for gpu in self.daemon.api("GET", "/v1/gpus")["gpus"] if gpu["used_by"])
        pid = self.process_of(task)
        self.daemon.set_faults({gpu["uuid"]: {"utilization": {"gpu": 50}, "processes": [{"pid": pid, "memory_mib": 64}]}})
        series = drover.wait_for(self.scrape_when_busy, "the GPU to be busy")
        labels, value = next(each for each in series["DCGM_FI_DEV_GPU_UTIL"] if each[1])
        self.assertEqual((labels["UUID"], labels["user"], labels["task_id"], value), (gpu["uuid"], "root", task, 50))
        (labels, value), = series["drover_process_gpu_memory_bytes"]
        self.assertEqual((labels["task_id"], labels["pid"], labels["process"], value), (task, str(pid), "probe", 64 << 20))
        self.assertEqual([(labels["task_id"], value) for labels, value in series["drover_container_gpu_memory_bytes"]], [(task, 64 << 20)])
        self.assertEqual(len(series["DCGM_FI_DEV_GPU_UTIL"]), 8)

        theirs = self.scrape(uid=OTHER)
        self.assertEqual(len(theirs["DCGM_FI_DEV_GPU_UTIL"]), 8)
        self.assertNotIn("drover_process_gpu_memory_bytes", theirs)
        self.assertNotIn(task, json.dumps(theirs))

        self.daemon.stop_task(task)
        self.daemon.wait_until_final(task)
        drover.wait_for(lambda: task not in json.dumps(self.scrape()), "the task's series to be gone")

    def test_a_list_of_the_gpus_says_what_they_do_and_who_else_is_there(self):
        task = self.daemon.submit("say", "up", ",", "sleep", 60, gpus=1)
        self.daemon.wait_for_output(task, "up")
        gpus = self.daemon.api("GET", "/v1/gpus")["gpus"]
        taken = next(gpu for gpu in gpus if gpu["used_by"])
        other = next(gpu for gpu in gpus if not gpu["used_by"])
        self.daemon.set_faults({taken["uuid"]: {"utilization": {"gpu": 50}, "processes": [{"pid": self.process_of(task), "memory_mib": 64}]},
                         other["uuid"]: {"utilization": {"gpu": 97}, "processes": [{"pid": os.getpid(), "memory_mib": 2048}]}})

        def usage(uid=None):
            return {gpu["uuid"]: gpu["usage"] for gpu in self.daemon.api("GET", "/v1/gpus?usage=true", uid=uid)["gpus"]}

        drover.wait_for(lambda: sum(bool(gpu["processes"]) for gpu in usage().values()) == 2, "both GPUs to be busy")

        mine, theirs = usage(), usage(OTHER)
        self.assertEqual([(process["task"], process["name"]) for process in mine[taken["uuid"]]["processes"]], [(task, "probe")])
        self.assertEqual([(process["task"], process["pid"]) for process in mine[other["uuid"]]["processes"]], [(None, os.getpid())])
        for seen in (mine, theirs):
            self.assertEqual((seen[taken["uuid"]]["gpu_percent"], seen[other["uuid"]]["gpu_percent"]), (50, 97))
            self.assertEqual(seen[taken["uuid"]]["foreign"], {"processes": 0, "memory_bytes": 0}, "a task's is no stranger's")
            self.assertEqual(seen[other["uuid"]]["foreign"], {"processes": 1, "memory_bytes": 2048 << 20})
        self.assertEqual([theirs[each["uuid"]]["processes"] for each in (taken, other)], [[], []], "others' processes are nobody's business")
        self.assertNotIn("usage", self.daemon.api("GET", "/v1/gpus")["gpus"][0])

        rows = {line.split()[0]: line for line in self.daemon.cli("gpus").out.splitlines()}
        self.assertRegex(rows[str(taken["index"])], rf"50% .*root {task}")
        self.assertRegex(rows[str(other["index"])], r"97% .*1 other process, 2 GiB")
        self.daemon.set_faults({})
        drover.wait_for(lambda: not any(value for _, value in self.scrape()["DCGM_FI_DEV_GPU_UTIL"]), "the GPUs to be idle")

    def test_root_is_told_how_the_daemon_is_itself(self):
        before = self.scrape()
        task = self.daemon.submit("sleep", 60)
        self.daemon.wait_until_running(task)
        self.daemon.request("GET", "/v1/nothing")
        series = self.scrape()
        self.assertIn(({"state": "running"}, 1), series["drover_tasks"])
        self.assertGreater(series["drover_journal_commit_seconds_count"][0][1], before["drover_journal_commit_seconds_count"][0][1])
        self.assertEqual(series["drover_journal_unsaved_events"], [({}, 0)])
        self.assertIn(({"code": "404"}, 1), series["drover_api_answers_total"])
        self.assertEqual(sorted(labels["pool"] for labels, _ in series["drover_pool_waiting"]),
                         ["endings", "files", "launches", "lists", "removals", "slow-launches", "submissions"])
        drover.wait_for(lambda: self.scrape()["drover_control_lag_seconds_count"][0][1], "the first second to pass")
        self.assertFalse([name for name in self.scrape(uid=OTHER) if name.startswith(("drover_tasks", "drover_api", "drover_pool"))])


if __name__ == "__main__":
    unittest.main()
