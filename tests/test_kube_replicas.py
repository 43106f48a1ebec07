"""Replicas of GPUs by limits that hold: pods of a real kubelet see their part as the whole card, and get no more of it. The GPUs are simulated;
what refuses programs is the guard's libraries, which the device plugin gives each container with pages of its own."""

import json
import pathlib
import tempfile
import unittest

import drover
import kube_guard
import test_guard
from kube import pod_is_ready
from kube.machine import wait_for
from kube_guard import CONTEXT, GIB, SLEEP, hold, memory_in, pod
from kube_node import GPU, NodeTest

SHARED = f"{GPU}.shared"
ONE = {SHARED: 1}
SHARE = 10134  # MiB, a quarter of an A100 with 40 GiB
ACCOUNT = "/usr/local/nvidia/share/account"


class ReplicasTest(kube_guard.Shares, NodeTest):
    amounts = {"replicas": 4}

    @classmethod
    def setUpClass(cls):
        cls.config = {"version": "v1", "sharing": {"drover": {"renameByDefault": True, "resources": [{"name": GPU, "devices": [0], **cls.amounts}]}}}
        super().setUpClass()
        cls.import_image()

    @classmethod
    def names(cls):
        return (SHARED,)

    def tearDown(self):
        """Cleanups come after this: nothing of pods stays behind them."""
        self.doCleanups()
        wait_for(lambda: self.pages() == [] and self.specifications() == [],
                 lambda: f"nothing to be left of replicas: {self.pages()}, {self.specifications()}; {self.agent.tail()}")
        super().tearDown()

    def pages(self):
        folder = self.node.path(f"{self.state}/replicas")
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def specifications(self):
        return [path.name for path in self.node.path("/var/run/cdi").iterdir() if "-replica_" in path.name]

    def inode(self, name):
        return self.node.path(f"{self.state}/replicas/{name}/share/account").stat().st_ino

    def run_replica(self, name, *commands, **more):
        self.run_pod(pod(name, *commands, limits=ONE, **more))

    def events_of(self, name, reason):
        return [event["message"] for event in self.cluster.events(name) if event["reason"] == reason]


