"""Random devices of small clusters, and claims that are to be given some of them: few names and values, so that much of it meets.

cluster(seed, questions, minor) is always the same for the same numbers; `minor` is that of Kubernetes 1. Kubernetes 1.36 forgets to give
back some of what it tries in vain; what it then decides is not asked: see `careful`.
"""

import random

GPU, NIC = "gpu.example.com", "nic.example.com"
RACK = "example.com/rack"
ZONE = "topology.kubernetes.io/zone"
MODELS = ("a100", "h100")
MEMORY = {"10Gi": 10, "40Gi": 40, "80Gi": 80}  # in GiB
EFFECTS = ("NoSchedule", "NoExecute", "None")
TAINTS = (("sick", ""), ("sick", "badly"), ("maintenance", "today"))
BINDING = {"bindingConditions": ["example.com/ready"], "bindingFailureConditions": ["example.com/failed"]}


def _gpu(device, name):
    return device["attributes"][name]  # an attribute that is not there is an error, as in CEL


# What they say of a device: a dictionary with driver, attributes and memory.
SELECTORS = {
    f'device.driver == "{GPU}"': lambda device: device["driver"] == GPU,
    f'device.driver == "{NIC}"': lambda device: device["driver"] == NIC,
    f'device.attributes["{GPU}"].model == "a100"': lambda device: _gpu(device, "model") == "a100",
    f'device.attributes["{GPU}"].?model.orValue("") == "h100"': lambda device: device["attributes"].get("model") == "h100",
    f'"numa" in device.attributes["{GPU}"] && device.attributes["{GPU}"].numa == 0': lambda device: device["attributes"].get("numa") == 0,
    f'device.driver == "{GPU}" && device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0':
        lambda device: device["driver"] == GPU and device["capacity"]["memory"] >= 40,
    "device.allowMultipleAllocations == true": lambda device: device["shared"],
    'device.attributes["example.com"].rack == "r1"': lambda device: _gpu(device, RACK) == "r1",
    "true": lambda _: True,
    "false": lambda _: False,
}
CLASSES = {"gpu": [f'device.driver == "{GPU}"'], "nic": [f'device.driver == "{NIC}"'], "any": [], "broken": [f'device.attributes["{GPU}"].model == "a100"']}


