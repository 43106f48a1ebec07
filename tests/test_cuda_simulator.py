"""Programs that use CUDA's driver interface in containers with simulated GPUs: what they hold is told by NVML, the API, the command line and
Prometheus, is missing to others that share the GPU, and is given back when they end, however they do."""

import os
import re
import signal
import unittest

import drover
import test_cdi
from prometheus import parse, require_parser

CHECK = drover.built("cuda_check")
SIMULATED = [drover.BUILD / "lib/drover/sim" / name for name in ("libcuda.so.1", "libnvidia-ml.so.1")]
MIB = 1 << 20


class CudaSimulatorTest(drover.DaemonTest):
    @classmethod
    def setUpClass(cls):
        require_parser()
        super().setUpClass()
        cls.image = cls.make_image("plain")

    @classmethod
    def make_image(cls, name, **how):
        return test_cdi.make_image(cls.daemon.folder / name, cls.daemon.probe, libraries_for=(CHECK, *SIMULATED),
                                   files=[("cuda_check", CHECK.read_bytes())], **how)

    def tearDown(self):
        self.daemon.end_tasks()

    def start(self, *words, image=None, uid=None, gpu_share=0.4):
        task = self.daemon.submit(command=["/cuda_check", *map(str, words), "sleep", "1000"], image=image or self.image, uid=uid,
                                  gpu_share=gpu_share, share_by="none")
        self.addCleanup(self.daemon.end_task, task)
        return task

    def hold(self, mib, **how):
        task = self.start("hold", mib, **how)
        self.daemon.wait_for_output(task, f"held {mib}")
        return task

    def run_in_container(self, *command, **how):
        """What a program says that shares the GPU of the tasks."""
        task = self.daemon.submit(command=list(command), image=how.pop("image", self.image), gpu_share=0.1, share_by="none", **how)
        self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished", self.daemon.output(task, "stderr"))
        return self.daemon.output(task)

    def free_mib(self, **how):
        """As a program in a container is told."""
        return int(re.search(r"^memory (\d+) \d+$", self.run_in_container("/cuda_check", "info", **how), re.MULTILINE)[1])

    def usage(self, task, uid=None):
        """Of the GPU that the task has."""
        gpus = self.daemon.api("GET", "/v1/gpus?usage=true", uid=uid)["gpus"]
        return next(gpu["usage"] for gpu in gpus if gpu["uuid"] == self.daemon.task(task)["gpus"][0])

    def process_of(self, task, uid=None):
        """The one process that the task is seen to have on its GPU."""
        (process,) = drover.wait_for(lambda: [each for each in self.usage(task, uid)["processes"] if each["task"] == task],
                                     "the process to be seen")
        return process

    def kill(self, task):
        os.kill(self.process_of(task)["pid"], signal.SIGKILL)
        self.daemon.wait_until_final(task)

    def test_what_a_program_holds_is_told_to_everybody_who_asks(self):
        for uid in (None, drover.NOBODY):
            with self.subTest(uid=uid):
                task = self.hold(512, uid=uid)
                process = self.process_of(task, uid)
                self.assertEqual(process["name"], "cuda_check")
                self.assertIn(process["memory_bytes"] // MIB, range(512, 1024), "with what a context takes")
                self.assertGreaterEqual(self.usage(task)["memory_used_bytes"], process["memory_bytes"])
                self.assertEqual(self.usage(task)["foreign"], {"processes": 0, "memory_bytes": 0}, "a task's is no stranger's")

                series = parse(self.daemon.request("GET", "/v1/metrics")[2].decode())
                (labels, value), = series["drover_process_gpu_memory_bytes"]
                self.assertEqual((labels["task_id"], labels["pid"], value), (task, str(process["pid"]), process["memory_bytes"]))
                self.assertEqual([labels["task_id"] for labels, _ in series["drover_container_gpu_memory_bytes"]], [task])

                seen = self.run_in_container("/client", uid=uid)
                self.assertNotIn("\nprocess", seen, "a container sees no process of another")
                self.assertGreaterEqual(int(re.search(r"^use 0 (\d+) ", seen, re.MULTILINE)[1]), 512, "but what it takes")
                inside = self.daemon.cli("exec", task, "--", "/client").out
                self.assertRegex(inside, rf"(?m)^process 0 \d+ {process['memory_bytes'] // MIB}$")
                self.assertNotIn(f"process 0 {process['pid']} ", inside, "it has a number of its own there")
                self.daemon.end_task(task)

    def test_what_one_holds_another_lacks_until_it_is_killed(self):
        before = self.free_mib()
        task = self.hold(3000)
        held = self.process_of(task)["memory_bytes"] // MIB
        self.assertEqual(self.free_mib(), before - held)
        self.assertEqual(self.free_mib(uid=drover.NOBODY), before - held)
        refused = self.daemon.submit(command=["/cuda_check", "hold", str(before - 1000)], image=self.image, gpu_share=0.1, share_by="none")
        self.assertEqual((self.daemon.wait_until_final(refused)["exit_status"], self.daemon.output(refused)), (2, ""))
        self.kill(task)
        self.assertEqual(self.free_mib(), before)

    def test_a_busy_program_makes_its_gpu_busy(self):
        task = self.start("hold", 10, "spins", 20000, 10000)
        drover.wait_for(lambda: (self.usage(task)["gpu_percent"] or 0) > 50, "the GPU to be busy")
        self.assertGreater(self.process_of(task)["gpu_percent"], 50)
        idle = next(gpu["usage"] for gpu in self.daemon.api("GET", "/v1/gpus?usage=true")["gpus"]
                    if gpu["uuid"] not in self.daemon.task(task)["gpus"])
        self.assertEqual(idle["gpu_percent"], 0)
        self.assertGreater(self.usage(task)["power_mw"], idle["power_mw"])
        self.assertRegex(self.daemon.cli("gpus").out, r"[5-9]\d% |100% ")

    def test_images_with_other_places_for_libraries(self):
        task = self.hold(700)
        free = self.free_mib()
        for name, how in (("merged", {"merged": True}), ("volume", {"labels": {"com.nvidia.volumes.needed": "nvidia_driver"}})):
            with self.subTest(name):
                self.assertEqual(self.free_mib(image=self.make_image(name, **how)), free)
        self.assertEqual(self.usage(task)["foreign"]["processes"], 0)

    def test_a_restart_of_the_daemon_forgets_nothing(self):
        task = self.hold(600)
        held = self.process_of(task)["memory_bytes"]
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.process_of(task)["memory_bytes"], held)

    def test_a_live_file_that_was_spoilt_is_good_again(self):
        file = self.daemon.state / "sim/live"
        size = file.stat().st_size
        said = self.run_in_container("/probe", "write", "/usr/share/drover-sim/live", "spoilt", uid=drover.NOBODY)
        self.assertEqual(said, "ok\n")
        drover.wait_for(lambda: file.stat().st_size == size, "the daemon to see to it")
        task = self.hold(512)
        self.assertGreaterEqual(self.process_of(task)["memory_bytes"], 512 * MIB)

    def test_the_page_about_it(self):
        section = (drover.ROOT / "docs/simulator.md").read_text().split("\n### In containers\n")[1].split("\n## ")[0]
        commands = re.search(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)[1].replace("\\\n", " ").splitlines()
        self.make_image("build/images/cuda", environment=["PATH=/"])
        shown = [line for line in commands if line.startswith("drover ")]
        self.assertEqual(len(shown), 2, commands)
        ran = drover.run(["sh", "-ec", "\n".join(shown)], cwd=self.daemon.folder,
                         env={**os.environ, "DROVER_SOCKET": str(self.daemon.socket), "PATH": f"{drover.BUILD}:{os.environ['PATH']}"})
        self.assertEqual(ran.status, 0, ran)
        (record,) = [each for each in self.daemon.tasks() if each["state"] not in drover.FINAL_STATES]
        self.daemon.wait_for_output(record["task"]["id"], "held")


if __name__ == "__main__":
    unittest.main()
