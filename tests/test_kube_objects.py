"""Apps, schedules and jobs that objects of a real cluster define, and what people read in them."""

import json
import time
import unittest

import drover
import kube_install
from cluster_daemon import ClusterDaemon, ClusterDaemonTest
from kube.machine import wait_for

EXAMPLES = drover.ROOT / "examples/kubernetes-objects"
NAMESPACE = "drover-nobody"
KINDS = ("apps", "schedules", "jobs")


class ObjectsDaemon(ClusterDaemon):
    def __init__(self, profile, arguments=()):
        super().__init__(profile, ["--objects", *arguments])
        helm = kube_install.Helm(self.cluster)
        kinds = helm.template("--show-only", "templates/control-plane-crds.yaml", values={"controlPlane": {"enabled": True}})
        helm.close()
        self.cluster.kubectl("apply", "--filename=-", input=kinds)
        self.cluster.kubectl("wait", "--for=condition=Established", *(f"crd/{kind}.drover.dev" for kind in KINDS))
        for name in (NAMESPACE, "drover-root"):
            self.cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


class ObjectsTest(ClusterDaemonTest):
    kind_of_daemon = ObjectsDaemon

    @property
    def cluster(self):
        return self.daemon.cluster

    def log(self):
        return self.daemon.read_log()[-3000:]

    def define(self, kind, name, spec, namespace=NAMESPACE, verb="apply"):
        self.addCleanup(self.remove, kind, name, namespace)
        made = {"apiVersion": "drover.dev/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}
        self.cluster.kubectl(verb, "--filename=-", input=json.dumps(made))

    def define_app(self, name, namespace=NAMESPACE, **spec):
        self.define("App", name, {"cmd": "exec sleep 100000", "cpus": 0.1, "mem": 64, **spec}, namespace)

    def define_job(self, name, script, **spec):
        self.define("Job", name, {"command": ["/bin/sh", "-c", script], "cpus": 0.1, "memory": "64MiB", **spec})

    def remove(self, kind, name, namespace=NAMESPACE):
        self.cluster.delete(f"{kind.lower()}s.drover.dev", name, namespace=namespace)

    def status(self, kind, name, namespace=NAMESPACE):
        found = self.cluster.get(f"{kind.lower()}s.drover.dev", name, namespace)
        return (found or {}).get("status", {})

    def condition(self, kind, name, namespace=NAMESPACE):
        return next(iter(self.status(kind, name, namespace).get("conditions", [])), {})

    def wait_for_status(self, kind, name, namespace=NAMESPACE, **fields):
        def comes():
            status = self.status(kind, name, namespace)
            return all(status.get(field) == value for field, value in fields.items())
        wait_for(comes, lambda: f"{kind} {name} to have {fields}: {self.status(kind, name, namespace)}; {self.log()}", timeout=90)
        return self.status(kind, name, namespace)

    def wait_for_refusal(self, kind, name, reason, namespace=NAMESPACE):
        wait_for(lambda: self.condition(kind, name, namespace).get("reason") == reason,
                 lambda: f"{self.status(kind, name, namespace)}; {self.log()}")
        self.assertEqual(self.condition(kind, name, namespace)["status"], "False")
        return self.condition(kind, name, namespace)["message"]

    def app(self, name):
        return self.daemon.api("GET", f"/v2/apps//{name}")["app"]

    def tasks_of(self, *jobs):
        return [record for record in self.daemon.tasks() if record["task"]["name"] in jobs]

    def pods_of(self, app):
        return [pod for pod in self.daemon.pods() if pod["metadata"]["labels"].get("drover.dev/service") == app]

    def test_the_examples_of_the_page_work(self):
        for kind, name in (("App", "web"), ("Job", "train"), ("Schedule", "report")):
            self.addCleanup(self.remove, kind, name)
            self.cluster.kubectl("apply", "--filename=-", input=(EXAMPLES / f"{kind.lower()}.yaml").read_text().replace("drover-ann", NAMESPACE))
        self.wait_for_status("App", "web", instances="2/2", deploying=False)
        self.assertEqual({pod["metadata"]["namespace"] for pod in self.pods_of("web")}, {NAMESPACE})
        self.assertEqual(self.wait_for_status("Job", "train", phase="Succeeded")["exitStatus"], 0)
        wait_for(lambda: self.status("Schedule", "report").get("successes", 0) > 0,
                 lambda: f"{self.status('Schedule', 'report')}; {self.log()}", timeout=90)
        self.assertEqual(self.status("Schedule", "report")["last"], "Succeeded")
        self.assertIn("next", self.status("Schedule", "report"))
        for kind, words in (("dapp", r"web +2/2 .* false +True"), ("djob", r"train +Succeeded +0 +\S+ +True"), ("dschedule", r"report +R/.* Succeeded +True")):
            self.assertRegex(self.cluster.kubectl("get", kind, "--namespace", NAMESPACE).stdout, words)
        wait_for(lambda: {"Accepted", "Deployed"} <= {event["reason"] for event in self.cluster.events("web", NAMESPACE)}, "events of the app")
        wait_for(lambda: "Succeeded" in {event["reason"] for event in self.cluster.events("train", NAMESPACE)}, "events of the job")
        for kind, name in (("App", "web"), ("Job", "train"), ("Schedule", "report")):
            self.remove(kind, name)
        self.assertEqual(self.daemon.api("GET", "/v2/apps")["apps"], [])
        self.assertEqual(self.daemon.api("GET", "/v1/scheduler/jobs"), [])
        wait_for(lambda: not self.daemon.pods(), "the pods to go")

    def test_a_change_deploys_and_a_mistake_changes_nothing(self):
        self.define_app("web", env={"A": "1"})
        first = self.wait_for_status("App", "web", instances="1/1", deploying=False)
        self.define_app("web", env={"A": "2"}, instances=2)
        wait_for(lambda: self.status("App", "web")["version"] != first["version"], lambda: self.status("App", "web"))
        second = self.wait_for_status("App", "web", instances="2/2", deploying=False)
        self.assertEqual(self.app("web")["env"], {"A": "2"})
        self.define_app("web", cpus=-1, env={"A": 3}, typo=True)
        message = self.wait_for_refusal("App", "web", "Invalid")
        for place in ("/cpus", "/env"):
            self.assertIn(place, message)
        self.assertEqual((self.app("web")["version"], self.status("App", "web")["instances"]), (second["version"], "2/2"))
        self.define_app("web", instances=1)
        self.wait_for_status("App", "web", instances="1/1")
        self.assertEqual(self.app("web")["env"], {}, "what it does not say any more is as by default")

    def test_the_id_stays_as_it_is(self):
        self.define_app("named", id="/team/one")
        self.wait_for_status("App", "named", id="/team/one", instances="1/1")
        patch = json.dumps({"spec": {"id": "/team/two"}})
        refused = self.cluster.kubectl("patch", "dapp", "named", "--namespace", NAMESPACE, "--type=merge", f"--patch={patch}", check=False)
        self.assertIn("the id stays as it is", refused.stderr)

    def test_a_job_says_how_it_ended_and_does_not_run_again(self):
        self.define_job("fails", "exit 7")
        self.assertEqual(self.wait_for_status("Job", "fails", phase="Failed")["exitStatus"], 7)
        (record,) = self.tasks_of("fails")
        self.assertEqual(record["task"]["owner"], drover.NOBODY)
        self.daemon.api("DELETE", f"/v1/tasks/{record['task']['id']}")
        self.define_job("fails", "exit 8")
        self.assertIn("make it anew", self.wait_for_refusal("Job", "fails", "Immutable"))
        self.assertEqual(self.status("Job", "fails")["exitStatus"], 7)
        self.assertEqual(self.tasks_of("fails"), [])

    def test_a_gang_waits_in_words_and_is_stopped(self):
        self.define_job("first", "sleep 1000", gpus=1)
        self.wait_for_status("Job", "first", phase="Running")
        self.define_job("gang", "sleep 1000", gpus=8, gang={"size": 2})
        wait_for(lambda: "node" in self.status("Job", "gang").get("reason", ""), lambda: f"{self.status('Job', 'gang')}; {self.log()}")
        status = self.status("Job", "gang")
        self.assertEqual((status["phase"], status["tasks"]), ("Queued", 2))
        self.remove("Job", "first")
        self.assertIn(",", self.wait_for_status("Job", "gang", phase="Running")["nodes"])
        self.remove("Job", "gang")
        self.assertEqual(self.tasks_of("first", "gang"), [])
        self.define_job("large", "exit 0", gpus=8, gang={"size": 3})
        self.assertIn("2 of 3 members fit", self.wait_for_refusal("Job", "large", "Invalid"))

    def test_it_goes_on_after_a_crash(self):
        self.define_app("web")
        self.define_job("long", "sleep 6; exit 3")
        self.wait_for_status("App", "web", instances="1/1", deploying=False)
        self.wait_for_status("Job", "long", phase="Running")
        self.daemon.kill()
        self.define_app("web", instances=2)
        self.define_app("new")
        self.define_job("meanwhile", "exit 4")
        self.daemon.start()
        self.wait_for_status("App", "web", instances="2/2")
        self.wait_for_status("App", "new", instances="1/1")
        self.assertEqual(self.wait_for_status("Job", "long", phase="Failed")["exitStatus"], 3)
        self.assertEqual(self.wait_for_status("Job", "meanwhile", phase="Failed")["exitStatus"], 4)
        for number in range(6):  # each is submitted once, wherever it dies
            self.define_job(f"short-{number}", "exit 0")
            time.sleep(0.3)
            self.daemon.kill()
            self.daemon.start()
        for number in range(6):
            self.wait_for_status("Job", f"short-{number}", phase="Succeeded")
            self.assertEqual(len(self.tasks_of(f"short-{number}")), 1)

    def test_what_others_have_made_is_left_alone(self):
        app = {"id": "/theirs", "cmd": "exec sleep 100000", "cpus": 0.1, "mem": 64}
        self.daemon.api("POST", "/v2/apps", app)  # root's
        self.addCleanup(self.daemon.api, "DELETE", "/v2/apps//theirs?force=true")
        job = {"name": "theirs", "command": "true", "schedule": "R/2040-01-01T00:00:00Z/P1D", "cpus": 0.1, "mem": 64}
        self.daemon.api("POST", "/v1/scheduler/iso8601", job)
        self.addCleanup(self.daemon.api, "DELETE", "/v1/scheduler/job/theirs")
        before = self.app("theirs")["version"]
        for namespace, message in ((NAMESPACE, "already exists"), ("drover-root", "does not come from this object")):
            self.define_app("theirs", namespace, cmd="exec sleep 5", labels={"drover.dev/object": "forged"})
            self.assertIn(message, self.wait_for_refusal("App", "theirs", "Exists", namespace))
        self.define("Schedule", "theirs", {**job, "command": "false"})
        self.assertIn("belongs to somebody else", self.wait_for_refusal("Schedule", "theirs", "Forbidden"))
        for namespace in (NAMESPACE, "drover-root"):
            self.remove("App", "theirs", namespace)
        self.remove("Schedule", "theirs")
        self.assertEqual(self.app("theirs")["version"], before)
        self.assertEqual([job["command"] for job in self.daemon.api("GET", "/v1/scheduler/jobs")], ["true"])

    def test_a_forged_mark_gets_nothing_of_root(self):
        self.define_app("lure", "drover-root", cpus=-1)
        self.wait_for_refusal("App", "lure", "Invalid", "drover-root")
        uid = self.cluster.get("apps.drover.dev", "lure", "drover-root")["metadata"]["uid"]
        forged = {"id": "/lure", "cmd": "exec sleep 100000", "cpus": 0.1, "mem": 64, "labels": {"drover.dev/object": f"drover-root/lure/{uid}"}}
        self.daemon.api("POST", "/v2/apps", forged, uid=drover.NOBODY)
        self.addCleanup(self.daemon.api, "DELETE", "/v2/apps//lure?force=true")
        self.define_app("lure", "drover-root", env={"SECRET": "x"})
        self.wait_for_refusal("App", "lure", "Exists", "drover-root")
        self.remove("App", "lure", "drover-root")
        self.assertEqual(self.app("lure")["env"], {}, "it is his, and goes on as it was")

    def test_nobody_gets_more_rights_than_his_namespaces_user(self):
        self.define_app("as-root", user="root")
        self.assertIn("may not run apps as 'root'", self.wait_for_refusal("App", "as-root", "Forbidden"))
        self.define_job("as-root", "id", user="root")
        self.assertIn("root", self.wait_for_refusal("Job", "as-root", "Forbidden"))
        self.define("Schedule", "as-root", {"command": "id", "schedule": "R/2026-01-01T00:00:00Z/PT5S", "runAsUser": "root"})
        self.assertIn("may not run jobs as 'root'", self.wait_for_refusal("Schedule", "as-root", "Forbidden"))
        for namespace in ("default", "kube-system"):
            self.define_app("foreign", namespace)
            self.assertIn(f"'{namespace}' is no user's", self.wait_for_refusal("App", "foreign", "NoSuchUser", namespace))
        huge = {"cmd": "true", "env": {f"V{number}": "x" * 1000 for number in range(1200)}}  # more than apply can remember
        self.define("App", "large", huge, verb="create")
        self.assertIn("larger than one may be", self.wait_for_refusal("App", "large", "Invalid"))
        self.define("Job", "strange", {"command": "no list", "gpus": -1, "unknown": 5})
        message = self.wait_for_refusal("Job", "strange", "Invalid")
        for place in ("/command", "/gpus", "/unknown"):
            self.assertIn(place, message)
        self.assertEqual(self.daemon.api("GET", "/v2/apps")["apps"], [])
        self.assertEqual(self.tasks_of("as-root", "strange"), [])

    def test_what_somebody_changes_behind_it_is_put_right(self):
        self.define_app("web", instances=1)
        self.wait_for_status("App", "web", instances="1/1", deploying=False)
        self.daemon.api("PUT", "/v2/apps//web", {"instances": 2})
        self.wait_for_status("App", "web", wanted=1)
        wait_for(lambda: self.app("web")["instances"] == 1, lambda: self.app("web"))
        self.daemon.api("DELETE", "/v2/apps//web?force=true")
        wait_for(lambda: self.app_is_there("web"), self.log)

    def app_is_there(self, name):
        return any(app["id"] == f"/{name}" for app in self.daemon.api("GET", "/v2/apps")["apps"])

    def test_its_status_is_written_seldom(self):
        self.define_app("web", cmd="exit 1", backoffSeconds=1, maxLaunchDelaySeconds=1)
        wait_for(lambda: self.status("App", "web"), self.log)

        def version():
            return int(self.cluster.get("apps.drover.dev", "web", NAMESPACE)["metadata"]["resourceVersion"])

        seen, until = {version()}, time.monotonic() + 5
        while time.monotonic() < until:
            seen.add(version())
            time.sleep(0.05)
        self.assertLess(len(seen), 9, "at most one a second")


if __name__ == "__main__":
    unittest.main()
