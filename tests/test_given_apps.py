"""The apps that people brought, unchanged: each comes up in its image, serves, and is started again when it is killed."""

import json
import os
import signal
import unittest

import drover
from named_images import NamedImagesTest, shell_image

DEFINITIONS = drover.ROOT / "tests/data/definitions"
ANSWER = "a notebook"


class GivenAppsTest(NamedImagesTest):
    profile = "k40m"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # An app that is given no port takes one of its own choice.
        script = f"#!/bin/bash\nexec /probe serve ${{PORT:-18888}} '{ANSWER}'\n".encode()
        programs = {"run_jupyter.sh": script, "probe": cls.daemon.probe.read_bytes()}
        shell_image(cls.images, "tensorflow/tensorflow", ["latest", "latest-gpu"], programs, ["/run_jupyter.sh"])

    def running(self, name):
        def app():
            shown = self.daemon.api("GET", f"/v2/apps/{name}")["app"]
            return shown if shown["tasksRunning"] == 1 and not shown["deployments"] else None

        return drover.wait_for(app, f"{name} to be up")

    def answer_at(self, port):
        return drover.wait_for(lambda: drover.served_at(port), f"an answer at port {port}")

    def record_of(self, task):
        (record,) = [record for record in self.daemon.tasks() if record["task"].get("origin", {}).get("task_id") == task]
        return record

    def kill(self, record):
        """As when the program itself dies."""
        (status,) = self.daemon.folder.glob(f"state/tasks/{record['task']['id']}/status.json")
        os.kill(json.loads(status.read_text())["running"]["pid"], signal.SIGKILL)

    def remove(self, name):
        self.daemon.api("DELETE", f"/v2/apps/{name}?force=true")
        drover.wait_for(lambda: not self.daemon.api("GET", "/v2/deployments"), f"{name} to be gone")

    def check(self, file, port_of=None):
        definition = json.loads((DEFINITIONS / file).read_text())
        created = self.daemon.api("POST", "/v2/apps", (DEFINITIONS / file).read_bytes())
        name = created["id"].lstrip("/")
        self.addCleanup(self.remove, name)
        (task,) = self.running(name)["tasks"]
        record = self.record_of(task["id"])
        self.assertEqual(len(record["gpus"]), definition.get("gpus", 0))
        if port_of:
            self.assertEqual(self.answer_at(port_of(task)), ANSWER)
        self.kill(record)
        drover.wait_for(lambda: [other["id"] for other in self.running(name)["tasks"]] != [task["id"]], "another instance")
        (again,) = self.running(name)["tasks"]
        if port_of:
            self.assertEqual(self.answer_at(port_of(again)), ANSWER)
        failure = self.daemon.api("GET", f"/v2/apps/{name}")["app"]["lastTaskFailure"]
        self.assertEqual((failure["taskId"], failure["state"]), (task["id"], "TASK_FAILED"))

    def test_a_notebook_behind_a_bridge(self):
        self.check("marathon-tensorflow-app-4.json", port_of=lambda task: task["ports"][0])

    def test_an_app_with_a_gpu(self):
        self.check("marathon-tensorflow-gpus-3.json")

    def test_an_app_with_a_gpu_and_a_port_of_the_machine(self):
        self.check("marathon-tensorflow-gpus-5.json", port_of=lambda task: task["ports"][0])


if __name__ == "__main__":
    unittest.main()
