"""Pods with a share of a simulated GPU: what they are started from, and what they say."""

import json
import pathlib
import re
import subprocess
import tempfile

import drover
import kube
import test_cdi
import test_guard
from kube import images
from kube.machine import wait_for
from prometheus import parse, require_parser

GIB = test_guard.GIB
CONTEXT = test_guard.CONTEXT
ADDRESS = "127.0.0.1:9498"  # of metrics
SLEEP = ("/probe", "sleep", 10000)


def hold(mib, *more):
    return ("/cuda_check", "hold", mib, *more)


def reference(name):
    return f"drover.invalid/{name}:1"


def make_image(folder, name="cuda-check", more=(), links=()):
    """/probe, and /cuda_check with the C library that it and the driver need; `more` programs by their paths, and links. Returns the
    reference and the path of its archive."""
    folder.mkdir()
    probe = drover.build_probe(folder).read_bytes()

    def fill(layer):
        for path in ("bin", "dev", "etc", "proc", "root", "sys", "tmp"):
            layer.add_folder(path, 0o755)
        for path in test_cdi.libraries_of(test_guard.CHECK, *test_guard.LIBRARIES):
            layer.add_file(path, pathlib.Path(path).read_bytes(), 0o755)
        for program, content in {"probe": probe, "cuda_check": test_guard.CHECK.read_bytes(), **dict(more)}.items():
            layer.add_file(program, content, 0o755)
        for path, target in links:
            test_cdi.add_link(layer, path, target)

    return images.archive(folder, reference(name), fill, command=["/probe", "sleep", "1e9"])


def spoil_program():
    """tests/attack/spoil.c, for an image."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "program"
        subprocess.run(["clang-19", "-static", "-Os", "-o", program, drover.ROOT / "tests/attack/spoil.c"], check=True)
        return {"spoil": program.read_bytes()}


def pod(name, *commands, claims=("gpus",), limits=None, image="cuda-check", **more):
    """A container for each command; `claims` are names of ResourceClaims, all of which each container has; or it has `limits`."""
    claims = () if limits else claims
    made = kube.pod(name, image=reference(image), **more)
    (first,) = made["spec"]["containers"]
    made["spec"]["containers"] = [
        {**first, "name": f"c{index}", "command": list(map(str, command)), "args": [],
         "resources": {"limits": {name: str(count) for name, count in limits.items()}} if limits else
         {"claims": [{"name": claim} for claim in claims]}} for index, command in enumerate(commands)]
    made["spec"]["resourceClaims"] = [{"name": claim, "resourceClaimName": claim} for claim in claims]
    return made


def memory_in(text):
    """(free, total) in MiB, as a program was told; None where it was not."""
    found = re.search(r"^memory (\d+) (\d+)$", text, re.MULTILINE)
    return found and tuple(map(int, found.groups()))


class Shares:
    """What is seen of pods with a share on the node of a NodeTest."""

    @classmethod
    def flags(cls):
        return ("--metrics-address", ADDRESS)

    @classmethod
    def import_image(cls, name="cuda-check", **how):
        with tempfile.TemporaryDirectory() as folder:
            cls.node.import_images([make_image(pathlib.Path(folder) / "image", name, **how)])

    def run_to_end(self, name, *command, **more):
        """What its first container says, and its exit status."""
        return self.end_of(pod(name, command, **more))

    def end_of(self, made):
        self.make_pod(made)
        name = made["metadata"]["name"]
        ended = self.cluster.wait_until_ended(name)
        (status,) = ended["status"]["containerStatuses"]
        text = self.cluster.kubectl("logs", name).stdout
        self.cluster.delete("pod", name)
        return text, status["state"]["terminated"]["exitCode"]

    def exec(self, name, *command, container="c0"):
        return self.cluster.exec(name, *map(str, command), container=container, check=False)

    def wait_until_held(self, name, container="c0"):
        wait_for(lambda: "held" in self.cluster.kubectl("logs", name, "-c", container).stdout, f"{name} to hold its memory")

    def series(self, name):
        require_parser()
        page = self.node.exec("curl", "-s", "--retry", 10, "--retry-connrefused", f"http://{ADDRESS}/metrics").stdout
        return parse(page).get(name, [])

    def charged(self):
        return [value for _, value in self.series("drover_container_gpu_memory_charged_bytes")]

    def tiers(self):
        return {(labels["pod"], labels["tier"]) for labels, _ in self.series("drover_container_gpu_memory_limit_bytes")}

    def refusal_of(self, name):
        """What the kubelet is told when it wants to start the pod's container."""
        def told():
            statuses = self.cluster.get("pod", name)["status"].get("containerStatuses", ())
            reasons = [status["state"].get("waiting") or status["state"].get("terminated") or {} for status in statuses]
            return next((reason["message"] for reason in reasons if "cdi-hook" in reason.get("message", "")), None)

        return wait_for(told, lambda: f"a refusal: {json.dumps(self.cluster.get('pod', name)['status'])}")

    def held_or_refused(self, name, share):
        """Whether it runs, and then it is held."""
        def settled():
            status = (self.cluster.get("pod", name)["status"].get("containerStatuses") or [{"state": {}}])[0]["state"]
            refused = status.get("waiting") or status.get("terminated") or {}
            return status if "running" in status or refused.get("message") else None

        state = wait_for(settled, lambda: f"{name} to run, or not to: {self.cluster.get('pod', name)['status']}")
        if "running" in state:
            self.assertEqual(memory_in(self.exec(name, "/cuda_check", "info").stdout)[1], share)
            self.assertEqual(self.exec(name, *hold(share)).returncode, 2)
        return "running" in state
