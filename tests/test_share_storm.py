"""Tasks with a share, and groups with MPS, each of which ends in some way at any moment, and daemons that are killed beside them: nothing of
them is left.

DROVER_TEST_KILLS says how many, two for each task (200 by default); DROVER_TEST_SEED repeats a run.
"""

import contextlib
import os
import pathlib
import random
import signal
import time
import unittest

import drover
import mps_host
import test_cdi
import test_guard
from test_guard import CHECK, GIB, LIBRARIES

TASKS = int(os.environ.get("DROVER_TEST_KILLS", "200")) // 2
SEED = int(os.environ.get("DROVER_TEST_SEED", random.randrange(2**32)))
MOST = 6  # at a time
GROUPS = ("train", "other")
WAYS = ("end", "stop", "stop by force", "kill the shim", "kill the program", "kill the daemon", "kill MPS")


class StormTest(test_guard.SharesTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.image = test_cdi.make_image(cls.daemon.folder / "image", cls.daemon.probe, libraries_for=(CHECK, *LIBRARIES),
                                        files=[("cuda_check", CHECK.read_bytes())])
        cls.random = random.Random(SEED)
        cls.host = mps_host.Host(cls.daemon)

    def submit(self, *words):
        share = {"gpu_share": f"{self.random.randint(2, 20)}GiB"}
        member = {"gpus": 1, "group": self.random.choice(GROUPS), "share_by": "mps"}
        return self.daemon.submit(command=["/cuda_check", *map(str, words)], image=self.image, memory=drover.MEMORY, cpus=0.1,
                                  **self.random.choice((share, share, member)))

    def kill_program(self, task):
        for group in drover.cgroups_of([task]):
            with contextlib.suppress(OSError):
                for pid in pathlib.Path(group, "cgroup.procs").read_text().split():
                    os.kill(int(pid), signal.SIGKILL)

    def kill_shim(self, task):
        for pid in self.daemon.shims():
            with contextlib.suppress(OSError):
                if task.encode() in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)

    def disturb(self, way, task):
        with contextlib.suppress(drover.ApiError):
            if way.startswith("stop"):
                self.daemon.stop_task(task, force=way.endswith("force"))
        if way == "kill the shim":
            self.kill_shim(task)
        if way == "kill the program":
            self.kill_program(task)
        if way == "kill MPS":
            for pid in self.host.processes()[:self.random.randint(1, 2)]:
                mps_host.end_process(pid)
        if way == "kill the daemon":
            self.daemon.kill()
            self.daemon.start()

    def pages(self):
        tasks = self.daemon.state / "tasks"
        return [*tasks.glob("*/share"), *tasks.glob("*/mps"), *tasks.glob("*/*.sock"), *pathlib.Path("/run/drover-guard").glob("*")]

    def test_nothing_is_left(self):
        print(f"seed {SEED}")
        tasks, done = [], {way: 0 for way in WAYS}
        for _ in range(TASKS):
            drover.wait_for(lambda: sum(task["state"] not in drover.FINAL_STATES for task in self.daemon.tasks()) < MOST, "one to end")
            tasks.append(self.submit("hold", self.random.randint(1, GIB), "sleep", self.random.randint(1, 4)))
            time.sleep(self.random.uniform(0, 0.3))
            way = self.random.choice(WAYS)
            done[way] += 1
            self.disturb(way, self.random.choice(tasks[-MOST:]))
        for task in tasks:
            self.daemon.wait_until_final(task)
        print(done)
        self.assertEqual(self.daemon.leaks(tasks), [], f"seed {SEED}")
        self.assertEqual([gpu["usage"]["processes"] for gpu in self.daemon.api("GET", "/v1/gpus?usage=true")["gpus"]], [[]] * 8)
        self.assertEqual(self.series("drover_container_gpu_memory_limit_bytes"), [])
        self.assertEqual(self.host.left(), [], "nothing of MPS, and no compute mode")
        self.assertEqual(self.pages(), [], "nor of shares, though the folders are there")
        for task in tasks:
            self.daemon.api("DELETE", f"/v1/tasks/{task}")
        drover.wait_for(lambda: not self.pages(), lambda: f"pages to go: {self.pages()}")


if __name__ == "__main__":
    unittest.main()
