"""Random small clusters and pods that are to be placed on them: few names and values, so that much of it meets.

cluster(seed, pods, minor) is always the same for the same numbers; `minor` is that of Kubernetes 1.
"""

import random

NAMESPACES = ("one", "two", "three")
ZONE = "topology.kubernetes.io/zone"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"
NODE_LABELS = {"rack": ("r1", "r2"), "model": ("a100", "h100", ""), "size": ("1", "5", "5", "10", "big", "-3"), ZONE: ("z1", "z2"),
               OLD_ZONE: ("z1", "z2"), REGION: ("here", "there")}
POD_LABELS = {"app": ("web", "db"), "tier": ("x", "y"), "version": ("1", "2")}
NAMESPACE_LABELS = {"team": ("red", "blue"), "env": ("test",)}
CPU = ("0", "100m", "250m", "0.5", "1", "1500m", "2", "0.1m", "333u", "3")
MEMORY = ("0", "64Mi", "100M", "1Gi", "0.5", "1e8", "123456789", "1.5Gi", "2Gi")
GPUS = ("0", "1", "2", "4")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
TAINT_KEYS = ("dedicated", "nvidia.com/gpu", "node.kubernetes.io/unschedulable")
DRIVERS = ("ebs.csi", "lustre.csi")


class Maker:
    def __init__(self, seed, minor):
        self.random = random.Random(seed)
        self.minor = minor

    def maybe(self, chance):
        return self.random.random() < chance

    def one(self, choices):
        return self.random.choice(choices)

    def some(self, choices, most):
        return self.random.sample(choices, self.random.randint(0, min(most, len(choices))))

    def labels(self, known, chance):
        return {key: self.one(values) for key, values in known.items() if self.maybe(chance)}

    # Nodes

    def node(self, index):
        name = f"n{index}"
        labels = self.labels(NODE_LABELS, 0.55) | ({HOSTNAME: name} if self.maybe(0.9) else {})
        allocatable = {"cpu": self.one(("1", "2", "3500m", "4")), "memory": self.one(("1Gi", "2Gi", "4G")),
                       "pods": self.one(("2", "4", "110", "110"))}
        for resource, amounts in (("ephemeral-storage", ("1Gi", "3Gi")), ("nvidia.com/gpu", GPUS), ("hugepages-2Mi", ("4Mi", "64Mi"))):
            if self.maybe(0.8):
                allocatable[resource] = self.one(amounts)
        spec = {"taints": [{"key": self.one(TAINT_KEYS), "effect": self.one(EFFECTS)} | self.value() for _ in range(self.one((0, 0, 0, 0, 0, 1, 2)))]}
        if self.maybe(0.06):
            spec["unschedulable"] = True
        features = self.some(("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport", "VolumeBindMountOptions"), 3)
        return {"metadata": {"name": name, "labels": labels}, "spec": spec,
                "status": {"allocatable": allocatable, "declaredFeatures": sorted(features)}}

    def value(self):
        return {"value": self.one(("v1", "v2"))} if self.maybe(0.5) else {}

    # Pods

    def pod(self, name, node=None):
        """A pod that uses few things at a time, so that each of them decides now and then."""
        labels = self.labels(POD_LABELS, 0.6)
        spec = self.containers()
        pod = {"metadata": {"name": name, "namespace": self.one(NAMESPACES + ("one",) * 2), "uid": f"uid-{name}", "labels": labels}, "spec": spec}
        topics = [self.ports, self.tolerations, self.node_selector, self.node_affinity, self.pod_affinity, self.pod_anti_affinity,
                  self.spread, self.volumes, self.features]
        for topic in self.random.sample(topics, self.one((0, 1, 1, 2, 3))):
            topic(spec, labels)
        if node is None:
            if self.maybe(0.02):
                spec["nodeName"] = self.one(("n0", "n1"))
        else:
            spec["nodeName"] = node
            self.status(pod)
        return pod

    def amounts(self, chance):
        amounts = {"cpu": self.one(CPU), "memory": self.one(MEMORY), "nvidia.com/gpu": self.one(GPUS), "hugepages-2Mi": self.one(("2Mi", "4Mi")),
                   "ephemeral-storage": self.one(("1Mi", "1Gi")), "requests.example.com/x": "1", "example.com/none": self.one(("0", "1")),
                   "kubernetes.io/batch": "1", "storage": "1Gi"}
        rare = {"requests.example.com/x", "example.com/none", "kubernetes.io/batch", "storage"}
        return {name: amount for name, amount in amounts.items() if self.maybe(chance * (0.05 if name in rare else 1))}

    def container(self, name, init=False):
        made = {"name": name, "image": "image", "resources": {"requests": self.amounts(0.16)}}
        if init and self.maybe(0.5):
            made["restartPolicy"] = self.one(("Always", "Always", "Never"))
        return made

    def containers(self):
        spec = {"containers": [self.container(f"c{index}") for index in range(self.one((1, 1, 1, 2, 3)))]}
        if self.maybe(0.25):
            spec["initContainers"] = [self.container(f"i{index}", init=True) for index in range(self.one((1, 2, 3)))]
        if self.maybe(0.1):
            spec["overhead"] = {"cpu": "10m", "memory": "1Mi"} if self.maybe(0.7) else self.amounts(0.3)
        if self.maybe(0.15):
            spec["resources"] = {"requests": self.amounts(0.4)} if self.maybe(0.8) else {"limits": {"cpu": "1"}}
        return spec

    def status(self, pod):
        status = pod["status"] = {"phase": self.one(("Running", "Pending", "Running", "Running", "Succeeded", "Failed"))}
        if self.maybe(0.15):
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        if self.maybe(0.75):
            return
        for statuses, containers in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
            status[statuses] = []
            for container in pod["spec"].get(containers, ()):
                said = {"name": container["name"], "ready": True, "restartCount": 0, "image": "", "imageID": ""}
                if self.maybe(0.7):
                    said["resources"] = {"requests": self.amounts(0.3)} if self.maybe(0.8) else {}
                if self.maybe(0.6):
                    said["allocatedResources"] = self.amounts(0.3)
                status[statuses].append(said)
        if self.maybe(0.4):
            status["resources"] = {"requests": self.amounts(0.3)}
        if self.maybe(0.4):
            status["allocatedResources"] = self.amounts(0.3)
        if self.maybe(0.5):
            status["conditions"] = [{"type": "Ready", "status": "True"},
                                    {"type": "PodResizePending", "status": "True", "reason": self.one(("Infeasible", "Deferred"))}]

    def ports(self, spec, _):
        for container in spec["containers"] + spec.get("initContainers", []):
            container["ports"] = [{"containerPort": 80} | self.port() for _ in range(self.one((0, 1, 2)))]

    def port(self):
        port = {"hostPort": self.one((0, 8080, 8080, 9090))}
        if self.maybe(0.6):
            port["protocol"] = self.one(("TCP", "UDP"))
        if self.maybe(0.6):
            port["hostIP"] = self.one(("0.0.0.0", "10.0.0.1", "10.0.0.2", ""))
        return port

    def tolerations(self, spec, _):
        made = spec["tolerations"] = []
        for _ in range(self.one((1, 1, 2, 3))):
            toleration = {}
            if self.maybe(0.85):
                toleration["key"] = self.one(TAINT_KEYS)
            if self.maybe(0.8):
                toleration["operator"] = self.one(("Exists", "Equal", "Equal", "Lt", "Gt")) if "key" in toleration else "Exists"
            if self.maybe(0.5):
                toleration["effect"] = self.one(EFFECTS)
            if toleration.get("operator") != "Exists":
                toleration |= self.value()
            made.append(toleration)

    def node_selector(self, spec, _):
        spec["nodeSelector"] = {key: self.one(NODE_LABELS[key]) for key in self.some(sorted(NODE_LABELS), 2)}

    def expression(self, known, operators):
        key = self.one(sorted(known))
        made = {"key": key, "operator": self.one(operators)}
        if made["operator"] in ("In", "NotIn"):
            made["values"] = self.random.sample(known[key], self.random.randint(1, len(known[key])))
        if made["operator"] in ("Gt", "Lt"):
            made["key"] = self.one(("size", "size", "rack"))
            made["values"] = [self.one(("0", "4", "5", "5", "10", "+7", "-5", "big"))]
        return made

    def node_terms(self, fields=True):
        terms = []
        for _ in range(self.one((1, 1, 2, 3))):
            term = {}
            if self.maybe(0.85):
                operators = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
                term["matchExpressions"] = [self.expression(NODE_LABELS, operators) for _ in range(self.one((0, 1, 1, 2)))]
            if fields and self.maybe(0.3):
                term["matchFields"] = [{"key": "metadata.name", "operator": self.one(("In", "In", "NotIn")),
                                        "values": self.one((["n0"], ["n1"], ["n2"], ["n0", "n1"]))} for _ in range(self.one((1, 1, 2)))]
            terms.append(term)
        if self.maybe(0.03):
            terms[0]["matchExpressions"] = [{"key": "not valid", "operator": "Exists"}]
        return terms

    def affinity(self, spec, kind, required):
        spec.setdefault("affinity", {})[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": required}

    def node_affinity(self, spec, _):
        self.affinity(spec, "nodeAffinity", {"nodeSelectorTerms": self.node_terms() if self.maybe(0.95) else []})

    def selector(self, known, nothing=0.05, operators=("In", "NotIn", "Exists", "DoesNotExist")):
        if self.maybe(nothing):
            return None
        made = {}
        if self.maybe(0.7):
            made["matchLabels"] = {key: self.one(known[key]) for key in self.some(sorted(known), 2)}
        if self.maybe(0.3):
            made["matchExpressions"] = [self.expression(known, operators)]
        return made

    def pod_terms(self):
        terms = []
        for _ in range(self.one((1, 1, 1, 2))):
            term = {"topologyKey": self.one((HOSTNAME, ZONE, "rack"))}
            selector = self.selector(POD_LABELS)
            if selector is not None:
                term["labelSelector"] = selector
            if self.maybe(0.3):
                term["namespaces"] = self.some(NAMESPACES, 2)
            if self.maybe(0.3):
                # Before 1.37, what only excludes namespaces selected all of them: kubernetes/kubernetes took the selector by value.
                operators = ("In", "NotIn", "Exists", "DoesNotExist") if self.minor >= 37 else ("In", "Exists")
                term["namespaceSelector"] = self.selector(NAMESPACE_LABELS, nothing=0, operators=operators)
            terms.append(term)
        return terms

    def pod_affinity(self, spec, _):
        self.affinity(spec, "podAffinity", self.pod_terms())

    def pod_anti_affinity(self, spec, _):
        self.affinity(spec, "podAntiAffinity", self.pod_terms())

    def spread(self, spec, _):
        made = spec["topologySpreadConstraints"] = []
        for key in self.random.sample((HOSTNAME, ZONE, "rack"), self.one((1, 1, 2))):
            constraint = {"maxSkew": self.one((1, 1, 2, 3)), "topologyKey": key,
                          "whenUnsatisfiable": self.one(("DoNotSchedule",) * 5 + ("ScheduleAnyway",))}
            many = {"matchExpressions": [{"key": self.one(sorted(POD_LABELS)), "operator": "Exists"}]}
            selector = many if self.maybe(0.4) else self.selector(POD_LABELS)
            if selector is not None:
                constraint["labelSelector"] = selector
            if self.maybe(0.4):
                constraint["minDomains"] = self.one((1, 2, 3, 4))
            if self.maybe(0.4):
                constraint["nodeAffinityPolicy"] = self.one(("Honor", "Ignore"))
            if self.maybe(0.5):
                constraint["nodeTaintsPolicy"] = self.one(("Honor", "Ignore"))
            if self.maybe(0.3):
                constraint["matchLabelKeys"] = self.some(sorted(POD_LABELS), 2)
            made.append(constraint)

    def volumes(self, spec, _):
        spec["volumes"] = [{"name": f"v{index}"} | self.volume() for index in range(self.one((1, 1, 1, 2)))]

    def volume(self):
        if self.maybe(0.9):
            return {"persistentVolumeClaim": {"claimName": f"claim{self.random.randint(0, 2)}"}}
        return self.one(({"emptyDir": {}}, {"hostPath": {"path": "/x"}}, {"gcePersistentDisk": {"pdName": "disk"}},
                         {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}, {"csi": {"driver": DRIVERS[0]}}))

    def features(self, spec, _):
        if self.maybe(0.6):
            self.one(spec["containers"] + spec.get("initContainers", []))["restartPolicyRules"] = [{"action": "RestartAllContainers"}]
        if self.maybe(0.6):
            spec["hostNetwork"] = True
            spec["hostUsers"] = self.maybe(0.3)
        if self.minor >= 37 and self.maybe(0.2):
            spec["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}]

    # Volumes

    def claim(self, namespace, index):
        metadata = {"name": f"claim{index}", "namespace": namespace, "annotations": {}}
        spec = {"accessModes": [self.one(("ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod", "ReadWriteOncePod"))]}
        state = self.random.random()
        if state < 0.85:
            spec["volumeName"] = f"volume{self.random.randint(0, 4)}"
            metadata["annotations"]["pv.kubernetes.io/bind-completed"] = "yes" if state < 0.8 else ""
        if state > 0.82:
            metadata["annotations"].pop("pv.kubernetes.io/bind-completed", None)
            spec["storageClassName"] = self.one(("wait", "wait", "static", "now"))
        if state > 0.5:
            self.unbound_claim(index, spec, metadata)
        if self.maybe(0.04):
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return {"metadata": metadata, "spec": spec, "status": {"phase": "Lost" if self.maybe(0.03) else "Bound"}}

    def unbound_claim(self, index, spec, metadata):
        """One that waits for its first pod, mostly."""
        spec.pop("volumeName", None)
        metadata["annotations"] = {}
        metadata["uid"] = f"{metadata['namespace']}-claim{index}"
        spec["storageClassName"] = self.one(("wait", "wait", "static", "static", "now", "none"))
        if self.maybe(0.9):
            spec["resources"] = {"requests": {"storage": self.one(("512Mi", "1Gi", "2Gi", "1500M"))}}
        if self.maybe(0.15):
            metadata["annotations"]["volume.kubernetes.io/selected-node"] = self.one(("n0", "n1", "n2"))
        if self.maybe(0.2):
            spec["selector"] = {"matchLabels": {"disk": self.one(("fast", "slow"))}}
        if self.maybe(0.1):
            spec["volumeMode"] = self.one(("Block", "Filesystem"))

    def free_volume(self, index):
        """One that a claim may get: of a kind that needs no driver on its node."""
        name = f"free{index}"
        spec = {"capacity": {"storage": self.one(("500Mi", "1Gi", "1Gi", "2Gi", "4Gi"))}, "storageClassName": self.one(("static", "static", "wait")),
                "accessModes": self.some(("ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"), 3) or ["ReadWriteOnce"]}
        spec |= self.one(({"local": {"path": "/x"}}, {"nfs": {"server": "s", "path": "/"}}))
        if self.maybe(0.6):
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": self.node_terms(fields=False)}}
        if self.maybe(0.2):
            namespace, claim = self.one(NAMESPACES), f"claim{self.random.randint(0, 2)}"
            spec["claimRef"] = {"namespace": namespace, "name": claim} | ({"uid": self.one((f"{namespace}-{claim}", "other"))} if self.maybe(0.6) else {})
        if self.maybe(0.1):
            spec["volumeMode"] = "Block"
        metadata = {"name": name, "labels": {"disk": self.one(("fast", "slow"))} if self.maybe(0.7) else {}}
        if self.maybe(0.05):
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return {"metadata": metadata, "spec": spec, "status": {"phase": self.one(("Available",) * 6 + ("Released", "Pending"))}}

    def storage_class(self, name, mode, provisioner):
        made = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}
        if self.maybe(0.3):
            made["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": self.some(("z1", "z2"), 2) or ["z1"]}]}
                                         for _ in range(self.one((1, 1, 2)))]
        return made

    def capacity(self, index):
        made = {"metadata": {"name": f"capacity{index}", "namespace": "kube-system"}, "storageClassName": self.one(("wait", "wait", "static"))}
        if self.maybe(0.9):
            made["nodeTopology"] = {"matchLabels": {ZONE: self.one(("z1", "z2"))}} if self.maybe(0.7) else {}
        for field in ("capacity", "maximumVolumeSize"):
            if self.maybe(0.6):
                made[field] = self.one(("600Mi", "1Gi", "1500M", "10Gi"))
        return made

    def persistent_volume(self, index):
        name = f"volume{index}"
        source = self.one(({"csi": {"driver": self.one(DRIVERS), "volumeHandle": name}},) * 2 +
                          ({"local": {"path": "/x"}}, {"nfs": {"server": "s", "path": "/"}}, {"hostPath": {"path": "/x"}},
                           {"rbd": {"monitors": [], "image": "x"}}))
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]} | source
        if self.maybe(0.4):
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": self.node_terms(fields=self.maybe(0.2))}}
        labels = {key: self.one(("z1", "z2", "z1__z2", "z1__", " z2 ")) for key in (ZONE, OLD_ZONE) if self.maybe(0.2)}
        return {"metadata": {"name": name, "labels": labels}, "spec": spec}

    def csi_node(self, name):
        drivers = [{"name": driver, "nodeID": name} | ({"allocatable": {"count": self.one((1, 2, 20))}} if self.maybe(0.15) else {})
                   for driver in (*DRIVERS, "x") if self.maybe(0.7)]
        return {"metadata": {"name": name}, "spec": {"drivers": drivers}}


