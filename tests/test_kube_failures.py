"""What stands in a real API server whatever happens to `drover kube scheduler`: it is killed after any of its writes, stopped and woken,
cut off, refused. A proxy between the two plays the failures; controllers of Kubernetes are its own, and those of the pods are the test.

  DROVER_TEST_KILLS=1000     so many kills
  DROVER_TEST_GANGS=1000     so many gangs while writes fail
  DROVER_TEST_OUTAGE=60      seconds without an API server
  DROVER_TEST_ROOM=2         so many more nodes of each kind where it is killed: half a gang that waits for room makes a life take 20 s
"""

import collections
import os
import random
import signal
import time
import unittest

import drover
import kube
from kube.components import KUBERNETES_MINOR
from kube.faulty_api import DONE, DROPPED, LOST, FaultyApi
from kube.settings import RESOURCE_API
from test_kube_scheduling import GPU, DeviceTest

KILLS = int(os.environ.get("DROVER_TEST_KILLS", "60"))
GANGS = int(os.environ.get("DROVER_TEST_GANGS", "60"))
OUTAGE = int(os.environ.get("DROVER_TEST_OUTAGE", "8"))
ROOM = int(os.environ.get("DROVER_TEST_ROOM", "0"))
GPUS_OF_NODE = 4
SETTLED = 60  # seconds after which all must have come to rest


