"""Drover installed on a cluster by its chart: every node's kubelet is offered the (simulated) GPUs by a pod of the DaemonSet."""

import json
import os
import pathlib
import re
import tempfile
import unittest

import drover
import kube
from kube.components import KUBERNETES_MINOR
from kube.machine import wait_for
from kube_install import CHART, IMAGE, PACKAGING, PATIENCE, VALUES, Helm, make_image
from kube_node import GPU, SEES, gpu_pod, gpus_in
from test_kube_chart import EVERYTHING
from test_kube_claims import DRIVER, claim, claiming, request

NAMESPACE, ACCOUNT = "gpus", "drover"
STATE = "/var/lib/kubelet/plugins/drover"
PROFILE = "dgx-a100"
SHARES_SINCE = (1, 36)
SIMULATOR = drover.BUILD / "lib/drover/sim/libnvidia-ml.so.1"
AUDIT = pathlib.Path(tempfile.gettempdir()) / f"drover-audit-{os.getpid()}"
AUDITED = {"kube-apiserver": (f"--audit-policy-file={AUDIT}/policy.json", f"--audit-log-path={AUDIT}/log")}


def setUpModule():
    AUDIT.mkdir()
    user = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
    (AUDIT / "policy.json").write_text(json.dumps({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "users": [user]}, {"level": "None"}]}))


def tearDownModule():
    for file in AUDIT.iterdir():
        file.unlink()
    AUDIT.rmdir()


class InstalledTest(kube.ClusterTest):
    settings = kube.Settings(services=True, flags=AUDITED)
    values = {**VALUES, "simulate": PROFILE}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.helm = Helm(cls.cluster)
        cls.addClassCleanup(cls.helm.close)
        with tempfile.TemporaryDirectory() as folder:
            archive = make_image(pathlib.Path(folder))
            for node in cls.cluster.nodes:
                node.import_images([archive])
        cls.bring_devices()
        cls.helm.call("install", "drover", CHART, "--namespace", NAMESPACE, "--create-namespace", "--wait", values=cls.values)
        cls.addClassCleanup(cls.uninstall)
        cls.bring_driver()
        for node in cls.cluster.nodes:
            wait_for(lambda node=node: cls.allocatable(node) == 8, lambda: f"8 GPUs on a node; {cls.logs()}")
        wait_for(lambda: len(cls.slices()) == len(cls.cluster.nodes), lambda: f"a slice of every node; {cls.logs()}")

    @classmethod
    def bring_devices(cls):
        """To the nodes, before Drover is there."""

    @classmethod
    def bring_driver(cls):
        """To the nodes, when Drover is there."""

    @classmethod
    def uninstall(cls):
        cls.helm.call("uninstall", "drover", "--namespace", NAMESPACE, "--wait", "--ignore-not-found")
        wait_for(lambda: not cls.slices(), "slices to be gone", timeout=PATIENCE)

    @classmethod
    def allocatable(cls, node):
        return int(cls.cluster.get("node", node.name)["status"]["allocatable"].get(GPU, 0))

    @classmethod
    def slices(cls):
        return [found for found in cls.cluster.list("resourceslices") if found["spec"]["driver"] == DRIVER]

    @classmethod
    def pods(cls):
        """Node's name -> its pod of the DaemonSet, the youngest."""
        placed = [pod for pod in cls.cluster.list("pods", NAMESPACE) if "nodeName" in pod["spec"]]
        placed.sort(key=lambda pod: pod["metadata"]["creationTimestamp"])
        return {pod["spec"]["nodeName"]: pod["metadata"]["name"] for pod in placed}

    @classmethod
    def pod_names(cls):
        return {pod["metadata"]["name"] for pod in cls.cluster.list("pods", NAMESPACE)}

    @classmethod
    def wait_until_registered(cls):
        wait_for(lambda: set(cls.pods()) == {node.name for node in cls.cluster.nodes} and
                 all("registered" in cls.log_of(pod) for pod in cls.pods().values()), cls.logs)

    def run_pod(self, pod):
        try:
            return super().run_pod(pod)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None

    @classmethod
    def log_of(cls, pod):
        return cls.cluster.kubectl("logs", pod, "--namespace", NAMESPACE, check=False).stdout

    @classmethod
    def logs(cls):
        return "\n".join(cls.log_of(pod) for pod in cls.pods().values())


