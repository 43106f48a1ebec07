"""A container sees exactly its GPUs, and can open no others.

A machine without the NVIDIA driver still tells the truth about isolation: opening a device 195:N gives ENXIO (nobody is
behind it) when the device cgroup allows it, and EPERM when the cgroup denies it.
"""

import pathlib
import re
import unittest

import drover

MAJOR = 195
ALLOWED, DENIED = "ENXIO", "EPERM"
CONTROL = {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"}
REAL_DRIVER = any(re.search(r"\bnvidia\b", line) for line in pathlib.Path("/proc/devices").read_text().splitlines())


def split_devices(line):
    """Minor numbers of the GPUs, and the names of everything else."""
    names = line.split()
    gpus = {int(name.removeprefix("nvidia")) for name in names if re.fullmatch(r"nvidia\d+", name)}
    return gpus, {name for name in names if not re.fullmatch(r"nvidia\d+", name)}


@unittest.skipIf(REAL_DRIVER, "this machine has the NVIDIA driver: the device numbers of simulated GPUs are real here")
class IsolationTest(drover.DaemonTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.image = drover.make_probe_image(cls.daemon.folder / "image", cls.daemon.probe)

    def look(self, gpus, uid=None, image=None):
        """Minors that a task sees, its other devices, and how opening each of the machine's 8 GPUs ends: by the node that it finds,
        by one that it makes itself, and by one that was made for it, which only the device cgroup stands before."""
        words = ["devices"]
        for minor in range(8):
            words += [",", "open", f"/dev/nvidia{minor}", ",", "mknod", "/tmp/made" if image else "made", MAJOR, minor]
        program = "/probe" if image else str(self.daemon.probe)
        task = self.daemon.submit(command=[program, *map(str, words), ",", "say", "end", ",", "sleep", "600"], uid=uid, image=image,
                                  gpus=gpus)
        self.addCleanup(self.end, task)
        self.daemon.wait_for_output(task, "end")
        lines = self.daemon.output(task).splitlines()
        given = self.daemon.opened_by(task, *((MAJOR, minor) for minor in range(8)))
        self.end(task)
        return *split_devices(lines[0]), lines[1:-1:2], lines[2:-1:2], given

    def end(self, task):
        if self.daemon.task(task)["state"] not in drover.FINAL_STATES:
            self.daemon.stop_task(task, force=True)
        self.daemon.wait_until_final(task)

    def check_two_gpus(self, **how):
        seen, others, found, made, given = self.look(2, **how)
        self.assertEqual(len(seen), 2)
        self.assertEqual(others, CONTROL)
        self.assertEqual(found, [ALLOWED if minor in seen else "ENOENT" for minor in range(8)])
        self.assertEqual(made, ["mknod EPERM"] * 8)
        self.assertEqual(given, [ALLOWED if minor in seen else DENIED for minor in range(8)])

    def test_root_in_an_image_sees_and_opens_only_its_two_gpus(self):
        self.check_two_gpus(image=self.image)

    def test_root_without_an_image_sees_and_opens_only_its_two_gpus(self):
        self.check_two_gpus()

    def test_another_user_in_an_image_sees_and_opens_only_his_two_gpus(self):
        self.check_two_gpus(uid=drover.NOBODY, image=self.image)

    def test_another_user_without_an_image_sees_and_opens_only_his_two_gpus(self):
        self.check_two_gpus(uid=drover.NOBODY)

    def test_without_gpus_none_is_seen_and_none_can_be_opened(self):
        for image in (None, self.image):
            with self.subTest(image=bool(image)):
                seen, others, found, made, given = self.look(0, image=image)
                self.assertEqual((seen, others), (set(), set()))
                self.assertEqual((found, made, given), (["ENOENT"] * 8, ["mknod EPERM"] * 8, [DENIED] * 8))

    def test_control_devices_come_only_with_gpus(self):
        paths = [f"/dev/{name}" for name in sorted(CONTROL)]
        words = ["open", paths[0], ",", "open", paths[1], ",", "open", paths[2]]
        self.assertEqual(self.daemon.run_probe([], *words).out.split(), ["ENOENT"] * 3)
        opened = self.daemon.run_probe(["--gpus", "1"], *words).out.split()
        self.assertTrue(set(opened) <= {ALLOWED, "ok"}, opened)

    def test_tasks_at_the_same_time_share_nothing(self):
        ids = [self.daemon.submit("devices", ",", "sleep", 60, gpus=2) for _ in range(4)]
        minors = [split_devices(self.daemon.wait_for_output(task, "nvidiactl") and self.daemon.output(task))[0]
                  for task in ids]
        self.assertEqual(sorted(minor for two in minors for minor in two), list(range(8)))
        held = self.daemon.held_gpus()
        self.assertEqual(len(held), 8)
        self.assertEqual(sorted(held.values()), sorted(ids * 2))
        for task in ids:
            self.daemon.stop_task(task, force=True)
            self.daemon.wait_until_final(task)
        self.assertEqual(self.daemon.held_gpus(), {})

    def test_images_and_users_cannot_ask_for_more_through_the_environment(self):
        ran = self.daemon.run_probe(["--gpus", "1", "--env", "NVIDIA_VISIBLE_DEVICES=all"], "devices", ",", "env",
                                    "NVIDIA_VISIBLE_DEVICES", image=self.image)
        self.assertEqual(ran.status, 0, ran)
        devices, variable = ran.out.splitlines()
        self.assertEqual(len(split_devices(devices)[0]), 1)
        self.assertNotEqual(variable, "all")

    def test_ordinary_devices_work(self):
        ran = self.daemon.run_probe([], "open", "/dev/null", ",", "open", "/dev/zero", ",", "open", "/dev/urandom",
                                    image=self.image)
        self.assertEqual(ran.out.split(), ["ok"] * 3, ran)

    def test_disks_and_kernel_memory_cannot_be_opened(self):
        """1:1 is the machine's memory, 1:11 is what the kernel says, 10:229 is FUSE, 10:232 are virtual machines."""
        task = self.daemon.submit(command=["/probe", "sleep", "600"], image=self.image)
        self.addCleanup(self.end, task)
        self.daemon.wait_until_running(task)
        numbers = ((1, 1), (1, 11), (10, 229), (10, 232))
        self.assertEqual(self.daemon.opened_by(task, *numbers, (1, 3)), [DENIED] * len(numbers) + ["ok"])


if __name__ == "__main__":
    unittest.main()
