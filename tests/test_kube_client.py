"""The client of the API server, against a real one: the tests of src/kube/client/live_test.cc with its kubeconfigs."""

import os
import subprocess
import unittest

import kube
from drover import BUILD


class ClientTest(kube.ClusterTest):
    settings = kube.Settings(nodes=(kube.NodeSettings(),))

    def run_live(self, tests, kubeconfig=None):
        """Runs these tests; all of them must pass."""
        environment = {**os.environ, "DROVER_TEST_KUBECONFIG": str(kubeconfig or self.cluster.kubeconfig),
                       "DROVER_TEST_NODE": self.cluster.list("nodes")[0]["metadata"]["name"]}
        names = ":".join(f"DISABLED_LiveApi.{name}" for name in tests)
        done = subprocess.run(self.cluster.reaching(BUILD / "kube_test", "--gtest_also_run_disabled_tests", f"--gtest_filter={names}"),
                              env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"[  PASSED  ] {len(tests)} test", done.stdout)

    def test_objects(self):
        self.run_live(["MakesChangesAndRemovesObjects", "ListsMoreThanAPage"])

    def test_changes(self):
        self.run_live(["FollowsChanges", "EndsAWatchWhenItIsStopped"])

    def test_nodes(self):
        self.run_live(["LabelsTheNodeAsOneOfSeveral", "SetsAConditionBesideTheKubelets", "WritesEvents"])
        self.assertIn("DroverLiveTest", self.cluster.kubectl("describe", "node", "node1").stdout)

    def test_accounts(self):
        reader = self.cluster.make_account("node-reader", [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}])
        self.run_live(["SaysWhichRightIsMissing"], reader)
        nobody = self.cluster.write_kubeconfig("nobody", namespace="default", user={"token": "nobody's"})
        self.run_live(["SaysThatATokenIsNotAccepted"], nobody)


if __name__ == "__main__":
    unittest.main()
