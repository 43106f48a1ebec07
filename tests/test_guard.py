"""Tasks with a share of a simulated GPU, in real containers: what they see of it, how much they get, who goes round the guard, and what is
left when they end. What refuses them is the guard's libraries, as they are installed."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import drover
import test_cdi
from prometheus import parse, require_parser

CHECK = drover.built("cuda_check")
LIBRARIES = [drover.BUILD / "lib/drover" / name for name in
             ("sim/libcuda.so.1", "sim/libnvidia-ml.so.1", "guard/libcuda.so.1", "guard/libnvidia-ml.so.1")]
GIB = 1024  # MiB
SHARE = 8 * GIB
CONTEXT = 300  # MiB, of simulated CUDA
BEHIND = "/usr/local/nvidia/guard/libdrover-driver-cuda.so.1"  # the driver's own


class SharesTest(drover.DaemonTest):
    kind_of_daemon = drover.Daemon
    profile = "dgx-a100"

    def tearDown(self):
        self.daemon.end_tasks()

    def run_to_end(self, *words, **how):
        """What it says, and its exit status."""
        task = self.submit(*words, **how)
        record = self.daemon.wait_until_final(task)
        self.assertIn("exit_status", record, record)
        return self.daemon.output(task) + self.daemon.output(task, "stderr"), record["exit_status"]

    def hold(self, mib, **how):
        task = self.submit("hold", mib, "sleep", 1000, **how)
        self.daemon.wait_for_output(task, f"held {mib}")
        return task

    def series(self, name):
        require_parser()
        return parse(self.daemon.request("GET", "/v1/metrics")[2].decode()).get(name, [])

    def start_cli(self, *words):
        return subprocess.Popen(self.daemon.cli_command(*words), env={**os.environ, "DROVER_SOCKET": str(self.daemon.socket)},
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def holder_of(self, task):
        """Of the task's processes the one that holds memory of its GPU, in the machine's numbering."""
        gpus = self.daemon.api("GET", "/v1/gpus?usage=true")["gpus"]
        return next((each["pid"] for gpu in gpus for each in gpu["usage"]["processes"]
                     if each["task"] == task and each["memory_bytes"] > GIB << 20), None)

    def memory(self, **how):
        """(free, total) in MiB, as a program is told."""
        said, status = self.run_to_end("info", **how)
        self.assertEqual(status, 0, said)
        return tuple(map(int, re.search(r"^memory (\d+) (\d+)$", said, re.MULTILINE).groups()))


class ImagesTest(SharesTest):
    """In containers of images of the test's own."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.images = {name: cls.make_image(name, **how) for name, how in (
            ("plain", {}), ("merged", {"merged": True}), ("volume", {"labels": {"com.nvidia.volumes.needed": "nvidia_driver"}}))}

    @classmethod
    def make_image(cls, name, **how):
        return test_cdi.make_image(cls.daemon.folder / name, cls.daemon.probe, libraries_for=(CHECK, *LIBRARIES),
                                   files=[("cuda_check", CHECK.read_bytes())], **how)

    def submit(self, *words, image="plain", **how):
        how.setdefault("gpu_share", "8GiB")
        return self.daemon.submit(command=["/cuda_check", *map(str, words)], image=self.images[image], **how)


