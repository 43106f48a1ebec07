"""What the chart brings for `drover kube scheduler`, on an API server without nodes: Queues and Quotas, policies, rights."""

import json
import re
import unittest

import drover
import kube
from kube.machine import wait_for
from kube_install import CHART, Helm

NAMESPACE, SCHEDULER = "gpus", "drover-scheduler"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{SCHEDULER}"
# Its DaemonSet is of no interest here, and so are labels of nodes, which a Job would take away at the end.
VALUES = {"report": {"labels": False, "conditions": False}, "scheduler": {"enabled": True, "queueUse": True}}
CHOICE = "drover.dev/devices"
FORBIDDEN = "only Drover itself writes annotations that begin with drover.dev/"
PROTECTION = "resource.kubernetes.io/delete-protection"
KINDS = ("customresourcedefinition", "clusterrole", "clusterrolebinding", "flowschema", "mutatingadmissionpolicy",
         "mutatingadmissionpolicybinding", "validatingadmissionpolicy", "validatingadmissionpolicybinding", "deviceclass")


def gpu_pod(name, limits=None, **more):
    made = kube.pod(name, "sleep", 1, resources={"limits": limits or {}})
    made["spec"].update(more)
    return made


def with_annotations(item, **annotations):
    item["metadata"]["annotations"] = annotations
    return item


