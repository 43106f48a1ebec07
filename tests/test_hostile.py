"""Clients that mean harm, at every door of the real daemon: each is told clearly, its memory stays bounded, and others are served.

How long one client may take, and what it is told then, is tested with short limits in src/api/server_test.cc.
"""

import contextlib
import itertools
import json
import pathlib
import select
import socket
import threading
import unittest

import drover
from test_mesos import field

JSON, PROTOBUF = "application/json", "application/x-protobuf"
# Where bodies are taken, and in which form.
DOORS = (("/v2/apps", JSON), ("/v2/groups", JSON), ("/v1/scheduler/iso8601", JSON), ("/v1/scheduler/dependency", JSON),
         ("/api/v1/scheduler", JSON), ("/api/v1/scheduler", PROTOBUF), ("/v1/tasks", JSON))
GIGABYTE = 1 << 30
DEPTH = 10**6
# Far more than all of these clients together may cost, far less than one of their bodies.
MOST_MEMORY = 256 << 20
SLOW = 200
IDLE = 300


class Client:
    """A connection on which bytes go as they are."""

    def __init__(self, daemon):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(drover.PATIENCE)
        self.socket.connect(str(daemon.socket))
        self.unread = b""

    def send(self, data):
        """Whether the server still took it."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def answered(self):
        return bool(select.select([self.socket], [], [], 0)[0])

    def answer(self):
        """(status, body) of the next answer."""
        while b"\r\n\r\n" not in self.unread:
            self.unread += self.more()
        head, _, body = self.unread.partition(b"\r\n\r\n")
        lengths = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        length = lengths[0] if lengths else 0
        while len(body) < length:
            body += self.more()
        self.unread = body[length:]
        return int(head.split()[1]), body[:length]

    def more(self):
        piece = self.socket.recv(65536)
        if not piece:
            raise AssertionError("the connection was closed without an answer")
        return piece

    def close(self):
        self.socket.close()


def head_of(path, kind, *lines):
    return "\r\n".join((f"POST {path} HTTP/1.1", "Host: x", f"Content-Type: {kind}", f"Accept: {kind}", *lines, "", "")).encode()


class GoodClient(threading.Thread):
    """Asks all the time, and notes what it did not get."""

    def __init__(self, daemon):
        super().__init__()
        self._daemon, self._ended = daemon, threading.Event()
        self.served, self.failures = 0, []

    def run(self):
        while not self._ended.wait(0.01):
            try:
                self._daemon.api("GET", "/v2/apps")
                self.served += 1
            except Exception as error:  # whatever it is, it is what this test looks for
                self.failures.append(repr(error))

    def stop(self):
        """Asks once more before it ends."""
        before = self.served
        drover.wait_for(lambda: self.served > before or self.failures, "the good client to be served")
        self._ended.set()
        self.join()


class HostileTest(drover.DaemonTest):
    profile = "k40m"

    def setUp(self):
        self.good = GoodClient(self.daemon)
        self.good.start()

    def tearDown(self):
        self.good.stop()
        self.assertEqual(self.good.failures, [])
        if not drover.is_sanitized():
            self.assertLess(self.peak_memory(), MOST_MEMORY)

    def peak_memory(self):
        status = pathlib.Path(f"/proc/{self.daemon.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) << 10

    def client(self):
        client = Client(self.daemon)
        self.addCleanup(client.close)
        return client

    def refused(self, answer, *statuses):
        """One of these, and words for people."""
        status, body = answer
        self.assertIn(status, statuses, body[:300])
        text = body.decode()
        with contextlib.suppress(ValueError):
            value = json.loads(text)
            text = value["error"]["message"] if "error" in value else value["message"]
        self.assertGreater(len(text.split()), 1, body[:300])
        self.assertLess(len(body), 4096)
        for leak in ("std::", "json.exception", "what()", "boost"):
            self.assertNotIn(leak, body.decode())

    def post(self, path, kind, body):
        client = self.client()
        client.send(head_of(path, kind, f"Content-Length: {len(body)}") + body)
        return client.answer()

    def test_a_gigabyte_that_says_so(self):
        for path, kind in DOORS:
            with self.subTest(path=path, kind=kind):
                client = self.client()
                client.send(head_of(path, kind, f"Content-Length: {GIGABYTE}"))
                self.refused(client.answer(), 413)

    def test_a_gigabyte_that_comes_in_pieces_and_does_not_stop(self):
        piece = b"100000\r\n" + b"[" * 0x100000 + b"\r\n"
        for path, kind in DOORS:
            with self.subTest(path=path, kind=kind):
                client = self.client()
                client.send(head_of(path, kind, "Transfer-Encoding: chunked"))
                sent = 0
                while sent < GIGABYTE and not client.answered() and client.send(piece):
                    sent += 0x100000
                self.assertLess(sent, GIGABYTE)
                self.refused(client.answer(), 413)

    def test_brackets_in_brackets(self):
        depths = {"arrays": b"[" * DEPTH, "closed arrays": b"[" * (DEPTH // 2) + b"]" * (DEPTH // 2),
                  "objects": b'{"a":' * (DEPTH // 5), "within a field": b'{"id": "/a", "labels": ' + b"[" * (DEPTH // 2)}
        for (path, kind), (name, body) in itertools.product(DOORS, depths.items()):
            if kind == JSON:
                with self.subTest(path=path, body=name):
                    self.refused(self.post(path, kind, body), 400, 422)

    def test_messages_in_messages(self):
        """Protobuf: groups that are opened and never closed, and a length that leads out of the body."""
        for name, body in (("groups", b"\x0b" * DEPTH), ("length", b"\x1a\xff\xff\xff\xff\x07"), ("cut off", field(2, 1) + b"\x1a\x20"),
                           ("number without end", b"\x10" + b"\xff" * 1000)):
            with self.subTest(body=name):
                self.refused(self.post("/api/v1/scheduler", PROTOBUF, body), 400)

    def test_keys_that_come_twice(self):
        bodies = {"/v2/apps": '{"id": "/one", "cmd": "true", "cmd": "false"}', "/v2/groups": '{"id": "/one", "apps": [], "apps": []}',
                  "/v1/scheduler/iso8601": '{"name": "one", "schedule": "R1//PT1H", "command": "true", "command": "false"}',
                  "/v1/scheduler/dependency": '{"name": "one", "parents": ["a"], "command": "true", "command": "false"}',
                  "/api/v1/scheduler": '{"type": "SUBSCRIBE", "type": "TEARDOWN"}', "/v1/tasks": '{"command": ["true"], "command": ["false"]}'}
        for path, body in bodies.items():
            with self.subTest(path=path):
                answer = self.post(path, JSON, body.encode())
                self.refused(answer, 400, 422)
                self.assertIn(b"twice", answer[1])

    def test_text_that_is_none(self):
        bodies = {"/v2/apps": b'{"id": "/a", "cmd": "\xff\xfe"}', "/v2/groups": b'{"id": "/\xc3\x28"}',
                  "/v1/scheduler/iso8601": b'{"name": "a", "schedule": "R1//PT1H", "command": "\xed\xa0\x80"}',
                  "/v1/scheduler/dependency": b'{"name": "a", "parents": ["\xff"], "command": "true"}',
                  "/api/v1/scheduler": b'{"type": "\xf5\x80\x80\x80"}', "/v1/tasks": b'{"command": ["\xc0\x80"]}'}
        for path, body in bodies.items():
            with self.subTest(path=path):
                self.refused(self.post(path, JSON, body), 400, 422)
        with self.subTest("protobuf"):
            info = field(1, b"\xff\xfe") + field(2, "name")
            self.refused(self.post("/api/v1/scheduler", PROTOBUF, field(2, 1) + field(3, field(1, info))), 400)

    def test_headers_byte_by_byte(self):
        clients = [self.client() for _ in range(SLOW)]
        for byte in b"POST /v2/apps HTTP/1.1\r\nX: slow":
            for client in clients:
                self.assertTrue(client.send(bytes([byte])))
        self.assertFalse(any(client.answered() for client in clients))

    def test_many_who_say_nothing(self):
        clients = [self.client() for _ in range(IDLE)]
        self.daemon.api("GET", "/health")
        clients[-1].send(b"GET /v1/version HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual(clients[-1].answer()[0], 200)

    def test_garbage_behind_a_request(self):
        for garbage in (b"\x00\xff\x16\x03\x01" * 1000, b"GET / HTTP/9.9\r\n\r\n", b"\r\n\r\nBREW /pot\r\n\r\n", b"X" * 100000):
            with self.subTest(garbage=garbage[:20]):
                client = self.client()
                client.send(b"GET /v1/version HTTP/1.1\r\nHost: x\r\n\r\n" + garbage)
                self.assertEqual(client.answer()[0], 200)
                self.refused(client.answer(), 400, 431)

    def test_readers_who_do_not_read(self):
        """A whole answer of several megabytes, a file, and requests without end whose answers nobody takes."""
        task = self.daemon.submit(command=["/bin/sh", "-c", "head -c 10000000 /dev/zero > big; head -c 2000000 /dev/zero | tr '\\0' x"], cpus=4)
        self.daemon.wait_until_final(task)
        request = "GET /v1/tasks/{}/{} HTTP/1.1\r\nHost: x\r\n\r\n"
        for target in ("files/download?path=big", "logs?stream=stdout", "files/read?path=stdout"):
            for _ in range(40):
                self.assertTrue(self.client().send(request.format(task, target).encode()))
        flood = self.client()
        flood.socket.settimeout(1)
        with contextlib.suppress(TimeoutError):
            while flood.send(b"GET /v2/apps HTTP/1.1\r\nHost: x\r\n\r\n" * 1000):
                pass
        before = self.good.served
        drover.wait_for(lambda: self.good.served > before + 10 or self.good.failures, "others to be served")

    def test_nobody_of_them_left_anything(self):
        """What was refused is not there; and who is gone is forgotten."""
        self.assertEqual(self.daemon.api("GET", "/v2/apps")["apps"], [])
        self.assertEqual(self.daemon.api("GET", "/v1/scheduler/jobs"), [])
        descriptors = pathlib.Path(f"/proc/{self.daemon.process.pid}/fd")
        drover.wait_for(lambda: len(list(descriptors.iterdir())) < 60, "the connections of others to be closed")


if __name__ == "__main__":
    unittest.main()
