"""`drover serve --engine kubernetes` for tests: a daemon whose tasks are pods of a cluster of its own, with simulated GPUs and with
`drover kube scheduler`. Tasks run in an image that has the probe and busybox, if they name none.

With DROVER_TEST_ENGINE=kubernetes the tests of one machine's daemon have such a one instead.
"""

import itertools
import json
import pathlib
import tarfile
import tempfile

import drover
import kube
import kube_install
from kube import case, control_plane
from kube.faulty_api import listener_in
from kube.machine import wait_for
from kube.settings import NodeSettings, Settings
from kube_node import GPU, run_agent

PROBE = pathlib.Path("/probe")  # in the image
# Pods that have ended are removed as soon as some do, and the API server forgets what was before: both happen on large clusters.
FLAGS = {"kube-controller-manager": ("--terminated-pod-gc-threshold=50",), "kube-apiserver": ("--etcd-compaction-interval=5s",)}
SETTINGS = Settings(nodes=(NodeSettings(), NodeSettings()), flags=FLAGS)
SANDBOX_SETTINGS = Settings(nodes=(NodeSettings(), NodeSettings()), services=True)
# What tests of one machine ask for: given files want four CPUs.
ONE_MACHINES_SETTINGS = Settings(nodes=(NodeSettings(cpus=8), NodeSettings()), flags=FLAGS, services=True)

NAMESPACE, SANDBOXES = "drover", "sandbox.drover.dev"  # of what the chart installs
AGENTS_STATE = "/var/lib/kubelet/plugins/drover"
CHART_VALUES = {"roles": {"sandboxes": True},
                "scheduler": {"enabled": True, "replicas": 1, "takePods": False, "protectClaims": False}}
WITHOUT_GPUS = json.dumps({"name": "bare", "driver": {"version": "535.129.03", "cuda": "12.2"},
                           "host": {"cpus": 8, "memory_mib": 16384, "disk_mib": 100000, "numa": [{"node": 0, "cpus": "0-7"}]},
                           "models": {}, "gpus": []})

_equipped = None  # the cluster that has images and a scheduler
_agents = {}  # of its nodes, by the profile whose GPUs they offer
_chart = None  # on the cluster that has one


def equipped(profile, settings=SETTINGS, sharing=()):
    """The module's cluster, whose nodes have the GPUs of this profile, for the scheduler to give. Each node with a way of sharing gives them
    by claims too, in that way."""
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
        wait_for(lambda: not any(offered(cluster, node) for node in cluster.nodes), "the GPUs of before to go")
        _agents.clear()
        agents = _agents[profile] = []
        for node, way in itertools.zip_longest(cluster.nodes, sharing):
            roles = ("device-plugin,dra", "--claim-sharing", way) if way else ("device-plugin",)
            own = own_profile(node, profile) if way else profile
            agents.append(run_agent(node, f"engine-{profile}-{node.name}", own, cluster.kubeconfig, "--roles", *roles))
        wait_for(lambda: not sharing or len(cluster.list("resourceslices")) >= len(sharing), lambda: "\n".join(agent.tail() for agent in agents))
        wait_for(lambda: all(offered(cluster, node) for node in cluster.nodes), lambda: "\n".join(agent.tail() for agent in agents))
    return cluster


def offered(cluster, node):
    return int(cluster.get("node", node.name)["status"]["allocatable"].get(GPU, 0))


def own_profile(node, profile):
    """The same machine with UUIDs of its own."""
    path = f"/var/lib/kubelet/plugins/{profile}.yaml"
    node.path(path).parent.mkdir(parents=True, exist_ok=True)
    node.path(path).write_text(machine_text(node, profile))
    return path


def machine_text(node, profile):
    text = (drover.ROOT / f"sim/profiles/{profile}.yaml").read_text()
    return text.replace(f"name: {profile}\n", f"name: {profile}-{node.name}\n", 1)