class PoliciesTest(kube.ClusterTest):
    settings = kube.Settings(nodes=())

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.helm = Helm(cls.cluster)
        cls.addClassCleanup(cls.helm.close)
        cls.helm.call("install", "drover", CHART, "--namespace", NAMESPACE, "--create-namespace", values=VALUES)
        cls.addClassCleanup(cls.uninstall)
        cls.cluster.kubectl("wait", "--for=condition=Established", "crd/queues.drover.dev", "crd/quotas.drover.dev")
        cls.cluster.apply([
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}},
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "tenants"},
             "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
             "subjects": [{"kind": "User", "name": "ann"}, {"kind": "User", "name": "bob"}]},
            # What no tenant should have: even so nothing is gained.
            *cls.role("binds", "bob", [{"apiGroups": [""], "resources": ["pods/binding", "bindings", "pods/status", "pods/resize"],
                                        "verbs": ["create", "update", "patch"]}]),
            *cls.role("uses", "bob", [{"apiGroups": ["drover.dev"], "resources": ["queues"], "resourceNames": ["research.vision"],
                                       "verbs": ["use"]}])])
        wait_for(lambda: FORBIDDEN in cls.tried(with_annotations(gpu_pod("x"), **{CHOICE: "x"})), "the policies to be known")

    @staticmethod
    def role(name, user, rules):
        group = "rbac.authorization.k8s.io"
        return [{"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
                {"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
                 "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name}, "subjects": [{"kind": "User", "name": user}]}]

    @classmethod
    def uninstall(cls):
        """Its jobs have no node here that could run them."""
        cls.helm.call("uninstall", "drover", "--namespace", NAMESPACE, "--ignore-not-found", "--no-hooks")

    @classmethod
    def tried(cls, item, *options, user="ann"):
        """Why an object cannot be made; "" when it could."""
        done = cls.cluster.kubectl("create", "--filename=-", "--dry-run=server", f"--as={user}", *options, input=json.dumps(item), check=False)
        return done.stderr if done.returncode else ""

    def admitted(self, item, user="ann"):
        """The object as it would be made."""
        return json.loads(self.cluster.kubectl("create", "--filename=-", "--dry-run=server", f"--as={user}", "--output=json",
                                               input=json.dumps(item)).stdout)


class ObjectsTest(PoliciesTest):
    def make(self, kind, name, **spec):
        item = {"apiVersion": "drover.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        self.addCleanup(self.cluster.delete, f"{kind.lower()}.drover.dev", name)
        done = self.cluster.kubectl("apply", "--filename=-", input=json.dumps(item), check=False)
        return done.stderr

    def test_good_ones_are_taken(self):
        told = self.make("Queue", "research.vision", limit={"gpus": 8, "cpus": "1500m", "memory": "1Ti"}, guarantee={"gpus": "2.5"},
                         namespaces=["a", "b"])
        self.assertEqual(told, "")
        self.assertEqual(self.make("Quota", "team", limit={"gpus": 4}, maxPriority=1000), "")
        self.assertEqual(self.cluster.get("queues.drover.dev", "research.vision")["spec"]["weight"], 1)

    def test_bad_ones_are_refused_with_a_sentence(self):
        for kind, name, spec, sentence in (
                ("Queue", "q", {"limit": {"gpus": "many"}}, 'gpus is a quantity, such as 8 or "0.5"'),
                ("Queue", "q", {"limit": {"gpus": -1}}, 'gpus is a quantity, such as 8 or "0.5"'),
                ("Queue", "q", {"limit": {"memory": "1TB"}}, "memory is a quantity, such as 512Gi"),
                ("Queue", "q", {"limit": {"gpus": 1}, "guarantee": {"gpus": "1500m"}}, "gpus that are guaranteed are more than the limit"),
                ("Queue", "q", {"limit": {"memory": "1Gi"}, "guarantee": {"memory": "1Ti"}}, "memory that are guaranteed"),
                ("Queue", "q", {"weight": 0}, "should be greater than or equal to 1"),
                ("Queue", "q", {"namespaces": ["A"]}, "spec.namespaces[0]"),
                ("Queue", "q", {"namespaces": ["a", "a"]}, "Duplicate value"),
                ("Queue", "q", {"limt": {}}, 'unknown field "spec.limt"'),
                ("Queue", "a.b.c.d.e.f.g.h.i", {}, "at most 63 letters and 8 levels"),
                ("Queue", "a" * 64, {}, "at most 63 letters and 8 levels"),
                ("Quota", "a.b", {}, "a Quota has the name of the namespace that it is for"),
                ("Quota", "a", {"limit": {"cpus": "x"}}, "cpus is a quantity")):
            with self.subTest(kind=kind, name=name, spec=spec):
                self.assertIn(sentence, self.make(kind, name, **spec))

    def test_the_examples_of_the_page_are_taken(self):
        examples = re.findall(r"^```yaml\n(.*?)^```", (drover.ROOT / "docs/kubernetes-sharing.md").read_text(), re.MULTILINE | re.DOTALL)
        self.assertEqual(len(examples), 3)
        for example in examples:
            self.assertNotIn("Warning", self.cluster.kubectl("apply", "--dry-run=server", "--filename=-", input=example).stderr)

    def test_kubectl_shows_what_they_hold(self):
        self.make("Queue", "shown", limit={"gpus": 8}, guarantee={"gpus": "2.5"})
        status = {"held": {"gpus": "3"}, "borrowed": {"gpus": "0.5"}, "waiting": 7,
                  "conditions": [{"type": "Accepted", "status": "True", "reason": "Valid", "message": "",
                                  "lastTransitionTime": "2026-01-01T00:00:00.000Z"}]}
        self.cluster.kubectl("patch", "dqueue", "shown", "--subresource=status", "--type=merge", "--patch",
                             json.dumps({"status": status}))
        heading, line = self.cluster.kubectl("get", "dqueue").stdout.splitlines()
        self.assertEqual(heading.split(), ["NAME", "GUARANTEE", "LIMIT", "HELD", "BORROWED", "WAITING", "ACCEPTED", "AGE"])
        self.assertEqual(line.split()[:-1], ["shown", "2.5", "8", "3", "0.5", "7", "True"])


class PodsTest(PoliciesTest):
    def test_pods_that_ask_for_gpus_are_the_scheduler_s(self):
        claims = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]}
        init = gpu_pod("i", initContainers=[{"name": "i", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 1}}}])
        for pod, scheduler in ((gpu_pod("p", {"nvidia.com/gpu": 1}), "drover"), (init, "drover"), (gpu_pod("p", **claims), "drover"),
                               (gpu_pod("p", {"deviceclass.resource.kubernetes.io/gpu.nvidia.com": 1}), "drover"),
                               (gpu_pod("p", {"cpu": 1}), "default-scheduler"), (gpu_pod("p"), "default-scheduler"),
                               (gpu_pod("p", {"nvidia.com/gpu": 1}, schedulerName="other"), "other"),
                               (gpu_pod("p", {"nvidia.com/gpu": 1}, nodeName="bare"), "default-scheduler")):
            with self.subTest(spec=pod["spec"]):
                self.assertEqual(self.admitted(pod)["spec"]["schedulerName"], scheduler)

    def claim(self, name, request, **metadata):
        return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name, **metadata},
                "spec": {"devices": {"requests": [{"name": "r", **request}]}}}

    def test_claims_are_protected_from_the_start_and_go_all_the_same(self):
        ours = {"exactly": {"deviceClassName": "gpu.nvidia.com"}}
        either = {"firstAvailable": [{"name": "a", "deviceClassName": "other"}, {"name": "b", "deviceClassName": "mig.nvidia.com"}]}
        other = {"exactly": {"deviceClassName": "other"}}
        for request, before, after in ((ours, None, [PROTECTION]), (ours, ["a.b/c"], ["a.b/c", PROTECTION]),
                                       (ours, [PROTECTION], [PROTECTION]), (either, None, [PROTECTION]), (other, None, None)):
            with self.subTest(request=request, before=before):
                made = self.admitted(self.claim("c", request, **({"finalizers": before} if before else {})), user="admin-of-tests")
                self.assertEqual(made["metadata"].get("finalizers"), after)
        self.cluster.apply(self.claim("real", ours))
        self.assertEqual(self.cluster.get("resourceclaim", "real")["metadata"]["finalizers"], [PROTECTION])
        self.cluster.delete("resourceclaim", "real")
        self.assertIsNone(self.cluster.get("resourceclaim", "real"))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.apply(cls.role("claims", "admin-of-tests", [{"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"],
                                                                 "verbs": ["create"]}]))


