"""A Kubernetes cluster on this machine: see Cluster."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from kube import cgroups, components, images, leftovers
from kube.certificates import Authority
from kube.client import Client, node_is_ready
from kube.control_plane import ControlPlane
from kube.machine import PATIENCE, Lifeline, Program
from kube.node import Node
from kube.settings import Settings


class Cluster(Client):
    """Its nodes are `nodes`; its admin's kubeconfig is `kubeconfig`. Client has what tests do with any cluster.

    start() either gives a cluster whose nodes are Ready, or raises and leaves nothing behind. close() ends everything, and so does
    the end of the test process, however it comes.
    """

    def __init__(self, settings=None):
        self.settings = settings or Settings()
        self.nodes, self.control_plane, self._lifeline, self._janitor = [], None, None, None

    # Its life

    def start(self):
        programs = components.obtain()
        self.before = leftovers.host_state()
        controllers = cgroups.enable_controllers()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="drover-kube-"))
        self.name = self.folder.name
        self._lifeline = Lifeline()
        self._janitor = subprocess.Popen(
            [sys.executable, "-B", pathlib.Path(__file__).with_name("janitor.py"), self.folder, self.name, " ".join(controllers)],
            stdin=self._lifeline.reading, stdout=subprocess.DEVNULL, start_new_session=True, cwd="/")
        (self.folder / "logs").mkdir()
        try:
            self._start(programs)
        except BaseException:
            self.close()
            raise
        return self

    def _start(self, programs):
        authority = Authority(self.folder / "certificates")
        archives = images.make(self.folder / "images")
        self.control_plane = ControlPlane(self.folder, programs, authority, self._lifeline.machine("control-plane"), self.settings)
        self.control_plane.start()
        for index, settings in enumerate(self.settings.nodes, 1):
            node = Node(self, index, programs, authority, self._lifeline.machine(f"node{index}"), settings)
            self.nodes.append(node)
            self.control_plane.connect(index, node.machine)
            node.containerd.start()
        super().__init__(programs.kubernetes / "kubectl", authority.path("admin.kubeconfig"), self.folder,
                         enter=["nsenter", "--target", str(self.control_plane.machine.pid), "--net"])
        self.run_inside(self.proxy_command(), "kubectl-proxy")
        self.control_plane.start_controllers(self)
        self.control_plane.wait_until_ready(self)
        for node in self.nodes:
            node.wait_for_containerd()
            node.import_images(archives)
            node.kubelet.start()
            if self.settings.services:
                node.proxy.start()
        for node in self.nodes:
            node.kubelet.wait_until(lambda node=node: node_is_ready(self.get("node", node.name)), f"{node.name} to be Ready")

    def close(self):
        """Ends everything; returns what was left behind, in words."""
        if self._lifeline is None:
            return []
        if os.environ.get("DROVER_KUBE_LOGS"):
            shutil.copytree(self.folder / "logs", pathlib.Path(os.environ["DROVER_KUBE_LOGS"]) / self.name)
        self._lifeline.cut()
        self._lifeline = None
        self._janitor.wait(2 * PATIENCE)
        return leftovers.find(self.name) + leftovers.changes(self.before)

    # Programs of tests

    def run_inside(self, command, name="program", environment=None):
        """Starts a program beside the control plane, such as a scheduler; it ends with the cluster."""
        return Program(self.control_plane.machine, name, command, self.folder / f"logs/{name}.log", environment).start()

    def log_tails(self):
        plane = self.control_plane
        programs = [plane.api_server, plane.controller_manager, plane.scheduler]
        return "\n".join(program.tail(15) for program in programs + [node.kubelet for node in self.nodes])
