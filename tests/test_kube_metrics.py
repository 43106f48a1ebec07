"""What `drover kube node` tells Prometheus: of real containers on a real cluster; what their processes do is simulated."""

import json
import time
import unittest

import kube
from kube.machine import wait_for
from kube_node import GPU, SEES, NodeTest, gpu_pod, gpus_in
from prometheus import parse, require_parser
from test_kube_claims import ClaimsTest, claim, claiming, request
from test_kube_mig import FIXED, MigNodeTest

ADDRESS = "127.0.0.1:9400"
SCRAPE = "import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1], timeout=60).read().decode())"
CGROUPS = """
import json, pathlib
def read(path):
    try:
        return path.read_text()
    except OSError:
        return ""
print(json.dumps({int(p.name): read(p / "cgroup") for p in pathlib.Path("/proc").iterdir() if p.name.isdigit()}))
"""
SHARED = {"version": "v1", "sharing": {"timeSlicing": {"resources": [{"name": GPU, "replicas": 2}]}}}


class MetricsTest(NodeTest):
    answers = ("drover_source_up", "drover_gpu_answers")  # what is waited for before anything is looked at

    @classmethod
    def setUpClass(cls):
        require_parser()
        super().setUpClass()

    @classmethod
    def flags(cls):
        return ("--metrics-address", ADDRESS)

    def read(self, path="/metrics"):
        return self.node.exec("python3", "-c", SCRAPE, f"http://{ADDRESS}{path}").stdout

    def scrape(self):
        """Once everybody has answered in time who is asked for it."""
        def answered():
            time.sleep(1.1)  # within a second all are told the same
            found = parse(self.read())
            return found if all(value for name in self.answers for _, value in found[name]) else None

        return wait_for(answered, lambda: f"an answer of everybody: {self.read()}")

    def of_gpu(self, series, name, minor):
        """The one series of that GPU."""
        found = [each for each in series[name] if each[0]["device"] == f"nvidia{minor}"]
        self.assertEqual(len(found), 1, found)
        return found[0]

    @staticmethod
    def owner(labels):
        return tuple(labels.get(name) for name in ("namespace", "pod", "container"))

    def owned(self, series, name):
        """(minor, owner) -> value."""
        return {(int(labels["device"][6:]), self.owner(labels)): value for labels, value in series.get(name, ())}

    def process_of(self, pod, container="main"):
        """The node's id of the process of a container."""
        statuses = self.cluster.get("pod", pod)["status"]["containerStatuses"]
        wanted = next(status["containerID"].split("//")[1] for status in statuses if status["name"] == container)
        found = json.loads(self.node.exec("python3", "-c", CGROUPS).stdout)
        return next(int(pid) for pid, cgroup in found.items() if wanted in cgroup)


