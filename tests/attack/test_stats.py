"""Whether a task's statistics let mallory write or read what is not his: they are root's file beside his sandbox."""

import os
import pathlib
import stat
import unittest

import drover
from attack import attack

# All that a task can do to what it finds around its sandbox, and to files of its own by the name of root's.
SPOIL = """
rm -rf use ../use; ln -s /etc/shadow use; mkdir -p sub && ln -s ../../../../etc/shadow sub/use
ln -s "$VICTIM" ../use; echo spoilt > ../use; true > ../use; mv ../use ../other; rm -f ../use; mkfifo ../use
cat ../use && echo READ; mv . ../elsewhere; echo done; exec sleep 600
"""


class StatsTest(attack.AttackTest):
    def stats(self, task, uid=None):
        return self.daemon.api("GET", f"/v1/tasks/{task}/stats", uid=uid)

    def looked_at(self, task, times):
        return drover.wait_for(lambda: len(self.stats(task)["time"]) >= times and self.stats(task), f"{times} looks")

    def test_a_task_reaches_no_statistics_and_leads_nobody_astray(self):
        theirs = attack.make_file(self.victim.home / "theirs", "victim's\n", 0o600, self.victim.uid)
        before = attack.snapshot(theirs, "/etc/passwd")
        task = self.daemon.submit(command=["/bin/sh", "-c", SPOIL], uid=self.mallory.uid, env={"VICTIM": str(theirs)})
        self.daemon.wait_for_output(task, "done")
        self.looked_at(task, 3)
        self.assertNotIn("READ", self.daemon.output(task))
        file = pathlib.Path(self.daemon.state, "tasks", task, "use")
        info = file.lstat()
        self.assertTrue(stat.S_ISREG(info.st_mode))
        self.assertEqual((info.st_uid, stat.S_IMODE(info.st_mode), info.st_nlink), (0, 0o600, 1))
        self.assertLess(info.st_size, 70_000)
        self.assertEqual(attack.snapshot(theirs, "/etc/passwd"), before)
        self.daemon.kill()
        self.daemon.start()
        self.looked_at(task, 5)
        self.assertEqual(attack.snapshot(theirs, "/etc/passwd"), before)
        self.daemon.stop_task(task, force=True)
        self.assertIn("use", self.daemon.wait_until_final(task))

    def test_a_link_in_its_place_is_not_followed(self):
        """Nobody but root can put one there: it is refused all the same."""
        theirs = attack.make_file(self.victim.home / "theirs", "victim's\n", 0o600, self.victim.uid)
        task = self.daemon.submit(command=["/bin/sleep", "600"], uid=self.mallory.uid)
        self.looked_at(task, 1)
        self.daemon.kill()
        file = pathlib.Path(self.daemon.state, "tasks", task, "use")
        file.unlink()
        os.symlink(theirs, file)
        self.daemon.start()
        self.daemon.wait_until_running(task)
        other = self.daemon.submit(command=["/bin/sleep", "600"], uid=self.mallory.uid)
        self.looked_at(other, 3)
        with self.assertRaises(drover.ApiError):
            self.stats(task, uid=self.mallory.uid)
        self.assertEqual(theirs.read_text(), "victim's\n")
        self.daemon.stop_task(task, force=True)
        self.daemon.wait_until_final(task)
        self.assertEqual(theirs.read_text(), "victim's\n")

    def test_statistics_of_others_are_refused_as_their_tasks_are(self):
        task = self.daemon.submit(command=["/bin/sleep", "600"], uid=self.victim.uid)
        self.looked_at(task, 1)
        answers = {path: self.daemon.request("GET", f"/v1/tasks/{task}{path}", uid=self.mallory.uid)[::2]
                   for path in ("", "/stats", "/stats?follow=true", "/stats?resolution=60")}
        self.assertEqual(len(set(answers.values())), 1, answers)
        self.assertEqual(answers[""][0], 404)
        self.assertNotIn(task, str(self.daemon.api("GET", "/monitor/statistics", uid=self.mallory.uid)))


if __name__ == "__main__":
    unittest.main()