class QuarterTest(ReplicasTest):
    def test_a_replica_is_all_that_a_pod_sees_and_gets(self):
        text, status = self.run_to_end("sees", "/cuda_check", "info", limits=ONE)
        self.assertEqual((memory_in(text), status), ((SHARE - CONTEXT, SHARE), 0), text)
        text, status = self.run_to_end("fills", *hold(SHARE - CONTEXT - 4), limits=ONE)
        self.assertEqual(status, 0, text)
        self.assertEqual(self.run_to_end("beyond", *hold(SHARE), limits=ONE)[1], 2, "refused as a full card refuses")
        self.run_replica("told", SLEEP)
        wait_for(lambda: self.events_of("told", "ShareGuarded") == [
            "pods see as the whole card, and are refused more than, 9.9 GiB of GPU 0"], lambda: f"an event; {self.agent.tail()}")
        labels = self.cluster.get("node", self.node.name)["metadata"]["labels"]
        self.assertEqual([labels[f"{GPU}.{name}"] for name in ("sharing-strategy", "replicas")], ["drover", "4"])
        whole, _ = self.run_to_end("whole", "/cuda_check", "info", limits={GPU: 1})
        self.assertGreater(memory_in(whole)[1], 39 * GIB)

    def test_containers_have_accounts_of_their_own(self):
        self.run_replica("pair", hold(9 * GIB, "sleep", 10000), hold(9 * GIB, "sleep", 10000))
        for container in ("c0", "c1"):
            self.wait_until_held("pair", container)
            self.assertEqual(self.exec("pair", *hold(GIB), container=container).returncode, 2)
        self.assertEqual(len(self.pages()), 2)
        wait_for(lambda: self.tiers() == {("pair", "guarded")}, lambda: f"both to be told of: {self.tiers()}")
        wait_for(lambda: sorted(self.charged()) == [(9 * GIB + CONTEXT) << 20] * 2, lambda: f"both to be charged: {self.charged()}")

    def test_a_container_has_one_replica_at_most(self):
        self.make_pod(pod("greedy", SLEEP, limits={SHARED: 2}))
        greedy = self.cluster.wait("pod", "greedy", lambda made: made and made["status"].get("phase") == "Failed")
        self.assertIn("maximum request size", greedy["status"]["message"])

    def test_pages_stay_whatever_becomes_of_the_agent(self):
        self.run_replica("stays", hold(6 * GIB, "sleep", 10000))
        self.wait_until_held("stays")
        (name,) = self.pages()
        before = self.inode(name)
        for killed in (False, True, False):
            with self.subTest(killed=killed):
                if killed:
                    self.agent.kill()
                self.assertEqual(self.exec("stays", *hold(6 * GIB)).returncode, 2)
                self.assertIn("held 3072", self.exec("stays", *hold(3 * GIB)).stdout)
                if killed:
                    self.agent.start()
                    wait_for(self.charged, lambda: f"the pages to be looked at again; {self.agent.tail()}")
                self.assertEqual((self.pages(), self.inode(name)), ([name], before), "pages are never made anew")
        self.assertEqual(set(self.charged()), {(6 * GIB + CONTEXT) << 20})

    def test_what_nobody_has_any_more_is_removed_by_the_next_agent(self):
        self.run_replica("gone", SLEEP)
        self.assertEqual(len(self.pages()), 1)
        self.agent.kill()
        self.cluster.delete("pod", "gone")
        self.agent.start()

    def test_a_container_that_starts_again_has_its_pages_again(self):
        again = pod("again", hold(9 * GIB, "sleep", 3), limits=ONE)
        again["spec"]["restartPolicy"] = "Always"
        self.run_pod(again)
        before = self.pages()
        self.agent.kill()
        for path in self.node.path("/var/run/cdi").glob("*-replica_*"):  # as a machine that starts again does
            path.unlink()
        self.agent.start()
        self.cluster.wait("pod", "again", lambda made: pod_is_ready(made) and made["status"]["containerStatuses"][0]["restartCount"] > 0)
        self.wait_until_held("again")
        self.assertEqual(self.pages(), before)

    def test_an_init_container_hands_its_replica_on_but_not_its_account(self):
        self.make_pod({**(made := pod("heir", hold(9 * GIB, "sleep", 10000), limits=ONE)), "spec": {
            **made["spec"], "initContainers": [{**made["spec"]["containers"][0], "name": "init", "command": list(map(str, hold(9 * GIB)))}]}})
        self.cluster.wait_until_running("heir")
        self.wait_until_held("heir")
        names = self.pages()
        self.assertEqual(len(names), 2)
        self.assertEqual(len({name.rpartition("_")[0] for name in names}), 1, "of one replica")
        self.assertEqual(self.exec("heir", *hold(GIB)).returncode, 2)

    def test_the_next_pod_begins_with_an_empty_account(self):
        self.import_image("spoil", more=kube_guard.spoil_program())
        self.run_replica("others", SLEEP, SLEEP, SLEEP)
        others = set(self.pages())
        ways = {"full": hold(9 * GIB, "sleep", 10000), **{way: ("/spoil", ACCOUNT, way) for way in ("garbage", "lies", "empty")}}
        seen = set()
        for name, command in {**ways, "last": hold(9 * GIB, "sleep", 10000)}.items():
            with self.subTest(name):
                self.run_replica(name, command, image="spoil")
                seen.update(set(self.pages()) - others)
                wait_for(lambda: self.cluster.kubectl("logs", name).stdout, "it to be done")
                if name != "last":
                    self.cluster.kubectl("delete", "pod", name, "--grace-period=0", "--force")
        self.assertIn(f"held {9 * GIB}", self.cluster.kubectl("logs", "last").stdout)
        self.assertEqual((len(seen), len({name.rpartition("_")[0] for name in seen})), (5, 1), "they had one replica, one after another")
        wait_for(lambda: len(self.pages()) == 4, lambda: f"what was of pods of before to go: {self.pages()}; {self.agent.tail()}")

    def test_who_goes_round_the_guard_is_ended_and_nobody_else(self):
        self.run_replica("good", hold(512, "sleep", 10000))
        self.make_pod(pod("bad", hold(12 * GIB, "sleep", 10000), limits=ONE, env=[{"name": "CUDA_LIBRARY", "value": test_guard.BEHIND}]))
        self.cluster.wait_until_ended("bad")
        self.assertRegex(self.agent.read_log(), r"the container 'c0' of the pod 'default/bad' held 12\.\d GiB of GPU 0 and may hold 9\.9 GiB")
        self.assertEqual(self.cluster.get("pod", "good")["status"]["phase"], "Running")
        wait_for(lambda: any("it is ended" in message for message in self.events_of("bad", "GpuShareExceeded")), "an event")


