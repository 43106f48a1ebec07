"""Tasks with a share of a simulated GPU, in real containers: what they see of it, how much they get, who goes round the guard, and what is
left when they end. What refuses them is the guard's libraries, as they are installed."""

import json
import os
import pathlib
import re
import signal
import time
import unittest

import drover
import test_cdi
import test_cuda_simulator

CHECK = drover.built("cuda_check")
LIBRARIES = [drover.BUILD / "lib/drover" / name for name in
             ("sim/libcuda.so.1", "sim/libnvidia-ml.so.1", "guard/libcuda.so.1", "guard/libnvidia-ml.so.1")]
GIB = 1024  # MiB
SHARE = 8 * GIB
CONTEXT = 300  # MiB, of simulated CUDA
SEEN, ENDED = 5, 10  # seconds; 0.2 and 0.5 on a machine with nothing else to do


class GuardTest(drover.DaemonTest):
    kind_of_daemon = drover.Daemon
    profile = "dgx-a100"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.images = {name: cls.make_image(name, **how) for name, how in (
            ("plain", {}), ("merged", {"merged": True}), ("volume", {"labels": {"com.nvidia.volumes.needed": "nvidia_driver"}}))}

    @classmethod
    def make_image(cls, name, **how):
        return test_cdi.make_image(cls.daemon.folder / name, cls.daemon.probe, libraries_for=(CHECK, *LIBRARIES),
                                   files=[("cuda_check", CHECK.read_bytes())], **how)

    def tearDown(self):
        self.daemon.end_tasks()

    def submit(self, *words, image="plain", **how):
        how.setdefault("gpu_share", "8GiB")
        return self.daemon.submit(command=["/cuda_check", *map(str, words)], image=self.images[image], **how)

    def run_to_end(self, *words, **how):
        """What it says, and its exit status."""
        task = self.submit(*words, **how)
        record = self.daemon.wait_until_final(task)
        return self.daemon.output(task) + self.daemon.output(task, "stderr"), record["exit_status"]

    def hold(self, mib, **how):
        task = self.submit("hold", mib, "sleep", 1000, **how)
        self.daemon.wait_for_output(task, f"held {mib}")
        return task

    def memory(self, **how):
        """(free, total) in MiB, as a program is told."""
        said, status = self.run_to_end("info", **how)
        self.assertEqual(status, 0, said)
        return tuple(map(int, re.search(r"^memory (\d+) (\d+)$", said, re.MULTILINE).groups()))

    def test_a_share_is_all_that_a_program_sees_and_gets(self):
        for image in self.images:
            with self.subTest(image):
                self.assertEqual(self.memory(image=image), (SHARE - CONTEXT, SHARE))
                said, status = self.run_to_end("fill", 2, image=image)
                self.assertEqual(status, 0, said)
                self.assertIn(int(re.search(r"filled (\d+)", said)[1]), range(SHARE - CONTEXT - 4, SHARE - CONTEXT + 1))
                self.assertEqual(self.run_to_end("hold", SHARE, image=image)[1], 2, "refused as a full card refuses")


if __name__ == "__main__":
    unittest.main()