class QueuesTest(PoliciesTest):
    def test_who_makes_pods_may_use_the_queue_that_they_name(self):
        def labelled(queue, key="drover/queue", place="labels"):
            pod = gpu_pod("p")
            pod["metadata"][place] = {key: queue}
            return pod

        def job(queue):
            pod = labelled(queue)
            del pod["apiVersion"], pod["kind"], pod["metadata"]["name"]
            return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": pod}}

        def cron(queue):
            return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"},
                    "spec": {"schedule": "@daily", "jobTemplate": {"spec": job(queue)["spec"]}}}

        for item in (labelled("research.vision"), labelled("research/vision", place="annotations"), job("research.vision"),
                     cron("research.vision"), labelled("research.vision", "kai.scheduler/queue")):
            with self.subTest(item=item):
                self.assertIn("ann may not use the queue", self.tried(item))
                self.assertEqual(self.tried(item, user="bob"), "")
        for item in (labelled("research"), labelled("other"), job("other")):
            self.assertIn("bob may not use the queue", self.tried(item, user="bob"))
        self.assertEqual(self.tried(gpu_pod("p")), "")

    def test_nobody_moves_a_pod_into_another_queue(self):
        self.make_pod(gpu_pod("moves"))
        self.assertIn("ann may not use", self.changed("ann", "label", "pod", "moves", "drover/queue=research.vision"))
        self.assertEqual(self.changed("bob", "label", "pod", "moves", "drover/queue=research.vision"), "")
        self.assertEqual(self.changed("ann", "patch", "pod", "moves", "--patch", '{"spec": {"activeDeadlineSeconds": 9}}'), "")

    def changed(self, user, *words):
        done = self.cluster.kubectl(*words, f"--as={user}", check=False)
        return done.stderr if done.returncode else ""

    def test_what_controllers_make_of_it_is_admitted(self):
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "queued"}, "spec": {"template": {
            "metadata": {"labels": {"drover/queue": "research.vision"}}, "spec": {**gpu_pod("p")["spec"]}}}}
        self.addCleanup(self.cluster.delete, "job", "queued")
        self.cluster.kubectl("create", "--filename=-", "--as=bob", input=json.dumps(job))
        wait_for(lambda: self.cluster.list("pods", labelSelector="job-name=queued"), lambda: str(self.cluster.events("queued")))