def cluster(seed, pods, minor):
    """A cluster with so many pods that are to be placed, each for itself."""
    maker = Maker(seed, minor)
    nodes = [maker.node(index) for index in range(maker.random.randint(1, 8))]
    names = [node["metadata"]["name"] for node in nodes]
    existing = [maker.pod(f"p{index}", maker.one((*names, "gone") if maker.maybe(0.1) else names))
                for index in range(maker.random.randint(0, 2 * len(nodes) + 2))]
    made = {"minor": minor, "nodes": nodes, "pods": existing,
            "namespaces": [{"metadata": {"name": name, "labels": maker.labels(NAMESPACE_LABELS, 0.6)}}
                           for name in NAMESPACES if maker.maybe(0.9)],
            "claims": [maker.claim(namespace, index) for namespace in NAMESPACES for index in range(3) if maker.maybe(0.9)],
            "volumes": [maker.persistent_volume(index) for index in range(5) if maker.maybe(0.93)] +
                       [maker.free_volume(index) for index in range(maker.random.randint(0, 4))],
            "storageClasses": [maker.storage_class(*names) for names in (("wait", "WaitForFirstConsumer", "x"), ("now", "Immediate", "x"), (
                "static", "WaitForFirstConsumer", "kubernetes.io/no-provisioner"))],
            "capacities": [maker.capacity(index) for index in range(maker.random.randint(0, 3))],
            "csiNodes": [maker.csi_node(name) for name in names if maker.maybe(0.8)],
            "csiDrivers": [{"metadata": {"name": driver}, "spec": {"preventPodSchedulingIfMissing": True}} for driver in DRIVERS
                           if maker.maybe(0.3)] +
                          ([{"metadata": {"name": "x"}, "spec": {"storageCapacity": True}}] if maker.maybe(0.3) else [])}
    return made | {"incoming": [maker.pod(f"new{index}") for index in range(pods)]}
