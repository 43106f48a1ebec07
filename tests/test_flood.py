"""One user submits far more than he may: the daemon stays small, and everybody else is answered.

With DROVER_TEST_SUBMISSIONS as many as that. Prints its figures.
"""

import json
import os
import pathlib
import re
import statistics
import time
import unittest

import drover

COUNT = int(os.environ.get("DROVER_TEST_SUBMISSIONS", "3000"))
AT_ONCE = 4
HOG, OTHER = 4321, 4322  # users without an account
MOST_MEMORY = 256 << 20
SUBMISSIONS_OF_A_LIST = 8


def child(work):
    """Runs `work` in a process of its own; returns what is called for its answer."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.write(writer, json.dumps(work()).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)

    def answer():
        with os.fdopen(reader) as file:
            text = file.read()
        _, status = os.waitpid(pid, 0)
        assert status == 0, "a process of the test failed"
        return json.loads(text)

    return answer


def become(uid):
    os.setgid(uid)
    os.setuid(uid)


class FloodTest(drover.DaemonTest):
    def setUp(self):
        self.addCleanup(self.daemon.end_tasks)
        self.daemon.wait_until_running(self.daemon.submit("sleep", 3600, gpus=8))

    def flood(self, count):
        become(HOG)
        body = json.dumps({"command": ["true"], "gpus": 8, "memory": "64MiB", "cpus": 0.1, "env": {"PADDING": "x" * 200}})
        statuses = {}
        connection = drover.UnixConnection(self.daemon.socket, drover.PATIENCE)
        for _ in range(count):
            connection.request("POST", "/v1/tasks", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            statuses[answer.status] = statuses.get(answer.status, 0) + 1
            if answer.getheader("Connection") == "close":
                connection.close()
        return statuses

    def ask(self, goes_on, least=50):
        """How long each of the lists of another user takes, while that is so."""
        become(OTHER)
        times = []
        while goes_on() or len(times) < least:
            began = time.monotonic()
            connection = drover.UnixConnection(self.daemon.socket, drover.PATIENCE)
            connection.request("GET", "/v1/tasks?active=true&summary=true")
            answer = connection.getresponse()
            assert answer.status == 200 and len(json.loads(answer.read())["tasks"]) == 1
            connection.close()
            times.append(time.monotonic() - began)
            time.sleep(0.02)
        return times

    def memory(self, field):
        text = pathlib.Path(f"/proc/{self.daemon.process.pid}/status").read_text()
        return int(re.search(rf"{field}:\s+(\d+) kB", text)[1]) << 10

    def test_many_submissions_of_one_user(self):
        self.daemon.submit("sleep", 3600, uid=OTHER)
        stop = self.daemon.folder / "over"
        quiet = statistics.median(child(lambda: self.ask(lambda: False))())
        asking = child(lambda: self.ask(lambda: not stop.exists()))
        began = time.monotonic()
        floods = [child(lambda: self.flood(COUNT // AT_ONCE)) for _ in range(AT_ONCE)]
        statuses = {}
        for flood in floods:
            for status, count in flood().items():
                statuses[status] = statuses.get(status, 0) + count
        taken = time.monotonic() - began
        stop.touch()
        times = sorted(asking())
        memory = self.memory("VmHWM")
        waiting = len([task for task in self.daemon.tasks(uid=HOG) if task["state"] == "queued"])
        print(f"\n{COUNT} submissions of one user in {taken:.1f} s: {statuses}; {waiting} of them wait; the daemon took {memory >> 20} MiB at most; "
              f"{len(times)} lists of another user: median {statistics.median(times) * 1000:.1f} ms (before: {quiet * 1000:.1f} ms), "
              f"p99 {times[len(times) * 99 // 100] * 1000:.1f} ms", flush=True)
        accepted = sum(count for status, count in statuses.items() if int(status) < 300)
        self.assertEqual(waiting, accepted)
        self.assertLessEqual(accepted, 10000)
        self.assertEqual(sum(statuses.values()), COUNT // AT_ONCE * AT_ONCE)
        if not drover.is_sanitized():
            self.assertLess(memory, MOST_MEMORY)
            # 50 ms, or on a machine that is busy with other things what some submissions take there.
            self.assertLess(statistics.median(times), max(0.05, SUBMISSIONS_OF_A_LIST * taken / COUNT))


if __name__ == "__main__":
    unittest.main()
