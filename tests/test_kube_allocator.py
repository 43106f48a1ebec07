"""Which devices claims are given: src/kube/scheduler/claims against Kubernetes' own allocator, over random devices of small clusters.

Whatever it finds a way for, we do, with the same devices when nobody wishes for others; what it finds none for, we refuse, and what it
gives up with an error we give up or refuse. What we give is checked by rules of the test's own as well, also where a caller wishes for
devices. DROVER_TEST_CLAIMS says how many times it is asked (20,000), DROVER_TEST_SEED which. DROVER_TEST_CLAIM_CASE=NUMBER looks at one
cluster alone.
"""

import collections
import json
import os
import re
import unittest

from kube import claim_cases, components
from kube.comparison import ComparisonTest

QUESTIONS = 5        # about one cluster
UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "m": 1e-3, "": 1}
TOO_LONG = "no devices were found within"
# What makes Kubernetes' allocator give up though other devices would do.
ONE_WAY = "because a claim constraint would not be satisfied"


def amount(text):
    number = text.rstrip("KMGim")
    return round(float(number) * UNITS[text[len(number):]], 9)


class Checker:
    """What holds of every allocation, by the objects of one case."""

    def __init__(self, given):
        self.given = given
        self.devices = {}
        newest = collections.Counter()
        for piece in given["slices"]:
            pool = (piece["spec"]["driver"], piece["spec"]["pool"]["name"])
            newest[pool] = max(newest[pool], piece["spec"]["pool"]["generation"])
        self.counters = collections.defaultdict(dict)
        for piece in given["slices"]:
            spec = piece["spec"]
            pool = (spec["driver"], spec["pool"]["name"])
            if spec["pool"]["generation"] != newest[pool]:
                continue
            for counters in spec.get("sharedCounters", ()):
                for name, counter in counters["counters"].items():
                    self.counters[pool][counters["name"], name] = amount(counter["value"])
            for device in spec.get("devices", ()):
                self.devices[(*pool, device["name"])] = device | {"slice": spec}
        self.classes = {found["metadata"]["name"]: found["spec"] for found in given["classes"]}
        self.taken = [result for claim in given["allocated"] for result in claim["status"]["allocation"]["devices"]["results"]]

    @staticmethod
    def id(result):
        return result["driver"], result["pool"], result["device"]

    def seen(self, result):
        """As selectors see the device."""
        device = self.devices[self.id(result)]
        values = {name: next(iter(value.values())) for name, value in device["attributes"].items()}
        return {"driver": result["driver"], "attributes": values, "shared": device.get("allowMultipleAllocations", False),
                "capacity": {name: amount(value["value"]) / 2**30 for name, value in device.get("capacity", {}).items()}}

    def mistakes(self, asked, results):
        """What is wrong with the results for these claims."""
        wrong = []
        if len(results) != len(asked["claims"]):
            return ["not one result for each claim"]
        new = []
        for claim, allocation in zip(asked["claims"], results):
            wrong += self.of_claim(claim, allocation["devices"]["results"], asked["node"])
            new += allocation["devices"]["results"]
        return wrong + self.together(new)

    def of_claim(self, claim, results, node):
        wrong, spec = [], claim["spec"]["devices"]
        names = [result["request"] for result in results]
        if len(results) > 32:
            wrong.append("too many results")
        for request in spec["requests"]:
            wishes = {f"{request['name']}/{wish['name']}": wish for wish in request.get("firstAvailable", ())} or {request["name"]: request["exactly"]}
            used = [name for name in wishes if name in names]
            if len(used) != 1:
                wrong.append(f"{request['name']} has {used}")
                continue
            given = [result for result in results if result["request"] == used[0]]
            wish = wishes[used[0]]
            if wish["allocationMode"] == "ExactCount" and len(given) != wish["count"]:
                wrong.append(f"{used[0]} has {len(given)} devices")
            wrong += [f"{used[0]}: {self.id(result)}: {why}" for result in given for why in self.of_device(wish, result, node)]
        for constraint in spec.get("constraints", ()):
            wrong += self.constraint(constraint, [result for result in results if self.concerns(constraint, result["request"])])
        return wrong

    @staticmethod
    def concerns(constraint, request):
        names = constraint.get("requests", ())
        return not names or request in names or request.split("/")[0] in names

    def of_device(self, wish, result, node):
        device = self.devices.get(self.id(result))
        if device is None:
            return ["there is none"]
        wrong = []
        where = device if device["slice"].get("perDeviceNodeSelection") else device["slice"]
        zone = next(found["metadata"]["labels"][claim_cases.ZONE] for found in self.given["nodes"] if found["metadata"]["name"] == node)
        terms = where.get("nodeSelector", {}).get("nodeSelectorTerms", ())
        if where.get("nodeName") != node and not where.get("allNodes") and [zone] not in [term["matchExpressions"][0]["values"] for term in terms]:
            wrong.append("is on another node")
        for selector in (*self.classes[wish["deviceClassName"]]["selectors"], *wish.get("selectors", ())):
            text = selector["cel"]["expression"]
            if not claim_cases.SELECTORS[text](self.seen(result)):
                wrong.append(f"does not match {text}")
        taints = [*device.get("taints", ()), *(rule["spec"]["taint"] for rule in self.given["taintRules"] if self.ruled(rule, result))]
        for taint in taints:
            if taint["effect"] != "None" and not any(self.tolerates(one, taint) for one in wish.get("tolerations", ())):
                wrong.append(f"has the taint {taint}")
        if device.get("bindingConditions"):
            wrong.append("has binding conditions")
        if wish.get("tolerations") != result.get("tolerations") or bool(wish.get("adminAccess")) != bool(result.get("adminAccess")):
            wrong.append("has other tolerations or access than its request")
        return wrong + self.capacity(wish, result, device)

    def ruled(self, rule, result):
        wanted = rule["spec"]["deviceSelector"]
        return all(result[key] == value for key, value in wanted.items())

    @staticmethod
    def tolerates(toleration, taint):
        return (toleration.get("effect", taint["effect"]) == taint["effect"] and toleration.get("key", taint["key"]) == taint["key"] and
                (toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")))

    def capacity(self, wish, result, device):
        asked = wish.get("capacity", {}).get("requests", {})
        shared = device.get("allowMultipleAllocations", False)
        if ("shareID" in result) != shared:
            return ["has a share id, or none, against what it is"]
        wrong, consumed = [], result.get("consumedCapacity", {})
        if asked.keys() - device.get("capacity", {}).keys():
            wrong.append("lacks what is asked for")
        for name, capacity in device.get("capacity", {}).items():
            if not shared:
                if amount(asked.get(name, "0")) > amount(capacity["value"]):
                    wrong.append(f"has too little {name}")
                continue
            policy, share = capacity.get("requestPolicy", {}), amount(consumed[name])
            if share < amount(asked.get(name, policy.get("default", capacity["value"]))):
                wrong.append(f"gives too little {name}")
            if "validValues" in policy and share not in [amount(value) for value in policy["validValues"]]:
                wrong.append(f"gives {consumed[name]} of {name}")
            limits = policy.get("validRange", {})
            if share < amount(limits.get("min", "0")) or share > amount(limits.get("max", capacity["value"])):
                wrong.append(f"gives {consumed[name]} of {name}")
        return wrong

    def constraint(self, constraint, results):
        name = constraint.get("matchAttribute") or constraint["distinctAttribute"]
        values = []
        for result in results:
            attributes = self.devices.get(self.id(result), {}).get("attributes", {})
            value = attributes.get(name) or (attributes.get(name.split("/")[1]) if name.split("/")[0] == result["driver"] else None)
            values.append(json.dumps(value) if value else None)
        wanted = 1 if "matchAttribute" in constraint else len(values)
        return [] if not values or (None not in values and len(set(values)) == wanted) else [f"{constraint} does not hold: {values}"]

    def together(self, new):
        """What all claims have, the new ones and the old ones."""
        wrong = []
        held = [result for result in self.taken + new if not result.get("adminAccess")]
        whole = collections.Counter(self.id(result) for result in held if "shareID" not in result)
        for result in new:
            if not result.get("adminAccess") and whole[self.id(result)] > (0 if "shareID" in result else 1):
                wrong.append(f"{self.id(result)} is given twice")
        shares = [result["shareID"] for result in self.taken + new if "shareID" in result]
        if len(set(shares)) != len(shares):
            wrong.append("two shares have one id")
        for id in {self.id(result) for result in new if "shareID" in result}:
            capacities = self.devices[id].get("capacity", {})
            for name, capacity in capacities.items():
                sum_ = sum(amount(result.get("consumedCapacity", {}).get(name, "0")) for result in held + [one for one in new if one.get("adminAccess")]
                           if self.id(result) == id)
                if sum_ > amount(capacity["value"]):
                    wrong.append(f"{id} gives more {name} than it has")
        before = {self.id(result) for result in self.taken if not result.get("adminAccess")}
        return wrong + self.consumed({self.id(result) for result in held} & self.devices.keys(), {self.id(result) for result in new} - before)

    def consumed(self, held, new):
        used = collections.defaultdict(float)
        for id in held:
            for counters in self.devices[id].get("consumesCounters", ()):
                for name, counter in counters["counters"].items():
                    used[id[:2], (counters["counterSet"], name)] += amount(counter["value"])
        return [f"the counter {name} of {pool} is exceeded" for (pool, name), value in used.items()
                if value > self.counters[pool].get(name, 0) and any(id[:2] == pool and self.devices[id].get("consumesCounters") for id in new)]


def kind(answer):
    return next(word for word in ("results", "error", "none", "late") if word in answer)


def alone(given, asked, refusal):
    """The question about the one claim that is refused."""
    number = re.search(r"its ResourceClaim(?: (\d+) of \d+)?", refusal)[1]
    return {**given, "asked": [{**asked, "claims": [asked["claims"][int(number or 1) - 1]]}], "pods": []}


def compared(results, configs):
    """What must be the same; amounts by value, and shares without their names."""
    kept = []
    for allocation in results:
        devices = []
        for result in allocation["devices"].get("results", ()):
            shared = {"consumedCapacity": {name: amount(text) for name, text in result.get("consumedCapacity", {}).items()}}
            devices.append({key: value for key, value in result.items() if key != "shareID"} | shared)
            devices[-1].update(shared=("shareID" in result), adminAccess=bool(result.get("adminAccess")))
        kept.append((devices, allocation.get("nodeSelector"), allocation["devices"].get("config") if configs else None))
    return kept


class Comparison:
    """What both say, counted; `wrong` has a line for each disagreement."""

    def __init__(self):
        self.counts = collections.Counter()
        self.wrong = []
        self.doubtful = []  # where, and what is to be asked again

    def add(self, seed, given, theirs, ours):
        checker = Checker(given)
        for number, (asked, their, our) in enumerate(zip(given["asked"], theirs["answers"], ours["answers"], strict=True)):
            self.question(f"cluster {seed}, question {number}", checker, asked, their, our)
        for number, (their, our) in enumerate(zip(theirs["pods"], ours["pods"], strict=True)):
            their = {key: value or [] for key, value in their.items()}
            self.counts["pods"] += 1
            if their != our:
                self.wrong.append(f"cluster {seed}, pod {number}: {our}, and Kubernetes says {their}")

    def question(self, where, checker, asked, their, our):
        plain, first = our["plain"], our["first"]
        self.counts["asked"] += 1
        for said in (plain, first, our.get("again", plain)):
            if kind(said) == "results":
                self.wrong += [f"{where}: {why}" for why in checker.mistakes(asked, said["results"])]
        for who, gave_up in (("Kubernetes", kind(their) == "late"), ("drover", TOO_LONG in plain.get("none", "") + first.get("none", ""))):
            self.counts[f"{who} gave up"] += gave_up
            if gave_up:
                return
        self.counts[kind(their), kind(plain)] += 1
        if "results" in (kind(plain), kind(first)) and kind(plain) != kind(first) and "error" not in (kind(plain), kind(first)):
            self.wrong.append(f"{where}: with wishes {first}, without {plain}")
        if kind(plain) == "results":
            self.eligible(where, asked, plain["results"], our["eligible"])
            self.wished(where, plain, our["again"])
        if kind(plain) != kind(their):
            self.differs(where, checker, asked, their, plain)
        elif kind(plain) == "results" and not self.waits(their):
            self.same(where, checker, their, plain)

    @staticmethod
    def waits(their):
        return any("bindingConditions" in result for allocation in their.get("results", ()) for result in allocation["devices"].get("results", ()))

    def same(self, where, checker, their, our):
        configs = checker.given["minor"] >= 37  # earlier ones repeat some
        if compared(their["results"], configs) == compared(our["results"], configs):
            return
        if self.forgets(checker):
            self.counts["counters not given back"] += 1
        else:
            self.wrong.append(f"{where}: {json.dumps(our)}, and Kubernetes gives {json.dumps(their)}")

    @staticmethod
    def forgets(checker):
        """What Kubernetes 1.36 tried in vain, it goes on counting."""
        return checker.given["minor"] < 37 and bool(checker.counters)

    def differs(self, where, checker, asked, their, our):
        waiting = any(device.get("bindingConditions") for device in checker.devices.values())
        if self.waits(their) or "binding conditions" in our.get("none", "") or ("CEL" in their.get("error", "") and waiting):
            self.counts["unsupported"] += 1
        elif kind(our) == "results" and ONE_WAY in their.get("error", ""):
            self.counts["another way"] += 1
        elif kind(our) == "results" and self.forgets(checker):
            self.counts["counters not given back"] += 1
        elif kind(our) == "none" and "CEL runtime error" in their.get("error", ""):
            # It runs into that in the other alternatives of one claim. We do not try them when another claim can be had with none of them.
            self.doubtful.append((where, alone(checker.given, asked, our["none"])))
        elif kind(our) == "results" or kind(their) == "results" or "CEL" in their.get("error", ""):
            self.wrong.append(f"{where}: {json.dumps(our)}, and Kubernetes says {json.dumps(their)}")

    def wished(self, where, plain, again):
        """Who wishes for devices that can be had gets no other ones."""
        sets = [[[(result["request"], *Checker.id(result)) for result in allocation["devices"]["results"]] for allocation in said.get("results", ())]
                for said in (plain, again)]
        shared = any("shareID" in result or "adminAccess" in result for allocation in plain["results"] for result in allocation["devices"]["results"])
        had, has = ([sorted(result[1:] for devices in one for result in devices), sorted(result[0] for devices in one for result in devices)] for one in sets)
        if had[1] != has[1] or (not set(has[0]) <= set(had[0]) if shared else had[0] != has[0]):
            self.wrong.append(f"{where}: {had} are wished for, {has} are given")

    def eligible(self, where, asked, results, eligible):
        """What is given could be given."""
        for claim, allocation, by_request in zip(asked["claims"], results, eligible):
            for result in allocation["devices"]["results"]:
                if list(Checker.id(result)) not in by_request.get(result["request"], ()):
                    self.wrong.append(f"{where}: {claim['metadata']['name']} has {Checker.id(result)}, which is not eligible")


class AllocatorTest(ComparisonTest):
    answers, variable = "ClaimCases.AreAnswered", "CLAIM"

    def make_oracle(self):
        return components.allocator_oracle()

    def make_case(self, seed):
        return claim_cases.cluster(seed, QUESTIONS, components.KUBERNETES_MINOR[1])

    def test_gives_what_kubernetes_gives(self):
        comparison = Comparison()
        first = self.compare_all(-(-int(os.environ.get("DROVER_TEST_CLAIMS", "20000")) // QUESTIONS), comparison.add)
        counts = comparison.counts
        for (where, case), said in zip(comparison.doubtful, self.ask_oracle([case for _, case in comparison.doubtful]), strict=True):
            if kind(said["answers"][0]) != "none":
                comparison.wrong.append(f"{where}: the claim that we refuse, alone, has {said['answers'][0]}")
        counts["refused before an error"] = len(comparison.doubtful)
        print(f"\nKubernetes {components.KUBERNETES_VERSION}, seeds from {first}: asked {counts['asked']} times, "
              f"{len(comparison.wrong)} disagreements")
        print("  (Kubernetes, drover):", {" / ".join(key) if isinstance(key, tuple) else key: value for key, value in sorted(counts.items(), key=str)})
        if comparison.wrong:
            self.fail("\n".join(comparison.wrong[:20]))
        if counts["asked"] >= 5000:  # of each there is enough to compare
            self.assertGreater(counts["results", "results"], counts["asked"] / 8)
            self.assertGreater(counts["error", "error"], counts["asked"] / 50)
            left_out = ("unsupported", "Kubernetes gave up", "drover gave up", "counters not given back", "another way")
            self.assertLess(sum(counts[key] for key in left_out), counts["asked"] / 10)


if __name__ == "__main__":
    unittest.main()
