"""Executors of victim's frameworks, and what mallory could do with their endpoint: it is open to every user of the machine."""

import base64
import contextlib
import http.client
import json
import os
import pathlib
import subprocess

import drover
from attack import attack
from mesos_framework import Framework
from registries import free_port


class ExecutorTest(attack.AttackTest):
    @classmethod
    def setUpClass(cls):
        cls.port = free_port()
        cls.arguments = (*cls.arguments, "--listen", f"127.0.0.1:{cls.port}")
        super().setUpClass()
        cls.program = cls.daemon.folder / "executor.py"
        cls.program.write_text((drover.ROOT / "tests/mesos_executor.py").read_text())

    def launch(self, owner, environment=()):
        """A framework of that user with an executor that runs one task; returns it and the container."""
        framework = Framework(self.daemon, uid=owner.uid, user=owner.name)
        self.addCleanup(framework.stream.close)
        offer = framework.offer()
        info = framework.task_info(offer, "job", "")
        info["command"] = None
        variables = [{"name": name, "value": value} for name, value in environment]
        info["executor"] = {"executor_id": {"value": "e"},
                            "command": {"value": f"exec python3 -B {self.program}",
                                        "environment": {"variables": variables}}}
        framework.call("ACCEPT", accept={"offer_ids": [offer["id"]], "filters": {"refuse_seconds": 0.0},
                                         "operations": [{"type": "LAUNCH", "launch": {"task_infos": [info]}}]})
        self.assertEqual(framework.status()["state"], "TASK_RUNNING")
        (record,) = [one for one in self.daemon.tasks(uid=owner.uid) if one["state"] not in drover.FINAL_STATES]
        return framework, record["task"]["id"]

    def say(self, framework, token, kind="UPDATE", path="/api/v1/executor", task="job", **parts):
        """The status of a call that speaks for the executor of the framework."""
        if kind == "UPDATE":
            parts = {"update": {"status": {"task_id": {"value": task}, "state": "TASK_FINISHED", "source": "SOURCE_EXECUTOR",
                                           "uuid": base64.b64encode(os.urandom(16)).decode()}}}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=drover.PATIENCE)
        self.addCleanup(connection.close)
        body = {"type": kind, "framework_id": {"value": framework.id}, "executor_id": {"value": "e"}, **parts}
        headers = {"Content-Type": "application/json", **({"Authorization": token} if token else {})}
        connection.request("POST", path, json.dumps(body), headers)
        return connection.getresponse().status

    def process_of(self, container):
        """The executor's process, with its environment; only root can look."""
        for process in drover.processes_of(self.daemon.folder):
            with contextlib.suppress(OSError):
                environment = pathlib.Path(f"/proc/{process}/environ").read_text().split("\0")
                if f"DROVER_TASK_ID={container}" in environment:
                    return process, dict(entry.split("=", 1) for entry in environment if "=" in entry)
        raise AssertionError("the executor does not run")

    def token_of(self, container):
        return self.process_of(container)[1]["MESOS_EXECUTOR_AUTHENTICATION_TOKEN"]

    def tearDown(self):
        for record in self.daemon.tasks():
            if record["state"] not in drover.FINAL_STATES:
                self.daemon.end_task(record["task"]["id"])

    def test_to_speak_for_an_executor_without_its_token(self):
        theirs, container = self.launch(self.victim)
        secret = (self.daemon.state / "credentials").read_text().strip().splitlines()[-1].split(":")[1]
        guesses = (None, f"Bearer executor.{container}.{'0' * 64}", f"Bearer executor.{container}.", "Bearer executor..",
                   f"Bearer {container}", f"Bearer {secret}", "Basic " + base64.b64encode(b"root:" + secret.encode()).decode())
        for guess in guesses:
            for kind, parts in (("UPDATE", {}), ("SUBSCRIBE", {"subscribe": {}}), ("MESSAGE", {"message": {"data": ""}})):
                with self.subTest(guess=guess, kind=kind):
                    self.assertEqual(self.say(theirs, guess, kind, **parts), 401)
        theirs.call("RECONCILE", reconcile={"tasks": []})
        self.assertEqual(theirs.status()["state"], "TASK_RUNNING")

    def test_to_speak_for_anothers_executor_with_ones_own_token(self):
        theirs, _ = self.launch(self.victim)
        _, container = self.launch(self.mallory)
        token = f"Bearer {self.token_of(container)}"
        for kind, parts in (("UPDATE", {}), ("SUBSCRIBE", {"subscribe": {}}), ("MESSAGE", {"message": {"data": ""}})):
            self.assertEqual(self.say(theirs, token, kind, **parts), 403)
        theirs.call("RECONCILE", reconcile={"tasks": []})
        self.assertEqual(theirs.status()["state"], "TASK_RUNNING")

    def test_to_use_a_token_for_anything_else(self):
        mine, container = self.launch(self.mallory)
        token = f"Bearer {self.token_of(container)}"
        for path in ("/v1/tasks", "/api/v1/scheduler", "/api/v1", "/teardown", "/v2/apps", "/v1/backup"):
            self.assertIn(self.say(mine, token, path=path), (403, 405), path)
        self.daemon.end_task(container)
        self.assertEqual(self.say(mine, token), 401, "it is good as long as its executor runs")

    def test_to_read_anothers_token(self):
        theirs, container = self.launch(self.victim)
        token = self.token_of(container)
        for path in (f"/v1/tasks/{container}", "/state", "/slave(1)/state", "/containers", f"/v1/tasks/{container}/explain"):
            for uid in (self.mallory.uid, self.victim.uid, None):
                self.assertNotIn(token.encode(), self.daemon.request("GET", path, uid=uid)[2], path)
        self.assertNotIn(token, self.daemon.read_log())
        for file in self.daemon.state.glob("state.db*"):
            self.assertNotIn(token.encode(), file.read_bytes(), "it is kept nowhere")
        key = self.daemon.state / "executors.key"
        self.assertEqual(key.stat().st_mode & 0o777, 0o600)
        for path in (key, f"/proc/{self.process_of(container)[0]}/environ"):
            read = subprocess.run(["cat", str(path)], capture_output=True, check=False, **self.mallory.identity())
            self.assertNotEqual(read.returncode, 0, path)
        theirs.call("TEARDOWN")

    def test_to_be_another_executor_by_ones_own_environment(self):
        theirs, container = self.launch(self.victim)
        stolen = (("MESOS_FRAMEWORK_ID", theirs.id), ("DROVER_TASK_ID", container),
                  ("MESOS_EXECUTOR_AUTHENTICATION_TOKEN", f"executor.{container}.{'0' * 64}"))
        _, mine = self.launch(self.mallory, environment=stolen)
        self.assertTrue(self.token_of(mine).startswith(f"executor.{mine}."))

    def test_an_executor_as_somebody_else(self):
        framework = Framework(self.daemon, uid=self.mallory.uid, user="mallory")
        self.addCleanup(framework.stream.close)
        for name in ("victim", "root"):
            offer = framework.offer()
            info = framework.task_info(offer, f"as-{name}", "")
            info["command"] = None
            info["executor"] = {"executor_id": {"value": "e"}, "command": {"value": "id -u", "user": name}}
            framework.call("ACCEPT", accept={"offer_ids": [offer["id"]], "filters": {"refuse_seconds": 0.0},
                                             "operations": [{"type": "LAUNCH", "launch": {"task_infos": [info]}}]})
            self.assertEqual(framework.status()["state"], "TASK_ERROR")

    def test_updates_of_tasks_that_are_not_its_own(self):
        mine, container = self.launch(self.mallory)
        mine.launch(mine.offer(), "other", "exec sleep 600")
        self.assertEqual([mine.status()["state"] for _ in range(2)], ["TASK_STARTING", "TASK_RUNNING"])
        token = f"Bearer {self.token_of(container)}"
        self.assertEqual(self.say(mine, token, task="other"), 202)
        mine.call("RECONCILE", reconcile={"tasks": [{"task_id": {"value": "other"}}]})
        self.assertEqual(mine.status()["state"], "TASK_RUNNING", "only what runs it tells of it")
