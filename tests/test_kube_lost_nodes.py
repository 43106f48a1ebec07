"""Tasks on nodes of a real cluster that go away: for a while, and for ever."""

import unittest

from cluster_daemon import FLAGS, ClusterDaemon, ClusterDaemonTest, equipped
from kube.client import condition_of
from kube.machine import wait_for
from kube.settings import NodeSettings, Settings

NOTICED_AFTER = 8  # seconds
PATIENCE = 240     # the controller manager gives a node that was deleted some time before it removes its pods


SETTINGS = Settings(nodes=(NodeSettings(kubelet={"nodeStatusUpdateFrequency": "2s"}),) * 2, flags={
    **FLAGS, "kube-controller-manager": (*FLAGS["kube-controller-manager"], f"--node-monitor-grace-period={NOTICED_AFTER}s")})


class MortalDaemon(ClusterDaemon):
    """A cluster of its own, whose nodes may die; it is quick to notice."""

    equip = staticmethod(lambda profile: equipped(profile, SETTINGS))


class LostNodeTest(ClusterDaemonTest):
    kind_of_daemon = MortalDaemon

    def node_of(self, task):
        name = self.daemon.wait_until_running(task)["node"]
        (node,) = [node for node in self.daemon.cluster.nodes if node.name == name]
        return node

    def is_ready(self, node):
        return condition_of(self.daemon.cluster.get("node", node.name), "Ready") == "True"

    def test_1_what_ended_while_its_node_was_away_has_its_own_status(self):
        tasks = {self.daemon.submit("sleep", seconds, ",", "say", "ended", ",", "exit", status): status
                 for seconds, status in ((2, 3), (NOTICED_AFTER + 8, 4), (2, 0), (NOTICED_AFTER + 8, 0))}
        nodes = {self.node_of(task) for task in tasks}
        for node in nodes:
            node.kubelet.kill()
        wait_for(lambda: not any(self.is_ready(node) for node in nodes), "the cluster to miss the nodes")
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual({self.daemon.task(task)["state"] for task in tasks}, {"running"})
        for node in nodes:
            node.kubelet.start()
        for task, status in tasks.items():
            record = self.daemon.wait_until_final(task)
            self.assertEqual((record["exit_status"], self.daemon.output(task)), (status, "ended\n"), record)

    def test_2_what_nobody_can_know_is_lost_and_runs_again_where_that_was_asked_for(self):
        again = self.daemon.submit("sleep", "1000", requeue="lost", gpus=5)
        node = self.node_of(again)
        lost = self.daemon.submit("sleep", "1000", gpus=1)
        self.assertIs(self.node_of(lost), node)  # the fullest that has room
        node.die()
        self.daemon.cluster.kubectl("delete", "node", node.name)
        self.assertIn("its node is gone", self.wait_for_state(lost, "lost")["reason"])
        wait_for(lambda: self.daemon.task(again)["state"] == "running" and self.daemon.task(again)["node"] != node.name,
                 lambda: self.daemon.task(again), timeout=PATIENCE)
        self.daemon.end_task(again)
        wait_for(lambda: not self.daemon.pods(), lambda: self.daemon.pods(), timeout=PATIENCE)

    def wait_for_state(self, task, state):
        wait_for(lambda: self.daemon.task(task)["state"] == state, lambda: self.daemon.task(task), timeout=PATIENCE)
        return self.daemon.task(task)


if __name__ == "__main__":
    unittest.main()
