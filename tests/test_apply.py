"""'drover apply' and 'drover app' against the real daemon: apps come up, change, go back and end as their files say."""

import json
import re
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

# Its check would be well, so that it is never well by a chance of time.
FAILING = """id: /shop/web
cmd: echo serve.py is not there >&2; exit 2
instances: 2
cpus: 0.1
mem: 32
backoffSeconds: 1
healthChecks: [{{protocol: COMMAND, command: {{value: "true"}}, delaySeconds: {delay}}}]
"""
MENDED = FAILING.replace("echo serve.py is not there >&2; exit 2", "exec sleep 1000").replace(", delaySeconds: {delay}", ", delaySeconds: 0")


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
        self.assertIn("has 2 instances", self.daemon.cli("app", "resume", "web").err)
        for verb, running in (("suspend", 0), ("resume", 2)):
            self.assertEqual(self.daemon.cli("app", verb, "web").status, 0)
            self.assertEqual(self.apps()[0]["tasksRunning"], running)
        self.assertEqual(self.daemon.cli("app", "remove", "web").status, 0)
        self.assertEqual(self.daemon.cli("app", "show", "web").status, 66)

    def test_nothing_is_sent_when_a_file_is_wrong(self):
        right, wrong = self.file(APP.format(instances=1, mem=64)), self.file("id: b\ncmd: x\nmem: lots\n", "wrong.yaml")
        ran = self.daemon.cli("apply", right, wrong)
        self.assertEqual(ran.status, 64, ran)
        self.assertIn("wrong.yaml:3:6: /mem: ", ran.err)
        self.assertEqual(self.apps(), [])

    def test_what_apply_would_refuse_a_dry_run_refuses_in_the_same_words(self):
        job = "name: j\ncommand: x\n"
        self.daemon.api("PUT", "/v1/queues/small", {"limit": {"gpus": 1}})
        self.addCleanup(self.daemon.api, "DELETE", "/v1/queues/small")
        for what, text in (("GPUs of an app", APP.format(instances=1, mem=64).replace("gpus: 1", "gpus: 100")),
                           ("GPUs of a job", job + "gpus: 100\nschedule: R/2030-01-31T02:30:00Z/P1D\n"),
                           ("GPUs of a task", "kind: task\ncommand: [x]\ngpus: 100\n"),
                           ("GPUs of a gang", "kind: gang\ncommand: [x]\ngpus: 5\ngang: {size: 2}\n"),
                           ("a parent that is not there", job + "parents: [nobody]\n"),
                           ("a privileged container", "id: p\ncontainer: {docker: {image: i, privileged: true}}\n"),
                           ("a user who is not there", APP.format(instances=1, mem=64) + "user: nobody-of-this-name\n"),
                           ("a limit of a queue", "kind: task\ncommand: [x]\ngpus: 2\nqueue: small\n"),
                           ("a queue that is not there", "kind: task\ncommand: [x]\nqueue: none/there\n")):
            with self.subTest(what):
                dry, real = self.apply(text, "--dry-run"), self.apply(text)
                self.assertNotEqual(real.status, 0, "it is to be refused")
                self.assertEqual(dry, real)

    def test_a_dry_run_leaves_nothing(self):
        """Each definition sees those before it: the job its parent, and the app of the file's own group."""
        everything = (APP.format(instances=1, mem=64) + "---\nid: shop\napps: [{id: web, cmd: sleep 9, gpus: 1}]\n---\n"
                      "name: first\ncommand: x\nschedule: R/2030-01-31T02:30:00Z/P1D\n---\nname: second\ncommand: x\nparents: [first]\n---\n"
                      "kind: task\ncommand: [x]\ngpus: 1\n")
        tasks = len(self.daemon.tasks())
        ran = self.apply(everything, "--dry-run")
        self.assertEqual((ran.status, ran.err), (0, ""), ran)
        self.assertEqual(ran.out, "/web: new, 1 instance with 1 GPU\n/shop/web: new, 1 instance with 1 GPU\n"
                         "first: new, R/2030-01-31T02:30:00Z/P1D\nsecond: new, after first\nx: new, a task with 1 GPU\n")
        self.assertEqual(self.apps(), [])
        self.assertEqual(self.daemon.api("GET", "/v1/scheduler/jobs"), [])
        self.assertEqual(len(self.daemon.tasks()), tasks)

    def test_a_dry_run_is_made_with_the_rights_of_who_asks(self):
        mine = "name: roots\ncommand: x\nschedule: R/2030-01-31T02:30:00Z/P1D\n"
        self.assertEqual(self.apply(mine).status, 0)
        self.addCleanup(self.daemon.cli, "job", "remove", "roots")
        theirs = self.daemon.cli("apply", "--dry-run", self.file(mine), uid=drover.NOBODY)
        self.assertEqual(theirs.status, 77, theirs)
        self.assertIn("belongs to somebody else", theirs.err)

    def test_a_task_is_submitted_each_time(self):
        task = "kind: task\nname: once\ncommand: [echo, done]\nmem: 64MiB\n"
        ran = self.apply(task)
        self.assertEqual(ran.status, 0, ran)
        first = re.fullmatch(r"once: new, a task\nonce: submitted as (\w+)\n", ran.out)
        self.assertTrue(first, ran)
        self.daemon.wait_for_output(first[1], "done")
        again = json.loads(self.apply(task, "--json").out)["tasks"]
        self.assertEqual([(each["kind"], each["name"]) for each in again], [("task", "once")])
        self.assertNotEqual(again[0]["id"], first[1])
        gang = json.loads(self.apply("kind: gang\nname: two\ncommand: [echo, done]\ngang: {size: 2}\n", "--json").out)["tasks"][0]
        self.daemon.wait_for_output(gang["id"] + "-1", "done")

    def test_a_task_is_submitted_when_all_beside_it_is_taken(self):
        task, before = "kind: task\ncommand: [echo, done]\n", len(self.daemon.tasks())
        for other in ("kind: task\ncommand: [x]\ngpus: 100\n", "name: j\ncommand: x\nparents: [nobody]\n"):
            ran = self.apply(f"{task}---\n{other}")
            self.assertNotEqual(ran.status, 0, ran)
            self.assertEqual(len(self.daemon.tasks()), before)

    def test_unknown_fields_are_warned_of_and_strictly_refused(self):
        text = APP.format(instances=0, mem=64) + "instnces: 3\n"
        strict = self.apply(text, "--strict")
        self.assertEqual(strict.status, 64, strict)
        self.assertEqual(self.apps(), [])
        ran = self.apply(text)
        self.assertEqual(ran.status, 0, ran)
        self.assertIn("warning: /instnces: unknown field 'instnces'", ran.err)

    def test_what_the_daemon_shows_has_no_unknown_field(self):
        """An app, a group or a job as the API answers it is a definition again."""
        self.assertEqual(self.apply(APP.format(instances=1, mem=64) + "---\nid: shop\napps: [{id: web, cmd: sleep 9}]\n").status, 0)
        self.apply("name: j\ncommand: x\nschedule: R/2030-01-31T02:30:00Z/P1D\n")
        self.addCleanup(self.daemon.cli, "job", "remove", "j")
        for path in ("/v2/apps//web", "/v2/groups//shop", "/v1/scheduler/job/j"):
            shown = self.daemon.api("GET", path)
            shown = shown.get("app", shown)
            ran = self.daemon.cli("validate", "--strict", self.file(json.dumps(shown), "shown.json"))
            self.assertEqual(ran.status, 0, ran)

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

    def assert_forgotten(self, app):
        drover.wait_for(lambda: self.daemon.cli("app", "inspect", app).status == 66, "it to be gone")

    def test_a_deployment_that_fails_says_how_and_makes_way(self):
        failing = FAILING.format(delay=60)
        ran = self.apply(failing, "--timeout", "5s")
        self.assertEqual(ran.status, 75, ran)
        how = r"/shop/web: (shop_web\.instance-\S+) failed \d+s ago: exited with status 2\n  \| serve.py is not there\n"
        task = re.search(how, ran.out).group(1)
        self.assertEqual(len(re.findall(how, ran.out)), 1, "it is told again and again")
        self.assertRegex(ran.err, how)
        self.assertIn("'drover app cancel /shop/web' takes it back", ran.err)
        self.assertEqual(self.daemon.cli("logs", "--stderr", task).out, "")
        self.assertIn("serve.py is not there", self.daemon.cli("logs", "--stderr", task).err)
        self.assertRegex(self.daemon.cli("app", "inspect", "/shop/web").out, how)

        # A client of Marathon's is refused, as by Marathon.
        with self.assertRaises(drover.ApiError) as refused:
            self.daemon.api("PUT", "/v2/apps/shop/web", {"instances": 1})
        self.assertEqual(refused.exception.status, 409)

        mended = self.apply(MENDED.format())
        self.assertEqual(mended.status, 0, mended)
        self.assertEqual(self.daemon.cli("app", "deployments", "--json").out, '{\n  "deployments": []\n}\n')

        # The version that is up stays while another fails.
        self.assertEqual(self.apply(failing, "--detach").status, 0)
        self.assertEqual(self.daemon.cli("app", "rollback", "/shop/web").status, 0)
        self.assertEqual(self.apply(failing, "--detach").status, 0)
        self.assertEqual(self.daemon.cli("app", "rm", "/shop/web").status, 0)
        self.assert_forgotten("/shop/web")

    def test_a_first_deployment_that_fails_is_removed(self):
        self.assertEqual(self.apply(FAILING.format(delay=60), "--detach").status, 0)
        ran = self.daemon.cli("app", "rm", "/shop/web")
        self.assertEqual(ran.status, 0, ran)
        self.assert_forgotten("/shop/web")

    def test_a_deployment_is_taken_back(self):
        first = self.apply(FAILING.format(delay=60), "--detach").out.splitlines()[-1]
        (shown,) = json.loads(self.daemon.cli("app", "deployments", "--json").out)["deployments"]
        self.assertEqual([shown["id"], shown["apps"], shown["actions"]],
                         [first, ["/shop/web"], [{"action": "scale", "app": "/shop/web"}]], shown)
        self.assertIn("its instances fail", drover.wait_for(
            lambda: re.search("its instances fail.*", self.daemon.cli("app", "deployments").out), "why it waits")[0])
        back = self.daemon.cli("app", "cancel", first)
        self.assertEqual(back.status, 0, back)
        self.assert_forgotten("/shop/web")  # it was not there before

        self.assertEqual(self.apply(MENDED.format()).status, 0)
        self.assertEqual(self.apply(FAILING.format(delay=60), "--detach").status, 0)
        self.assertEqual(self.daemon.cli("app", "cancel", "/shop/web").status, 0)
        self.assertEqual(self.apply(MENDED.format()).out, "/shop/web: unchanged\n")

        self.assertEqual(self.apply(FAILING.format(delay=60), "--detach").status, 0)
        given_up = self.daemon.cli("app", "cancel", "--force", "/shop/web")
        self.assertEqual(given_up.status, 0, given_up)
        self.assertEqual(self.daemon.cli("app", "cancel", "/shop/web").status, 66)
        (app,) = self.apps()
        self.assertIn("exit 2", app["cmd"])

    def test_a_restart_is_no_version_to_go_back_to(self):
        for memory in (64, 128):
            self.assertEqual(self.apply(APP.format(instances=1, mem=memory)).status, 0)
        self.assertEqual(self.daemon.cli("app", "restart", "web").status, 0)
        told = [row.split()[1] for row in self.daemon.cli("app", "history", "web").out.splitlines()[1:]]
        self.assertEqual(told[:2], ["*", "same"])
        self.assertEqual(self.daemon.cli("app", "rollback", "web").status, 0)
        self.assertEqual(self.apps()[0]["mem"], 64)

    def test_the_first_health_check_is_waited_for(self):
        waiting = subprocess.Popen([drover.BINARY, "--socket", self.daemon.socket, "apply", self.file(
            MENDED.format().replace("delaySeconds: 0", "delaySeconds: 600"))], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(waiting.kill)
        lines = []
        while not lines or "waits: first health check in " not in lines[-1]:
            lines.append(waiting.stdout.readline())
            self.assertTrue(lines[-1], lines)
        waiting.send_signal(signal.SIGINT)
        _, errors = waiting.communicate(timeout=drover.PATIENCE)
        self.assertEqual(waiting.returncode, 130, errors)
        self.assertEqual(errors, "drover: the deployment goes on without you\n"
                         "drover: 'drover app inspect /shop/web' shows how it is, 'drover app cancel /shop/web' takes it back\n")

    def test_a_name_that_is_nearly_right_is_recognised(self):
        self.assertEqual(self.apply(APP.format(instances=0, mem=64)).status, 0)
        ran = self.daemon.cli("app", "show", "wob")
        self.assertEqual(ran.status, 66, ran)
        self.assertIn("did you mean '/web'?", ran.err)


class InitTest(drover.DaemonTest):
    """What 'drover init' writes runs as it is on a machine with one GPU."""

    profile = "k40m"

    def init(self, kind):
        file = self.daemon.folder / f"{kind}.yaml"
        ran = self.daemon.cli("init", kind, file)
        self.assertEqual(ran.status, 0, ran)
        return file

    def submitted(self, kind):
        ran = self.daemon.cli("apply", "--strict", self.init(kind))
        self.assertEqual((ran.status, ran.err), (0, ""), ran)
        return re.search(r"submitted as (\w+)\n", ran.out)[1]

    def test_a_task(self):
        self.daemon.wait_for_output(self.submitted("task"), "I have GPU GPU-")

    def test_a_gang(self):
        gang = self.submitted("gang")
        for rank in range(2):
            self.daemon.wait_for_output(f"{gang}-{rank}", f"I am {rank} of 2")

    def test_an_app(self):
        ran = self.daemon.cli("apply", "--strict", self.init("app"))
        self.addCleanup(self.daemon.cli, "app", "remove", "/hello", "--force")
        self.assertEqual((ran.status, ran.err), (0, ""), ran)
        self.assertIn("/hello: 1/1 up", ran.out)

    def test_a_job(self):
        ran = self.daemon.cli("apply", "--strict", self.init("job"))
        self.addCleanup(self.daemon.cli, "job", "remove", "nightly")
        self.assertEqual((ran.status, ran.err), (0, ""), ran)
        self.assertEqual(self.daemon.cli("job", "run", "nightly").status, 0)
        drover.wait_for(lambda: "I have GPU GPU-" in self.daemon.cli("logs", "nightly").out, "the job to run")


if __name__ == "__main__":
    unittest.main()
