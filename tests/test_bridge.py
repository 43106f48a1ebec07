"""Apps behind a bridge: reached through their host port, whatever becomes of the daemon, and gone without a trace; and ports that are taken."""

import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

import drover

FIRST_PORT, LAST_PORT = 31000, 32000


def free_port():
    """Somewhere at the end of the range, away from where other daemons begin."""
    for port in range(LAST_PORT, FIRST_PORT, -1):
        with contextlib.closing(socket.socket()) as probe:
            with contextlib.suppress(OSError):
                probe.bind(("", port))
                return port
    raise unittest.SkipTest("every port of the range is taken")


class BridgeTest(drover.DaemonTest):
    profile = "k40m"

    def app(self, name, text, host_port=0, **fields):
        return {"id": name, "args": [str(self.daemon.probe), "serve", "8080", text], "cpus": 0.1, "mem": 32,
                "networks": [{"mode": "container/bridge"}], "backoffSeconds": 1, "maxLaunchDelaySeconds": 1,
                "container": {"type": "MESOS", "portMappings": [{"containerPort": 8080, "hostPort": host_port, "name": "web"}]}, **fields}

    def create(self, *arguments, **fields):
        app = self.app(*arguments, **fields)
        self.daemon.api("POST", "/v2/apps", app)
        self.addCleanup(self.remove, app["id"])

    def remove(self, name):
        with contextlib.suppress(drover.ApiError):
            self.daemon.api("DELETE", f"/v2/apps{name}?force=true")
        drover.wait_for(lambda: not self.instances(name), f"{name} to be gone")

    def instances(self, name):
        return [record for record in self.daemon.tasks()
                if record["task"].get("origin", {}).get("name") == name and record["state"] not in drover.FINAL_STATES]

    def instance(self, name):
        """The record of the one instance, when it runs."""
        (record,) = drover.wait_for(lambda: [one for one in self.instances(name) if one["state"] == "running"], f"{name} to run")
        return record

    def reached(self, port, text):
        drover.wait_for(lambda: drover.served_at(port) == text, f"'{text}' at port {port}")

    def forward(self, *words):
        """A port here for each that is named."""
        process = subprocess.Popen(self.daemon.cli_command("forward", *words), stdout=subprocess.PIPE, text=True,
                                   env={**self.daemon.environment, "DROVER_SOCKET": str(self.daemon.socket)})

        def end():
            process.kill()
            process.communicate()
        self.addCleanup(end)
        return [int(re.match(r"127\.0\.0\.1:(\d+) leads to port", process.stdout.readline())[1]) for _ in words[1:]]

    def test_a_port_of_a_task_is_reached_where_its_owner_is(self):
        fields = {"network": {"mode": "bridge", "ports": [{"container_port": 8080, "name": "web"}]}}
        task = self.daemon.submit("serve", "8080", "hello", **fields)
        self.addCleanup(self.daemon.end_tasks)
        self.daemon.wait_until_running(task)
        ports = self.forward(task, "0:8080", "0:web", f"0:{self.daemon.task(task)['ports'][0]}")
        for port in ports:
            self.reached(port, "hello")
        several = [threading.Thread(target=self.reached, args=(ports[0], "hello")) for _ in range(100)]
        for thread in several:
            thread.start()
        for thread in several:
            thread.join()
        for words, status, told in (([task, "22"], 66, "has no port '22'"), ([task, "web:8080"], 64, "is not a port"),
                                    (["nosuch", "8080"], 66, "There is no task"), ([task, f"{ports[0]}:8080"], 73, "choose another port here")):
            ran = self.daemon.cli("forward", *words)
            self.assertEqual(ran.status, status, ran)
            self.assertIn(told, ran.err)
        other = self.daemon.request("POST", f"/v1/tasks/{task}/forward?port=8080", {}, uid=1234,
                                    headers={"Connection": "Upgrade", "Upgrade": "drover-forward"})
        self.assertEqual(other[0], 404, "somebody else's task")
        self.daemon.stop_task(task, force=True)
        self.daemon.wait_until_final(task)
        with socket.create_connection(("127.0.0.1", ports[0])) as late:
            self.assertEqual(late.recv(10), b"")

    def helpers(self):
        """Processes that carry something from or to containers: they have no folder in their names."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and (entry / "comm").read_text().strip() in ("drover-forward", "slirp4netns"):
                    if str(self.daemon.folder).encode() in (entry / "cmdline").read_bytes():
                        found.append(int(entry.name))
        return found

    def waiting(self, name):
        """The reasons for which it waits."""
        def reasons():
            items = [item for item in self.daemon.api("GET", "/v2/queue")["queue"] if item["app"]["id"] == name]
            return items and items[0]["processedOffersSummary"].get("reasons")

        return " ".join(drover.wait_for(reasons, f"{name} to wait"))

    def test_it_serves_on_while_the_daemon_is_away_and_leaves_nothing(self):
        self.create("/kept", "still here")
        before = self.instance("/kept")
        (port,) = before["ports"]
        self.assertTrue(FIRST_PORT <= port <= LAST_PORT)
        self.reached(port, "still here")
        helpers = self.helpers()
        self.assertEqual(len(helpers), 2, "a forwarder and a way out")
        self.daemon.kill()
        self.reached(port, "still here")
        self.daemon.start()
        self.assertEqual(self.instance("/kept")["task"]["id"], before["task"]["id"])
        self.reached(port, "still here")
        self.assertEqual(self.helpers(), helpers)
        self.remove("/kept")
        drover.wait_for(lambda: not self.daemon.shims(), "its processes to end")
        self.assertNotEqual(drover.served_at(port), "still here")
        self.assertEqual(self.helpers(), [])
        self.assertEqual(self.daemon.leaks([before["task"]["id"]]), [])

    def test_an_instance_that_cannot_be_reached_any_more_is_replaced(self):
        self.create("/cut", "here again")
        before = self.instance("/cut")
        self.reached(before["ports"][0], "here again")
        for pid in self.helpers():
            if "forward" in pathlib.Path(f"/proc/{pid}/comm").read_text():
                os.kill(pid, signal.SIGKILL)
        ended = self.daemon.wait_until_final(before["task"]["id"])
        self.assertEqual((ended["state"], ended["reason"]), ("failed", "the process that forwards its ports has ended"))
        self.reached(self.instance("/cut")["ports"][0], "here again")

    def test_of_two_with_the_same_port_one_waits_and_says_why(self):
        port = free_port()
        self.create("/first", "first", port)
        self.reached(port, "first")
        self.create("/second", "second", port)
        self.assertIn(f"port {port} of this machine, which another task has", self.waiting("/second"))
        self.remove("/first")
        self.reached(port, "second")

    def test_a_port_that_a_strange_program_has(self):
        port = free_port()
        stranger = socket.socket()
        stranger.bind(("", port))
        stranger.listen()
        self.addCleanup(stranger.close)
        self.create("/wants", "at last", port)
        drover.wait_for(lambda: f"port {port} of this machine, which another program has" in self.waiting("/wants"), "the reason")
        time.sleep(1.5)  # longer than failed instances would be waited with
        (record,) = self.instances("/wants")
        self.assertEqual(record["state"], "queued")
        stranger.close()
        self.reached(port, "at last")


if __name__ == "__main__":
    unittest.main()
