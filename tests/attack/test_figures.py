"""What another user notices of one who means harm, as figures: each test prints a line that begins with "figures:".

With DROVER_TEST_SLOW_CONNECTIONS as many of these.
"""

import contextlib
import os
import pathlib
import re
import resource
import select
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
import unittest

from attack import attack
import drover
import test_flood

SLOW_CONNECTIONS = int(os.environ.get("DROVER_TEST_SLOW_CONNECTIONS", "2000"))  # of 2048 that one user may have
LISTS = 200
SECONDS = 15
SLOW_SECONDS = 40  # a header may take 30
LOG_FILES, LOG_FILE_BYTES = 3, 10 << 20  # of each output
MOST_GROWTH = 64 << 20
DIRECTORY_SECONDS = 20
DIRECTORY_USERS = range(70000, 70100)


class FiguresTest(attack.AttackTest):
    def setUp(self):
        self.submit(self.victim, ["/bin/sleep", "3600"])
        self.addCleanup(self.daemon.end_tasks)
        self.over = self.daemon.folder / "over"
        self.addCleanup(self.over.unlink, missing_ok=True)

    def lists(self, seconds=0):
        """How long it took victim each time to list the tasks, in milliseconds; each list must be right."""
        times, end = [], time.monotonic() + seconds
        while len(times) < LISTS or time.monotonic() < end:
            began = time.monotonic()
            tasks = self.daemon.api("GET", "/v1/tasks", uid=self.victim.uid, timeout=attack.ANSWERED_MEANWHILE)["tasks"]
            times.append((time.monotonic() - began) * 1000)
            self.assertTrue(tasks)
            time.sleep(0.01)
        return times

    def memory(self):
        status = pathlib.Path(f"/proc/{self.daemon.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) << 10

    def tell(self, what, alone, meanwhile, *more):
        medians = [f"{statistics.median(times):.1f} ms (slowest of {len(times)}: {max(times):.0f} ms)" for times in (meanwhile, alone)]
        print(f"\nfigures: {'; '.join([what, *more])}; another user's GET /v1/tasks: median {medians[0]}, before {medians[1]}", flush=True)

    def assert_stays_small(self, grown):
        if not drover.is_sanitized():
            self.assertLess(grown, MOST_GROWTH)

    def connections(self):
        return len(os.listdir(f"/proc/{self.daemon.process.pid}/fd"))

    def slow_client(self):
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(self.daemon.socket))
        client.sendall(b"GET /v1/tasks HTTP/1.1\r\nX: ")
        return client

    def hold_connections(self, begun):
        """As mallory, with a byte on each every other second. Those that are turned away come again; returns how many did."""
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        test_flood.become(self.mallory.uid)
        clients = [self.slow_client() for _ in range(SLOW_CONNECTIONS)]
        begun.touch()
        again = 0
        while not self.over.exists():
            for index, client in enumerate(clients):
                if index % 100 == 0:
                    time.sleep(200 / SLOW_CONNECTIONS)
                try:
                    client.sendall(b"x")
                except OSError:
                    client.close()
                    clients[index] = self.slow_client()
                    again += 1
        for client in clients:
            client.close()
        return again

    def test_slow_connections(self):
        alone, memory, begun = self.lists(), self.memory(), self.mallory.home / "begun"
        holding = test_flood.child(lambda: self.hold_connections(begun))
        try:
            drover.wait_for(lambda: begun.exists() and self.connections() >= SLOW_CONNECTIONS, "the connections to be open")
            meanwhile, grown, open_at_last = self.lists(SLOW_SECONDS), self.memory() - memory, self.connections()
        finally:
            self.over.touch()
            again = holding()
        self.tell(f"{SLOW_CONNECTIONS} slow connections of one user", alone, meanwhile, f"{again} were turned away and came again",
                  f"the daemon grew by {grown / (1 << 20):.1f} MiB")
        self.assertGreater(open_at_last, SLOW_CONNECTIONS // 2)
        self.assert_stays_small(grown)

    def written_by(self, name):
        """Bytes that mallory's processes of this name have written."""
        written = 0
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if process.stat().st_uid == self.mallory.uid and (process / "comm").read_text().strip() == name:
                    written += int(re.search(r"wchar: (\d+)", (process / "io").read_text())[1])
        return written

    def test_a_flood_of_output(self):
        alone, memory = self.lists(), self.memory()
        task = self.submit(self.mallory, ["/usr/bin/yes", "all work and no play"], cpus=1)
        self.daemon.wait_until_running(task)
        sandbox = self.daemon.state / "tasks" / task / "sandbox"
        most, meanwhile, end = 0, [], time.monotonic() + SECONDS
        while time.monotonic() < end:
            meanwhile += self.lists()
            with contextlib.suppress(FileNotFoundError):  # it was renamed just now
                most = max(most, sum(path.stat().st_blocks * 512 for path in sandbox.iterdir()))
        written, grown = self.written_by("yes"), self.memory() - memory
        self.tell(f"a task that writes its output as fast as it can, {written >> 20} MiB in {SECONDS} s", alone, meanwhile,
                  f"{most / (1 << 20):.1f} MiB of it on the disk", f"the daemon grew by {grown / (1 << 20):.1f} MiB")
        self.assertGreater(written, 2 * LOG_FILES * LOG_FILE_BYTES, "too little to prove anything")
        self.assertLess(most, (LOG_FILES + 1) * LOG_FILE_BYTES)
        self.assert_stays_small(grown)


class SlowDirectoryTest(FiguresTest):
    """Users that are in no file of the machine are looked up in a directory service that takes its time."""

    test_slow_connections = test_a_flood_of_output = None

    @classmethod
    def setUpClass(cls):
        attack.people()  # first: it has mounts of its own
        folder = attack.make_folder(tempfile.mkdtemp(prefix="drover-directory-"))
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        subprocess.run(["clang-19", "-shared", "-fPIC", "-o", folder / "libnss_slow.so.2",
                        pathlib.Path(__file__).with_name("slow_directory.c")], check=True)
        services = attack.make_file(folder / "nsswitch.conf", "passwd: files slow\ngroup: files\nhosts: files\n")
        attack.cover(cls, services, "/etc/nsswitch.conf")
        environment = {"LD_LIBRARY_PATH": str(folder), "SLOW_DIRECTORY_SECONDS": str(DIRECTORY_SECONDS)}
        cls.kind_of_daemon = lambda profile, arguments: drover.Daemon(profile, arguments, environment)
        super().setUpClass()

    def ask_as_all(self):
        """A request of each user of the directory; returns the statuses of the answers, and how long each took."""
        asked = {}
        began = time.monotonic()
        for uid in DIRECTORY_USERS:
            connection = drover.UnixConnection(self.daemon.socket, attack.ANSWERED_MEANWHILE)
            with drover.acting_as(uid):
                connection.connect()
            connection.request("GET", "/v1/tasks")
            asked[connection.sock] = connection
        answers = []
        while asked:
            for ready in select.select(list(asked), [], [], attack.ANSWERED_MEANWHILE)[0]:
                connection = asked.pop(ready)
                answers.append([connection.getresponse().status, time.monotonic() - began])
                connection.close()
        return answers

    def test_a_directory_that_takes_its_time(self):
        alone = self.lists()
        asking = test_flood.child(self.ask_as_all)
        meanwhile = self.lists(SECONDS)
        answers = asking()
        statuses = {status for status, _ in answers}
        self.tell(f"a directory service that takes {DIRECTORY_SECONDS} s for every look-up, asked for {len(DIRECTORY_USERS)} users at once", alone,
                  meanwhile, f"these were answered {sorted(statuses)} after {max(time for _, time in answers):.1f} s at most")
        self.assertEqual(statuses, {503}, "the directory was not asked, or was waited for")


if __name__ == "__main__":
    unittest.main()
