"""`drover exec`: what it does in a container that a task has prepared for it."""

import contextlib
import os
import pty
import subprocess

import drover
from attack import attack


class ExecTest(attack.AttackTest):
    def start(self, user, *words, **fields):
        """A task that says "up" and waits; returns its id."""
        fields.setdefault("image", self.image("exec"))
        task = self.submit(user, ["/probe", "say", "up", ",", *words, "sleep", "600"], **fields)
        self.addCleanup(self.daemon.end_task, task)
        self.daemon.wait_for_output(task, "up")
        return task

    def exec(self, user, task, *command, options=()):
        return self.cli(user, "exec", *options, task, "--", *command)

    def in_terminal(self, user, task, *command):
        """`drover exec -it` in a terminal of the test's own; returns what that shows. Nothing has typed into it."""
        master, slave = pty.openpty()
        identity = user.identity()
        process = subprocess.Popen([str(word) for word in (self.daemon.client(), "exec", "-it", task, "--", *command)], stdin=slave,
                                   stdout=slave, stderr=slave, start_new_session=True,
                                   **{**identity, "env": {**identity["env"], "DROVER_SOCKET": str(self.daemon.socket)}})
        process.wait(drover.PATIENCE)
        os.set_blocking(slave, False)
        with self.assertRaises(BlockingIOError):
            os.read(slave, 1)
        os.close(slave)
        shown = b""
        with contextlib.suppress(OSError):  # its last user has gone
            while piece := os.read(master, 4096):
                shown += piece
        os.close(master)
        return shown.decode().replace("\r\n", "\n")

    def test_in_somebody_elses_task(self):
        task = self.start(self.victim)
        ran = self.exec(self.mallory, task, "/probe", "id")
        self.assertEqual(ran.out, "")
        self.assert_one_sentence(ran, task)
        absent = self.exec(self.mallory, "no-such-task", "/probe", "id")
        self.assertEqual(ran.err.replace(task, "ID"), absent.err.replace("no-such-task", "ID"))

    def test_it_is_the_tasks_user_with_nothing_more(self):
        task = self.start(self.mallory)
        command = ("/probe", "id", ",", "mknod", "/tmp/null", "1", "3")
        expected = [f"{self.mallory.uid} {self.mallory.uid}", "mknod EPERM"]
        for options in ((), ("-e", "HOME=/root"), ("-i",)):
            with self.subTest(options=options):
                self.assertEqual(self.exec(self.mallory, task, *command, options=options).out.splitlines(), expected)
        self.assertEqual(self.in_terminal(self.mallory, task, *command).splitlines(), expected)

    def test_after_the_working_directory_was_exchanged(self):
        """A task begins in a folder of its own, which is a link to one of somebody else when a command joins it."""
        work = attack.make_folder(self.mallory.home / "work", 0o755, self.mallory.uid)
        attack.make_folder(work / "here", 0o755, self.mallory.uid)
        task = self.start(self.mallory, working_directory="/w/here", volumes=[
            {"container_path": "/w", "host_path": str(work)},
            {"container_path": "/v", "host_path": str(self.victim.home.parent), "read_only": True}])
        os.rename(work / "here", work / "aside")
        os.symlink("/v/victim/project", work / "here")
        self.addCleanup(os.unlink, work / "here")
        ran = self.exec(self.mallory, task, "/probe", "list", ".", ",", "read", "notes.txt")
        self.assertNotIn("notes", ran.out)
        self.assertNotIn(attack.NOTES, ran.out)

    def test_variables_that_are_none(self):
        task = self.start(self.mallory)
        for variable in ("A=1\nLD_PRELOAD=/evil", "=x", "A" * 100_000 + "=1", "_DROVER=1", "_LIBCONTAINER_INITPIPE=3", "GOTRACEBACK=crash",
                         "LD_PRELOAD=/tmp/evil.so", "PATH=/tmp"):
            with self.subTest(variable=variable[:40]):
                ran = self.exec(self.mallory, task, "/probe", "id", options=("-e", variable))
                self.assertIn(ran.out, ("", f"{self.mallory.uid} {self.mallory.uid}\n"), ran)
                self.assertLess(len(ran.err), 1000)

    def test_a_program_that_is_a_link_to_the_runtime(self):
        """Who starts it runs what runs it: the machine's runtime could be written to through that."""
        def fill(layer):
            layer.add_link("link", "/proc/self/exe")
            layer.add_file("script", b"#!/proc/self/exe\n", 0o755)

        task = self.start(None, image=self.image("runtime", fill))
        programs = [path for path in ("/usr/sbin/runc", "/usr/bin/runc", "/usr/bin/crun", str(self.daemon.binary)) if os.path.exists(path)]
        with self.unchanged(*programs):
            for program in ("/link", "/script", "/proc/self/exe"):
                self.exec(None, task, program, "seize", "1")

    def test_programs_of_the_machine_are_not_reached_through_processes_that_come_and_go(self):
        """root in a container takes hold of whatever joins it, and writes to its program as soon as that has ended."""
        task = self.submit(None, ["/probe", "say", "up", ",", "seize", "4", ",", "say", "done"], image=self.image("seize"))
        self.addCleanup(self.daemon.end_task, task)
        self.daemon.wait_for_output(task, "up")
        while "done" not in self.daemon.output(task):
            self.exec(None, task, "/probe", "say", "joined")
        seized = [line for line in self.daemon.output(task).splitlines() if line.startswith("seized")]
        self.assertEqual([line for line in seized if line.endswith(" ok")], [], seized)

    def test_its_terminal_is_none_of_the_machine(self):
        task = self.start(self.mallory)
        self.in_terminal(self.mallory, task, "/probe", "inject", "reboot", ",", "say", "injected")


class DockerExecTest(attack.ThroughDocker, ExecTest):
    """The same through a Docker Engine."""
