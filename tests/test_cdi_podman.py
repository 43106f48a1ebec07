"""Another container engine gives out GPUs by the specification that `drover cdi generate` writes: podman, which knows nothing
of Drover. Its images, its containers and the folder of specifications that it sees are the test's own."""

import re
import unittest

import drover
import podman
import test_cdi

# podman looks into /etc/cdi and /var/run/cdi: in a mount namespace of its own, /run holds the one specification.
OWN_RUN = 'mount -t tmpfs none /run && mkdir /run/cdi && cp "$1" /run/cdi && shift && exec "$@"'


class PodmanTest(drover.DaemonTest):
    @classmethod
    def setUpClass(cls):
        podman.command(drover.ROOT)  # or it is skipped
        super().setUpClass()
        cls.gpus = cls.daemon.api("GET", "/v1/gpus")["gpus"]
        cls.specification = cls.daemon.folder / "drover.yaml"
        made = cls.daemon.cli("cdi", "generate", "--output", cls.specification)
        image = test_cdi.make_image(cls.daemon.folder / "plain", cls.daemon.probe)
        pulled = cls.podman("pull", "--quiet", image)
        if made.status != 0 or pulled.status != 0:
            raise AssertionError(f"no specification or no image: {made}\n{pulled}")
        cls.image = pulled.out.strip()

    @classmethod
    def podman(cls, *words):
        return drover.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", OWN_RUN, "sh", cls.specification,
                           *podman.command(cls.daemon.folder / "podman"), *words])

    def run_in_podman(self, devices, *words):
        wanted = [word for device in devices for word in ("--device", f"nvidia.com/gpu={device}")]
        ran = self.podman("run", "--rm", "--network", "none", *podman.LIMITS, *wanted, self.image, *words)
        self.assertEqual(ran.status, 0, ran)
        return ran.out

    def gpus_seen(self, *devices):
        return re.findall(r"^gpu \d+ (\S+)", self.run_in_podman(devices, "/client"), re.MULTILINE)

    def test_a_program_finds_the_driver_and_exactly_the_gpus_that_were_named(self):
        uuids = [gpu["uuid"] for gpu in self.gpus]
        self.assertEqual(self.gpus_seen(1, uuids[3]), [uuids[1], uuids[3]])
        self.assertEqual(self.gpus_seen("all"), uuids)

    def test_the_nodes_are_those_and_no_others(self):
        minor = self.gpus[5]["minor"]
        self.assertEqual(set(self.run_in_podman([5], "/probe", "devices").split()),
                         {f"nvidia{minor}", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"})

    def test_the_driver_cannot_be_written(self):
        library = f"/lib64/libnvidia-ml.so.{self.daemon.api('GET', '/v1/gpus')['driver_version']}"
        self.assertEqual(self.run_in_podman([0], "/probe", "write", library, "x").split(), ["EROFS"])


if __name__ == "__main__":
    unittest.main()
