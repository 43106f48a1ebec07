"""What holds on this machine holds on one as users have it: see tests/vm. Ordinary modules run there, one test each."""

import json
import os
import unittest

import drover
import vm

TIMEOUT = 900  # seconds for a module with KVM
MODULES = ("test_isolation", "test_run", "test_crun", "test_exec", "test_memory_limits", "test_resize.HardTest", "test_service", "test_network_default", "test_unit",
           "attack.test_apparmor", "attack.test_defaults", "attack.test_disk_share", "attack.test_exec", "attack.test_files",
           "attack.test_image_folders", "attack.test_kernel_volumes", "attack.test_limits", "attack.test_machine",
           "attack.test_mount_places", "attack.test_people", "attack.test_root", "attack.test_secrets", "attack.test_strangers",
           "attack.test_workdir")


@unittest.skipIf(os.geteuid() != 0, "needs root: the virtual machine reads all files of this one")
class ModulesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.machine = vm.VirtualMachine()
        cls.addClassCleanup(cls.machine.close)
        cls.machine.start()

    def run_module(self, module):
        environment = {name: value for name, value in os.environ.items() if name.startswith("DROVER_")}
        report = f"/tmp/{module}.jsonl"
        ran = self.machine.run(["python3", "-B", "tests/blackbox.py", module, report], {**environment, "DROVER_BUILD": str(drover.BUILD),
                               "DROVER_TEST_SLOWNESS": str(self.machine.slowness)}, timeout=TIMEOUT)
        self.assertEqual(ran.status, 0, f"{ran}\n{self.machine.console()}")
        cases = [json.loads(line) for line in self.machine.run(["cat", report]).out.splitlines()]
        wrong = [f"{name}\n{detail}" for name, outcome, detail in cases if outcome == "failed"]
        self.assertFalse(wrong, "\n".join(wrong))
        skipped = "\n".join(f"{name}: {detail}" for name, outcome, detail in cases if outcome == "skipped")
        self.assertIn("passed", {outcome for _, outcome, _ in cases}, f"{module} tested nothing\n{skipped}")

    def test_it_is_such_a_machine(self):
        self.assertIn("cgroup2", self.machine.run(["stat", "--file-system", "--format=%T", "/sys/fs/cgroup"]).out)
        self.assertIn("apparmor", self.machine.run(["cat", "/sys/kernel/security/lsm"]).out)


def add_test(module):
    setattr(ModulesTest, f"test_{module.replace('.', '_').replace('test_', '')}", lambda self: self.run_module(module))


for name in MODULES:
    add_test(name)


if __name__ == "__main__":
    unittest.main()