class Maker:
    def __init__(self, seed, minor):
        self.random = random.Random(seed)
        self.careful = minor < 37
        self.shared = self.maybe(0.35)      # there are devices that several claims may have
        self.partitions = self.maybe(0.35)  # … and such as consume counters
        self.count = 0

    def maybe(self, chance):
        return self.random.random() < chance

    def one(self, choices):
        return self.random.choice(choices)

    def number(self):
        self.count += 1
        return self.count

    # Devices

    def taints(self):
        return [{"key": key, "effect": self.one(EFFECTS)} | ({"value": value} if value else {})
                for key, value in self.random.sample(TAINTS, self.one((0,) * 12 + (1, 2)))]

    def attributes(self, driver):
        rack = {RACK: {"string": self.one(("r1", "r2"))}} if self.maybe(0.7) else {}
        if driver == NIC:
            return {"index": {"int": self.number()}} | rack
        attributes = {"uuid": {"string": f"u{self.number()}"}, "numa": {"int": self.one((0, 1))}, "healthy": {"bool": self.maybe(0.9)},
                      "driverVersion": {"version": self.one(("1.2.3", "1.10.0"))}}
        if self.maybe(0.95):
            attributes["model"] = {"string": self.one(MODELS)}
        if self.maybe(0.05):
            del attributes["numa"]
        return attributes | rack

    def policy(self):
        """What may be asked for of a memory of 80Gi."""
        kind = self.random.randrange(4)
        if kind == 0:
            return {}
        if kind == 1:
            return {"requestPolicy": {"default": "10Gi", "validValues": ["10Gi", "20Gi", "40Gi"]}}
        step = {} if self.maybe(0.3) else {"step": "5Gi"}
        return {"requestPolicy": {"default": "10Gi", "validRange": {"min": "5Gi"} | ({"max": "40Gi"} if kind == 2 else {}) | step}}

    def bandwidth(self):
        if self.careful or self.maybe(0.5):
            return {"value": "100", "requestPolicy": {"default": "10", "validRange": {"min": "1", "step": "3"}}}
        return {"value": "2", "requestPolicy": {"default": "500m", "validRange": {"min": "100m", "step": "200m"}}}

    def device(self, name, driver):
        device = {"name": name, "attributes": self.attributes(driver)}
        if driver == GPU and self.maybe(0.9):
            device["capacity"] = {"memory": {"value": self.one(tuple(MEMORY))}}
        if self.shared and self.maybe(0.5):
            device["allowMultipleAllocations"] = True
            device["capacity"] = {} if self.maybe(0.1) else {"memory": {"value": "80Gi"} | self.policy()}
            if self.maybe(0.3):
                device["capacity"]["bandwidth"] = self.bandwidth()
        taints = self.taints()
        if taints:
            device["taints"] = taints
        if self.maybe(0.02):
            device |= BINDING
        if self.maybe(0.05):
            device["bindsToNode"] = True
        return device

    def devices(self, driver, most):
        return [self.device(f"{driver[0]}{i}", driver) for i in range(self.random.randint(1, most))]

    # Slices

    def slices(self, driver, pool, where, parts):
        """A pool of so many slices with these fields."""
        generation = self.one((1, 1, 3))
        spec = {"driver": driver, "pool": {"name": pool, "generation": generation, "resourceSliceCount": len(parts)}}
        made = []
        for index, part in enumerate(parts):
            made.append({"metadata": {"name": f"{pool}-{driver[:3]}-{generation}-{index}"}, "spec": spec | (where | part)})
        fate = self.random.random()
        counts = any("sharedCounters" in part for part in parts)
        if fate < 0.04 and not (counts and self.careful):
            made.pop(self.random.randrange(len(made)))  # the rest is still to come
        elif fate < 0.08 and generation > 1 and not (counts and self.careful):
            old = spec | where | {"devices": self.devices(driver, 2)}
            old["pool"] = spec["pool"] | {"generation": 1, "resourceSliceCount": 1}
            made.append({"metadata": {"name": f"{pool}-{driver[:3]}-1-0"}, "spec": old})
        return made

    def ordinary_pool(self, driver, node):
        parts = [{"devices": self.devices(driver, 8)}]
        if self.maybe(0.2):
            parts.append({"devices": [device | {"name": f"second-{device['name']}"} for device in self.devices(driver, 2)]})
            if self.maybe(0.1):
                parts[1]["devices"][0]["name"] = parts[0]["devices"][0]["name"]
        pool = f"{node}-{driver[0]}" if self.careful else node
        return self.slices(driver, pool, {"nodeName": node}, parts)

    def partitioned_pool(self, node):
        """Cards with four slices and some memory, whole or in parts."""
        counters, devices = [], []
        for card in range(self.one((1, 2))):
            counters.append({"name": f"card{card}", "counters": {"slices": {"value": self.one(("4", "7"))}, "memory": {"value": "40Gi"}}})
            for index in range(self.random.randint(1, 5)):
                device = self.device(f"part-{card}-{index}", GPU)
                if self.careful:
                    device.pop("allowMultipleAllocations", None)
                    device["capacity"] = {"memory": {"value": "10Gi"}}
                slices = self.one(("1", "2", "3", "4"))
                device["consumesCounters"] = [{"counterSet": f"card{card}", "counters": {"slices": {"value": slices}}
                                               | ({"memory": {"value": self.one(("10Gi", "20Gi"))}} if self.maybe(0.7) else {})}]
                devices.append(device)
        if self.maybe(0.03):
            devices[0]["consumesCounters"][0]["counterSet"] = "nowhere"
        return self.slices(GPU, f"{node}-parts", {"nodeName": node}, [{"sharedCounters": counters}, {"devices": devices}])

    def fabric_pool(self):
        where = self.one(({"allNodes": True}, {"nodeSelector": self.zone("z1")}, {"perDeviceNodeSelection": True}))
        devices = self.devices(NIC, 4)
        if "perDeviceNodeSelection" in where:
            for device in devices:
                device |= self.one(({"nodeName": "n0"}, {"allNodes": True}, {"nodeSelector": self.zone("z2")}))
        return self.slices(NIC, "fabric", where, [{"devices": devices}])

    def zone(self, name):
        return {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [name]}]}]}

    # Claims

    def wish(self):
        name = self.one(("gpu",) * 16 + ("nic",) * 5 + ("any", "any", "broken"))
        wish = {"deviceClassName": name, "allocationMode": "ExactCount", "count": self.one((1, 1, 1, 1, 1, 2, 2, 3, 4))}
        if self.maybe(0.3):
            choices = list(SELECTORS)
            wish["selectors"] = [{"cel": {"expression": self.one(choices)}} for _ in range(self.one((1, 1, 2)))]
        if self.maybe(0.15) and not (self.shared and self.careful):
            wish["allocationMode"] = "All"
            del wish["count"]
        elif self.maybe(0.02):
            wish["count"] = self.one((20, 33))
        if self.maybe(0.2):
            wish["tolerations"] = [self.one(({"operator": "Exists"}, {"key": "sick", "operator": "Exists"}, {"key": "sick", "value": "badly"},
                                             {"key": "maintenance", "value": "today", "effect": "NoSchedule", "operator": "Equal"}))]
        if self.maybe(0.4 if self.shared else 0.1):
            asked = {"memory": self.one(("1Gi", "7Gi", "10Gi", "12Gi", "40Gi", "80Gi"))}
            if self.maybe(0.2):
                asked = {"bandwidth": self.one(("1", "2500m", "8", "300m" if not self.careful else "3"))}
            wish["capacity"] = {"requests": asked}
        return wish

    def request(self, name):
        if self.maybe(0.25):
            return {"name": name, "firstAvailable": [{"name": f"{name}{i}"} | self.wish() for i in range(self.one((1, 2, 2, 3)))]}
        wish = self.wish()
        if self.maybe(0.08):
            wish["adminAccess"] = self.maybe(0.9)
        return {"name": name, "exactly": wish}

    def constraint(self, requests):
        names = [request["name"] for request in requests]
        names += [f"{request['name']}/{wish['name']}" for request in requests for wish in request.get("firstAvailable", ())]
        constraint = {"matchAttribute": self.one((f"{GPU}/numa", f"{GPU}/model", RACK, f"{GPU}/driverVersion", f"{GPU}/healthy"))}
        if self.maybe(0.3):
            wishes = [wish for request in requests for wish in request.get("firstAvailable", (request.get("exactly"),))]
            if not self.careful or all(wish.get("count") == 1 for wish in wishes):
                constraint = {"distinctAttribute": self.one((f"{GPU}/numa", f"{GPU}/uuid", RACK, f"{GPU}/model"))}
        if self.maybe(0.5):
            constraint["requests"] = sorted(self.random.sample(names, self.random.randint(1, min(2, len(names)))))
        return constraint

    def config(self, requests):
        config = {"opaque": {"driver": GPU, "parameters": {"sharing": self.one(("time", "mps"))}}}
        names = [request["name"] for request in requests]
        names += [f"{request['name']}/{wish['name']}" for request in requests for wish in request.get("firstAvailable", ())]
        if self.maybe(0.7):
            config["requests"] = self.random.sample(names, self.random.randint(1, len(names)))
        return config

    def claim(self, name):
        requests = [self.request(f"r{i}") for i in range(self.one((1, 1, 1, 2, 2, 3)))]
        devices = {"requests": requests}
        if self.maybe(0.35):
            devices["constraints"] = [self.constraint(requests) for _ in range(self.one((1, 1, 2)))]
        if self.maybe(0.3):
            devices["config"] = [self.config(requests) for _ in range(self.one((1, 2)))]
        return {"metadata": {"name": name, "namespace": "one", "uid": f"uid-{name}"}, "spec": {"devices": devices}}

    def allocated(self, slices):
        """Claims that have some of the devices already, also such as nobody knows any longer."""
        results = []
        for piece in slices:
            for device in piece["spec"].get("devices", ()):
                if not self.maybe(0.12):
                    continue
                result = {"request": "r", "driver": piece["spec"]["driver"], "pool": piece["spec"]["pool"]["name"], "device": device["name"]}
                if device.get("allowMultipleAllocations") and self.maybe(0.9):
                    result["shareID"] = f"00000000-0000-4000-8000-{self.number():012}"
                    amounts = {"memory": self.one(("10Gi", "20Gi", "40Gi")), "bandwidth": "1"}
                    taken = {name: amounts[name] for name in device.get("capacity", {}) if name in amounts}
                    result |= {"consumedCapacity": taken} if taken else {}
                elif self.maybe(0.1):
                    result["adminAccess"] = True
                results.append(result)
        self.random.shuffle(results)
        return [{"metadata": {"name": f"has-{i}", "namespace": "two", "uid": f"uid-has-{i}"},
                 "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1}}]}},
                 "status": {"allocation": {"devices": {"results": results[i::3]}}}} for i in range(3)]

    def question(self, nodes, slices):
        claims = [self.claim(f"c{i}") for i in range(self.one((1, 1, 1, 2, 3)))]
        ids = [(piece["spec"]["driver"], piece["spec"]["pool"]["name"], device["name"])
               for piece in slices for device in piece["spec"].get("devices", ())]
        return {"node": self.one(nodes)["metadata"]["name"], "claims": claims, "first": self.random.sample(ids, min(len(ids), self.random.randint(1, 6)))}

    # Pods

    def container(self, name, init):
        resources = {name: self.one(("0", "1", "1", "2", "3")) for name in ("example.com/gpu", "example.com/nic", "deviceclass.resource.kubernetes.io/any")
                     if self.maybe(0.5)} | ({"cpu": "1"} if self.maybe(0.5) else {})
        container = {"name": name, "resources": {"requests": resources}}
        if init and self.maybe(0.4):
            container["restartPolicy"] = "Always"
        return container

    def pod(self):
        spec = {"initContainers": [self.container(f"i{i}", True) for i in range(self.one((0, 0, 1, 2, 3)))],
                "containers": [self.container(f"c{i}", False) for i in range(self.one((1, 1, 2, 3)))]}
        resources = [name for name in ("deviceclass.resource.kubernetes.io/any", "example.com/gpu", "example.com/nic") if self.maybe(0.8)]
        return {"pod": {"metadata": {"name": "p", "namespace": "one"}, "spec": spec}, "resources": resources}


