"""GPUs that a scheduler chooses for pods with limits: a real kubelet gives them those, whoever else asks at the same time. The GPUs are
simulated. DROVER_CHOSEN_PODS says how many pods come and go, and DROVER_CHOSEN_ROUNDS how often eight are bound at once; the kubelet is started
anew in a tenth of the rounds."""

import itertools
import json
import os
import random
import statistics
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

import drover
import kube
from kube.machine import wait_for
from kube_node import GPU, SEES, NodeTest, gpu_pod, gpus_in

CHOSEN, TOPOLOGY = "drover.dev/gpus", "drover.dev/gpu-topology"
PODS = int(os.environ.get("DROVER_CHOSEN_PODS", "40"))
ROUNDS = int(os.environ.get("DROVER_CHOSEN_ROUNDS", "8"))
CHECKPOINT = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"


def chosen(pod):
    """UUIDs."""
    text = pod["metadata"].get("annotations", {}).get(CHOSEN, "")
    return set(text.split(",")) if text else set()


def was_corrected(pod):
    """What stood there when it was bound came with the Binding, and belongs to no manager of fields."""
    return any(f"f:{CHOSEN}" in owned.get("fieldsV1", {}).get("f:metadata", {}).get("f:annotations", {})
               for owned in pod["metadata"].get("managedFields", ()))


class ChosenTest(NodeTest):
    @classmethod
    def flags(cls):
        return ("--roles", "device-plugin")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        wait_for(lambda: len(cls.topology().get("gpus", ())) == cls.allocatable(), cls.agent.tail)
        cls.uuids = [gpu["uuid"] for gpu in cls.topology()["gpus"]]

    @classmethod
    def topology(cls):
        return json.loads(cls.cluster.get("node", cls.node.name)["metadata"].get("annotations", {}).get(TOPOLOGY, "{}"))

    def given(self, name):
        """UUIDs of the GPUs that its container has, when the kubelet is there to ask it."""
        told = wait_for(lambda: self.cluster.kubectl("logs", name, check=False).stdout, f"{name} to say what it has")
        return {self.uuids[number] for number in gpus_in(told)}

    def make_pods(self, pods):
        """All at once; they are away, with their GPUs, when the test ends."""
        self.addCleanup(self.delete, [pod["metadata"]["name"] for pod in pods])
        self.cluster.apply(pods)

    def delete(self, names):
        self.cluster.delete("pod", *names, options=("--grace-period=1",))

    def unbound(self, name, count):
        """A pod that waits for a scheduler of which there is none."""
        pod = gpu_pod(name, {GPU: count})
        pod["spec"].update(schedulerName="nobody", restartPolicy="Always")  # a kubelet that ends cuts starts of containers short
        return pod

    def bind(self, name, gpus):
        self.cluster.api.request("POST", f"/api/v1/namespaces/default/pods/{name}/binding", {
            "apiVersion": "v1", "kind": "Binding", "target": {"apiVersion": "v1", "kind": "Node", "name": self.node.name},
            "metadata": {"name": name, "annotations": {CHOSEN: ",".join(sorted(gpus))} if gpus else {}}})

    def bind_at_once(self, sets):
        """Name -> its GPUs."""
        self.make_pods([self.unbound(name, len(gpus)) for name, gpus in sets.items()])
        begin = time.monotonic()
        with ThreadPoolExecutor(len(sets)) as threads:
            list(threads.map(lambda item: self.bind(*item), sets.items()))
        return time.monotonic() - begin

    def wait_for_truth(self, name):
        """Until its annotation says what it has; returns that."""
        self.cluster.wait_until_running(name)
        given = self.given(name)
        self.cluster.wait("pod", name, lambda pod: chosen(pod) == given, timeout=10)
        return given

    def nvlinks(self, gpus):
        links = self.topology()["links"]
        return sum(links[one][other][0] for other, one in itertools.combinations(sorted(map(self.uuids.index, gpus)), 2))


