"""Executors that Mesos frameworks bring, as pods of a real cluster: the tests of one machine on one of its nodes, and what only a cluster has."""

import json
import pathlib
import tempfile

import test_mesos_executor
from cluster_daemon import ClusterDaemon, ClusterDaemonTest
from kube import images
from kube.control_plane import ADDRESS
from kube.machine import wait_for
from registries import free_port
from test_mesos_executor import text

PLACE = "executor.py"
UNKNOWN, FORBIDDEN = 401, 403

_cluster = None  # the one whose nodes have the image


class ExecutorDaemon(ClusterDaemon):
    """Its nodes have an image with Python, and the executor."""

    def __init__(self, *arguments, **more):
        global _cluster
        super().__init__(*arguments, **more)
        if _cluster is not self.cluster:
            _cluster = self.cluster
            with tempfile.TemporaryDirectory() as folder:
                archive = images.make_python(pathlib.Path(folder), {PLACE: test_mesos_executor.PROGRAM.read_text()})
                for node in _cluster.nodes:
                    node.import_images([archive])


class InPods:
    """Mixed into the tests of one machine."""

    kind_of_daemon = ExecutorDaemon

    @staticmethod
    def reached():
        place = f"{ADDRESS}:{free_port()}"
        return "--listen", place, "--insecure-listen", "--executor-endpoint", place

    @classmethod
    def place_program(cls, _):
        return f"/{PLACE}"

    def executor_info(self, executor_id, command=None):
        image = {"type": "MESOS", "mesos": {"image": {"type": "DOCKER", "docker": {"name": images.PYTHON}}}}
        return {**super().executor_info(executor_id, command), "container": image}


