"""`drover kube scheduler` against a real API server. Nodes are objects without a kubelet: what is looked at is what is written."""

import json
import tempfile
import unittest

import drover
import kube
from kube.components import KUBERNETES_MINOR
from kube.settings import RESOURCE_API, Settings

GPU = "nvidia.com/gpu"
SAME_NUMA = 5


def topology(node, count, pairs=()):
    """GPUs "NODE-0" …; `pairs` are joined by NVLinks: (one, other, links)."""
    links = [[[0, SAME_NUMA] for _ in range(row)] for row in range(count)]
    for one, other, number in pairs:
        links[max(one, other)][min(one, other)] = [number, SAME_NUMA]
    return json.dumps({"driver": "535.104.05", "links": links,
                       "gpus": [{"uuid": f"{node}-{index}", "model": "Tesla V100", "memory": 16 << 30} for index in range(count)]})


def why(pod):
    """What its condition PodScheduled says."""
    return "".join(condition.get("message", "") for condition in pod["status"].get("conditions", ()) if condition["type"] == "PodScheduled")


class SchedulerTest(kube.ClusterTest):
    settings = Settings(nodes=())
    has_scheduler = True  # False: each test starts what it needs

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if cls.has_scheduler:
            cls.scheduler = cls.start_scheduler()
            cls.addClassCleanup(cls.scheduler.stop)

    @classmethod
    def start_scheduler(cls, *flags):
        return cls.cluster.run_inside([drover.BINARY, "kube", "scheduler", "--kubeconfig", cls.cluster.kubeconfig, *flags],
                                      name="drover-scheduler")

    def make_node(self, name, gpus, pairs=(), named=True, offered=None, **spec):
        """It has so many GPUs, and offers all for limits, or `offered`."""
        annotations = {"drover.dev/gpu-topology": topology(name, gpus, pairs)} if named else {}
        resources = {"cpu": "16", "memory": "64Gi", "pods": "110", GPU: str(gpus if offered is None else offered)}
        self.cluster.apply({"apiVersion": "v1", "kind": "Node", "spec": spec,
                            "metadata": {"name": name, "annotations": annotations, "labels": {"kubernetes.io/hostname": name}}})
        self.addCleanup(self.cluster.delete, "node", name)
        self.cluster.kubectl("patch", "node", name, "--subresource=status", "--type=merge",
                             f"--patch={json.dumps({'status': {'capacity': resources, 'allocatable': resources}})}")

    def make_gpu_pod(self, name, gpus, **spec):
        pod = kube.pod(name, "sleep", 10000, resources={"limits": {GPU: str(gpus)}} if gpus else {})
        pod["spec"].update({"schedulerName": "drover", "tolerations": [{"operator": "Exists"}], **spec})
        self.addCleanup(self.cluster.delete, "pod", name, options=("--force", "--grace-period=0"))
        self.cluster.apply(pod)

    def bound(self, name):
        pod = self.cluster.wait("pod", name, lambda pod: pod["spec"].get("nodeName"))
        return pod["spec"]["nodeName"], pod["metadata"].get("annotations", {}).get("drover.dev/gpus")

    def refusal(self, name, *words):
        """Waits until its condition says all these words; returns the message."""
        def says(pod):
            return all(word in why(pod) for word in words)

        return why(self.cluster.wait("pod", name, says))