class SchedulerTest(ChosenTest):
    profile = "dgx1-v100"

    def test_a_pod_has_what_was_decided(self):
        scheduler = self.cluster.run_inside([drover.BINARY, "kube", "scheduler", "--kubeconfig", self.cluster.kubeconfig],
                                            name="drover-scheduler")
        self.addCleanup(scheduler.stop)
        randomness, running, made, regret = random.Random(7), {}, 0, 0
        while made < PODS:
            used = set().union(*running.values()) if running else set()
            batch = {}
            while sum(batch.values()) < len(self.uuids) - len(used) and len(batch) < 4:
                batch[f"pod{made + len(batch)}"] = randomness.randint(1, min(4, len(self.uuids) - len(used) - sum(batch.values())))
            self.make_pods([{**pod, "spec": {**pod["spec"], "schedulerName": "drover"}}
                            for pod in (gpu_pod(name, {GPU: count}) for name, count in batch.items())])
            for name, count in batch.items():
                pod = self.cluster.wait_until_running(name)
                given = self.given(name)
                self.assertEqual((len(given), given & used), (count, set()), name)
                self.assertEqual(chosen(pod), given, f"{name}; {self.agent.tail()}")
                self.assertFalse(was_corrected(pod), f"{name} has {given}")
                if len(batch) == 1:
                    free = set(self.uuids) - used
                    regret += max(map(self.nvlinks, itertools.combinations(free, count))) - self.nvlinks(given)
                running[name] = given
                used |= given
            made += len(batch)
            gone = randomness.sample(sorted(running), max(1, len(running) * 2 // 3))
            self.delete(gone)
            for name in gone:
                del running[name]
        self.assertEqual(regret, 0)


class BurstTest(ChosenTest):
    profile = "dgx2"
    sizes = (1, 2, 3, 1, 2, 3, 1, 3)

    def sets(self, prefix, randomness):
        uuids = randomness.sample(self.uuids, len(self.uuids))
        return {f"{prefix}-{index}": {uuids.pop() for _ in range(size)} for index, size in enumerate(self.sizes)}

    def check(self, sets):
        """Each has its own, nobody was rejected, and no annotation had to be corrected."""
        for name, gpus in sets.items():
            pod = self.cluster.wait("pod", name, lambda pod: kube.pod_is_ready(pod) or kube.pod_has_ended(pod))
            self.assertTrue(kube.pod_is_ready(pod), f"{name}: {pod['status']}; {self.agent.tail()}")
            self.assertEqual(self.given(name), gpus, f"{name}; {self.agent.tail()}")
        time.sleep(2)
        pods = {name: self.cluster.get("pod", name) for name in sets}
        self.assertEqual({name: chosen(pod) for name, pod in pods.items()}, sets)
        self.assertEqual({name: self.checkpoint().get(pod["metadata"]["uid"]) for name, pod in pods.items()}, sets)
        self.assertEqual([name for name, pod in pods.items() if was_corrected(pod)], [])

    def checkpoint(self):
        """What the kubelet has written down: the pod's uid -> its GPUs."""
        entries = json.loads(self.node.path(CHECKPOINT).read_text())["Data"]["PodDeviceEntries"] or ()
        return {entry["PodUID"]: set(itertools.chain(*entry["DeviceIDs"].values())) for entry in entries}

    def restart_kubelet(self):
        """Pods are not taken in, and rejected for good, before the plugin is known again: this waits until it is."""
        before = self.registrations()
        self.node.kubelet.restart()
        wait_for(lambda: self.registrations() > before, self.agent.tail)

    def test_pods_that_are_bound_at_once_have_what_was_chosen(self):
        randomness, restarts, took = random.Random(3), 0, []
        every = max(ROUNDS // max(2, ROUNDS // 10), 1)
        for turn in range(ROUNDS):
            sets = self.sets(f"burst{turn}", randomness)
            # What the kubelet has written down would be taken when it starts, and pods rejected that are to have it.
            wait_for(lambda: not self.checkpoint(), lambda: f"nobody to have anything: {self.checkpoint()}", timeout=20)
            with ThreadPoolExecutor(1) as beside:
                restarting = beside.submit(self.restart_kubelet) if turn % every == every - 1 else None
                took.append(self.bind_at_once(sets))
                if restarting:
                    restarting.result()
                    restarts += 1
            self.check(sets)
            self.delete(sets)
        print(f"{ROUNDS} rounds of 8 pods, bound within {1000 * statistics.median(took):.0f} ms (at most {1000 * max(took):.0f}, "
              f"{sum(one <= 0.1 for one in took)} within 100), and {restarts} new starts of the kubelet in between: "
              f"each of the {8 * ROUNDS} pods had its own GPUs, and none was rejected", flush=True)

    def test_a_kubelet_that_starts_gives_what_was_chosen(self):
        """It takes in what was made first, and not what was bound first."""
        uuids = random.Random(4).sample(self.uuids, len(self.uuids))
        sets = {f"restart-{index}": {uuids.pop(), uuids.pop()} for index in range(8)}
        self.make_pods([self.unbound(name, len(gpus)) for name, gpus in sets.items()])
        names = list(sets)
        for name in names[6:]:
            self.bind(name, sets[name])
        for name in names[6:]:
            self.cluster.wait_until_running(name)
        self.node.kubelet.kill()
        for name in reversed(names[:6]):
            self.bind(name, sets[name])
        self.node.kubelet.start()
        self.check(sets)

    def test_what_tenants_write_harms_nobody(self):
        free = list(self.uuids)
        victim, mine = set(free[:2]), set(free[2:4])
        forged = {"malformed": ",,;" * 5, "huge": "GPU-x," * 15000, "foreign": "GPU-1,GPU-2", "greedy": ",".join(free),
                  "stolen": ",".join(sorted(victim))}
        pods = []
        for name, text in forged.items():
            pod = gpu_pod(name, {GPU: 2}, node=self.node.name)
            pod["metadata"]["annotations"] = {CHOSEN: text}
            pods.append(pod)
        self.make_pods([self.unbound("victim", 2), self.unbound("other", 2)])
        self.bind("victim", victim)
        self.bind("other", mine)
        self.make_pods([pod for pod in pods if pod["metadata"]["name"] != "stolen"])
        given = {name: self.wait_for_truth(name) for name in ("victim", "other")}
        self.assertEqual(given, {"victim": victim, "other": mine})
        self.make_pods([pod for pod in pods if pod["metadata"]["name"] == "stolen"])
        given.update({name: self.wait_for_truth(name) for name in forged})
        self.assertEqual(len(set().union(*given.values())), 2 * len(given), given)
        self.assertTrue(all(len(gpus) == 2 for gpus in given.values()), given)

    def test_the_node_tells_what_its_gpus_are_like(self):
        told = self.topology()
        self.assertEqual({(gpu["model"], gpu.get("withheld")) for gpu in told["gpus"]}, {("Tesla V100-SXM3-32GB", None)})
        self.assertEqual({gpu["numa"] for gpu in told["gpus"]}, {0, 1})
        self.assertTrue(all(pair[0] > 0 for row in told["links"] for pair in row))
        self.addCleanup(self.set_faults, {})
        self.set_faults({"5": {"lost": True}})
        wait_for(lambda: [index for index, gpu in enumerate(self.topology()["gpus"]) if "withheld" in gpu] == [5], self.agent.tail)
        self.set_faults({})
        wait_for(lambda: self.topology() == told, self.agent.tail)
        self.cluster.kubectl("annotate", "node", self.node.name, f"{TOPOLOGY}-")
        self.assertEqual(self.topology(), {})
        # It is looked after every minute, and sooner when something changes.
        self.set_faults({"5": {"lost": True}})
        wait_for(lambda: len(self.topology().get("gpus", ())) == len(self.uuids), self.agent.tail)
        self.set_faults({})
        self.wait_for_allocatable(len(self.uuids))


if __name__ == "__main__":
    unittest.main()
