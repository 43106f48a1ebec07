"""Whoever has much read, or what takes long, waits for himself: others are answered meanwhile."""

import contextlib
import os
import select
import shutil

from attack import attack
import drover


class FairnessOfReadsTest(attack.AttackTest):
    def task_of_mallorys(self, script):
        task = self.submit(self.mallory, ["/bin/sh", "-c", f"{script}; echo ready >&2; exec sleep 100000"], cpus=4)
        self.addCleanup(self.end_task, task)
        drover.wait_for(lambda: "ready" in self.daemon.output(task, "stderr"),
                        lambda: f"the task to be ready: {self.daemon.task(task)}\n{self.daemon.read_log()}")
        return task

    def end_task(self, task):
        self.daemon.stop_task(task, force=True)
        self.daemon.wait_until_final(task)

    def send(self, path, times, method="GET"):
        """Requests of mallory's, of which none is read."""
        connections = []
        for _ in range(times):
            connection = drover.UnixConnection(self.daemon.socket, drover.PATIENCE)
            with drover.acting_as(self.mallory.uid):
                connection.connect()
            connection.request(method, path)
            connections.append(connection)
        self.addCleanup(lambda: [connection.close() for connection in connections])
        return connections

    @staticmethod
    def answered(connections):
        ready, _, _ = select.select([connection.sock for connection in connections], [], [], 0)
        return len(ready)

    def assert_others_are_answered(self):
        for uid in (self.victim.uid, None):
            for path in ("/health", "/v1/tasks", "/v1/gpus"):
                try:
                    status, _, _ = self.daemon.request("GET", path, uid=uid, timeout=attack.ANSWERED_MEANWHILE)
                except TimeoutError:
                    self.fail(f"{path} as {'root' if uid is None else 'victim'} was not answered")
                self.assertEqual(status, 200, path)

    def test_the_end_of_an_output_without_lines(self):
        task = self.task_of_mallorys("rm stdout; truncate -s 10T stdout")
        asked = self.send(f"/v1/tasks/{task}/logs?tail=5", 3)
        self.assert_others_are_answered()
        drover.wait_for(lambda: self.answered(asked) == 3, "mallory's own answers")

    def test_prunes_that_do_not_end(self):
        task = self.task_of_mallorys("echo mine")
        # What a prune reads of each task does not come until somebody writes it.
        folder = self.daemon.state / "tasks/hangs"
        folder.mkdir()
        self.addCleanup(shutil.rmtree, folder)
        os.mkfifo(folder / "launch.json")
        asked = self.send("/v1/images/prune", 3, "POST")
        self.assert_others_are_answered()
        status, _, text = self.daemon.request("GET", f"/v1/tasks/{task}/logs", uid=self.mallory.uid, timeout=attack.ANSWERED_MEANWHILE)
        self.assertEqual((status, text), (200, b"mine\n"))
        self.assertEqual(self.answered(asked), 0)

        def release():
            try:
                os.close(os.open(folder / "launch.json", os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                pass  # the next one is not there yet
            return self.answered(asked) == 3

        drover.wait_for(release, "mallory's own answers")

    def test_the_end_of_many_outputs_without_lines(self):
        task = self.task_of_mallorys("rm stdout; for n in '' .1 .2 .3 .4 .5; do truncate -s 10T stdout$n; done")
        self.send(f"/v1/tasks/{task}/logs?tail=1000000", 20)
        self.send(f"/v1/tasks/{task}/logs?tail=1000000&follow=true", 20)
        self.assert_others_are_answered()

    def test_a_folder_of_many_files_is_listed_again_and_again(self):
        task = self.task_of_mallorys("mkdir many; cd many; seq 30000 | xargs touch; cd ..")
        asked = self.send(f"/v1/tasks/{task}/files/browse?path=many", 100)
        self.assert_others_are_answered()
        self.assertLess(self.answered(asked), 50, "others have waited until most of mallory's folders were listed")

    def test_a_folder_of_too_many_files_is_cut(self):
        task = self.task_of_mallorys("mkdir many; cd many; seq 20000 | xargs touch; cd ..")
        patience = 5 * drover.PATIENCE  # a sanitizer takes its time over ten thousand of anything
        files = self.daemon.api("GET", f"/v1/tasks/{task}/files/browse?path=many", uid=self.mallory.uid, timeout=patience)["files"]
        names = [file["name"] for file in files]
        self.assertEqual((len(names), names), (10000, sorted(names)))

    def test_followers_that_do_not_read(self):
        task = self.task_of_mallorys("(while :; do echo yes yes yes yes yes yes yes yes; done) & true")
        self.send(f"/v1/tasks/{task}/logs?follow=true", 100)
        self.assert_others_are_answered()

    def test_downloads_that_are_not_read(self):
        task = self.task_of_mallorys("truncate -s 1T large")
        self.send(f"/v1/tasks/{task}/files/download?path=large", 100)
        self.assert_others_are_answered()

    def test_commands_that_are_left_again_and_again(self):
        task = self.task_of_mallorys("true")
        with contextlib.ExitStack() as stack:
            for _ in range(20):
                connection = stack.enter_context(contextlib.closing(drover.UnixConnection(self.daemon.socket, drover.PATIENCE)))
                with drover.acting_as(self.mallory.uid):
                    connection.connect()
                connection.request("POST", f"/v1/tasks/{task}/exec",
                                   '{"command": ["/bin/sh", "-c", "while :; do env -i setsid sleep 1000 & sleep 0.1; done"]}',
                                   {"Content-Type": "application/json", "Connection": "Upgrade", "Upgrade": "drover-exec"})
                connection.close()
        self.assert_others_are_answered()


if __name__ == "__main__":
    import unittest
    unittest.main()
