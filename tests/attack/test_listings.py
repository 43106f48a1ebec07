"""Whether anything that mallory may read holds something of victim's: every route that the program has is asked, and every call."""

import contextlib
import itertools
import json
import re
import socket
import time
import urllib.parse

import drover
from attack import attack
from mesos_framework import Framework

MARK = "zebra7f3a"
ROUTE = re.compile(r'(?:"GET", |reading\()"(/[^"]*)"')  # reading(): what Mesos answers by any method
# What never ends: events, and output that is followed.
STREAMS = ("/v1/events", "/v2/events")


class ListingsTest(attack.AttackTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        uid = cls.victim.uid
        cls.task = cls.daemon.submit(command=["/bin/sh", "-c", f"echo {MARK} | tee note; exec sleep 600"], uid=uid, name=MARK, gpus=1,
                                     labels={MARK: MARK}, env={MARK: MARK})
        cls.daemon.wait_for_output(cls.task, MARK)
        for path, body in (("/v2/apps", {"id": f"/{MARK}/app", "cmd": f"sleep 600 # {MARK}", "mem": 32, "cpus": 0.1}),
                           ("/v1/scheduler/iso8601", {"name": MARK, "schedule": "R/2999-01-01T00:00:00Z/PT1H", "command": MARK}),
                           ("/v1/scheduler/dependency", {"name": f"{MARK}b", "parents": [MARK], "command": MARK})):
            status, _, answer = cls.daemon.request("POST", path, body, uid=uid)
            assert status < 300, answer
        cls.framework = Framework(cls.daemon, uid=uid, user="victim", name=MARK)
        cls.addClassCleanup(cls.framework.stream.close)
        cls.framework.launch(cls.framework.offer(), MARK, f"echo {MARK}; exec sleep 600")
        while cls.framework.status()["state"] != "TASK_RUNNING":
            pass
        cls.ids = {cls.task, cls.framework.id, *(record["task"]["id"] for record in cls.daemon.tasks())}

    def routes(self):
        found = set()
        for source in (drover.ROOT / "src/api").rglob("*.cc"):
            if not source.name.endswith("_test.cc"):
                found.update(ROUTE.findall(source.read_text()))
        self.assertGreater(len(found), 60)
        return sorted(found - set(STREAMS))

    def targets(self, route):
        """With victim's names in all places for one, and with queries that lead to more."""
        places = re.findall(r"\{\w+(?:\.\.\.)?\}", route)
        for names in itertools.product([self.task, f"{MARK}/app" if "apps" in route else MARK], repeat=len(places)):
            target = route
            for place, name in zip(places, names):
                target = target.replace(place, urllib.parse.quote(name), 1)
            yield target
            for query in (f"path=/tasks/{self.task}", "path=stdout", "path=note", f"label={MARK}", "embed=apps.tasks", "all=true",
                          f"id={MARK}", f"framework_id={self.framework.id}", f"cmd={MARK}"):
                yield f"{target}?{query}"

    def told(self, target, user):
        """Status, and what of victim's is in the answer that is not in the question."""
        status, headers, data = self.daemon.request("GET", target, uid=user.uid if user else None)
        text = (str(headers) + data.decode(errors="replace")).replace("\\/", "/")
        asked = urllib.parse.unquote(target)
        return status, {word for word in (MARK, *self.ids) if word in text and word not in asked}

    def test_what_is_listed(self):
        seen_by_root = set()
        for target in (target for route in self.routes() for target in self.targets(route)):
            with self.subTest(target=target):
                _, told = self.told(target, self.mallory)
                self.assertEqual(told, set())
            if "?" not in target:
                seen_by_root |= self.told(target, None)[1]
        self.assertTrue({MARK, self.task, self.framework.id} <= seen_by_root, "root sees what mallory does not")

    def test_what_is_there_and_what_is_not_look_alike(self):
        for path in ("/v1/tasks/{}", "/v1/tasks/{}/explain", "/v1/tasks/{}/logs", "/v1/tasks/{}/files/browse", "/v1/scheduler/job/stat/{}"):
            name = MARK if "scheduler" in path else self.task
            here, absent = (self.daemon.request("GET", path.format(which), uid=self.mallory.uid) for which in (name, "no-such-name"))
            with self.subTest(path=path):
                self.assertEqual((here[0], here[2].replace(name.encode(), b"X")), (absent[0], absent[2].replace(b"no-such-name", b"X")))

    def operator_calls(self):
        """Path and body of every call of Mesos' operator API, on what victim has."""
        (framework,) = (one for one in self.daemon.api("GET", "/state")["frameworks"] if one["name"] == MARK)
        folder = framework["tasks"][0]["directory"]
        parts = {"get_metrics": {}, "list_files": {"path": folder}, "read_file": {"path": f"{folder}/stdout", "offset": 0},
                 "teardown": {"framework_id": {"value": self.framework.id}}}
        for side, paths in (("master", ("/api/v1", "/master/api/v1")), ("agent", ("/slave(1)/api/v1",))):
            text = (drover.ROOT / f"src/api/mesos/{side}.proto").read_text()
            types = re.findall(r"(\w+) = \d+;", re.search(r"message Call \{\s*enum Type \{(.*?)\}", text, re.DOTALL)[1])
            self.assertGreater(len(types), 30)
            for path, kind in itertools.product(paths, set(types) - {"SUBSCRIBE"}):
                yield path, {"type": kind, **parts}

    def test_operator_calls(self):
        seen_by_root = set()
        for path, call in self.operator_calls():
            with self.subTest(path=path, call=call["type"]):
                status, headers, data = self.daemon.request("POST", path, call, uid=self.mallory.uid)
                text = str(headers) + data.decode()
                self.assertEqual({word for word in (MARK, *self.ids) if word in text}, set())
                if call["type"] in ("LIST_FILES", "READ_FILE", "TEARDOWN"):
                    self.assertIn(status, (400, 404))
                else:
                    self.assertEqual(status, 200 if call["type"].startswith("GET_") else 501)
            if call["type"] != "TEARDOWN":
                answer = self.daemon.request("POST", path, call)[2].decode()
                seen_by_root |= {word for word in (MARK, self.framework.id) if word in answer}
        self.assertEqual(seen_by_root, {MARK, self.framework.id}, "root sees what mallory does not")
        self.framework.call("RECONCILE", reconcile={"tasks": []})
        self.assertEqual(self.framework.status()["state"], "TASK_RUNNING", "victim's framework was not torn down")

    def follower(self, path):
        """Of events, or of what an operator hears who subscribes."""
        client = socket.socket(socket.AF_UNIX)
        self.addCleanup(client.close)
        client.settimeout(drover.PATIENCE)
        with drover.acting_as(self.mallory.uid):
            client.connect(str(self.daemon.socket))
        body = json.dumps({"type": "SUBSCRIBE"})
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n".encode() if path in STREAMS else
                       f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                       f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
        return client

    def test_streams(self):
        paths = (*STREAMS, "/api/v1")
        clients = [self.follower(path) for path in paths]
        heard = [client.recv(65536) for client in clients]
        other = self.daemon.submit(command=["/bin/true"], uid=self.victim.uid, name=f"{MARK}-more")
        self.daemon.wait_until_final(other)
        self.framework.launch(self.framework.offer(), f"{MARK}-too", "exec true")
        time.sleep(2)  # what was to come has come
        for path, client, heard in zip(paths, clients, heard):
            client.setblocking(False)
            with self.subTest(path=path):
                with contextlib.suppress(BlockingIOError):
                    while piece := client.recv(65536):
                        heard += piece
                self.assertIn(b"HTTP/1.1 200", heard)
                for word in (MARK, other, *self.ids):
                    self.assertNotIn(word.encode(), heard)
