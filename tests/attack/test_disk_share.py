"""mallory's tasks take up the disk that all share: beyond his part the one that does it is ended, and nobody else's."""

from attack import attack
import drover


class DiskTest(attack.AttackTest):
    share = 0  # bytes

    @classmethod
    def setUpClass(cls):
        cls.arguments = ("--limit", f"sandbox-size={cls.share}")
        super().setUpClass()

    def start(self, user, script, **fields):
        task = self.submit(user, ["/bin/sh", "-c", f"echo up; {script}; exec sleep 600"], cpus=4, **fields)
        self.addCleanup(self.end, task)
        self.daemon.wait_for_output(task, "up")
        return task

    def end(self, task):
        if any(record["task"]["id"] == task for record in self.daemon.tasks()):
            self.daemon.end_task(task)

    def assert_ended(self, task, *words):
        record = self.daemon.wait_until_final(task)
        self.assertEqual(record["state"], "failed", record)
        for word in ("killed because", *(words or ("what 'mallory' keeps on the disk grew to", f"{self.share >> 20} MiB are allowed"))):
            self.assertIn(word, record["reason"])


class DiskShareTest(DiskTest):
    share = 64 << 20

    def test_files(self):
        others = self.start(self.victim, "dd if=/dev/zero of=mine bs=1M count=40 2>/dev/null")
        quiet = self.start(self.mallory, "while sleep 0.2; do echo working; done")
        hog = self.start(self.mallory, "while dd if=/dev/zero of=hog.$((n = n + 1)) bs=1M count=4 2>/dev/null; do sleep 0.1; done")
        self.assert_ended(hog)
        self.assertEqual([self.daemon.task(task)["state"] for task in (others, quiet)], ["running"] * 2)
        with self.subTest("the next one, while the first one's files are there"):
            self.assert_ended(self.start(self.mallory, "dd if=/dev/zero of=more bs=1M count=8 2>/dev/null"))
        self.daemon.api("DELETE", f"/v1/tasks/{hog}", uid=self.mallory.uid)
        with self.subTest("and when they are removed"):
            after = self.start(self.mallory, "dd if=/dev/zero of=more bs=1M count=8 2>/dev/null; echo written")
            self.daemon.wait_for_output(after, "written")

    def test_what_is_written_into_the_image(self):
        image = self.image("writable", lambda layer: layer.add_folder("room", 0o1777))
        self.assert_ended(self.submit(self.mallory, ["/probe", "fill", "/room/hog", self.share * 2, ",", "sleep", 600], image=image))

    def test_files_without_a_name(self):
        self.assert_ended(self.start(self.mallory, f"exec 7>hog; rm hog; head -c {self.share * 2} /dev/zero >&7"))

    def test_folders_too_deep(self):
        script = "python3 -c 'import os\nfor _ in range(400): os.mkdir(\"d\"); os.chdir(\"d\")'"
        self.assert_ended(self.start(self.mallory, script), "its files lie more than 256 folders deep")

    def test_links_and_holes(self):
        """What they lead to, and what is not there, takes up nothing of the disk that is theirs."""
        with open(self.ground / "theirs", "wb") as file:
            file.write(b"x" * self.share * 2)
        task = self.start(self.mallory, f"ln -s {self.ground}/theirs link; truncate -s 1T hole; sleep 12; echo still")
        self.daemon.wait_for_output(task, "still")
        self.assertEqual(self.daemon.task(task)["state"], "running")


class SmallDiskShareTest(DiskTest):
    share = 4 << 20

    def test_names_of_nothing(self):
        """Each counts as half a KiB: a name and an inode."""
        self.assert_ended(self.start(self.mallory, "python3 -c 'for n in range(20000): open(str(n), \"w\").close()'"))
