"""Frameworks of the Mesos v1 scheduler API: over real sockets, with records and protobuf written by hand."""

import base64
import json
import struct
import unittest

import drover
import placement_case
from mesos_framework import Framework, Stream

SUBSCRIBE = 1


def varint(number):
    encoded = b""
    while number > 0x7F:
        encoded += bytes([number & 0x7F | 0x80])
        number >>= 7
    return encoded + bytes([number])


def field(number, value):
    """One protobuf field: an integer, a float as double, text, or the bytes of a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(message):
    """{number: [values]} of a protobuf message; messages stay bytes."""
    found, at = {}, 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = number()
        if key & 7 == 0:
            value = number()
        elif key & 7 == 1:
            value = struct.unpack("<d", message[at:at + 8])[0]
            at += 8
        else:
            length = number()
            value = message[at:at + length]
            at += length
        found.setdefault(key >> 3, []).append(value)
    return found


class MesosTest(drover.DaemonTest):
    profile = "k40m"

    def framework(self, **options):
        framework = Framework(self.daemon, **options)
        self.addCleanup(framework.stream.close)
        return framework

    def task_of(self, framework, task_id):
        status, _, text = self.daemon.request("GET", "/state")
        self.assertEqual(status, 200)
        (found,) = [one for one in json.loads(text)["frameworks"] if one["id"] == framework.id]
        return [task for task in found["tasks"] + found["completed_tasks"] if task["id"] == task_id][0]

    def test_a_gpu_task_runs_as_mesos_would_tell_it(self):
        framework = self.framework()
        offer = framework.offer()
        self.assertIn({"name": "gpus", "type": "SCALAR", "scalar": {"value": 1.0}, "role": "*"}, offer["resources"])
        self.assertIn("gpu_model", [attribute["name"] for attribute in offer["attributes"]])
        framework.launch(offer, "one", "echo $MESOS_TASK_ID $NVIDIA_VISIBLE_DEVICES; test -d ${MESOS_SANDBOX:?}", gpus=1)
        states = [framework.status() for _ in range(3)]
        self.assertEqual([status["state"] for status in states], ["TASK_STARTING", "TASK_RUNNING", "TASK_FINISHED"])
        self.assertEqual(states[2]["message"], "Command exited with status 0")
        self.assertEqual(len(base64.b64decode(states[0]["uuid"])), 16)
        task = self.task_of(framework, "one")
        self.assertEqual(task["state"], "TASK_FINISHED")
        self.assertRegex(framework.read(task["directory"] + "/stdout"), r"^one GPU-")
        framework.call("TEARDOWN")
        while framework.stream.record() is not None:  # offers may still be on their way; then the stream ends
            pass

    def test_a_health_check_is_told_and_kills(self):
        framework = self.framework()
        check = {"type": "COMMAND", "command": {"value": "test ! -e sick"}, "delay_seconds": 0.0, "interval_seconds": 1.0,
                 "grace_period_seconds": 0.0, "consecutive_failures": 2}
        framework.launch(framework.offer(), "patient", "while test ! -e $MESOS_SANDBOX/fall; do sleep 0.1; done; "
                         "touch $MESOS_SANDBOX/sick; exec sleep 1000", health_check=check)
        self.assertEqual([framework.status()["state"] for _ in range(2)], ["TASK_STARTING", "TASK_RUNNING"])
        well = framework.status()
        self.assertEqual((well["state"], well["healthy"], well["reason"]),
                         ("TASK_RUNNING", True, "REASON_TASK_HEALTH_CHECK_STATUS_UPDATED"))
        (record,) = [one for one in self.daemon.tasks() if one["task"]["name"] == "patient"]
        (self.daemon.sandbox(record["task"]["id"]) / "fall").touch()
        ill = framework.status()
        self.assertEqual((ill["state"], ill["healthy"]), ("TASK_RUNNING", False))
        states = [framework.status()]
        while states[-1]["state"] not in ("TASK_FAILED", "TASK_KILLED"):
            states.append(framework.status())
        self.assertEqual((states[-1]["state"], states[-1]["healthy"]), ("TASK_KILLED", False))
        self.assertNotIn("reason", states[-1])
        self.assertIn("health check failed 2 times in a row", states[-1]["message"])
        framework.call("TEARDOWN")

    def test_what_a_check_finds_is_told_and_nothing_follows(self):
        framework = self.framework()
        check = {"type": "COMMAND", "command": {"command": {"value": "exit $(cat answer)"}}, "delay_seconds": 0.0, "interval_seconds": 1.0}
        framework.launch(framework.offer(), "checked", "exec sleep 1000", check=check)
        # Before the first result it is only said that there is such a check.
        self.assertEqual(framework.status()["check_status"], {"type": "COMMAND", "command": {}})
        self.assertEqual(framework.status()["check_status"], {"type": "COMMAND", "command": {}})
        (record,) = [one for one in self.daemon.tasks() if one["task"]["name"] == "checked"]
        answer = self.daemon.sandbox(record["task"]["id"]) / "answer"
        for number in (7, 0, 1):
            answer.write_text(str(number))
            told = framework.status()
            while told["check_status"]["command"]["exit_code"] != number:  # what it found before there was a number
                told = framework.status()
            self.assertEqual((told["state"], told["reason"]), ("TASK_RUNNING", "REASON_TASK_CHECK_STATUS_UPDATED"))
        self.assertEqual(self.daemon.task(record["task"]["id"])["state"], "running")
        framework.call("KILL", kill={"task_id": {"value": "checked"}})
        self.assertEqual(framework.status()["check_status"]["command"], {"exit_code": 1})
        framework.call("TEARDOWN")

    def test_a_task_may_use_more_memory_than_it_asks_for_up_to_its_limit(self):
        framework = self.framework()
        for limit, state in ((256, "TASK_FINISHED"), ("Infinity", "TASK_FINISHED"), (80, "TASK_FAILED")):
            framework.launch(framework.offer(), f"within-{limit}", "head -c 96m /dev/zero | exec tail -c 100m >/dev/null",
                             limits={"mem": {"value": limit}, "cpus": {"value": "Infinity"}})
            told = [framework.status() for _ in range(3)]
            self.assertEqual([status["state"] for status in told], ["TASK_STARTING", "TASK_RUNNING", state], told)
        self.assertEqual(told[-1]["reason"], "REASON_CONTAINER_LIMITATION_MEMORY")
        framework.call("TEARDOWN")

    def test_groups_and_operations_in_one_accept(self):
        framework = self.framework()
        offer = framework.offer()
        infos = [framework.task_info(offer, name, "echo $MESOS_EXECUTOR_ID") for name in ("one", "two")]
        framework.call("ACCEPT", accept={"offer_ids": [offer["id"]], "operations": [
            {"type": "RESERVE", "id": {"value": "r"}, "reserve": {"resources": []}},
            {"type": "LAUNCH_GROUP", "launch_group": {
                "executor": {"type": "DEFAULT", "executor_id": {"value": "both"}}, "task_group": {"tasks": infos}}}]})
        refused = framework.event("UPDATE_OPERATION_STATUS")["update_operation_status"]["status"]
        self.assertEqual((refused["operation_id"]["value"], refused["state"]), ("r", "OPERATION_ERROR"))
        ended = set()
        while len(ended) < 2:
            status = framework.status()
            self.assertEqual(status["executor_id"]["value"], "both")
            if status["state"] == "TASK_FINISHED":
                ended.add(status["task_id"]["value"])
        failure = framework.failures.pop() if framework.failures else framework.event("FAILURE")["failure"]
        self.assertEqual((failure["executor_id"]["value"], failure["status"]), ("both", 0))
        self.assertEqual(framework.read(self.task_of(framework, "two")["directory"] + "/stdout"), "both\n")
        agent = json.loads(self.daemon.request("GET", "/slave(1)/state")[2])
        self.assertIn(framework.id, [one["id"] for one in agent["frameworks"]])
        framework.call("TEARDOWN")

    def test_failures_and_kills_say_what_happened(self):
        framework = self.framework()
        framework.launch(framework.offer(), "fails", "exit 3")
        states = [framework.status() for _ in range(3)]
        self.assertEqual((states[2]["state"], states[2]["message"]), ("TASK_FAILED", "Command exited with status 3"))
        framework.launch(framework.offer(), "sleeps", "exec sleep 1000")
        self.assertEqual([framework.status()["state"] for _ in range(2)], ["TASK_STARTING", "TASK_RUNNING"])
        framework.call("KILL", kill={"task_id": {"value": "sleeps"}})
        self.assertEqual([framework.status()["state"] for _ in range(2)], ["TASK_KILLING", "TASK_KILLED"])
        framework.call("KILL", kill={"task_id": {"value": "nothing"}})
        unknown = framework.status()
        self.assertEqual((unknown["state"], unknown["reason"]), ("TASK_LOST", "REASON_RECONCILIATION"))
        framework.call("TEARDOWN")

    def test_a_kill_may_give_less_time_than_the_task_has(self):
        framework = self.framework()
        framework.launch(framework.offer(), "deaf", "trap '' TERM; touch $MESOS_SANDBOX/up; while :; do sleep 0.1; done",
                         kill_policy={"grace_period": {"nanoseconds": 3600 * 10**9}})
        self.assertEqual([framework.status()["state"] for _ in range(2)], ["TASK_STARTING", "TASK_RUNNING"])
        (record,) = [one for one in self.daemon.tasks() if one["task"]["name"] == "deaf"]
        sandbox = self.daemon.sandbox(record["task"]["id"])
        drover.wait_for((sandbox / "up").exists, "the task to be deaf")
        framework.call("KILL", kill={"task_id": {"value": "deaf"}, "kill_policy": {"grace_period": {"nanoseconds": 10**8}}})
        self.assertEqual([framework.status()["state"] for _ in range(2)], ["TASK_KILLING", "TASK_KILLED"])
        framework.call("TEARDOWN")

    def test_parameters_of_docker_and_secrets_in_the_environment(self):
        framework = self.framework()
        offer = framework.offer()
        task = framework.task_info(offer, "secretive", "echo $PASSWORD")
        task["command"]["environment"] = {"variables": [
            {"name": "PASSWORD", "type": "SECRET", "secret": {"type": "VALUE", "value": {"data": "c2VzYW1l"}}}]}
        docker = framework.task_info(offer, "docker", "true", container={
            "type": "DOCKER", "docker": {"image": "x", "parameters": [{"key": "device", "value": "/dev/nvidia0"}]}})
        framework.call("ACCEPT", accept={"offer_ids": [offer["id"]], "operations": [
            {"type": "LAUNCH", "launch": {"task_infos": [task, docker]}}]})
        told = {}
        while told.get("secretive") != "TASK_FINISHED":
            status = framework.status()
            told[status["task_id"]["value"]] = status["state"]
        self.assertEqual(told["docker"], "TASK_ERROR")
        self.assertEqual(framework.read(self.task_of(framework, "secretive")["directory"] + "/stdout"), "sesame\n")
        framework.call("TEARDOWN")

    def test_who_makes_room_is_lost_and_launched_again_on_another_offer(self):
        framework = self.framework()
        framework.launch(framework.offer(), "low", "exec sleep 1000", gpus=1)
        self.assertEqual([framework.status()["state"] for _ in range(2)], ["TASK_STARTING", "TASK_RUNNING"])
        high = self.daemon.submit("sleep", 1, gpus=1, priority=10)
        lost = framework.status()
        self.assertEqual((lost["state"], lost["reason"], lost["source"]),
                         ("TASK_LOST", "REASON_CONTAINER_PREEMPTED", "SOURCE_AGENT"))
        self.assertEqual(lost["message"], f"Container preempted by work of higher priority, for '{high}'")
        self.assertEqual(self.daemon.wait_until_final(high)["state"], "finished")
        offer = framework.offer()
        while not any(one["name"] == "gpus" for one in offer["resources"]):
            framework.call("DECLINE", decline={"offer_ids": [offer["id"]], "filters": {"refuse_seconds": 0.0}})
            offer = framework.offer()
        framework.launch(offer, "low", "true", gpus=1)
        self.assertEqual([framework.status()["state"] for _ in range(3)],
                         ["TASK_STARTING", "TASK_RUNNING", "TASK_FINISHED"])
        self.assertEqual(sum(one["task"]["name"] == "low" for one in self.daemon.tasks()), 2)
        framework.call("TEARDOWN")

    def test_who_makes_room_while_the_daemon_is_away_is_lost_too(self):
        framework = self.framework()
        framework.launch(framework.offer(), "slow", "trap 'sleep 5; exit 0' TERM; touch $MESOS_SANDBOX/up; "
                         "while :; do sleep 0.1; done", gpus=1, kill_policy={"grace_period": {"nanoseconds": 60 * 10**9}})
        self.assertEqual([framework.status()["state"] for _ in range(2)], ["TASK_STARTING", "TASK_RUNNING"])
        (slow,) = [one["task"]["id"] for one in self.daemon.tasks() if one["task"]["name"] == "slow"]
        drover.wait_for((self.daemon.sandbox(slow) / "up").exists, "the task to be up")
        high = self.daemon.submit("sleep", 0.1, gpus=1, priority=10)
        drover.wait_for(lambda: self.daemon.task(slow)["state"] == "stopping", "the task to be asked")
        self.daemon.kill()
        self.daemon.start()
        again = self.framework(framework_id=framework.id)
        lost = again.status(acknowledge=False)
        self.assertEqual((lost["state"], lost["reason"]), ("TASK_LOST", "REASON_CONTAINER_PREEMPTED"))
        self.assertEqual(self.daemon.wait_until_final(high)["state"], "finished")
        self.daemon.kill()
        self.daemon.start()
        third = self.framework(framework_id=framework.id)
        self.assertEqual(third.status()["uuid"], lost["uuid"])
        record = self.daemon.task(slow)
        self.assertEqual((record["state"], record["exit_status"], record["preemptions"]), ("killed", 0, 0))
        third.call("TEARDOWN")

    def test_what_was_not_acknowledged_is_told_again_after_a_crash(self):
        framework = self.framework()
        framework.launch(framework.offer(), "survivor", "exec sleep 1000")
        starting = framework.status(acknowledge=False)
        self.daemon.kill()
        self.daemon.start()
        again = self.framework(framework_id=framework.id)
        self.assertEqual(again.id, framework.id)
        repeated = again.status()
        self.assertEqual((repeated["state"], repeated["uuid"]), ("TASK_STARTING", starting["uuid"]))
        self.assertEqual(again.status()["state"], "TASK_RUNNING")
        again.call("TEARDOWN")
        gone = json.loads(self.daemon.request("GET", "/master/frameworks")[2])
        self.assertIn(framework.id, [one["id"] for one in gone["completed_frameworks"]])

    def test_the_master_is_known_by_its_state_folder(self):
        def master(daemon):
            return json.loads(daemon.request("GET", "/state")[2])["id"]

        first = master(self.daemon)
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(master(self.daemon), first)
        other = drover.Daemon().start()
        self.addCleanup(lambda: self.assertEqual(other.close(), []))
        self.assertNotEqual(master(other), first)

    def test_without_a_failover_timeout_the_tasks_end_with_the_connection(self):
        framework = self.framework(failover=0.0)
        framework.launch(framework.offer(), "orphan", "exec sleep 1000")
        self.assertEqual([framework.status()["state"] for _ in range(2)], ["TASK_STARTING", "TASK_RUNNING"])
        framework.stream.close()

        def ended():
            return all(record["state"] in drover.FINAL_STATES for record in self.daemon.tasks()
                       if record["task"]["name"] == "orphan")

        drover.wait_for(ended, "the end of the task")

    def test_protobuf(self):
        info = field(1, "root") + field(2, "by hand") + field(10, field(1, 3))
        stream = Stream(self.daemon, field(2, SUBSCRIBE) + field(3, field(1, info)), b"application/x-protobuf")
        self.addCleanup(stream.close)
        self.assertEqual(stream.headers["content-type"], "application/x-protobuf")
        subscribed = fields(stream.record())
        self.assertEqual(subscribed[1], [1])
        framework_id = fields(subscribed[2][0])[1][0]
        self.assertRegex(fields(framework_id)[1][0].decode(), r"^[0-9a-f-]{36}-\d{4}$")
        self.assertEqual(stream.record(), b"\x08\x08")
        offers = fields(stream.record())
        self.assertEqual(offers[1], [2])
        offer = fields(fields(offers[3][0])[1][0])
        names = [fields(resource)[1][0] for resource in offer[5]]
        self.assertIn(b"gpus", names)

    def test_what_operators_read(self):
        status, headers, text = self.daemon.request("GET", "/metrics/snapshot")
        self.assertEqual(status, 200)
        self.assertEqual(json.loads(text)["master/gpus_total"], 1.0)
        slaves = json.loads(self.daemon.request("GET", "/slaves")[2])["slaves"]
        self.assertEqual(slaves[0]["resources"]["gpus"], 1.0)
        self.assertEqual(json.loads(self.daemon.request("GET", "/master/state.json")[2])["version"], "1.12.0")
        status, _, text = self.daemon.request("GET", "/files/browse")
        self.assertEqual((status, text.decode().strip()), (400, "Expecting 'path=value' in query."))
        self.assertEqual(self.daemon.request("GET", "/files/browse?path=/etc")[0], 404)


class OfferedPairsTest(placement_case.PlacementTest):
    profile = "dgx1-v100"

    def test_who_accepts_two_gpus_gets_the_best_pair_left(self):
        framework = Framework(self.daemon)
        self.addCleanup(framework.stream.close)
        for name in ("first", "second", "third", "fourth"):
            framework.launch(framework.offer(), name, "exec sleep 600", gpus=2)
            while framework.status()["state"] != "TASK_RUNNING":
                pass
            (record,) = [one for one in self.daemon.tasks() if one["task"]["name"] == name]
            self.assertEqual(self.nvlinks(record), [2], "joined by two links, also when others have theirs")
        framework.call("TEARDOWN")


if __name__ == "__main__":
    unittest.main()
