"""Where the driver is not simply installed: it is upgraded under a daemon that runs, which loads the new library, and whose CDI
specification follows; or a driver container brings it, with the GPUs' device files below its own root.

The machine is put together from the simulator's files, as if a driver were installed: the daemon does not know that they are
simulated, and finds them as it would find the vendor's.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import drover

# In a mount namespace of its own the machine has these GPUs in /dev, and its kernel runs the driver that the folder says.
OWN_MACHINE = 'mount --bind "$1/dev" /dev && mount --bind "$1/module" /sys/module && shift && exec "$@"'
ORDINARY_NODES = ("null", "zero", "full", "random", "urandom", "tty")


def make_node(path, like):
    os.mknod(path, like.st_mode, like.st_rdev)
    path.chmod(like.st_mode & 0o777)


class Machine(drover.Daemon):
    """A daemon without --simulate, on a machine whose driver is in `root`."""

    def __init__(self):
        super().__init__(profile="k40m")
        self.start()
        self.stop()
        self.root = self.folder / "root"
        self.lib64 = self.root / "lib64"
        (self.state / "sim/driver").rename(self.root)
        self.make_devices()
        self.module = self.folder / "module/nvidia"
        self.module.mkdir(parents=True)
        shutil.rmtree(self.state)
        self.specification = self.folder / "nvidia.json"
        self.arguments = ["--driver-root", self.root, "--cdi-specification", self.specification]
        self.environment["LD_LIBRARY_PATH"] = str(self.lib64)

    def make_devices(self):
        folder = self.folder / "dev"
        folder.mkdir()
        for path in [*(self.state / "sim/dev").iterdir(), *(pathlib.Path("/dev") / name for name in ORDINARY_NODES)]:
            make_node(folder / path.name, path.stat())
        (folder / "fd").symlink_to("/proc/self/fd")

    def move_devices(self, names="nvidia*"):
        """To where a driver container has them."""
        (self.root / "dev").mkdir(exist_ok=True)
        for path in (self.folder / "dev").glob(names):
            make_node(self.root / "dev" / path.name, path.stat())
            path.unlink()

    def run_here(self, *words):
        """A command of the program on that machine, without the daemon."""
        return drover.run([*self.entering(), self.binary, *words], env=self.environment)

    def command(self):
        plain = super().command()
        if "--simulate" in plain:
            return plain
        return [*self.entering(), *plain]

    def entering(self):
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", OWN_MACHINE, "sh", str(self.folder)]

    def install(self, version):
        """As a package does: new files under new names, then the links; and the kernel's module is loaded anew."""
        link = self.lib64 / "libnvidia-ml.so.1"
        old = link.resolve()
        new = self.lib64 / f"libnvidia-ml.so.{version}"
        if new != old:
            shutil.copy(old, new)
            old.unlink()
            link.unlink()
            link.symlink_to(new.name)
        (profile,) = self.root.rglob("profile.yaml")
        profile.write_text(re.sub(r'driver: \{version: "[\d.]+"', f'driver: {{version: "{version}"', profile.read_text()))
        (self.module / "version").write_text(version + "\n")


@unittest.skipIf(os.geteuid() != 0, "needs root: device nodes are made for real")
class DriverUpgradeTest(unittest.TestCase):
    def test_the_daemon_and_its_specification_follow(self):
        machine = Machine()
        self.addCleanup(lambda: self.assertEqual(machine.close(), []))
        machine.install("418.87.00")
        machine.start()
        before = machine.api("GET", "/v1/gpus")
        self.assertEqual((before["driver_version"], before["simulated"]), ("418.87.00", False))
        self.assertIn("libnvidia-ml.so.418.87.00", machine.specification.read_text())

        machine.install("535.216.03")
        drover.wait_for(lambda: "libnvidia-ml.so.535.216.03" in machine.specification.read_text(), "a new specification")
        self.assertNotIn("418.87.00", machine.specification.read_text())
        after = drover.wait_for(lambda: [gpus for gpus in [machine.api("GET", "/v1/gpus")]
                                         if gpus["driver_version"] == "535.216.03"], "the daemon to tell the new version")[0]
        self.assertEqual([gpu["uuid"] for gpu in after["gpus"]], [gpu["uuid"] for gpu in before["gpus"]])


