"""Test cases that share a cluster."""

import os
import unittest

from kube.cluster import Cluster
from kube.existing import ExistingCluster
from kube.settings import Settings

_open = None  # the cluster of the module that is being tested


def shared(settings):
    """A cluster with these settings, for all tests of a module that want the same. One at a time: others are closed first."""
    global _open
    if _open is None or _open.settings != settings:
        close()
        made = ExistingCluster(settings) if os.environ.get("DROVER_KUBE_EXISTING") else Cluster(settings)
        unittest.addModuleCleanup(close)
        _open = made.start()
    return _open


def close():
    """Ends the shared cluster. Whatever it leaves behind is a failure."""
    global _open
    if _open is not None:
        cluster, _open = _open, None
        found = cluster.close()
        if found:
            raise AssertionError("left behind:\n" + "\n".join(found))


@unittest.skipIf(os.geteuid() != 0 and not os.environ.get("DROVER_KUBE_EXISTING"), "needs root: namespaces are made for real")
class ClusterTest(unittest.TestCase):
    """Tests on `cluster`, made with `settings` and shared with other classes of the module that have the same settings."""

    settings = Settings()
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = shared(cls.settings)

    def run_pod(self, pod):
        """Makes a pod that is deleted after the test, and waits until it is Ready; returns its name."""
        name = self.make_pod(pod)
        self.cluster.wait_until_running(name)
        return name

    def make_pod(self, pod):
        """Makes a pod that is deleted after the test; returns its name."""
        name = pod["metadata"]["name"]
        self.addCleanup(self.cluster.delete, "pod", name)
        self.cluster.apply(pod)
        return name
