"""Where a pod may run: src/kube/scheduler against the filters of kube-scheduler itself, over random small clusters.

No node is accepted that kube-scheduler refuses, and none refused that it accepts, unless with what we do not support. DROVER_TEST_PAIRS
says how many pods are placed (20,000), DROVER_TEST_SEED which. DROVER_TEST_SCHEDULER_CASE=NUMBER looks at one cluster alone.
"""

import collections
import os
import unittest

from kube import components, scheduler_cases
from kube.comparison import ComparisonTest

PODS = 10            # that are placed on one cluster
SUPPORTED = "Supported"
VOLUME_PLUGINS = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")
PLUGINS = ("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit", *VOLUME_PLUGINS,
           "PodTopologySpread", "InterPodAffinity", "NodeDeclaredFeatures")
BEFORE = "*"         # what a plugin says before it looks at nodes


class Comparison:
    """What both say, counted; `wrong` has a line for each disagreement."""

    def __init__(self):
        self.pairs = 0
        self.unsupported = 0
        self.nodes = collections.Counter()
        self.refusals = collections.Counter()
        self.wrong = []

    def add(self, seed, given, theirs, ours):
        names = {node["metadata"]["name"] for node in given["nodes"]}
        for pod, their, our in zip(given["incoming"], theirs, ours, strict=True):
            self.pairs += 1
            self.pod(f"cluster {seed}, pod {pod['metadata']['name']}", names, their, our)

    def pod(self, where, names, their, our):
        refused = {plugin: names if BEFORE in said else set(said) for plugin, said in their.items()}
        accepted = names - set().union(*refused.values())
        verdict = our.pop("verdict", {})
        unsupported = set(our.get(SUPPORTED, ()))
        self.unsupported += bool(unsupported)
        self.refusals.update(refused.keys())
        for name in names:
            kind = ("fits" if name in accepted else "refused", "fits" if name not in verdict else
                    "unsupported" if name in unsupported else "refused")
            self.nodes[kind] += 1
            if kind == ("refused", "fits"):
                self.wrong.append(f"{where}: {name} is accepted, against {[plugin for plugin in refused if name in refused[plugin]]}")
            if kind == ("fits", "refused"):
                self.wrong.append(f"{where}: {name} is refused: {verdict[name]}")
        self.plugins(where, refused, unsupported, our)
        if not any(BEFORE in said for said in their.values()) and not unsupported:
            self.reasons(where, accepted, their, verdict, names)

    def plugins(self, where, refused, unsupported, our):
        """Each filter for itself, and those of volumes together: which of them looks for what is not the same."""
        for plugin in PLUGINS:
            if plugin not in VOLUME_PLUGINS and refused.get(plugin, set()) != set(our.get(plugin, ())):
                self.wrong.append(f"{where}: {plugin} refuses {sorted(refused.get(plugin, set()))}, we {our.get(plugin, {})}")
        if not unsupported:
            theirs = set().union(*(refused.get(plugin, set()) for plugin in VOLUME_PLUGINS))
            ours = set().union(*(our.get(plugin, ()) for plugin in VOLUME_PLUGINS))
            if theirs != ours:
                self.wrong.append(f"{where}: volumes refuse {sorted(theirs)}, ours {sorted(ours)}")

    def reasons(self, where, accepted, their, verdict, names):
        """What the first filter says that refuses a node is what is counted."""
        for name in names - accepted:
            plugin = next(plugin for plugin in PLUGINS if name in their.get(plugin, {}))
            said = their[plugin][name]
            if said != ["left out before"] and name in verdict and [plugin, *sorted(said)] != [verdict[name][0], *sorted(verdict[name][1:])]:
                self.wrong.append(f"{where}: {plugin} says of {name} {said}, we {verdict[name]}")


class SchedulerTest(ComparisonTest):
    answers, variable = "SchedulerCases.AreAnswered", "SCHEDULER"

    def make_oracle(self):
        return components.scheduler_oracle()

    def make_case(self, seed):
        return scheduler_cases.cluster(seed, PODS, components.KUBERNETES_MINOR[1])

    def test_decides_as_kube_scheduler_does(self):
        comparison = Comparison()
        first = self.compare_all(-(-int(os.environ.get("DROVER_TEST_PAIRS", "20000")) // PODS), comparison.add)
        print(f"\nKubernetes {components.KUBERNETES_VERSION}, seeds from {first}: {comparison.pairs} pods, "
              f"{comparison.unsupported} of them not supported, {len(comparison.wrong)} disagreements")
        print("  nodes (kube-scheduler, drover):", {" / ".join(kind): count for kind, count in sorted(comparison.nodes.items())})
        print("  pods that a filter refuses somewhere:", dict(sorted(comparison.refusals.items())))
        self.assertEqual(comparison.wrong[:20], [])
        if comparison.pairs >= 20_000:  # of each filter there is enough to compare
            self.assertEqual({plugin for plugin in PLUGINS if comparison.refusals[plugin] < 100}, set())
            self.assertLess(comparison.unsupported, comparison.pairs / 5)


if __name__ == "__main__":
    unittest.main()
