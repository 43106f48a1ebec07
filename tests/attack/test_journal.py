"""The journal is lost, old, foreign or replaced: what tasks wrote is kept, what runs goes on, and no GPU is given twice."""

import contextlib
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import threading
import time
import unittest

import drover

QUARANTINE = ".quarantine"


class OwnDaemonTest(unittest.TestCase):
    """Each test has a daemon of its own, whose state folder it spoils."""

    profile = "k40m"

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root: containers, devices and mounts are made for real")
        self.daemon = drover.Daemon(self.profile)
        self.addCleanup(self.close)
        self.state = self.daemon.state
        self.tasks = self.state / "tasks"

    def close(self):
        self.assertEqual(self.daemon.close(), [])

    def running(self, *words, **fields):
        task = self.daemon.submit(*words, "say", "begun", ",", "sleep", 600, **fields)
        self.daemon.wait_for_output(task, "begun")
        return task

    def finished(self, text):
        task = self.daemon.submit("write", "result", text, ",", "say", text)
        self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished")
        return task

    def journal_files(self):
        return sorted(self.state.glob("state.db*"))

    def lose_journal(self):
        aside = self.daemon.folder / "aside"
        aside.mkdir()
        for path in self.journal_files():
            path.rename(aside / path.name)
        return aside

    def process_of(self, task):
        return [pid for pid in drover.processes_of(self.daemon.probe) if task in pathlib.Path(f"/proc/{pid}/cgroup").read_text()]

    def assert_goes_on(self, task, processes):
        self.assertTrue(processes)
        self.assertEqual(self.process_of(task), processes)
        self.assertEqual(self.daemon.wait_until_running(task)["state"], "running")

    def quarantined(self):
        folder = self.tasks / QUARANTINE
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def problems(self):
        return [problem["message"] for problem in self.daemon.api("GET", "/health")["problems"]]


