"""A hundred pods through eight GPUs while the kubelet and the plugin are killed and GPUs fail.

Who uses what is looked at from inside the containers: each takes a lock of every GPU that it sees, and writes when it begins and ends.
DROVER_SEED plays one run again.
"""

import collections
import contextlib
import json
import os
import random
import time
import unittest

import drover
import kube
from kube.machine import wait_for
from kube_node import GPU, gpu_pod
from test_kube_claims import ClaimsTest, claim, claiming, request

PODS = 100
SHARED = "/var/lib/chaos"
# A lock is its container's as long as that lives. A GPU that may be used answers ENXIO: no driver is behind a simulated one.
WORK = f"""
cd {SHARED}
gpus=$(ls /dev | sed -n 's/^nvidia\\([0-9][0-9]*\\)$/\\1/p')
[ $(echo $gpus | wc -w) = $COUNT ] || echo "$NAME has not $COUNT GPUs but: $gpus" >> violations
descriptor=3
for gpu in $gpus; do
  eval "exec $descriptor<>gpu$gpu"
  [ "$(/probe lock $descriptor)" = ok ] || echo "$NAME has GPU $gpu, which another one has" >> violations
  [ "$(/probe open /dev/nvidia$gpu)" = ENXIO ] || echo "$NAME may not use GPU $gpu" >> violations
  descriptor=$((descriptor + 1))
done
echo "$NAME begins" >> log
sleep $DURATION
echo "$NAME ends" >> log
"""


def reason_of(status):
    """Why a pod has failed."""
    ended = [container["state"].get("terminated", {}).get("reason") for container in status.get("containerStatuses", ())]
    return status.get("reason") or ", ".join(filter(None, ended))


class ChaosTest(ClaimsTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = cls.node.path(SHARED)
        cls.folder.mkdir()

    def setUp(self):
        seed = int(os.environ.get("DROVER_SEED", time.time()))
        print(f"seed {seed}", flush=True)
        self.random = random.Random(seed)
        self.remade, self.interrupted, self.rejected_afterwards = collections.Counter(), collections.Counter(), set()
        for count in (1, 2, 3):
            template = claim(f"take-{count}", [request(count)], kind="ResourceClaimTemplate")
            self.addCleanup(self.cluster.delete, "resourceclaimtemplate", f"take-{count}")
            self.cluster.apply(template)

    def pod(self, number):
        """One of the hundred, by a limit or by a claim."""
        name, count = f"chaos-{number}", self.random.choice((1, 1, 1, 2, 2, 3))
        variables = {"NAME": name, "COUNT": str(count), "DURATION": f"{self.random.uniform(0.2, 3):.1f}"}
        more = {"image": kube.SHELL, "command": ["sh", "-c", WORK], "env": [{"name": key, "value": value} for key, value in variables.items()],
                "volumeMounts": [{"name": "shared", "mountPath": SHARED}]}
        made = gpu_pod(name, {GPU: count}, **more) if self.random.random() < 0.5 else \
            claiming(kube.pod(name, **more), template=f"take-{count}")
        made["spec"]["volumes"] = [{"name": "shared", "hostPath": {"path": SHARED}}]
        return made

    def faults(self):
        """What is broken on purpose, and how it is mended, for each GPU once: a second time it would stay out for longer."""
        kinds = [({"lost": True}, {}), ({"absent": True}, {}),
                 ({"xid": [79], "recovery_action": "reset"}, {"recovery_action": "none"})]
        gpus = list(range(8))
        self.random.shuffle(gpus)
        return [(str(gpu), *kinds[index % len(kinds)]) for index, gpu in enumerate(gpus)]

    def wreak_havoc(self, unfinished):
        """One thing after the other, as long as there is something to disturb."""
        faults, mended = self.faults(), {}
        done = collections.Counter()
        while unfinished():
            what = self.random.choice(("kubelet", "plugin", "fault"))
            if what == "kubelet":
                self.node.kubelet.restart()
            elif what == "plugin":
                self.agent.restart()
            elif faults:
                gpu, broken, whole = faults.pop()
                self.set_faults({**mended, gpu: broken})
                time.sleep(self.random.uniform(1, 4))
                mended[gpu] = whole
                self.set_faults(mended)
            else:
                continue
            done[what] += 1
            self.wait_for_progress(unfinished)
            time.sleep(self.random.uniform(0, 5))
        return done

    def wait_for_progress(self, unfinished):
        """Until a pod has begun or ended, as a slow machine needs it; or for a while."""
        before = self.lines("log")
        with contextlib.suppress(AssertionError):
            drover.wait_for(lambda: self.lines("log") != before or not unfinished(), "progress", timeout=30, pause=0.5)

    def lines(self, name):
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def test_a_hundred_pods_end_once_each_and_no_gpu_has_two_users(self):
        pods = {pod["metadata"]["name"]: pod for pod in map(self.pod, range(PODS))}
        self.addCleanup(self.cluster.delete, "pod", *pods)
        self.addCleanup(self.set_faults, {})
        self.cluster.apply(list(pods.values()))
        started, deadline = time.monotonic(), time.monotonic() + 900

        def unfinished():
            left = []
            for pod in self.cluster.list("pods"):
                name, status = pod["metadata"]["name"], pod["status"]
                # A kubelet without a plugin rejects pods, and one that is killed while it starts a container gives up on it.
                # Then a pod has failed whose work was not done, and controllers make it anew. It rejects those too that have
                # ended while it was away, and then calls some of them failed.
                if status["phase"] == "Failed" and f"{name} ends" in self.lines("log"):
                    self.rejected_afterwards.add(name)
                    continue
                if status["phase"] == "Failed":
                    self.remade[reason_of(status)] += 1
                    self.interrupted[name] = self.lines("log").count(f"{name} begins")
                    self.cluster.delete("pod", name)
                    self.cluster.apply(pods[name])
                if status["phase"] != "Succeeded":
                    left.append(name)
            self.assertLess(time.monotonic(), deadline, f"unfinished: {left}; {self.agent.tail()}")
            return left

        havoc = self.wreak_havoc(unfinished)
        took = time.monotonic() - started
        print(f"{PODS} pods in {took:.0f} s; {dict(havoc)}; made anew: {dict(self.remade)}; "
              f"rejected after they had ended: {len(self.rejected_afterwards)}", flush=True)
        self.assertEqual(self.lines("violations"), [])
        self.assertLessEqual(set(self.remade), {"UnexpectedAdmissionError", "StartError", "ContainerStatusUnknown"})
        # Restarts count for nothing: a kubelet killed between making a container and starting it makes another one.
        expected = {f"{name} ends": 1 for name in pods} | {f"{name} begins": 1 + self.interrupted[name] for name in pods}
        self.assertEqual(dict(collections.Counter(self.lines("log"))), expected)
        self.assert_nothing_is_left(pods)

    def assert_nothing_is_left(self, pods):
        self.cluster.delete("pod", *pods)
        wait_for(lambda: self.cluster.list("resourceclaims") == [], "claims to go with their pods")
        checkpoint = self.node.path("/var/lib/kubelet/plugins/gpu.nvidia.com/checkpoint.json")
        wait_for(lambda: self.specifications() == [] and json.loads(checkpoint.read_text())["claims"] == [],
                 lambda: f"no claim to stay prepared: {self.specifications()}; {checkpoint.read_text()}")
        self.set_faults({})
        wait_for(lambda: self.allocatable() == 8 and not any(device.get("taints") for device in self.devices().values()),
                 lambda: f"all GPUs to be free: {self.devices()}; {self.agent.tail()}", timeout=240)


if __name__ == "__main__":
    unittest.main()
