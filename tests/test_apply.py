"""'drover apply' and 'drover app' against the real daemon: apps come up, change, go back and end as their files say."""

import json
import signal
import subprocess
import unittest

import drover

APP = """id: web
cmd: exec sleep 1000
instances: {instances}
gpus: 1
cpus: 0.1
mem: {mem}
"""


class ApplyTest(drover.DaemonTest):
    profile = "dgx1-v100"

    def setUp(self):
        super().setUp()
        self.addCleanup(self.remove_apps)

    def remove_apps(self):
        for app in self.apps():
            self.daemon.cli("app", "remove", app["id"], "--force")

    def file(self, text, name="app.yaml"):
        path = self.daemon.folder / name
        path.write_text(text)
        return path

    def apply(self, text, *flags):
        return self.daemon.cli("apply", *flags, self.file(text))

    def apps(self):
        return json.loads(self.daemon.cli("app", "list", "--json").out)["apps"]

    def test_an_app_comes_up_changes_and_goes_back(self):
        ran = self.apply(APP.format(instances=1, mem=64))
        self.assertEqual(ran.status, 0, ran)
        self.assertIn("/web: new, 1 instance with 1 GPU\n", ran.out)
        self.assertIn("/web: 1/1 up", ran.out)
        self.assertEqual(self.apps()[0]["tasksRunning"], 1)

        again = self.apply(APP.format(instances=1, mem=64))
        self.assertEqual((again.status, again.out), (0, "/web: unchanged\n"), again)

        plan = self.apply(APP.format(instances=2, mem=128), "--dry-run")
        self.assertEqual((plan.status, plan.out), (0, "/web: instances 1 → 2, mem 64 → 128\n"), plan)
        self.assertEqual(self.apps()[0]["instances"], 1)

        changed = self.apply(APP.format(instances=2, mem=128))
        self.assertEqual(changed.status, 0, changed)
        self.assertEqual(self.apps()[0]["tasksRunning"], 2)

        history = json.loads(self.daemon.cli("app", "history", "web", "--json").out)["versions"]
        self.assertEqual([len(history), history[0]["changes"], history[0]["current"]],
                         [2, ["instances 1 → 2", "mem 64 → 128"], True], history)
        back = self.daemon.cli("app", "rollback", "web")
        self.assertEqual(back.status, 0, back)
        self.assertEqual([self.apps()[0][name] for name in ("instances", "mem", "tasksRunning")], [1, 64, 1])

        scaled = self.daemon.cli("app", "scale", "/web", "2")
        self.assertEqual(scaled.status, 0, scaled)
        self.assertEqual(self.daemon.cli("app", "show", "web").out.count("TASK_RUNNING"), 2)
        self.assertEqual(self.daemon.cli("app", "remove", "web").status, 0)
        self.assertEqual(self.daemon.cli("app", "show", "web").status, 66)

    def test_nothing_is_sent_when_a_file_is_wrong(self):
        right, wrong = self.file(APP.format(instances=1, mem=64)), self.file("id: b\ncmd: x\nmem: lots\n", "wrong.yaml")
        ran = self.daemon.cli("apply", right, wrong)
        self.assertEqual(ran.status, 64, ran)
        self.assertIn("wrong.yaml:3:6: /mem: ", ran.err)
        self.assertEqual(self.apps(), [])

    def test_what_waits_says_why_and_survives_an_interrupt(self):
        waiting = subprocess.Popen([drover.BINARY, "--socket", self.daemon.socket, "apply", self.file(
            APP.format(instances=1, mem=64).replace("gpus: 1", "gpus: 9"))], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(waiting.kill)
        lines = []
        while not lines or "waits: " not in lines[-1]:
            lines.append(waiting.stdout.readline())
            self.assertTrue(lines[-1], lines)
        waiting.send_signal(signal.SIGINT)
        _, errors = waiting.communicate(timeout=drover.PATIENCE)
        self.assertEqual(waiting.returncode, 130, errors)
        self.assertIn("the deployment goes on without you", errors)
        self.assertEqual(len(self.apps()[0]["deployments"]), 1)

    def test_a_name_that_is_nearly_right_is_recognised(self):
        self.assertEqual(self.apply(APP.format(instances=0, mem=64)).status, 0)
        ran = self.daemon.cli("app", "show", "wob")
        self.assertEqual(ran.status, 66, ran)
        self.assertIn("did you mean '/web'?", ran.err)


if __name__ == "__main__":
    unittest.main()