class PlaceTest(SchedulerTest):
    def test_a_pod_gets_the_best_joined_gpus(self):
        self.make_node("joined", 4, pairs=[(1, 3, 2)])
        self.make_gpu_pod("two", 2)
        self.assertEqual(self.bound("two"), ("joined", "joined-1,joined-3"))
        self.make_gpu_pod("rest", 2)
        self.assertEqual(self.bound("rest"), ("joined", "joined-0,joined-2"))
        drover.wait_for(lambda: "Scheduled" in [event["reason"] for event in self.cluster.events("two")], "the Event")
        # What has ended leaves its GPUs to others.
        self.make_gpu_pod("late", 2)
        self.refusal("late", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
        self.cluster.delete("pod", "two", options=("--force", "--grace-period=0"))
        self.assertEqual(self.bound("late"), ("joined", "joined-1,joined-3"))

    def test_what_keeps_it_off_every_node_is_told(self):
        self.make_node("tainted", 4, taints=[{"key": "dedicated", "effect": "NoSchedule"}])
        self.make_node("cordoned", 4, unschedulable=True)
        self.make_node("small", 1)
        tolerations = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]
        self.make_gpu_pod("waits", 2, tolerations=tolerations)
        said = self.refusal("waits", "untolerated")
        self.assertTrue(said.startswith("0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s), "
                                        "1 node(s) were unschedulable."), said)
        drover.wait_for(lambda: "FailedScheduling" in [event["reason"] for event in self.cluster.events("waits")], "the Event")
        self.cluster.kubectl("taint", "node", "tainted", "dedicated-")
        self.assertEqual(self.bound("waits")[0], "tainted")

    def test_gpus_of_others_nodes_are_counted(self):
        self.make_node("plain", 2, named=False)
        self.make_gpu_pod("one", 1)
        self.assertEqual(self.bound("one"), ("plain", None))
        self.make_gpu_pod("two", 2)
        self.refusal("two", "Insufficient nvidia.com/gpu")

    def test_what_is_more_urgent_takes_the_place_of_the_fewest(self):
        self.make_node("only", 4)
        self.cluster.apply({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000})
        self.addCleanup(self.cluster.delete, "priorityclass", "urgent")
        for name, gpus in (("small", 1), ("large", 3)):
            self.make_gpu_pod(name, gpus, terminationGracePeriodSeconds=0)
            self.bound(name)
        self.make_gpu_pod("first", 2, priorityClassName="urgent")
        self.assertEqual(self.bound("first")[0], "only")
        self.assertIsNotNone(self.cluster.get("pod", "small"))
        self.assertIsNone(self.cluster.get("pod", "large"))

    def test_pods_with_gates_and_of_others_are_left_alone(self):
        self.make_node("free", 4)
        self.make_gpu_pod("gated", 1, schedulingGates=[{"name": "example.com/wait"}])
        self.make_gpu_pod("others", 1, schedulerName="another")
        self.make_gpu_pod("ours", 1)
        self.bound("ours")
        for name in ("gated", "others"):
            self.assertNotIn("nodeName", self.cluster.get("pod", name)["spec"])
        self.cluster.kubectl("patch", "pod", "gated", "--type=merge", '--patch={"spec":{"schedulingGates":[]}}')
        self.bound("gated")


class AskedTest(SchedulerTest):
    """What the command line says of the cluster."""

    def ask(self, *words, kubeconfig=None):
        return drover.run(self.cluster.reaching(drover.BINARY, *words, "--kubeconfig", kubeconfig or self.cluster.kubeconfig))

    def test_it_says_what_the_condition_says_and_changes_nothing(self):
        self.make_node("only", 4)
        self.make_gpu_pod("runs", 3)
        gpus = self.bound("runs")[1]
        self.make_gpu_pod("waits", 2)
        said = self.refusal("waits", "What helps: ask for 1 GPU.")
        self.assertEqual(self.ask("explain", "--pod", "waits").out, f"Pod default/waits waits at place 1 of 1, queue default\n  {said}\n")
        self.assertEqual(json.loads(self.ask("explain", "--pod", "default/waits", "--json").out)["message"], said)
        self.assertEqual(self.ask("explain", "--pod", "runs").out, f"Pod default/runs is on only\n  with GPU {gpus.replace(',', ', ')}\n")
        self.assertEqual(self.ask("queue", "--kube", "--format", "{queue} {used} {waiting}").out, "default 3 GPUs 1\n")
        self.assertIn(said, self.ask("queue", "--kube").out)
        # What helps is what a pod that asks for it is told.
        fits, waits = (self.ask("plan", "--kube", "--gpus", gpus) for gpus in ("1", "2"))
        self.assertEqual((fits.status, waits.status), (0, 1), (fits, waits))
        self.assertRegex(fits.out, r"^Pod default/planned-\w+ would start now on only\n  with GPU only-\d\n$")
        self.assertIn(said.split(" Place")[0], waits.out)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            pod = kube.pod("drawn", "sleep", 1, resources={"limits": {GPU: "1"}})
            pod["spec"].update(schedulerName="drover", tolerations=[{"operator": "Exists"}])
            file.write(json.dumps(pod))
            file.flush()
            self.assertRegex(self.ask("plan", "--kube", "-f", file.name).out, r"^Pod default/drawn would start now on only\n")
            refused = self.ask("plan", "--kube", "-f", file.name, "--scheduler-name", "another")
            self.assertIn("Its scheduler is 'drover', and not 'another'", refused.out)
        self.assertEqual({pod["metadata"]["name"] for pod in self.cluster.list("pods")}, {"runs", "waits"})
        missing = self.ask("explain", "--pod", "nobody")
        self.assertIn("nobody", missing.err)
        self.assertNotEqual(missing.status, 0)

    def test_who_may_not_look_is_told_what_he_lacks(self):
        self.make_node("only", 4)
        self.cluster.kubectl("create", "serviceaccount", "alice")
        self.cluster.kubectl("create", "clusterrole", "alice", "--verb=get,list", "--resource=pods,namespaces")
        self.cluster.kubectl("create", "clusterrolebinding", "alice", "--clusterrole=alice", "--serviceaccount=default:alice")
        for kind in ("serviceaccount", "clusterrole", "clusterrolebinding"):
            self.addCleanup(self.cluster.delete, kind, "alice")
        token = self.cluster.kubectl("create", "token", "alice").stdout.strip()
        alice = self.cluster.write_kubeconfig("alice", "default", user={"token": token})
        refused = self.ask("queue", "--kube", kubeconfig=alice)
        self.assertEqual(refused.status, 77, refused)
        self.assertIn("You may not list nodes, persistentvolumeclaims, persistentvolumes", refused.err)
        self.assertNotIn("pods,", refused.err)
        self.assertIn("drover-view", refused.err)


