"""An executor of the Mesos v1 executor API, for tests: what a framework brings, run inside of a container.

It has nothing but the standard library, speaks JSON, and subscribes again whenever its connection ends. A task's `data` says what it does:
"run" until it is killed, or "finish" at once. A message of its framework is sent back; "die" ends it.
"""

import base64
import http.client
import json
import os
import time
import uuid

FRAMEWORK, EXECUTOR = os.environ["MESOS_FRAMEWORK_ID"], os.environ["MESOS_EXECUTOR_ID"]
TOKEN = os.environ["MESOS_EXECUTOR_AUTHENTICATION_TOKEN"]


class Executor:
    def __init__(self):
        self.tasks = {}  # those of which no update was acknowledged, by id
        self.updates = {}  # not acknowledged, by their UUIDs

    def post(self, call, timeout=60):
        connection = http.client.HTTPConnection(os.environ["MESOS_AGENT_ENDPOINT"], timeout=timeout)
        body = {"framework_id": {"value": FRAMEWORK}, "executor_id": {"value": EXECUTOR}, **call}
        connection.request("POST", "/api/v1/executor", json.dumps(body),
                           {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"})
        return connection.getresponse()

    def call(self, call):
        """What does not arrive ends the subscription, as the field's own executors have it: the next one repeats it."""
        answer = self.post(call)
        if answer.status != 202:
            raise ConnectionError(f"{call['type']} was answered with {answer.status} {answer.read()}")

    def update(self, task, state):
        status = {"task_id": {"value": task}, "state": state, "source": "SOURCE_EXECUTOR", "timestamp": time.time(),
                  "uuid": base64.b64encode(uuid.uuid4().bytes).decode(), "message": f"says {EXECUTOR}"}
        self.updates[status["uuid"]] = status
        self.call({"type": "UPDATE", "update": {"status": status}})

    def launch(self, info):
        task = info["task_id"]["value"]
        print("launch", task, flush=True)
        self.tasks[task] = info
        self.update(task, "TASK_RUNNING")
        if base64.b64decode(info.get("data", "")) == b"finish":
            self.update(task, "TASK_FINISHED")

    def hear(self, event):
        kind = event["type"]
        if kind == "LAUNCH":
            self.launch(event["launch"]["task"])
        elif kind == "LAUNCH_GROUP":
            print("group", flush=True)
            for info in event["launch_group"]["task_group"]["tasks"]:
                self.launch(info)
        elif kind == "KILL":
            print("kill", event["kill"]["task_id"]["value"], flush=True)
            self.update(event["kill"]["task_id"]["value"], "TASK_KILLED")
        elif kind == "ACKNOWLEDGED":
            self.updates.pop(event["acknowledged"]["uuid"], None)
            self.tasks.pop(event["acknowledged"]["task_id"]["value"], None)
        elif kind == "MESSAGE":
            if base64.b64decode(event["message"]["data"]) == b"die":
                os._exit(7)
            self.call({"type": "MESSAGE", "message": {"data": event["message"]["data"]}})
        elif kind == "SHUTDOWN":
            os._exit(0)

    def subscribe(self):
        answer = self.post({"type": "SUBSCRIBE", "subscribe": {
            "unacknowledged_tasks": list(self.tasks.values()),
            "unacknowledged_updates": [{"status": status} for status in self.updates.values()]}}, timeout=None)
        print("subscribe", answer.status, flush=True)
        while (line := answer.readline()):  # http.client has taken the chunks apart
            self.hear(json.loads(answer.read(int(line))))


def main():
    executor = Executor()
    while True:
        try:
            executor.subscribe()
        except (OSError, http.client.HTTPException, ValueError) as error:
            print("again after", repr(error), flush=True)
        time.sleep(0.2)


if __name__ == "__main__":
    main()