class WholeGpusTest(MetricsTest):
    def test_a_gpu_and_its_process_are_the_container_s_as_long_as_it_runs(self):
        self.addCleanup(self.set_faults, {})
        mine, = gpus_in(self.run_gpu_pod("train", {GPU: 1})[0])
        pid = self.process_of("train")
        self.set_faults({str(mine): {"utilization": {"gpu": 80, "memory": 30}, "temperature": 66,
                                     "processes": [{"pid": pid, "memory_mib": 2048, "utilization": {"sm": 75}}]}})
        series = self.scrape()
        who = ("default", "train", "main")
        labels, value = self.of_gpu(series, "DCGM_FI_DEV_GPU_UTIL", mine)
        self.assertEqual((self.owner(labels), value), (who, 80))
        self.assertEqual(labels["Hostname"], self.node.name)
        self.assertRegex(labels["UUID"], "^GPU-")
        self.assertRegex(labels["pci_bus_id"], "^0000[0-9A-F]{4}:[0-9A-F]{2}:[0-9A-F]{2}[.]0$")
        self.assertEqual((labels["gpu"], labels["modelName"]), (str(mine), "NVIDIA A100-SXM4-40GB"))
        self.assertEqual(self.of_gpu(series, "DCGM_FI_DEV_FB_USED", mine)[1], 2048)
        self.assertEqual(self.of_gpu(series, "DCGM_FI_DEV_GPU_TEMP", mine)[1], 66)
        self.assertEqual(self.of_gpu(series, "drover_gpu_allocated", mine)[1], 1)
        self.assertEqual(self.owned(series, "drover_container_gpu_memory_bytes"), {(mine, who): 2048 << 20})
        self.assertEqual(self.owned(series, "drover_container_gpu_sm_percent"), {(mine, who): 75})
        process, value = self.of_gpu(series, "drover_process_gpu_memory_bytes", mine)
        self.assertEqual((process["pid"], process["process"], self.owner(process), value), (str(pid), "probe", who, 2048 << 20))
        self.assertEqual(len(series["DCGM_FI_DEV_GPU_UTIL"]), 8)
        self.assertEqual(dict((labels["source"], value) for labels, value in series["drover_source_up"]),
                         {"kubelet": 1, "container-runtime": 1})

        self.cluster.delete("pod", "train")
        series = wait_for(lambda: (found := self.scrape()) if "train" not in self.read() else None, "the pod's series to be gone")
        self.assertEqual(self.of_gpu(series, "drover_gpu_allocated", mine)[1], 0)
        self.assertEqual(len(series["DCGM_FI_DEV_GPU_UTIL"]), 8)
        self.assertEqual(self.of_gpu(series, "drover_process_gpu_memory_bytes", mine)[0].get("pod"), None)

    def test_containers_of_a_pod_have_gpus_of_their_own(self):
        pod = gpu_pod("pair", {GPU: 1})
        pod["spec"]["containers"].append({**pod["spec"]["containers"][0], "name": "second"})
        self.run_pod(pod)
        minors = {name: gpus_in(self.cluster.logs("pair", "--container", name)).pop() for name in ("main", "second")}
        series = self.scrape()
        for name, minor in minors.items():
            self.assertEqual(self.owner(self.of_gpu(series, "DCGM_FI_DEV_FB_FREE", minor)[0]), ("default", "pair", name))
        self.assertEqual(self.owned(series, "drover_container_gpu_memory_bytes"),
                         {(minor, ("default", "pair", name)): 0 for name, minor in minors.items()})

    def test_a_pod_that_has_ended_is_not_told_of_beside_the_next_one(self):
        self.make_pod(gpu_pod("ended", {GPU: 8}, "devices"))
        self.cluster.wait("pod", "ended", lambda pod: pod and pod["status"].get("phase") == "Succeeded")
        self.run_gpu_pod("next", {GPU: 8})
        series = self.scrape()
        self.assertEqual({self.owner(labels) for labels, _ in series["DCGM_FI_DEV_GPU_UTIL"]}, {("default", "next", "main")})
        self.assertEqual(len(series["drover_container_gpu_allocated"]), 8)

    def test_an_xid_shows_at_its_gpu(self):
        self.addCleanup(self.set_faults, {})
        self.set_faults({"2": {"xid": [79, 79], "recovery_action": "reset"}})
        wanted = [("nvidia2", "79", 2)]

        def xids(found):
            return [(labels["device"], labels["xid"], value) for labels, value in found.get("drover_gpu_xid_errors_total", ())]

        series = wait_for(lambda: (found := self.scrape()) and xids(found) == wanted and found, lambda: f"{wanted}: {self.read()}")
        self.assertEqual(self.of_gpu(series, "drover_gpu_healthy", 2)[1], 0)
        self.assertEqual(self.of_gpu(series, "DCGM_FI_DEV_XID_ERRORS", 2)[1], 79)
        self.assertEqual(self.of_gpu(series, "DCGM_FI_DEV_XID_ERRORS", 3)[1], 0)
        self.assertEqual(self.of_gpu(series, "drover_gpu_healthy", 3)[1], 1)
        self.assertIn(("xid", "79", "true"),
                      [(labels["reason"], labels["number"], labels["takes_out"]) for labels, _ in series["drover_gpu_trouble"]])
        self.set_faults({"2": {"xid": [79, 79], "recovery_action": "none"}})  # it was reset
        self.wait_for_allocatable(8)


class HangingGpuTest(MetricsTest):
    answers = ("drover_source_up",)

    def test_a_gpu_that_hangs_holds_up_no_scrape(self):
        self.addCleanup(self.set_faults, {})
        self.set_faults({"1": {"slow_ms": 4000}})
        for _ in range(2):
            series = self.scrape()
            self.assertEqual(self.of_gpu(series, "drover_gpu_answers", 1)[1], 0)
            self.assertEqual(self.of_gpu(series, "drover_gpu_answers", 0)[1], 1)
            self.assertEqual(len(series["DCGM_FI_DEV_GPU_UTIL"]), 7)
            # Not how long it takes, but that it gives up where Prometheus has not yet.
            self.assertLess(series["drover_scrape_seconds"][0][1], 10)
        self.assertEqual(self.read("/healthz"), "ok\n")