class AttackTest(PoliciesTest):
    """A tenant says himself which GPUs his pod was given."""

    def refused(self, *words, user="bob", **more):
        done = self.cluster.kubectl(*words, f"--as={user}", check=False, **more)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn(FORBIDDEN, done.stderr)

    def test_in_a_new_pod(self):
        self.refused("create", "--filename=-", input=json.dumps(with_annotations(gpu_pod("forged"), **{CHOICE: "GPU-1"})))

    def test_what_he_may_ask_for_says_nothing_of_what_he_got(self):
        asked = {"drover.dev/gpu-request": '{"gpu_model": "A100"}', "drover.dev/name": "train"}
        self.make_pod(with_annotations(gpu_pod("asks"), **asked))
        self.assertEqual(self.tried(with_annotations(gpu_pod("more"), **asked), user="bob"), "")
        self.refused("create", "--filename=-", input=json.dumps(with_annotations(gpu_pod("forged"), **asked, **{CHOICE: "GPU-1"})))
        for key in asked:
            self.refused("annotate", "--overwrite", "pod", "asks", f"{key}=other")
            self.refused("create", "--raw=/api/v1/namespaces/default/pods/asks/binding", "--filename=-", input=self.binding("asks", **{key: "other"}))

    def test_in_a_pod_that_a_controller_makes_for_him(self):
        template = {"metadata": {"annotations": {CHOICE: "GPU-1"}}, "spec": gpu_pod("p")["spec"]}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "forging"}, "spec": {"template": template}}
        self.addCleanup(self.cluster.delete, "job", "forging")
        self.cluster.kubectl("create", "--filename=-", "--as=bob", input=json.dumps(job))
        wait_for(lambda: any(FORBIDDEN in event["message"] for event in self.cluster.events("forging")), "the controller to be refused")
        self.assertEqual(self.cluster.list("pods", labelSelector="job-name=forging"), [])

    def test_by_an_update_and_by_a_status(self):
        self.make_pod(gpu_pod("updated"))
        patch = json.dumps({"metadata": {"annotations": {CHOICE: "GPU-1"}}})
        self.refused("annotate", "pod", "updated", f"{CHOICE}=GPU-1")
        for part in ("status", "resize"):
            done = self.cluster.kubectl("patch", "pod", "updated", f"--subresource={part}", "--patch", patch, "--as=bob", check=False)
            self.assertNotIn(CHOICE, self.cluster.get("pod", "updated")["metadata"].get("annotations", {}), part)
            if part == "status":
                self.assertIn(FORBIDDEN, done.stderr)

    def binding(self, pod, **annotations):
        return json.dumps({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod, "annotations": annotations},
                           "target": {"kind": "Node", "name": "bare"}})

    def make_bound(self, name):
        """A pod that may get a node, which has no kubelet that would let it go."""
        self.cluster.apply(gpu_pod(name, schedulerName="drover"))
        self.addCleanup(self.cluster.delete, "pod", name, options=("--force", "--grace-period=0"))

    def test_in_a_binding(self):
        self.make_bound("bound")
        for path in ("pods/bound/binding", "bindings"):
            self.refused("create", "--raw", f"/api/v1/namespaces/default/{path}", "--filename=-", input=self.binding("bound", **{CHOICE: "GPU-1"}))
        self.assertNotIn("nodeName", self.cluster.get("pod", "bound")["spec"])

    def test_only_the_scheduler_s_own_word_counts_and_stays(self):
        self.make_bound("chosen")
        self.cluster.kubectl("create", "--raw", "/api/v1/namespaces/default/pods/chosen/binding", "--filename=-", f"--as={ACCOUNT}",
                             input=self.binding("chosen", **{CHOICE: "GPU-1"}))
        pod = self.cluster.get("pod", "chosen")
        self.assertEqual((pod["spec"]["nodeName"], pod["metadata"]["annotations"][CHOICE]), ("bare", "GPU-1"))
        for word in (f"{CHOICE}-", f"{CHOICE}=GPU-2"):
            self.refused("annotate", "pod", "chosen", word, "--overwrite")
        self.cluster.kubectl("annotate", "pod", "chosen", "their.own/note=1", "--as=bob")

    def test_others_of_the_same_name_are_others(self):
        alike = f"system:serviceaccount:default:{SCHEDULER}"
        self.cluster.apply(self.role("alike", alike, [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}]))
        self.refused("create", "--filename=-", input=json.dumps(with_annotations(gpu_pod("other"), **{CHOICE: "GPU-1"})), user=alike)