@unittest.skipIf(KUBERNETES_MINOR < (1, 36), "PodGroups are of Kubernetes 1.36 and newer")
class GroupTest(SchedulerTest):
    """PodGroups of Kubernetes' own."""

    VERSION, CONDITION = ("v1alpha2", "PodGroupScheduled") if KUBERNETES_MINOR == (1, 36) else ("v1beta1", "PodGroupInitiallyScheduled")
    settings = Settings(nodes=(), feature_gates={"GenericWorkload": True}, runtime_config=f"scheduling.k8s.io/{VERSION}=true")

    def condition(self):
        """What the PodGroup says of itself: status, reason, message."""
        conditions = self.cluster.get("podgroup", "train").get("status", {}).get("conditions", ())
        return next(((one["status"], one["reason"], one["message"]) for one in conditions if one["type"] == self.CONDITION), None)

    def test_a_podgroup_tells_how_its_gang_stands(self):
        self.make_node("only", 2)
        self.cluster.apply({"apiVersion": f"scheduling.k8s.io/{self.VERSION}", "kind": "PodGroup", "metadata": {"name": "train"},
                            "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}})
        self.addCleanup(self.cluster.delete, "podgroup", "train")
        for name in ("one", "two"):
            self.make_gpu_pod(name, 2, schedulingGroup={"podGroupName": "train"})
        said = self.refusal("two", "1 of 2 members fit now")
        drover.wait_for(lambda: self.condition() == ("False", "Unschedulable", said), lambda: f"{said}: {self.condition()}")
        # One Event of the gang, on its object and on one of its pods.
        drover.wait_for(lambda: self.cluster.events("train"), "the Event of the gang")
        self.assertEqual(sum("FailedScheduling" in [event["reason"] for event in self.cluster.events(name)] for name in ("one", "two")), 1)
        self.make_node("more", 2)
        for name in ("one", "two"):
            self.bound(name)
        drover.wait_for(lambda: (self.condition() or "?")[:2] == ("True", "Scheduled"), self.condition)


class DeviceTest(SchedulerTest):
    """Devices are published by hand, as a driver would."""

    DRIVER = "gpu.example.com"

    def setUp(self):
        self.cluster.apply({"apiVersion": RESOURCE_API, "kind": "DeviceClass", "metadata": {"name": "gpu.example.com"},
                            "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{self.DRIVER}'"}}]}})
        self.addCleanup(self.cluster.delete, "deviceclass", "gpu.example.com")

    def publish(self, node, count):
        devices = [{"name": f"gpu-{index}", "attributes": {
            "uuid": {"string": f"{node}-{index}"}, "type": {"string": "gpu"}, "index": {"int": index},
            "board": {"string": f"{node}-board-{index // 2}"}}} for index in range(count)]
        self.cluster.apply({"apiVersion": RESOURCE_API, "kind": "ResourceSlice", "metadata": {"name": f"{node}-gpus"}, "spec": {
            "driver": self.DRIVER, "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}, "devices": devices}})
        self.addCleanup(self.cluster.delete, "resourceslice", f"{node}-gpus")

    def make_claiming_pod(self, name, count, constraints=(), selectors=()):
        template = {"metadata": {"name": name}, "apiVersion": RESOURCE_API, "kind": "ResourceClaimTemplate", "spec": {"spec": {"devices": {
            "requests": [{"name": "gpus", "exactly": {"deviceClassName": "gpu.example.com", "count": count,
                                                      "selectors": [{"cel": {"expression": text}} for text in selectors]}}],
            "constraints": list(constraints)}}}}
        self.cluster.apply(template)
        self.addCleanup(self.cluster.delete, "resourceclaimtemplate", name)
        self.make_gpu_pod(name, 0, resourceClaims=[{"name": "gpus", "resourceClaimTemplateName": name}])

    def devices(self, name):
        """Waits until it is bound; returns what its claim has."""
        self.bound(name)
        made = self.cluster.get("pod", name)["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
        claim = self.cluster.get("resourceclaim", made)
        self.assertEqual([user["name"] for user in claim["status"]["reservedFor"]], [name])
        self.assertIn("resource.kubernetes.io/delete-protection", claim["metadata"]["finalizers"])
        return sorted(result["device"] for result in claim["status"]["allocation"]["devices"]["results"])


class ClaimTest(DeviceTest):
    def test_claims_get_the_best_joined_devices_and_give_them_back(self):
        self.make_node("dra", 4, pairs=[(1, 2, 2)], offered=0)
        self.publish("dra", 4)
        self.make_claiming_pod("two", 2)
        self.assertEqual(self.devices("two"), ["gpu-1", "gpu-2"])
        self.make_claiming_pod("rest", 2)
        self.assertEqual(self.devices("rest"), ["gpu-0", "gpu-3"])
        self.make_claiming_pod("late", 1)
        self.refusal("late", "Insufficient nvidia.com/gpu")
        # The controller takes the devices back when the pod is gone.
        self.cluster.delete("pod", "rest", options=("--force", "--grace-period=0"))
        self.assertIn(self.devices("late"), (["gpu-0"], ["gpu-3"]))

    def test_what_a_claim_says_holds(self):
        self.make_node("dra", 0)
        self.publish("dra", 4)
        board = {"requests": ["gpus"], "matchAttribute": f"{self.DRIVER}/board"}
        self.make_claiming_pod("odd", 1, selectors=[f"device.attributes['{self.DRIVER}'].index == 1"])
        self.assertEqual(self.devices("odd"), ["gpu-1"])
        self.make_claiming_pod("pair", 2, constraints=[board])
        self.assertEqual(self.devices("pair"), ["gpu-2", "gpu-3"])
        self.make_claiming_pod("never", 1, selectors=[f"device.attributes['{self.DRIVER}'].index == 7"])
        self.refusal("never", "0/1 nodes are available: 1 ")
        self.make_claiming_pod("broken", 1, selectors=[f"device.attributes['{self.DRIVER}'].colour == 'red'"])
        self.refusal("broken", "colour")


@unittest.skipIf(KUBERNETES_MINOR < (1, 36), "limits are given by claims from Kubernetes 1.36 on")
class LimitTest(DeviceTest):
    """Limits on nodes that have their devices only for claims: the scheduler makes the claim."""

    OWN = "resource.kubernetes.io/extended-resource-claim"

    def setUp(self):
        super().setUp()
        self.cluster.kubectl("patch", "deviceclass", "gpu.example.com", "--type=merge", f'--patch={json.dumps({"spec": {"extendedResourceName": GPU}})}')
        self.make_node("dra", 4, pairs=[(1, 2, 2)], offered=0)
        self.publish("dra", 4)

    def special(self):
        """The claims that were made for pods' resources."""
        return [claim for claim in self.cluster.list("resourceclaim")
                if claim["metadata"].get("annotations", {}).get(self.OWN) == "true"]

    def limited(self, name, resource=GPU):
        """Waits until it is bound; returns the devices of the claim that its status names."""
        self.assertEqual(self.bound(name), ("dra", None))
        pod = self.cluster.get("pod", name)
        told = pod["status"]["extendedResourceClaimStatus"]
        self.assertEqual(told["requestMappings"], [{"containerName": pod["spec"]["containers"][0]["name"], "resourceName": resource,
                                                    "requestName": "container-0-request-0"}])
        claim = self.cluster.get("resourceclaim", told["resourceClaimName"])
        self.assertTrue(claim["metadata"]["name"].startswith(f"{name}-extended-resources-"))
        self.assertEqual([(owner["uid"], owner["controller"]) for owner in claim["metadata"]["ownerReferences"]], [(pod["metadata"]["uid"], True)])
        self.assertEqual([user["name"] for user in claim["status"]["reservedFor"]], [name])
        return sorted(result["device"] for result in claim["status"]["allocation"]["devices"]["results"])

    def test_limits_get_the_best_joined_devices_and_give_them_back(self):
        self.make_gpu_pod("two", 2)
        self.assertEqual(self.limited("two"), ["gpu-1", "gpu-2"])
        self.make_claiming_pod("claims", 1)
        self.assertEqual(self.devices("claims"), ["gpu-0"])
        own = "deviceclass.resource.kubernetes.io/gpu.example.com"
        pod = kube.pod("own", "sleep", 10000, resources={"limits": {own: "1"}})
        pod["spec"].update({"schedulerName": "drover", "tolerations": [{"operator": "Exists"}]})
        self.addCleanup(self.cluster.delete, "pod", "own", options=("--force", "--grace-period=0"))
        self.cluster.apply(pod)
        self.assertEqual(self.limited("own", own), ["gpu-3"])
        self.make_gpu_pod("late", 2)
        self.refusal("late", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
        self.cluster.delete("pod", "two", options=("--force", "--grace-period=0"))
        self.assertEqual(self.limited("late"), ["gpu-1", "gpu-2"])
        drover.wait_for(lambda: len(self.special()) == 2, "the claim of what has ended to go")

    def test_a_node_that_offers_them_needs_no_claim(self):
        self.make_node("plugin", 2)
        self.cluster.kubectl("cordon", "dra")
        self.make_gpu_pod("plain", 2, tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}])
        self.assertEqual(self.bound("plain"), ("plugin", "plugin-0,plugin-1"))
        self.assertEqual(self.special(), [])

    def test_the_claim_of_a_try_that_came_to_nothing_goes_first(self):
        self.make_gpu_pod("again", 4, schedulingGates=[{"name": "example.com/wait"}])
        uid = self.cluster.get("pod", "again")["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "again", "uid": uid, "controller": True}
        request = {"name": "container-0-request-0", "exactly": {"deviceClassName": "gpu.example.com", "count": 4}}
        self.cluster.apply({"apiVersion": RESOURCE_API, "kind": "ResourceClaim", "spec": {"devices": {"requests": [request]}}, "metadata": {
            "name": "left", "ownerReferences": [owner], "annotations": {self.OWN: "true"},
            "finalizers": ["resource.kubernetes.io/delete-protection"]}})
        results = [{"request": request["name"], "driver": self.DRIVER, "pool": "dra", "device": f"gpu-{index}"} for index in range(4)]
        status = {"allocation": {"devices": {"results": results}}, "reservedFor": [{"resource": "pods", "name": "again", "uid": uid}]}
        self.cluster.kubectl("patch", "resourceclaim", "left", "--subresource=status", "--type=merge", f"--patch={json.dumps({'status': status})}")
        self.cluster.kubectl("patch", "pod", "again", "--type=merge", '--patch={"spec":{"schedulingGates":[]}}')
        self.assertEqual(self.limited("again"), [f"gpu-{index}" for index in range(4)])
        self.assertIsNone(self.cluster.get("resourceclaim", "left"))
        self.assertEqual(len(self.special()), 1)


if __name__ == "__main__":
    unittest.main()
