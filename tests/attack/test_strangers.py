"""A GPU is handed on only when nobody has it open any more: the driver serves whoever has."""

import os
import shutil
import stat
import subprocess
import sys
import uuid

from attack import attack
import drover

# The GPU of these tests has a device with a real driver behind it, which nobody else has open: /dev/full.
DEVICE = os.makedev(1, 7)
ONLY_NAME = "import os, sys; os.open(sys.argv[1], os.O_PATH); print('ok', flush=True); sys.stdin.read()"


class StrangersTest(attack.AttackTest):
    profile = "k40m"

    def setUp(self):
        gpus = self.daemon.api("GET", "/v1/gpus")["gpus"]
        self.count = len(gpus)
        node = self.daemon.state / f"sim/dev/nvidia{gpus[0]['index']}"
        node.unlink()
        os.mknod(node, stat.S_IFCHR | 0o666, DEVICE)
        node.chmod(0o666)
        self.node = node

    def gpu(self):
        return self.daemon.api("GET", "/v1/gpus", uid=self.victim.uid)["gpus"][0]

    def process(self, *command, user=None):
        """A program beside Drover, until the test ends."""
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   **(user.identity() if user else {}))
        self.addCleanup(self.end, process)
        return process

    def program(self, name):
        """The probe by another name: the kernel calls a process by that of its file."""
        return shutil.copy(self.daemon.probe, attack.make_folder(self.ground / "bin") / name)

    def opener(self, node, user=None, name="opener"):
        process = self.process(self.program(name), "open", node, ",", "sleep", 1000, user=user)
        self.hear(process, "ok")
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.wait(drover.PATIENCE)
        process.stdin.close()
        process.stdout.close()

    def hear(self, process, word):
        self.assertEqual(process.stdout.readline().strip(), word)

    def job(self, caller=None):
        """Wants all GPUs."""
        task = self.submit(caller or self.victim, ["/probe", "open", "/dev/nvidia0", ",", "sleep", 1000], image=self.image("job"),
                           gpus=self.count)
        self.addCleanup(self.daemon.end_task, task)
        return task

    def assert_waits(self, task, *words):
        """It does not get the GPU, and everybody reads why."""
        def told():
            record = self.daemon.task(task)
            self.assertIn(record["state"], ("queued", "starting"), "it was given a GPU that somebody else has open")
            return record["state"] == "queued" and self.gpu()["unfit"]

        drover.wait_for(told, "the GPU to be told unfit")
        listing = self.cli(self.victim, "gpus").out
        explained = self.cli(self.victim, "explain", task).out
        for word in ("has it open", *words):
            self.assertIn(word, self.gpu()["unfit"])
            self.assertIn(word, explained)
        self.assertIn("unfit", listing)
        self.assertEqual(self.daemon.task(task)["state"], "queued")

    def assert_runs(self, task):
        self.daemon.wait_until_running(task)
        drover.wait_for(lambda: "ok" in self.daemon.output(task, uid=self.victim.uid), "the job to open its GPU")

    def lend(self, name):
        """mallory's task has the GPU, hands the open device to whoever receives at this name, and ends."""
        lender = self.submit(self.mallory, ["/probe", "lend", "/dev/nvidia0", name], image=self.image("lender"), gpus=self.count,
                             network={"mode": "host"})
        record = self.daemon.wait_until_final(lender)
        self.assertEqual((record["state"], self.daemon.output(lender, uid=self.mallory.uid)), ("finished", "ok\n"), record)

    def test_a_task_hands_its_open_gpu_to_another_task(self):
        name = f"lent-{uuid.uuid4().hex}"
        keeper = self.submit(self.mallory, ["/probe", "rename", "keeper", ",", "borrow", name, ",", "sleep", 1000],
                             image=self.image("keeper"), network={"mode": "host"})
        self.addCleanup(self.daemon.end_task, keeper)
        self.daemon.wait_until_running(keeper)
        self.lend(name)
        job = self.job()
        self.assert_waits(job, "(keeper)", "a task that does not have it")
        self.daemon.stop_task(keeper, force=True)
        self.assert_runs(job)
        self.assertEqual(self.gpu()["unfit"], "")

    def test_a_task_calls_itself_like_a_monitor(self):
        """Even root's."""
        name = f"lent-{uuid.uuid4().hex}"
        keeper = self.submit(None, ["/probe", "rename", "nvidia-persiste", ",", "borrow", name, ",", "sleep", 1000],
                             image=self.image("monitor"), network={"mode": "host"})
        self.addCleanup(self.daemon.end_task, keeper)
        self.daemon.wait_until_running(keeper)
        self.lend(name)
        job = self.job()
        self.assert_waits(job, "(nvidia-persiste)")
        self.daemon.stop_task(keeper, force=True)
        self.assert_runs(job)

    def test_a_task_hands_its_open_gpu_to_a_program_outside(self):
        name = f"lent-{uuid.uuid4().hex}"
        keeper = self.process(self.program("keeper"), "borrow", name, ",", "sleep", 1000, user=self.mallory)
        self.lend(name)
        self.hear(keeper, "ok")
        job = self.job()
        self.assert_waits(job, f"process {keeper.pid} ", "no task's")
        self.end(keeper)
        self.assert_runs(job)

    def test_a_program_outside_opened_it_by_a_node_of_another_name(self):
        node = self.ground / "innocent"
        node.unlink(missing_ok=True)
        os.mknod(node, stat.S_IFCHR | 0o666, DEVICE)
        node.chmod(0o666)
        opener = self.opener(node, self.mallory, "nvidia-smi")
        job = self.job()
        self.assert_waits(job, f"process {opener.pid} ")
        self.end(opener)
        self.assert_runs(job)

    def test_a_program_that_the_driver_tells_of(self):
        computing = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(lambda: (computing.kill(), computing.wait()))
        self.daemon.set_faults(f"0: {{processes: [{{pid: {computing.pid}, memory_mib: 512}}]}}")
        self.addCleanup(self.daemon.set_faults, "{}")
        job = self.job()
        self.assert_waits(job, f"process {computing.pid} (sleep)", "no task's")
        self.daemon.set_faults("{}")
        self.assert_runs(job)

    def test_it_is_told_before_anybody_asks_for_the_gpu(self):
        opener = self.opener(self.node, self.mallory)
        drover.wait_for(lambda: f"process {opener.pid} " in self.gpu()["unfit"], "the GPU to be told unfit")
        self.end(opener)
        drover.wait_for(lambda: not self.gpu()["unfit"], "the GPU to be fit again")

    def test_the_system_s_own_programs_may(self):
        self.opener(self.node, name="nvidia-persistenced")
        self.assert_runs(self.job())

    def test_a_name_of_the_device_is_not_the_device(self):
        """Everybody may hold an O_PATH descriptor of everything, which must not keep GPUs from others."""
        self.hear(self.process(sys.executable, "-c", ONLY_NAME, self.node), "ok")
        self.assert_runs(self.job())

    def test_who_has_the_gpu_may_have_it_open_as_often_as_it_likes(self):
        task = self.submit(self.victim, ["/probe", "lend", "/dev/nvidia0", "drover-nobody-listens"], image=self.image("own"), gpus=self.count)
        self.addCleanup(self.daemon.end_task, task)
        self.daemon.wait_until_running(task)
        self.assertEqual(self.gpu()["unfit"], "")


class DockerStrangersTest(attack.ThroughDocker, StrangersTest):
    """The same through a Docker Engine."""


class IgnoredTest(attack.AttackTest):
    """An administrator who has programs of his own on the GPUs says so."""

    profile = "k40m"
    arguments = ("--gpu-strangers", "ignore")

    def test_nobody_is_looked_for(self):
        self.daemon.state.joinpath("sim/faults.yaml").write_text(f"0: {{processes: [{{pid: {os.getpid()}, memory_mib: 1}}]}}")
        task = self.submit(None, ["/probe", "say", "hello"], image=self.image("job"), gpus=1)
        self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished")
