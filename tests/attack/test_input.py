"""What is written to a task: the shim reads it, which is root."""

import contextlib
import os

import drover
import in_terminal
from attack import attack


class InputTest(attack.AttackTest):
    def start(self, user):
        task = self.submit(user, ["/probe", "say", "up", ",", "sleep", "600"], image=self.image("input"), stdin=True)
        self.addCleanup(self.daemon.end_task, task)
        self.daemon.wait_for_output(task, "up")
        return task

    def writer(self, user, task):
        return in_terminal.Frames(self, f"/v1/tasks/{task}/input", "drover-input", {}, uid=user.uid)

    def assert_task_takes_input(self, user, task):
        writer = self.writer(user, task).assert_upgraded()
        writer.send(2, b"after all")
        self.assertEqual(writer.read()[0], 4)
        self.assertEqual(self.daemon.task(task)["state"], "running")

    def test_to_write_to_somebody_elses_task(self):
        task = self.start(self.victim)
        refused, absent = (self.writer(self.mallory, name).head for name in (task, "no-such-task"))
        self.assertTrue(refused.startswith(b"HTTP/1.1 404 "), refused)
        self.assertEqual(refused.splitlines()[0], absent.splitlines()[0])

    def test_garbage(self):
        task = self.start(self.mallory)
        for text in (b"\xff" * 100_000, b"\x00\x7f\xff\xff\xff" + b"x" * 100_000, b"\x02\x00\x00\x00\x05",
                     b"\x01\x00\x00\x00\x02{}" * 20_000, b'\x01\x00\x00\x00\x15{"rows":-1,"columns":9}'):
            with self.subTest(text=text[:20]):
                writer = self.writer(self.mallory, task).assert_upgraded()
                with contextlib.suppress(OSError):  # it may be cut off
                    writer.connection.sendall(text)
                    writer.connection.shutdown(1)
                    while writer.connection.recv(65536):
                        pass
                self.assert_task_takes_input(self.mallory, task)

    def test_answers_that_nobody_reads(self):
        task = self.start(self.mallory)
        writer = self.writer(self.mallory, task).assert_upgraded()
        writer.connection.settimeout(2)
        with contextlib.suppress(OSError):  # the task reads nothing: it is held up, or cut off
            for _ in range(50):
                writer.connection.sendall(b"\x00\x00\x00\x00\x01x" * 10_000)
        self.assert_task_takes_input(self.mallory, task)

    def test_many_at_once(self):
        task = self.start(self.mallory)
        writers = [self.writer(self.mallory, task) for _ in range(40)]
        self.assertTrue(all(writer.head.startswith((b"HTTP/1.1 101 ", b"HTTP/1.1 503 ")) for writer in writers))
        for writer in writers:
            writer.connection.close()
        (shim,) = self.daemon.shims()
        drover.wait_for(lambda: len(os.listdir(f"/proc/{shim}/fd")) < 30, "the shim to let go of them")
        self.assert_task_takes_input(self.mallory, task)
