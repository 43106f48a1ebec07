"""A framework of the Mesos v1 scheduler API, over real sockets, with records read by hand."""

import collections
import json
import socket
import time

import drover


class Stream:
    """The answer to a SUBSCRIBE, chunk by chunk."""

    def __init__(self, daemon, body, content_type):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(drover.PATIENCE)
        self.socket.connect(str(daemon.socket))
        self.socket.sendall(b"POST /api/v1/scheduler HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nAccept: %s\r\n"
                            b"Content-Length: %d\r\n\r\n%s" % (content_type, content_type, len(body), body))
        self.file = self.socket.makefile("rb")
        self.status = self.file.readline()
        self.headers = {}
        while (line := self.file.readline().strip()):
            name, _, value = line.partition(b": ")
            self.headers[name.decode().lower()] = value.decode()

    def record(self):
        """The bytes of one record; None when the stream has ended."""
        size = int(self.file.readline() or b"0", 16)
        if size == 0:
            return None
        chunk = self.file.read(size)
        self.file.read(2)
        length, _, record = chunk.partition(b"\n")
        assert int(length) == len(record), chunk
        return record

    def close(self):
        self.file.close()
        self.socket.close()


class Framework:
    """A scheduler that speaks JSON. With `uid` it is that user's; further `info` is of its FrameworkInfo."""

    def __init__(self, daemon, framework_id=None, failover=600.0, uid=None, **info):
        info = {"user": "root", "name": "test", "failover_timeout": failover,
                "capabilities": [{"type": "GPU_RESOURCES"}, {"type": "TASK_KILLING_STATE"}], **info}
        call = {"type": "SUBSCRIBE", "subscribe": {"framework_info": info}}
        if framework_id:
            info["id"] = call["framework_id"] = {"value": framework_id}
        self.daemon, self.uid = daemon, uid
        self.offers = []
        self.failures = []
        self.heard = collections.deque(maxlen=20)
        with drover.acting_as(uid):
            self.stream = Stream(daemon, json.dumps(call).encode(), b"application/json")
        self.first = self.event()
        self.id = self.first["subscribed"]["framework_id"]["value"]

    def event(self, wanted=None):
        """The next of that type. Heartbeats keep the stream from its own deadline, so there is one for them all."""
        end = time.monotonic() + drover.PATIENCE
        while True:
            event = json.loads(self.stream.record())
            self.heard.append(event)
            if time.monotonic() > end:
                heard = "\n".join(map(str, self.heard))
                raise AssertionError(f"no {wanted} has come; the last were:\n{heard}\n{self.daemon.read_log()[-4000:]}")
            if wanted in (None, event["type"]):
                return event
            if event["type"] == "OFFERS":  # came while something else was waited for
                self.offers += event["offers"]["offers"]
            elif event["type"] == "RESCIND":
                self.offers = [offer for offer in self.offers if offer["id"] != event["rescind"]["offer_id"]]
            elif event["type"] == "FAILURE":
                self.failures.append(event["failure"])

    def offer(self):
        return self.offers.pop() if self.offers else self.event("OFFERS")["offers"]["offers"][0]

    def status(self, acknowledge=True):
        status = self.event("UPDATE")["update"]["status"]
        if acknowledge and "uuid" in status:
            self.call("ACKNOWLEDGE", acknowledge={name: status[name] for name in ("agent_id", "task_id", "uuid")})
        return status

    def call(self, kind, **parts):
        body = {"type": kind, "framework_id": {"value": self.id}, **parts}
        status, _, text = self.daemon.request("POST", "/api/v1/scheduler", body, uid=self.uid,
                                              headers={"Mesos-Stream-Id": self.stream.headers["mesos-stream-id"]})
        assert status == 202, (status, text)

    def task_info(self, offer, task_id, command, gpus=0, **fields):
        resources = [{"name": name, "type": "SCALAR", "scalar": {"value": value}}
                     for name, value in (("cpus", 0.1), ("mem", 64), ("gpus", gpus)) if value]
        return {"name": task_id, "task_id": {"value": task_id}, "agent_id": offer["agent_id"], "resources": resources,
                "command": {"value": command}, **fields}

    def launch(self, offer, task_id, command, gpus=0, **fields):
        task = self.task_info(offer, task_id, command, gpus, **fields)
        self.call("ACCEPT", accept={"offer_ids": [offer["id"]],
                                    "operations": [{"type": "LAUNCH", "launch": {"task_infos": [task]}}],
                                    "filters": {"refuse_seconds": 0.0}})

    def read(self, path):
        status, _, text = self.daemon.request("GET", f"/files/read?path={path}&offset=0", uid=self.uid)
        assert status == 200, text
        return json.loads(text)["data"]
