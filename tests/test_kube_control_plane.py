"""The daemon in the cluster, by the chart: reached through the API server, and replaced without losing what it knows."""

import base64
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import drover
import kube
from kube.machine import wait_for
from kube_install import CHART, PATIENCE, VALUES, Helm, make_image
from kube_node import GPU
from test_export import EVERYTHING

NAMESPACE, PLANE = "drover", "drover-control-plane"
PROXY = f"/api/v1/namespaces/{NAMESPACE}/services/http:{PLANE}:http/proxy"
STATE = "/var/lib/plane"
SMALL = ("--cpus", "0.1", "--mem", "64MiB")
AUDIT = pathlib.Path(tempfile.gettempdir()) / f"drover-audit-plane-{os.getpid()}"
# The first is used when an answer was lost; the others the API server wants besides, for a command and for an object that is applied.
UNSEEN = {("pods", "get"), ("pods/exec", "create"), ("pods/attach", "create"), ("services", "create"), ("queues", "create"), ("quotas", "create"),
          ("events", "patch"),  # of what happens again
          ("queues", "use"), ("csidrivers", "use"),  # which the chart's own policies ask for, where they are on
          ("secrets", "create"), ("secrets", "patch"),  # of executors: test_kube_executors
          # What a plan asks for where something names it.
          *((kind, "get") for kind in ("jobs", "jobsets", "leaderworkersets", "podgroups", "resourceclaimtemplates", "jaxjobs", "mpijobs", "mxjobs",
                                       "paddlejobs", "pytorchjobs", "tfjobs", "xgboostjobs")),
          ("podgroups", "list"), ("devicetaintrules", "list")}  # where they are served


def setUpModule():
    AUDIT.mkdir()
    (AUDIT / "policy.json").write_text(json.dumps({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "users": [f"system:serviceaccount:{NAMESPACE}:{PLANE}"]}, {"level": "None"}]}))


def tearDownModule():
    shutil.rmtree(AUDIT)


