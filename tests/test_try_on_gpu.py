"""scripts/try-on-gpu over simulated CUDA: what it finds out there is known, and what is broken it notices."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import drover
from try_on_gpu import kinds, machine, pages, trial  # scripts/lib

SCRIPT = drover.ROOT / "scripts/try-on-gpu"
SHARE = 1 << 30
CONTEXT = 300 << 20  # what one takes in simulated CUDA
OUT_OF_MEMORY = 2


def ask(folder, *options, build=drover.BUILD):
    """The exit status and words of the script, and its report by the names of the checks."""
    report = folder / "report.json"
    smi = os.environ.get("DROVER_NVIDIA_SMI")
    path = f"{pathlib.Path(smi).parent}:{os.environ['PATH']}" if smi else os.environ["PATH"]
    ran = drover.run([SCRIPT, "--build", build, "--output", report, "--simulate", "dgx-h100", "--share", "1GiB", "--brief", *options],
                     env={**os.environ, "PATH": path})
    whole = json.loads(report.read_text()) if report.exists() else {"checks": []}
    return ran, whole, {check["name"]: check for check in whole["checks"]}


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class EverythingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for target in ("cuda_check", "lib/drover/guard/libcuda.so.1", "lib/drover/guard/libnvidia-ml.so.1"):
            drover.built(target)
        with tempfile.TemporaryDirectory() as folder:
            cls.ran, cls.report, cls.checks = ask(pathlib.Path(folder))

    def test_every_question_has_an_answer_or_a_reason(self):
        self.assertEqual(self.ran.status, 0, self.ran)
        for name, check in self.checks.items():
            with self.subTest(name):
                self.assertIn(check["answered"], ("yes", "not possible here"), check)
                self.assertIsNot(check["holds"], False, check)
                self.assertGreater(len(check["verdict"]), 10)
                self.assertIn(f"\n{name} ", self.ran.out, "a line of the table")

    def test_it_says_that_it_is_simulated(self):
        self.assertIs(self.report["machine"]["simulated"], True)
        self.assertIn("SIMULATED NVIDIA H100", self.ran.out)

    def test_the_report_does_not_tell_what_is_nobody_s_business(self):
        def leaves(value):
            if isinstance(value, (dict, list)):
                for each in value.values() if isinstance(value, dict) else value:
                    yield from leaves(each)
            else:
                yield value

        self.assertEqual(len(self.checks["discovery"]["figures"]["gpus"]["gpus"]), 8)
        self.assertNotIn(socket.gethostname(), set(leaves(self.report)))
        self.assertNotIn('"serial"', json.dumps(self.report))

    def test_the_share_is_exact(self):
        totals = self.checks["views"]["figures"]["totals"]
        self.assertEqual(set(totals.values()), {SHARE}, totals)
        self.assertIs(self.checks["views"]["holds"], True)
        if "DROVER_NVIDIA_SMI" in os.environ:
            self.assertEqual(self.checks["views"]["figures"]["smi"], "1024, 812, 212")

    def test_every_kind_is_held_to_it(self):
        for kind in kinds.MAKERS:
            with self.subTest(kind):
                check = self.checks[f"fill-{kind}"]
                figures = check["figures"]
                self.assertIs(check["holds"], True, check)
                self.assertEqual((figures["code"], figures["over"], figures["by"]), (OUT_OF_MEMORY, 0, "process"))
                self.assertEqual(figures["given"], CONTEXT if kind == "managed" else SHARE)

    def test_every_name_leads_to_the_guard(self):
        files = self.checks["names"]["figures"]
        self.assertEqual(len(files), 4)
        for name, file in files.items():
            self.assertEqual(pathlib.Path(file), (drover.BUILD / "lib/drover/guard" / f"{name.removesuffix('.1')}.1").resolve())

    def test_what_else_is_known_of_simulated_cuda(self):
        self.assertEqual(self.checks["pointers"]["figures"]["other"], [])
        self.assertGreater(self.checks["guard-pointers"]["figures"]["covered"], 100)
        self.assertEqual(self.checks["bindings"]["figures"]["come_back"], [])
        self.assertEqual(len(self.checks["kills"]["figures"]["free_after_ms"]), 5)
        self.assertEqual(self.checks["contexts"]["figures"]["lazy"]["process"], CONTEXT)
        for length, found in self.checks["time"]["figures"].items():
            self.assertEqual(len(found["shares"]), 2, length)
        self.assertEqual(set(self.checks["turns"]["figures"]), {"25 of kernels of 1000 us", "50 of kernels of 1000 us"})

    def test_drover_itself(self):
        for name in ("discovery", "isolation", "driver"):
            with self.subTest(name):
                self.assertIs(self.checks[name]["holds"], True, self.checks[name])
        share = self.checks["task-share"]
        if share["answered"] != "yes":
            self.assertIn("does not put the guard into containers", share["verdict"])


class BrokenTest(Folder):
    """A build whose guard is something else."""

    def build_with(self, cuda):
        build = self.folder / "build"
        (build / "lib/drover/guard").mkdir(parents=True)
        (build / "lib/drover/sim").symlink_to(drover.BUILD / "lib/drover/sim")
        (build / "lib/drover/guard/libnvidia-ml.so.1").symlink_to(drover.BUILD / "lib/drover/guard/libnvidia-ml.so.1")
        if cuda:
            (build / "lib/drover/guard/libcuda.so.1").symlink_to(cuda)
        return build

    def test_a_guard_that_lets_everything_through_is_noticed(self):
        build = self.build_with(drover.BUILD / "lib/drover/sim/libcuda.so.1")
        ran, _, checks = ask(self.folder, "--only", "fill-[ap]*", "--only", "views", build=build)
        self.assertEqual(ran.status, 1, ran)
        self.assertIn("DOES NOT HOLD", ran.out)
        for name in ("views", "fill-alloc", "fill-async", "fill-pool", "fill-physical", "fill-array"):
            self.assertIs(checks[name]["holds"], False, checks[name])
        self.assertGreater(checks["fill-alloc"]["figures"]["over"], SHARE)

    def test_a_guard_that_cannot_be_loaded_is_a_finding_and_not_the_end(self):
        broken = self.folder / "broken"
        broken.write_text("no library")
        ran, _, checks = ask(self.folder, "--only", "views", "--only", "mps", build=self.build_with(broken))
        self.assertEqual((ran.status, checks["views"]["answered"], checks["mps"]["answered"]), (1, "no", "yes"), ran)

    def test_what_is_not_built_is_told(self):
        ran, _, checks = ask(self.folder, "--only", "views", "--only", "launches", "--only", "doctor", build=self.build_with(None))
        self.assertEqual(ran.status, 0, ran)
        for name, target in (("views", "guard-cuda guard-nvml"), ("launches", "cuda_check"), ("doctor", "drover")):
            self.assertEqual(checks[name]["answered"], "not possible here")
            self.assertIn(f"--target {target}", checks[name]["verdict"])

    def test_without_any_driver(self):
        ran, _, _ = ask(self.folder, build=self.folder / "nothing")
        self.assertEqual((ran.status, ran.out), (2, ""), ran)
        self.assertIn("libcuda.so.1", ran.err)


class EndTest(Folder):
    """It leaves nothing, however it ends, and writes nowhere else."""

    def interrupted(self, check, until):
        """The script, told to end while a check is under way."""
        words = [SCRIPT, "--build", drover.BUILD, "--output", self.folder / "report.json", "--simulate", "dgx-h100", "--only", check]
        process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(self.folder)})
        drover.wait_for(lambda: until() or process.poll() is not None, "the check to begin")
        self.assertIsNone(process.poll(), "it runs")
        process.terminate()
        self.assertEqual(process.wait(drover.PATIENCE), 128 + signal.SIGTERM)
        self.assertEqual(list(self.folder.glob("drover-try-*")), [])
        drover.wait_for(lambda: not drover.processes_of(self.folder), lambda: f"{drover.processes_of(self.folder)} to end", timeout=30)

    def test_when_it_is_interrupted(self):
        self.interrupted("kills", lambda: len(drover.processes_of(self.folder)) > 1)  # itself, and who watches

    def test_when_it_is_interrupted_with_a_daemon(self):
        self.interrupted("isolation", lambda: list(self.folder.glob("drover-try-*/drover.*/state/*")))

    def test_a_link_in_place_of_the_report(self):
        victim = self.folder / "victim"
        victim.write_text("mine")
        (self.folder / "report.json").symlink_to(victim)
        ran, _, checks = ask(self.folder, "--only", "mps")
        self.assertEqual((ran.status, victim.read_text(), list(checks)), (0, "mine", ["mps"]), ran)

    def test_a_report_that_cannot_be_written(self):
        ran, _, _ = ask(self.folder, "--only", "mps", "--output", self.folder / "nowhere/report.json")
        self.assertEqual(ran.status, 2, ran)
        self.assertIn("the report cannot be written", ran.err)


class TimeTest(Folder):
    def test_what_there_is_no_time_for_is_skipped(self):
        ran, _, checks = ask(self.folder, "--minutes", "0.1")
        self.assertEqual(ran.status, 0, ran)
        self.assertEqual({check["answered"] for check in checks.values()}, {"not possible here"})

    def test_a_program_that_hangs_is_ended_with_what_it_started(self):
        with self.assertRaisesRegex(trial.Failed, "'sh' did not end within 1 s"):
            machine.run(["sh", "-c", f"sleep 1000 & echo $! > {self.folder}/pid; wait"], os.environ, 1)
        pid = int((self.folder / "pid").read_text())
        drover.wait_for(lambda: not pathlib.Path(f"/proc/{pid}").exists() or "\nState:\tZ" in pathlib.Path(f"/proc/{pid}/status").read_text(),
                        "what it started to end")

    def test_a_program_that_crashes_is_told_by_its_signal(self):
        with self.assertRaisesRegex(trial.Failed, "SIGSEGV"):
            machine.run(["sh", "-c", "kill -SEGV $$"], os.environ, 60)

    def test_a_mistake_of_a_check_is_no_end(self):
        asked = trial.Trial(self, None, self.folder / "report.json", time.monotonic() + 60)
        result = asked.ask(trial.Check("wrong", "?", 10, lambda _: 1 // 0))
        self.assertEqual((result["answered"], result["verdict"][:17]), ("no", "ZeroDivisionError"))
        self.assertFalse(asked.good())

    @staticmethod
    def facts():  # of the machine that the trial above has
        return {}


class PagesTest(Folder):
    def test_the_account_is_read_as_the_guard_writes_it(self):
        here = machine.Machine(drover.BUILD, self.folder, "dgx-h100")
        here.limit({here.gpus[1]["uuid"]: SHARE, here.gpu["uuid"]: SHARE})
        process = machine.start([drover.built("cuda_check"), "hold", "512", "sleep", "1000"], here.environment_of(guarded=True),
                                stdout=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"held 512\n")
        self.assertEqual([pages.held(self.folder, entry) for entry in (0, 1)], [0, CONTEXT + (512 << 20)])
        machine.end(process)
        self.assertEqual(pages.held(self.folder, 1), 0, "it is dead")


if __name__ == "__main__":
    unittest.main()
