"""What is in a sandbox is its user's: nobody has the daemon read more for him, and nobody reaches it by its path."""

import contextlib
import ctypes
import http.client
import os
import pathlib
import secrets
import stat
import subprocess
import sys
import threading
import urllib.parse

from attack import attack
import drover

SECRET = "what nobody but victim may read"
MS_BIND = 0x1000


class SandboxTest(attack.AttackTest):
    """`self.task` is a task of mallory's that runs, `self.sandbox` is its folder on the machine."""

    def setUp(self):
        self.task = self.submit(self.mallory, ["/bin/sh", "-c", "echo mine > own; echo up; exec sleep 100000"])
        self.addCleanup(self.end_task)
        self.daemon.wait_for_output(self.task, "up")
        self.sandbox = self.daemon.state / "tasks" / self.task / "sandbox"

    def end_task(self):
        with contextlib.suppress(drover.ApiError):
            self.daemon.stop_task(self.task, force=True)
            self.daemon.wait_until_final(self.task)

    def answers(self, name, caller):
        """By every way of the API to a file of the sandbox: status and all bytes."""
        path = urllib.parse.quote(name)
        of_mesos = urllib.parse.quote(f"/slaves/S/frameworks/F/executors/E/runs/{self.task}/{name}")
        requests = [f"/v1/tasks/{self.task}/files/read?path={path}", f"/v1/tasks/{self.task}/files/download?path={path}",
                    f"/files/read?path={of_mesos}&offset=0", f"/files/download?path={of_mesos}"]
        for output in ("stdout", "stderr"):
            if name.startswith(output):
                requests += [f"/v1/tasks/{self.task}/logs?stream={output}", f"/v1/tasks/{self.task}/logs?stream={output}&tail=9"]
        for request in requests:
            try:
                status, _, data = self.daemon.request("GET", request, uid=caller.uid if caller else None)
            except OSError as error:
                self.fail(f"{request}: {error}")
            yield request, status, data.decode(errors="replace")

    def assert_kept(self, name, *callers):
        for caller in callers or (self.mallory, None):
            for request, _, text in self.answers(name, caller):
                self.assertNotIn(SECRET, text, f"{request} as {caller}")

    def secret(self, name, uid, mode=0o600):
        return attack.make_file(self.ground / name, SECRET, mode, uid)


