"""Names and contents that break out of the answers in which they are told: headers, pages, metrics, streams."""

import json
import urllib.parse

import drover
import prometheus
from attack import attack

EVIL = 'a"\r\nX-Evil: 1\r\n\r\n<script>alert(1)</script>\\n{} 1\ndata: {"state": "finished"}\n\nevent: end\n'


class AnswersTest(attack.AttackTest):
    def test_file_names_in_headers(self):
        name = 'a"\r\nX-Evil: 1\r\n;filename=x.html'
        record, _, errors = self.attempt(self.mallory, ["/bin/sh", "-c", 'echo "<script>" > "$0"; mkdir d; echo x > "d/$0"', name])
        self.assertEqual(record["state"], "finished", errors)
        for path in (name, "d/" + name):
            status, headers, data = self.daemon.request("GET", f"/v1/tasks/{record['task']['id']}/files/download?"
                                                               f"path={urllib.parse.quote(path)}")
            self.assertEqual(status, 200, data)
            self.assertNotIn("X-Evil", headers)
            self.assertEqual(headers["Content-Type"], "application/octet-stream")
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertTrue(headers["Content-Disposition"].startswith("attachment;"), headers)

    def test_no_answer_is_a_page_that_a_browser_would_run(self):
        task = self.submit(self.mallory, ["/bin/sh", "-c", "echo '<script>alert(1)</script>'", EVIL], name="x", labels={"a": EVIL})
        self.daemon.wait_until_final(task)
        for path in ("/v1/tasks", f"/v1/tasks/{task}", f"/v1/tasks/{task}/logs", f"/v1/tasks/{task}/files/read?path=stdout", "/v2/apps/<script>",
                     "/<script>alert(1)</script>", "/v1/tasks/%3Cscript%3E", "/v2/apps?id=%3Cscript%3E", "/state", "/help", "/", "/metrics"):
            with self.subTest(path=path):
                _, headers, _ = self.daemon.request("GET", path.replace("<", "%3C"))
                self.assertNotIn("html", headers["Content-Type"] or "")
                self.assertEqual(headers["X-Content-Type-Options"], "nosniff")

    def test_metrics(self):
        prometheus.require_parser()
        status, _, _ = self.daemon.request("POST", "/v1/tasks", {"name": EVIL[:60], "command": ["true", EVIL], "labels": {"a": EVIL},
                                                                 "memory": "64MiB", "queue": "a\nevil 1"}, uid=self.mallory.uid)
        self.assertEqual(status // 100, 4)
        task = self.submit(self.mallory, ["/bin/sh", "-c", "sleep 600", EVIL], labels={"a": EVIL}, gpus=1)
        self.daemon.wait_until_running(task)
        text = self.daemon.request("GET", "/v1/metrics")[2].decode()
        self.assertNotIn("script", text)
        prometheus.parse(text)
        self.daemon.stop_task(task, force=True)

    def test_output_that_looks_like_events(self):
        task = self.submit(self.mallory, ["/bin/sh", "-c", 'printf %s "$0"; echo; echo whole', EVIL])
        self.daemon.wait_until_final(task)
        status, _, data = self.daemon.request("GET", f"/v1/tasks/{task}/logs?follow=true")
        ends = [line for line in data.decode().splitlines() if line.startswith("event: end")]
        self.assertEqual((status, len(ends)), (200, 1), data)
        logged = "".join(json.loads(line[6:]).get("data", "") for line in data.decode().splitlines() if line.startswith("data: {"))
        self.assertIn("whole", logged)

    def test_names_in_the_events_of_others(self):
        """An event that victim reads holds nothing of mallory's."""
        task = self.submit(self.mallory, ["/bin/true", EVIL], name="noisy")
        self.daemon.wait_until_final(task)
        ran = self.cli(self.victim, "events")
        self.assertNotIn("noisy", ran.out)
        self.assertNotIn(task, ran.out)