@unittest.skipIf(os.geteuid() != 0, "needs root: device nodes are made for real")
class DriverContainerTest(unittest.TestCase):
    """A driver root whose device files are only below it, as NVIDIA's driver container has them at /run/nvidia/driver."""

    def setUp(self):
        self.machine = Machine()
        self.addCleanup(lambda: self.assertEqual(self.machine.close(), []))
        self.machine.install("535.216.03")
        # The simulator's library shows all GPUs then, as the vendor's does, which makes the nodes that it lacks.
        (profile,) = self.machine.root.rglob("profile.yaml")
        self.machine.environment["DROVER_SIM_PROFILE"] = str(profile)

    def nodes_of(self, *options):
        ran = self.machine.run_here("--socket", "/nonexistent", "cdi", "generate", *options)
        self.assertEqual(ran.status, 0, ran)
        edits = [json.loads(ran.out)["containerEdits"], *(device["containerEdits"] for device in json.loads(ran.out)["devices"])]
        return {(node["path"], node.get("hostPath")) for one in edits for node in one["deviceNodes"]}

    def test_its_device_files_are_found_and_named_as_the_container_wants_them(self):
        self.machine.move_devices()
        names = {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia0"}
        below = {(f"/dev/{name}", f"{self.machine.root}/dev/{name}") for name in names}
        self.assertLessEqual(below, self.nodes_of("--driver-root", self.machine.root))
        self.machine.start()
        self.assertEqual(self.machine.run_probe(["--gpus", 1], "devices").out.count("nvidia0"), 1)

    def test_what_root_s_nvml_has_made_in_dev_is_not_all_that_there_is(self):
        self.machine.move_devices("nvidia-*")
        for path in (self.machine.folder / "dev").glob("nvidia*"):
            make_node(self.machine.root / "dev" / path.name, path.stat())
        self.assertIn(("/dev/nvidia-uvm", f"{self.machine.root}/dev/nvidia-uvm"),
                      self.nodes_of("--driver-root", self.machine.root))

    def test_what_is_in_dev_needs_no_other_path(self):
        (self.machine.root / "dev").mkdir()
        self.assertEqual({outside for _, outside in self.nodes_of("--driver-root", self.machine.root)}, {None})

    def test_where_they_are_missing_it_says_where_they_were_looked_for(self):
        for path in (self.machine.folder / "dev").glob("nvidia*"):
            path.unlink()
        self.machine.start()
        words = rf"There is no device file '/dev/nvidia(0|ctl)'\s+\(?they were looked for in '/dev' and '{self.machine.root}/dev'"
        self.assertRegex(self.machine.cli("run", "--gpus", 1, "--", "true").err, words)
        self.assertRegex(self.machine.run_here("--socket", "/nonexistent", "cdi", "generate", "--driver-root", self.machine.root).err,
                         words)


@unittest.skipIf(os.geteuid() != 0, "needs root: device nodes are made for real")
class HangingDriverTest(unittest.TestCase):
    """A library whose nvmlInit never returns, as when the kernel's module has fallen into a hole."""

    def setUp(self):
        self.machine = Machine()
        self.addCleanup(lambda: self.assertEqual(self.machine.close(), []))
        self.machine.install("535.216.03")
        library = (self.machine.lib64 / "libnvidia-ml.so.1").resolve()
        library.unlink()
        subprocess.run(["clang-19", "-shared", "-fPIC", "-DFAKE_HANGS", "-I", drover.ROOT / "src", "-Wl,-soname,libnvidia-ml.so.1",
                        "-o", library, drover.ROOT / "src/gpu/testdata/fake_nvml.c"], check=True)

    def threads(self):
        return len(os.listdir(f"/proc/{self.machine.process.pid}/task"))

    def test_what_needs_no_gpu_goes_on(self):
        self.machine.start()
        self.addCleanup(self.machine.end_tasks)
        problems = str(self.machine.api("GET", "/health")["problems"])
        self.assertIn("The NVIDIA driver does not answer: NVML is being loaded and does not return", problems)
        before = self.threads()
        # More than any pool has threads, while whoever asks for GPUs waits for the driver.
        for _ in range(80):
            self.assertEqual(self.machine.request("GET", "/v1/gpus", timeout=5)[0], 200)
            with contextlib.suppress(drover.ApiError):
                self.machine.submit("exit", 0, gpus=1)
        tasks = [self.machine.submit("exit", 7, cpus=0.01) for _ in range(80)]
        for task in tasks:
            self.assertEqual(self.machine.wait_until_final(task)["exit_status"], 7)
        self.assertLess(self.threads(), before + 80)


if __name__ == "__main__":
    unittest.main()
