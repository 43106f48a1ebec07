"""Volumes that wait for their first pod, on a real API server with Kubernetes' own controller of volumes. The test is the provisioner."""

import unittest

import drover
import test_kube_scheduling as scheduling

SELECTED = "volume.kubernetes.io/selected-node"
PROVISIONER = "disks.example.com"
SIZE = {"storage": "1Gi"}


class VolumesTest(scheduling.SchedulerTest):
    def setUp(self):
        for name, provisioner in (("made", PROVISIONER), ("static", "kubernetes.io/no-provisioner")):
            self.cluster.apply({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
                                "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"})
            self.addCleanup(self.cluster.delete, "storageclass", name)

    def make_volume(self, name, node, storage_class, claim=None):
        spec = {"capacity": SIZE, "accessModes": ["ReadWriteOnce"], "storageClassName": storage_class, "local": {"path": "/x"},
                "persistentVolumeReclaimPolicy": "Retain", "nodeAffinity": {"required": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]}}}
        metadata = {"name": name}
        if claim:
            spec["claimRef"] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": claim["metadata"]["name"],
                                "uid": claim["metadata"]["uid"]}
            metadata["annotations"] = {"pv.kubernetes.io/provisioned-by": PROVISIONER}
        self.cluster.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec})
        self.addCleanup(self.cluster.delete, "pv", name, wait=False)

    def make_claim(self, name, storage_class):
        self.cluster.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": storage_class, "resources": {"requests": SIZE}}})
        self.addCleanup(self.cluster.delete, "pvc", name, wait=False)

    def make_pod_with(self, name, claim, gpus=1):
        self.make_gpu_pod(name, gpus, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim}}])

    def selected(self, claim):
        """Waits until a volume is wanted for a node; returns that, and the claim."""
        found = self.cluster.wait("pvc", claim, lambda item: SELECTED in item["metadata"].get("annotations", {}))
        return found["metadata"]["annotations"][SELECTED], found

    def test_a_volume_that_there_is_decides_where_the_pod_runs(self):
        self.make_node("one", 4)
        self.make_node("two", 4)
        self.make_volume("disk", "two", "static")
        self.cluster.wait("pv", "disk", lambda volume: volume.get("status", {}).get("phase") == "Available")
        self.make_claim("data", "static")
        self.make_claim("more", "static")
        self.make_pod_with("train", "data")
        self.assertEqual(self.bound("train")[0], "two")
        self.assertEqual(self.cluster.get("pvc", "data")["status"]["phase"], "Bound")
        self.assertEqual(self.cluster.get("pv", "disk")["spec"]["claimRef"]["name"], "data")
        self.make_pod_with("late", "more")
        self.refusal("late", "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind")

    def test_a_volume_is_made_where_the_pod_is_to_run(self):
        self.make_node("one", 4)
        self.make_node("two", 2)
        self.make_claim("data", "made")
        self.make_pod_with("train", "data", 4)
        node, claim = self.selected("data")
        self.assertEqual(node, "one")
        self.refusal("train", "Has room on 'one', and waits until its volumes are bound there")
        self.make_gpu_pod("other", 2)
        self.assertEqual(self.bound("other")[0], "two")
        self.assertNotIn("nodeName", self.cluster.get("pod", "train")["spec"])
        self.make_volume("made", node, "made", claim)
        self.assertEqual(self.bound("train"), ("one", "one-0,one-1,one-2,one-3"))

    def test_what_could_not_be_made_is_tried_elsewhere(self):
        self.make_node("one", 4)
        self.make_claim("data", "made")
        self.make_pod_with("train", "data", 4)
        self.assertEqual(self.selected("data")[0], "one")
        # It goes on there when the scheduler begins anew.
        type(self).scheduler.stop()
        type(self).scheduler = self.start_scheduler()
        self.addClassCleanup(self.scheduler.stop)
        self.refusal("train", "waits until its volumes are bound")
        self.make_node("two", 4)
        self.cluster.kubectl("cordon", "one")
        self.cluster.kubectl("taint", "node", "one", "full=true:NoSchedule")
        self.cluster.kubectl("annotate", "pvc", "data", f"{SELECTED}-")
        drover.wait_for(lambda: any("no volume could be made" in event.get("message", event.get("note", ""))
                                    for event in self.cluster.events("train")), "the Event")
        claim = self.cluster.wait("pvc", "data", lambda item: SELECTED in item["metadata"].get("annotations", {}))
        self.assertIn(claim["metadata"]["annotations"][SELECTED], ("one", "two"))


if __name__ == "__main__":
    unittest.main()
