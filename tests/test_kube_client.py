"""The client of the API server, against a real one: the tests of src/kube/client/live_test.cc with its kubeconfigs."""

import os
import subprocess
import unittest

import kube
from drover import BUILD


class ClientTest(kube.ClusterTest):
    settings = kube.Settings(nodes=(kube.NodeSettings(),))

    def start_live(self, tests, kubeconfig=None):
        """These tests as a process."""
        environment = {**os.environ, "DROVER_TEST_KUBECONFIG": str(kubeconfig or self.cluster.kubeconfig),
                       "DROVER_TEST_NODE": self.cluster.list("nodes")[0]["metadata"]["name"]}
        names = ":".join(f"LiveApi.{name}" for name in tests)
        process = subprocess.Popen(
            self.cluster.reaching(BUILD / "kube_test", f"--gtest_filter={names}"),
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.kill)
        return process

    def assert_passes(self, process, count):
        said, _ = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, said)
        self.assertIn(f"[  PASSED  ] {count} test", said)

    def run_live(self, tests, kubeconfig=None):
        self.assert_passes(self.start_live(tests, kubeconfig), len(tests))

    def test_objects(self):
        self.run_live(["MakesChangesAndRemovesObjects", "ListsMoreThanAPage"])

    def test_changes(self):
        self.run_live(["FollowsChanges", "EndsAWatchWhenItIsStopped"])

    @unittest.skipIf(os.environ.get("DROVER_KUBE_EXISTING"), "kills the API server: not on somebody's cluster")
    def test_the_end_of_the_server(self):
        process = self.start_live(["OutlivesTheServer"])
        self.cluster.wait("configmap", "ready", lambda found: found is not None)
        self.cluster.control_plane.api_server.restart()
        self.cluster.control_plane.wait_until_ready(self.cluster)
        self.cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "after"}})
        self.assert_passes(process, 1)

    def test_nodes(self):
        self.run_live(["LabelsTheNodeAsOneOfSeveral", "SetsAConditionBesideTheKubelets", "WritesEvents"])
        self.assertIn("DroverLiveTest", self.cluster.kubectl("describe", "node", "node1").stdout)

    def test_scheduling(self):
        self.run_live(["BindsAPod", "LeadsByALease", "KnowsWhatIsServed"])

    def test_accounts(self):
        reader = self.cluster.make_account("node-reader", [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}])
        self.run_live(["SaysWhichRightIsMissing"], reader)
        nobody = self.cluster.write_kubeconfig("nobody", namespace="default", user={"token": "nobody's"})
        self.run_live(["SaysThatATokenIsNotAccepted"], nobody)


if __name__ == "__main__":
    unittest.main()