class SimulatedTest(InstalledTest):
    values = {**InstalledTest.values, "claimSharing": "memory"}

    @classmethod
    def setUpClass(cls):
        # An earlier test's pods have asked on while their account was being removed.
        cls.audited_before = (AUDIT / "log").stat().st_size if (AUDIT / "log").exists() else 0
        super().setUpClass()

    def test_limits_are_served_on_every_node_and_the_driver_is_found(self):
        for node in self.cluster.nodes:
            name = f"limit-{node.name}"
            library = "/lib64/libnvidia-ml.so.1"  # a link, which the hook makes on the node
            self.run_pod(gpu_pod(name, {GPU: 2}, "exists", library, ",", *SEES, node=node.name))
            lines = self.cluster.logs(name, lines=2).splitlines()
            self.assertEqual((lines[0], len(gpus_in(lines[1]))), ("ok", 2), lines)
            specification = json.loads(node.path("/var/run/cdi/k8s.device-plugin.nvidia.com-gpu.json").read_text())
            programs = {hook["path"] for hook in specification["containerEdits"]["hooks"]}
            self.assertEqual(programs, {f"{STATE}/drover-cdi-hook"})

    def test_claims_are_served(self):
        self.addCleanup(self.cluster.delete, "resourceclaim", "two")
        self.cluster.apply(claim("two", [request(2)]))
        self.run_pod(claiming(kube.pod("claiming", *SEES), claim_name="two"))
        self.assertEqual(len(gpus_in(self.cluster.logs("claiming"))), 2)

    def run_sharing(self, name, node):
        """A pod with a part of a GPU of that node; returns what its claim's status says of the part, when it does."""
        self.addCleanup(self.cluster.delete, "resourceclaim", name)
        self.cluster.apply(claim(name, [request(capacity={"requests": {"memory": "10Gi"}})]))
        pod = claiming(kube.pod(name, *SEES), claim_name=name)
        pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}  # whoever names its node has no scheduler that gives it the claim
        self.run_pod(pod)
        return wait_for(lambda: self.cluster.get("resourceclaim", name)["status"].get("devices"), lambda: f"a status; {self.logs()}")

    def test_no_more_is_allowed_than_is_used(self):
        self.test_claims_are_served()
        if KUBERNETES_MINOR >= SHARES_SINCE:
            self.run_sharing("sharing", self.cluster.nodes[0].name)
        self.run_pod(gpu_pod("limited", {GPU: 1}))  # is told which it has
        leftover = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", **self.slices()[0], "metadata": {"name": "leftover"}}
        leftover["spec"]["pool"]["generation"] = 0
        self.cluster.apply(leftover)  # of an earlier driver: the next one takes it away
        for node in self.cluster.nodes:
            node.path(f"/var/lib/kubelet/plugins/{DRIVER}/checkpoint.json").write_text("damaged")  # so that it looks who has what
        self.cluster.delete("pod", *self.pods().values(), namespace=NAMESPACE)
        self.wait_until_registered()
        node = self.cluster.nodes[0]
        for count in (1, 2):
            for faults, reason in (({"3": {"lost": True}}, "GpuUnhealthy"), ({}, "GpuHealthy")):
                drover.replace(node.path(f"{STATE}/sim/faults.yaml"), json.dumps(faults))
                wait_for(lambda count=count, reason=reason: any(event["reason"] == reason and event.get("count", 1) >= count
                                                                for event in self.cluster.events(node.name)),
                         lambda count=count, reason=reason: f"{reason} to be told {count} times: {self.cluster.events(node.name)}; "
                                                            f"{self.logs()}", PATIENCE)
        rules = self.cluster.get("clusterrole", "drover")["rules"]
        granted = {(kind, verb) for rule in rules for kind in rule["resources"] for verb in rule["verbs"]}
        granted.remove(("resourceclaims/driver", "associated-node:patch"))  # what is asked for with the status, and stands in no log
        if KUBERNETES_MINOR < SHARES_SINCE:
            granted.remove(("resourceclaims/status", "patch"))
        wait_for(lambda: self.used() == granted, lambda: f"{granted} to be used: {self.used()}; {self.logs()}")

    def used(self):
        """What the program has asked the API server for, as its audit log has it."""
        asked = set()
        for line in (AUDIT / "log").read_bytes()[self.audited_before:].decode().splitlines():
            event = json.loads(line)
            if event["userAgent"].startswith("kubectl"):
                continue
            self.assertNotEqual(event["responseStatus"]["code"], 403, event)
            if "objectRef" in event:
                what = [event["objectRef"].get(part) for part in ("resource", "subresource")]
                asked.add(("/".join(filter(None, what)), event["verb"]))
        return asked

    def account_of_pod_on(self, node):
        """A kubeconfig for what a pod of that node shows the API server."""
        token = self.cluster.kubectl("create", "token", ACCOUNT, "--namespace", NAMESPACE, "--bound-object-kind=Pod",
                                     f"--bound-object-name={self.pods()[node]}").stdout.strip()
        return self.cluster.write_kubeconfig("bound", NAMESPACE, user={"token": token})

    def tried(self, account, *words):
        done = self.cluster.kubectl(*words, "--dry-run=server", f"--kubeconfig={account}", check=False)
        return done.stderr if done.returncode != 0 else ""

    def applied(self, account, thing, *options, manager="drover"):
        """kubectl's other commands look at it first, which the account may not."""
        done = self.cluster.kubectl("apply", "--server-side", f"--field-manager={manager}", "--force-conflicts", "--validate=false", "--filename=-",
                                    "--dry-run=server", f"--kubeconfig={account}", *options, input=json.dumps(thing), check=False)
        return done.stderr if done.returncode != 0 else ""

    def patched(self, account, pod, patch):
        thing = {"apiVersion": "v1", "kind": "Pod", **patch}
        thing["metadata"] = {"name": pod, "namespace": self.cluster.namespace, **patch.get("metadata", {})}
        return self.applied(account, thing)

    def test_a_node_s_pod_may_not_write_slices_of_another_node(self):
        first, second = (node.name for node in self.cluster.nodes)
        mine, other = (next(found["metadata"]["name"] for found in self.slices() if found["spec"]["nodeName"] == name)
                       for name in (first, second))
        bound, unbound = self.account_of_pod_on(first), self.cluster.account_kubeconfig(ACCOUNT, NAMESPACE)
        self.assertEqual(self.tried(bound, "delete", "resourceslice", mine), "")
        self.assertIn(f"may not write slices of node {second}", self.tried(bound, "delete", "resourceslice", other))
        self.assertIn("names no node", self.tried(unbound, "delete", "resourceslice", mine))

    @unittest.skipIf(KUBERNETES_MINOR < SHARES_SINCE, "parts of devices are given since 1.36")
    def test_a_node_s_pod_may_tell_of_no_devices_but_its_own_node_s(self):
        first, second = (node.name for node in self.cluster.nodes)
        told = {node: self.run_sharing(f"part-{node}", node) for node in (first, second)}
        self.assertEqual([(entry["pool"], entry["data"]["tier"]) for entry in told[first] + told[second]], [(first, "guarded"), (second, "guarded")])
        bound, unbound = self.account_of_pod_on(first), self.cluster.account_kubeconfig(ACCOUNT, NAMESPACE)

        def tried(account, node, manager="somebody", **status):
            thing = {"apiVersion": kube.RESOURCE_API, "kind": "ResourceClaim", "status": status,
                     "metadata": {"name": f"part-{node}", "namespace": self.cluster.namespace}}
            return self.applied(account, thing, "--subresource=status", manager=manager)

        lie = {node: [{**told[node][0], "data": {"tier": "hard"}}] for node in (first, second)}
        self.assertEqual(tried(bound, first, devices=lie[first]), "", "of its own node it says what it likes")
        another = [{"resource": "pods", "name": "another", "uid": "another"}]
        attacks = ((second, {"devices": lie[second]}), (second, {"manager": f"drover/{DRIVER}/{second}"}), (first, {"reservedFor": another}),
                   (first, {"devices": lie[first], "reservedFor": another}), (second, {"reservedFor": another}))
        for node, attack in attacks:
            self.assertIn("forbidden", tried(bound, node, **attack).lower(), attack)
        self.assertIn("forbidden", tried(unbound, first, devices=lie[first]).lower())
        # Not even with rights that it should not have, and that Kubernetes before 1.36 does not ask for.
        self.allow("everything", [{"apiGroups": ["resource.k8s.io"], "verbs": ["*"], "resources": [
            f"resourceclaims{part}" for part in ("", "/status", "/binding", "/driver")]}])
        refusal = "tells of the devices of its own node, and of nothing else"
        wait_for(lambda: refusal in tried(bound, second, devices=lie[second]), lambda: f"the rights to be known: {tried(bound, second, devices=lie[second])}")
        for node, attack in attacks:
            self.assertIn(refusal, tried(bound, node, **attack), attack)
        self.assertIn("names no node", tried(unbound, first, devices=lie[first]))
        where = ("resourceclaim", f"part-{first}", f"--namespace={self.cluster.namespace}")
        for words in (("delete", *where), ("label", *where, "a=b")):
            self.assertIn("writes the status of claims, and nothing else", self.tried(bound, *words))
        self.assertEqual(tried(bound, first, devices=lie[first]), "")

    def allow(self, name, rules):
        """The account has these rights too, for one test."""
        group = "rbac.authorization.k8s.io"
        self.cluster.apply([
            {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
            {"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
             "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
             "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}]}])
        for kind in ("clusterrolebinding", "clusterrole"):
            self.addCleanup(self.cluster.delete, kind, name)

    def test_a_node_s_pod_may_write_nothing_but_the_gpus_of_its_own_node_s_pods(self):
        first, second = (node.name for node in self.cluster.nodes)
        bound = self.account_of_pod_on(first)
        for node in (first, second):
            self.run_pod(kube.pod(f"pod-{node}", "sleep", 10000, node=node))
        chosen = {"metadata": {"annotations": {"drover.dev/gpus": "GPU-1"}}}
        self.assertEqual(self.patched(bound, f"pod-{first}", chosen), "")
        self.assertIn("may not write pods of another", self.patched(bound, f"pod-{second}", chosen))
        container = self.cluster.get("pod", f"pod-{first}")["spec"]["containers"][0]["name"]
        for patch in ({"metadata": {"annotations": {"drover/other": "1"}}}, {"metadata": {"labels": {"drover.dev/gpus": "1"}}},
                      {"spec": {"containers": [{"name": container, "image": "other"}]}}):
            self.assertIn("Drover writes the annotation drover.dev/gpus", self.patched(bound, f"pod-{first}", patch))

    def test_a_node_s_pod_may_write_nothing_but_its_own_labels_of_its_own_node(self):
        first, second = (node.name for node in self.cluster.nodes)
        bound = self.account_of_pod_on(first)
        for label in ("nvidia.com/gpu.test=1", "drover/test=1"):
            self.assertEqual(self.tried(bound, "label", "node", first, label), "")
            self.assertIn(f"may not write node {second}", self.tried(bound, "label", "node", second, label))
        for words in (["label", "node", first, "role=control"], ["label", "node", first, "kubernetes.io/os-"],
                      ["taint", "node", first, "a=b:NoSchedule"]):
            self.assertIn("Drover writes labels", self.tried(bound, *words))
        self.assertEqual(self.tried(bound, "annotate", "node", first, "drover.dev/test=1"), "")
        for note in ("test=1", "csi.volume.kubernetes.io/nodeid=x", "node.alpha.kubernetes.io/ttl-"):
            self.assertIn("Drover writes annotations", self.tried(bound, "annotate", "--overwrite", "node", first, note))

    def test_an_upgrade_takes_over_without_a_gap_and_pods_go_on(self):
        self.run_pod(gpu_pod("before", {GPU: 3}, node="node1"))
        old = self.pod_names()
        self.helm.call("upgrade", "drover", CHART, "--namespace", NAMESPACE, "--wait",
                       values={**self.values, "podAnnotations": {"upgraded": "yes"}})
        wait_for(lambda: not old & self.pod_names(), "the old pods to be gone")
        self.wait_until_registered()
        self.run_pod(gpu_pod("after", {GPU: 5}, node="node1"))
        seen = [gpus_in(self.cluster.logs(name)) for name in ("before", "after")]
        self.assertEqual(len(seen[0] | seen[1]), 8)
        self.assertTrue(kube.pod_is_ready(self.cluster.get("pod", "before")))


class UninstallTest(InstalledTest):
    def said_of(self, node):
        """Names of a Node's labels and conditions that are ours."""
        found = self.cluster.get("node", node.name)
        return ([name for name in found["metadata"]["labels"] if name.startswith(("nvidia.com/", "drover/"))]
                + [condition["type"] for condition in found["status"]["conditions"] if condition["type"].startswith("Drover")])

    def test_pods_go_on_and_nothing_offers_gpus_any_more(self):
        self.run_pod(gpu_pod("survivor", {GPU: 1}, node="node1"))
        wait_for(lambda: all(len(self.said_of(node)) > 20 for node in self.cluster.nodes), "labels and conditions")
        self.uninstall()
        self.assertEqual([self.said_of(node) for node in self.cluster.nodes], [[], []])
        for node in self.cluster.nodes:
            wait_for(lambda node=node: self.allocatable(node) == 0, "the kubelet to notice")
            for folder in ("device-plugins", "plugins_registry", f"plugins/{DRIVER}"):
                sockets = [path.name for path in node.path(f"/var/lib/kubelet/{folder}").iterdir() if path.is_socket()]
                self.assertEqual([name for name in sockets if name != "kubelet.sock"], [], folder)
        self.assertTrue(kube.pod_is_ready(self.cluster.get("pod", "survivor")))
        self.assertEqual(self.cluster.exec("survivor", "/probe", "say", "here").stdout, "here\n")
        self.assertEqual(self.cluster.list("job", NAMESPACE) + self.cluster.list("pod", NAMESPACE), [])
        for kind in ("clusterrole", "clusterrolebinding", "validatingadmissionpolicy", "deviceclass"):
            left = [found["metadata"]["name"] for found in self.cluster.list(kind)]
            self.assertEqual([name for name in left if "drover" in name or name == DRIVER], [], kind)


class DriverContainerTest(InstalledTest):
    """Not simulated, as far as Drover knows: a container brings the driver to its own folder of the node, and late."""

    values = {**VALUES, "driverRoot": "/run/nvidia/driver"}

    @classmethod
    def bring_devices(cls):
        for node in cls.cluster.nodes:
            node.exec("sh", "-ec", """
                mkdir /run/dev
                mount -t tmpfs none /run/dev
                mkdir /run/dev/upper /run/dev/work
                mount -t overlay none -o lowerdir=/dev,upperdir=/run/dev/upper,workdir=/run/dev/work /dev
                for minor in 0 1 2 3 4 5 6 7; do mknod /dev/nvidia$minor c 195 $minor; done
                mknod /dev/nvidiactl c 195 255""")

    @classmethod
    def bring_driver(cls):
        profile = (drover.ROOT / f"sim/profiles/{PROFILE}.yaml").read_text()
        version = re.search(r'^driver: {version: "([0-9.]+)"', profile, re.MULTILINE).group(1)
        library = f"lib64/libnvidia-ml.so.{version}"
        for node in cls.cluster.nodes:
            root = node.path("/run/nvidia/brought")
            for path, content in ((library, SIMULATOR.read_bytes()), ("share/drover-sim/profile.yaml", profile.encode())):
                (root / path).parent.mkdir(parents=True)
                (root / path).write_bytes(content)
            (root / "lib64/libnvidia-ml.so.1").symlink_to(pathlib.Path(library).name)
            node.exec("mount", "--bind", "/run/nvidia/brought", "/run/nvidia/driver")

    def test_limits_get_the_driver_by_its_paths_on_the_node(self):
        self.run_pod(gpu_pod("late", {GPU: 2}, "exists", "/lib64/libnvidia-ml.so.1", ",", "open", "/dev/nvidiactl", ",", *SEES))
        there, opened, seen = self.cluster.logs("late", lines=3).splitlines()
        self.assertEqual((there, opened, len(gpus_in(seen))), ("ok", "ENXIO", 2))

    def test_only_a_privileged_container_may_open_the_nodes(self):
        """Which is why Drover's is."""
        for privileged, answer in ((True, "ENXIO"), (False, "EPERM")):
            pod = kube.pod(f"open-{answer.lower()}", "open", "/dev/nvidia0", ",", "sleep", 10000, securityContext={"privileged": privileged},
                           volumeMounts=[{"name": "dev", "mountPath": "/dev"}], terminationMessagePath="/tmp/ended")
            pod["spec"]["volumes"] = [{"name": "dev", "hostPath": {"path": "/dev"}}]
            self.assertEqual(self.cluster.logs(self.run_pod(pod)), f"{answer}\n")


class ManifestsTest(kube.ClusterTest):
    settings = InstalledTest.settings

    def test_the_api_server_takes_the_plain_manifests(self):
        for name in ("drover.yaml", "device-classes.yaml", "device-class-extended-resource.yaml"):
            with self.subTest(name=name):
                told = self.cluster.kubectl("apply", "--dry-run=server", "--filename", PACKAGING / name)
                self.assertNotIn("Warning", told.stderr)
                self.assertEqual(len(told.stdout.splitlines()), len(re.findall("^kind:", (PACKAGING / name).read_text(), re.MULTILINE)))

    def test_the_api_server_takes_what_values_make_of_them(self):
        helm = Helm()
        self.addCleanup(helm.close)
        for values in (EVERYTHING, {"simulate": "k80"}, {"roles": {"dra": False}}, {"report": {"featureFile": "/etc/features/drover"}}):
            with self.subTest(values=values):
                told = self.cluster.kubectl("apply", "--dry-run=server", "--filename=-", input=helm.template(values=values))
                self.assertNotIn("Warning", told.stderr)


if __name__ == "__main__":
    unittest.main()
