"""`drover run`: a task's output, its exit status, its user, its limits, its sandbox, and how it is ended."""

import os
import pathlib
import signal
import subprocess
import unittest

import drover


class RunTest(drover.DaemonTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.image = drover.make_probe_image(cls.daemon.folder / "image", cls.daemon.probe)

    def probe(self, options, *words, **how):
        return self.daemon.run_probe(options, *words, **how)

    def test_output_and_exit_status_are_those_of_the_task(self):
        for image in (None, self.image):
            for status in (0, 1, 42, 255):
                with self.subTest(image=bool(image), status=status):
                    ran = self.probe([], "say", "to stdout", ",", "complain", "to stderr", ",", "exit", status, image=image)
                    self.assertEqual(ran.status, status, ran)
                    self.assertEqual(ran.out, "to stdout\n")
                    self.assertIn("to stderr", ran.err)

    def test_a_signal_is_128_and_its_number(self):
        self.assertEqual(self.probe([], "crash").status, 128 + signal.SIGSEGV)

    def test_an_image_runs_its_own_command(self):
        ran = self.daemon.cli("run", "--image", self.image)
        self.assertEqual((ran.status, ran.out), (0, "hello from the image\n"), ran)

    def test_a_program_that_is_not_there_is_named(self):
        for options in ([], ["--image", self.image]):
            with self.subTest(options=options):
                ran = self.daemon.cli("run", *options, "--", "/no/such/program")
                self.assertNotEqual(ran.status, 0)
                self.assertIn("/no/such/program", ran.err)

    def test_the_environment_is_what_was_asked_for(self):
        ran = self.probe(["--env", "GREETING=good day"], "env", "GREETING", ",", "env", "DROVER_SOCKET", ",", "env",
                         "MESOS_SANDBOX", ",", "pwd")
        self.assertEqual(ran.status, 0, ran)
        greeting, socket, sandbox, folder = ran.out.splitlines()
        self.assertEqual(greeting, "good day")
        self.assertEqual(socket, "(unset)")
        self.assertEqual(sandbox, str(self.daemon.state / "tasks" / pathlib.Path(sandbox).parent.name / "sandbox"))
        self.assertEqual(folder, os.getcwd())

    def test_a_task_runs_as_its_caller(self):
        for image in (None, self.image):
            with self.subTest(image=bool(image)):
                ran = self.probe([], "id", uid=drover.NOBODY, image=image)
                self.assertEqual(ran.status, 0, ran)
                self.assertEqual(ran.out.split()[0], str(drover.NOBODY))

    def test_root_may_name_another_user_and_nobody_else_may(self):
        ran = self.probe(["--user", drover.NOBODY], "id")
        self.assertEqual(ran.out.split()[:1], [str(drover.NOBODY)], ran)
        ran = self.probe(["--user", "root"], "id", uid=drover.NOBODY)
        self.assert_one_sentence(ran, "root")
        self.assertEqual(ran.out, "")

    def test_read_only_stays_read_only(self):
        ran = self.probe(["--read-only", "--gpus", "1"], "write", "/new", "x", ",", "write", "/etc/passwd", "x", ",", "write",
                         "/tmp/new", "x", image=self.image)
        self.assertEqual(ran.out.split()[:2], ["EROFS", "EROFS"], ran)

    def test_what_a_task_writes_into_its_image_is_gone_afterwards(self):
        self.assertEqual(self.probe([], "write", "/new", "x", image=self.image).out, "ok\n")
        self.assertEqual(self.probe([], "exists", "/new", image=self.image).out, "ENOENT\n")

    def test_the_sandbox_holds_what_the_task_wrote(self):
        for image in (None, self.image):
            with self.subTest(image=bool(image)):
                fields = {"image": image, "command": ["/probe", "write", "answer", "42"]} if image else {}
                task = self.daemon.submit("write", "answer", "42", **fields)
                self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished")
                self.assertEqual(self.daemon.file(task, "answer"), "42\n")

    def test_the_driver_is_there_read_only_when_the_image_wants_it_and_has_gpus(self):
        wanting = drover.make_probe_image(self.daemon.folder / "wanting", self.daemon.probe,
                                          labels={"com.nvidia.volumes.needed": "nvidia_driver"})
        library = "/usr/local/nvidia/lib64/libnvidia-ml.so.1"
        for options, image, found in ((["--gpus", "1"], wanting, "ok"), ([], wanting, "ENOENT"),
                                      (["--gpus", "1"], self.image, "ENOENT")):
            with self.subTest(options=options, image=image):
                self.assertEqual(self.probe(options, "exists", library, image=image).out, found + "\n")
        self.assertEqual(self.probe(["--gpus", "1"], "write", library, "x", image=wanting).out, "EROFS\n")

    def test_memory_is_limited(self):
        task = self.daemon.submit("allocate", 256, memory="32MiB")
        record = self.daemon.wait_until_final(task)
        self.assertEqual((record["state"], record["exit_status"]), ("failed", 137), record)
        self.assertIn("memory", record["reason"])

    def test_a_timeout_ends_the_task_and_says_so(self):
        ran = self.probe(["--timeout", "1s"], "sleep", 100_000)
        self.assertNotEqual(ran.status, 0)
        self.assertRegex(ran.err, "(?i)time")

    def test_logs_follow_while_the_task_runs(self):
        ran = self.daemon.cli("run", "--detach", "--", "sh", "-c", "echo early; until [ -e $MESOS_SANDBOX/go ]; do sleep 0.1; done; echo late")
        self.assertEqual(ran.status, 0, ran)
        task = ran.out.strip().splitlines()[-1]
        self.daemon.wait_for_output(task, "early")
        self.assertNotIn("late", self.daemon.cli("logs", task).out)
        following = subprocess.Popen(self.daemon.cli_command("--socket", self.daemon.socket, "logs", "-f", task),
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.assertEqual(following.stdout.readline(), "early\n")
        (self.daemon.state / "tasks" / task / "sandbox/go").touch()
        self.assertEqual(following.communicate(timeout=drover.PATIENCE)[0], "late\n")
        self.assertEqual(self.daemon.cli("logs", task).out, "early\nlate\n")

    def test_a_long_output_arrives_whole_and_in_order(self):
        ran = self.daemon.cli("run", "--", "sh", "-c", "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done")
        self.assertEqual(ran.status, 0, ran.err)
        self.assertEqual(ran.out, "".join(f"line {i}\n" for i in range(20000)))

    def test_stop_asks_first_and_then_kills(self):
        polite = self.daemon.submit("say", "up", ",", "sleep", 600)
        self.daemon.wait_for_output(polite, "up")
        self.assertEqual(self.daemon.cli("stop", polite).status, 0)
        self.assertEqual(self.daemon.wait_until_final(polite)["state"], "killed")

        stubborn = self.daemon.submit("ignore", ",", "say", "up", ",", "sleep", 600, grace="1s")
        self.daemon.wait_for_output(stubborn, "up")
        self.daemon.stop_task(stubborn)
        record = self.daemon.wait_until_final(stubborn)
        self.assertEqual((record["state"], record["exit_status"]), ("killed", 137), record)

    def start_in_foreground(self, *words):
        """`drover run` as a terminal's foreground process; returns it and the task's id once the task is up."""
        known = {record["task"]["id"] for record in self.daemon.tasks()}
        process = subprocess.Popen(
            self.daemon.cli_command("--socket", self.daemon.socket, "run", "--", self.daemon.probe, *words),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        new = drover.wait_for(lambda: {r["task"]["id"] for r in self.daemon.tasks()} - known, "the task to be accepted")
        self.assertEqual(process.stdout.readline(), "up\n")  # the client follows, and knows what Ctrl-C is to do
        return process, new.pop()

    def test_one_ctrl_c_asks_the_task_to_end(self):
        process, task = self.start_in_foreground("say", "up", ",", "sleep", 600)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=drover.PATIENCE)
        self.assertNotEqual(process.returncode, 0)
        self.assertEqual(self.daemon.wait_until_final(task)["state"], "killed")

    def test_a_second_ctrl_c_kills_it(self):
        process, task = self.start_in_foreground("ignore", ",", "say", "up", ",", "sleep", 600)
        process.send_signal(signal.SIGINT)
        drover.wait_for(lambda: self.daemon.task(task)["stop_requested"], "the task to be asked")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=drover.PATIENCE)
        record = self.daemon.wait_until_final(task)
        self.assertEqual((record["state"], record["exit_status"]), ("killed", 137), record)

    def test_a_client_that_goes_away_does_not_end_the_task(self):
        process, task = self.start_in_foreground("say", "up", ",", "sleep", 1, ",", "exit", 0)
        process.kill()
        process.communicate()
        self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished")

    def test_all_processes_of_a_task_end_with_it(self):
        mark = f"61{os.getpid()}.25"
        ran = self.daemon.cli("run", "--", "sh", "-c", f"sleep {mark} & setsid sleep {mark} & exit 0")
        self.assertEqual(ran.status, 0, ran)
        self.assertFalse(drover.processes_of(mark))


if __name__ == "__main__":
    unittest.main()
