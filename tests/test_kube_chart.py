"""Helm's chart without a cluster: what it renders, and what it refuses."""

import base64
import pathlib
import re
import subprocess
import tempfile
import unittest

import drover
from kube import components
from kube_install import CHART, PACKAGING, Helm

CONFIG = {"version": "v1", "sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 2}]}}}
# Everything that is not as by default.
EVERYTHING = {
    "fullnameOverride": "gpus", "image": {"repository": "registry.test/team/drover", "digest": "sha256:" + "0" * 64, "pullPolicy": "Always"},
    "imagePullSecrets": [{"name": "key"}], "driverName": "gpu.drover.test", "claimSharing": "share", "shareBy": "limits", "shareOffence": "report", "config": CONFIG, "keepSandboxes": "12h",
    "report": {"conditions": False, "featureFile": "/etc/features/drover"}, "health": {"disable": "13,31", "enable": "79"},
    "log": {"level": "warning", "format": "json"}, "metrics": {"enabled": True, "port": 9401}, "healthPort": 9403, "driverRoot": "/run/nvidia/driver",
    "stateFolder": "/var/lib/drover-state",
    "kubeletRoot": "/var/lib/k0s/kubelet", "cdiFolder": "/etc/cdi", "runtimeEndpoint": "/run/k0s/containerd.sock",
    "extraArguments": ["--later=1"], "extraEnvironment": [{"name": "A", "value": "B"}], "runtimeClassName": "nvidia", "privileged": False,
    "serviceAccount": {"name": "someone", "annotations": {"a": "b"}}, "priorityClassName": "high", "nodeSelector": {"gpu": "yes"},
    "nodeFeatureDiscovery": True, "tolerations": [{"operator": "Exists"}], "minReadySeconds": 9, "terminationGracePeriodSeconds": 7,
    "updateStrategy": {"type": "OnDelete"}, "resources": {"limits": {"memory": "1Gi"}}, "podAnnotations": {"x": "y"}, "podLabels": {"l": "m"}}
SCHEDULER = {"enabled": True, "name": "gpus", "replicas": 3, "port": 9500, "takeResources": ["a/b"], "takeClaims": False,
             "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "a"}}, "deviceClasses": ["a", "b"], "queueUse": True,
             "controllers": ["someone"], "extraArguments": ["--later=1"], "priorityClassName": "high", "nodeSelector": {"a": "b"},
             "affinity": {"nodeAffinity": {}}, "tolerations": [{"operator": "Exists"}]}
CONTROL_PLANE = {
    "enabled": True, "port": 9600, "users": [{"name": "ann", "uid": 1000, "gid": 50, "groups": [100, 44]}, {"name": "bob", "uid": 1001, "groups": [100]}],
    "defaultImage": "registry.test/base", "scheduler": "other", "extraArguments": ["--later=1"], "priorityClassName": "high", "nodeSelector": {"a": "b"},
    "affinity": {"nodeAffinity": {}}, "tolerations": [{"operator": "Exists"}], "resources": {"limits": {"memory": "1Gi"}},
    "persistence": {"size": "3Gi", "storageClassName": "fast", "accessMode": "ReadWriteOncePod"}}
# Options of the program that the chart has no value for: it is in a pod.
OF_THE_POD = {"--node-name", "--kubeconfig", "--help", "--help-all"}


class ChartTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.helm = Helm()
        cls.addClassCleanup(cls.helm.close)

    def test_it_has_no_fault_that_helm_knows_of(self):
        for values in ({}, EVERYTHING, {"simulate": "k80"}, {"roles": {"dra": False}}):
            with self.subTest(values=values):
                self.helm.call("lint", "--strict", CHART, values=values)

    def test_the_plain_manifests_are_what_it_renders(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([PACKAGING / "render", folder], check=True, env={"HELM": str(components.helm()), "PATH": "/usr/bin:/bin"})
            for made in pathlib.Path(folder).iterdir():
                self.assertEqual((PACKAGING / made.name).read_text(), made.read_text(), "run packaging/kubernetes/render")

    def test_every_option_can_be_set(self):
        def options_of(*command):
            return set(re.findall(r"^ +(--[a-z-]+)", drover.run([drover.BINARY, *command, "--help"]).out, re.MULTILINE))

        options = options_of("kube", "node") - options_of("version")  # those that every command has
        rendered = self.helm.template(values=EVERYTHING) + self.helm.template(values={"simulate": "k80"})
        self.assertEqual(options - OF_THE_POD - set(re.findall(r"--[a-z-]+(?==)", rendered)), set())

    def test_every_value_is_heard(self):
        rendered = self.helm.template(values=EVERYTHING)
        for line in ("name: gpus", "image: registry.test/team/drover@sha256:" + "0" * 64, "- --driver-name=gpu.drover.test",
                     "- --claim-sharing=share", "- --share-by=limits", "- --share-offence=report", "- --disable-health-checks=13,31", "- --enable-health-checks=79",
                     "- --report=labels,events", "- --feature-file=/etc/features/drover", "- {name: features, mountPath: /etc/features}",
                     "- --host-driver-root=/run/nvidia/driver", "hostPath: {path: /run/nvidia/driver, type: DirectoryOrCreate}",
                     "- {name: state, mountPath: /var/lib/drover-state}", "hostPath: {path: /var/lib/k0s/kubelet/device-plugins, type: Directory}",
                     "hostPath: {path: /run/k0s, type: Directory}", "- --config=/etc/drover/config.yaml", "replicas: 2", "- --later=1",
                     "- --log-level=warning", "- --log-format=json", "- --health-address=[$(POD_IP)]:9403", "- {name: health, containerPort: 9403}", "- --metrics-address=[$(POD_IP)]:9401", "- {name: metrics, containerPort: 9401}", "hostPID: true",
                     "runtimeClassName: nvidia", "allowPrivilegeEscalation: false", "serviceAccountName: someone", "type: OnDelete",
                     "- {key: feature.node.kubernetes.io/pci-10de.present, operator: In, values: [\"true\"]}", "priorityClassName: high",
                     "request.userInfo.username == 'system:serviceaccount:kube-system:someone'", "minReadySeconds: 9"):
            self.assertIn(line, rendered)
        self.assertNotIn("privileged: true", rendered)

    def test_a_program_that_hangs_is_started_anew(self):
        for values in ({}, EVERYTHING, {"roles": {"dra": False}}, {"simulate": "k80"}):
            with self.subTest(values=values):
                rendered = self.helm.template(values=values)
                self.assertEqual(len(re.findall(r"livenessProbe:\n +httpGet: \{path: /healthz, port: health\}", rendered)), 1)
                (port,) = re.findall(r"- --health-address=\[\$\(POD_IP\)\]:(\d+)", rendered)
                self.assertIn(f"{{name: health, containerPort: {port}}}", rendered)

    def test_permissions_follow_the_roles(self):
        silent = {"labels": False, "conditions": False, "events": False}
        rendered = self.helm.template("--no-hooks", values={"roles": {"dra": False}, "report": silent})
        for absent in ("ClusterRole", "ValidatingAdmissionPolicy", "DeviceClass", "plugins_registry"):
            self.assertNotIn(absent, rendered)
        self.assertIn("automountServiceAccountToken: false", rendered)
        rendered = self.helm.template("--no-hooks", values={"roles": {"dra": False}, "report": {"featureFile": "/a/b"}})
        self.assertEqual(re.findall(r"resources: \[(.*)\]\n +verbs: \[(.*)\]", rendered),
                         [("nodes", "get"), ("nodes/status", "patch"), ("events", "create, patch")])
        rendered = self.helm.template("--no-hooks", values={"roles": {"dra": False}})
        self.assertIn(("pods", "list, watch, patch"), re.findall(r"resources: \[(.*)\]\n +verbs: \[(.*)\]", rendered))
        self.assertIn("name: drover-pods", rendered)
        self.assertNotIn("device-plugins", self.helm.template(values={"roles": {"devicePlugin": False}}))

    def test_device_classes_are_of_the_version_that_the_cluster_has(self):
        for cluster, version in (("1.33.9", "v1beta1"), ("1.34.0-gke.7", "v1"), ("1.37.1", "v1")):
            self.assertIn(f"apiVersion: resource.k8s.io/{version}\n", self.helm.template("--kube-version", cluster))

    def test_simulated_gpus_need_no_privileges(self):
        rendered = self.helm.template(values={"simulate": "k80"})
        for absent in ("privileged", "driver-root", "path: /dev", "hostPID", "--metrics-address"):
            self.assertNotIn(absent, rendered)

    def test_who_holds_pods_to_shares_sees_the_nodes_processes(self):
        def sharing(way):
            return {"config": {"version": "v1", "sharing": {way: {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}}}

        for values, sees in ((sharing("drover"), True), ({"claimSharing": "memory"}, True), (sharing("timeSlicing"), False),
                             ({"config": {"version": "v1"}}, False)):
            with self.subTest(values):
                self.assertEqual("hostPID: true" in self.helm.template(values=values), sees)

    def test_prometheus_is_told_where_to_ask(self):
        monitored = {"metrics": {"enabled": True, "serviceMonitor": {"enabled": True, "interval": "15s", "labels": {"release": "prom"}}},
                     "controlPlane": {"enabled": True}}
        self.assertNotIn("ServiceMonitor", self.helm.template(values=EVERYTHING))
        rendered = self.helm.template("--show-only=templates/service-monitor.yaml", values={**monitored, "scheduler": {"enabled": True}})
        monitors = [text for text in rendered.split("\n---\n") if "kind: ServiceMonitor" in text]
        self.assertEqual([re.findall("drover.dev/metrics: (.+)|(honorLabels: true)|path: (.+)", text) for text in monitors],
                         [[("drover-nodes", "", ""), ("", "honorLabels: true", ""), ("", "", "/metrics")],
                          [("drover-scheduler", "", ""), ("", "", "/metrics")], [("drover-control-plane", "", ""), ("", "", "/v1/metrics")]])
        for text in monitors:
            self.assertIn("    release: prom\n", text)
            self.assertIn("interval: 15s", text)
        self.assertEqual(re.findall("targetPort: (.+)}", rendered), ["metrics", "http", "http"])
        self.assertRegex(monitors[2], "credentials:\n +key: metrics\n +name: drover-control-plane\n +type: Bearer")
        secret = dict(re.findall("^  (credentials|metrics): (.*)", self.rendered_objects(**monitored)["Secret", "drover-control-plane"], re.MULTILINE))
        reader = base64.b64decode(secret["metrics"]).decode()
        credentials = base64.b64decode(secret["credentials"]).decode()
        self.assertRegex(credentials, rf"^root:[A-Za-z0-9]{{48}}\n@metrics:{reader}\n$")
        for page in (drover.ROOT / "docs/kubernetes-engine.md", CHART / "templates/NOTES.txt"):
            command = re.search(r"base64 --decode \| (.+?)\)", page.read_text())[1]
            told = subprocess.run(["sh", "-c", command], input=credentials, capture_output=True, text=True, check=True).stdout
            self.assertEqual(f"root:{told}", credentials.splitlines(keepends=True)[0], page.name)
        self.helm.call("lint", "--strict", CHART, values=monitored)
        for values in ({"serviceMonitor": {"enabled": True}}, {"enabled": True, "serviceMonitor": {"interval": "often"}}):
            done = self.helm.call("template", "drover", CHART, values={"metrics": values}, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("metrics", done.stderr)

    def test_the_scheduler_is_there_when_it_is_wanted(self):
        quiet = self.helm.template()
        for part in ("kind: Deployment", "CustomResourceDefinition", "FlowSchema", "MutatingAdmissionPolicy"):
            self.assertNotIn(part, quiet)
        rendered = self.helm.template(values={"scheduler": SCHEDULER})
        for line in ("- --scheduler-name=gpus", "- --lease-namespace=kube-system", "- --listen=0.0.0.0:9500", "- --later=1", "replicas: 3",
                     "resource in ['a/b']))", "in ['a','b']", "path: '/spec/schedulerName', value: 'gpus'", "['someone']",
                     "request.userInfo.username in ['system:serviceaccount:kube-system:drover-scheduler', ", "kubernetes.io/metadata.name: a",
                     "priorityClassName: high", "- {kind: ServiceAccount, name: drover-scheduler, namespace: kube-system}"):
            self.assertIn(line, rendered)
        self.helm.call("lint", "--strict", CHART, values={"scheduler": SCHEDULER})
        few = self.helm.template("--kube-version=1.35.0", values={"scheduler": {"enabled": True, "takePods": False, "protectClaims": False}})
        self.assertNotIn("MutatingAdmissionPolicy", few)
        self.assertNotIn("drover-scheduler-queues", few)

    def test_the_scheduler_says_what_an_older_cluster_lacks(self):
        done = self.helm.call("template", "drover", CHART, "--kube-version=1.35.0", values={"scheduler": {"enabled": True}}, check=False)
        self.assertIn("need Kubernetes 1.36, which has MutatingAdmissionPolicies", done.stderr)

    def rendered_objects(self, **values):
        """The texts of what belongs to the control plane, by kind and name."""
        texts = self.helm.template("--show-only=templates/control-plane.yaml", values=values).split("\n---\n")
        return {(re.search("^kind: (.*)", text, re.MULTILINE)[1], re.search("^  name: (.*)", text, re.MULTILINE)[1]): text for text in texts}

    def test_the_control_plane_is_there_when_it_is_wanted(self):
        self.assertNotIn("control-plane", self.helm.template())
        objects = self.rendered_objects(controlPlane=CONTROL_PLANE, log={"level": "debug", "format": "json"})
        name = "drover-control-plane"
        deployment = objects["Deployment", name]
        arguments = re.findall(r"- (--[a-z-]+)(?:=(.*))?$", deployment, re.MULTILINE)
        self.assertNotIn("--placement", deployment)
        rendered = self.helm.template(values={"scheduler": {"enabled": True, "policy": "spread"}, "controlPlane": CONTROL_PLANE})
        for argument in ("--policy=spread", "--placement=spread"):
            self.assertIn(f"- {argument}\n", rendered)
        for argument in (("--engine", "kubernetes"), ("--objects", ""), ("--state", "/var/lib/drover"), ("--lease", name), ("--listen", "0.0.0.0:9600"),
                         ("--insecure-listen", ""), ("--host-name", f"{name}.kube-system.svc"), ("--scheduler", "other"),
                         ("--executor-endpoint", f"{name}.kube-system.svc:9600"), ("--helper-image", "drover:0.1.0"), ("--default-image", "registry.test/base"), ("--log-level", "debug"),
                         ("--log-format", "json"), ("--later", "1")):
            self.assertIn(argument, arguments)
        options = set(re.findall(r"^ +(--[a-z-]+)", drover.run([drover.BINARY, "serve", "--help"]).out, re.MULTILINE))
        self.assertEqual({argument for argument, _ in arguments} - options, {"--later"})
        for line in ("replicas: 1", "strategy: {type: Recreate}", "priorityClassName: high", "nodeSelector:\n        a: b", "nodeAffinity: {}",
                     "operator: Exists", "memory: 1Gi", "allowPrivilegeEscalation: false", "readOnlyRootFilesystem: true", "drop: [ALL]"):
            self.assertIn(line, deployment)
        self.assertIn("{name: http, port: 9600, targetPort: http}", objects["Service", name])
        for line in ("accessModes: [ReadWriteOncePod]", "storageClassName: fast", "storage: 3Gi", "helm.sh/resource-policy: keep"):
            self.assertIn(line, objects["PersistentVolumeClaim", name])
        users = objects["ConfigMap", name].partition("\ndata:")[2]
        self.assertEqual(sorted(users.split()), sorted((
            "passwd:", "|", "root:x:0:0:root:/:/", "ann:x:1000:50::/:/", "bob:x:1001:1001::/:/",
            "group:", "|", "root:x:0:", "group-50:x:50:", "group-1001:x:1001:", "group-100:x:100:ann,bob", "group-44:x:44:ann")))
        self.helm.call("lint", "--strict", CHART, values={"controlPlane": CONTROL_PLANE})

    def test_definitions_outlive_an_uninstallation_and_are_let_go(self):
        kinds = self.helm.template("--show-only=templates/control-plane-crds.yaml", values={"controlPlane": CONTROL_PLANE})
        self.assertEqual(kinds.count("kind: CustomResourceDefinition"), 3)
        self.assertEqual(kinds.count("helm.sh/resource-policy: keep"), 3)
        for values, has_rights in (({"controlPlane": CONTROL_PLANE}, True), ({}, False)):
            hook = self.helm.template("--show-only=templates/withdraw.yaml", values=values)
            self.assertEqual("resources: [apps, schedules, jobs]" in hook, has_rights)

    def test_the_secrets_of_the_control_plane_are_files_that_nobody_else_reads(self):
        def credentials():
            encoded = re.search("^  credentials: (.*)", self.rendered_objects(controlPlane={"enabled": True})["Secret", name], re.MULTILINE)[1]
            return base64.b64decode(encoded).decode()

        name = "drover-control-plane"
        self.assertRegex(credentials(), r"^root:[A-Za-z0-9]{48}\n$")
        self.assertNotEqual(credentials(), credentials())
        given = self.rendered_objects(controlPlane={"enabled": True, "credentialsSecret": "ours", "persistence": {"existingClaim": "there"}})
        self.assertNotIn(("Secret", name), given)
        self.assertNotIn(("PersistentVolumeClaim", name), given)
        for line in ("secret: {secretName: ours, defaultMode: 0400}", "persistentVolumeClaim: {claimName: there}",
                     "{name: credentials, mountPath: /var/lib/drover/credentials, subPath: credentials, readOnly: true}"):
            self.assertIn(line, given["Deployment", name])

    def test_wrong_values_of_the_control_plane_are_refused(self):
        for values in ({"users": [{"name": "root", "uid": 5}]}, {"users": [{"name": "a:b", "uid": 5}]}, {"users": [{"name": "ann", "uid": 0}]},
                       {"users": [{"name": "ann"}]}, {"users": [{"name": "ann", "uid": 5, "groups": [0]}]}, {"port": 0}, {"replicas": 2},
                       {"persistence": {"size": "much"}}, {"persistence": {"accessMode": "ReadOnlyMany"}}, {"credentialsSecret": "A B"}):
            with self.subTest(values=values):
                done = self.helm.call("template", "drover", CHART, values={"controlPlane": {"enabled": True, **values}}, check=False)
                self.assertNotEqual(done.returncode, 0, done.stdout)
                self.assertIn("controlPlane", done.stderr)

    def test_wrong_values_are_refused(self):
        wrong = {"roles": {"devicePlugin": False, "dra": False}, "claimSharing": "halves", "driverRoot": "relative", "imgae": {},
                 "config": {"version": "v2"}, "image": {"digest": "sha256:1"}, "tolerations": "all", "resources": {"limit": {}},
                 "deviceClasses": {"extendedResource": True}, "stateFolder": "/a, b: c", "minReadySeconds": -1, "scheduler": {"takeResources": ["a'b"]}}
        for name, value in wrong.items():
            with self.subTest(name=name, value=value):
                done = self.helm.call("template", "drover", CHART, values={name: value}, check=False)
                self.assertNotEqual(done.returncode, 0, done.stdout)
                self.assertIn(name, done.stderr)


if __name__ == "__main__":
    unittest.main()
