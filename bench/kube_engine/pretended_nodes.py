"""Kubelets that only pretend: pods that were bound to Nodes without a kubelet begin, and end when they are deleted."""

import concurrent.futures
import contextlib
import http.client
import json
import threading
import time

import drover
from kube.api import ApiError
from measured import micro_time

STATUS = "application/strategic-merge-patch+json"
WRITERS = 8


class PretendedNodes:
    """`socket`: of a kubectl proxy. Every event of a pod is handed to `on_event`, with when it came, on one thread."""

    def __init__(self, socket, on_event):
        self.socket, self.on_event, self.writes, self.ending = socket, on_event, 0, False
        self._local, self._mutex, self._done = threading.local(), threading.Lock(), {}
        self._pool = concurrent.futures.ThreadPoolExecutor(WRITERS)
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *failure):
        self.ending = True
        self._pool.shutdown(cancel_futures=True)

    def _follow(self):
        version = json.loads(self._ask("GET", "/api/v1/pods?limit=1"))["metadata"]["resourceVersion"]
        with contextlib.closing(drover.UnixConnection(self.socket, 3600)) as connection:
            connection.request("GET", f"/api/v1/pods?watch=1&resourceVersion={version}&timeoutSeconds=3600")
            answer = connection.getresponse()
            while line := answer.readline():
                event = json.loads(line)
                pod = event["object"]
                self.on_event(event["type"], pod, time.monotonic())
                if event["type"] != "DELETED" and pod["spec"].get("nodeName") and not self.ending:
                    self._act(pod)

    def _act(self, pod):
        wanted = "ended" if "deletionTimestamp" in pod["metadata"] else "runs"
        if self._done.get(pod["metadata"]["uid"]) not in (wanted, "ended"):
            self._done[pod["metadata"]["uid"]] = wanted
            self._pool.submit(self._end if wanted == "ended" else self._begin, pod)

    def _begin(self, pod):
        number = len(self._done)
        state = {"running": {"startedAt": micro_time()[:19] + "Z"}}
        self._set_status(pod, {"phase": "Running", "podIP": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
                               "containerStatuses": [self._container(pod, state)]})

    def _end(self, pod):
        now = micro_time()[:19] + "Z"
        state = {"terminated": {"exitCode": 143, "reason": "Error", "startedAt": now, "finishedAt": now}}
        self._set_status(pod, {"phase": "Failed", "containerStatuses": [self._container(pod, state)]})
        self._write("DELETE", self._path(pod), {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}})

    @staticmethod
    def _container(pod, state):
        container = pod["spec"]["containers"][0]
        return {"name": container["name"], "image": container["image"], "imageID": "", "ready": "running" in state, "restartCount": 0,
                "state": state}

    @staticmethod
    def _path(pod):
        return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"

    def _set_status(self, pod, status):
        self._write("PATCH", self._path(pod) + "/status", {"status": status})

    def _write(self, method, path, body):
        with contextlib.suppress(ApiError):  # it is gone already
            self._ask(method, path, body)
        with self._mutex:
            self.writes += 1

    def _ask(self, method, path, body=None):
        """Over a connection that is kept."""
        for fresh in (False, True):
            if fresh or not hasattr(self._local, "connection"):
                self._local.connection = drover.UnixConnection(self.socket, 60)
            try:
                self._local.connection.request(method, path, json.dumps(body) if body else None,
                                               {"Content-Type": STATUS if method == "PATCH" else "application/json"})
                answer = self._local.connection.getresponse()
                text = answer.read()
                break
            except (OSError, http.client.HTTPException):
                if fresh:
                    raise
        if answer.status >= 400:
            raise ApiError(answer.status, json.loads(text))
        return text
