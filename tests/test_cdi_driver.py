"""A CDI specification of the vendor's real user-land driver lists what the vendor's own generator would.

The packages are fetched into a temporary folder where they can be had. What is expected follows from the files in it and the
rules of `nvidia-ctk cdi generate` as they are documented, not from Drover's code.
"""

import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest

import drover
import test_cdi

UNAVAILABLE = 77  # exit status of scripts/lib/fetch-packages
PACKAGES = ("libcuda1", "libnvidia-ml1", "libnvidia-ptxjitcompiler1", "nvidia-smi", "libnvidia-encode1", "libnvcuvid1",
            "libnvidia-allocator1", "libnvidia-eglcore", "libegl-nvidia0", "libglx-nvidia0",
            "nvidia-vdpau-driver", "nvidia-egl-common", "nvidia-vulkan-common", "nvidia-cuda-mps")
DESCRIPTIONS = ("glvnd/egl_vendor.d/10_nvidia.json", "egl/egl_external_platform.d/15_nvidia_gbm.json",
                "egl/egl_external_platform.d/10_nvidia_wayland.json", "nvidia/nvoptix.bin")
VULKAN = ("vulkan/icd.d/nvidia_icd.json", "vulkan/implicit_layer.d/nvidia_layers.json")
PROGRAMS = ("nvidia-smi", "nvidia-debugdump", "nvidia-persistenced", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server")


def links_of(specification):
    """"TARGET::PATH" of every link that the hooks make."""
    hooks = [hook["args"] for hook in specification["containerEdits"]["hooks"]]
    return {link for words in hooks if "create-symlinks" in words for link in words if "::" in link}


def nodes_of(specification):
    """Device -> the nodes that its container gets."""
    common = [node["path"] for node in specification["containerEdits"]["deviceNodes"]]
    return {device["name"]: sorted(common + [node["path"] for node in device["containerEdits"]["deviceNodes"]])
            for device in specification["devices"]}


class RealDriverTest(drover.DaemonTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="drover-driver-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.root = cls.folder / "root"
        fetched = drover.run([drover.ROOT / "scripts/lib/fetch-packages", cls.root, *PACKAGES], timeout=300)
        if fetched.status == UNAVAILABLE:
            raise unittest.SkipTest(fetched.err.strip())
        if fetched.status != 0:
            raise AssertionError(str(fetched))
        (cls.cuda,) = [path for path in cls.root.rglob("libcuda.so.*") if re.search(r"\.so\.\d+\.\d+", path.name)]
        cls.version = cls.cuda.name.removeprefix("libcuda.so.")
        # Simulated GPUs of a machine whose kernel runs this driver.
        text = (drover.ROOT / "sim/profiles/dgx-a100.yaml").read_text()
        cls.profile = cls.folder / "machine.yaml"
        cls.profile.write_text(re.sub(r'(driver: \{version: )"[\d.]+"', rf'\1"{cls.version}"', text))
        cls.profile, cls.arguments = str(cls.profile), ("--driver-root", cls.root)
        super().setUpClass()
        cls.edits = json.loads(cls.daemon.cli("cdi", "generate").out)["containerEdits"]
        cls.mounts = {mount["containerPath"]: mount["hostPath"] for mount in cls.edits["mounts"]}

    def inside(self, path):
        return "/" + str(path.relative_to(self.root))

    def test_every_library_that_the_vendor_lists_is_there_under_the_same_path(self):
        """The libraries of the driver's version beside libcuda.so, and in the folder vdpau there."""
        wanted = {self.inside(path) for folder in (self.cuda.parent, self.cuda.parent / "vdpau")
                  for path in folder.glob(f"*.so.{self.version}") if not path.is_symlink()}
        wanted |= {self.inside(path) for path in self.cuda.parent.glob("libnvidia-nvvm70.so.*") if not path.is_symlink()}
        self.assertGreater(len(wanted), 7)
        self.assertLessEqual(wanted, set(self.mounts))
        # More than that only from the other folders of libraries, with the same version.
        more = {path for path in self.mounts if ".so" in path} - wanted
        self.assertEqual({path for path in more if not re.fullmatch(rf"/usr/lib/[\w-]+/.*\.so\.{re.escape(self.version)}", path)},
                         set())
        every = {self.inside(path) for path in self.root.rglob(f"*.so.{self.version}") if not path.is_symlink()}
        self.assertEqual({path for path in every if "/xorg/" not in path} - set(self.mounts), set())

    def test_the_vendor_s_own_generator_lists_nothing_more(self):
        """`nvidia-ctk` speaks to the simulated NVML, and finds everything else in the real files."""
        generator = shutil.which("nvidia-ctk")
        if not generator:
            self.skipTest("nvidia-ctk is not installed: it comes with the vendor's container toolkit")
        root = self.folder / "vendor"
        shutil.copytree(self.root, root, symlinks=True)
        for path in root.rglob(f"libnvidia-ml.so.{self.version}"):
            shutil.copy(test_cdi.SIMULATOR, path)
        (root / "dev").mkdir()
        for node in (self.daemon.state / "sim/dev").iterdir():
            os.mknod(root / "dev" / node.name, node.stat().st_mode, node.stat().st_rdev)
        ran = drover.run([generator, "cdi", "generate", "--mode", "nvml", "--format", "json", "--driver-root", root, "--dev-root", root],
                         env={**os.environ, "DROVER_SIM_PROFILE": self.profile})
        self.assertEqual(ran.status, 0, ran)
        theirs, ours = json.loads(ran.out), json.loads(self.daemon.cli("cdi", "generate").out)
        self.assertEqual({mount["containerPath"] for mount in theirs["containerEdits"]["mounts"]} - set(self.mounts), set())
        self.assertLessEqual(links_of(theirs), links_of(ours))
        self.assertEqual(nodes_of(theirs), nodes_of(ours))

    def test_programs_and_descriptions_are_there(self):
        for name in PROGRAMS:
            found = [path for path in self.root.rglob(name) if path.is_file() and "share" not in path.parts]
            if found:
                with self.subTest(program=name):
                    self.assertTrue({f"/usr/bin/{name}", f"/usr/sbin/{name}"} & set(self.mounts))
        for name in DESCRIPTIONS:
            for base in ("etc", "usr/share"):
                if (self.root / base / name).is_file():
                    self.assertIn(f"/{base}/{name}", self.mounts)
        for name in VULKAN:
            if any((self.root / base / name).is_file() for base in ("etc", "usr/share")):
                self.assertIn(f"/etc/{name}", self.mounts)

    def test_what_is_mounted_exists_below_the_root(self):
        for inside, outside in self.mounts.items():
            self.assertTrue(pathlib.Path(outside).is_file(), outside)
            self.assertTrue(outside.startswith(f"{self.root}/"), outside)
            self.assertNotIn(str(self.root), inside)
        self.assertIn({"ro", "nosuid", "nodev", "rbind", "rprivate"}, [set(mount["options"]) for mount in self.edits["mounts"]])

    def test_the_links_are_those_that_the_vendor_makes(self):
        made = dict(reversed(link.split("::")) for link in links_of({"containerEdits": self.edits}))
        beside = self.inside(self.cuda.parent)
        for name, target in (("libcuda.so.1", self.cuda.name), ("libcuda.so", "libcuda.so.1"),
                             ("libnvidia-ml.so.1", f"libnvidia-ml.so.{self.version}"),
                             ("libGLX_indirect.so.0", f"libGLX_nvidia.so.{self.version}"),
                             ("gbm/nvidia-drm_gbm.so", "../libnvidia-allocator.so.1")):
            self.assertEqual(made.get(f"{beside}/{name}"), target)

    def test_a_container_loads_the_real_library(self):
        """There is no kernel driver behind it, and the real library knows."""
        image = test_cdi.make_image(self.daemon.folder / "image", self.daemon.probe, libraries_for=[self.cuda.parent / "libnvidia-ml.so.1"])
        ran = self.daemon.cli("run", "--gpus", 1, "--image", image, "--", "/client")
        self.assertIn("Driver Not Loaded", ran.err, ran)
        ran = self.daemon.run_probe(["--gpus", 1], "exists", self.inside(self.cuda), ",", "write", self.inside(self.cuda), "x", ",",
                                    "exists", "/usr/bin/nvidia-smi", image=image)
        self.assertEqual(ran.out.split(), ["ok", "EROFS", "ok"], ran)


if __name__ == "__main__":
    unittest.main()