class FailureTest(DeviceTest):
    """Nodes a1, a2, … offer their GPUs by limits, and nodes d1, … only for claims."""

    has_scheduler = False
    lives = 0

    def setUp(self):
        super().setUp()
        seed = int(os.environ.get("DROVER_TEST_SEED", time.time()))
        print(f"seed {seed}", flush=True)
        self.random = random.Random(seed)
        self.wanted, self.made = {}, 0

    def life(self, api, *flags, lease=None):
        """A scheduler that reaches the API server by `api`. With a lease of its own it need not wait for that of one that was killed."""
        FailureTest.lives += 1
        name = f"scheduler-{FailureTest.lives}"
        program = self.cluster.run_inside([drover.BINARY, "kube", "scheduler", "--kubeconfig", api.kubeconfig,
                                           "--lease-name", lease or name, *flags], name=name)
        self.addCleanup(program.kill)
        return program

    def api_with_faults(self, fate=lambda *_: DONE):
        api = FaultyApi(self.cluster, fate)
        self.addCleanup(api.close)
        return api

    def make_nodes(self, offering, published):
        for index in range(offering):
            self.make_node(f"a{index}", GPUS_OF_NODE)
        for index in range(published):
            node = f"d{index}"
            self.make_node(node, GPUS_OF_NODE, offered=0)
            self.publish(node, GPUS_OF_NODE)

    # Pods, which come again when they are gone

    def want(self, kind, gpus, size=1):
        """`kind`: "limit", or "claim"."""
        self.made += 1
        for rank in range(size):
            self.wanted[f"w{self.made}-{rank}"] = (kind, gpus, size, f"w{self.made}")

    def control(self):
        there = {pod["metadata"]["name"] for pod in self.cluster.list("pod")}
        for name in self.wanted:
            if name not in there:
                self.make_wanted(name)

    def make_wanted(self, name):
        kind, gpus, size, work = self.wanted[name]
        pod = kube.pod(name, "sleep", 10000, resources={"limits": {GPU: str(gpus)}} if kind == "limit" else {})
        pod["spec"].update(schedulerName="drover", tolerations=[{"operator": "Exists"}], terminationGracePeriodSeconds=0)
        if kind == "claim":
            pod["spec"]["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": f"take-{gpus}"}]
            pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpus"}]}
        if size > 1:
            pod["metadata"].update(labels={"drover/gang": work}, annotations={"drover/gang-size": str(size)})
        self.cluster.api.request("POST", self.cluster.api.path("pod", "default"), pod)

    def make_templates(self):
        for count in range(1, GPUS_OF_NODE + 1):
            request = {"name": "gpus", "exactly": {"deviceClassName": "gpu.example.com", "count": count}}
            self.cluster.apply({"apiVersion": RESOURCE_API, "kind": "ResourceClaimTemplate", "metadata": {"name": f"take-{count}"},
                                "spec": {"spec": {"devices": {"requests": [request]}}}})
            self.addCleanup(self.cluster.delete, "resourceclaimtemplate", f"take-{count}")

    def remove(self, name):
        path = self.cluster.api.path("pod", "default", name)
        self.cluster.api.request("DELETE", path, {"gracePeriodSeconds": 0})

    def forget_all(self):
        self.wanted.clear()
        self.cluster.api.request("DELETE", self.cluster.api.path("pod", "default"), {"gracePeriodSeconds": 0})
        drover.wait_for(lambda: not self.cluster.list("pod"), "the pods to go")
        drover.wait_for(lambda: not self.cluster.list("resourceclaim"), "the claims of pods that are gone to go")

    # What must hold

    def devices_of(self, claim):
        results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
        return [f"{result['pool']}-{result['device'].removeprefix('gpu-')}" for result in results]

    def check_nothing_is_doubled(self):
        users = collections.defaultdict(set)
        for pod in self.cluster.list("pod"):
            for gpu in filter(None, pod["metadata"].get("annotations", {}).get("drover.dev/gpus", "").split(",")):
                users[gpu].add(pod["metadata"]["name"])
        for claim in self.cluster.list("resourceclaim"):
            for gpu in self.devices_of(claim):
                users[gpu].add(claim["metadata"]["name"])
        self.assertEqual({gpu: names for gpu, names in users.items() if len(names) > 1}, {})

    def free(self, pods):
        """GPUs by node that no pod has which is bound there."""
        left = {node["metadata"]["name"]: GPUS_OF_NODE for node in self.cluster.list("node")}
        for name, pod in pods.items():
            if pod["spec"].get("nodeName"):
                left[pod["spec"]["nodeName"]] -= self.wanted.get(name, ("", GPUS_OF_NODE))[1]
        return left

    def has_room(self, name, pods):
        """Whether a pod that waits, and all of its gang that do, could be bound where the others are now."""
        _, gpus, _, work = self.wanted[name]
        waiting = sum(self.wanted[other][3] == work and not pods.get(other, {}).get("spec", {}).get("nodeName") for other in self.wanted)
        return sum(left // gpus for node, left in self.free(pods).items() if node[0] in self.usable(name)) >= waiting

    def usable(self, name):
        """How the names of nodes begin that have what it asks for."""
        if self.wanted[name][0] == "claim":
            return "d"
        return "ad" if KUBERNETES_MINOR >= (1, 36) else "a"

    def unsettled(self):
        """What may not be when nothing goes on any more; "" for nothing. Where the cluster is tight, one that fits nowhere waits in peace."""
        pods = {pod["metadata"]["name"]: pod for pod in self.cluster.list("pod")}
        by_owner = {owner["uid"]: claim for claim in self.cluster.list("resourceclaim")
                    for owner in claim["metadata"].get("ownerReferences", ())}
        for name, (kind, gpus, *_) in self.wanted.items():
            pod = pods.get(name)
            node = pod and pod["spec"].get("nodeName")
            if not node and (ROOM or not pod or self.has_room(name, pods)):
                return f"{name} has no node, and there are free {self.free(pods)}"
            claim = by_owner.pop(pod["metadata"]["uid"], None)
            if not node and claim and self.devices_of(claim):
                return f"{name} has {self.devices_of(claim)} and no node"
            if not node:
                continue
            chosen = pod["metadata"].get("annotations", {}).get("drover.dev/gpus", "")
            got = chosen.split(",") if chosen else self.devices_of(claim) if claim else []
            if len(got) != gpus or not all(gpu.startswith(f"{node}-") for gpu in got):
                return f"{name} on {node} has {got} instead of {gpus}"
        left = [claim["metadata"]["name"] for claim in by_owner.values()]
        return f"the claims {left} are nobody's" if left else ""

    def settle(self, within=SETTLED):
        last = ""

        def rests():
            nonlocal last
            self.control()
            self.check_nothing_is_doubled()
            last = self.unsettled()
            return not last

        drover.wait_for(rests, lambda: f"rest: {last}", within, 0.1)


class KillTest(FailureTest):
    def test_it_is_killed_after_any_of_its_writes(self):
        self.make_nodes(offering=4 + ROOM, published=5 + ROOM)
        self.make_templates()
        if KUBERNETES_MINOR >= (1, 36):  # then limits are given by claims too
            self.cluster.kubectl("patch", "deviceclass", "gpu.example.com", "--type=merge", '--patch={"spec":{"extendedResourceName":"%s"}}' % GPU)
        for kind, gpus, size in [("limit", 1, 1), ("limit", 2, 1), ("limit", 3, 3), ("claim", 1, 1), ("claim", 2, 1), ("claim", 1, 4),
                                 ("claim", 3, 2), ("limit", 4, 1), ("limit", 2, 2)]:
            self.want(kind, gpus, size)
        self.addCleanup(self.forget_all)
        left = [0]

        def fate(method, *_):
            if method == "GET":
                return DONE
            left[0] -= 1
            return DONE if left[0] >= 0 else DROPPED

        api = self.api_with_faults(fate)
        for kill in range(KILLS):
            self.control()
            left[0] = 2 + self.random.randrange(12)  # its lease is one of them
            scheduler = self.life(api)

            def is_over():
                return left[0] < 0 or not self.unsettled()

            drover.wait_for(is_over, lambda: f"life {kill} to end; {scheduler.tail()}", SETTLED)
            scheduler.kill()
            api.cut()
            self.check_nothing_is_doubled()
            if not self.unsettled():
                for name in self.random.sample(sorted(self.wanted), 4):
                    self.remove(name)
        left[0] = 1 << 40
        self.life(api)
        self.settle()


class TroubleTest(FailureTest):
    def test_gangs_are_whole_though_writes_fail(self):
        size = 3
        self.make_nodes(offering=GANGS * size // GPUS_OF_NODE + 1, published=0)
        fates = [DROPPED, LOST, 409, 500, 503, 429]

        def fate(method, path, _):
            return self.random.choice(fates) if method != "GET" and "/leases" not in path and self.random.random() < 0.05 else DONE

        self.life(self.api_with_faults(fate))
        self.addCleanup(self.forget_all)
        for _ in range(GANGS):
            self.want("limit", 1, size)
        self.control()
        since, last = {}, 0

        def all_bound():
            nonlocal since, last
            bound = collections.Counter(self.wanted[pod["metadata"]["name"]][3] for pod in self.cluster.list("pod") if pod["spec"].get("nodeName"))
            half = {work for work, count in bound.items() if count < size}
            now = time.monotonic()
            since = {work: since.get(work, now) for work in half}
            self.assertFalse([work for work, begin in since.items() if now - begin > 30], "gangs that are half for over 30 s")
            last = sum(bound.values())
            self.control()
            return last == len(self.wanted) and not half

        drover.wait_for(all_bound, lambda: f"all gangs to be bound: {last} of {len(self.wanted)} pods are", SETTLED + GANGS, 0.3)
        self.check_nothing_is_doubled()

    def test_one_pod_that_is_refused_for_ever_keeps_nobody_up(self):
        self.make_nodes(offering=3, published=1)
        self.make_templates()
        api = self.api_with_faults(lambda method, path, _: 403 if path.endswith("/pods/w1-0/binding") or path.endswith("/pods/w2-0/binding") else DONE)
        scheduler = self.life(api)
        self.addCleanup(self.forget_all)
        self.want("limit", 2)
        self.want("claim", 2)
        self.control()
        drover.wait_for(lambda: scheduler.read_log().count("is not bound to") >= 2, lambda: scheduler.tail())
        for number in range(3, 9):
            self.want("limit", 1)
            begun = time.monotonic()
            self.control()
            self.cluster.wait("pod", f"w{number}-0", lambda pod: pod["spec"].get("nodeName"))
            self.assertLess(time.monotonic() - begun, 2)
        # It is tried ever more rarely.
        before = len(api.writes)
        time.sleep(5)
        self.assertLess(len(api.writes) - before, 40)

    def test_an_outage(self):
        self.make_nodes(offering=4, published=4)
        self.make_templates()
        api = self.api_with_faults()
        scheduler = self.life(api)
        self.addCleanup(self.forget_all)
        for kind, gpus, size in [("limit", 2, 2), ("claim", 2, 2)]:
            self.want(kind, gpus, size)
        self.settle()
        api.go_away()
        gone = [name for name in sorted(self.wanted)][:2]
        for name in gone:
            self.remove(name)
            del self.wanted[name]
        for kind, gpus, size in [("limit", 4, 2), ("claim", 4, 2), ("limit", 1, 1)]:
            self.want(kind, gpus, size)
        self.control()
        time.sleep(OUTAGE)
        self.assertIn("no node", self.unsettled())
        api.come_back()
        time.sleep(2)
        if not scheduler.running():  # it could not renew its lease, and is started anew, as a kubelet would
            scheduler.start()
        self.settle(within=25)  # the lease of the one before ends first

    def test_watches_that_are_too_old_and_a_server_that_is_busy(self):
        self.make_nodes(offering=4, published=4)
        self.make_templates()

        def fate(method, path, _):
            if "watch=" in path:
                return 410 if self.random.random() < 0.5 else DONE
            return 429 if "/leases" not in path and self.random.random() < 0.3 else DONE

        api = self.api_with_faults(fate)
        self.life(api)
        self.addCleanup(self.forget_all)
        for kind, gpus, size in [("limit", 2, 2), ("claim", 2, 2), ("limit", 4, 1), ("claim", 3, 1)]:
            self.want(kind, gpus, size)
            self.control()
            api.cut()
            time.sleep(0.5)
        self.settle()


class LeaderTest(FailureTest):
    def leader_of(self, lease):
        return self.cluster.get("lease", lease)["spec"]["holderIdentity"]

    def test_one_that_was_stopped_writes_no_more_when_it_wakes(self):
        self.make_nodes(offering=3, published=0)
        apis = [self.api_with_faults() for _ in range(2)]
        first = self.life(apis[0], lease="shared")
        self.addCleanup(self.forget_all)
        self.want("limit", 1)
        self.settle()
        holder = self.leader_of("shared")
        second = self.life(apis[1], lease="shared")
        first.signal(signal.SIGSTOP)
        stopped = time.monotonic()
        self.want("limit", 2)
        self.settle(within=25)
        self.assertLess(time.monotonic() - stopped, 21, "how long nobody led")
        self.assertNotEqual(self.leader_of("shared"), holder)
        for gpus in (1, 2, 3):
            self.want("limit", gpus)
        written = len(apis[0].writes)
        first.signal(signal.SIGCONT)
        self.settle()
        self.assertNotEqual(first.wait(), 0)  # whoever starts it again has a new one
        self.assertEqual(apis[0].writes[written:], [])
        # One that ends in order lets go of it at once.
        third = self.life(apis[0], lease="shared")
        self.assertEqual(second.stop(), 0)
        self.want("limit", 1)
        self.settle(within=10)
        self.assertTrue(third.running())


if __name__ == "__main__":
    unittest.main()
