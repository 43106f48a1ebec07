"""The harness of tests/kube itself: a cluster is whole, survives what tests do to it, and leaves nothing behind."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest
import unittest.mock

import drover
import kube
from kube import cgroups, components, leftovers


class ClusterTest(kube.ClusterTest):
    def test_pods_run_on_every_node_and_their_logs_are_read(self):
        names = [self.run_pod(kube.pod(f"hello-{node.name}", "say", node.name, ",", "sleep", 1000, node=node.name))
                 for node in self.cluster.nodes]
        self.assertEqual([self.cluster.logs(name) for name in names], ["node1\n", "node2\n"])
        self.assertEqual(self.cluster.exec(names[0], "/probe", "id").stdout, "0 0\n")

    def test_a_pod_ends_with_its_status(self):
        self.make_pod(kube.pod("fails", "exit", 7))
        ended = self.cluster.wait_until_ended("fails")
        self.assertEqual(ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 7)

    def test_pods_have_a_network(self):
        self.run_pod(kube.pod("server", "serve", 8080, "hello over the net", node="node1"))
        address = self.cluster.get("pod", "server")["status"]["podIP"]
        self.run_pod(kube.pod("client", "1000", node="node2", image=kube.SHELL, command=["sleep"]))
        read = self.cluster.exec("client", "wget", "-q", "-O-", f"http://{address}:8080/")
        self.assertEqual(read.stdout, "hello over the net")

    def test_pods_survive_the_kubelet_and_containerd(self):
        node = self.cluster.nodes[0]
        self.run_pod(kube.pod("survivor", "say", "once", ",", "sleep", 1000, node=node.name))
        node.kubelet.kill()
        self.assertEqual(node.kubelet.status, -signal.SIGKILL)
        node.restart_containerd()
        node.kubelet.start()
        self.cluster.wait("node", node.name, kube.node_is_ready)
        self.run_pod(kube.pod("next", "sleep", 1000, node=node.name))
        survivor = self.cluster.wait_until_running("survivor")
        self.assertEqual(survivor["status"]["containerStatuses"][0]["restartCount"], 0)
        self.assertEqual(self.cluster.logs("survivor"), "once\n")

    def test_a_container_reaches_only_devices_that_it_was_given(self):
        """What tests of isolation rest on: no driver answers at 195:3, so that an open that is allowed says ENXIO."""
        self.run_pod(kube.pod("denied", "mknod", "/gpu", 195, 3, ",", "sleep", 1000))
        self.assertEqual(self.cluster.logs("denied"), "EPERM\n")
        self.run_pod(kube.pod("allowed", "mknod", "/gpu", 195, 3, ",", "sleep", 1000, securityContext={"privileged": True}))
        self.assertEqual(self.cluster.logs("allowed"), "ENXIO\n")

    def test_nodes_have_folders_of_their_own(self):
        first, second = self.cluster.nodes
        self.assertTrue(first.path("/var/lib/kubelet/device-plugins/kubelet.sock").is_socket())
        first.exec("mkdir", "-p", "/var/run/cdi")
        self.assertTrue(first.path("/var/run/cdi").is_dir())
        self.assertFalse(second.path("/run/cdi").exists())
        self.assertEqual(first.exec("hostname").stdout, "node1\n")

    def test_programs_run_on_a_node_and_can_be_killed(self):
        program = self.cluster.nodes[1].run_inside(["sh", "-c", "hostname; exec sleep 1000"], name="sleeper")
        drover.wait_for(lambda: program.read_log() == "node2\n", program.tail)
        self.assertTrue(program.running())
        program.kill()
        self.assertEqual(program.status, -signal.SIGKILL)

    def test_what_ended_on_a_node_is_gone(self):
        node = self.cluster.nodes[0]
        self.make_pod(kube.pod("short", "exit", 0, node=node.name))
        self.cluster.wait_until_ended("short")
        self.cluster.delete("pod", "short")
        zombies = ("sh", "-c", "grep --no-messages 'State:.Z' /proc/[0-9]*/status")
        drover.wait_for(lambda: not node.exec(*zombies, check=False).stdout, "the pod's processes to go")

    def test_an_account_may_do_what_its_rules_say(self):
        rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]
        config = self.cluster.make_account("reader", rules)
        ask = ("--kubeconfig", config, "auth", "can-i", "list")
        drover.wait_for(lambda: self.cluster.kubectl(*ask, "nodes", check=False).stdout == "yes\n", "the rules to be known")
        self.assertEqual(self.cluster.kubectl(*ask, "secrets", check=False).stdout, "no\n")

    def test_the_failure_of_a_wait_says_what_is_known(self):
        self.make_pod(kube.pod("nowhere", "say", "hello", resources={"limits": {"example.com/gpu": 1}}))
        drover.wait_for(lambda: [event for event in self.cluster.events("nowhere") if event["reason"] == "FailedScheduling"], "a reason")
        with self.assertRaises(AssertionError) as raised:
            self.cluster.wait_until_running("nowhere", timeout=0.1)
        self.assertIn("Insufficient example.com/gpu", str(raised.exception))


class SettingsTest(kube.ClusterTest):
    settings = kube.Settings(
        nodes=(kube.NodeSettings(kubelet={"maxPods": 7}, mounts={"/mnt": str(drover.ROOT / "tests/kube")}),
               kube.NodeSettings(containerd=kube.SYSTEM_CONTAINERD)),
        services=True, feature_gates={"DRADeviceTaintRules": True}, runtime_config="resource.k8s.io/v1beta2=true",
        flags={"kube-scheduler": ["--v=3"]})

    def test_nodes_have_the_runtime_they_ask_for(self):
        versions = [node["status"]["nodeInfo"]["containerRuntimeVersion"] for node in self.cluster.list("nodes")]
        self.assertEqual(versions[0], f"containerd://{kube.CONTAINERD_VERSION}")
        self.assertNotEqual(versions[1], versions[0])

    def test_kubelets_and_folders_of_nodes_are_as_asked(self):
        first, second = self.cluster.list("nodes")
        self.assertEqual(first["status"]["capacity"]["pods"], "7")
        self.assertNotEqual(second["status"]["capacity"]["pods"], "7")
        self.assertIn("cluster.py", self.cluster.nodes[0].exec("ls", "/mnt").stdout)

    def test_components_get_flags(self):
        self.assertIn("--v=3", self.cluster.control_plane.scheduler.command)
        self.assertTrue(self.cluster.control_plane.scheduler.running())

    def test_pods_reach_the_api_as_a_service(self):
        for node in self.cluster.nodes:
            name = self.run_pod(kube.pod(f"client-{node.name}", "1000", node=node.name, image=kube.SHELL, command=["sleep"]))
            reach = ("sh", "-c", "nc -w 5 10.96.0.1 443 </dev/null")
            drover.wait_for(lambda: self.cluster.exec(name, *reach, check=False).returncode == 0, "kube-proxy to make the service")

    def test_features_that_are_off_by_default_are_there(self):
        self.assertEqual(self.cluster.list("devicetaintrules"), [])


@unittest.skipIf(os.geteuid() != 0, "needs root: namespaces are made for real")
class EndTest(unittest.TestCase):
    def test_a_start_that_fails_half_way_leaves_nothing(self):
        cluster = kube.Cluster(kube.Settings(nodes=(kube.NodeSettings(kubelet={"topologyManagerPolicy": "none of these"}),)))
        with self.assertRaisesRegex(AssertionError, "(?s)kubelet ended with.*none of these"):
            cluster.start()
        self.assertEqual(leftovers.find(cluster.name) + leftovers.changes(cluster.before), [])

    def test_a_node_that_lost_its_power_leaves_nothing(self):
        cluster = kube.Cluster(kube.Settings(nodes=(kube.NodeSettings(),)))
        self.addCleanup(cluster.close)
        cluster.start()
        cluster.apply(kube.pod("running", "sleep", 1000))
        cluster.wait_until_running("running")
        cluster.nodes[0].die()
        self.assertFalse(cluster.nodes[0].kubelet.running())
        self.assertEqual(cluster.close(), [])

    def test_a_test_that_is_killed_leaves_nothing(self):
        components.obtain()
        before = leftovers.host_state()
        script = textwrap.dedent("""
            import kube, time
            cluster = kube.Cluster(kube.Settings(nodes=(kube.NodeSettings(),))).start()
            cluster.apply(kube.pod("running", "sleep", 1000))
            cluster.wait_until_running("running")
            print(cluster.name, flush=True)
            time.sleep(1000)
            """)
        with subprocess.Popen([sys.executable, "-B", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                              cwd=pathlib.Path(__file__).parent) as test:
            name = test.stdout.readline().strip()
            self.assertTrue(name.startswith("drover-kube-"), name)
            self.assertNotEqual(cgroups.processes_of(name), [])
            self.assertNotEqual(leftovers.find(name), [])
            test.kill()
        drover.wait_for(lambda: not leftovers.find(name), lambda: "\n".join(leftovers.find(name)))
        self.assertEqual(leftovers.changes(before), [])


if __name__ == "__main__":
    unittest.main()
