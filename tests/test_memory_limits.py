"""The simulated driver's own limits, on real control groups of version 2: programs in a group are held to its limit, and know their group
from inside namespaces as well."""

import ctypes
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import drover
import test_cdi
import test_guard

CUDA_CHECK = drover.built("cuda_check")
LIBRARIES = drover.BUILD / "lib/drover/sim"
NO_LIMIT = (1 << 64) - 1
MIB = 1 << 20
CONTEXT = 300  # MiB that one takes
TIMEOUT = 60  # seconds


class Limits(ctypes.Structure):
    _fields_ = (("group", ctypes.c_char_p), ("soft", ctypes.c_ulonglong), ("hard", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


@unittest.skipIf(os.geteuid() != 0, "needs root: limits are root's to set, and control groups to make")
class MemoryLimitsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        settings = {"DROVER_SIM_PROFILE": drover.ROOT / "sim/profiles/h100-615.yaml", "DROVER_SIM_LIVE": self.folder / "live"}
        self.environment = {**os.environ, **{name: str(value) for name, value in settings.items()}, "LD_LIBRARY_PATH": str(LIBRARIES)}
        os.environ.update({name: str(value) for name, value in settings.items()})
        for name in settings:
            self.addCleanup(os.environ.pop, name)
        self.tree = self.find_tree()
        self.group = self.make_group(self.tree / f"drover-limits-{os.getpid()}")
        self.nvml = ctypes.CDLL(str(LIBRARIES / "libnvidia-ml.so.1"))
        self.assertEqual(self.nvml.nvmlInit_v2(), 0)
        self.addCleanup(self.nvml.nvmlShutdown)
        self.gpu = ctypes.c_void_p()
        self.assertEqual(self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.gpu)), 0)

    def find_tree(self):
        found = re.search(r"^\S+ (\S+) cgroup2 ", pathlib.Path("/proc/mounts").read_text(), re.MULTILINE)
        if not found or not os.access(found[1], os.W_OK):
            self.skipTest("no cgroup2 is mounted that groups could be made in")
        return pathlib.Path(found[1])

    def make_group(self, group):
        group.mkdir()
        self.addCleanup(group.rmdir)
        return group

    def set_limit(self, group, mib):
        hard = NO_LIMIT if mib is None else mib * MIB
        code = self.nvml.nvmlDeviceSetMemoryLimits_v1(self.gpu, ctypes.byref(Limits(str(group).encode(), 0, hard, 0)))
        self.assertEqual(code, 0)

    def limit(self, group):
        limits = Limits(str(group).encode())
        self.assertEqual(self.nvml.nvmlDeviceGetMemoryLimits_v1(self.gpu, ctypes.byref(limits)), 0)
        return limits.soft, limits.hard, limits.used

    def start(self, group, *command, namespace=False):
        inside = ["unshare", "--cgroup", "--mount", "--pid", "--kill-child", "sh", "-c",
                  'umount --recursive --lazy /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup && exec "$@"', "sh"]
        script = f'echo $$ > {group}/cgroup.procs && exec "$@"'
        process = subprocess.Popen(["sh", "-c", script, "sh", *(inside if namespace else []), CUDA_CHECK, *map(str, command)],
                                   env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def said(self, group, *command, **how):
        return self.start(group, *command, **how).communicate(timeout=TIMEOUT)[0].splitlines()

    def test_a_group_has_what_its_limit_says_from_outside_and_from_namespaces(self):
        (whole,) = self.said(self.group, "info")
        self.set_limit(self.group, 1000)
        for namespace in (False, True):
            with self.subTest(namespace=namespace):
                said = self.said(self.group, "info", "fill", 100, namespace=namespace)
                self.assertEqual(said, [f"memory {1000 - CONTEXT} 1000", "filled 700"])
        self.assertEqual(self.limit(self.group), (0, 1000 * MIB, 0))
        self.assertEqual(self.limit(self.tree)[:2], (0, NO_LIMIT), "those around know nothing of it")
        self.set_limit(self.group, None)
        self.assertEqual(self.said(self.group, "info"), [whole])

    def test_neighbours_are_not_touched_and_what_a_group_uses_is_told(self):
        other = self.make_group(self.group.with_name(self.group.name + "-b"))
        self.set_limit(self.group, 1000)
        holder = self.start(other, "hold", 5000, "sleep", 1000)
        self.assertEqual(holder.stdout.readline(), "held 5000\n")
        inside = self.start(self.group, "hold", 400, "sleep", 1000, namespace=True)
        self.assertEqual(inside.stdout.readline(), "held 400\n")
        self.assertEqual(self.limit(self.group)[2], (400 + CONTEXT) * MIB)
        self.assertEqual(self.limit(other)[2], (5000 + CONTEXT) * MIB)
        refused = self.start(self.group, "hold", 100)
        refused.communicate(timeout=TIMEOUT)
        self.assertEqual(refused.returncode, 2, "no room beside the other process of the group")

    def test_a_limit_of_the_group_around_holds_and_is_not_seen(self):
        leaf = self.make_group(self.group / "leaf")
        self.set_limit(self.group, 1000)
        (info, filled) = self.said(leaf, "info", "fill", 100)
        self.assertGreater(int(info.split()[2]), 80_000)
        self.assertEqual(filled, "filled 700")


class UnifiedDaemon(drover.Daemon):
    """On control groups of version 2 alone, whatever else the machine has."""

    def command(self):
        alone = 'umount --recursive --lazy /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", alone, "sh", *super().command()]


class UnifiedTest(test_guard.SharesTest):
    kind_of_daemon = UnifiedDaemon
    profile = "h100-615"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.image = test_cdi.make_image(cls.daemon.folder / "image", cls.daemon.probe,
                                        libraries_for=(CUDA_CHECK, *test_guard.LIBRARIES), files=[("cuda_check", CUDA_CHECK.read_bytes())])
        record = cls.daemon.wait_until_final(cls.daemon.submit(command=["true"]))
        if record["state"] != "finished":
            raise unittest.SkipTest(f"no container starts on control groups of version 2 alone here: {record['reason']}")

    def submit(self, *words, **how):
        how = {"gpu_share": "8GiB", "image": self.image, **how}
        return self.daemon.submit(command=["/cuda_check", *map(str, words)], **how)


class TaskTest(UnifiedTest):
    def test_the_driver_itself_refuses_who_goes_round_the_guard(self):
        for how in ({}, {"share_by": "kernel"}):
            with self.subTest(how):
                self.assertEqual(self.memory(**how)[1], test_guard.SHARE)
                self.assertEqual(self.run_to_end("hold", test_guard.SHARE, env={"CUDA_LIBRARY": test_guard.BEHIND}, **how)[1], 2)
        task = self.hold(100)
        self.assertEqual(self.daemon.task(task)["grants"][0]["tier"], "hard")
        self.assertIn("(hard)", self.daemon.cli("ps").out)

    def test_whom_only_the_guard_is_to_hold_the_driver_does_not(self):
        self.hold(test_guard.SHARE + 1024, share_by="none")
        # It is seen, and ended: but it got what it took.
        self.hold(test_guard.SHARE + 1024, env={"CUDA_LIBRARY": test_guard.BEHIND}, share_by="limits")

    def test_a_killed_daemon_leaves_no_limit(self):
        task = self.hold(100)
        self.assertTrue((self.daemon.state / "tasks" / task / "limited").exists())
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.daemon.task(task)["grants"][0]["tier"], "hard")
        self.daemon.end_task(task)
        drover.wait_for(lambda: not (self.daemon.state / "tasks" / task / "limited").exists(), "its limit to be taken away")


if __name__ == "__main__":
    unittest.main()
