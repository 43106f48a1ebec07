"""What tests of placement over the real binary have in common: asking, planning, holding GPUs, being refused."""

import contextlib
import re

import drover

ANOTHER = 1  # a user besides root and nobody, who is on every machine: daemon


def heeded(fields, remedy):
    """The fields of a request once somebody has done what the remedy says; None for those that change nothing."""
    fields = dict(fields)
    if remedy.startswith("wait for "):
        return None
    if found := re.fullmatch(r"make it a gang of (\d+)", remedy):
        return {**fields, "gang": {**fields["gang"], "size": int(found[1])}}
    if found := re.fullmatch(r"be content with the (interconnect|arrangement) '(.+)'", remedy):
        return {**fields, found[1]: found[2]}
    if remedy.startswith("ask for "):
        words = remedy.removeprefix("ask for ").removesuffix(" for each member")
        for part in re.split(", (?:and )?| and ", words):
            amount = re.match(r"(?:a share of )?([\d.]+(?: [KMGT]iB)?)", part)
            value = amount[1] if amount else None
            if part == "for no interconnect":
                del fields["interconnect"]
            elif part.startswith("a share of"):
                if isinstance(fields["gpus"], float):
                    fields["gpus"] = float(value)
                else:
                    fields["gpu_share"] = float(value)
            elif "GPU" in part:
                fields["gpus"] = int(value)
            elif "CPU" in part:
                fields["cpus"] = float(value)
            else:
                fields["memory"] = value.replace(" ", "")
        return fields
    field = {"prefer CPUs near": "cpu_affinity",
             "be content with GPUs of another model": "gpu_model", "be content with GPUs of less memory": "gpu_memory",
             "be content with GPUs of a lower": "gpu_compute_capability", "be content with GPUs of one": "different_models",
             "be content with GPUs with": "gpu_ecc", "be content with an older driver": "gpu_driver"}
    del fields[next(name for words, name in field.items() if remedy.startswith(words))]
    return fields


class PlacementTest(drover.DaemonTest):
    def tearDown(self):
        self.daemon.end_tasks()  # a test that failed must not keep the GPUs from the next
        for task in self.daemon.tasks():
            self.daemon.api("DELETE", f"/v1/tasks/{task['task']['id']}")
        for quota in self.daemon.api("GET", "/v1/quotas")["quotas"]:
            kind = "user" if "user" in quota else "namespace"
            self.daemon.api("DELETE", f"/v1/quotas/{kind}:{quota[kind]}")
        for queue in reversed(self.daemon.api("GET", "/v1/queues")["queues"]):
            with contextlib.suppress(drover.ApiError):  # the default one, and parents that nobody made
                self.daemon.api("DELETE", "/v1/queues/" + queue["queue"].replace("/", "%2F"))

    def hold(self, uid=None, **fields):
        """A task that runs until it is stopped; its record once it runs."""
        return self.daemon.wait_until_running(self.daemon.submit("sleep", 600, uid=uid, **fields))

    def ask(self, uid=None, **fields):
        """A task that may have to wait; its record as it was accepted."""
        return self.daemon.task(self.daemon.submit("sleep", 600, uid=uid, **fields))

    def end(self, *records):
        for record in records:
            self.daemon.stop_task(record["task"]["id"], force=True)
        for record in records:
            self.daemon.wait_until_final(record["task"]["id"])

    def state(self, record):
        return self.daemon.task(record["task"]["id"])["state"]

    def machine(self):
        """The GPUs by UUID."""
        return {gpu["uuid"]: gpu for gpu in self.daemon.api("GET", "/v1/gpus")["gpus"]}

    def indices(self, record):
        machine = self.machine()
        return sorted(machine[uuid]["index"] for uuid in record["gpus"])

    def models(self, record):
        machine = self.machine()
        return sorted(machine[uuid]["model"] for uuid in record["gpus"])

    def nvlinks(self, record):
        """Of each pair of its GPUs."""
        indices = self.indices(record)
        links = self.daemon.api("GET", "/v1/topology")["links"]
        return [links[a][b]["nvlinks"] for a in indices for b in indices if a < b]

    def plan(self, uid=None, **fields):
        return self.daemon.api("POST", "/v1/plan", {"memory": "64MiB", "cpus": 0.1, **fields}, uid=uid)

    def refused(self, uid=None, status=400, **fields):
        """The error of a request that is refused, by the submission and by the plan alike; nothing is left of it."""
        before = len(self.daemon.tasks())
        errors = []
        for path, body in (("/v1/tasks", {"command": ["true"], **fields}), ("/v1/plan", fields)):
            with self.assertRaises(drover.ApiError) as raised:
                self.daemon.api("POST", path, body, uid=uid)
            self.assertEqual(raised.exception.status, status, raised.exception)
            errors.append(raised.exception.error)
        self.assertEqual(len(self.daemon.tasks()), before)
        self.assertEqual(errors[0], errors[1])
        return errors[0]

    def explained(self, record, uid=None):
        return " / ".join(self.daemon.api("GET", f"/v1/tasks/{record['task']['id']}/explain", uid=uid)["reasons"])

    def submit_gang(self, *command, uid=None, gang, **fields):
        """Accepts words for the probe; returns the records by rank."""
        body = {"command": [str(self.daemon.probe), *(str(word) for word in command)], "memory": "64MiB", "cpus": 0.1,
                "gang": gang, **fields}
        return self.daemon.api("POST", "/v1/tasks", body, uid=uid)["tasks"]
