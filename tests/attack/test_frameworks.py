"""Mesos frameworks of mallory against those of victim and root, their tasks, and users that mallory is not."""

import contextlib
import json
import os
import pathlib
import unittest

import drover
from attack import attack
from mesos_framework import Framework, Stream


CAP_SYS_RESOURCE = 24


class FrameworkTest(attack.AttackTest):
    def framework(self, owner, **options):
        """Of that user; None: refused."""
        options.setdefault("user", owner.name)
        framework = Framework(self.daemon, uid=owner.uid, **options)
        self.addCleanup(framework.stream.close)
        return framework

    def running(self, framework, name="job", **fields):
        framework.launch(framework.offer(), name, "exec sleep 600", **fields)
        states = [framework.status()["state"] for _ in range(2)]
        self.assertEqual(states, ["TASK_STARTING", "TASK_RUNNING"])
        (record,) = [one for one in self.daemon.tasks() if one["task"]["name"] == name and one["state"] == "running"]
        return record["task"]["id"]

    def subscribe(self, user, info, framework_id=None):
        """The status of a SUBSCRIBE of mallory's that is perhaps refused."""
        call = {"type": "SUBSCRIBE", "subscribe": {"framework_info": {"name": "evil", **info}}}
        if framework_id:
            call["framework_id"] = info["id"] = {"value": framework_id}
        with drover.acting_as(user.uid):
            stream = Stream(self.daemon, json.dumps(call).encode(), b"application/json")
        self.addCleanup(stream.close)
        return int(stream.status.split()[1]), stream

    def post(self, user, body, stream_id="", path="/api/v1/scheduler"):
        return self.daemon.request("POST", path, body, uid=user.uid, headers={"Mesos-Stream-Id": stream_id} if stream_id else {})

    def assert_still_runs(self, task):
        self.assertEqual(self.daemon.task(task)["state"], "running")

    def tearDown(self):
        for record in self.daemon.tasks():
            if record["state"] not in drover.FINAL_STATES:
                with contextlib.suppress(drover.ApiError):
                    self.daemon.stop_task(record["task"]["id"], force=True)

    def test_to_subscribe_as_somebody_elses_framework(self):
        theirs = self.framework(self.victim)
        task = self.running(theirs)
        status, stream = self.subscribe(self.mallory, {"user": "mallory"}, theirs.id)
        if status == 200:  # what Mesos tells then: an error, and the end
            self.assertEqual(json.loads(stream.record())["type"], "ERROR")
        self.assert_still_runs(task)
        theirs.call("RECONCILE", reconcile={"tasks": []})
        self.assertEqual(theirs.status()["state"], "TASK_RUNNING", "victim's framework is still connected")

    def test_to_run_as_somebody_else(self):
        for name in ("victim", "root", "0", str(self.victim.uid), "nobody"):
            with self.subTest(user=name):
                status, stream = self.subscribe(self.mallory, {"user": name})
                if status == 200:
                    self.assertEqual(json.loads(stream.record())["type"], "ERROR")
        mine = self.framework(self.mallory)
        for name in ("victim", "root"):
            offer = mine.offer()
            info = mine.task_info(offer, f"as-{name}", "id -u")
            info["command"]["user"] = name
            mine.call("ACCEPT", accept={"offer_ids": [offer["id"]], "filters": {"refuse_seconds": 0.0},
                                        "operations": [{"type": "LAUNCH", "launch": {"task_infos": [info]}}]})
            self.assertEqual(mine.status()["state"], "TASK_ERROR")

    def test_calls_on_somebody_elses_framework(self):
        theirs = self.framework(self.victim)
        task = self.running(theirs)
        stream_id = theirs.stream.headers["mesos-stream-id"]
        parts = {"KILL": {"kill": {"task_id": {"value": "job"}}}, "TEARDOWN": {}, "RECONCILE": {"reconcile": {"tasks": []}},
                 "SUPPRESS": {}, "REVIVE": {}, "DECLINE": {"decline": {"offer_ids": []}},
                 "SHUTDOWN": {"shutdown": {"executor_id": {"value": "job"}}}}
        answers = set()
        for kind, part in parts.items():
            for used in ("", stream_id):
                status, _, text = self.post(self.mallory, {"type": kind, "framework_id": {"value": theirs.id}, **part}, used)
                self.assertIn(status, (400, 403, 404), (kind, text))
                answers.add((status, text))
        self.assert_still_runs(task)
        absent = self.post(self.mallory, {"type": "TEARDOWN", "framework_id": {"value": "00000000-0000-0000-0000-000000000000-0001"}})
        self.assertIn(absent[0], (400, 403, 404))

    def test_somebody_elses_tasks_by_ones_own_framework(self):
        theirs, mine = self.framework(self.victim), self.framework(self.mallory)
        task = self.running(theirs)
        for name in ("job", task, f"{theirs.id}/job"):
            mine.call("KILL", kill={"task_id": {"value": name}})
            self.assertEqual(mine.status()["state"], "TASK_LOST")
            mine.call("RECONCILE", reconcile={"tasks": [{"task_id": {"value": name}}]})
            self.assertIn(mine.status()["state"], ("TASK_LOST", "TASK_GONE", "TASK_UNKNOWN"))
        self.assert_still_runs(task)

    def test_somebody_elses_offers(self):
        theirs, mine = self.framework(self.victim), self.framework(self.mallory)
        offer = theirs.offer()
        mine.launch({**offer, "agent_id": offer["agent_id"]}, "stolen", "exec sleep 600")
        status = mine.status()
        self.assertIn(status["state"], ("TASK_LOST", "TASK_ERROR", "TASK_DROPPED"))
        theirs.launch(offer, "job", "exec sleep 600")
        self.assertEqual(theirs.status()["state"], "TASK_STARTING", "the offer is still victim's")

    def test_acknowledgements_of_somebody_elses_updates(self):
        theirs, mine = self.framework(self.victim), self.framework(self.mallory)
        theirs.launch(theirs.offer(), "job", "exec sleep 600")
        update = theirs.status(acknowledge=False)
        mine.call("ACKNOWLEDGE", acknowledge={name: update[name] for name in ("agent_id", "task_id", "uuid")})
        theirs.call("ACKNOWLEDGE", acknowledge={name: update[name] for name in ("agent_id", "task_id", "uuid")})
        self.assertEqual(theirs.status()["state"], "TASK_RUNNING")

    def test_names_that_climb(self):
        mine = self.framework(self.mallory)
        with self.unchanged(self.victim.home, self.ground):
            for name in ("../../../up", "..", ".", "a/b", "/abs", "x" * 3000, "new\nline", "nul\0", "\x1b[2J", ""):
                with self.subTest(name=name[:20]):
                    offer = mine.offer()
                    info = mine.task_info(offer, name, "echo $MESOS_TASK_ID > made; pwd",
                                          executor={"executor_id": {"value": name}, "command": {"value": "true"}})
                    info.pop("command" if len(name) % 2 else "executor")
                    with contextlib.suppress(AssertionError):  # refused as a whole
                        mine.call("ACCEPT", accept={"offer_ids": [offer["id"]], "filters": {"refuse_seconds": 0.0},
                                                    "operations": [{"type": "LAUNCH", "launch": {"task_infos": [info]}}]})
                        while mine.status()["state"] in ("TASK_STARTING", "TASK_RUNNING"):
                            pass
        tasks = self.daemon.state / "tasks"
        self.assertEqual({path.name for path in tasks.iterdir()} - {record["task"]["id"] for record in self.daemon.tasks()}, set())

    def test_roles_and_principals_of_others(self):
        for info in ({"role": "../x"}, {"roles": ["*", "a/../b", "-x", " "]}, {"principal": "root"}, {"role": "victim"}, {"role": "\x1b[2J"}):
            with self.subTest(info=info):
                status, stream = self.subscribe(self.mallory, {"user": "mallory", **info})
                if status == 200 and (record := json.loads(stream.record()))["type"] == "SUBSCRIBED":
                    framework = record["subscribed"]["framework_id"]["value"]
                    self.post(self.mallory, {"type": "TEARDOWN", "framework_id": {"value": framework}},
                              stream.headers["mesos-stream-id"])

    def test_what_operators_do(self):
        theirs = self.framework(self.victim)
        task = self.running(theirs)
        for kind in ("TEARDOWN", "GET_FRAMEWORKS", "GET_TASKS", "GET_STATE", "GET_EXECUTORS"):
            status, _, text = self.post(self.mallory, {"type": kind, "teardown": {"framework_id": {"value": theirs.id}}}, path="/api/v1")
            self.assertNotIn("job", text.decode(), kind)
            self.assertNotIn(task, text.decode(), kind)
        for path in ("/master/state", "/state", "/master/tasks", "/master/frameworks", "/slave(1)/state", "/monitor/statistics",
                     "/slave(1)/monitor/statistics", f"/files/browse?path=/tasks/{task}", "/files/debug"):
            status, _, text = self.daemon.request("GET", path, uid=self.mallory.uid)
            self.assertNotIn(task, text.decode(), path)
            self.assertNotIn(theirs.id, text.decode(), path)
        status, _, _ = self.daemon.request("POST", "/master/teardown", f"frameworkId={theirs.id}", uid=self.mallory.uid)
        self.assertNotEqual(status, 200)
        self.assert_still_runs(task)

    def limited(self, framework, name, **limits):
        """Launches a task that may use so much, and returns the first status of it."""
        framework.launch(framework.offer(), name, "exec sleep 600", limits={kind: {"value": value} for kind, value in limits.items()})
        return framework.status()

    def test_limits_that_are_none(self):
        mine = self.framework(self.mallory)
        for kind in ("cpus", "mem"):
            for value in ("NaN", "-Infinity", -1, -1e300, 0, 0.01):
                with self.subTest(kind=kind, value=value):
                    status = self.limited(mine, "wrong", **{kind: value})
                    self.assertEqual(status["state"], "TASK_ERROR", status)
                    self.assertIn("limit must be greater than or equal to", status["message"])
        self.assertEqual(self.limited(mine, "wrong", gpus="Infinity")["state"], "TASK_ERROR")
        self.assertEqual([one for one in self.daemon.tasks() if one["task"]["name"] == "wrong"], [])

    def test_limits_beyond_the_machine(self):
        mine = self.framework(self.mallory)
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        for value in ("Infinity", 1e300):
            with self.subTest(value=value):
                task = self.running(mine, f"all-{value}", limits={"cpus": {"value": value}, "mem": {"value": value}})
                files = [pathlib.Path(group, name) for group in drover.cgroups_of([task])
                         for name in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max")]
                limits = [int(file.read_text()) for file in files if file.exists()]
                self.assertGreater(min(limits), machine // 2)
                self.assertLessEqual(max(limits), machine)

    def scores(self, script):
        """What the script writes of a command that joins a task which may use all memory."""
        task = self.running(self.framework(self.mallory), "all", limits={"mem": {"value": "Infinity"}})
        return [int(word) for word in self.cli(self.mallory, "exec", task, "--", "/bin/sh", "-c", script).out.split()]

    def test_a_further_command_is_the_first_that_goes_when_memory_runs_short_too(self):
        own, first = self.scores("cat /proc/self/oom_score_adj /proc/1/oom_score_adj")
        self.assertGreater(first, 900)
        self.assertEqual(own, first)

    @unittest.skipUnless(attack.root_may(CAP_SYS_RESOURCE), "root lacks CAP_SYS_RESOURCE here, and the kernel lets everybody lower his score")
    def test_not_to_be_the_first_that_goes_when_memory_runs_short(self):
        before, after = self.scores("cat /proc/self/oom_score_adj; echo 0 >/proc/self/oom_score_adj; cat /proc/self/oom_score_adj")
        self.assertEqual(before, after)

    def test_limits_where_there_is_a_quota(self):
        mine = self.framework(self.mallory)
        self.daemon.api("PUT", "/v1/quotas/user:mallory", {"limit": {"cpus": 64, "memory": "64GiB"}})
        self.addCleanup(self.daemon.api, "DELETE", "/v1/quotas/user:mallory")
        for limits, what in (({"cpus": "Infinity"}, "CPUs"), ({"mem": "Infinity"}, "memory"), ({"mem": 65}, "memory")):
            with self.subTest(limits=limits):
                status = self.limited(mine, "more", **limits)
                self.assertEqual(status["state"], "TASK_ERROR", status)
                self.assertEqual(status["message"],
                                 f"the user 'mallory' has a limit on {what}, so its tasks may use no more than they ask for")
        self.running(mine, "no-more", limits={"cpus": {"value": 0.1}, "mem": {"value": 64}})

    def test_messages_from_a_task_that_pretends_to_be_an_executor(self):
        for path in ("/api/v1/executor", "/slave(1)/api/v1/executor", "/executor"):
            body = {"type": "UPDATE", "executor_id": {"value": "x"}, "framework_id": {"value": "x"}}
            status, _, _ = self.post(self.mallory, body, path=path)
            self.assertEqual(status, 404 if path == "/executor" else 401, path)
