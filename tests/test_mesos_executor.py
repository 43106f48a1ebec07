"""Executors that Mesos frameworks bring: a small one (mesos_executor.py) that speaks the v1 executor API inside of a real container."""

import base64
import json
import unittest

import drover
from mesos_framework import Framework
from registries import free_port


PROGRAM = drover.ROOT / "tests/mesos_executor.py"


def text(data):
    return base64.b64encode(data.encode()).decode()


class ExecutorCase(drover.DaemonTest):
    profile = "k40m"

    @classmethod
    def setUpClass(cls):
        cls.arguments = (*cls.arguments, *cls.reached())
        super().setUpClass()
        cls.program = cls.place_program(PROGRAM.read_text())

    @staticmethod
    def reached():
        """What makes executors reach the daemon."""
        return "--listen", f"127.0.0.1:{free_port()}"

    @classmethod
    def place_program(cls, text):
        """Where executors find it."""
        program = cls.daemon.folder / "executor.py"
        program.write_text(text)
        return program

    def framework(self, **options):
        framework = Framework(self.daemon, **options)
        self.addCleanup(framework.stream.close)
        return framework

    def executor_info(self, executor_id, command=None):
        return {"executor_id": {"value": executor_id}, "type": "CUSTOM", "name": "small",
                "command": {"value": command or f"exec python3 -B {self.program}"},
                "resources": [{"name": "cpus", "type": "SCALAR", "scalar": {"value": 0.1}},
                              {"name": "mem", "type": "SCALAR", "scalar": {"value": 64}}]}

    def info(self, framework, offer, name, executor=None, does="run", gpus=0):
        info = framework.task_info(offer, name, "", gpus, data=text(does))
        del info["command"]
        if executor:
            info["executor"] = executor
        return info

    def launch(self, framework, names, executor_id="e", **options):
        """As one LAUNCH; returns the offer."""
        offer = framework.offer()
        executor = self.executor_info(executor_id, options.pop("command", None))
        infos = [self.info(framework, offer, name, executor, **options) for name in names]
        framework.call("ACCEPT", accept={"offer_ids": [offer["id"]], "filters": {"refuse_seconds": 0.0},
                                         "operations": [{"type": "LAUNCH", "launch": {"task_infos": infos}}]})
        return offer

    def told(self, framework, count):
        """The next updates, by task: [(state, reason)]."""
        found = {}
        for _ in range(count):
            status = framework.status()
            found.setdefault(status["task_id"]["value"], []).append((status["state"], status.get("reason")))
        return found

    def container(self, executor_id="e"):
        agent = json.loads(self.daemon.request("GET", "/slave(1)/state")[2])
        (found,) = [one for framework in agent["frameworks"] for one in framework["executors"] if one["id"] == executor_id]
        return found["container"]

    def assert_heard_once(self, container, text):
        """By the executor; what it writes may take a moment to come."""
        drover.wait_for(lambda: text in self.daemon.output(container).splitlines(), lambda: self.daemon.output(container))
        self.assertEqual(self.daemon.output(container).splitlines().count(text), 1)