class GuardTest(ImagesTest):
    def test_a_share_is_all_that_a_program_sees_and_gets(self):
        for image in self.images:
            with self.subTest(image):
                self.assertEqual(self.memory(image=image), (SHARE - CONTEXT, SHARE))
                said, status = self.run_to_end("fill", 2, image=image)
                self.assertEqual(status, 0, said)
                self.assertIn(int(re.search(r"filled (\d+)", said)[1]), range(SHARE - CONTEXT - 4, SHARE - CONTEXT + 1))
                self.assertEqual(self.run_to_end("hold", SHARE, image=image)[1], 2, "refused as a full card refuses")


    def test_who_is_guarded_is_told_everywhere(self):
        task = self.hold(512)
        record = self.daemon.task(task)
        self.assertEqual([grant["tier"] for grant in record["grants"]], ["guarded"])
        for words in (("ps",), ("show", task), ("gpus",), ("explain", task)):
            self.assertIn("(guarded)", self.daemon.cli(*words).out, words)
        (labels, limit), = [one for one in self.series("drover_container_gpu_memory_limit_bytes") if one[0]["task_id"] == task]
        self.assertEqual((labels["tier"], limit), ("guarded", SHARE << 20))
        charged = drover.wait_for(lambda: self.series("drover_container_gpu_memory_charged_bytes"), "the guard's own count")
        self.assertEqual([value for _, value in charged], [(512 + CONTEXT) << 20])
        self.assertEqual([value for _, value in self.series("drover_container_gpu_memory_refused_total")], [0])

    def test_what_the_guard_refuses_is_counted_and_stays_so(self):
        task = self.hold(512)
        for _ in range(3):
            self.assertEqual(self.daemon.cli("exec", task, "--", "/cuda_check", "hold", str(9 * GIB)).status, 2)

        def refused():
            return [value for labels, value in self.series("drover_container_gpu_memory_refused_total") if labels["task_id"] == task]
        drover.wait_for(lambda: refused() == [3], lambda: f"each to be counted: {refused()}")
        self.daemon.kill()
        self.daemon.start()
        drover.wait_for(lambda: refused() == [3], lambda: f"the processes have ended, and the count is there: {refused()}")

    def test_who_is_not_guarded_is_told_so(self):
        for how in ({"share_by": "none"}, {"gpu_share": "512MiB"}, {"group": "team", "share_by": "none"}):
            with self.subTest(how):
                task = self.hold(10, **how)
                self.assertEqual(self.daemon.task(task)["grants"][0]["tier"], "counted")
                self.assertIn("counted", self.daemon.cli("ps").out)
                self.daemon.end_task(task)
        self.assertGreater(self.memory(share_by="none")[1], SHARE, "it sees the whole card")
        self.assertGreater(self.memory(gpu_share=None, gpus=1)[1], SHARE)

    def test_tasks_of_a_group_have_one_share_together_whoever_comes_and_goes(self):
        first = self.hold(5 * GIB, group="team")
        self.assertEqual(self.daemon.task(first)["grants"][0]["tier"], "guarded")
        self.assertEqual(self.run_to_end("hold", 3 * GIB, group="team")[1], 2)
        second = self.hold(2 * GIB, group="team", share_by="limits")
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.run_to_end("hold", GIB, group="team")[1], 2)
        self.assertEqual(self.run_to_end("hold", 3 * GIB)[1], 0, "another task has a share of its own")
        self.daemon.end_task(first)
        third = self.hold(4 * GIB, group="team")
        self.assertEqual(self.run_to_end("hold", 2 * GIB, group="team")[1], 2)
        drover.wait_for(lambda: {value for _, value in self.series("drover_container_gpu_memory_charged_bytes")} == {(6 * GIB + 2 * CONTEXT) << 20},
                        "both to be counted together")
        for task in (second, third):
            self.daemon.end_task(task)
        self.assertEqual(self.run_to_end("hold", 7 * GIB, group="team")[1], 0, "what is over leaves nothing")

    def test_tasks_of_a_group_that_start_at_once_have_one_share(self):
        for _ in range(5):
            tasks = [self.submit("hold", 3 * GIB, "sleep", 1000, group="rush") for _ in range(4)]
            drover.wait_for(lambda tasks=tasks: len([task for task in tasks if self.daemon.task(task)["state"] == "running"]) == 2
                            and len([task for task in tasks if self.daemon.task(task)["state"] == "failed"]) == 2, "two of them to fit")
            for task in tasks:
                self.daemon.end_task(task)

    def test_processes_of_a_container_see_each_other_and_nobody_else(self):
        other = self.hold(700)
        task = self.submit("hold", 512, "sleep", 1000)
        self.daemon.wait_for_output(task, "held 512")
        inside = self.daemon.cli("exec", task, "--", "/client").out
        own = drover.wait_for(lambda: re.findall(r"(?m)^process 0 (\d+) (\d+)$", self.daemon.cli("exec", task, "--", "/client").out),
                              "its processes to be told")
        self.assertEqual([int(mib) for _, mib in own], [512 + CONTEXT])
        self.assertLess(int(own[0][0]), 100, "it has a number of its own there")
        self.assertRegex(inside, rf"(?m)^use 0 {512 + CONTEXT} ", "what others hold is not its own")
        self.assertEqual(self.daemon.task(other)["state"], "running")

    def test_another_user_and_a_second_program_are_held_too(self):
        task = self.hold(6 * GIB, uid=drover.NOBODY)
        second = self.daemon.cli("exec", task, "--", "/cuda_check", "hold", str(2 * GIB), uid=drover.NOBODY)
        self.assertEqual(second.status, 2, second)
        self.assertIn("held 1024", self.daemon.cli("exec", task, "--", "/cuda_check", "hold", "1024", uid=drover.NOBODY).out)

    def test_a_killed_process_leaves_its_share_to_the_others(self):
        task = self.daemon.submit(command=["/probe", "sleep", "1000"], image=self.images["plain"], gpu_share="8GiB")
        self.daemon.wait_until_running(task)
        for _ in range(3):
            held = self.start_cli("exec", task, "--", "/cuda_check", "hold", str(6 * GIB), "sleep", "1000")
            pid = drover.wait_for(lambda: self.holder_of(task), "it to hold its memory")
            os.kill(pid, signal.SIGKILL)
            held.wait()
            self.assertIn("held 6144", self.daemon.cli("exec", task, "--", "/cuda_check", "hold", str(6 * GIB)).out)

    def test_the_daemon_may_be_killed_meanwhile(self):
        task = self.hold(5 * GIB)
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.daemon.task(task)["grants"][0]["tier"], "guarded")
        self.assertEqual(self.daemon.cli("exec", task, "--", "/cuda_check", "hold", str(4 * GIB)).status, 2)
        drover.wait_for(lambda: [value for _, value in self.series("drover_container_gpu_memory_charged_bytes")] == [(5 * GIB + CONTEXT) << 20],
                        "its pages to be looked at again")

    def test_nothing_is_left_of_a_task(self):
        task = self.hold(10)
        pages = self.daemon.state / "tasks" / task / "share"
        self.assertEqual(sorted(page.name for page in pages.iterdir()), ["account", "limits"])
        self.daemon.end_task(task)
        drover.wait_for(lambda: not pages.exists(), "the pages to be removed")

    def test_what_cannot_be_is_refused_in_a_sentence(self):
        for fields, path, words in (({"share_by": "magic"}, "/share_by", "auto, mig, kernel, mps, limits, none"),
                                    ({"gpus": 1, "gpu_share": None, "share_by": "limits"}, "/share_by", "whole GPUs"),
                                    ({"gpu_share": "512MiB", "share_by": "limits"}, "/share_by", "1 GiB"),
                                    ({"group": "team", "share_by": "kernel"}, "/share_by", "group"),
                                    ({"gpu_share": "512MiB", "share_by": "kernel"}, "/share_by", "1 GiB"),
                                    ({"gpus": 1, "gpu_share": None, "share_by": "kernel"}, "/share_by", "whole GPUs")):
            with self.subTest(fields), self.assertRaises(drover.ApiError) as refused:
                self.daemon.submit(command=["true"], **{"gpu_share": "2GiB", "image": self.images["plain"], **fields})
            self.assertIn(path, str(refused.exception))
            self.assertIn(words, str(refused.exception))


    def test_a_driver_without_limits_of_its_own_sets_none(self):
        record = self.daemon.wait_until_final(self.submit("info", share_by="kernel"))
        self.assertEqual((record["state"], record["cause"]), ("failed", "not_started"))
        self.assertIn("The driver cannot hold it to its share", record["reason"])

    def test_without_an_image_a_driver_that_is_simulated_is_not_there(self):
        task = self.daemon.submit(command=["true"], gpu_share="2GiB", share_by="limits")
        self.assertIn("name an image", self.daemon.wait_until_final(task)["reason"])
        task = self.daemon.submit(command=["sleep", "1000"], gpu_share="2GiB")
        self.daemon.wait_until_running(task)
        self.assertEqual(self.daemon.task(task)["grants"][0]["tier"], "counted")

    def test_who_goes_round_the_guard_is_ended_and_nobody_else(self):
        neighbour = self.hold(512)
        task = self.submit("hold", 12 * GIB, "sleep", 1000, env={"CUDA_LIBRARY": BEHIND})
        record = self.daemon.wait_until_final(task)
        self.assertEqual((record["state"], record["cause"]), ("failed", "share"))
        self.assertRegex(record["reason"], r"held 12\.[0-9] GiB of GPU 0 and may hold 8 GiB")
        self.assertEqual(self.daemon.task(neighbour)["state"], "running")


    def test_time_is_shared_as_it_was_given(self):
        quarter, rest = (self.submit("share", 2000, 8, gpu_share=share) for share in (0.25, 0.75))
        self.assertEqual(self.daemon.task(quarter)["gpus"], self.daemon.task(rest)["gpus"])
        ran = {}
        for task in (quarter, rest):
            self.daemon.wait_until_final(task)
            ran[task] = int(re.search(r"shared (\d+)", self.daemon.output(task))[1])
        self.assertLess(1.5 * ran[quarter], ran[rest], "guard_test measures how exact that is; here other tests take the processors")

    def test_time_that_nobody_else_wants_is_lent(self):
        said, status = self.run_to_end("share", 2000, 3, gpu_share=0.1)
        self.assertGreater(int(re.search(r"shared (\d+)", said)[1]), 0.2 * 3 * 500, f"twice its share, {status}: {said}")


