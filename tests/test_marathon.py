"""The Marathon API against the real daemon: apps that come, grow, change, fail, and go."""

import contextlib
import json
import unittest

import drover
from test_api import events_of

DEFINITIONS = drover.ROOT / "tests/data/definitions"


class MarathonTest(drover.DaemonTest):
    profile = "k40m"

    def app(self, name, *words, **fields):
        """An app whose instances run the probe; fields are those of the wire."""
        args = [str(self.daemon.probe), *(str(word) for word in words or ("sleep", 1000))]
        return {"id": name, "args": args, "cpus": 0.1, "mem": 32, "portDefinitions": [], **fields}

    def create(self, name, *words, **fields):
        created = self.daemon.api("POST", "/v2/apps", self.app(name, *words, **fields))
        self.addCleanup(self.remove, name)
        return created

    def remove(self, name):
        with contextlib.suppress(drover.ApiError):
            self.daemon.api("DELETE", f"/v2/apps/{name}")
        drover.wait_for(lambda: not self.tasks_left(name), f"{name} to be gone")

    def tasks_left(self, name):
        return [task for task in self.daemon.tasks()
                if task["task"].get("origin", {}).get("name") == name and task["state"] not in drover.FINAL_STATES]

    def get(self, name):
        return self.daemon.api("GET", f"/v2/apps/{name}")["app"]

    def deployed(self):
        drover.wait_for(lambda: not self.daemon.api("GET", "/v2/deployments"), "the deployments to end")

    def running(self, name, count):
        def as_many():
            app = self.get(name)
            return app if app["tasksRunning"] == count and len(app["tasks"]) == count else None

        return drover.wait_for(as_many, f"{count} instances of {name}")

    def refused(self, status, method, path, body=None, **options):
        with self.assertRaises(drover.ApiError) as caught:
            self.daemon.api(method, path, body, **options)
        self.assertEqual(caught.exception.status, status)
        return caught.exception.answer

    def test_an_app_is_deployed_scaled_and_deleted(self):
        created = self.create("/web", instances=2)
        self.assertEqual(len(created["deployments"]), 1)
        self.deployed()
        app = self.running("/web", 2)
        self.assertEqual(app["tasks"][0]["state"], "TASK_RUNNING")
        self.daemon.api("PUT", "/v2/apps/web", {"instances": 3})
        kept = {task["id"] for task in app["tasks"]}
        self.assertLessEqual(kept, {task["id"] for task in self.running("/web", 3)["tasks"]})
        self.deployed()
        self.daemon.api("PUT", "/v2/apps//web", {"instances": 1})
        self.running("/web", 1)
        self.deployed()
        self.daemon.api("DELETE", "/v2/apps/web")
        self.refused(404, "GET", "/v2/apps/web")
        self.deployed()
        self.assertEqual(self.tasks_left("/web"), [])

    def test_an_upgrade_replaces_every_instance_and_can_be_undone(self):
        first = self.create("/up", instances=2, upgradeStrategy={"minimumHealthCapacity": 0.5, "maximumOverCapacity": 0})
        self.deployed()
        old = {task["id"] for task in self.running("/up", 2)["tasks"]}
        changed = self.daemon.api("PUT", "/v2/apps/up", {"env": {"COLOUR": "blue"}})
        self.deployed()
        app = self.running("/up", 2)
        self.assertFalse(old & {task["id"] for task in app["tasks"]})
        self.assertEqual({task["version"] for task in app["tasks"]}, {changed["version"]})
        self.daemon.api("PUT", "/v2/apps/up", {"version": first["version"]})
        self.deployed()
        self.assertEqual(self.get("/up")["env"], {})
        self.assertEqual(len(self.daemon.api("GET", "/v2/apps//up/versions")["versions"]), 3)

    def test_what_ends_is_started_again_later_and_later(self):
        self.create("/bad", "exit", 3, backoffSeconds=3600)
        failure = drover.wait_for(lambda: self.get("/bad").get("lastTaskFailure"), "a failure")
        self.assertEqual(failure["state"], "TASK_FAILED")
        self.assertEqual(failure["message"], "Command exited with status 3")
        (item,) = [item for item in self.daemon.api("GET", "/v2/queue")["queue"] if item["app"]["id"] == "/bad"]
        self.assertGreater(item["delay"]["timeLeftSeconds"], 3000)
        status, _, _ = self.daemon.request("DELETE", "/v2/queue//bad/delay")
        self.assertEqual(status, 204)
        drover.wait_for(lambda: self.get("/bad")["lastTaskFailure"]["taskId"] != failure["taskId"], "another attempt")

    def test_instances_are_killed_and_replaced_or_not(self):
        self.create("/kill", instances=2)
        self.deployed()
        first, second = [task["id"] for task in self.running("/kill", 2)["tasks"]]
        self.assertEqual(self.daemon.api("DELETE", f"/v2/apps/kill/tasks/{first}")["task"]["id"], first)
        drover.wait_for(lambda: first not in {task["id"] for task in self.get("/kill")["tasks"]}, "it to end")
        self.running("/kill", 2)
        self.daemon.api("POST", "/v2/tasks/delete?scale=true", {"ids": [second]})
        self.running("/kill", 1)
        self.assertEqual(self.get("/kill")["instances"], 1)

    def test_a_group_starts_in_the_order_of_its_dependencies(self):
        group = {"id": "/shop", "groups": [
            {"id": "db", "apps": [self.app("main")]},
            {"id": "web", "dependencies": ["../db"], "apps": [self.app("front")]}]}
        self.addCleanup(self.remove, "/shop/db/main")
        self.addCleanup(self.remove, "/shop/web/front")
        self.daemon.api("POST", "/v2/groups", group)
        self.deployed()
        (db,), (web,) = (self.running(name, 1)["tasks"] for name in ("/shop/db/main", "/shop/web/front"))
        self.assertLessEqual(db["startedAt"], web["stagedAt"])
        self.assertEqual(self.daemon.api("GET", "/v2/groups/shop")["groups"][1]["dependencies"], ["/shop/db"])
        self.daemon.api("DELETE", "/v2/groups/shop")
        self.refused(404, "GET", "/v2/groups/shop")

    def test_a_gpu_that_is_taken_is_waited_for_and_the_queue_says_so(self):
        self.create("/one", gpus=1)
        self.deployed()
        self.create("/two", gpus=1)
        (item,) = drover.wait_for(lambda: self.daemon.api("GET", "/v2/queue")["queue"], "it to wait")
        self.assertEqual(item["app"]["id"], "/two")
        self.assertTrue(any("GPU" in reason for reason in item["processedOffersSummary"]["reasons"]), item)
        self.remove("/one")
        self.running("/two", 1)

    def test_an_upgrade_that_needs_the_gpu_of_the_old_version_says_so_and_how_to_go_on(self):
        self.create("/upgrade/gpu", gpus=1)
        self.deployed()
        self.daemon.api("PUT", "/v2/apps/upgrade/gpu", {"env": {"VERSION": "2"}})
        (item,) = drover.wait_for(lambda: self.daemon.api("GET", "/v2/queue")["queue"], "it to wait")
        advice = "set minimumHealthCapacity of upgradeStrategy to 0, and force that change"
        self.assertIn(advice, item["processedOffersSummary"]["reasons"][-1])
        shown = self.daemon.cli("app", "show", "/upgrade/gpu")
        self.assertIn(advice, shown.out, shown)
        self.assertEqual(self.daemon.cli("ids", "APP").out, "/upgrade/gpu\n")
        missed = self.daemon.cli("app", "show", "gpu")
        self.assertIn("did you mean '/upgrade/gpu'?", missed.err)
        strategy = {"minimumHealthCapacity": 0, "maximumOverCapacity": 0}
        self.daemon.api("PUT", "/v2/apps/upgrade/gpu?force=True", {"upgradeStrategy": strategy})
        self.deployed()
        self.assertEqual(self.running("/upgrade/gpu", 1)["env"], {"VERSION": "2"})

    def test_a_group_can_be_read_as_it_was_and_go_back_there(self):
        self.addCleanup(self.remove, "/was/a")
        first = self.daemon.api("POST", "/v2/groups", {"id": "/was", "apps": [self.app("a")]})["version"]
        self.deployed()
        self.daemon.api("PUT", "/v2/groups/was", {"apps": [self.app("a", instances=2)]})
        self.running("/was/a", 2)
        self.deployed()
        versions = self.daemon.api("GET", "/v2/groups//was/versions")
        self.assertEqual(versions[-1], first)
        self.assertEqual(self.daemon.api("GET", f"/v2/groups/was/versions/{first}")["apps"][0]["instances"], 1)
        self.daemon.api("PUT", "/v2/groups/was", {"version": first})
        self.running("/was/a", 1)

    def test_events_tell_what_happens_in_order(self):
        connection = drover.UnixConnection(self.daemon.socket, drover.PATIENCE)
        self.addCleanup(connection.close)
        connection.request("GET", "/v2/events", headers={"Accept": "text/event-stream"})
        stream = events_of(connection.getresponse())
        self.assertEqual(next(stream)[0], "event_stream_attached")
        self.create("/told")
        seen = []
        for kind, _, data in stream:
            value = json.loads(data)
            self.assertEqual(value["eventType"], kind)
            seen.append(value.get("taskStatus", kind))
            if "deployment_success" in seen and "TASK_RUNNING" in seen:
                break
        self.assertLess(seen.index("deployment_info"), seen.index("TASK_STARTING"))
        self.assertLess(seen.index("TASK_STARTING"), seen.index("TASK_RUNNING"))
        self.assertLess(seen.index("TASK_STARTING"), seen.index("deployment_success"))
        self.assertEqual([kind for kind in seen if kind.startswith("deployment")],
                         ["deployment_info", "deployment_step_success"] * 2 + ["deployment_success"])

    def test_others_do_not_see_it_and_cannot_change_it(self):
        self.create("/mine")
        self.refused(404, "GET", "/v2/apps/mine", uid=drover.NOBODY)
        self.assertEqual(self.daemon.api("GET", "/v2/apps", uid=drover.NOBODY)["apps"], [])
        self.refused(403, "PUT", "/v2/apps/mine", {"cpus": 0.2}, uid=drover.NOBODY)
        self.refused(404, "DELETE", "/v2/apps/mine", uid=drover.NOBODY)
        self.refused(403, "POST", "/v2/apps", self.app("/other", user="root"), uid=drover.NOBODY)

    def test_what_root_lets_run_as_root_is_changed_by_root_alone(self):
        self.daemon.api("POST", "/v2/apps", self.app("/his"), uid=drover.NOBODY)
        self.addCleanup(self.remove, "/his")
        self.deployed()
        self.daemon.api("PUT", "/v2/apps/his", {"user": "root"})
        self.deployed()
        self.refused(403, "PUT", "/v2/apps/his", {"args": ["/bin/sh", "-c", "id"]}, uid=drover.NOBODY)
        self.daemon.api("PUT", "/v2/apps/his", {"instances": 2}, uid=drover.NOBODY)
        self.deployed()
        self.daemon.api("PUT", "/v2/apps/his", {"user": "nobody"})
        self.deployed()
        (as_root, *_) = [version for version in self.daemon.api("GET", "/v2/apps/his/versions")["versions"]
                         if self.daemon.api("GET", f"/v2/apps/his/versions/{version}").get("user") == "root"]
        self.refused(403, "PUT", "/v2/apps/his", {"version": as_root}, uid=drover.NOBODY)

    def test_a_deployment_is_taken_back_by_who_owns_all_that_it_touches(self):
        self.daemon.api("POST", "/v2/apps", self.app("/his"), uid=drover.NOBODY)
        self.addCleanup(self.remove, "/his")
        self.create("/mine")
        self.deployed()
        never = {"constraints": [["rack", "IS", "nowhere"]], "cpus": 0.2}
        both = [{"id": name, **never} for name in ("/his", "/mine")]
        deployment = self.daemon.api("PUT", "/v2/apps", both)["deploymentId"]
        self.refused(403, "DELETE", f"/v2/deployments/{deployment}", uid=drover.NOBODY)
        self.daemon.api("DELETE", f"/v2/deployments/{deployment}")
        self.deployed()

    def test_a_deletion_can_be_taken_back_while_its_last_instance_ends(self):
        stubborn = {"args": None, "cmd": "trap '' TERM; echo up; while :; do sleep 1; done", "taskKillGracePeriodSeconds": 10}
        self.create("/wanted", **stubborn)
        self.deployed()
        (task,) = [record["task"]["id"] for record in self.daemon.tasks() if record["task"].get("origin", {}).get("name") == "/wanted"]
        self.daemon.wait_for_output(task, "up")
        deleted = self.daemon.api("DELETE", "/v2/apps/wanted")["deploymentId"]
        self.daemon.api("DELETE", f"/v2/deployments/{deleted}")
        self.running("/wanted", 1)
        self.deployed()

    def test_services_outlive_the_daemon(self):
        self.create("/stays", instances=2)
        self.deployed()
        before = self.running("/stays", 2)["tasks"]
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual([task["id"] for task in self.running("/stays", 2)["tasks"]], [task["id"] for task in before])

    def test_definitions_of_users_are_accepted_unchanged(self):
        for path in sorted(DEFINITIONS.glob("marathon-*.json")):
            with self.subTest(path.name):
                body = json.loads(path.read_text())
                name = "/" + body["id"].lstrip("/")
                created = self.daemon.api("POST", "/v2/apps", path.read_bytes())
                self.addCleanup(self.remove, name)
                self.assertEqual(created["id"], name)
                self.remove(name)

    def test_wrong_definitions_are_refused_with_every_mistake(self):
        answer = self.refused(422, "POST", "/v2/apps", {"id": "/Wrong", "cmd": "x", "gpus": 0.5, "cpus": -1})
        self.assertEqual({detail["path"] for detail in answer["details"]}, {"/id", "/gpus", "/cpus"})


class StrictMarathonTest(drover.DaemonTest):
    profile = "k40m"
    arguments = ("--marathon-strict",)

    def test_gpus_are_refused_in_docker_containers(self):
        body = {"id": "/a", "gpus": 1, "container": {"type": "DOCKER", "docker": {"image": "x"}}}
        with self.assertRaises(drover.ApiError) as caught:
            self.daemon.api("POST", "/v2/apps", body)
        self.assertEqual(caught.exception.status, 422)
        self.assertEqual(caught.exception.answer["details"],
                         [{"path": "/", "errors": ["GPU resources only work with the Mesos containerizer"]}])


if __name__ == "__main__":
    unittest.main()
