"""mallory spoils the live file of simulated GPUs, which each container with one may write: who reads it goes on."""

import pathlib

from attack import attack
import drover

FILE = "/usr/local/nvidia/share/drover-sim/live"


class LiveFileTest(attack.AttackTest):
    profile = "k80"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.program = cls.build("spoil").read_bytes()
        cls.file = cls.daemon.state / "sim/live"
        cls.whole, cls.head = cls.file.stat(), cls.read_head()

    def setUp(self):
        self.spoiling = self.image("spoiling", lambda layer: layer.add_file("spoil", self.program, 0o755),
                                   labels={"com.nvidia.volumes.needed": "nvidia_driver"})

    @classmethod
    def read_head(cls):
        with open(cls.file, "rb") as file:
            return file.read(8)

    def spoil(self, *ways, user=None):
        """Runs the program in a task until the test ends; returns what it says of each way."""
        task = self.submit(user or self.mallory, ["/spoil", FILE, *ways], image=self.spoiling, gpus=1)
        self.addCleanup(self.wait_until_whole)
        self.addCleanup(self.daemon.end_task, task)
        self.daemon.wait_for_output(task, ways[-1])
        return dict(line.split() for line in self.daemon.output(task).splitlines())

    def wait_until_whole(self):
        def is_whole():
            now = self.file.lstat()
            same = all(getattr(now, name) == getattr(self.whole, name) for name in ("st_ino", "st_size", "st_mode"))
            return same and self.read_head() == self.head

        drover.wait_for(is_whole, "the live file to be as it must be")

    def memory_of_daemon(self):
        status = pathlib.Path(f"/proc/{self.daemon.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) << 10

    def assert_goes_on(self):
        """It tells what GPUs do, and runs tasks, as if nothing were."""
        before = self.memory_of_daemon()
        for _ in range(3):
            gpus = self.daemon.api("GET", "/v1/gpus?usage=true", timeout=attack.ANSWERED_MEANWHILE)["gpus"]
            self.assertEqual([gpu["healthy"] for gpu in gpus], [True, True])
            for gpu in gpus:
                self.assertLessEqual(gpu["usage"]["memory_used_bytes"], gpu["memory_bytes"], gpu)
                self.assertLessEqual(gpu["usage"]["gpu_percent"], 100, gpu)
            self.assertEqual(self.daemon.request("GET", "/v1/metrics", timeout=attack.ANSWERED_MEANWHILE)[0], 200)
        self.assertEqual(self.attempt(self.victim, ["/probe", "say", "done"], image=self.spoiling)[1], "done\n")
        if not drover.is_sanitized():
            self.assertLess(self.memory_of_daemon(), before + (64 << 20))

    def test_what_nobody_can_believe(self):
        for way in ("garbage", "lies"):
            with self.subTest(way):
                self.assertEqual(self.spoil(way), {way: "ok"})
                self.assert_goes_on()
                self.doCleanups()

    def test_a_file_that_is_cut(self):
        for way in ("short", "empty"):
            with self.subTest(way):
                self.assertEqual(self.spoil(way), {way: "ok"})
                self.assert_goes_on()
                self.doCleanups()

    def test_a_file_that_takes_up_the_disk(self):
        self.assertEqual(self.spoil("grow"), {"grow": "ok"})
        self.assert_goes_on()
        self.wait_until_whole()
        self.assertLessEqual(self.file.stat().st_blocks * 512, self.whole.st_size + 4096)

    def test_to_take_it_away(self):
        """Also as root of a container, who is not the machine's where that can be."""
        for user in (self.mallory, None):
            said = self.spoil("remove", "rename", "chmod", user=user)
            self.assertNotIn("ok", (said["remove"], said["rename"]))
            self.assert_goes_on()
            self.wait_until_whole()
            self.doCleanups()


class DockerLiveFileTest(attack.ThroughDocker, LiveFileTest):
    pass
