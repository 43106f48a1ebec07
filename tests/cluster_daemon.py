"""`drover serve --engine kubernetes` for tests: a daemon whose tasks are pods of a cluster of its own, with simulated GPUs and with
`drover kube scheduler`. Tasks run in an image that has the probe and busybox, if they name none.

With DROVER_TEST_ENGINE=kubernetes the tests of one machine's daemon have such a one instead.
"""

import itertools
import pathlib
import tempfile

import drover
import kube
import kube_install
from kube import case
from kube.faulty_api import listener_in
from kube.machine import wait_for
from kube.settings import NodeSettings, Settings
from kube_node import GPU, run_agent

PROBE = pathlib.Path("/probe")  # in the image
# Pods that have ended are removed as soon as some do, and the API server forgets what was before: both happen on large clusters.
FLAGS = {"kube-controller-manager": ("--terminated-pod-gc-threshold=50",), "kube-apiserver": ("--etcd-compaction-interval=5s",)}
SETTINGS = Settings(nodes=(NodeSettings(), NodeSettings()), flags=FLAGS)

_equipped = None  # the cluster that has images and a scheduler
_agents = {}  # of its nodes, by the profile whose GPUs they offer


def equipped(profile, settings=SETTINGS, sharing=(), with_gpus=None):
    """The module's cluster, whose nodes, or so many of them, have the GPUs of this profile, for the scheduler to give. Each node with a way of
    sharing gives them by claims too, in that way."""
    global _equipped
    cluster = case.shared(settings)
    if _equipped is not cluster:
        _equipped = cluster
        _agents.clear()
        helm = kube_install.Helm(cluster)
        kinds = helm.template("--show-only", "templates/scheduler-crds.yaml", values={"scheduler": {"enabled": True}})
        helm.close()
        cluster.kubectl("apply", "--filename=-", input=kinds)
        cluster.kubectl("wait", "--for=condition=Established", "crd/queues.drover.dev", "crd/quotas.drover.dev")
        with tempfile.TemporaryDirectory() as folder:
            archive = kube_install.make_image(pathlib.Path(folder))
            for node in cluster.nodes:
                node.import_images([archive])
        if sharing:
            cluster.kubectl("apply", "--filename", drover.ROOT / "packaging/kubernetes/device-classes.yaml")
        cluster.run_inside([drover.BINARY, "kube", "scheduler", "--kubeconfig", cluster.kubeconfig], name="scheduler-drover")
    if profile not in _agents:
        for agent in itertools.chain(*_agents.values()):
            agent.stop()
        nodes = cluster.nodes[:with_gpus]
        wait_for(lambda: not any(offered(cluster, node) for node in nodes), "the GPUs of before to go")
        _agents.clear()
        agents = _agents[profile] = []
        for node, way in itertools.zip_longest(nodes, sharing):
            roles = ("device-plugin,dra", "--claim-sharing", way) if way else ("device-plugin",)
            own = own_profile(node, profile) if way else profile
            agents.append(run_agent(node, f"engine-{profile}-{node.name}", own, cluster.kubeconfig, "--roles", *roles))
        wait_for(lambda: not sharing or len(cluster.list("resourceslices")) >= len(sharing), lambda: "\n".join(agent.tail() for agent in agents))
        wait_for(lambda: all(offered(cluster, node) for node in nodes), lambda: "\n".join(agent.tail() for agent in agents))
    return cluster


def offered(cluster, node):
    return int(cluster.get("node", node.name)["status"]["allocatable"].get(GPU, 0))


def own_profile(node, profile):
    """The same machine with UUIDs of its own."""
    path = f"/var/lib/kubelet/plugins/{profile}.yaml"
    text = (drover.ROOT / f"sim/profiles/{profile}.yaml").read_text()
    node.path(path).parent.mkdir(parents=True, exist_ok=True)
    node.path(path).write_text(text.replace(f"name: {profile}\n", f"name: {profile}-{node.name}\n", 1))
    return path


class ClusterDaemon(drover.Daemon):
    equip = staticmethod(equipped)

    def __init__(self, profile="dgx1-v100", arguments=(), **more):
        self.cluster = self.equip(profile)
        super().__init__(None, ["--engine", "kubernetes", "--kubeconfig", self.cluster.kubeconfig, "--default-image", kube.SHELL,
                                "--helper-image", kube_install.IMAGE, *arguments], **more)
        self.probe = PROBE

    def command(self):
        return [str(word) for word in self.cluster.reaching(*super().command())]

    def pods(self):
        return self.cluster.api.request("GET", "/api/v1/pods?labelSelector=drover.dev/task")["items"]

    def shims(self):
        return []

    def held_gpus(self):
        return {gpu: record["task"]["id"] for record in self.tasks() for gpu in record["gpus"]
                if record["state"] in ("starting", "running", "stopping")}

    def close(self):
        found = super().close()
        try:
            wait_for(lambda: not self.pods(), "the pods to go")
        except AssertionError:
            found += [f"pod {pod['metadata']['name']}: {pod['status']}" for pod in self.pods()]
        return found


class OneMachinesDaemon(ClusterDaemon):
    """For tests of one machine: the other node has no GPUs."""

    @staticmethod
    def equip(profile):
        return equipped(profile, with_gpus=1)

    def listener(self):
        return listener_in(self.cluster.control_plane.machine.pid)

    def sandbox(self, task_id):
        (pod,) = [pod for pod in self.pods() if pod["metadata"]["labels"]["drover.dev/task"] == task_id]
        (node,) = [node for node in self.cluster.nodes if node.name == pod["spec"]["nodeName"]]
        return node.path(f"/var/lib/kubelet/pods/{pod['metadata']['uid']}/volumes/kubernetes.io~empty-dir/sandbox")


class ClusterDaemonTest(drover.DaemonTest):
    kind_of_daemon = ClusterDaemon
    profile = "dgx1-v100"