class ExecutorTest(ExecutorCase):
    def test_two_tasks_in_one_executor(self):
        framework = self.framework()
        self.launch(framework, ("one", "two"), gpus=0)
        self.assertEqual(self.told(framework, 2), {name: [("TASK_RUNNING", None)] for name in ("one", "two")})
        container = self.container()
        record = self.daemon.task(container)
        self.assertEqual(record["task"]["name"], "small")
        self.assertEqual(record["task"]["cpus"], 0.3)
        agent = framework.first["subscribed"]["master_info"]["id"] + "-S0"
        framework.call("MESSAGE", message={"agent_id": {"value": agent}, "executor_id": {"value": "e"}, "data": text("hello")})
        message = framework.event("MESSAGE")["message"]
        self.assertEqual((message["executor_id"]["value"], message["data"]), ("e", text("hello")))
        framework.call("KILL", kill={"task_id": {"value": "one"}})
        self.assertEqual(self.told(framework, 1), {"one": [("TASK_KILLED", None)]})
        # What has ended leaves its place to another one.
        self.launch(framework, ("three",), does="finish")
        self.assertEqual(self.told(framework, 2), {"three": [("TASK_RUNNING", None), ("TASK_FINISHED", None)]})
        self.assertEqual(self.container(), container)
        self.launch(framework, ("four", "five", "six"))
        for _ in range(3):
            refused = framework.status()
            self.assertEqual(refused["state"], "TASK_ERROR")
            self.assertIn("Executor 'e' runs already", refused["message"])
        framework.call("SHUTDOWN", shutdown={"executor_id": {"value": "e"}, "agent_id": {"value": agent}})
        self.assertEqual(self.told(framework, 1), {"two": [("TASK_LOST", "REASON_EXECUTOR_TERMINATED")]})
        self.daemon.wait_until_final(container)
        for name in ("one", "two", "three"):
            self.assert_heard_once(container, f"launch {name}")
        framework.call("TEARDOWN")

    def test_its_tasks_share_the_gpus_that_it_was_started_with(self):
        framework = self.framework()
        self.launch(framework, ("g",), gpus=1)
        self.assertEqual(self.told(framework, 1), {"g": [("TASK_RUNNING", None)]})
        self.assertEqual(len(self.daemon.task(self.container())["gpus"]), 1)
        framework.call("KILL", kill={"task_id": {"value": "g"}})
        framework.status()
        self.launch(framework, ("later",), gpus=1)
        refused = framework.status()
        self.assertEqual(refused["state"], "TASK_ERROR")
        self.assertIn("launch the task on an executor of its own", refused["message"])
        framework.call("TEARDOWN")

    def test_a_group_is_told_at_once(self):
        framework = self.framework()
        offer = framework.offer()
        infos = [self.info(framework, offer, name) for name in ("left", "right")]
        framework.call("ACCEPT", accept={"offer_ids": [offer["id"]], "operations": [{"type": "LAUNCH_GROUP", "launch_group": {
            "executor": self.executor_info("grouped"), "task_group": {"tasks": infos}}}]})
        self.assertEqual(self.told(framework, 2), {name: [("TASK_RUNNING", None)] for name in ("left", "right")})
        self.assert_heard_once(self.container("grouped"), "group")
        framework.call("TEARDOWN")

    def test_it_comes_again_after_a_crash_of_the_daemon(self):
        framework = self.framework()
        self.launch(framework, ("stays",))
        first = framework.status(acknowledge=False)
        self.assertEqual(first["state"], "TASK_RUNNING")
        container = self.container()
        for _ in range(3):
            self.daemon.kill()
            self.daemon.start()
        again = self.framework(framework_id=framework.id)
        repeated = again.status()
        self.assertEqual((repeated["state"], repeated["uuid"]), ("TASK_RUNNING", first["uuid"]))
        # Launched while it is perhaps not back yet: it is told when it is.
        again.call("KILL", kill={"task_id": {"value": "stays"}})
        self.assertEqual(self.told(again, 1), {"stays": [("TASK_KILLED", None)]})
        self.launch(again, ("next",), does="finish")
        self.assertEqual(self.told(again, 2), {"next": [("TASK_RUNNING", None), ("TASK_FINISHED", None)]})
        self.assertEqual(self.container(), container)
        for name in ("stays", "next"):
            self.assert_heard_once(container, f"launch {name}")
        again.call("TEARDOWN")

    def test_its_death_is_that_of_its_tasks(self):
        framework = self.framework(capabilities=[{"type": "GPU_RESOURCES"}, {"type": "PARTITION_AWARE"}])
        self.launch(framework, ("one", "two"))
        self.assertEqual(self.told(framework, 2), {name: [("TASK_RUNNING", None)] for name in ("one", "two")})
        framework.call("MESSAGE", message={"agent_id": {"value": "any"}, "executor_id": {"value": "e"}, "data": text("die")})
        gone = ("TASK_GONE", "REASON_EXECUTOR_TERMINATED")
        self.assertEqual(self.told(framework, 2), {"one": [gone], "two": [gone]})
        failure = framework.failures.pop() if framework.failures else framework.event("FAILURE")["failure"]
        self.assertEqual((failure["executor_id"]["value"], failure["status"]), ("e", 7 << 8))
        framework.call("TEARDOWN")


class MuteExecutorTest(ExecutorCase):
    arguments = ("--executor-registration-timeout", "1s")

    def test_one_that_never_registers(self):
        framework = self.framework()
        self.launch(framework, ("one",), executor_id="mute", command="exec sleep 1000")
        self.assertEqual(self.told(framework, 1), {"one": [("TASK_FAILED", "REASON_EXECUTOR_REGISTRATION_TIMEOUT")]})
        framework.call("TEARDOWN")


if __name__ == "__main__":
    unittest.main()
