"""A container sees exactly its GPUs, and can open no others (M4).

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

    def look(self, options, uid=None, image=None):
        """Minors that the task sees, and what opening each of the machine's 8 GPUs gives it: by the node that it finds, and
        by one that it makes itself."""
        node = "/tmp/made" if image else "made"
        words = ["devices"]
        for minor in range(8):
            words += [",", "open", f"/dev/nvidia{minor}", ",", "mknod", node, MAJOR, minor]
        ran = self.daemon.run_probe(options, *words, uid=uid, image=image)
        self.assertEqual(ran.status, 0, ran)
        lines = ran.out.splitlines()
        seen, others = split_devices(lines[0])
        return seen, others, dict(enumerate(lines[1::2])), dict(enumerate(lines[2::2]))

    def check_two_gpus(self, **how):
        seen, others, found, made = self.look(["--gpus", "2"], **how)
        self.assertEqual(len(seen), 2)
        self.assertEqual(others, CONTROL)
        for minor in range(8):
            self.assertEqual(found[minor], ALLOWED if minor in seen else "ENOENT", f"minor {minor}")
        return seen, made

    def check_made_nodes(self, seen, made):
        for minor in range(8):
            self.assertEqual(made[minor], ALLOWED if minor in seen else DENIED, f"minor {minor}")

    def test_root_in_an_image_sees_and_opens_only_its_two_gpus(self):
        self.check_made_nodes(*self.check_two_gpus(image=self.image))

    def test_root_without_an_image_sees_and_opens_only_its_two_gpus(self):
        self.check_made_nodes(*self.check_two_gpus())

    def test_another_user_in_an_image_sees_and_opens_only_his_two_gpus(self):
        _, made = self.check_two_gpus(uid=drover.NOBODY, image=self.image)
        self.assertEqual(set(made.values()), {"mknod EPERM"})

    def test_another_user_without_an_image_sees_and_opens_only_his_two_gpus(self):
        _, made = self.check_two_gpus(uid=drover.NOBODY)
        self.assertEqual(set(made.values()), {"mknod EPERM"})

    def test_without_gpus_none_is_seen_and_none_can_be_opened(self):
        for image in (None, self.image):
            with self.subTest(image=bool(image)):
                seen, others, found, made = self.look([], image=image)
                self.assertEqual((seen, others), (set(), set()))
                self.assertEqual(set(found.values()), {"ENOENT"})
                self.assertEqual(set(made.values()), {DENIED})

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
        """8:0 is the first SCSI disk, 1:1 is the machine's memory."""
        ran = self.daemon.run_probe([], "mknod", "/tmp/memory", 1, 1, image=self.image)
        self.assertEqual(ran.out.split(), [DENIED], ran)


if __name__ == "__main__":
    unittest.main()