class LostJournalTest(OwnDaemonTest):
    def spoil(self, spoiling):
        """One task runs with all GPUs, another has ended; then `spoiling` is done to the journal of a stopped daemon."""
        self.daemon.start()
        gpus = len(self.daemon.api("GET", "/v1/gpus")["gpus"])
        ran, runs = self.finished("precious"), self.running(gpus=gpus, uid=drover.NOBODY)
        processes = self.process_of(runs)
        self.daemon.stop()
        spoiling()
        self.daemon.start()
        return ran, runs, processes, gpus

    def check_kept(self, ran, runs, processes, gpus):
        self.assert_goes_on(runs, processes)
        self.assertEqual(len(self.daemon.held_gpus()), gpus, "its GPUs are nobody else's")
        self.assertEqual([record["task"]["id"] for record in self.daemon.tasks(uid=drover.NOBODY)], [runs])
        waiting = self.daemon.submit("say", "hello", gpus=1)
        self.assertEqual(self.daemon.task(waiting)["state"], "queued")
        self.daemon.stop_task(waiting)
        self.assertEqual(self.quarantined(), [ran])
        kept = self.tasks / QUARANTINE / ran
        self.assertEqual((kept / "sandbox/result").read_text().strip(), "precious")
        self.assertEqual((kept / "sandbox/stdout").read_text(), "ok\nprecious\n")
        self.assertEqual(stat.S_IMODE(kept.parent.stat().st_mode), 0o700, "closed to others")
        self.assertTrue(any(ran in problem and str(kept.parent) in problem for problem in self.problems()), self.problems())
        log = self.daemon.read_log()
        self.assertIn(ran, log)
        self.assertIn(runs, log)
        self.daemon.stop_task(runs, force=True, uid=drover.NOBODY)
        self.assertEqual(self.daemon.wait_until_final(runs)["state"], "killed")

    def test_the_journal_is_moved_aside(self):
        self.check_kept(*self.spoil(self.lose_journal))

    def test_the_journal_is_replaced_by_an_empty_file(self):
        def empty():
            self.lose_journal()
            (self.state / "state.db").touch()

        self.check_kept(*self.spoil(empty))

    def test_the_journal_is_the_first_page_of_a_new_one(self):
        """As a copy of the file alone was, before its log had come into it."""
        def young():
            self.lose_journal()
            other = drover.Daemon(self.profile)
            other.start()
            shutil.copy(other.state / "state.db", self.state / "state.db")
            self.assertEqual(other.close(), [])
            subprocess.run(["truncate", "-s", "4096", self.state / "state.db"], check=True)

        self.daemon.start()
        ran = self.finished("precious")
        self.daemon.stop()
        young()
        process = subprocess.run(self.daemon.command(), stdin=subprocess.DEVNULL, capture_output=True, timeout=drover.PATIENCE, check=False)
        self.assertNotEqual(process.returncode, 0, "half a journal is none")
        self.assertTrue((self.tasks / ran / "sandbox/result").exists())
        (self.state / "state.db").unlink()
        self.daemon.start()
        self.assertEqual(self.quarantined(), [ran])

    def test_the_log_is_removed_after_a_crash(self):
        self.daemon.start()
        ran, runs = self.finished("precious"), self.running(gpus=1)
        processes = self.process_of(runs)
        self.daemon.kill()
        (self.state / "state.db-wal").unlink()
        self.daemon.start()
        self.assert_goes_on(runs, processes)
        self.assertEqual(set(self.daemon.held_gpus().values()), {runs})
        known = [record["task"]["id"] for record in self.daemon.tasks()]
        self.assertTrue(ran in known or ran in self.quarantined())

    def test_a_copy_of_the_file_alone_while_the_daemon_runs(self):
        """What was ended half a minute ago is in it."""
        self.daemon.start()
        ran = self.finished("precious")
        copy = self.daemon.folder / "copy"

        def has_it():
            shutil.copy(self.state / "state.db", copy)
            return ran.encode() in copy.read_bytes()

        drover.wait_for(has_it, "the file to have what the log has", timeout=120, pause=1)

    def test_names_that_are_taken_in_quarantine(self):
        self.daemon.start()
        ran = self.finished("second")
        self.daemon.stop()
        self.lose_journal()
        taken = self.tasks / QUARANTINE / ran
        taken.mkdir(parents=True)
        (taken / "first").touch()
        (self.tasks / QUARANTINE).chmod(0o755)
        self.daemon.start()
        self.assertEqual(self.quarantined(), [ran, ran + ".1"])
        self.assertTrue((taken / "first").exists())
        self.assertEqual(stat.S_IMODE((self.tasks / QUARANTINE).stat().st_mode), 0o700)

    def test_strange_things_among_the_tasks(self):
        self.daemon.start()
        self.daemon.stop()
        canary = self.daemon.folder / "canary"
        canary.mkdir()
        (canary / "precious").touch()
        strange = ["-rf", "a b", "ä", ".hidden", "x" * 200, "new\nline", "$(reboot)", "..."]
        for name in strange:
            (self.tasks / name).mkdir()
            (self.tasks / name / "precious").touch()
        (self.tasks / "file").write_text("precious")
        (self.tasks / "link").symlink_to(canary)
        (self.tasks / "empty").mkdir()
        self.daemon.start()
        for name in strange:
            self.assertTrue((self.tasks / name / "precious").exists(), name)
        self.assertEqual((self.tasks / "file").read_text(), "precious")
        self.assertTrue((canary / "precious").exists())
        self.assertTrue((self.tasks / "link").is_symlink())
        self.assertEqual(self.quarantined(), ["empty"])
        for name in strange:
            shutil.rmtree(self.tasks / name)

    def test_the_place_of_the_quarantine_is_a_link(self):
        self.daemon.start()
        ran = self.finished("precious")
        self.daemon.stop()
        self.lose_journal()
        elsewhere = self.daemon.folder / "elsewhere"
        elsewhere.mkdir()
        (self.tasks / QUARANTINE).symlink_to(elsewhere)
        self.daemon.start()
        self.assertEqual(list(elsewhere.iterdir()), [])
        self.assertTrue((self.tasks / ran / "sandbox/result").exists(), "where it was")
        self.assertIn("stays where it is", self.daemon.read_log())

    def test_a_crash_at_any_moment_of_the_start(self):
        self.daemon.start()
        ran = [self.finished(f"precious {number}") for number in range(3)]
        runs = self.running(gpus=1)
        processes = self.process_of(runs)
        self.daemon.stop()
        self.lose_journal()
        for number in range(12):
            self.daemon.start(wait=False)
            time.sleep(0.02 * number)
            self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.quarantined(), sorted(ran))
        for number, task in enumerate(ran):
            self.assertEqual((self.tasks / QUARANTINE / task / "sandbox/result").read_text().strip(), f"precious {number}")
        self.assert_goes_on(runs, processes)
        self.assertEqual(set(self.daemon.held_gpus().values()), {runs})

    def test_what_its_owner_removed_is_no_find(self):
        """A crash between "removed" and the folder's end leaves nothing to quarantine."""
        self.daemon.start()
        for number in range(6):
            ran = self.finished("over")
            killer = threading.Timer(0.002 * number, self.daemon.kill)
            killer.start()
            with contextlib.suppress(OSError, drover.http.client.HTTPException):
                self.daemon.api("DELETE", f"/v1/tasks/{ran}")
            killer.join()
            self.daemon.start()
            known = [record["task"]["id"] for record in self.daemon.tasks()]
            if ran not in known:
                drover.wait_for(lambda task=ran: not (self.tasks / task).exists(), "its folder to be removed")
        self.assertEqual(self.quarantined(), [])


