"""Kubelets that only pretend: pods that were bound to Nodes without a kubelet begin, and end when they are deleted."""

import concurrent.futures
import contextlib
import http.client
import json
import sys
import threading
import time

import drover
from kube.api import ApiError
from measured import micro_time

STATUS = "application/strategic-merge-patch+json"
WRITERS = 8
ATTEMPTS = 5


class PretendedNodes:
    """`socket`: of a kubectl proxy. Every event of a pod is handed to `on_event`, with when it came, on one thread."""

    def __init__(self, socket, on_event):
        self.socket, self.on_event, self.writes, self.ending = socket, on_event, 0, False
        self.breaks = 0  # of the watch: what happened in one was not seen
        self.trouble = []  # what a kubelet would have done, and did not come to pass
        self._local, self._mutex, self._done = threading.local(), threading.Lock(), {}
        # What concerns one pod is one writer's: a pod that has ended must not run again.
        self._writers = [concurrent.futures.ThreadPoolExecutor(1) for _ in range(WRITERS)]
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *failure):
        self.ending = True
        for writer in self._writers:
            writer.shutdown(cancel_futures=True)
        if self.trouble:
            print("pretended kubelets:", *self.trouble[:5], sep="\n  ", file=sys.stderr)

    def _follow(self):
        """The API server ends the watch of whoever does not read fast enough."""
        known = {}
        while not self.ending:
            listed = json.loads(self._ask("GET", "/api/v1/pods"))
            pods = {pod["metadata"]["uid"]: pod for pod in listed["items"]}
            for pod in [pod for uid, pod in known.items() if uid not in pods]:
                self._see("DELETED", pod, known)
            for pod in pods.values():
                self._see("MODIFIED", pod, known)
            with contextlib.closing(drover.UnixConnection(self.socket, 3600)) as connection:
                connection.request("GET", f"/api/v1/pods?watch=1&resourceVersion={listed['metadata']['resourceVersion']}&timeoutSeconds=3600")
                answer = connection.getresponse()
                while line := answer.readline():
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        break
                    self._see(event["type"], event["object"], known)
            self.breaks += 1

    def _see(self, kind, pod, known):
        self.on_event(kind, pod, time.monotonic())
        if kind == "DELETED":
            known.pop(pod["metadata"]["uid"], None)
            return
        known[pod["metadata"]["uid"]] = pod
        if pod["spec"].get("nodeName") and not self.ending:
            self._act(pod)

    def _act(self, pod):
        wanted = "ended" if "deletionTimestamp" in pod["metadata"] else "runs"
        uid = pod["metadata"]["uid"]
        if self._done.get(uid) not in (wanted, "ended"):
            self._done[uid] = wanted
            self._writers[hash(uid) % WRITERS].submit(self._end if wanted == "ended" else self._begin, pod)

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
        for attempt in range(ATTEMPTS):
            try:
                self._ask(method, path, body)
                break
            except (ApiError, OSError, http.client.HTTPException) as error:
                if getattr(error, "status", 500) in (404, 409):  # it is gone already, or another is there
                    break
                if attempt == ATTEMPTS - 1:
                    self.trouble.append(f"{method} {path}: {error}")
                time.sleep(0.1 * 2 ** attempt)
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
