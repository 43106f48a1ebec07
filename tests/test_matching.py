"""Images that work on a machine's GPUs, and those that are refused before they start."""

import unittest

import docker_engine
import drover

LABEL = {"com.nvidia.volumes.needed": "nvidia_driver"}
LIBRARIES = "usr/lib/x86_64-linux-gnu"


def library(path, content=b"a library", **others):
    """As installers leave it: with the link that the loader follows."""
    folder, name = path.rsplit("/", 1)
    link = name.partition(".so.")[0] + ".so.1"
    return {"files": {path: content}, "links": {f"{folder}/{link}": name, **others}}


class Table:
    """What holds whoever runs the task. `make_image(name, **settings)` returns a reference."""

    profile = "k40m"  # driver 390.30, CUDA 9.1, compute capability 3.5

    def tearDown(self):
        self.daemon.end_tasks()

    def image(self, *environment, **settings):
        name = f"image-{self.id().rsplit('.', 1)[-1]}"
        return self.make_image(name, environment=environment, **settings)

    def ended(self, image, words=("say", "fine"), **fields):
        fields = {"gpus": 1, **fields}
        return self.daemon.wait_until_final(self.daemon.submit(*words, image=image, command=["/probe", *words], **fields))

    def assert_works(self, image, **fields):
        record = self.ended(image, **fields)
        self.assertEqual(record["state"], "finished", record)

    def assert_refused(self, image, *words, **fields):
        record = self.ended(image, **fields)
        self.assertEqual(record["state"], "failed", record)
        for word in words:
            self.assertIn(word, record["reason"])
        return record

    def test_the_cuda_of_the_image_is_compared_with_the_driver(self):
        self.assert_works(self.image("CUDA_VERSION=9.1.85"))
        too_new = self.image("CUDA_VERSION=10.2.89")
        record = self.assert_refused(too_new, "10.2.89", "390.30", "9.1", "440.33")
        self.assertIsNone(record.get("exit_status"))
        self.assert_works(too_new, gpus=0)
        self.assert_works(too_new, env={"NVIDIA_DISABLE_REQUIRE": "1"})

    def test_what_the_image_requires_is_held_against_the_gpus_it_was_given(self):
        self.assert_works(self.image("NVIDIA_REQUIRE_CUDA=cuda>=10.0 brand=tesla,driver>=384,driver<391"))
        self.assert_refused(self.image("NVIDIA_REQUIRE_CUDA=cuda>=10.0 brand=tesla,driver>=410"), "NVIDIA_REQUIRE_CUDA",
                            "cuda>=10.0", "390.30", "Tesla K40m")
        self.assert_refused(self.image("NVIDIA_REQUIRE_ARCH=arch>=5.2"), "arch>=5.2", "compute capability 3.5")
        self.assert_refused(self.image("NVIDIA_REQUIRE_CUDA=cuda>nine"), "cuda>nine", "not understood")

    def test_a_driver_in_the_image_must_be_the_kernels(self):
        self.assert_works(self.image(**library(f"{LIBRARIES}/libcuda.so.390.30")))
        other = self.image(**library(f"{LIBRARIES}/libcuda.so.396.44"))
        self.assert_refused(other, "396.44", "390.30")
        self.assert_refused(other, "396.44", "390.30", driver="none")
        self.assert_works(self.image(**library(f"{LIBRARIES}/libcuda.so.396.44", b"")))  # what a mount left behind

    def test_an_immutable_image_gets_nothing_but_its_gpus(self):
        mounted, mine = "/usr/local/nvidia/lib64/libnvidia-ml.so.1", f"/{LIBRARIES}/libnvidia-ml.so.390.30"
        words = ("exists", mounted, ",", "exists", mine, ",", "env", "LD_LIBRARY_PATH", ",", "open", "/dev/nvidia0")
        image = self.image(labels=LABEL, **library(mine[1:]))
        for driver, seen in (("none", ["ENOENT", "ok", "(unset)"]), ("host", ["ok", "ok"])):
            with self.subTest(driver=driver):
                ran = self.daemon.cli("run", "--gpus", "1", "--driver", driver, "--image", image, "--", "/probe", *words)
                said = ran.out.splitlines()
                self.assertEqual(said[: len(seen)], seen, ran)
                self.assertIn("ENXIO", said[-1])  # there, and no driver behind it

    def test_an_immutable_image_without_a_driver_is_refused(self):
        ran = self.daemon.cli("run", "--gpus", "1", "--driver", "none", "--image", self.image(), "--", "/probe", "say", "x")
        self.assertNotEqual(ran.status, 0)
        self.assertIn("390.30", ran.err)
        self.assertIn("--driver none", ran.err)
        with self.assertRaises(drover.ApiError) as refused:
            self.daemon.submit("say", "x", driver="none")
        self.assertEqual(refused.exception.status, 400)

    def test_a_compatibility_package_comes_first_only_when_it_is_newer(self):
        for version, first in (("410.48", "/usr/local/cuda/compat"), ("384.81", "/usr/local/nvidia/lib")):
            with self.subTest(version=version):
                package = library(f"usr/local/cuda-10.0/compat/libcuda.so.{version}", **{"usr/local/cuda": "cuda-10.0"})
                image = self.image("CUDA_VERSION=10.0.130" if version == "410.48" else "CUDA_VERSION=9.0.176", labels=LABEL,
                                   **package)
                ran = self.daemon.cli("run", "--gpus", "1", "--image", image, "--", "/probe", "env", "LD_LIBRARY_PATH")
                self.assertTrue(ran.out.startswith(first + ":"), ran)


class OciTest(Table, drover.DaemonTest):
    @classmethod
    def make_image(cls, name, **settings):
        return drover.make_probe_image(cls.daemon.folder / name, cls.daemon.probe, **settings)


class DockerTest(Table, drover.DaemonTest):
    @classmethod
    def setUpClass(cls):
        cls.engine = docker_engine.Engine()
        cls.addClassCleanup(cls.engine.close)
        cls.arguments = ("--containerizers", "docker", "--docker-socket", cls.engine.socket)
        super().setUpClass()

    @classmethod
    def make_image(cls, name, **settings):
        layout = drover.make_probe_image(cls.daemon.folder / name, cls.daemon.probe, **settings)
        return cls.engine.load(f"drover-test/{name}:1", layout)


if __name__ == "__main__":
    unittest.main()
