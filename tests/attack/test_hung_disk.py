"""The disk of the state folder stops to answer, as one does that is about to die: who only reads is answered as ever, changes are refused
in words, and all goes on when the disk does."""

import json
import os
import signal
import subprocess
import threading
import time
import unittest

import drover

PATIENCE = 60  # the disk answers again after so many seconds, whatever becomes of the test


class HungDiskTest(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root: a file system is mounted, and frozen")
        self.daemon = drover.Daemon("k40m")
        self.addCleanup(self.close)
        self.daemon.state.mkdir()
        image = self.daemon.folder / "disk"
        with open(image, "wb") as file:
            file.truncate(128 << 20)
        subprocess.run(["mkfs.ext4", "-q", image], check=True)
        mounted = subprocess.run(["mount", "-o", "loop", image, self.daemon.state], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"a file system in a file cannot be mounted here: {mounted.stderr.strip()}")
        self.daemon.state.chmod(0o711)
        self.daemon.start()

    def close(self):
        self.thaw()
        try:
            if self.daemon.process is not None and self.daemon.process.poll() is None:
                self.daemon.end_tasks()
                self.daemon.stop()
        finally:
            for pid in drover.processes_of(self.daemon.folder):
                os.kill(pid, signal.SIGKILL)
            subprocess.run(["umount", "--lazy", self.daemon.state], check=False, capture_output=True)
        self.assertEqual(self.daemon.close(), [])

    def freeze(self):
        """From now on no write to the disk returns. What waits cannot even be killed: a guard sees to it that it ends."""
        self.guard = subprocess.Popen(["sh", "-c", f'sleep {PATIENCE}; fsfreeze --unfreeze "$1"', "sh", self.daemon.state], start_new_session=True)
        subprocess.run(["fsfreeze", "--freeze", self.daemon.state], check=True)

    def thaw(self):
        if (guard := self.__dict__.pop("guard", None)) is not None:
            subprocess.run(["fsfreeze", "--unfreeze", self.daemon.state], check=False, capture_output=True)
            os.killpg(guard.pid, signal.SIGKILL)
            guard.wait()

    def submit(self, answers, name):
        began = time.monotonic()
        body = {"name": name, "command": ["sleep", "600"], "memory": "64MiB", "cpus": 0.1}
        status, _, answer = self.daemon.request("POST", "/v1/tasks", body)
        answers[name] = (status, json.loads(answer), time.monotonic() - began)

    def test_who_reads_is_answered_and_who_changes_something_is_told_why_not(self):
        runs = self.daemon.submit("say", "begun", ",", "sleep", 4711)
        self.daemon.wait_for_output(runs, "begun")
        answers = {}
        self.freeze()
        threads = [threading.Thread(target=self.submit, args=(answers, name)) for name in ("first", "second")]
        for thread in threads:
            thread.start()
            time.sleep(0.2)
        times = []
        until = time.monotonic() + 14
        while time.monotonic() < until:
            began = time.monotonic()
            self.assertEqual(self.daemon.task(runs)["state"], "running")
            self.assertIn(runs, [record["task"]["id"] for record in self.daemon.tasks()])
            times.append(time.monotonic() - began)
            time.sleep(0.05)
        self.assertLess(max(times), 5, "a read waits for no disk")
        threads[1].join(20)
        self.assertIn("second", answers, "who waits behind a change that is not kept is told so")
        status, answer, took = answers["second"]
        self.assertEqual(status, 503, answer)
        self.assertRegex(answer["error"]["message"], r"disk of the state folder has not taken a change for \d+ s")
        self.submit(answers, "third")
        self.assertEqual(answers["third"][0], 503)
        self.assertLess(answers["third"][2], 5, "who comes now need not wait to be told")
        for method, path, body in (("POST", "/v2/apps", {"id": "/late", "cmd": "sleep 600", "mem": 16, "cpus": 0.1}),
                                   ("POST", "/v1/scheduler/iso8601", {"name": "late", "command": "true", "schedule": "R1//PT1H"}),
                                   ("PUT", "/v1/queues/late", {})):
            began = time.monotonic()
            status, _, answer = self.daemon.request(method, path, body)
            self.assertEqual(status, 503, answer)
            self.assertIn(b"has not taken a change", answer)
            self.assertLess(time.monotonic() - began, 5)
        self.daemon.stop_task(runs, force=True)
        drover.wait_for(lambda: not drover.processes_of("sleep\0004711"), "the task to be killed, whatever is kept of it")
        self.assertTrue(any("has not taken a change" in problem["message"] for problem in self.daemon.api("GET", "/health")["problems"]))
        self.assertNotIn("first", answers, "nobody knows yet what becomes of it")
        self.thaw()
        threads[0].join(30)
        self.assertEqual(answers["first"][0], 201, answers)
        drover.wait_for(lambda: not self.daemon.api("GET", "/health")["problems"], "all to be well")
        self.assertEqual(self.daemon.wait_until_final(runs)["state"], "killed")
        self.assertEqual(self.daemon.api("GET", "/v2/apps")["apps"], [])
        names = sorted(record["task"]["name"] for record in self.daemon.tasks() if record["task"]["id"] != runs)
        self.assertEqual(names, ["first"], "what was refused is not there")
        drover.wait_for(lambda: self.daemon.task(answers["first"][1]["task"]["id"])["state"] == "running", "the first to run")


if __name__ == "__main__":
    unittest.main()
