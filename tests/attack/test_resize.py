"""Nobody changes the share of another's task, gets more than there is by asking oddly or often, or keeps others from being served."""

import json
import pathlib
import time
import unittest

from attack import attack
import drover

GIB = 1024  # MiB
REQUESTS = 1000


class ResizeTest(attack.AttackTest):
    kind_of_daemon = drover.Daemon
    profile = "dgx-a100"

    def setUp(self):
        self.addCleanup(self.daemon.end_tasks)

    def start(self, caller, **fields):
        task = self.submit(caller, ["sleep", "600"], **{"gpu_share": "8GiB", **fields})
        self.daemon.wait_until_running(task)
        return task

    def resize(self, caller, task, body):
        status, _, answer = self.daemon.request("PATCH", f"/v1/tasks/{task}", body, uid=caller.uid)
        return status, answer.decode()

    def share_of(self, task):
        return [grant["memory"] for grant in self.daemon.task(task)["grants"]]

    def events(self, task):
        return [event for event in self.daemon.api("GET", "/v1/events?follow=false&kind=share_resized")["events"] if event["task"] == task]

    def test_anothers_task_is_not_there(self):
        task = self.start(self.victim, name="train")
        for name in (task, task[:6], "train"):
            status, said = self.resize(self.mallory, name, {"gpu_share": "1GiB"})
            self.assertEqual(status, 404, said)
            self.assertNotIn("8 GiB", said)
        self.assertNotEqual(self.cli(self.mallory, "resize", task, "--gpu-share", "1GiB").status, 0)
        self.assertEqual(self.share_of(task), [8 << 30])
        self.assertEqual(self.events(task), [])
        self.assertEqual(self.resize(self.victim, "train", {"gpu_share": "9GiB"})[0], 200)

    def test_nonsense_is_refused_whole(self):
        task = self.start(self.mallory)
        for body in ("", "{}", "null", "[]", "8", '"8GiB"', '{"gpu_share": "8GiB"', '{"gpu_share": 1e999}', '{"gpu_share": NaN}',
                     '{"gpu_share": 1e-300}', '{"gpu_share": 18446744073709551617}', '{"gpu_share": "18446744073709551617"}',
                     '{"gpu_share": "99999999999GiB"}', '{"gpu_share": "-1GiB"}', '{"gpu_share": "0"}', '{"gpu_share": ""}',
                     '{"gpu_share": "8GiB", "gpus": 8}', '{"gpu_share": "9GiB", "owner": 0}', '{"gpu_share": "9GiB", "tier": "hard"}',
                     '{"gpu_share": {"memory": 1}}', "[" * 100_000, json.dumps({"gpu_share": "9" * 1_000_000 + "GiB"})):
            with self.subTest(body[:60]):
                status, said = self.resize(self.mallory, task, body)
                self.assertIn(status, (400, 409, 413, 422), said)
                self.assertEqual(self.share_of(task), [8 << 30])
        self.assertEqual(self.resize(self.mallory, task + "?force=true", {"gpu_share": "9GiB"})[0], 400)
        self.assertEqual(self.events(task), [])

    def test_a_quota_holds(self):
        self.daemon.api("PUT", "/v1/quotas/user:mallory", {"limit": {"gpus": 0.5}})
        self.addCleanup(self.daemon.api, "DELETE", "/v1/quotas/user:mallory")
        task, other = self.start(self.mallory), self.start(self.mallory)
        status, said = self.resize(self.mallory, task, {"gpu_share": "16GiB"})
        self.assertEqual(status, 409, said)
        self.assertIn("'mallory' has a limit of 0.5 GPUs", said)
        self.assertEqual(self.resize(self.mallory, other, {"gpu_share": "2GiB"})[0], 200)
        self.assertEqual(self.resize(self.mallory, task, {"gpu_share": "16GiB"})[0], 200)

    def test_a_thousand_changes_hold_nobody_up(self):
        task, neighbour = self.start(self.mallory), self.start(self.victim)
        began, waited = time.monotonic(), []
        for i in range(REQUESTS):
            status, said = self.resize(self.mallory, task, {"gpu_share": f"{2 + i % 2}GiB"})
            self.assertEqual(status, 200, said)
            if i % 50 == 0:
                asked = time.monotonic()
                self.daemon.task(neighbour, uid=self.victim.uid)
                waited.append(time.monotonic() - asked)
        print(f"{REQUESTS} changes in {time.monotonic() - began:.1f} s; others waited {max(waited) * 1000:.0f} ms at most")
        self.assertEqual(self.share_of(task), [3 << 30])
        self.assertEqual(self.share_of(neighbour), [8 << 30])
        for _ in range(REQUESTS):
            self.resize(self.mallory, task, {"gpu_share": "3GiB"})
        self.assertEqual(len(self.events(task)), REQUESTS, "what is so already is no news")
        descriptors = len(list(pathlib.Path(f"/proc/{self.daemon.process.pid}/fd").iterdir()))
        self.assertLess(descriptors, 200)


if __name__ == "__main__":
    unittest.main()
