"""One table of tests over both containerizers: an OCI runtime, and a Docker Engine. What differs is in test_docker.py."""

import contextlib
import os
import pathlib
import signal
import tempfile
import unittest

import docker_engine
import drover

ALLOWED, DENIED = "ENXIO", "EPERM"
CONTROL = {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"}


class Table:
    """What a task in an image can rely on, whoever runs it. `make_image(name, **settings)` returns a reference."""

    def run_probe(self, options, *words, **how):
        return self.daemon.run_probe(options, *words, image=how.pop("image", self.image), **how)

    def submit(self, *words, **fields):
        return self.daemon.submit(command=["/probe", *(str(word) for word in words)], image=self.image, **fields)

    def made(self, answer):
        """How making and opening a node ends for root in a container when the device cgroup would answer this."""
        return answer if self.makes_nodes else "mknod EPERM"

    def test_output_and_exit_status_are_those_of_the_task(self):
        ran = self.run_probe([], "say", "to stdout", ",", "complain", "to stderr", ",", "exit", 42)
        self.assertEqual((ran.status, ran.out), (42, "to stdout\n"), ran)
        self.assertIn("to stderr", ran.err)

    def test_a_signal_is_128_and_its_number(self):
        task = self.submit("crash")
        record = self.daemon.wait_until_final(task)
        self.assertEqual(record["exit_status"], 128 + signal.SIGSEGV, record)
        self.assertIn("signal 11", record["reason"])

    def test_a_command_ends_by_the_signals_that_it_sends_itself(self):
        for number in (signal.SIGTERM, signal.SIGABRT):
            task = self.submit("signal", int(number), "say", "survived")
            record = self.daemon.wait_until_final(task)
            self.assertEqual((record["state"], record["exit_status"]), ("failed", 128 + number), record)
            self.assertIn(f"signal {int(number)}", record["reason"])

    def test_an_image_runs_its_own_command(self):
        ran = self.daemon.cli("run", "--image", self.image)
        self.assertEqual((ran.status, ran.out), (0, "hello from the image\n"), ran)

    def test_a_program_that_is_not_there_is_named(self):
        ran = self.daemon.cli("run", "--image", self.image, "--", "/no/such/program")
        self.assertNotEqual(ran.status, 0)
        self.assertIn("There is no command '/no/such/program' in the container", ran.err)

    def test_the_environment_and_the_folder_are_what_was_asked_for(self):
        ran = self.run_probe(["--env", "GREETING=good day", "--workdir", "/etc"], "env", "GREETING", ",", "env", "MESOS_SANDBOX",
                             ",", "env", "CUDA_DEVICE_ORDER", ",", "pwd")
        self.assertEqual(ran.out.splitlines(), ["good day", "/mnt/mesos/sandbox", "PCI_BUS_ID", "/etc"], ran)

    def test_a_task_runs_as_its_caller_who_has_the_sandbox(self):
        ran = self.run_probe([], "id", ",", "env", "HOME", ",", "write", "mine", "x", ",", "pwd", ",", "write", "/etc/x", "x",
                             uid=drover.NOBODY)
        self.assertEqual(ran.out.splitlines()[1:], ["/mnt/mesos/sandbox", "ok", "/mnt/mesos/sandbox", "EACCES"], ran)
        self.assertEqual(ran.out.split()[0], str(drover.NOBODY))

    def test_an_image_s_own_user_counts_for_root(self):
        image = self.make_image("app-user", user="app")
        self.assertEqual(self.run_probe([], "id", ",", "env", "USER", image=image).out, "1234 1234\napp\n")

    def test_the_sandbox_holds_what_the_task_wrote(self):
        task = self.submit("write", "answer", "42")
        self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished")
        self.assertEqual(self.daemon.file(task, "answer"), "42\n")

    def test_read_only_stays_read_only(self):
        ran = self.run_probe(["--read-only", "--gpus", "1"], "write", "/new", "x", ",", "write", "/etc/passwd", "x", ",", "write",
                             "mine", "x")
        self.assertEqual(ran.out.split(), ["EROFS", "EROFS", "ok"], ran)

    def test_volumes_are_mounted_with_the_rights_of_the_user(self):
        with tempfile.TemporaryDirectory(prefix="drover-volume-") as text:
            folder = pathlib.Path(text)
            folder.chmod(0o777)
            (folder / "private").mkdir(mode=0o700)
            (folder / "there").write_text("x")
            ran = self.run_probe(["--volume", f"{folder}:/data:ro", "--volume", f"{folder}:out"], "exists", "/data/there", ",",
                                 "write", "/data/new", "x", ",", "write", "out/new", "x", uid=drover.NOBODY)
            self.assertEqual(ran.out.split(), ["ok", "EROFS", "ok"], ran)
            self.assertEqual((folder / "new").stat().st_uid, drover.NOBODY)
            ran = self.run_probe(["--volume", f"{folder}/private:/data"], "id", uid=drover.NOBODY)
            self.assert_one_sentence(ran, "cannot reach it")
            ran = self.run_probe(["--volume", f"{self.daemon.state}:/data"], "id")
            self.assert_one_sentence(ran, "Drover keeps its own files")

    def test_memory_is_limited(self):
        task = self.submit("allocate", 256, memory="32MiB")
        record = self.daemon.wait_until_final(task)
        self.assertEqual((record["state"], record["exit_status"]), ("failed", 137), record)
        self.assertIn("memory", record["reason"])

    def test_exactly_its_gpus_are_seen_and_can_be_opened(self):
        words = ["devices"]
        for minor in range(8):
            words += [",", "open", f"/dev/nvidia{minor}", ",", "mknod", "/tmp/made", 195, minor]
        ran = self.run_probe(["--gpus", "2"], *words)
        lines = ran.out.splitlines()
        seen = {int(name.removeprefix("nvidia")) for name in lines[0].split() if name not in CONTROL}
        self.assertEqual(len(seen), 2, ran)
        self.assertEqual(len(lines[0].split()), 2 + len(CONTROL), ran)
        for minor in range(8):
            found, made = lines[1 + 2 * minor:3 + 2 * minor]
            self.assertEqual((found, made), (ALLOWED, self.made(ALLOWED)) if minor in seen else ("ENOENT", self.made(DENIED)),
                             f"minor {minor}")

    def test_an_image_that_asks_for_all_gpus_gets_those_that_were_given(self):
        image = self.make_image("greedy", environment=["NVIDIA_VISIBLE_DEVICES=all"])
        words = ["env", "NVIDIA_VISIBLE_DEVICES", ",", "devices", ",", "mknod", "/tmp/made", 195, 0]
        for options in ([], ["--env", "NVIDIA_VISIBLE_DEVICES=all"]):
            self.assertEqual(self.run_probe(options, *words, image=image).out, f"void\n\n{self.made(DENIED)}\n")
        ran = self.run_probe(["--gpus", "1", "--env", "NVIDIA_VISIBLE_DEVICES=all"], *words, image=image)
        known = [gpu["uuid"] for gpu in self.daemon.api("GET", "/v1/gpus")["gpus"]]
        self.assertIn(ran.out.splitlines()[0], known)

    def test_the_driver_is_there_read_only_when_the_image_wants_it_and_has_gpus(self):
        image = self.make_image("wanting", labels={"com.nvidia.volumes.needed": "nvidia_driver"})
        library = "/usr/local/nvidia/lib64/libnvidia-ml.so.1"
        for options, wanting, found in ((["--gpus", "1"], image, "ok"), ([], image, "ENOENT"),
                                        (["--gpus", "1"], self.image, "ENOENT")):
            self.assertEqual(self.run_probe(options, "exists", library, image=wanting).out, found + "\n")
        self.assertEqual(self.run_probe(["--gpus", "1"], "write", library, "x", image=image).out, "EROFS\n")

    def test_an_image_that_cannot_work_on_the_gpus_is_refused_with_both_versions(self):
        image = self.make_image("demanding", environment=["NVIDIA_REQUIRE_CUDA=driver>=9999.1"])
        driver = self.daemon.api("GET", "/v1/gpus")["driver_version"]
        ran = self.run_probe(["--gpus", "1"], "say", "ran", image=image)
        self.assert_one_sentence(ran, "does not work here", "driver>=9999.1", driver)
        self.assertEqual(self.run_probe([], "say", "ran", image=image).out, "ran\n")
        self.assertEqual(self.run_probe(["--gpus", "1", "--env", "NVIDIA_DISABLE_REQUIRE=1"], "say", "ran", image=image).out,
                         "ran\n")

    def test_stop_asks_first_and_then_kills(self):
        polite = self.submit("say", "up", ",", "sleep", 600)
        stubborn = self.submit("ignore", ",", "say", "up", ",", "sleep", 600, grace="1s")
        for task in (polite, stubborn):
            self.daemon.wait_for_output(task, "up")
            self.daemon.stop_task(task)
        record = self.daemon.wait_until_final(polite)
        self.assertEqual((record["state"], record["exit_status"]), ("killed", 143), record)
        record = self.daemon.wait_until_final(stubborn)
        self.assertEqual((record["state"], record["exit_status"]), ("killed", 137), record)

    def test_a_timeout_ends_the_task_and_says_so(self):
        record = self.daemon.wait_until_final(self.submit("sleep", 600, timeout="1s"))
        self.assertEqual((record["state"], record["timed_out"]), ("failed", True), record)

    def test_a_long_output_arrives_whole_and_in_order(self):
        words = []
        for number in range(200):
            words += ["say", f"{number:04}" + "x" * 1000, ","]
        ran = self.run_probe([], *words[:-1])
        self.assertEqual(ran.out, "".join(f"{number:04}" + "x" * 1000 + "\n" for number in range(200)))

    def test_a_command_joins_the_container(self):
        task = self.submit("write", "there", "x", ",", "say", "up", ",", "sleep", 600, env={"GREETING": "good day"}, gpus=1)
        self.daemon.wait_for_output(task, "up")
        join = [task, "--", "/probe"]
        ran = self.daemon.cli("exec", *join, "exists", "there", ",", "env", "GREETING", ",", "complain", "no", ",", "exit", 7)
        self.assertEqual((ran.status, ran.out, ran.err.strip()), (7, "ok\ngood day\n", "no"), ran)
        held, other = self.daemon.cli("exec", *join, "devices").out.split(), "mknod /tmp/made 195"
        gpu = int(next(name for name in held if name not in CONTROL).removeprefix("nvidia"))
        ran = self.daemon.cli("exec", *join, *other.split(), gpu, ",", *other.split(), (gpu + 1) % 8)
        self.assertEqual(ran.out.splitlines(), [self.made(ALLOWED), self.made(DENIED)], ran)
        ran = self.daemon.cli("exec", task, "--", "/no/such/program")
        self.assertIn("There is no command '/no/such/program' in the container", ran.err)
        self.daemon.stop_task(task, force=True)
        self.daemon.wait_until_final(task)

    def test_a_port_of_the_machine_leads_to_one_of_the_container(self):
        if not self.has_bridge:
            self.skipTest("no bridge can be made here")
        task = self.submit("serve", 8080, "hello from inside", network={"mode": "bridge", "ports": [{"container_port": 8080}]})
        self.daemon.wait_until_running(task)
        (port,) = self.daemon.task(task)["ports"]
        drover.wait_for(lambda: drover.served_at(port) == "hello from inside", "the container to answer")
        self.daemon.stop_task(task, force=True)
        self.daemon.wait_until_final(task)

    def test_a_task_outlives_a_daemon_that_is_killed(self):
        alive = self.submit("say", "up", ",", "sleep", 3, ",", "say", "still here", ",", "exit", 9, gpus=1)
        self.daemon.wait_for_output(alive, "up")
        self.daemon.kill()
        self.daemon.start()
        record = self.daemon.wait_until_final(alive)
        self.assertEqual((record["state"], record["exit_status"], record["containerizer"]), ("failed", 9, self.kind), record)
        self.assertEqual(self.daemon.output(alive), "up\nstill here\n")
        self.assertEqual(self.daemon.held_gpus(), {})

    def shim_of(self, task):
        """Its process; what it has started to start the container may still be there too."""
        found = []
        for pid in self.daemon.shims():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if words[1:2] == [b"shim"] and words[2].endswith(task.encode()):
                    found.append(pid)
        (shim,) = found
        return shim

    def test_a_task_whose_shim_is_killed_is_lost_and_ended(self):
        task = self.submit("say", "up", ",", "sleep", 600, gpus=1)
        self.daemon.wait_for_output(task, "up")
        os.kill(self.shim_of(task), signal.SIGKILL)
        record = self.daemon.wait_until_final(task)
        self.assertEqual(record["state"], "lost", record)
        self.assertEqual(self.daemon.leaks([task]), [])


class OciTest(Table, drover.DaemonTest):
    kind, has_bridge, makes_nodes = "oci", True, False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.image = cls.make_image("image")

    @classmethod
    def make_image(cls, name, **settings):
        return drover.make_probe_image(cls.daemon.folder / name, cls.daemon.probe, **settings)


class DockerTest(Table, drover.DaemonTest):
    kind, makes_nodes = "docker", True  # the engine's own default

    @classmethod
    def setUpClass(cls):
        cls.engine = docker_engine.Engine()
        cls.addClassCleanup(cls.engine.close)
        cls.has_bridge = cls.engine.bridge is not None
        cls.addClassCleanup(cls.check_engine)
        cls.arguments = ("--containerizers", "docker", "--docker-socket", cls.engine.socket)
        super().setUpClass()
        cls.image = cls.make_image("image")

    @classmethod
    def check_engine(cls):
        left = [container["Names"] for container in cls.engine.containers()]
        if left:
            raise AssertionError(f"left in the engine: {left}")

    @classmethod
    def make_image(cls, name, **settings):
        reference = drover.make_probe_image(cls.daemon.folder / name, cls.daemon.probe, **settings)
        return cls.engine.load(f"drover-test/{name}:1", reference)


if __name__ == "__main__":
    unittest.main()