class ForeignJournalTest(OwnDaemonTest):
    def test_the_journal_of_another_machine(self):
        other = drover.Daemon(self.profile)
        self.addCleanup(lambda: self.assertEqual(other.close(), []))
        other.start()
        other.submit("say", "never here", gpus=1)
        other.end_tasks()
        other.stop()
        self.daemon.start()
        ran, runs = self.finished("precious"), self.running(gpus=1)
        processes = self.process_of(runs)
        self.daemon.stop()
        aside = self.lose_journal()
        shutil.copy(other.state / "state.db", self.state / "state.db")
        process = subprocess.run(self.daemon.command(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                 timeout=drover.PATIENCE, check=False)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("is of another state folder", process.stderr)
        self.assertEqual(self.process_of(runs), processes)
        self.assertTrue((self.tasks / ran / "sandbox/result").exists())
        (self.state / "state.db").unlink()
        for path in aside.iterdir():
            path.rename(self.state / path.name)
        self.daemon.start()
        self.assert_goes_on(runs, processes)
        self.assertEqual(self.daemon.task(ran)["state"], "finished")
        self.assertEqual(self.quarantined(), [])

    def test_a_folder_and_a_link_in_its_place(self):
        self.daemon.start()
        runs = self.running(gpus=1)
        processes = self.process_of(runs)
        self.daemon.stop()
        aside = self.lose_journal()
        for make in (lambda path: path.mkdir(), lambda path: path.symlink_to(aside / "state.db")):
            make(self.state / "state.db")
            ran = subprocess.run(self.daemon.command(), stdin=subprocess.DEVNULL, capture_output=True, timeout=drover.PATIENCE, check=False)
            self.assertNotEqual(ran.returncode, 0)
            self.assertEqual(self.process_of(runs), processes)
            path = self.state / "state.db"
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        for path in aside.iterdir():
            path.rename(self.state / path.name)
        self.daemon.start()
        self.assert_goes_on(runs, processes)

    def test_another_daemon_after_the_journal_was_moved_away_under_the_first(self):
        """Whether it may start or not, what runs goes on and its GPU is given once."""
        self.daemon.start()
        runs = self.running(gpus=1)
        processes = self.process_of(runs)
        self.lose_journal()
        self.daemon.kill()
        self.daemon.start()
        self.assert_goes_on(runs, processes)
        self.assertEqual(set(self.daemon.held_gpus().values()), {runs})


class BackupTest(OwnDaemonTest):
    profile = "minsky"

    def setUp(self):
        super().setUp()
        self.file = self.daemon.folder / "backup"

    def backup(self, *options, uid=None):
        return self.daemon.cli("backup", *options, self.file, uid=uid)

    def restore(self, *options):
        return self.daemon.cli("restore", "--state", self.state, *options, self.file)

    def test_backup_and_restore_around_running_tasks(self):
        self.daemon.start()
        before = self.finished("in the backup")
        runs = self.running(gpus=1)
        processes = self.process_of(runs)
        self.assertEqual(self.backup().status, 0)
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o600)
        after, newer = self.finished("since"), self.running(gpus=1)
        newer_processes = self.process_of(newer)
        refused = self.restore()
        self.assertNotEqual(refused.status, 0, "while the daemon runs")
        self.assertIn("stop the daemon first", refused.err)
        held = self.daemon.held_gpus()
        self.daemon.stop()
        self.assertEqual(self.restore().status, 0)
        self.daemon.start()
        self.assertIn("restored from a backup", self.daemon.read_log())
        self.assert_goes_on(runs, processes)
        self.assert_goes_on(newer, newer_processes)
        self.assertEqual(self.daemon.held_gpus(), held)
        self.assertEqual(self.daemon.task(before)["state"], "finished")
        self.assertEqual(self.quarantined(), [after])

    def test_a_task_that_waited_in_the_backup_is_not_started_twice(self):
        self.daemon.start()
        gpus = len(self.daemon.api("GET", "/v1/gpus")["gpus"])
        first = self.running(gpus=gpus)
        second = self.daemon.submit("append", "ran", "line", ",", "say", "begun", ",", "sleep", 600, gpus=gpus)
        self.assertEqual(self.backup().status, 0)
        self.daemon.stop_task(first, force=True)
        self.daemon.wait_for_output(second, "begun")
        processes = self.process_of(second)
        self.daemon.stop()
        self.assertEqual(self.restore().status, 0)
        self.daemon.start()
        drover.wait_for(lambda: self.daemon.task(first)["state"] == "killed" or self.daemon.task(first)["state"] == "failed", "its end to be found")
        self.assert_goes_on(second, processes)
        self.assertEqual(set(self.daemon.held_gpus().values()), {second})
        self.assertEqual(self.daemon.file(second, "ran").count("line"), 1)

    def test_only_root_has_a_backup(self):
        self.daemon.start()
        self.file = self.daemon.folder / "theirs" / "backup"
        self.file.parent.mkdir()
        os.chown(self.file.parent, drover.NOBODY, drover.NOBODY)
        refused = self.backup(uid=drover.NOBODY)
        self.assertNotEqual(refused.status, 0)
        self.assertIn("Only root", refused.err)
        self.assertEqual(list(self.file.parent.iterdir()), [])
        status, _, _ = self.daemon.request("GET", "/v1/backup", uid=drover.NOBODY)
        self.assertEqual(status, 403)

    def test_a_file_that_is_there_is_kept(self):
        self.daemon.start()
        self.file.write_text("precious")
        self.assertNotEqual(self.backup().status, 0)
        self.assertEqual(self.file.read_text(), "precious")
        self.assertEqual(self.backup("--force").status, 0)
        self.assertTrue(self.file.read_bytes().startswith(b"SQLite"))

    def test_killed_while_it_is_made(self):
        """A backup is whole or absent, and the next start removes what was left in the state folder."""
        self.daemon.start()
        for number in range(40):
            self.daemon.submit("sleep", 0, env={"FILLER": "x" * 100_000}, labels={"number": str(number)})
        whole = 0
        for number in range(8):
            process = subprocess.Popen(self.daemon.cli_command("backup", self.file),
                                       env={**self.daemon.environment, "DROVER_SOCKET": str(self.daemon.socket)},
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.01 * number)
            if number % 2:
                self.daemon.kill()
                process.wait()
                self.daemon.start()
            else:
                process.send_signal(signal.SIGKILL)
                process.wait()
            if self.file.exists():
                whole += 1
                self.daemon.stop()
                self.assertEqual(self.restore().status, 0)
                self.daemon.start()
                self.file.unlink()
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(list(self.state.glob("state.db.copy.*")), [])
        print(f"{whole} of 8 were whole")

    def test_what_is_no_backup_is_refused(self):
        self.daemon.start()
        ran = self.finished("precious")
        self.daemon.stop()
        before = {path.name: path.read_bytes() for path in self.journal_files()}
        for content in (b"", b"garbage" * 1000, None):
            if content is None:
                self.file.unlink()
            else:
                self.file.write_bytes(content)
            refused = self.restore()
            self.assertNotEqual(refused.status, 0)
            self.assertIn(str(self.file), refused.err)
            self.assertEqual({path.name: path.read_bytes() for path in self.journal_files()}, before)
        self.daemon.start()
        self.assertEqual(self.daemon.task(ran)["state"], "finished")


if __name__ == "__main__":
    unittest.main()