class ControlPlaneTest(kube.ClusterTest):
    settings = kube.Settings(services=True, flags={"kube-apiserver": (f"--audit-policy-file={AUDIT}/policy.json", f"--audit-log-path={AUDIT}/log")})
    values = {**VALUES, "simulate": "dgx1-v100", "scheduler": {"enabled": True, "replicas": 1, "takePods": False, "protectClaims": False},
              "roles": {"sandboxes": True},
              "controlPlane": {"enabled": True, "defaultImage": kube.SHELL, "users": [{"name": "ann", "uid": 4321, "groups": [77]}]}}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.helm = Helm(cls.cluster)
        cls.addClassCleanup(cls.helm.close)
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="drover-contexts-"))
        cls.addClassCleanup(lambda: shutil.rmtree(cls.folder))
        with tempfile.TemporaryDirectory() as folder:
            archive = make_image(pathlib.Path(folder))
            for node in cls.cluster.nodes:
                node.import_images([archive])
        cls.make_volume()
        cls.addClassCleanup(cls.uninstall)
        cls.helm.call("install", "drover", CHART, "--namespace", NAMESPACE, "--create-namespace", "--wait", values=cls.values)
        for node in cls.cluster.nodes:
            wait_for(lambda node=node: int(cls.cluster.get("node", node.name)["status"]["allocatable"].get(GPU, 0)) == 8, "8 GPUs on a node")
        cls.secret = cls.credentials().partition(":")[2].strip()
        cls.add_context("cluster", cls.cluster.kubeconfig, cls.secret)

    @classmethod
    def make_volume(cls):
        """On one node, as a disk of a machine is."""
        node = cls.cluster.nodes[0]
        node.path(STATE).mkdir(mode=0o755)
        cls.cluster.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "plane"}, "spec": {
            "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "local": {"path": STATE},
            "persistentVolumeReclaimPolicy": "Retain", "nodeAffinity": {"required": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node.name]}]}]}}}})

    @classmethod
    def uninstall(cls):
        ran = cls.drover("run", *SMALL, "--detach", "--priority", "7", "--gpus", "1", "--group", "left", "--", "/probe", "sleep", "1000")
        wait_for(lambda: any(pod["status"]["phase"] == "Running" for pod in cls.tasks()), lambda: f"a task to run: {ran}; {cls.tasks()}")
        left = cls.define("Schedule", "left", {"command": "true", "schedule": "R/2040-01-01T00:00:00Z/P1D"})
        cls.helm.call("uninstall", "drover", "--namespace", NAMESPACE, "--wait", "--ignore-not-found")
        # Nobody is there any more for whom it would have to wait.
        cls.cluster.kubectl("delete", left, "--namespace=drover-root", "--timeout=30s")
        wait_for(lambda: not cls.left(), cls.left, timeout=60)
        cls.cluster.delete("pvc", PLANE, namespace=NAMESPACE)
        cls.cluster.delete("pv", "plane")

    @classmethod
    def left(cls):
        made = cls.cluster.kubectl("get", "pods,services,leases,priorityclasses", "--all-namespaces", "--output=name").stdout.split()
        return [name for name in made if "drover" in name] + cls.tasks() + cls.claims()

    @classmethod
    def tasks(cls):
        return cls.cluster.api.list("pods", labelSelector="drover.dev/task")

    @classmethod
    def claims(cls):
        return cls.cluster.kubectl("get", "resourceclaims", "--all-namespaces", "--output=name").stdout.split()

    @classmethod
    def credentials(cls):
        return base64.b64decode(cls.cluster.get("secret", PLANE, NAMESPACE)["data"]["credentials"]).decode()

    @classmethod
    def drover(cls, *words, context="cluster", **environment):
        """The command line, as somebody has it who reaches nothing of the cluster but its API server."""
        command = [str(word) for word in cls.cluster.reaching(drover.BINARY, *(("--context", context) if context else ()), *words)]
        return drover.run(command, env={**os.environ, "XDG_CONFIG_HOME": str(cls.folder), **environment})

    @classmethod
    def add_context(cls, name, kubeconfig, secret):
        added = cls.drover("context", "add", name, "--kubeconfig", kubeconfig, context=None, DROVER_TOKEN=secret)
        if added.status != 0:
            raise AssertionError(added)

    @classmethod
    def pods(cls):
        return [pod for pod in cls.cluster.list("pods", NAMESPACE, labelSelector="app.kubernetes.io/name=drover-control-plane")]

    @classmethod
    def log(cls):
        return "\n".join(cls.cluster.kubectl("logs", pod["metadata"]["name"], "--namespace", NAMESPACE, check=False).stdout for pod in cls.pods())

    def wait_until_it_answers(self):
        wait_for(lambda: self.drover("gpus").status == 0, lambda: f"{self.drover('gpus')}; {self.log()}", timeout=PATIENCE)

    def ask(self, path, method="GET", **headers):
        """The status of a request through the proxy, by the administrator of the cluster."""
        with contextlib.closing(drover.UnixConnection(self.cluster.api.socket, 60)) as connection:
            connection.request(method, PROXY + path, headers=headers)
            return connection.getresponse().status

    def test_a_task_runs_with_its_gpus_its_output_and_its_exit_status(self):
        ran = self.drover("run", *SMALL, "--gpus", "2", "--", "/probe", "devices", ",", "say", "hello", ",", "exit", "7")
        self.assertEqual(ran.status, 7, f"{ran}; {self.log()}")
        devices, hello = ran.out.splitlines()
        self.assertEqual((len([name for name in devices.split() if name[6:].isdigit()]), hello), (2, "hello"), ran)

    def test_the_tasks_of_a_group_have_the_same_gpu(self):
        self.run_a_group()

    def run_a_group(self):
        tasks = [self.drover("run", *SMALL, "--detach", "--gpus", "1", "--group", "pair", "--", "/probe", "devices", ",", "sleep", "1000").out.strip()
                 for _ in range(2)]
        for task in tasks:
            wait_for(lambda task=task: self.drover("logs", task).out, lambda task=task: f"{self.drover('explain', task)}; {self.log()}", timeout=PATIENCE)
        self.assertEqual(*(self.drover("logs", task).out for task in tasks))
        for task in tasks:
            self.drover("stop", task)
        wait_for(lambda: not self.claims(), self.claims, timeout=PATIENCE)

    def test_a_file_means_the_same_there(self):
        file = self.folder / "app.json"
        file.write_text('{"id": "/team/web", "cmd": "echo up; sleep 1000", "cpus": 0.1, "mem": 64, "instances": 2}')
        applied = self.drover("apply", "-f", file)
        self.assertEqual(applied.status, 0, applied)
        self.assertIn("2/2", self.drover("app", "ls").out)
        removed = self.drover("app", "rm", "/team/web", "--force")
        self.assertEqual(removed.status, 0, removed)

    def test_what_one_machine_has_moves_here_and_back(self):
        def moved(into, text):
            file = self.folder / "everything.yaml"
            file.write_text(text)
            applied = into("apply", "--detach", file)
            self.assertEqual(applied.status, 0, applied)

        def runs(where):
            return [(app["id"], app["tasksRunning"]) for app in json.loads(where("app", "ls", "--json").out)["apps"]]

        def exported(where):
            """Without the remark about tasks that are left of other tests."""
            return "".join(line for line in where("export").out.splitlines(keepends=True) if not line.startswith("# Not in it"))

        machines = [drover.Daemon("dgx1-v100").start() for _ in range(2)]
        for machine in machines:
            self.addCleanup(machine.close)
        here, other = (machine.cli for machine in machines)
        self.addCleanup(self.remove_all_of, self.drover)
        moved(here, EVERYTHING)
        everything = exported(here)
        moved(self.drover, everything)
        wait_for(lambda: runs(self.drover) == [("/shop/web", 2)], lambda: f"{runs(self.drover)}; {self.drover('app', 'ls').out}; {self.log()}",
                 timeout=PATIENCE)
        self.assertEqual(exported(self.drover), everything)
        self.assertIn("unchanged", self.drover("apply", "--dry-run", self.folder / "everything.yaml").out)
        for where in (here, self.drover):
            self.remove_all_of(where)
        moved(other, everything)
        wait_for(lambda: runs(other) == [("/shop/web", 2)], lambda: runs(other), timeout=PATIENCE)
        self.assertEqual(exported(other), everything)
        self.remove_all_of(other)

    @staticmethod
    def remove_all_of(where):
        where("app", "rm", "/shop/web", "--force")
        for words in (("job", "rm", "after"), ("job", "rm", "nightly"), ("queue", "rm", "lab/vision"), ("queue", "rm", "lab"),
                      ("quota", "rm", "user:nobody")):
            where(*words)

    def test_output_comes_while_it_runs_and_commands_run_in_its_container(self):
        task = self.drover("run", *SMALL, "--detach", "--", "/bin/sh", "-c", "echo begins; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo ends").out.strip()
        self.addCleanup(self.drover, "stop", task)
        wait_for(lambda: self.drover("logs", task).out == "begins\n", lambda: f"{self.drover('inspect', task)}; {self.log()}", timeout=PATIENCE)
        words = self.cluster.reaching(drover.BINARY, "--context", "cluster", "logs", "--follow", task)
        follows = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, env={**os.environ, "XDG_CONFIG_HOME": str(self.folder)})
        self.assertEqual(follows.stdout.readline(), b"begins\n")
        ran = self.drover("exec", task, "--", "/bin/sh", "-c", "echo out; echo err >&2; touch /tmp/go; exit 3")
        self.assertEqual((ran.status, ran.out, ran.err), (3, "out\n", "err\n"), ran)
        self.assertEqual(follows.communicate(timeout=PATIENCE)[0], b"ends\n")

    def test_files_of_a_task_are_there_when_its_pod_is_not(self):
        task = self.drover("run", *SMALL, "--detach", "--", "/bin/sh", "-c", "echo kept > result; echo said").out.strip()
        wait_for(lambda: f"{task} finished" in self.drover("ps", "--all", "--format", "{id} {state}").out, self.log, timeout=PATIENCE)
        wait_for(lambda: not self.cluster.api.list("pods", labelSelector=f"drover.dev/task={task}"), "the pod to go", timeout=PATIENCE)
        self.assertEqual(self.drover("files", "cat", task, "result").out, "kept\n", self.log())
        self.assertEqual(self.drover("rm", task).status, 0)

    def test_what_it_knows_outlives_its_pod(self):
        task = self.drover("run", *SMALL, "--detach", "--gpus", "8", "--", "/bin/sh", "-c", "echo before; sleep 25; echo after; exit 5").out.strip()
        wait_for(lambda: self.drover("logs", task).out == "before\n", lambda: f"{self.drover('inspect', task)}; {self.log()}", timeout=PATIENCE)
        more = self.drover("run", *SMALL, "--detach", "--gpus", "8", "--", "/probe", "sleep", "1000").out.strip()
        waits = self.drover("run", *SMALL, "--detach", "--gpus", "8", "--name", "waits", "--", "/probe", "exit", "0").out.strip()
        (old,) = self.pods()
        self.cluster.delete("pod", old["metadata"]["name"], namespace=NAMESPACE)
        self.wait_until_it_answers()
        known = self.drover("ps", "--all", "--format", "{id}").out
        for one in (task, waits, more):
            self.assertIn(one, known)
        wait_for(lambda: f"{task} failed" in self.drover("ps", "--all", "--format", "{id} {state}").out, self.log, timeout=PATIENCE)
        self.assertEqual(self.drover("logs", task).out, "before\nafter\n")
        for one in (waits, more):
            self.drover("stop", one)

    def test_one_that_has_lost_its_lease_ends_and_another_begins(self):
        (pod,) = self.pods()
        started = pod["status"]["containerStatuses"][0]["restartCount"]
        lease = self.cluster.get("lease", PLANE, NAMESPACE)
        self.assertTrue(lease["spec"]["holderIdentity"].startswith(pod["metadata"]["name"]))
        # Somebody else has it for a while.
        self.cluster.kubectl("patch", "lease", PLANE, "--namespace", NAMESPACE, "--type=merge",
                             '--patch={"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 5}}')
        wait_for(lambda: self.pods()[0]["status"]["containerStatuses"][0]["restartCount"] > started, self.log, timeout=PATIENCE)
        before = self.cluster.kubectl("logs", pod["metadata"]["name"], "--previous", "--namespace", NAMESPACE).stdout
        self.assertIn(f"Another has taken the lease '{NAMESPACE}/{PLANE}'", before)
        self.wait_until_it_answers()

    def test_no_more_is_allowed_than_is_used(self):
        task = self.drover("run", *SMALL, "--detach", "--priority", "7", "--", "/probe", "sleep", "1000").out.strip()
        wait_for(lambda: self.drover("exec", task, "--", "/probe", "exit", "0").status == 0, lambda: f"{self.drover('inspect', task)}; {self.log()}")
        self.drover("stop", task)
        self.assertEqual(self.drover("run", *SMALL, "--interactive", "--", "/probe", "sleep", "5").status, 0)
        gang = self.drover("run", *SMALL, "--gang", "2", "--", "/probe", "say", "member")
        self.assertEqual(gang.status, 0, gang)
        self.run_a_group()
        rules_of = {"queue": "lab/vision", "quota": "user:ann"}
        for kind, name in rules_of.items():
            self.assertEqual(self.drover(kind, "set", name, *(("--weight", "2") if kind == "queue" else ("--gpus", "2"))).status, 0)
        wait_for(lambda: self.rule_objects() == ["queue/lab.vision", "quota/drover-ann"], self.rule_objects)
        for kind, name in rules_of.items():
            self.assertEqual(self.drover(kind, "rm", name).status, 0)
        wait_for(lambda: not self.rule_objects(), self.rule_objects)
        self.define_one_of_each()
        self.assertEqual(self.drover("plan", *SMALL, "--", "true").status, 0)
        rules = self.cluster.get("clusterrole", PLANE)["rules"] + self.cluster.get("role", PLANE, NAMESPACE)["rules"]
        granted = {(kind, verb) for rule in rules for kind in rule["resources"] for verb in rule["verbs"]}
        wait_for(lambda: granted - self.used() <= UNSEEN, lambda: f"{granted - self.used()} to be used; {self.log()}", timeout=PATIENCE)

    @classmethod
    def define(cls, kind, name, spec):
        """What the daemon has accepted, as kubectl calls it."""
        cls.cluster.apply({"apiVersion": "drover.dev/v1alpha1", "kind": kind, "spec": spec, "metadata": {"name": name, "namespace": "drover-root"}})
        made = f"{kind.lower()}s.drover.dev/{name}"
        cls.cluster.kubectl("wait", "--for=condition=Accepted", made, "--namespace=drover-root", "--timeout=60s")
        return made

    def define_one_of_each(self):
        small = {"cpus": 0.1, "mem": 64}
        specs = {"App": {"cmd": "exec sleep 1000", **small}, "Job": {"command": ["/probe", "exit", "0"], "cpus": 0.1, "memory": "64MiB"},
                 "Schedule": {"command": "true", "schedule": "R/2040-01-01T00:00:00Z/P1D", **small}}
        for kind, spec in specs.items():
            self.cluster.kubectl("delete", self.define(kind, "defined", spec), "--namespace=drover-root", "--timeout=60s")
        self.assertNotIn("defined", self.drover("app", "ls").out)

    def rule_objects(self):
        listed = self.cluster.kubectl("get", "queues.drover.dev,quotas.drover.dev", "--output=name").stdout.split()
        return sorted(name.replace(".drover.dev/", "/") for name in listed)

    def used(self):
        """What the daemon has asked the API server for, which has refused nothing."""
        asked = set()
        for line in (AUDIT / "log").read_text().splitlines():
            event = json.loads(line)
            self.assertNotEqual(event["responseStatus"]["code"], 403, event)
            if "objectRef" in event:
                what = [event["objectRef"].get(part) for part in ("resource", "subresource")]
                asked.add(("/".join(filter(None, what)), event["verb"]))
        return asked

    def test_nobody_comes_in_without_a_secret(self):
        """However much the API server lets him."""
        self.assertIn(self.ask("/v1/tasks"), (401, 403))
        self.assertEqual(self.ask("/v1/tasks", **{"Drover-Authorization": ""}), 401)
        self.assertEqual(self.ask("/v1/tasks", **{"Drover-Authorization": f"Bearer {'0' * 48}"}), 401)
        self.assertIn(self.ask("/v1/tasks", Authorization=f"Bearer {self.secret}"), (401, 403), "that one is the API server's")
        self.assertEqual(self.ask("/v1/tasks", **{"Drover-Authorization": f"Bearer {self.secret}"}), 200)

    def test_accounts_come_to_it_by_the_role_for_users_alone(self):
        for name in ("user", "stranger"):
            self.cluster.kubectl("create", "serviceaccount", name, "--namespace", NAMESPACE)
            self.addCleanup(self.cluster.delete, "serviceaccount", name, namespace=NAMESPACE)
            self.add_context(name, self.cluster.account_kubeconfig(name, NAMESPACE), self.secret)
        self.cluster.kubectl("create", "rolebinding", "users", f"--role={PLANE}-users", f"--serviceaccount={NAMESPACE}:user", "--namespace", NAMESPACE)
        self.addCleanup(self.cluster.delete, "rolebinding", "users", namespace=NAMESPACE)
        wait_for(lambda: self.drover("ps", context="user").status == 0, lambda: self.drover("ps", context="user"))
        ran = self.drover("run", *SMALL, "--", "/probe", "say", "through", context="user")
        self.assertEqual((ran.status, ran.out), (0, "through\n"), ran)
        refused = self.drover("ps", context="stranger")
        self.assertNotEqual(refused.status, 0)
        self.assertIn("forbidden", refused.err)
        self.assertIn("-users", refused.err)

    def test_users_of_the_chart_have_secrets_and_pods_of_their_own(self):
        made = self.credentials()
        self.helm.call("upgrade", "drover", CHART, "--namespace", NAMESPACE, "--wait", values=self.values)
        self.assertEqual(self.credentials(), made, "it is made once")
        hers = "0123456789abcdef" * 2
        self.cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ours", "namespace": NAMESPACE},
                            "stringData": {"credentials": f"{made}ann:{hers}\n"}})
        self.addCleanup(self.cluster.delete, "secret", "ours", namespace=NAMESPACE)
        given = {**self.values, "controlPlane": {**self.values["controlPlane"], "credentialsSecret": "ours"}}
        self.addCleanup(self.go_back)
        self.helm.call("upgrade", "drover", CHART, "--namespace", NAMESPACE, "--wait", values=given)
        self.wait_until_it_answers()
        self.add_context("ann", self.cluster.kubeconfig, hers)
        ran = self.drover("run", *SMALL, "--", "/bin/sh", "-c", "id -u; id -g; id -G", context="ann")
        self.assertEqual((ran.status, ran.out.split()), (0, ["4321", "4321", "4321", "77"]), f"{ran}; {self.log()}")
        roots = self.drover("run", *SMALL, "--", "/probe", "say", "of root").out
        self.assertEqual(roots, "of root\n")
        self.assertEqual(self.drover("ps", "--all", "--format", "{user}", context="ann").out.split(), ["ann"])

    def go_back(self):
        self.helm.call("upgrade", "drover", CHART, "--namespace", NAMESPACE, "--wait", values=self.values)
        type(self).secret = self.credentials().partition(":")[2].strip()  # it was gone meanwhile, and is another
        self.add_context("cluster", self.cluster.kubeconfig, self.secret)
        self.wait_until_it_answers()


if __name__ == "__main__":
    unittest.main()
