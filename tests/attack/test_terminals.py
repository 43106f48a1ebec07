"""Names and texts that play tricks on the terminals of those who look: colours, other lines, another order of letters."""

import http.server
import json
import pathlib
import threading
import unicodedata

import drover
from attack import attack

# Sets the title, clears the screen (also in the form of one character), turns the order round, begins a line of its own.
EVIL = "a\x1b]0;owned\x07\x1b[2J\x9b2J\u202egnp\u2066.\x7f\b\r\nroot: all is well"


def tricks(text):
    """What a terminal obeys instead of showing it."""
    bidirectional = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    return {character for character in text if character not in "\n\t" and unicodedata.category(character) == "Cc"
            or unicodedata.bidirectional(character) in bidirectional}


class TerminalTest(attack.AttackTest):
    def offer(self, method, path, body):
        """mallory's; whether it is taken is not the question."""
        status, _, answer = self.daemon.request(method, path, body, uid=self.mallory.uid)
        self.assertIn(status // 100, (2, 4), answer)
        return json.loads(answer) if answer and status < 300 else None

    def assert_plain(self, *words, user=None):
        ran = self.cli(user, *words)
        self.assertEqual(tricks(ran.out) | tricks(ran.err), set(), ran)
        for line in ran.out.splitlines() + ran.err.splitlines():
            self.assertFalse(line.startswith("root: all is well"), ran)

    def test_tasks(self):
        taken = self.offer("POST", "/v1/tasks", {"name": EVIL, "command": ["/bin/sh", "-c", "sleep 600", EVIL], "labels": {"a": EVIL},
                                                 "env": {"A": EVIL}, "memory": "64MiB", "gpus": 1})
        self.offer("POST", "/v1/tasks", {"name": EVIL[:64], "command": [EVIL], "working_directory": "/" + EVIL, "memory": "64MiB"})
        self.offer("POST", "/v1/tasks", {"name": "a", "command": [EVIL], "image": EVIL, "user": EVIL, "queue": EVIL, "memory": "1MiB"})
        self.offer("POST", "/v1/tasks", {"name": "a", "command": ["true"], "image": "oci:/" + EVIL, "memory": "64MiB"})
        volume = {"container_path": "a" + EVIL, "host_path": "/" + EVIL}
        self.offer("POST", "/v1/tasks", {"command": ["true"], "volumes": [volume], "memory": "64MiB"})
        self.offer("POST", "/v1/tasks", {"command": ["true"], "memory": "64MiB",
                                         "fetch": [{"uri": "file:///" + EVIL, "output_file": "b" + EVIL}]})
        self.offer("POST", "/v1/tasks", {"command": [EVIL], "memory": "64MiB", "gpus": 1, "gpu_models": [EVIL]})
        drover.wait_for(lambda: all(record["state"] in (*drover.FINAL_STATES, "running", "waiting") for record in self.daemon.tasks()),
                        "the tasks to come as far as they do")
        for words in (("ps",), ("ps", "-a"), ("top",), ("gpus",), ("queue",), ("quota",), ("events",), ("node",), ("topo",), ("image", "ls")):
            with self.subTest(words=words):
                self.assert_plain(*words)
        for record in self.daemon.tasks():
            with self.subTest(task=record["task"]["name"]):
                self.assert_plain("explain", record["task"]["id"])
                self.assert_plain("run", "--queue", "root", "--image", record["task"].get("image") or "x", "true")
        if taken:
            self.daemon.stop_task(taken["task"]["id"], force=True)

    def test_a_program_that_names_itself(self):
        script = r'printf "\033]0;owned\007\033[2J\nroot" > /proc/$$/comm; echo up; while true; do sleep 1; done'
        task = self.submit(self.mallory, ["/bin/sh", "-c", script], gpus=1)
        self.daemon.wait_for_output(task, "up")
        pid = next(pid for group in drover.cgroups_of([task])
                   for pid in map(int, pathlib.Path(group, "cgroup.procs").read_text().split())
                   if pathlib.Path(f"/proc/{pid}/comm").read_bytes().startswith(b"\x1b"))
        (uuid,) = self.daemon.task(task)["gpus"]
        self.daemon.set_faults({uuid: {"processes": [{"pid": pid, "memory_mib": 64}]}})
        drover.wait_for(lambda: task in self.cli(None, "top", "--once").out.split("Processes: 1")[-1].split("Tasks:")[0], "the process to be seen")
        for words in (("top", "--once"), ("top", "--json"), ("gpus",), ("gpus", "--json")):
            with self.subTest(words=words):
                self.assert_plain(*words)
        self.daemon.end_task(task)

    def test_files_in_a_sandbox(self):
        task = self.submit(self.mallory, ["/bin/sh", "-c", 'mkdir "$0"; touch "$0/x" "x$0"; ln -s "$0" l; echo up', EVIL])
        self.daemon.wait_until_final(task)
        self.assert_plain("files", "ls", task)
        self.assert_plain("files", "ls", task, EVIL)
        self.assert_plain("files", "get", task, EVIL)

    def test_apps_and_jobs(self):
        self.offer("POST", "/v2/apps", {"id": "/evil", "cmd": "sleep 1000 #" + EVIL, "instances": 1, "mem": 64, "cpus": 0.1,
                                        "labels": {"l" + EVIL: EVIL}, "env": {"A": EVIL}})
        self.offer("POST", "/v2/apps", {"id": "/" + EVIL, "cmd": EVIL})
        self.offer("POST", "/v1/scheduler/iso8601", {"name": "evil", "schedule": "R/2999-01-01T00:00:00Z/PT1H", "command": EVIL,
                                                     "description": EVIL, "owner": EVIL, "ownerName": EVIL})
        self.offer("POST", "/v1/scheduler/iso8601", {"name": EVIL, "schedule": "R/2999-01-01T00:00:00Z/PT1H", "command": "true"})
        file = attack.make_file(self.mallory.home / "app.json", json.dumps({"id": "/evil", "cmd": "other" + EVIL}))
        for words in (("app", "list"), ("app", "show", "/evil"), ("app", "history", "/evil"), ("job", "list"), ("job", "show", "evil"),
                      ("job", "history", "evil"), ("ps", "-a"), ("events",), ("apply", "--dry-run", file), ("validate", file)):
            with self.subTest(words=words):
                self.assert_plain(*words)

    def test_definitions_of_somebody_else(self):
        """`drover validate` and `apply` of a file that one was given."""
        for name, body in (("names", {"id": "/a", "cmd": "true", EVIL: EVIL}), ("values", {"id": EVIL, "cmd": 3, "cpus": EVIL}),
                           ("no JSON", EVIL)):
            file = attack.make_file(self.mallory.home / f"{name}.json", body if isinstance(body, str) else json.dumps(body))
            with self.subTest(file=name):
                self.assert_plain("validate", file)
                self.assert_plain("apply", file)

    def test_what_one_names_oneself(self):
        for words in (("inspect", EVIL), ("stop", EVIL), ("logs", EVIL), ("exec", EVIL, "--", "true"), ("app", "show", EVIL),
                      ("job", "show", EVIL), (EVIL,), ("run", "--" + EVIL), ("run", "--image", EVIL, "true"), ("help", EVIL)):
            with self.subTest(words=words):
                self.assert_plain(*words, user=self.mallory)

    def test_names_that_a_shell_would_expand(self):
        """Completions offer names, and a shell expands what it is offered: here a daemon of mallory's tells them."""
        names = ["$(touch /tmp/owned)", "`id`", "a;b", "a b", "a\nb", "--force", "-f", "*", "~root", EVIL, "honest.job-1"]

        class Daemon(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                listed = {"/v2/apps": {"apps": [{"id": name} for name in names]}, "/v1/scheduler/jobs": [{"name": name} for name in names]}
                body = json.dumps(listed.get(self.path.split("?")[0], {"tasks": [{"task": {"id": name}} for name in names]})).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Daemon)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        for what in ("TASK", "APP", "JOB"):
            ran = self.cli(None, "--host", f"http://127.0.0.1:{server.server_address[1]}", "--token", "x", "ids", what)
            self.assertEqual(ran.out, "honest.job-1\n", ran)

    def test_the_daemons_log(self):
        self.offer("POST", "/v1/tasks", {"name": "x", "command": [EVIL], "image": "oci:/" + EVIL, "memory": "64MiB"})
        self.offer("GET", "/v1/tasks/%1b%5b2J", None)
        self.offer("POST", "/v1/scheduler/iso8601", {"name": "log", "schedule": "R/2999-01-01T00:00:00Z/PT1H", "command": EVIL})
        self.assertEqual(tricks(self.daemon.read_log()), set())