class GateTest(PoliciesTest):
    """A tenant opens the gate behind which his pod waits for its turn."""

    GATES = {"schedulingGates": [{"name": "drover.dev/queue"}, {"name": "example.com/own"}]}

    def opened(self, user, name, gate, **more):
        """Why a gate cannot be taken off; "" when it could."""
        patch = {"spec": {"schedulingGates": [{"name": gate, "$patch": "delete"}], **more}}
        done = self.cluster.kubectl("patch", "pod", name, "--type=strategic", "--patch", json.dumps(patch), f"--as={user}", check=False)
        return done.stderr if done.returncode else ""

    def setUp(self):
        self.make_pod(gpu_pod("gated", {"nvidia.com/gpu": 1}, **self.GATES))

    def test_it_stays_with_the_scheduler_that_it_is_for(self):
        self.assertEqual(self.cluster.get("pod", "gated")["spec"]["schedulerName"], "default-scheduler")

    def test_nobody_jumps_the_queue(self):
        refusal = "only Drover opens the scheduling gate drover.dev/queue"
        for user in ("ann", "bob"):
            self.assertIn(refusal, self.opened(user, "gated", "drover.dev/queue"))
        self.assertEqual(self.opened("ann", "gated", "example.com/own"), "")
        self.assertIn(refusal, self.opened("ann", "gated", "drover.dev/queue"))
        self.cluster.apply(self.role("bypasses", "ann", [{"apiGroups": ["drover.dev"], "resources": ["queues"], "verbs": ["bypass"]}]))
        self.addCleanup(self.cluster.delete, "clusterrolebinding", "bypasses")
        wait_for(lambda: self.opened("ann", "gated", "drover.dev/queue") == "", "the right to be known")

    def test_a_pod_is_not_told_to_have_been_released(self):
        for key in ("drover.dev/released", "drover.dev/expected-node"):
            self.assertIn(FORBIDDEN, self.tried(with_annotations(gpu_pod("forged"), **{key: "2026-01-01T00:00:00Z"})))

    def test_the_scheduler_opens_it_and_changes_nothing_else(self):
        spec = self.cluster.get("pod", "gated")["spec"]
        for more in ({"containers": [{"name": spec["containers"][0]["name"], "image": "other"}]},
                     {"tolerations": [*spec.get("tolerations", []), {"operator": "Exists"}]},
                     {"nodeSelector": {"a": "b"}}, {"activeDeadlineSeconds": 5}):
            self.assertIn("the scheduler changes nothing of pods but", self.opened(ACCOUNT, "gated", "drover.dev/queue", **more))
        self.assertEqual(self.opened(ACCOUNT, "gated", "drover.dev/queue"), "")