class OnHostTest(SharesTest):
    """Without an image, where the machine has its driver."""

    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="drover-driver-"))
        cls.addClassCleanup(shutil.rmtree, cls.root)
        cls.root.chmod(0o755)
        cls.arguments = ("--driver-root", cls.root)
        profile = drover.ROOT / f"sim/profiles/{cls.profile}.yaml"
        version = re.search(r'driver: \{version: "([\d.]+)"', profile.read_text())[1]
        cls.lib64 = cls.root / "usr/lib64"
        cls.lib64.mkdir(parents=True)
        for library in ("libcuda.so", "libnvidia-ml.so"):
            shutil.copy(drover.BUILD / f"lib/drover/sim/{library}.1", cls.lib64 / f"{library}.{version}")
            (cls.lib64 / f"{library}.1").symlink_to(f"{library}.{version}")
        super().setUpClass()
        # What the simulator's libraries find by themselves only where containers with an image have them.
        shutil.copy(profile, cls.root / "profile.yaml")
        os.link(cls.daemon.state / "sim/live", cls.root / "live")
        cls.environment = {"LD_LIBRARY_PATH": str(cls.lib64), "DROVER_SIM_PROFILE": str(cls.root / "profile.yaml"), "DROVER_SIM_DEV": "/dev"}

    def submit(self, *words, env=None, **how):
        how = {"gpu_share": "8GiB", "uid": drover.NOBODY, **how}
        return self.daemon.submit(command=[str(CHECK), *map(str, words)], env={**self.environment, **(env or {})}, **how)

    def test_a_share_is_all_that_a_program_sees_and_gets(self):
        for how in ({}, {"share_by": "limits"}, {"read_only": True}, {"uid": 0}):
            with self.subTest(how):
                self.assertEqual(self.memory(**how)[1], SHARE)
                self.assertEqual(self.run_to_end("hold", SHARE + 2, **how)[1], 2, "refused as a full card refuses")
        self.assertGreater(self.memory(share_by="none")[1], SHARE)
        self.assertGreater(self.memory(gpu_share=None, gpus=1)[1], SHARE)

    def test_it_is_told_and_what_its_programs_start_later_is_held_too(self):
        task = self.hold(5 * GIB)
        self.assertEqual(self.daemon.task(task)["grants"][0]["tier"], "guarded")
        drover.wait_for(lambda: [value for _, value in self.series("drover_container_gpu_memory_charged_bytes")] == [(5 * GIB + CONTEXT) << 20],
                        "its pages to be looked at")
        self.assertEqual(self.daemon.cli("exec", task, "--", str(CHECK), "hold", str(4 * GIB), uid=drover.NOBODY).status, 2)

    def test_the_machine_keeps_its_driver(self):
        task = self.hold(10)
        self.assertEqual(list(pathlib.Path("/run/drover-guard").iterdir()), [])
        self.assertNotRegex(pathlib.Path("/proc/self/mountinfo").read_text(), f"{self.root}|drover-guard")
        self.daemon.end_task(task)

    def test_who_goes_round_the_guard_is_ended(self):
        task = self.submit("hold", 12 * GIB, "sleep", 1000, env={"CUDA_LIBRARY": "/run/drover-guard/libdrover-driver-cuda.so.1"})
        self.assertEqual(self.daemon.wait_until_final(task)["cause"], "share")

    def test_nothing_lies_over_the_guard(self):
        for place in (self.lib64, self.root / "usr", "/run/drover-guard"):
            with self.subTest(place):
                task = self.submit("info", volumes=[{"host_path": "/tmp", "container_path": str(place)}])
                self.assertIn("is the container's own", self.daemon.wait_until_final(task)["reason"])


if __name__ == "__main__":
    unittest.main()