class OnOneNode(InPods):
    """The others take nothing, so that there is one agent."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cluster = cls.daemon.cluster
        for node in cluster.nodes[1:]:
            cluster.kubectl("cordon", node.name)
            cls.addClassCleanup(cluster.kubectl, "uncordon", node.name)


class SameExecutorTest(OnOneNode, test_mesos_executor.ExecutorTest):
    pass


class SameMuteExecutorTest(OnOneNode, test_mesos_executor.MuteExecutorTest):
    pass


class TwoAgentsTest(InPods, test_mesos_executor.ExecutorCase):
    profile = "k40m"

    def offers(self, framework):
        """By host, once there is one of each node."""
        offers = {}
        while len(offers) < len(self.daemon.cluster.nodes):
            offers.update({offer["hostname"]: offer for offer in framework.event("OFFERS")["offers"]["offers"]})
        return offers

    def start(self, framework, offer, name, executor_id="e"):
        infos = [self.info(framework, offer, name, self.executor_info(executor_id))]
        framework.call("ACCEPT", accept={"offer_ids": [offer["id"]], "filters": {"refuse_seconds": 0.0},
                                         "operations": [{"type": "LAUNCH", "launch": {"task_infos": infos}}]})
        status = framework.status()
        self.assertEqual(status["state"], "TASK_RUNNING", status)
        return status

    def test_each_agent_has_an_executor_of_that_id(self):
        framework = self.framework()
        offers = self.offers(framework)
        agents = {}
        for host, offer in sorted(offers.items()):
            status = self.start(framework, offer, f"on-{host}")
            self.assertEqual(status["agent_id"], offer["agent_id"])
            agents[host] = offer["agent_id"]["value"]
        nodes = {record["task"]["id"]: record["node"] for record in self.daemon.tasks() if record["state"] == "running"}
        self.assertEqual(sorted(nodes.values()), sorted(agents))
        first, second = sorted(agents)
        for host in (second, first):
            framework.call("MESSAGE", message={"agent_id": {"value": agents[host]}, "executor_id": {"value": "e"}, "data": text(host)})
            message = framework.event("MESSAGE")["message"]
            self.assertEqual((message["agent_id"]["value"], message["data"]), (agents[host], text(host)))
        framework.call("SHUTDOWN", shutdown={"agent_id": {"value": agents[first]}, "executor_id": {"value": "e"}})
        self.assertEqual(self.told(framework, 1), {f"on-{first}": [("TASK_LOST", "REASON_EXECUTOR_TERMINATED")]})
        failure = framework.failures.pop() if framework.failures else framework.event("FAILURE")["failure"]
        self.assertEqual(failure["agent_id"]["value"], agents[first])
        framework.call("KILL", kill={"task_id": {"value": f"on-{second}"}})
        self.assertEqual(self.told(framework, 1), {f"on-{second}": [("TASK_KILLED", None)]})
        framework.call("TEARDOWN")

    def test_a_token_stands_beside_its_pod_and_goes_with_it(self):
        framework = self.framework()
        self.start(framework, framework.offer(), "one")
        (pod,) = [pod for pod in self.daemon.pods() if pod["status"]["phase"] == "Running"]
        self.assertNotIn("hostNetwork", pod["spec"])
        token = self.token_of(pod)
        self.assertRegex(token, r"^executor\.[0-9a-f]+\.[0-9a-f]{64}$")
        self.assertNotIn(token, json.dumps(pod))
        framework.call("TEARDOWN")
        name, space = pod["metadata"]["name"], pod["metadata"]["namespace"]
        wait_for(lambda: self.daemon.cluster.get("secret", name, space) is None, "the secret to go with its pod")

    def token_of(self, pod):
        name, space = pod["metadata"]["name"], pod["metadata"]["namespace"]
        return self.daemon.cluster.exec(name, "sh", "-c", "echo $MESOS_EXECUTOR_AUTHENTICATION_TOKEN", container="task", namespace=space).stdout.strip()

    # Attacks: from a pod, by whoever runs in it.

    def say(self, pod, token, call, path="/api/v1/executor"):
        """The status of what a program in the pod says."""
        program = ("import http.client, os, sys; connection = http.client.HTTPConnection(sys.argv[1], timeout=20); "
                   "connection.request('POST', sys.argv[2], sys.argv[3], {'Content-Type': 'application/json', **"
                   "({'Authorization': 'Bearer ' + sys.argv[4]} if sys.argv[4] else {})}); print(connection.getresponse().status)")
        endpoint = self.arguments[self.arguments.index("--executor-endpoint") + 1]
        ran = self.daemon.cluster.exec(pod["metadata"]["name"], "python3", "-c", program, endpoint, path, json.dumps(call), token,
                                       container="task", namespace=pod["metadata"]["namespace"])
        return int(ran.stdout)

    def test_nobody_speaks_as_another(self):
        framework = self.framework()
        for name in ("good", "bad"):
            self.start(framework, framework.offer(), f"task-of-{name}", executor_id=name)
        pods = {pod["metadata"]["annotations"]["drover.dev/name"] + pod["metadata"]["name"]: pod for pod in self.daemon.pods()}
        ids = {name: self.container(name) for name in ("good", "bad")}
        by_id = {pod["metadata"]["labels"]["drover.dev/task"]: pod for pod in pods.values()}
        hostile = by_id[ids["bad"]]
        own, theirs = self.token_of(hostile), self.token_of(by_id[ids["good"]])

        def call(executor, kind="MESSAGE", **parts):
            return {"type": kind, "framework_id": {"value": framework.id}, "executor_id": {"value": executor}, **(parts or {"message": {"data": ""}})}

        def ends(task):
            return {"update": {"status": {"task_id": {"value": task}, "state": "TASK_FINISHED", "source": "SOURCE_EXECUTOR",
                                          "uuid": "AAECAwQFBgcICQoLDA0ODw==", "timestamp": 1.0}}}

        self.assertEqual(self.say(hostile, "", call("good")), UNKNOWN)
        forged = own.replace(ids["bad"], ids["good"])
        for wrong in ("x", forged, theirs[:-1] + ("0" if theirs[-1] != "0" else "1")):
            self.assertEqual(self.say(hostile, wrong, call("good", "SUBSCRIBE", subscribe={})), UNKNOWN, wrong)
        # With its own it can only be itself.
        self.assertEqual(self.say(hostile, own, call("good")), FORBIDDEN)
        self.assertEqual(self.say(hostile, own, call("good", "SUBSCRIBE", subscribe={})), FORBIDDEN)
        self.assertEqual(self.say(hostile, own, call("good", "UPDATE", **ends("task-of-good"))), FORBIDDEN)
        for path in ("/api/v1/scheduler", "/v1/tasks", "/v1/plan", "/v2/apps", "/api/v1", "/teardown"):
            self.assertEqual(self.say(hostile, own, call("bad"), path), FORBIDDEN, path)
        # What it says of another's task is taken from it, and is not so.
        self.assertEqual(self.say(hostile, own, call("bad", "UPDATE", **ends("task-of-good"))), 202)
        framework.call("RECONCILE", reconcile={"tasks": [{"task_id": {"value": "task-of-good"}}]})
        status = framework.status()
        self.assertEqual((status["task_id"]["value"], status["state"]), ("task-of-good", "TASK_RUNNING"))
        # The token ends with its executor.
        framework.call("SHUTDOWN", shutdown={"agent_id": {"value": "any"}, "executor_id": {"value": "good"}})
        self.assertEqual(self.told(framework, 1), {"task-of-good": [("TASK_LOST", "REASON_EXECUTOR_TERMINATED")]})
        self.assertEqual(self.say(hostile, theirs, call("good")), UNKNOWN)
        framework.call("TEARDOWN")


class UnreachedTest(ClusterDaemonTest):
    """A daemon that was not told where pods reach it."""

    profile = "k40m"
    framework = test_mesos_executor.ExecutorCase.framework
    info = test_mesos_executor.ExecutorCase.info

    def test_executors_are_refused_in_words(self):
        framework = self.framework()
        offer = framework.offer()
        executor = {"executor_id": {"value": "e"}, "type": "CUSTOM", "command": {"value": "exit 0"}}
        framework.call("ACCEPT", accept={"offer_ids": [offer["id"]], "operations": [
            {"type": "LAUNCH", "launch": {"task_infos": [self.info(framework, offer, "t", executor)]}}]})
        status = framework.status()
        self.assertEqual(status["state"], "TASK_ERROR")
        self.assertIn("--executor-endpoint", status["message"])
        framework.call("TEARDOWN")
