"""One user fills the disk of the state folder: his task can still be stopped, and the others' go on."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import unittest

import drover
import registries

OTHER = 65533


class SmallDiskTest(unittest.TestCase):
    size = "24m"
    options = ()

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root: a small file system is mounted")
        self.daemon = drover.Daemon("k40m", ("--limit", "sandbox-size=1GiB", *self.options))  # a user's share would end his hog
        self.addCleanup(self.close)
        self.daemon.state.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.size},mode=711", "tmpfs", self.daemon.state], check=True)
        self.daemon.start()

    def close(self):
        with contextlib.suppress(OSError):
            (self.daemon.state / "filler").unlink()
        try:
            if self.daemon.process.poll() is None:
                self.daemon.end_tasks()
                self.daemon.stop()
        finally:
            for pid in drover.processes_of(self.daemon.folder):
                os.kill(pid, signal.SIGKILL)
            subprocess.run(["umount", "--lazy", self.daemon.state], check=False)
        self.assertEqual(self.daemon.close(), [])

    def running(self, uid, *words):
        task = self.daemon.submit("say", "begun", ",", *words, "sleep", 600, uid=uid, gpus=1)
        self.daemon.wait_for_output(task, "begun")
        return task

    def problems(self):
        return [problem["message"] for problem in self.daemon.api("GET", "/health")["problems"]]


class FullDiskTest(SmallDiskTest):
    def hog(self):
        """A task that takes every block as soon as it is free, until it is ended."""
        script = 'while :; do dd if=/dev/zero of=hog.$((n = n + 1)) bs=4k 2>/dev/null; done'
        task = self.daemon.submit(command=["/bin/sh", "-c", script], uid=drover.NOBODY)
        drover.wait_for(self.is_full, "the disk to be full")
        return task

    def is_full(self):
        space = os.statvfs(self.daemon.state)
        return space.f_bavail * space.f_frsize < 64 * 1024

    def fill(self):
        with contextlib.suppress(OSError), open(self.daemon.state / "filler", "wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        self.assertTrue(self.is_full())

    def test_the_task_that_fills_the_disk_is_stopped(self):
        for stopper in (None, drover.NOBODY):
            with self.subTest(by=stopper):
                others = self.running(OTHER)
                hog = self.hog()
                self.assertTrue(any("full" in problem for problem in self.problems()), self.problems())
                doctor = self.daemon.cli("doctor")
                self.assertRegex(doctor.out, "disk of the state folder is full")
                self.daemon.stop_task(hog, force=True, uid=stopper)
                self.assertEqual(self.daemon.wait_until_final(hog)["state"], "killed")
                self.assertEqual(self.daemon.task(others)["state"], "running")
                self.daemon.api("DELETE", f"/v1/tasks/{hog}", uid=drover.NOBODY)
                drover.wait_for(lambda: not self.is_full(), "the disk to be empty")
                drover.wait_for(lambda: not self.problems(), "all to be well")
                self.assertEqual(self.daemon.run_probe([], "say", "hello").out, "hello\n")
                self.daemon.stop_task(others, force=True)
                self.assertEqual(self.daemon.wait_until_final(others)["state"], "killed")

    def test_every_task_is_stopped_and_removed_on_a_full_disk(self):
        tasks = [self.daemon.submit("sleep", 600, uid=uid) for uid in (drover.NOBODY, OTHER) for _ in range(12)]
        for task in tasks:
            self.daemon.wait_until_running(task)
        self.fill()
        for task in tasks:
            self.daemon.stop_task(task)
        for task in tasks:
            self.assertEqual(self.daemon.wait_until_final(task)["state"], "killed")
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual({self.daemon.task(task)["state"] for task in tasks}, {"killed"}, "the journal has it")
        for task in tasks:
            self.daemon.api("DELETE", f"/v1/tasks/{task}")
        self.assertEqual(self.daemon.tasks(), [])

    def test_new_work_is_refused_and_accepted_work_kept(self):
        runs = self.running(OTHER)
        gpus = len(self.daemon.api("GET", "/v1/gpus")["gpus"])
        waits = self.daemon.submit("say", "my turn", gpus=gpus, uid=OTHER)
        self.fill()
        for _ in range(300):
            with self.assertRaises(drover.ApiError) as refused:
                self.daemon.submit("say", "hello", uid=drover.NOBODY, env={"FILLER": "x" * 50_000})
            self.assertEqual(refused.exception.status, 507)
            self.assertIn("full", refused.exception.message)
        self.assertEqual(self.daemon.task(runs)["state"], "running")
        self.assertEqual(self.daemon.task(waits)["state"], "queued")
        self.daemon.kill()
        (self.daemon.state / "filler").unlink()
        self.daemon.start()
        self.daemon.stop_task(runs, force=True)
        self.assertEqual(self.daemon.wait_until_final(waits)["state"], "finished")

    def test_the_journal_is_lost_on_a_full_disk(self):
        """What ended is moved where there is room for it and stays where it is otherwise; nothing is removed."""
        ran = self.daemon.submit("write", "result", "precious")
        self.daemon.wait_until_final(ran)
        self.daemon.stop()
        for path in self.daemon.state.glob("state.db*"):
            path.unlink()
        self.fill()
        self.daemon.start(wait=False)
        with contextlib.suppress(AssertionError):
            drover.wait_for(self.daemon.answers, "the daemon to answer, or to end")
        found = list(pathlib.Path(self.daemon.state).glob("tasks/**/result")) + list(
            pathlib.Path(self.daemon.state).glob("tasks/.quarantine/**/result"))
        self.assertEqual({path.read_text().strip() for path in found}, {"precious"})
        (self.daemon.state / "filler").unlink()
        if self.daemon.process.poll() is not None:
            self.daemon.start()

    def test_a_backup_needs_room_and_says_so(self):
        self.fill()
        ran = self.daemon.cli("backup", self.daemon.folder / "backup")
        self.assertNotEqual(ran.status, 0)
        self.assertRegex(ran.err, "(?i)space|full")
        self.assertFalse((self.daemon.folder / "backup").exists())
        self.assertEqual(list(self.daemon.state.glob("state.db.copy.*")), [])


class RoomTest(SmallDiskTest):
    size = "68m"
    options = ("--room-to-keep", "24MiB")

    def leaves(self, mebibytes, uid):
        """A task that has ended."""
        task = self.daemon.submit(command=["/bin/dd", "if=/dev/zero", "of=data", "bs=1M", f"count={mebibytes}"], uid=uid)
        self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished")
        return task

    def let_time_pass(self, seconds):
        """For the clock that nobody sets."""
        self.daemon.stop()
        timeline = self.daemon.state / "timeline"
        boot, at = timeline.read_text().split()
        timeline.write_text(f"{boot} {int(at) + seconds * 1000}\n")
        self.daemon.start()

    def test_the_oldest_ended_task_of_whoever_has_most_makes_room(self):
        others = self.leaves(1, OTHER)
        runs = self.running(OTHER)
        first, second = self.leaves(12, drover.NOBODY), self.leaves(12, drover.NOBODY)
        self.let_time_pass(1200)
        self.assertEqual(self.problems(), [])
        third = self.leaves(16, drover.NOBODY)
        self.assertRegex(self.daemon.cli("doctor").out, "should be: images that nobody uses are removed, and then the oldest ended tasks are forgotten")
        drover.wait_for(lambda: not self.problems(), "room to be made", timeout=90)
        self.assertEqual({record["task"]["id"] for record in self.daemon.tasks()}, {others, runs, second, third})
        self.assertFalse((self.daemon.state / "tasks" / first).exists())
        self.assertEqual(self.daemon.task(runs)["state"], "running")
        self.assertIn("it is forgotten, with the 12", self.daemon.cli("events", uid=drover.NOBODY).out)


class UnusedTest(SmallDiskTest):
    """What nobody uses makes room first: old driver volumes, and images of a registry, the longest unused before the others."""

    size = "112m"
    options = ("--room-to-keep", "24MiB", "--keep-free", "1MiB")

    def image(self, registry, name):
        """Of 8 MiB, which are kept as they came and unpacked."""
        layer = registries.make_tar({"probe": self.daemon.probe.read_bytes(), "data": os.urandom(8 << 20)})
        return registry.tag(name, registry.images.image([layer], Cmd=["/probe", "say", "hello"]))

    def volume(self, version):
        folder = self.daemon.state / f"driver/nvidia_{version}"
        folder.mkdir(parents=True)
        (folder / "data").write_bytes(bytes(2 << 20))
        (folder / ".manifest.json").write_text(json.dumps({"files": [{"path": "data", "size": 2 << 20}]}))
        return folder

    def have_been_used_long_ago(self, names):
        """One after the other, as far as the daemon knows."""
        self.daemon.stop()
        index = self.daemon.state / "images/pulled/index.json"
        known = json.loads(index.read_text())
        for manifest in known["manifests"]:
            notes = manifest["annotations"]
            day = names.index(notes["org.opencontainers.image.ref.name"]) + 1
            notes["io.drover.pulled-at"] = f"2020-01-0{day}T00:00:00.000Z"
        index.write_text(json.dumps(known))
        for use in (self.daemon.state / "images/used").glob("*"):
            os.utime(use, (0, 0))
        self.daemon.start()

    def images(self):
        return {image["name"] for image in self.daemon.api("GET", "/v1/images")["images"]}

    def test_what_nobody_uses_makes_room(self):
        registry = registries.ScriptedRegistry()
        self.addCleanup(registry.close)
        runs, waits, oldest, other = names = [self.image(registry, f"team/{name}:1") for name in ("runs", "waits", "oldest", "other")]
        task = self.daemon.submit(command=["/probe", "sleep", "600"], image=runs)
        self.daemon.wait_until_running(task)
        for name in names[1:]:
            self.assertEqual(self.daemon.cli("image", "pull", name).status, 0)
        gpus = len(self.daemon.api("GET", "/v1/gpus")["gpus"])
        holds = self.running(OTHER)
        queued = self.daemon.submit(command=["/probe", "say", "hello"], image=waits, gpus=gpus)
        self.have_been_used_long_ago(names)
        unused, mounted = self.volume("1.0"), self.volume("2.0")
        script = 'mount --bind "$0" /mnt && exec sleep 600'
        container = subprocess.Popen(["unshare", "--mount", "sh", "-c", script, mounted])
        self.addCleanup(container.wait)
        self.addCleanup(container.kill)
        drover.wait_for(lambda: str(mounted.name) in pathlib.Path(f"/proc/{container.pid}/mountinfo").read_text(), "the mount")
        mounted = mounted.rename(mounted.with_name("nvidia_2.0.replaced-1"))

        space = os.statvfs(self.daemon.state)
        (self.daemon.state / "filler").write_bytes(bytes(space.f_bavail * space.f_frsize - (14 << 20)))
        drover.wait_for(lambda: oldest not in self.images(), "room to be made", timeout=90)
        drover.wait_for(lambda: not self.problems(), "all to be well")
        self.assertEqual(self.images(), {runs, waits, other})
        self.assertFalse(unused.exists())
        self.assertTrue((mounted / "data").exists(), "a container has it")
        told = [line for line in self.daemon.read_log().splitlines() if "that nobody uses" in line]
        self.assertEqual(len(told), 1, told)
        self.assertRegex(told[0], rf"1[89]\.\d MiB were removed that nobody uses, 1 images, 1 layers and 1 driver volumes \('{re.escape(oldest)}', 'nvidia_1.0'\)$")
        self.assertEqual(self.daemon.cli("exec", task, "--", "/probe", "say", "still here").out, "still here\n")
        self.assertEqual(self.daemon.cli("run", "--pull", "never", "--image", other).out, "hello\n")
        self.daemon.stop_task(holds, force=True)
        self.assertEqual(self.daemon.wait_until_final(queued)["state"], "finished")


if __name__ == "__main__":
    unittest.main()
