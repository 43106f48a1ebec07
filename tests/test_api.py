"""The HTTP API over the daemon's socket: what it offers, its files, its live streams, and how it refuses."""

import contextlib
import json
import threading
import unittest

import drover


def events_of(stream):
    """(event, id, data) of a server-sent event stream, one by one."""
    fields = {}
    for line in stream:
        line = line.decode().rstrip("\n")
        if line and not line.startswith(":"):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            fields[name] = fields[name] + "\n" + value if name == "data" and name in fields else value
        elif not line and fields:
            yield fields.get("event", "message"), fields.get("id"), fields.get("data", "")
            fields = {}


def read_events(stream, until):
    """All events up to and including the first that is named `until`."""
    events = []
    for event in events_of(stream):
        events.append(event)
        if event[0] == until:
            break
    return events


class ApiTest(drover.DaemonTest):
    profile = "k40m"

    def open_stream(self, path, headers=None):
        connection = drover.UnixConnection(self.daemon.socket, drover.PATIENCE)
        self.addCleanup(connection.close)
        connection.request("GET", path, headers=headers or {})
        response = connection.getresponse()
        self.assertEqual(response.status, 200)
        self.assertEqual(response.headers.get_content_type(), "text/event-stream")
        return response

    def test_version_and_health(self):
        self.assertRegex(self.daemon.api("GET", "/v1/version")["version"], r"^\d+\.\d+\.\d+")
        self.assertEqual(self.daemon.api("GET", "/health")["status"], "ok")

    def test_the_node_states_what_it_offers(self):
        (node,) = self.daemon.api("GET", "/v1/nodes")["nodes"]
        self.assertTrue(node["simulated"])
        self.assertRegex(node["resources"],
                         r"^gpus\(\*\):1; cpus\(\*\):\d+(\.\d+)?; mem\(\*\):\d+; disk\(\*\):\d+; ports\(\*\):\[31000-32000\]$")
        self.assertRegex(node["runtime"], r"runc|crun")
        self.assertIn(node["cgroups"], ("v1", "v2", "hybrid"))

    def test_the_gpu_is_the_one_of_the_profile(self):
        (gpu,) = self.daemon.api("GET", "/v1/gpus")["gpus"]
        self.assertEqual((gpu["model"], gpu["memory_bytes"] >> 20, gpu["pci"], gpu["compute_capability"]),
                         ("Tesla K40m", 11441, "0000:82:00.0", "3.5"))

    def test_a_task_from_submission_to_removal(self):
        task = self.daemon.submit("write", "result", "42", gpus=1, name="answer", labels={"team": "blue"})
        record = self.daemon.wait_until_final(task)
        self.assertEqual((record["state"], record["exit_status"], record["task"]["name"], record["task"]["labels"]),
                         ("finished", 0, "answer", {"team": "blue"}))
        self.assertEqual(len(record["gpus"]), 1)
        names = [entry["name"] for entry in self.daemon.api("GET", f"/v1/tasks/{task}/files/browse?path=")["files"]]
        self.assertEqual(names, sorted(names))
        self.assertTrue({"result", "stdout", "stderr"} <= set(names), names)
        self.assertEqual(self.daemon.file(task, "result"), "42\n")
        status, headers, data = self.daemon.request("GET", f"/v1/tasks/{task}/files/download?path=result")
        self.assertEqual((status, data), (200, b"42\n"))
        self.assertIn("result", headers["Content-Disposition"])
        self.assertEqual(self.daemon.request("DELETE", f"/v1/tasks/{task}")[0], 204)
        self.assertEqual(self.daemon.request("GET", f"/v1/tasks/{task}")[0], 404)
        drover.wait_for(lambda: not (self.daemon.state / "tasks" / task).exists(), "the folder of the task to go")

    def test_a_file_can_be_read_in_pieces(self):
        task = self.daemon.submit("write", "text", "0123456789")
        self.daemon.wait_until_final(task)
        piece = self.daemon.api("GET", f"/v1/tasks/{task}/files/read?path=text&offset=3&length=4")
        self.assertEqual(piece["data"], "3456")

    def test_the_sandbox_cannot_be_left(self):
        task = self.daemon.submit(command=["sh", "-c", "ln -s /etc/shadow shadow; ln -s / root; mkfifo pipe"])
        self.daemon.wait_until_final(task)
        for path in ("../launch.json", "/etc/shadow", "shadow", "root/etc/shadow", "pipe", "sub/../../launch.json", "%00"):
            with self.subTest(path=path):
                status, _, data = self.daemon.request("GET", f"/v1/tasks/{task}/files/read?path={path}&offset=0&length=100")
                self.assertIn(status, (400, 403, 404), data)

    def test_output_is_followed_live_with_states_and_an_end(self):
        task = self.daemon.submit("say", "one", ",", "sleep", 1, ",", "complain", "two", ",", "exit", 5)
        events = read_events(self.open_stream(f"/v1/tasks/{task}/logs?follow=true"), until="end")
        logs = [json.loads(data) for kind, _, data in events if kind == "log"]
        self.assertEqual([(log["stream"], log["data"]) for log in logs], [("stdout", "one\n"), ("stderr", "two\n")])
        end = json.loads(events[-1][2])
        self.assertEqual((end["state"], end["exit_status"]), ("failed", 5))

    def test_a_stream_goes_on_where_it_was_lost(self):
        task = self.daemon.submit("say", "one", ",", "sleep", 1, ",", "say", "two")
        path = f"/v1/tasks/{task}/logs?follow=true&stream=stdout"
        first = next(event for event in read_events(self.open_stream(path), until="log") if event[0] == "log")
        again = read_events(self.open_stream(path, {"Last-Event-ID": first[1]}), until="end")
        self.assertEqual([json.loads(data)["data"] for kind, _, data in again if kind == "log"], ["two\n"])

    def test_events_tell_the_story_of_a_task(self):
        stream = self.open_stream("/v1/events")
        task = self.daemon.submit("sleep", 0)
        seen = []
        for _, _, data in events_of(stream):
            event = json.loads(data)
            if event["task"] == task:
                seen.append(event["kind"])
            if "task_finished" in seen:
                break
        self.assertIn("task_running", seen)

    def test_many_clients_at_once(self):
        answers = []

        def ask():
            for _ in range(20):
                answers.append(self.daemon.request("GET", "/v1/gpus")[0])

        threads = [threading.Thread(target=ask) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(answers, [200] * 320)

    def test_a_client_that_sends_half_a_request_hurts_nobody(self):
        lingering = []
        for _ in range(32):
            connection = drover.UnixConnection(self.daemon.socket, 5)
            connection.connect()
            connection.sock.sendall(b"POST /v1/tasks HTTP/1.1\r\nContent-Le")
            lingering.append(connection)
        self.assertEqual(self.daemon.api("GET", "/health")["status"], "ok")
        for connection in lingering:
            with contextlib.suppress(OSError):
                connection.close()

    def test_what_is_not_there_and_what_is_not_allowed(self):
        self.assertEqual(self.daemon.request("GET", "/v1/nonsense")[0], 404)
        status, headers, _ = self.daemon.request("PUT", "/v1/tasks", {})
        self.assertEqual(status, 405)
        self.assertIn("POST", headers["Allow"])
        self.assertEqual(self.daemon.request("GET", "/v1/tasks?colour=red")[0], 400)


class LogTest(drover.DaemonTest):
    """Who changed what, in a log that programs read."""

    arguments = ("--log-format", "json")

    def lines(self):
        return [json.loads(line) for line in self.daemon.read_log().splitlines()]

    def audited(self):
        return [line["message"] for line in self.lines() if line["message"].startswith("audit ")]

    def test_each_change_is_a_line_with_who_what_and_the_answer(self):
        task = self.daemon.submit("exit", 0, uid=1234)
        self.daemon.wait_until_final(task)
        self.daemon.request("DELETE", f"/v1/tasks/{task}?secret=x", uid=1235)
        self.daemon.request("POST", "/v1/tasks", {"command": "no list"})
        self.daemon.request("POST", "/api/v1", {"type": "GET_STATE"})  # reads, whatever its method
        self.daemon.request("POST", "/api/v1", {"type": "TEARDOWN", "teardown": {"framework_id": {"value": "none"}}})
        self.assertEqual(self.audited(), [
            f"audit user=1234 uid=1234 method=POST path=/v1/tasks status=201 made=/v1/tasks/{task}",
            f"audit user=1235 uid=1235 method=DELETE path=/v1/tasks/{task} status=400",  # what stands behind the path is not told
            "audit user=root uid=0 method=POST path=/v1/tasks status=400",
            "audit user=root uid=0 method=POST path=/api/v1 status=400"])

    def test_every_line_is_an_object(self):
        for line in self.lines():
            self.assertEqual(sorted(line), ["level", "message", "time"])
            self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertIn("info", {line["level"] for line in self.lines()})


if __name__ == "__main__":
    unittest.main()
