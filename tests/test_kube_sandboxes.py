"""The files of tasks that are pods: they stay on the node when their pods have ended, and are read by the front doors of one machine."""

import json
import os
import pathlib
import signal
import time
import urllib.parse

import drover
import kube
from cluster_daemon import AGENTS_STATE, SANDBOXES, SandboxDaemon
from kube.machine import wait_for
from kube_install import PATIENCE
from kube_node import GPU

KEPT = f"/var/lib/kubelet/plugins/{SANDBOXES}/kept"
# Writes what a task does, and then does as it is told.
SCRIPT = "umask 022; mkdir -p made/deep; echo from $0 > made/deep/result; ln -s /etc/passwd out; mkfifo pipe; echo said; "


class SandboxesTest(drover.DaemonTest):
    kind_of_daemon = SandboxDaemon
    profile = "k80"
    arguments = ("--limit", "sandbox-size=32MiB")

    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(cls.uninstall)
        super().setUpClass()

    @classmethod
    def uninstall(cls):
        """After the daemon has ended, and its tasks with it."""
        cluster = cls.daemon.cluster
        cls.daemon.chart.uninstall()
        labels = [key for node in cluster.list("nodes") for key in node["metadata"].get("labels", {}) if "drover" in key]
        left = [kind for kind in ("csidrivers", "clusterroles", "validatingadmissionpolicies")
                if "drover" in cluster.kubectl("get", kind, "--output=name").stdout]
        if labels or left:
            raise AssertionError(f"left behind: {labels} {left}")

    @property
    def cluster(self):
        return self.daemon.cluster

    def agents(self):
        return self.daemon.chart.agents()

    def begin(self, then="sleep 1000", uid=None):
        body = {"command": ["/bin/sh", "-c", SCRIPT + then, "here"], "cpus": 0.1, "memory": "64MiB"}
        task = self.daemon.api("POST", "/v1/tasks", body, uid=uid)["task"]["id"]
        self.daemon.wait_for_output(task, "said")
        return task

    def browse(self, task, path="", uid=None):
        return self.daemon.request("GET", f"/v1/tasks/{task}/files/browse?path={urllib.parse.quote(path)}", uid=uid)

    def names(self, task, path="", uid=None):
        status, _, body = self.browse(task, path, uid)
        self.assertEqual(status, 200, body)
        return [file["name"] for file in json.loads(body)["files"]]

    def read(self, task, path, uid=None):
        return self.daemon.request("GET", f"/v1/tasks/{task}/files/download?path={urllib.parse.quote(path)}", uid=uid)

    def assert_all_is_there(self, task):
        self.assertEqual(self.names(task), ["made", "out", "pipe", "stdout"])
        self.assertEqual(self.names(task, "made/deep"), ["result"])
        self.assertEqual(self.read(task, "made/deep/result")[::2], (200, b"from here\n"))
        self.assertEqual(self.read(task, "stdout")[::2], (200, b"said\n"))

    def node_of(self, task):
        name = self.daemon.task(task)["node"]
        return next(node for node in self.cluster.nodes if node.name == name)

    def kept(self, node):
        return {path.name for path in node.path(KEPT).iterdir()}

    def test_files_are_read_while_it_runs_and_when_its_pod_is_gone(self):
        task = self.begin()
        self.assert_all_is_there(task)
        self.daemon.kill()
        self.daemon.start()
        self.assert_all_is_there(task)
        self.daemon.stop_task(task)
        self.daemon.wait_until_final(task)
        wait_for(lambda: not self.daemon.pods(), "the pod to go")
        self.assert_all_is_there(task)
        node = self.node_of(task)
        before = self.kept(node)
        self.assertTrue(before)
        self.daemon.kill()
        self.daemon.start()
        self.assert_all_is_there(task)
        self.assertEqual(self.daemon.cli("rm", task).status, 0)
        wait_for(lambda: len(self.kept(node)) == len(before) - 1, lambda: f"{before} -> {self.kept(node)}")

    def test_one_that_ends_by_itself_is_read_by_every_front_door(self):
        task = self.begin("exit 3")
        self.assertEqual(self.daemon.wait_until_final(task)["exit_status"], 3)
        wait_for(lambda: not self.daemon.pods(), "the pod to go")
        self.assert_all_is_there(task)
        listed = self.daemon.cli("files", "ls", task, "made/deep")
        self.assertIn("result", listed.out, listed)
        read = self.daemon.cli("files", "cat", task, "made/deep/result")
        self.assertEqual(read.out, "from here\n", read)
        directory = f"/any/runs/{task}"
        path = urllib.parse.quote(f"{directory}/made/deep")
        self.assertEqual([file["path"] for file in self.daemon.api("GET", f"/files/browse?path={path}")], [f"{directory}/made/deep/result"])
        self.assertEqual(self.daemon.api("GET", f"/files/read?path={path}/result&offset=5&length=4")["data"], "here")
        self.assertEqual(self.daemon.request("GET", f"/files/download?path={path}/result")[::2], (200, b"from here\n"))

    def test_nothing_leads_out_and_others_read_nothing(self):
        task = self.begin(uid=1000)
        self.assert_all_is_there(task)
        self.assertEqual(self.read(task, "made/deep/result", uid=1000)[::2], (200, b"from here\n"))
        for path in ("out", "pipe", "../../../../../../etc/shadow", "made/../../mount/made", "made"):
            self.assertEqual(self.read(task, path, uid=1000)[0], 400, path)
        for path in ("", "made/deep"):
            self.assertIn(self.browse(task, path, uid=1001)[0], (403, 404), path)
        self.assertIn(self.read(task, "made/deep/result", uid=1001)[0], (403, 404))
        self.daemon.end_task(task)

    def test_the_agent_may_be_killed_at_any_time(self):
        running, ending = self.begin(), self.begin()
        before = self.starts()
        for agent in self.agents():
            self.kill_agent(agent["metadata"]["uid"])
        self.daemon.stop_task(ending, force=True)
        self.daemon.wait_until_final(ending)
        for task in (running, ending):
            wait_for(lambda task=task: self.browse(task)[0] == 200, lambda task=task: self.browse(task), timeout=PATIENCE)
            self.assert_all_is_there(task)
        wait_for(lambda: len(self.daemon.pods()) == 1, "the pod that has ended to go", timeout=PATIENCE)
        self.assert_all_is_there(ending)
        self.assertEqual({agent: count + 1 for agent, count in before.items()}, self.starts())
        self.daemon.end_task(running)

    def test_kubelets_that_start_again_take_folders_for_volumes(self):
        running, ending = self.begin(), self.begin("sleep 3; exit 5")
        for node in self.cluster.nodes:
            node.kubelet.kill()
        time.sleep(4)  # it ends while nobody looks
        for node in self.cluster.nodes:
            node.kubelet.start()
        self.assertEqual(self.daemon.wait_until_final(ending, timeout=PATIENCE)["exit_status"], 5)
        wait_for(lambda: len(self.daemon.pods()) == 1, "the pod that has ended to go", timeout=PATIENCE)
        for task in (running, ending):
            wait_for(lambda task=task: self.browse(task)[0] == 200, lambda task=task: self.browse(task), timeout=PATIENCE)
            self.assert_all_is_there(task)
        self.daemon.stop_task(running)
        self.daemon.wait_until_final(running)
        wait_for(lambda: not self.daemon.pods(), "the pod to go", timeout=PATIENCE)
        self.assert_all_is_there(running)

    def test_one_that_is_stopped_slowly_can_be_stopped_by_force(self):
        body = {"command": ["/bin/sh", "-c", "trap '' TERM; echo said; while true; do sleep 1; done"], "cpus": 0.1, "memory": "64MiB",
                "grace": "1h"}
        deaf, beside = (self.daemon.api("POST", "/v1/tasks", body)["task"]["id"] for _ in range(2))
        for task in (deaf, beside):
            self.daemon.wait_for_output(task, "said")
            self.daemon.stop_task(task)
        time.sleep(5)  # their kubelets have told them, and wait
        self.assertEqual(self.daemon.task(deaf)["state"], "stopping")
        self.daemon.stop_task(deaf, force=True)
        self.assertEqual(self.daemon.wait_until_final(deaf, timeout=PATIENCE)["exit_status"], 137)
        wait_for(lambda: len(self.daemon.pods()) == 1, "the pod to go", timeout=PATIENCE)
        # The other one's hour is not over; after a restart it can be cut short as well.
        self.assertEqual(self.daemon.task(beside)["state"], "stopping")
        self.daemon.kill()
        pod, = self.daemon.pods()
        self.cluster.kubectl("delete", "pod", pod["metadata"]["name"], "--namespace", pod["metadata"]["namespace"], "--grace-period=2",
                             "--wait=false")
        self.daemon.start()
        self.assertEqual(self.daemon.wait_until_final(beside, timeout=PATIENCE)["exit_status"], 137)
        wait_for(lambda: not self.daemon.pods(), "the pod to go", timeout=PATIENCE)

    def starts(self):
        return {agent["metadata"]["name"]: sum(status["restartCount"] for status in agent["status"]["containerStatuses"])
                for agent in self.agents()}

    def test_what_is_on_nodes_counts_for_its_user(self):
        task = self.begin("dd if=/dev/zero of=large bs=1M count=64 2>/dev/null; sleep 1000", uid=1000)
        ended = self.daemon.wait_until_final(task, timeout=PATIENCE)
        self.assertIn("keeps on the disk grew to", ended["reason"])
        self.assertEqual(self.daemon.cli("rm", task).status, 0)

    def work(self, percent):
        """What the simulated GPUs of all nodes do from now on."""
        for node in self.cluster.nodes:
            gpus = int(self.cluster.get("node", node.name)["status"]["capacity"][GPU])
            self.simulate(node, {str(gpu): {"utilization": {"gpu": percent}} for gpu in range(gpus)})

    @staticmethod
    def simulate(node, faults):
        """They must name none that there isn't: then they are refused whole."""
        drover.replace(node.path(f"{AGENTS_STATE}/sim/faults.yaml"), json.dumps(faults))

    def test_what_becomes_of_a_nodes_gpu_is_told(self):
        node = self.cluster.nodes[1]

        def told():
            return [(event["kind"], event["message"]) for event in self.daemon.api("GET", "/v1/events?follow=false")["events"]
                    if event["kind"].startswith("gpu_")]

        self.assertEqual(told(), [], "agents and kubelets that begin anew are no news")
        self.addCleanup(self.simulate, node, {})
        self.simulate(node, {"1": {"lost": True}})
        wait_for(told, "it to be told unfit", timeout=PATIENCE)
        self.simulate(node, {})
        wait_for(lambda: "gpu_fit" in dict(told()), told, timeout=PATIENCE)
        for kind, message in told():
            self.assertRegex(message, rf"^GPU 1 of node {node.name} \([^)]+\)( is fit$|: )", kind)
        self.assertRegex(self.daemon.read_log(), rf"GPU 1 of node {node.name} .*: ")

    def test_a_task_whose_gpus_do_nothing_is_stopped(self):
        self.addCleanup(self.work, 0)
        self.work(60)
        body = {"command": ["sleep", "1000"], "cpus": 0.1, "memory": "64MiB", "gpus": 1}
        limited = self.daemon.api("POST", "/v1/tasks", {**body, "idle_timeout": "10s"})["task"]["id"]
        self.addCleanup(self.daemon.end_task, limited)
        forever = self.daemon.api("POST", "/v1/tasks", body)["task"]["id"]
        self.addCleanup(self.daemon.end_task, forever)
        self.daemon.wait_until_running(limited)
        self.daemon.wait_until_running(forever)
        time.sleep(15)
        self.assertEqual(self.daemon.task(limited)["state"], "running")
        # Of whom nobody tells, nobody says that he does nothing.
        node = self.node_of(limited)
        agent, = [pod for pod in self.agents() if pod["spec"]["nodeName"] == node.name]
        before = self.starts()
        self.kill_agent(agent["metadata"]["uid"])
        self.work(0)
        ended = self.daemon.wait_until_final(limited, timeout=PATIENCE)
        self.assertEqual((ended["state"], ended["cause"]), ("failed", "idle"), ended)
        self.assertIn("its GPUs did nothing for 10s", ended["reason"])
        self.assertGreater(sum(self.starts().values()), sum(before.values()))
        self.assertEqual(self.daemon.task(forever)["state"], "running")

    def test_a_queue_says_how_long_gpus_may_do_nothing(self):
        told = self.daemon.cli("queue", "set", "default", "--idle-timeout", "10s")
        self.assertEqual(told.status, 0, told)
        self.addCleanup(self.daemon.cli, "queue", "set", "default", "--idle-timeout", "none")
        task = self.daemon.api("POST", "/v1/tasks", {"command": ["sleep", "1000"], "gpus": 1})["task"]["id"]
        self.addCleanup(self.daemon.end_task, task)
        self.assertEqual(self.daemon.wait_until_final(task, timeout=PATIENCE)["cause"], "idle")

    def kill_agent(self, uid):
        """With SIGKILL; the kubelet starts it again."""
        for process in pathlib.Path("/proc").iterdir():
            try:
                if (uid in (process / "cgroup").read_text() or uid.replace("-", "_") in (process / "cgroup").read_text()) and \
                        b"kube\0node" in (process / "cmdline").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)
            except (OSError, ValueError):
                pass

    def test_only_who_may_makes_sandboxes_that_stay(self):
        cluster = self.cluster
        pod = kube.pod("filler", "sleep", 1)
        pod["spec"]["volumes"] = [{"name": "s", "csi": {"driver": SANDBOXES}}]
        cluster.kubectl("create", "serviceaccount", "tenant")
        cluster.kubectl("create", "rolebinding", "tenant", "--clusterrole=edit", "--serviceaccount=default:tenant")
        made = cluster.kubectl("create", "--filename=-", "--as=system:serviceaccount:default:tenant", input=json.dumps(pod), check=False)
        self.assertIn("may not make sandboxes that stay on the node", made.stderr, made)
