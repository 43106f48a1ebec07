"""Claims of a part of a GPU that hold: pods of a real kubelet see their share as the whole card, and get no more of it. The GPUs are
simulated; what refuses programs is the guard's libraries, which the claim's CDI device brings."""

import datetime
import pathlib
import re
import tempfile
import time
import unittest

import cuda_python
import kube_guard
import test_guard
from kube.components import KUBERNETES_MINOR
from kube.machine import wait_for
from kube_guard import CONTEXT, GIB, SLEEP, hold, memory_in, pod
from test_kube_claims import DRIVER, ClaimsTest, claim, request
from test_share_referee import ENDED, SEEN

SHARE = 10 * GIB  # a quarter of an A100 with 40 GiB
SHARES = f"/var/lib/kubelet/plugins/{DRIVER}/shares"


@unittest.skipIf(KUBERNETES_MINOR < (1, 36), "parts of devices are given since 1.36")
class GuardedClaimsTest(kube_guard.Shares, ClaimsTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.import_image()

    @classmethod
    def flags(cls):
        return ("--claim-sharing", "memory", *super().flags())

    def tearDown(self):
        """Cleanups come after this, and pods end before their claims: nothing stays prepared."""
        self.doCleanups()
        wait_for(lambda: self.specifications() == [] and self.pages() == [],
                 lambda: f"nothing to be left of claims: {self.specifications()}, {self.pages()}; {self.agent.tail()}")
        super().tearDown()

    def pages(self):
        folder = self.node.path(SHARES)
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def claim(self, name="gpus", memory="10Gi", gpu="gpu-0", **more):
        """A share of a GPU; the whole of one without `memory`."""
        only = {"cel": {"expression": f"device.attributes['{DRIVER}'].uuid == '{self.uuid_of(gpu)}'"}}
        capacity = {"capacity": {"requests": {"memory": memory}}} if memory else {}
        self.make(claim(name, [request(selectors=[only], **capacity, **more)]))

    def uuid_of(self, name):
        return self.devices()[name]["attributes"]["uuid"]["string"]

    def told_of(self, claim_name):
        """By reason: what events say of the claim that is there now."""
        uid = self.cluster.get("resourceclaim", claim_name)["metadata"]["uid"]
        return wait_for(lambda: {event["reason"]: event["message"] for event in self.cluster.events(claim_name)
                                 if event["involvedObject"].get("uid") == uid}, "an event of the claim")


class MemoryTest(GuardedClaimsTest):
    def test_a_share_is_all_that_a_pod_sees_and_gets(self):
        self.claim()
        text, status = self.run_to_end("sees", "/cuda_check", "info")
        self.assertEqual((memory_in(text), status), ((SHARE - CONTEXT, SHARE), 0), text)
        text, status = self.run_to_end("fills", *hold(SHARE - CONTEXT - 4))
        self.assertEqual(status, 0, text)
        self.assertEqual(self.run_to_end("beyond", *hold(SHARE))[1], 2, "refused as a full card refuses")
        self.assertEqual(self.told_of("gpus"), {"ShareGuarded": "pods see as the whole card, and are refused more than, 10 GiB of GPU 0"})

    def test_who_has_the_whole_gpu_sees_all_of_it(self):
        self.claim(memory=None)
        text, status = self.run_to_end("whole", "/cuda_check", "info")
        self.assertGreater(memory_in(text)[1], 39 * GIB)
        self.assertEqual(self.pages(), [])

    def test_a_share_too_small_for_the_guard_is_counted_and_the_log_says_so(self):
        self.claim(memory="512Mi")
        text, status = self.run_to_end("small", "/cuda_check", "info")
        self.assertGreater(memory_in(text)[1], 39 * GIB)
        self.assertIn("nothing holds pods to 512 MiB of GPU 0", self.told_of("gpus")["ShareCounted"])
        self.assertIn("the share of the claim 'default/gpus' is counted, and nothing enforces it", self.agent.read_log())

    def entries(self, name):
        """What the claim's status says of its devices, without what it says of them by name."""
        claim = self.cluster.get("resourceclaim", name)
        return [({"data": entry["data"], **{each["type"]: each["status"] for each in entry["conditions"]}})
                for entry in (claim or {}).get("status", {}).get("devices", ())]

    def wait_for_entries(self, name, *entries):
        wait_for(lambda: self.entries(name) == list(entries),
                 lambda: f"{entries} in the status of {name}: {self.cluster.get('resourceclaim', name)}; {self.agent.tail()}")

    def test_the_claim_s_status_tells_its_tier_whatever_becomes_of_the_agent(self):
        guarded = {"data": {"tier": "guarded", "heldBy": "guard", "memoryBytes": SHARE << 20, "computePercent": 25.2}, "Ready": "True", "ShareEnforced": "True"}
        self.claim()
        self.claim("small", memory="512Mi")
        self.claim("whole", memory=None, gpu="gpu-1")
        for name in ("gpus", "small", "whole"):
            self.run_pod(pod(f"has-{name}", SLEEP, claims=(name,)))
        self.wait_for_entries("gpus", guarded)
        self.wait_for_entries("small", {"data": {"tier": "counted", "heldBy": "nothing", "memoryBytes": 512 << 20, "computePercent": 1.2},
                                        "Ready": "True", "ShareEnforced": "False"})
        self.assertEqual(self.entries("whole"), [])
        (entry,) = self.cluster.get("resourceclaim", "gpus")["status"]["devices"]
        (result,) = self.cluster.get("resourceclaim", "gpus")["status"]["allocation"]["devices"]["results"]
        self.assertEqual({key: entry[key] for key in ("driver", "pool", "device", "shareID")},
                         {key: result[key] for key in ("driver", "pool", "device", "shareID")})
        self.agent.kill()
        self.cluster.kubectl("patch", "resourceclaim", "gpus", "--subresource=status", "--type=merge", "--patch", '{"status": {"devices": null}}')
        self.assertEqual(self.entries("gpus"), [])
        self.agent.start()
        self.wait_for_entries("gpus", guarded)
        self.cluster.delete("pod", "has-gpus")
        self.wait_for_entries("gpus")

    def test_containers_of_a_claim_have_its_share_together_whatever_becomes_of_the_agent(self):
        self.claim()
        self.run_pod(pod("pair", hold(6 * GIB, "sleep", 10000), SLEEP))
        self.wait_until_held("pair")
        (uid,) = self.pages()
        page = self.node.path(f"{SHARES}/{uid}/share/account")
        before = page.stat().st_ino
        for again in (False, True, False):
            with self.subTest(killed=again):
                if again:
                    self.agent.kill()
                self.assertEqual(self.exec("pair", *hold(6 * GIB), container="c1").returncode, 2)
                self.assertIn("held 3072", self.exec("pair", *hold(3 * GIB), container="c1").stdout)
                if again:
                    self.agent.start()
                    wait_for(self.charged, lambda: f"the pages to be looked at again; {self.agent.tail()}")
                self.assertEqual(page.stat().st_ino, before, "pages are never made anew")
        self.assertEqual(set(self.charged()), {(6 * GIB + CONTEXT) << 20})

    def test_two_pods_have_their_own_shares_of_one_gpu(self):
        for name in ("one", "two"):
            self.claim(name)
            self.run_pod(pod(name, hold(8 * GIB, "sleep", 10000), claims=(name,)))
        for name in ("one", "two"):
            self.wait_until_held(name)
            self.assertEqual(self.exec(name, *hold(2 * GIB)).returncode, 2)
        wait_for(lambda: self.tiers() == {("one", "guarded"), ("two", "guarded")}, lambda: f"both to be told of: {self.tiers()}")

    def test_time_is_shared_as_memory_is(self):
        ran = {}
        for name, memory in (("quarter", "10Gi"), ("rest", "29Gi")):
            self.claim(name, memory=memory)
            self.make_pod(pod(name, ("/cuda_check", "share", 2000, 12), claims=(name,)))
        for name in ("quarter", "rest"):
            self.cluster.wait_until_ended(name)
            ran[name] = int(re.search(r"shared (\d+)", self.cluster.logs(name))[1])
        self.assertLess(1.5 * ran["quarter"], ran["rest"], "guard_test measures how exact that is; pods start seconds apart")

    def test_who_goes_round_the_guard_is_ended_and_nobody_else(self):
        for name in ("good", "bad"):
            self.claim(name)
        self.run_pod(pod("good", hold(512, "sleep", 10000), claims=("good",)))
        self.make_pod(pod("bad", hold(12 * GIB, "sleep", 10000), claims=("bad",),
                          env=[{"name": "CUDA_LIBRARY", "value": test_guard.BEHIND}]))
        self.cluster.wait_until_ended("bad")
        self.assertRegex(self.agent.read_log(), r"the container 'c0' of the pod 'default/bad' held 12\.\d GiB of GPU 0 and may hold 10 GiB")
        self.assertEqual(self.cluster.get("pod", "good")["status"]["phase"], "Running")
        held, _ = self.cluster.kubectl("logs", "bad", "--timestamps").stdout.split("Z held", 1)
        seen = self.seen_at("bad") - self.instant(held.rsplit(None, 1)[-1])
        print(f"over its share by 2 GiB as soon as it was started: seen after {seen * 1000:.0f} ms")
        self.assertLess(seen, SEEN)
        wait_for(lambda: any("of GPU 0 and may hold 10 GiB: it is ended" in event["message"] for event in self.cluster.events("bad")
                             if event["reason"] == "GpuShareExceeded"), "an event")

    def seen_at(self, name):
        """When the agent told that the pod's container holds too much."""
        return self.instant(re.search(rf"^(\S+)Z .* of the pod 'default/{name}' held", self.agent.read_log(), re.MULTILINE).group(1))

    @staticmethod
    def instant(text):
        return datetime.datetime.fromisoformat(text[:26] + "+00:00").timestamp()

    def test_who_holds_more_is_seen_and_ended_at_once(self):
        self.claim()
        self.run_pod(pod("greedy", SLEEP))
        container = self.cluster.get("pod", "greedy")["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
        place, = self.node.exec("sh", "-c", f"grep -l {container} /proc/[0-9]*/cgroup").stdout.split()
        pid = int(place.split("/")[2])
        end = self.node.run_inside(["tail", f"--pid={pid}", "--sleep-interval=0.01", "--follow", "/dev/null"], name="end")
        self.addCleanup(self.set_faults, {})
        wait_for(lambda: self.tiers() == {("greedy", "guarded")}, lambda: f"it to be looked at: {self.tiers()}")
        self.set_faults({self.uuid_of("gpu-0"): {"processes": [{"pid": pid, "memory_mib": SHARE + 4 * GIB}]}})
        began = time.time()
        wait_for(lambda: not end.running(), lambda: f"its end; {self.agent.tail()}", pause=0.005)
        ended = time.time() - began
        seen = self.seen_at("greedy") - began
        print(f"over its share by 4 GiB: seen after {seen * 1000:.0f} ms, ended after {ended * 1000:.0f} ms")
        self.assertLess(seen, SEEN)
        self.assertLess(ended, ENDED)
        self.assertIn("held 14 GiB of GPU 0 and may hold 10 GiB", self.agent.read_log())

    def check_refusal(self, name):
        told = self.refusal_of(name)
        self.assertIn("something else is at '/", told)
        self.assertIn("all its GPUs by one claim", told)

    # A kubelet that still takes a claim back of one pod may not know it when the next one starts: each pod has claims of its own.

    def test_a_container_with_two_shares_by_two_claims_is_refused_in_a_sentence(self):
        self.claim("first")
        self.claim("second", gpu="gpu-1")
        self.make_pod(pod("both", SLEEP, claims=("first", "second")))
        self.check_refusal("both")

    def test_a_container_with_a_share_and_a_whole_gpu_by_two_claims_is_held_or_refused(self):
        """Which of the two it is, is the kubelet's: it hands a container's claims to the runtime in no order, and the last one's files
        win."""
        self.claim("share")
        self.claim("whole", gpu="gpu-1", memory=None)
        for name in ("once", "twice", "thrice"):
            self.make_pod(pod(name, SLEEP, claims=("share", "whole")))
        for name in ("once", "twice", "thrice"):
            with self.subTest(name):
                if not self.held_or_refused(name, SHARE):
                    self.check_refusal(name)

    def test_one_claim_may_have_a_share_and_a_whole_gpu(self):
        only = [{"cel": {"expression": f"device.attributes['{DRIVER}'].uuid == '{self.uuid_of(gpu)}'"}} for gpu in ("gpu-0", "gpu-1")]
        share = request(selectors=[only[0]], capacity={"requests": {"memory": "10Gi"}})
        self.make(claim("gpus", [{**share, "name": "share"}, {**request(selectors=[only[1]]), "name": "whole"}]))
        self.run_pod(pod("both", SLEEP))
        self.assertEqual(memory_in(self.exec("both", "/cuda_check", "info").stdout)[1], SHARE)
        self.assertEqual(self.exec("both", *hold(SHARE)).returncode, 2)


class PythonTest(GuardedClaimsTest):
    """Programs of others, as their authors publish them."""

    @classmethod
    def setUpClass(cls):
        cuda_python.packages()
        super().setUpClass()
        cls.import_image("python", more=cuda_python.files())

    def test_they_run_unchanged_and_a_full_share_is_their_own_exception(self):
        self.claim()
        folders = cuda_python.folders()
        for role in ("bindings", "numba"):
            with self.subTest(role):
                made = pod(role, cuda_python.command(role, 2 * SHARE << 20), image="python",
                           env=[{"name": name, "value": value} for name, value in cuda_python.environment().items()])
                made["spec"]["volumes"] = [{"name": f"v{index}", "hostPath": {"path": path}} for index, path in enumerate(folders)]
                made["spec"]["containers"][0]["volumeMounts"] = [{"name": f"v{index}", "mountPath": path, "readOnly": True}
                                                                 for index, path in enumerate(folders)]
                text, status = self.end_of(made)
                self.assertEqual(status, 0, text)
                cuda_python.check_share(self, text, SHARE)


class SpoiltTest(GuardedClaimsTest):
    """A pod, and an image, that mean harm: nothing of it gets more than its share, and nobody else is short of anything."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with tempfile.TemporaryDirectory() as folder:
            spoil = kube_guard.spoil_program()
            images = [kube_guard.make_image(pathlib.Path(folder) / name, name, more=spoil, links=links) for name, links in {
                "spoil": (), "linked": (("usr/local/nvidia", "/tmp"),), "climbing": (("usr/local/nvidia/share", "../../../../../../../etc"),),
                "proc": (("usr/local/nvidia", "/proc/1/root/tmp"),), "own": (("usr/local/nvidia/share/limits", "/etc/passwd"),)}.items()]
            cls.node.import_images(images)

    def test_an_account_that_is_spoilt_is_the_loss_of_its_pod_alone(self):
        for name in ("victim", "mallory"):
            self.claim(name)
        self.run_pod(pod("victim", hold(9 * GIB, "sleep", 10000), claims=("victim",)))
        self.wait_until_held("victim")
        for way in ("garbage", "lies", "empty", "short", "grow"):
            with self.subTest(way):
                self.run_pod(pod(way, ("/spoil", "/usr/local/nvidia/share/account", way), image="spoil", claims=("mallory",)))
                wait_for(lambda each=way: each in self.cluster.kubectl("logs", each).stdout, "it to be done")
                sizes = [page.stat().st_size for page in self.node.path(SHARES).glob("*/share/account")]
                wait_for(lambda: len({page.stat().st_size for page in self.node.path(SHARES).glob("*/share/account")}) == 1,
                         f"its size to be put right: {sizes}")
                self.assertEqual(self.exec("victim", *hold(GIB)).returncode, 2, "who is full, is full")
                self.assertIn("held 256", self.exec("victim", *hold(256)).stdout)
                self.assertTrue(self.agent.running())
                self.cluster.delete("pod", way)

    def test_limits_cannot_be_written_by_root_and_variables_change_nothing(self):
        self.claim()
        text, status = self.run_to_end("writes", "/spoil", "/usr/local/nvidia/share/limits", "garbage", image="spoil")
        self.assertEqual(status, 1, text)
        for index, env in enumerate(({"DROVER_GUARD_LIMITS": "/nothing", "DROVER_GUARD_ACCOUNT": "/nothing"}, {"NVIDIA_VISIBLE_DEVICES": "all"},
                                     {"LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu:/usr/lib64:/lib64:/usr/lib"})):
            with self.subTest(env):
                _, status = self.run_to_end(f"env{index}", *hold(SHARE), env=[{"name": key, "value": value} for key, value in env.items()])
                self.assertEqual(status, 2)

    def test_an_image_leads_nobody_elsewhere(self):
        self.claim()
        runs = {}
        for image in ("linked", "climbing", "proc", "own"):
            with self.subTest(image):
                self.make_pod(pod(image, SLEEP, image=image))
                runs[image] = self.held_or_refused(image, SHARE)
        self.assertTrue(runs["linked"], "a link within the image is an image's own affair")

    def test_a_volume_over_the_guard_gets_nothing(self):
        self.claim()
        for index, place in enumerate(("/usr/local/nvidia", "/usr/local/nvidia/share", "/usr/local/nvidia/share/limits", "/usr/local/nvidia/guard")):
            with self.subTest(place):
                made = pod(f"over{index}", SLEEP)
                made["spec"]["volumes"] = [{"name": "own", "emptyDir": {}}]
                made["spec"]["containers"][0]["volumeMounts"] = [{"name": "own", "mountPath": place}]
                self.make_pod(made)
                self.held_or_refused(f"over{index}", SHARE)


if __name__ == "__main__":
    unittest.main()
