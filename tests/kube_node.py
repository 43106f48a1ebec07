"""Tests of `drover kube node` on a real cluster: one runs on its first node, and offers simulated GPUs."""

import json

import drover
import kube
from kube.machine import wait_for
from kube.settings import NodeSettings, Settings

GPU = "nvidia.com/gpu"
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
SEES = ("devices", ",", "sleep", 10000)
TELLS = ("devices", ",", "env", VISIBLE, ",", "sleep", 10000)


def gpu_pod(name, resources, *words, **more):
    return kube.pod(name, *(words or SEES), resources={"limits": {resource: str(count) for resource, count in resources.items()}},
                    **more)


def run_agent(node, name, profile, kubeconfig, *flags, config=None):
    """Starts the program on a node, with a state of its own."""
    state = f"/var/lib/kubelet/plugins/{name}"
    node.path(state).mkdir(parents=True)
    node.path(f"{state}/config.yaml").write_text(config if isinstance(config, str) else json.dumps(config or {"version": "v1"}))
    return node.run_inside([drover.BINARY, "kube", "node", "--simulate", profile, "--state", state, "--config", f"{state}/config.yaml",
                            "--node-name", node.name, "--kubeconfig", kubeconfig, *flags], name=f"agent-{name}")


class NodeTest(kube.ClusterTest):
    """Runs the program on the first node, as `agent`, with `profile` and `config`."""

    settings = Settings(nodes=(NodeSettings(),))
    profile = "dgx-a100"
    config = {"version": "v1"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.node = cls.cluster.nodes[0]
        cls.state = f"/var/lib/kubelet/plugins/{cls.__name__}"
        cls.agent = run_agent(cls.node, cls.__name__, cls.profile, cls.kubeconfig(), *cls.flags(), config=cls.config)
        cls.addClassCleanup(cls.end_agent)
        wait_for(lambda: all(cls.allocatable(name) for name in cls.names()), cls.agent.tail)

    @classmethod
    def kubeconfig(cls):
        """Of the program."""
        return cls.cluster.kubeconfig

    @classmethod
    def flags(cls):
        return ()

    @classmethod
    def names(cls):
        """Resources that it offers."""
        return (GPU,)

    @classmethod
    def end_agent(cls):
        """The kubelet takes what a plugin that is gone has offered for absent only after a while."""
        assert cls.agent.stop() == 0, cls.agent.tail()
        wait_for(lambda: not any(cls.allocatable(name) for name in cls.names()), "the kubelet to notice")

    @classmethod
    def allocatable(cls, resource=GPU):
        return int(cls.cluster.get("node", cls.node.name)["status"]["allocatable"].get(resource, 0))

    def wait_for_allocatable(self, count, resource=GPU):
        wait_for(lambda: self.allocatable(resource) == count,
                 lambda: f"{count} {resource}: there are {self.allocatable(resource)}; {self.agent.tail()}")

    def registrations(self):
        return self.agent.read_log().count("registered nvidia.com/")

    def set_faults(self, faults):
        drover.replace(self.node.path(f"{self.state}/sim/faults.yaml"), json.dumps(faults))

    def run_gpu_pod(self, name, resources, *words, **more):
        """Waits until it runs; returns its lines."""
        self.run_pod(gpu_pod(name, resources, *words, **more))
        return self.cluster.logs(name, lines=(words or SEES).count(",")).splitlines()

    def run_gpu_pod_at_last(self, name, resources):
        """Makes it again, as controllers do, as long as a kubelet rejects it that has just started and does not know its devices."""
        while True:
            self.make_pod(gpu_pod(name, resources))
            pod = self.cluster.wait("pod", name, lambda pod: kube.pod_is_ready(pod) or (pod and pod["status"].get("phase") == "Failed"))
            if kube.pod_is_ready(pod):
                return self.cluster.logs(name).splitlines()
            self.assertEqual(pod["status"].get("reason"), "UnexpectedAdmissionError", pod["status"])
            self.cluster.delete("pod", name)


def gpus_in(line):
    """Numbers of the GPUs among device nodes."""
    return {int(name[6:]) for name in line.split() if name[6:].isdigit()}