class SharedGpusTest(MetricsTest):
    config = SHARED
    profile = "k40m"

    def test_a_shared_gpu_is_counted_once_and_each_container_by_itself(self):
        self.addCleanup(self.set_faults, {})
        for name in ("one", "two"):
            self.run_gpu_pod(name, {GPU: 1})
        pids = {name: self.process_of(name) for name in ("one", "two")}
        self.set_faults({"0": {"processes": [{"pid": pids["one"], "memory_mib": 100}, {"pid": pids["two"], "memory_mib": 300}]}})
        series = self.scrape()
        self.assertEqual([(self.owner(labels), value) for labels, value in series["DCGM_FI_DEV_FB_USED"]],
                         [(("default", None, None), 400)])
        self.assertEqual(self.owned(series, "drover_container_gpu_memory_bytes"),
                         {(0, ("default", "one", "main")): 100 << 20, (0, ("default", "two", "main")): 300 << 20})
        self.assertEqual(set(self.owned(series, "drover_container_gpu_allocated").values()), {1})


class ClaimedGpusTest(MetricsTest, ClaimsTest):
    def test_a_claimed_gpu_is_that_of_both_containers(self):
        self.make(claim("shared", [request()]))
        pod = claiming(kube.pod("pair", *SEES), claim_name="shared")
        pod["spec"]["containers"].append({**pod["spec"]["containers"][0], "name": "second"})
        self.run_pod(pod)
        minor, = gpus_in(self.cluster.logs("pair", "--container", "main"))
        series = self.scrape()
        self.assertEqual(self.owner(self.of_gpu(series, "DCGM_FI_DEV_FB_FREE", minor)[0]), ("default", "pair", None))
        self.assertEqual(self.owned(series, "drover_container_gpu_allocated"),
                         {(minor, ("default", "pair", name)): 1 for name in ("main", "second")})
        self.cluster.delete("pod", "pair")


class CutGpusTest(MetricsTest, MigNodeTest):
    config = {"version": "v1", "flags": {"migStrategy": "mixed"}}

    def test_instances_are_told_with_those_who_have_them(self):
        self.addCleanup(self.set_faults, {})
        self.bring_fixed_instance()
        self.wait_for_allocatable(1, "nvidia.com/mig-2g.10gb")
        self.run_gpu_pod("limited", {"nvidia.com/mig-2g.10gb": 1})
        self.run_part("claimed", "3g.20gb", gpu=3)
        made = next(one["id"] for one in self.instances(3) if one["profile"] == "3g.20gb")
        self.set_faults({"3": {"utilization": {"gpu": 70}, "processes": [
            {"pid": self.process_of(pod), "memory_mib": memory, "gpu_instance": instance, "compute_instance": 0}
            for pod, memory, instance in (("limited", 100, 5), ("claimed", 300, made))]}})
        series = wait_for(lambda: (found := self.scrape()) and len(self.by_instance(found, "DCGM_FI_DEV_FB_USED")) == 2 and found,
                          lambda: f"two instances in {self.read()}")
        parts = {"limited": ("2g.10gb", "5", ("default", "limited", "main")), "claimed": ("3g.20gb", str(made), ("default", "claimed", "main"))}
        mib = {parts["limited"]: 100, parts["claimed"]: 300}
        self.assertEqual(self.by_instance(series, "DCGM_FI_DEV_FB_USED"), mib)
        self.assertEqual(self.by_instance(series, "DCGM_FI_DEV_FB_TOTAL"), {parts["limited"]: 9856, parts["claimed"]: 19968})
        for name in ("drover_container_gpu_memory_bytes", "drover_process_gpu_memory_bytes"):
            self.assertEqual(self.by_instance(series, name), {part: used << 20 for part, used in mib.items()}, name)
        self.assertEqual(self.by_instance(series, "drover_container_gpu_allocated"), dict.fromkeys(mib, 1))
        self.assertEqual(self.of_gpu(series, "DCGM_FI_DEV_GPU_TEMP", 3)[0].get("GPU_I_ID"), None)
        for name in ("DCGM_FI_DEV_GPU_UTIL", "drover_container_gpu_sm_percent", "drover_process_gpu_sm_percent"):
            self.assertEqual([labels for labels, _ in series.get(name, ()) if labels["device"] == "nvidia3"], [], name)
        self.assertEqual([value for _, value in series["drover_kube_prepare_seconds_count"]], [1])
        self.cluster.delete("pod", "limited", "claimed")

    def by_instance(self, series, name):
        """(profile, id, owner) -> value, of the last GPU."""
        return {(labels.get("GPU_I_PROFILE"), labels.get("GPU_I_ID"), self.owner(labels)): value
                for labels, value in series.get(name, ()) if labels["device"] == "nvidia3"}


if __name__ == "__main__":
    unittest.main()