def classes(maker):
    config = {"opaque": {"driver": GPU, "parameters": {"from": "class"}}}
    made = [{"metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"selectors": [{"cel": {"expression": text}} for text in selectors]}}
            for name, selectors in CLASSES.items()]
    made[0]["spec"] |= {"config": [config], "extendedResourceName": "example.com/gpu"}
    made[1]["spec"]["extendedResourceName"] = "example.com/nic"
    if maker.maybe(0.3):
        made[2]["spec"]["config"] = [config, config]
    if maker.maybe(0.3):  # the newer one stands for the resource
        made[3]["spec"]["extendedResourceName"] = "example.com/gpu"
        made[3]["metadata"]["creationTimestamp"] = maker.one(("2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"))
    return made


def cluster(seed, questions, minor):
    maker = Maker(seed, minor)
    nodes = [{"metadata": {"name": f"n{i}", "labels": {ZONE: maker.one(("z1", "z2"))}}} for i in range(2)]
    slices = []
    for node in nodes:
        for driver in (GPU, NIC):
            if maker.maybe(0.85):
                slices += maker.ordinary_pool(driver, node["metadata"]["name"])
        if maker.partitions:
            slices += maker.partitioned_pool(node["metadata"]["name"])
    if maker.maybe(0.4):
        slices += maker.fabric_pool()
    rules = [{"metadata": {"name": f"rule-{i}"},
              "spec": {"deviceSelector": {key: value for key, value in (("driver", GPU), ("pool", "n0"), ("device", "g0")) if maker.maybe(0.6)},
                       "taint": {"key": "sick", "effect": maker.one(EFFECTS)}}} for i in range(maker.one((0, 0, 0, 1, 2)))]
    maker.random.shuffle(slices)
    return {"minor": minor, "nodes": nodes, "slices": slices, "classes": classes(maker), "taintRules": rules,
            "allocated": maker.allocated(slices), "asked": [maker.question(nodes, slices) for _ in range(questions)],
            "pods": [maker.pod() for _ in range(2)]}
