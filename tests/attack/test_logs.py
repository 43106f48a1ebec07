"""The record of when and in which order a task wrote is root's: nobody misleads the daemon by it, or fills the disk with it."""

import contextlib
import re

from attack import attack
import drover

SECRET = "what nobody but victim may read"
MOST_OF_RECORD = 2 * (4 << 20)


class LogsTest(attack.AttackTest):
    def told(self, task, query="stream=both"):
        status, _, data = self.daemon.request("GET", f"/v1/tasks/{task}/logs?{query}", uid=self.mallory.uid)
        self.assertIn(status, (200, 422) if "since" in query else (200,), data)  # 422: nobody knows any more when it was
        return data.decode(errors="replace")

    def run_to_end(self, script):
        task = self.submit(self.mallory, ["/bin/sh", "-c", script])
        with contextlib.ExitStack() as stack:
            stack.callback(self.daemon.stop_task, task, force=True)
            self.daemon.wait_until_final(task)
            stack.pop_all()
        return task

    def test_files_that_are_replaced_removed_and_linked(self):
        secret = attack.make_file(self.ground / "secret", SECRET, 0o600, self.victim.uid)
        for meddle in (f"rm -f stdout stderr; ln -s {secret} stdout; ln -s {secret} stderr",
                       f"rm -f stdout; ln {secret} stdout", "rm stdout; mkfifo stdout", "rm stderr; mkdir stderr",
                       ": > stdout; : > stderr", "mv stdout x; mv stderr stdout; mv x stderr", "head -c 200000 /dev/urandom > stdout",
                       "truncate -s 10T stdout; rm stdout", "ln -s ../output.record stdout.1", "echo x > ../output.record"):
            with self.subTest(meddle=meddle):
                task = self.run_to_end(f"cd $MESOS_SANDBOX; echo a; echo b >&2; ( {meddle} ) 2>/dev/null; echo c; sleep 0.2; echo d >&2")
                for query in ("stream=both", "stream=both&timestamps=true&tail=3", "stream=both&since=1h", "stream=stdout&timestamps=true"):
                    self.assertNotIn(SECRET, self.told(task, query))
                self.assertEqual(secret.read_text(), SECRET)
                if meddle.endswith(("stdout.1", "output.record")):  # the outputs are as they were: all is told
                    self.assertEqual(self.told(task, "stream=stdout"), "a\nc\n")

    def test_the_record_is_out_of_reach(self):
        task = self.run_to_end("cat ../output.record; ls ..; cat /proc/1/root/../output.record; echo; echo end")
        folder = self.daemon.state / "tasks" / task
        self.assertEqual((folder / "output.record").stat().st_mode & 0o777, 0o600)
        self.assertNotIn("RECORD", self.told(task, "stream=stdout"))

    def test_tiny_writes_fill_no_disk(self):
        task = self.run_to_end("i=0; while [ $i -lt 300000 ]; do printf o; printf e >&2; i=$((i+1)); done")
        record = sum(path.stat().st_size for path in (self.daemon.state / "tasks" / task).glob("output.record*"))
        self.assertGreater(record, 10_000)
        self.assertLessEqual(record, MOST_OF_RECORD)
        self.assertEqual(self.told(task, "stream=stdout"), "o" * 300_000)
        pieces = re.findall(r'"data":"([oe]+)"', self.told(task))
        self.assertEqual("".join(sorted("".join(pieces))), "e" * 300_000 + "o" * 300_000)
        self.assertGreater(len(pieces), 1000)


if __name__ == "__main__":
    import unittest

    unittest.main()
