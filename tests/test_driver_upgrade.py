"""The driver is upgraded under a daemon that runs: it loads the new library, and its CDI specification follows.

The machine is put together from the simulator's files, as if a driver were installed: the daemon does not know that they are
simulated, and finds them as it would find the vendor's.
"""

import os
import pathlib
import re
import shutil
import unittest

import drover

# In a mount namespace of its own the machine has these GPUs in /dev, and its kernel runs the driver that the folder says.
OWN_MACHINE = 'mount --bind "$1/dev" /dev && mount --bind "$1/module" /sys/module && shift && exec "$@"'
ORDINARY_NODES = ("null", "zero", "full", "random", "urandom", "tty")


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
            info = path.stat()
            os.mknod(folder / path.name, info.st_mode, info.st_rdev)
            (folder / path.name).chmod(info.st_mode & 0o777)
        (folder / "fd").symlink_to("/proc/self/fd")

    def command(self):
        plain = super().command()
        if "--simulate" in plain:
            return plain
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", OWN_MACHINE, "sh", str(self.folder), *plain]

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


if __name__ == "__main__":
    unittest.main()