class RightsTest(SandboxTest):
    def test_own_files_are_read_by_their_user_and_by_root(self):
        for caller in (self.mallory, None):
            for request, status, text in self.answers("own", caller):
                self.assertEqual(status, 200, request)
                self.assertIn("mine", text, request)
        for request, status, text in self.answers("stdout", self.mallory):
            self.assertIn("up", text, request)

    def test_mallory_moves_files_of_others_into_his_sandbox(self):
        shared = attack.make_folder(self.ground / "shared", 0o777)
        attack.make_file(shared / "victim.key", SECRET, 0o600, self.victim.uid)
        attack.make_file(attack.make_folder(self.mallory.home / "r", 0o755, self.mallory.uid) / "root.key", SECRET, 0o600)
        for key in (shared / "victim.key", self.mallory.home / "r/root.key"):
            self.shell(self.mallory, f"mv {key} {self.sandbox}/")
            self.assert_kept(key.name)

    def test_files_of_others_come_into_the_sandbox_all_the_same(self):
        # As by a descriptor from before: the folder is open to nobody, but that is not all that is relied on.
        for name, uid in (("victims", self.victim.uid), ("roots", 0), ("stdout", self.victim.uid), ("stdout.1", 0),
                          ("stderr", 0)):
            with self.subTest(name=name):
                os.replace(self.secret("k", uid), self.sandbox / name)
                self.assert_kept(name)

    def test_a_closed_folder_of_another_comes_into_the_sandbox(self):
        closed = attack.make_folder(self.ground / "closed", 0o700, self.victim.uid)
        attack.make_file(closed / "open", SECRET, 0o644, self.victim.uid)
        os.rename(closed, self.sandbox / "closed")
        self.assert_kept("closed/open")
        for caller in (self.mallory, None):
            with self.assertRaises(drover.ApiError) as refused:
                self.daemon.api("GET", f"/v1/tasks/{self.task}/files/browse?path=closed", uid=caller and caller.uid)
            self.assertEqual(refused.exception.status, 403, refused.exception)

    def test_what_may_be_read_by_all_is_read(self):
        os.rename(self.secret("k", self.victim.uid, 0o644), self.sandbox / "open")
        for request, status, text in self.answers("open", self.mallory):
            self.assertEqual((status, SECRET in text), (200, True), request)

    def test_a_refusal_is_one_sentence(self):
        os.rename(self.secret("k", self.victim.uid), self.sandbox / "k")
        for caller in (self.mallory, None):
            with self.assertRaises(drover.ApiError) as refused:
                self.daemon.api("GET", f"/v1/tasks/{self.task}/files/read?path=k", uid=caller and caller.uid)
            self.assertEqual(refused.exception.kind, "permission_denied")
            self.assertNotIn(str(self.daemon.state), refused.exception.message)
            self.assertNotIn("\n", refused.exception.message)

    def test_hard_links(self):
        os.link(self.secret("linked", self.victim.uid, 0o644), self.sandbox / "linked")
        self.assert_kept("linked")

    def test_links_out_of_the_sandbox(self):
        self.secret("away", 0)
        for number, target in enumerate((self.ground / "away", "../../../../../../.." + str(self.ground / "away"), "/proc/self/fd/0",
                                         "/proc/1/root/etc/shadow", "/etc/shadow", "/proc/self/environ", "..", "../launch.json",
                                         f"/proc/{os.getpid()}/cwd")):
            os.symlink(target, self.sandbox / f"link{number}")
            for caller in (self.mallory, None):
                for request, status, _ in self.answers(f"link{number}", caller):
                    self.assertIn(status, (400, 404), f"{target}: {request}")

    def test_fifos_devices_and_sockets_are_not_opened(self):
        os.mkfifo(self.sandbox / "fifo")
        os.mknod(self.sandbox / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        os.mknod(self.sandbox / "disk", 0o666 | stat.S_IFBLK, os.makedev(254, 0))
        os.mknod(self.sandbox / "socket", 0o666 | stat.S_IFSOCK)
        for name in ("fifo", "null", "disk", "socket"):
            for caller in (self.mallory, None):
                for request, status, _ in self.answers(name, caller):
                    self.assertEqual(status, 400, request)

    def test_a_mount_of_roots_in_a_sandbox_does_not_lead_out(self):
        # Below a closed folder of root's, as N files below /root are: readable by their modes, reachable by nobody.
        attack.make_folder(self.ground / "roots", 0o700)
        attack.make_file(attack.make_folder(self.ground / "roots/inner") / "file", SECRET)
        os.mkdir(self.sandbox / "mounted")
        library = ctypes.CDLL(None, use_errno=True)
        self.assertEqual(library.mount(str(self.ground / "roots/inner").encode(), str(self.sandbox / "mounted").encode(), None,
                                       MS_BIND, None), 0)
        try:
            self.assert_kept("mounted/file")
        finally:
            library.umount2(str(self.sandbox / "mounted").encode(), 2)

    def test_names_that_are_hard_to_write(self):
        for name in ("a\nb", "%2e%2e", "quote\"s", "ü", "\x7f", " "):
            attack.make_file(self.sandbox / name, "content of " + name, 0o600, self.mallory.uid)
            for request, status, text in self.answers(name, self.mallory):
                self.assertEqual(status, 200, request)
                self.assertIn("content of", text)

    def test_places_in_files_that_are_not_there(self):
        for offset in (4, 1 << 40, (1 << 62)):
            read = self.daemon.api("GET", f"/v1/tasks/{self.task}/files/read?path=own&offset={offset}&length=524288", uid=self.mallory.uid)
            self.assertEqual(read["length"], max(0, 5 - offset))

    def test_a_file_is_exchanged_while_it_is_read(self):
        secret = self.secret("raced", self.victim.uid)
        done = threading.Event()

        def exchange():
            own, link, place = self.sandbox / "swap.own", self.sandbox / "swap.link", self.sandbox / "swapped"
            while not done.is_set():
                own.write_text("mine")
                os.chown(own, self.mallory.uid, self.mallory.uid)
                os.replace(own, place)
                with contextlib.suppress(FileExistsError):
                    os.symlink(secret, link)
                os.replace(link, place)
                os.link(secret, own)
                os.replace(own, place)

        thread = threading.Thread(target=exchange)
        thread.start()
        try:
            for _ in range(150):
                # Root, so that the process keeps its user while the other thread works.
                for request, _, text in self.answers("swapped", None):
                    self.assertNotIn(SECRET, text, request)
        finally:
            done.set()
            thread.join()

    def test_a_file_shrinks_while_it_is_downloaded(self):
        large = attack.make_file(self.sandbox / "large", "x" * (32 << 20), 0o644, self.mallory.uid)
        connection = drover.UnixConnection(self.daemon.socket, drover.PATIENCE)
        with contextlib.closing(connection):
            with drover.acting_as(self.mallory.uid):
                connection.connect()
            connection.request("GET", f"/v1/tasks/{self.task}/files/download?path=large")
            answer = connection.getresponse()
            answer.read(1000)
            os.truncate(large, 0)
            with self.assertRaises(http.client.IncompleteRead):
                answer.read()
        self.assertEqual(self.daemon.request("GET", "/health")[0], 200)


class PathTest(SandboxTest):
    def test_the_folder_of_a_task_is_open_to_nobody(self):
        for user in (self.mallory, self.victim):
            for place in (self.sandbox, self.sandbox.parent, self.sandbox / "stdout"):
                self.assertNotEqual(self.shell(user, f"ls -l {place}").status, 0, f"{place} as {user.name}")
        self.assertEqual(stat.S_IMODE(self.sandbox.parent.stat().st_mode), 0o700)

    def test_folders_that_an_older_version_left_open_are_closed(self):
        folders = (self.sandbox.parent, self.sandbox.parent.parent)
        for folder in folders:
            folder.chmod(0o711)
        self.daemon.kill()
        self.daemon.start()
        for folder in folders:
            self.assertEqual(stat.S_IMODE(folder.stat().st_mode), 0o700, folder)
        self.assertIn("mine", self.daemon.file(self.task, "own"))

    def test_the_task_itself_has_its_sandbox_by_its_path(self):
        record, output, errors = self.attempt(self.mallory, ["/bin/sh", "-c", 'cd / && echo in > "$MESOS_SANDBOX/in" && cat "$MESOS_SANDBOX/in"'])
        self.assertEqual(output, "in\n", (record, errors))

    def test_a_task_reads_the_folder_of_its_sandbox(self):
        record, output, _ = self.attempt(self.mallory, ["/bin/sh", "-c", f'ls {self.daemon.state}/tasks | wc -l; ls "$MESOS_SANDBOX/.."'])
        self.assertEqual(output.split(), ["1", "sandbox"], record)


class DockerRightsTest(attack.ThroughDocker, attack.AttackTest):
    """A Docker Engine mounts the sandbox by its path, as root."""

    def test_a_task_writes_into_its_sandbox(self):
        image = self.image("box", lambda layer: None)
        record, output, errors = self.attempt(self.mallory, ["/probe", "write", "/mnt/mesos/sandbox/f", "in"], image=image)
        self.assertEqual(record["state"], "finished", (record, errors))
        folder = self.daemon.state / "tasks" / record["task"]["id"]
        self.assertEqual(stat.S_IMODE(folder.stat().st_mode), 0o700)


WRITER = """
import os, sys
folder = os.open(f"/proc/{sys.argv[1]}/cwd", os.O_RDONLY | os.O_DIRECTORY)
os.mkdir("inner", dir_fd=folder)
inner = os.open("inner", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
number = 0
while True:
    number += 1
    for place in (folder, inner):
        try:
            os.close(os.open(f"{number}", os.O_CREAT | os.O_WRONLY, 0o666, dir_fd=place))
        except OSError:
            pass
    if number == 1000:
        print("writing", flush=True)
"""


class RemovalTest(SandboxTest):
    def test_a_sandbox_into_which_its_user_goes_on_to_write_is_removed(self):
        def sleeper():
            pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
            return next((pid for pid in pids if command_of(pid) == "sleep 100000" and
                         self.daemon.folder.name in os.readlink(f"/proc/{pid}/cwd")), None)

        pid = drover.wait_for(sleeper, "the task's command")
        writer = subprocess.Popen(["/usr/bin/python3", "-c", WRITER, str(pid)], stdout=subprocess.PIPE, **self.mallory.identity())
        try:
            self.assertEqual(writer.stdout.readline(), b"writing\n")
            self.end_task()
            self.daemon.api("DELETE", f"/v1/tasks/{self.task}", uid=self.mallory.uid)
            left = lambda: [path for folder in ("tasks", "removed") for path in (self.daemon.state / folder).glob(f"{self.task}*")]
            drover.wait_for(lambda: not left(), lambda: f"the sandbox to go: {left()}")
            self.assertIsNone(writer.poll())
        finally:
            writer.kill()
            writer.wait()
            writer.stdout.close()


class LeavingTest(attack.AttackTest):
    """A command that joined a task, and leaves a process that nothing names as its own."""

    def setUp(self):
        self.task = self.submit(self.mallory, ["/probe", "say", "up", ",", "sleep", "100000"], image=self.image("leaving"))
        self.addCleanup(self.daemon.end_task, self.task)
        self.daemon.wait_for_output(self.task, "up")
        self.left, self.stays = (str(10**8 + secrets.randbelow(10**8)) for _ in range(2))

    def begin(self):
        client = subprocess.Popen([*self.daemon.cli_command("exec", self.task, "--", "/probe", "leave", self.left, ",", "sleep", self.stays)],
                                  env={**self.daemon.environment, "DROVER_SOCKET": str(self.daemon.socket)}, stderr=subprocess.DEVNULL)
        drover.wait_for(lambda: sleeping(self.left) and sleeping(self.stays), "the command to run")
        return client

    def wait_for_the_end(self):
        drover.wait_for(lambda: not sleeping(self.left) and not sleeping(self.stays), "the command to end")
        self.assertEqual(self.daemon.task(self.task)["state"], "running")

    def test_with_the_connection(self):
        ran = self.cli(self.mallory, "exec", self.task, "--", "/probe", "leave", self.left, ",", "say", "begun")
        self.assertEqual(ran.out, "begun\n", ran)
        self.wait_for_the_end()

    def test_when_its_client_is_killed(self):
        client = self.begin()
        client.kill()
        client.wait()
        self.wait_for_the_end()

    def test_when_the_daemon_was_killed(self):
        client = self.begin()
        self.daemon.kill()
        client.wait()
        self.daemon.start()
        self.wait_for_the_end()


class DockerLeavingTest(attack.ThroughDocker, LeavingTest):
    """The init of the engine's container holds a command until it is in a control group of its own."""


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def sleeping(seconds):
    return any(f"sleep {seconds}" in command_of(int(name)) and " exec " not in command_of(int(name))
               for name in os.listdir("/proc") if name.isdigit())


if __name__ == "__main__":
    import unittest
    unittest.main()