class SpoiltTest(ReplicasTest):
    """Pods that mean harm: they get no more than their replica, and nothing of anybody's."""

    def test_a_container_with_two_names_is_held_or_refused(self):
        self.make_pod(pod("both", SLEEP, limits={SHARED: 1, GPU: 1}))
        self.held_or_refused("both", SHARE)

    def test_a_volume_over_the_guard_gets_nothing(self):
        for index, place in enumerate(("/usr/local/nvidia", "/usr/local/nvidia/share", "/usr/local/nvidia/share/limits", "/usr/local/nvidia/guard")):
            with self.subTest(place):
                made = pod(f"over{index}", SLEEP, limits=ONE)
                made["spec"]["volumes"] = [{"name": "own", "emptyDir": {}}]
                made["spec"]["containers"][0]["volumeMounts"] = [{"name": "own", "mountPath": place}]
                self.make_pod(made)
                self.held_or_refused(f"over{index}", SHARE)

    def test_names_and_paths_of_others_lead_nowhere(self):
        self.run_replica("victim", hold(9 * GIB, "sleep", 10000))
        self.wait_until_held("victim")
        (name,) = self.pages()
        device = f"k8s.device-plugin.nvidia.com/replica={name}"
        evil = pod("evil", SLEEP, limits={"cpu": "10m"}, env=[
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": device}, {"name": "DROVER_GUARD_ACCOUNT", "value": f"{self.state}/replicas/{name}/share/account"}])
        evil["metadata"]["annotations"] = {"cdi.k8s.io/drover": device, "drover.dev/replica": name}
        self.run_pod(evil)
        for path in (ACCOUNT, f"{self.state}/replicas/{name}/share/account", "/dev/nvidia0"):
            self.assertIn("ENOENT", self.exec("evil", "/probe", "exists", path).stdout)
        # Neither is it taken for the victim, whose replica is its own alone.
        wait_for(lambda: self.tiers() == {("victim", "guarded")}, lambda: f"nobody else to be told of: {self.tiers()}")
        self.assertEqual(self.exec("victim", *hold(GIB)).returncode, 2)


class NonsenseTest(unittest.TestCase):
    """Without a cluster: what a configuration says wrong is refused before anything is done."""

    def test_each_mistake_is_told_where_it_is(self):
        for amounts, said in (({"memory": "8 cards"}, "memory: CONFIG: '8 cards' is not a size"), ({"memory": "512MiB"}, "memory: CONFIG: nothing holds"),
                              ({"replicas": 4, "memory": "8GiB"}, "memory: CONFIG: either memory or replicas"), ({}, "memory: CONFIG: either"),
                              ({"replicas": 4, "compute": 26}, "compute: CONFIG: 4 replicas with 26 percent each are more than a GPU")):
            with self.subTest(amounts), tempfile.TemporaryDirectory() as folder:
                config = pathlib.Path(folder) / "config.yaml"
                config.write_text(json.dumps({"version": "v1", "sharing": {"drover": {"resources": [{"name": GPU, **amounts}]}}}))
                done = drover.run([drover.BINARY, "kube", "node", "--config", config, "--state", f"{folder}/state"])
                self.assertNotEqual(done.status, 0)
                self.assertIn("/sharing/drover/resources/0/" + said.replace("CONFIG", str(config)), done.err)
                self.assertFalse((pathlib.Path(folder) / "state").exists())


class ByMemoryTest(ReplicasTest):
    """The configuration of docs/kubernetes.md, as it stands there."""

    document = (drover.ROOT / "docs/kubernetes.md").read_text()
    amounts = {"memory": "8Gi", "compute": 25}

    def test_there_are_as_many_as_fit(self):
        self.assertIn("{name: nvidia.com/gpu, memory: 8Gi, compute: 25}", self.document)
        self.wait_for_allocatable(4, SHARED)
        text, _ = self.run_to_end("sees", "/cuda_check", "info", limits=ONE)
        self.assertEqual(memory_in(text)[1], 8 * GIB)


class SmallTest(ReplicasTest):
    amounts = {"replicas": 64}

    def test_what_is_too_small_for_the_guard_is_counted_and_the_log_says_so(self):
        self.run_replica("small", SLEEP)
        self.assertGreater(memory_in(self.exec("small", "/cuda_check", "info").stdout)[1], 39 * GIB)
        wait_for(lambda: self.tiers() == {("small", "counted")}, lambda: f"its tier to be told: {self.tiers()}")
        wait_for(lambda: self.events_of("small", "ShareCounted"), "an event")
        self.assertRegex(self.agent.read_log(), r"the replica GPU-\S+ is counted, and nothing enforces it: nothing holds programs to less than 1 GiB")


class InsistingTest(ReplicasTest):
    amounts = {"replicas": 64}

    @classmethod
    def flags(cls):
        return (*super().flags(), "--share-by", "limits")

    def test_what_cannot_be_held_is_refused_in_a_sentence(self):
        self.make_pod(pod("small", SLEEP, limits=ONE))
        refused = self.cluster.wait("pod", "small", lambda made: made and made["status"].get("phase") == "Failed")
        self.assertRegex(refused["status"]["message"], r"nobody can be held to the replica GPU-\S+: nothing holds programs to less than 1 GiB")


class NobodyTest(ReplicasTest):
    @classmethod
    def flags(cls):
        return (*super().flags(), "--share-by", "none")

    def test_nobody_is_guarded(self):
        self.run_replica("free", SLEEP)
        self.assertGreater(memory_in(self.exec("free", "/cuda_check", "info").stdout)[1], 39 * GIB)
        wait_for(lambda: self.tiers() == {("free", "counted")}, lambda: f"its tier to be told: {self.tiers()}")


if __name__ == "__main__":
    unittest.main()