class RightsTest(PoliciesTest):
    def may(self, verb, what, namespace=""):
        group, resource, part = (what.split("/") + [""])[:3]
        asked = {"user": ACCOUNT, "groups": ["system:serviceaccounts"], "resourceAttributes": {
            "verb": verb, "group": group, "resource": resource, "subresource": part, "namespace": namespace}}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": asked}
        return json.loads(self.cluster.kubectl("create", "--filename=-", "--output=json", input=json.dumps(review)).stdout)["status"]["allowed"]

    def test_the_scheduler_may_what_it_does_and_no_more(self):
        for verb, what in (("create", "/pods/binding"), ("patch", "/pods/status"), ("delete", "/pods"), ("watch", "/nodes"),
                           ("update", "resource.k8s.io/resourceclaims/binding"), ("patch", "/pods"), ("patch", "scheduling.k8s.io/podgroups/status"),
                           ("patch", "drover.dev/queues/status"), ("watch", "batch/jobs"), ("create", "/events"),
                           ("patch", "/nodes")):  # and of them only the taint, below
            self.assertTrue(self.may(verb, what), (verb, what))
        self.assertTrue(self.may("update", "coordination.k8s.io/leases", NAMESPACE))
        for verb, what in (("get", "/secrets"), ("create", "/pods"), ("update", "/pods"), ("update", "/nodes"), ("patch", "/nodes/status"), ("create", "/pods/exec"),
                           ("update", "coordination.k8s.io/leases"), ("patch", "drover.dev/queues")):
            self.assertFalse(self.may(verb, what), (verb, what))

    def test_the_scheduler_changes_nothing_of_nodes_but_its_taint(self):
        def refusal(patch):
            done = self.cluster.kubectl("patch", "node", "bare", "--type=merge", f"--patch={json.dumps(patch)}", "--dry-run=server", f"--as={ACCOUNT}",
                                        check=False)
            return done.stderr if done.returncode else ""

        taints = self.cluster.get("node", "bare")["spec"].get("taints", [])
        held = {"key": "drover.dev/held", "value": "drover", "effect": "NoSchedule"}
        for wrong in ({"metadata": {"labels": {"a": "b"}}}, {"metadata": {"annotations": {"a": "b"}}}, {"spec": {"unschedulable": True}},
                      {"metadata": {"finalizers": ["example.com/mine"]}},
                      {"spec": {"taints": [*taints, {**held, "effect": "NoExecute"}]}}, {"spec": {"taints": [*taints, {**held, "key": "another"}]}}):
            self.assertIn("the scheduler changes nothing of nodes but the taint drover.dev/held", refusal(wrong), wrong)
        self.assertEqual(refusal({"spec": {"taints": [*taints, held]}}), "")

    def test_people_may_be_let_see_what_the_scheduler_sees(self):
        self.cluster.kubectl("create", "serviceaccount", "alice")
        self.addCleanup(self.cluster.delete, "serviceaccount", "alice")
        token = self.cluster.kubectl("create", "token", "alice").stdout.strip()
        alice = self.cluster.write_kubeconfig("alice", "default", user={"token": token})

        def queues():
            return drover.run(self.cluster.reaching(drover.BINARY, "queue", "--kube", "--kubeconfig", alice))

        refused = queues()
        self.assertEqual(refused.status, 77, refused)
        self.assertIn("queues.drover.dev", refused.err)
        self.cluster.kubectl("create", "clusterrolebinding", "alice-sees", "--clusterrole=drover-view", "--serviceaccount=default:alice")
        self.addCleanup(self.cluster.delete, "clusterrolebinding", "alice-sees")
        wait_for(lambda: queues().status == 0, queues)
        for verb, what in (("get", "secrets"), ("create", "pods"), ("watch", "pods"), ("patch", "pods")):
            done = self.cluster.kubectl("auth", "can-i", verb, what, "--as=system:serviceaccount:default:alice", check=False)
            self.assertEqual(done.stdout.strip(), "no", (verb, what))

    def test_it_has_the_part_of_the_api_server_that_kube_scheduler_has(self):
        for name, level in ((SCHEDULER, "workload-high"), (f"{SCHEDULER}-lease", "leader-election")):
            schema = self.cluster.get("flowschema", name)
            self.assertEqual(schema["spec"]["priorityLevelConfiguration"]["name"], level)
            wait_for(lambda name=name: kube.condition_of(self.cluster.get("flowschema", name), "Dangling") == "False", f"{level} to be there")


class UninstallTest(PoliciesTest):
    def test_nothing_stays(self):
        self.cluster.apply({"apiVersion": "drover.dev/v1alpha1", "kind": "Queue", "metadata": {"name": "left"}, "spec": {}})
        self.uninstall()
        wait_for(lambda: not self.left(), self.left)
        forged = with_annotations(gpu_pod("free"), **{CHOICE: "x"})
        wait_for(lambda: not self.tried(forged), lambda: self.tried(forged))  # the API server forgets policies in its own time

    def left(self):
        found = [item["metadata"]["name"] for kind in KINDS for item in self.cluster.list(kind)]
        return [name for name in found if "drover" in name] + [item["metadata"]["name"] for kind in ("deployment", "pdb", "role", "rolebinding", "serviceaccount")
                                                               for item in self.cluster.list(kind, NAMESPACE) if "drover" in item["metadata"]["name"]]


if __name__ == "__main__":
    unittest.main()