class Chart:
    """Drover as its chart installs it: agents that keep the sandboxes of tasks, and one scheduler. Each node has a simulated machine of
    its own."""

    def __init__(self, cluster, values):
        self.cluster, self._helm, self._machines = cluster, kube_install.Helm(cluster), None
        self._values = {**kube_install.VALUES, **CHART_VALUES, **values}
        with tempfile.TemporaryDirectory() as folder:
            archive = kube_install.make_image(pathlib.Path(folder))
            for node in cluster.nodes:
                node.import_images([archive])

    def simulate(self, *profiles):
        """Installs it, where each node has one of these machines. The last profile is for all other nodes; None has no GPUs."""
        if profiles == self._machines:
            return
        if self._machines:
            self._uninstall()
            wait_for(lambda: not any(offered(self.cluster, node) for node in self.cluster.nodes), "the GPUs of before to go")
        self._machines = profiles
        path = f"{AGENTS_STATE}/{'-'.join(map(str, profiles))}.yaml"
        nodes = list(itertools.zip_longest(self.cluster.nodes, profiles, fillvalue=profiles[-1]))
        for node, profile in nodes:
            node.path(path).parent.mkdir(parents=True, exist_ok=True)
            node.path(path).write_text(machine_text(node, profile) if profile else WITHOUT_GPUS)
        self._helm.call("install", "drover", kube_install.CHART, "--namespace", NAMESPACE, "--create-namespace", "--wait",
                        values={**self._values, "simulate": path})
        for node, profile in nodes:
            wait_for(lambda node=node: self.cluster.get("node", node.name)["metadata"]["labels"].get(f"{SANDBOXES}/ready") == "true", self.logs)
            wait_for(lambda node=node, profile=profile: (offered(self.cluster, node) > 0) == bool(profile), self.logs)

    def agents(self):
        return self.cluster.list("pods", NAMESPACE, labelSelector="drover.dev/node-agent=true")

    def logs(self):
        return "\n".join(self.cluster.kubectl("logs", pod["metadata"]["name"], "--namespace", NAMESPACE, check=False).stdout
                         for pod in self.agents())

    def uninstall(self):
        self._uninstall()
        self._helm.close()

    def _uninstall(self):
        self._helm.call("uninstall", "drover", "--namespace", NAMESPACE, "--wait")


def charted(*profiles, settings=SANDBOX_SETTINGS, **values):
    """The module's Chart, whose nodes have these machines. `values` are the chart's, beside what a Chart needs."""
    global _chart
    cluster = case.shared(settings)
    if _chart is None or _chart.cluster is not cluster:
        _chart = Chart(cluster, values)
    _chart.simulate(*profiles)
    return _chart


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


class SandboxDaemon(ClusterDaemon):
    """Where Drover is installed by its chart."""

    def __init__(self, profile, arguments=(), **more):
        super().__init__(profile, ["--sandboxes", "node", "--agent-namespace", NAMESPACE, *arguments], **more)

    def equip(self, profile):
        self.chart = charted(profile, roles={"dra": False, "sandboxes": True})
        return self.chart.cluster


class OneMachinesDaemon(SandboxDaemon):
    """For tests of one machine: the other node has no GPUs."""

    def equip(self, profile):
        self.chart = charted(profile, None, settings=ONE_MACHINES_SETTINGS, claimSharing="share")
        return self.chart.cluster

    def listener(self, for_tasks=False):
        return listener_in(self.cluster.control_plane.machine.pid, control_plane.ADDRESS if for_tasks else "127.0.0.1")

    def learn_image(self, layout, reference):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "image.tar")
            with tarfile.open(path, "w") as archive:
                archive.add(layout, arcname=".")
            for node in self.cluster.nodes:
                node.import_images([(f"docker.io/{reference}", path)])

    @property
    def faults_file(self):
        return self.cluster.nodes[0].path(f"{AGENTS_STATE}/sim/faults.yaml")

    def sandbox(self, task_id):
        (pod,) = [pod for pod in self.pods() if pod["metadata"]["labels"]["drover.dev/task"] == task_id]
        (node,) = [node for node in self.cluster.nodes if node.name == pod["spec"]["nodeName"]]
        volume = f"var/lib/kubelet/pods/{pod['metadata']['uid']}/volumes/kubernetes.io~csi/sandbox/mount"
        return pathlib.Path(f"/proc/{node.machine.pid}/root", volume)


class ClusterDaemonTest(drover.DaemonTest):
    kind_of_daemon = ClusterDaemon
    profile = "dgx1-v100"
