"""A cluster that is there already: the one that KUBECONFIG names, when DROVER_KUBE_EXISTING is set.

Tests work in a namespace of their own, which is removed afterwards. Tests that reach into a node or the control plane are skipped.
The nodes must know the images of kube.images: `python3 -B -m kube images FOLDER` (in tests/) makes them.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import drover
from kube.client import Client


class _OutOfReach:
    def __getattr__(self, name):
        raise unittest.SkipTest(f"needs a cluster of the test's own: '{name}' of an existing one is out of reach")


class ExistingNode(_OutOfReach):
    def __init__(self, name):
        self.name = name


class ExistingCluster(_OutOfReach, Client):
    def __init__(self, settings):
        self.settings = settings

    def start(self):
        if not self.settings.fit_any_cluster():
            raise unittest.SkipTest("needs a cluster of the test's own: an existing one has other settings")
        program = shutil.which("kubectl")
        if not program:
            raise unittest.SkipTest("DROVER_KUBE_EXISTING is set, but there is no kubectl")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="drover-kube-"))
        given = os.environ.get("KUBECONFIG") or pathlib.Path.home() / ".kube/config"
        Client.__init__(self, program, given, self.folder)
        namespace = self.folder.name.replace("_", "-").lower()
        self.kubectl("create", "namespace", namespace)
        Client.__init__(self, program, self.write_kubeconfig("admin", namespace=namespace), self.folder, namespace=namespace)
        self._proxy = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *self.proxy_command()], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL)
        drover.wait_for(self.api.is_ready, "the existing cluster to answer")
        drover.wait_for(lambda: self.get("serviceaccount", "default"), "the account of pods to be made")
        self.nodes = [ExistingNode(node["metadata"]["name"]) for node in self.list("nodes")]
        if len(self.nodes) < len(self.settings.nodes):
            self.close()
            raise unittest.SkipTest(f"needs {len(self.settings.nodes)} nodes, the existing cluster has {len(self.nodes)}")
        return self

    def close(self):
        self.kubectl("delete", "namespace", self.namespace)
        self._proxy.kill()
        self._proxy.wait()
        shutil.rmtree(self.folder)
        return []
