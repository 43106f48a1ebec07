"""What an ordinary user of the machine finds of Drover beside its socket: processes, files, sockets, and what runs as another."""

import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import socket
import stat
import unittest

import drover
from attack import attack

SECRET = "sesame-7f3a"


class MachineTest(attack.AttackTest):
    def start(self, user, script="", **fields):
        task = self.submit(user, ["/bin/sh", "-c", f"{script}\necho up; exec sleep 600"], **fields)
        self.addCleanup(self.daemon.end_task, task)
        self.daemon.wait_for_output(task, "up")
        return task

    def processes(self):
        """Those of Drover itself: the daemon and its shims, and not what runs in containers as its user."""
        shims = [pid for pid in self.daemon.shims() if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"drover\0shim")]
        self.assertTrue(shims)
        return [self.daemon.process.pid, *shims]

    def test_what_proc_tells_of_drovers_processes(self):
        self.start(self.victim, env={"TOKEN": SECRET})
        self.start(self.mallory, env={"TOKEN": SECRET})
        for pid in self.processes():
            for name in ("environ", "maps", "mem", "fd", "cwd", "exe", "root", "io", "stack", "syscall", "ns/mnt", "map_files"):
                with self.subTest(pid=pid, name=name), self.assertRaises(PermissionError), drover.acting_as(self.mallory.uid):
                    path = f"/proc/{pid}/{name}"
                    os.readlink(path) if name in ("cwd", "exe", "root", "ns/mnt") else \
                        os.listdir(path) if name in ("fd", "map_files") else pathlib.Path(path).read_bytes()
            self.assertNotIn(SECRET, pathlib.Path(f"/proc/{pid}/cmdline").read_text())
            self.assertNotIn(SECRET, pathlib.Path(f"/proc/{pid}/environ").read_text())

    def test_signals_to_drovers_processes(self):
        self.start(self.mallory)
        for pid in self.processes():
            for number in ("KILL", "STOP", "USR1", "0"):
                with self.subTest(pid=pid, signal=number):
                    self.assertIn("not permitted", self.shell(self.mallory, f"kill -{number} {pid}").err)

    def test_signals_and_traces_from_a_task(self):
        """Without an image a task has the machine's files, and processes of its own only."""
        task = self.start(self.mallory)
        output = self.attempt(self.mallory, ["/bin/sh", "-c", f"kill -0 {self.daemon.process.pid}; ls -d /proc/[0-9]*; "
                                             f"cat /proc/{self.daemon.process.pid}/cmdline"])[1]
        self.assertTrue(len(output.split()) < 8, output)
        self.assertNotIn("serve", output)
        self.assertEqual(self.daemon.task(task)["state"], "running")

    def test_a_gpu_through_proc_of_a_task(self):
        """One user is one party: what his task has, his other programs reach. Nobody else's do."""
        task = self.start(self.mallory, gpus=1)
        (device,) = self.attempt_in(task, "ls /dev | grep 'nvidia[0-9]'").split()
        pid = json.loads((self.daemon.state / "tasks" / task / "status.json").read_text())["running"]["pid"]
        self.assertEqual(self.opening(self.mallory, f"/proc/{pid}/root/dev/{device}"), attack.ALLOWED)
        self.assertEqual(self.opening(self.victim, f"/proc/{pid}/root/dev/{device}"), "EACCES")

    def attempt_in(self, task, script):
        return self.cli(self.mallory, "exec", task, "--", "/bin/sh", "-c", script).out

    def test_files_whose_modes_are_too_open(self):
        """Also when the daemon was started with the mildest umask."""
        self.start(self.mallory, gpus=1)
        self.start(self.victim, image=None)
        self.attempt(self.victim, ["/probe", "say", "in"], image=self.image("modes"))
        found = []
        for path in [self.daemon.state, *self.daemon.state.rglob("*")]:
            try:
                info = path.lstat()
            except FileNotFoundError:
                continue  # of a task that has just ended
            if stat.S_ISLNK(info.st_mode) or "sim" in path.parts or "layers" in path.parts:
                continue  # simulated nodes are for all; what is in a layer has the image's modes, below a closed folder
            if info.st_mode & 0o022 or info.st_mode & 0o7000:
                found.append((str(path), stat.filemode(info.st_mode)))
        self.assertEqual(found, [])

    def test_what_lies_in_the_state_folder(self):
        task = self.start(self.victim, "echo private > note")
        state = self.daemon.state
        for path in ("state.db", "state.db-wal", "credentials", "images", "fetched", f"tasks/{task}/status.json", f"tasks/{task}/sandbox",
                     f"tasks/{task}/sandbox/note", f"tasks/{task}/sandbox/stdout", f"tasks/{task}/bundle/config.json", f"tasks/{task}/order"):
            with self.subTest(path=path), self.assertRaises((PermissionError, FileNotFoundError)), drover.acting_as(self.mallory.uid):
                path = state / path
                os.listdir(path) if path.is_dir() else path.read_bytes()
        for folder in (state, state / "tasks", state / f"tasks/{task}"):
            with self.subTest(folder=folder), self.assertRaises(PermissionError), drover.acting_as(self.mallory.uid):
                os.listdir(folder)
            with self.subTest(folder=folder), self.assertRaises(PermissionError), drover.acting_as(self.mallory.uid):
                os.mkdir(folder / "evil")

    @unittest.skipIf(shutil.which("slirp4netns") is None, "slirp4netns is not installed")
    def test_what_carries_the_network_of_a_task(self):
        """It reads whatever a task sends: so it has no rights, or a cage of its own."""
        self.start(self.mallory, network={"mode": "bridge", "ports": [{"container_port": 8080}]})
        rights = {}
        for pid in self.daemon.shims():
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            values = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
            rights[values["Name"].strip()] = (values["Uid"].split()[1], int(values["CapEff"], 16), values["NoNewPrivs"], values["Seccomp"])
        self.assertEqual(rights["drover-forward"], (str(drover.NOBODY), 0, "1", "0"))
        self.assertEqual(rights["slirp4netns"][1] & ~(1 << 10), 0, "but for low ports of the container")
        self.assertEqual(rights["slirp4netns"][2:], ("1", "2"))

    def test_abstract_sockets(self):
        self.start(self.mallory)
        listening = pathlib.Path("/proc/net/unix").read_text()
        self.assertEqual([line for line in listening.splitlines() if re.search(r" @.*(drover|runc|shim)", line)], [])

    def test_output_that_leads_elsewhere(self):
        """The shim goes on with a new file when one is full; the task has put links where it would write."""
        canary = attack.make_folder(self.ground / "logs")
        for name in ("stdout", "stdout.1", "stdout.2"):
            attack.make_file(canary / name, "of the machine\n")
        with self.unchanged(canary):
            record, _, _ = self.attempt(self.mallory, ["/bin/sh", "-c", f"""
                for name in stdout stdout.1 stdout.2 stderr; do rm -f $name; ln -s {canary}/$name $name; done
                head -c 25000000 /dev/zero | tr '\\0' x; rm -rf stdout*; ln -s {canary} stdout; mkdir stdout.1; touch stdout.1/x
                head -c 25000000 /dev/zero | tr '\\0' x"""], cpus=4)
        self.assertEqual(record["state"], "finished", record)

    def test_output_that_is_a_pipe_without_a_reader(self):
        """Whoever reads logs must not wait for one."""
        task = self.submit(self.mallory, ["/bin/sh", "-c", "rm stdout; mkfifo stdout pipe; ln -s /dev/zero zero; touch up; exec sleep 600"])
        self.addCleanup(self.daemon.end_task, task)
        drover.wait_for(lambda: self.daemon.request("GET", f"/v1/tasks/{task}/files/read?path=up")[0] == 200, "the pipes")
        for path in ("logs?stream=stdout", "logs?tail=5", "files/read?path=pipe", "files/download?path=pipe", "files/read?path=zero",
                     "files/read?path=stdout"):
            with self.subTest(path=path):
                status, _, data = self.daemon.request("GET", f"/v1/tasks/{task}/{path}", uid=self.mallory.uid)
                self.assertLess(len(data), 1000)

    def test_core_files(self):
        """A program that crashes leaves what it held to nobody but its user."""
        resource.prlimit(self.daemon.process.pid, resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        task = self.submit(self.mallory, [self.daemon.probe, "crash"], env={"TOKEN": SECRET})
        self.daemon.wait_until_final(task)
        for path in (self.daemon.state / "tasks" / task / "sandbox").rglob("core*"):
            self.assertEqual((path.lstat().st_uid, path.lstat().st_mode & 0o077), (self.mallory.uid, 0))

    def test_a_socket_that_pretends_to_be_the_daemons(self):
        """The folder of the socket is root's: nobody can take its place while the daemon is away."""
        folder = self.daemon.socket.parent
        for act in (lambda: os.unlink(self.daemon.socket), lambda: os.rename(self.daemon.socket, folder / "old"),
                    lambda: socket.socket(socket.AF_UNIX).bind(str(folder / "other"))):
            with self.assertRaises(PermissionError), drover.acting_as(self.mallory.uid):
                act()


class MildUmaskTest(MachineTest):
    """The same, of a daemon that was started with umask 0."""

    @classmethod
    def setUpClass(cls):
        before = os.umask(0)
        cls.addClassCleanup(os.umask, before)
        super().setUpClass()


class StateFolderTest(attack.AttackTest):
    """Folders that somebody else can change are no place for the state."""

    def serve(self, folder):
        other = drover.Daemon(None)
        self.addCleanup(other.close)
        other.state = folder
        other.start(wait=False)
        with contextlib.suppress(AssertionError):
            drover.wait_for(other.answers, "the daemon to answer")
            return None
        return other.read_log()

    def test_a_state_folder_of_mallory(self):
        said = self.serve(attack.make_folder(self.mallory.home / "state", 0o777, self.mallory.uid))
        self.assertIsNotNone(said, "it served")
        self.assertIn(str(self.mallory.home), said)

    def test_a_state_folder_below_one_of_mallory(self):
        attack.make_folder(self.mallory.home / "below", 0o755, self.mallory.uid)
        said = self.serve(attack.make_folder(self.mallory.home / "below/state"))
        self.assertIsNotNone(said, "it served")

    def test_a_link_of_mallory_for_a_state_folder(self):
        target = attack.make_folder(self.ground / "target")
        os.symlink(target, self.mallory.home / "link")
        said = self.serve(self.mallory.home / "link")
        self.assertIsNotNone(said, "it served")
        self.assertEqual(os.listdir(target), [])
