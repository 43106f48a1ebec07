"""`kill -9` of the daemon while services deploy and schedules fire: in the end everything is as if it had never happened.

The same script of changes is played to a daemon that nobody disturbs and to one that is killed again and again. DROVER_CRASHES says
how often (8 by default); DROVER_TEST_SEED repeats a run.
"""

import contextlib
import http.client
import json
import os
import random
import signal
import threading
import time
import unittest
import urllib.parse

import drover

CRASHES = int(os.environ.get("DROVER_CRASHES", "8"))
SEED = int(os.environ.get("DROVER_TEST_SEED", random.randrange(2**32)))
CHANGES = 10 + CRASHES // 3
LONGEST_LIFE = 0.8  # seconds from a start of the daemon to its end
PATIENCE = drover.PATIENCE
API = "/v1/scheduler"
AWAY = (OSError, http.client.HTTPException, ValueError)  # what a client sees of a daemon that was killed


class Player:
    """Plays the script as a careful client does: what was not answered is looked at, and asked for again if it was not done."""

    def __init__(self, daemon, seed):
        self.daemon, self.random = daemon, random.Random(seed)
        self.apps = []  # names of those that are there
        self.jobs = 0

    # Talking to a daemon that may be away

    def ask(self, method, path, body=None):
        """(status, value), as soon as there is a daemon to answer."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return self.try_once(method, path, body)
            except AWAY:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def try_once(self, method, path, body=None):
        status, headers, data = self.daemon.request(method, path, body)
        if headers.get_content_type() != "application/json":
            return status, data.decode()
        return status, json.loads(data) if data else None

    def change(self, method, path, body, done):
        """Sends it until it was done, once: `done` looks whether it was. `body` makes what is sent."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                status, answer = self.try_once(method, path, body())
            except AWAY:
                if done():
                    return
                continue
            if status < 300:
                return
            if status != 409:  # a deployment goes on
                raise AssertionError(f"{method} {path}: {status} {answer}")
            time.sleep(0.1)
        raise AssertionError(f"{method} {path} was not done in {PATIENCE} s")

    def versions(self, app):
        status, answer = self.ask("GET", f"/v2/apps{app}/versions")
        return answer["versions"] if status == 200 else []

    def change_app(self, method, app, suffix="", body=None):
        """Every change of an app makes a version: so it shows whether one was made."""
        before = self.versions(app)
        force = self.random.choice(("?force=true", ""))
        self.change(method, f"/v2/apps{app}{suffix}{force}", lambda: body, lambda: self.versions(app) != before)

    # Changes

    def play(self, changes):
        self.create_group()
        for number in range(changes):
            kinds = [self.create_app, self.create_job, self.scale, self.upgrade, self.upgrade, self.restart, self.roll_back, self.crash_instance,
                     self.delete_app, self.run_job_now, self.chain_jobs, self.create_failing_job, self.drop_job]
            self.random.choice(kinds)(number)
            time.sleep(self.random.uniform(0, 0.5))

    def definition(self, name):
        serving = self.random.random() < 0.3
        words = ["serve", "8080", "here"] if serving else ["sleep", "100000"]
        app = {"id": name, "args": [str(self.daemon.probe), "append", "ran", "line", ",", *words], "cpus": 0.01, "mem": 32,
               "instances": self.random.randint(1, 3), "backoffSeconds": 1, "maxLaunchDelaySeconds": 2,
               "taskKillGracePeriodSeconds": 1}
        if serving:  # a forwarded port, and a check over it
            app["networks"] = [{"mode": "container/bridge"}]
            app["container"] = {"type": "MESOS", "portMappings": [{"containerPort": 8080, "hostPort": 0}]}
            app["healthChecks"] = [{"protocol": "TCP", "portIndex": 0, "intervalSeconds": 1, "delaySeconds": 0}]
        else:
            app["portDefinitions"] = []
        if self.random.random() < 0.4:
            app.update(gpus=1, upgradeStrategy={"minimumHealthCapacity": 0, "maximumOverCapacity": 0})
            app["instances"] = min(app["instances"], 2)
        return app

    def create_app(self, number):
        if len(self.apps) >= 4:
            return self.scale(number)
        name = f"/app-{number}"
        app = self.definition(name)
        self.change("POST", "/v2/apps", lambda: app, lambda: self.versions(name))
        self.apps.append(name)

    def create_group(self):
        """The second of two apps waits for the first."""
        first, second = self.definition("/shop/db"), {**self.definition("/shop/web"), "dependencies": ["/shop/db"]}
        group = {"id": "/shop", "apps": [first, second]}
        self.change("POST", "/v2/groups", lambda: group, lambda: self.versions("/shop/web"))
        self.apps += ["/shop/db", "/shop/web"]

    def some_app(self):
        return self.random.choice(self.apps)

    def scale(self, _):
        app = self.some_app()
        status, answer = self.ask("GET", f"/v2/apps{app}")
        assert status == 200, answer
        instances = self.random.choice([count for count in range(3) if count != answer["app"]["instances"]])
        self.change_app("PUT", app, body={"instances": instances})

    def upgrade(self, number):
        self.change_app("PUT", self.some_app(), body={"env": {"CHANGE": str(number)}})

    def restart(self, _):
        self.change_app("POST", self.some_app(), "/restart")

    def roll_back(self, number):
        app = self.some_app()
        versions = sorted(self.versions(app))
        if len(versions) < 2:
            return self.upgrade(number)
        self.change_app("PUT", app, body={"version": versions[-2]})

    def delete_app(self, number):
        if len(self.apps) < 4:
            return self.create_app(number)
        app = self.apps.pop()
        self.change("DELETE", f"/v2/apps{app}", lambda: None, lambda: not self.versions(app))

    def crash_instance(self, _):
        """As when the program itself dies."""
        chosen = self.random.random()
        with contextlib.suppress(OSError, IndexError, KeyError, TypeError, ValueError):
            running = sorted(self.daemon.folder.glob("state/tasks/*/status.json"))
            status = json.loads(running[int(chosen * len(running))].read_text())
            if self.belongs_to_service(running[int(chosen * len(running))].parent.name):
                os.kill(status["running"]["pid"], signal.SIGKILL)

    def belongs_to_service(self, task):
        status, record = self.ask("GET", f"/v1/tasks/{task}")
        return status == 200 and record["state"] == "running" and record["task"].get("origin", {}).get("kind") == "service"

    def define_job(self, kind, command, schedule="R1/{now}/PT1H", path="iso8601", **fields):
        """Times that pass while the daemon is away are made up for: epsilon is long. Returns its name."""
        self.jobs += 1
        name = f"{kind}-{self.jobs}"

        def body():
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 1))
            times = {"schedule": schedule.format(now=now)} if path == "iso8601" else {}
            return {"name": name, "command": f"echo line >> ran; {command}", "cpus": 0.01, "mem": 32, "epsilon": "PT15M",
                    "concurrent": True, **times, **fields}

        self.change("POST", f"{API}/{path}", body, lambda: self.has_job(name))
        return name

    def has_job(self, name):
        return self.ask("GET", f"{API}/job/{name}")[0] == 200

    def create_job(self, _):
        self.define_job("often", "true", self.random.choice(("R5/{now}/PT1S", "R3/{now}/PT2S", "R2/{now}/PT3S")))

    def create_failing_job(self, _):
        self.define_job("failing", '[ "$CHRONOS_JOB_RUN_ATTEMPT" = 1 ]')

    def chain_jobs(self, _):
        parent = self.define_job("parent", "sleep 0.3")
        self.define_job("child", "true", path="dependency", parents=[parent])

    def run_job_now(self, _):
        name = self.define_job("asked", "sleep 0.1", "R1/2099-01-01T00:00:00Z/PT1H")
        self.change("PUT", f"{API}/job/{name}", lambda: None, lambda: self.records_of(name))

    def drop_job(self, _):
        name = self.define_job("dropped", "sleep 1000")
        self.change("DELETE", f"{API}/job/{name}", lambda: None, lambda: not self.has_job(name))

    def records_of(self, name):
        return [record for record in self.ask("GET", "/v1/tasks")[1]["tasks"] if record["task"]["name"] == name]

    # How it ends

    def settle(self, seed):
        drover.wait_for(self.is_settled, f"everything to come to rest (seed {seed})", PATIENCE)

    def is_settled(self):
        apps = self.ask("GET", "/v2/apps")[1]["apps"]
        at_rest = all(app["tasksRunning"] == app["instances"] and app["tasksStaged"] == 0 for app in apps)
        well = all(app["tasksHealthy"] == app["instances"] for app in apps if app.get("healthChecks"))
        quiet = not self.ask("GET", "/v2/deployments")[1] and not self.ask("GET", "/v2/queue")[1]["queue"]
        return at_rest and well and quiet and self.jobs_are_over()

    def jobs_are_over(self):
        jobs = self.ask("GET", f"{API}/jobs")[1]
        over = all(job["schedule"].startswith("R0/") for job in jobs if "schedule" in job and "2099" not in job["schedule"])
        # Children run after their parents: whoever was asked to run has run.
        ran = all(job["successCount"] + job["errorCount"] > 0 for job in jobs)
        alive = [record for record in self.ask("GET", "/v1/tasks")[1]["tasks"]
                 if record["task"].get("origin", {}).get("kind") != "service" and record["state"] not in drover.FINAL_STATES]
        return over and ran and not alive and not any(job["state"] != "idle" for job in self.summary())

    def summary(self):
        return self.ask("GET", f"{API}/jobs/summary")[1]["jobs"]

    def end_state(self):
        """What must not depend on crashes: everything but times, ids, addresses."""
        apps = {}
        for app in self.ask("GET", "/v2/apps")[1]["apps"]:
            tasks = self.ask("GET", f"/v2/apps{app['id']}/tasks")[1]["tasks"]
            apps[app["id"]] = {
                "versions": len(self.versions(app["id"])), "states": [task["state"] for task in tasks],
                "on its version": all(task["version"] >= app["versionInfo"]["lastConfigChangeAt"] for task in tasks),
                **{name: app.get(name) for name in ("instances", "env", "gpus", "networks", "tasksRunning", "tasksHealthy", "dependencies")}}
        jobs = {}
        for job in self.ask("GET", f"{API}/jobs")[1]:
            name = job["name"]
            jobs[name] = {"records": sorted(record["state"] for record in self.records_of(name)),
                          "successes": job["successCount"], "errors": job["errorCount"],
                          "history": sorted(run["status"] for run in self.history(name))}
        return {"apps": apps, "jobs": jobs}

    def history(self, job):
        return self.ask("GET", f"{API}/job/stat/{urllib.parse.quote(job)}")[1]["taskStatHistory"]

    def started_often(self):
        """Containers that were started more than once, or run and were never started."""
        wrong = []
        for record in self.ask("GET", "/v1/tasks")[1]["tasks"]:
            count = self.started(record["task"]["id"])
            least = 1 if record["state"] in ("running", "finished") else 0
            if not least <= count <= 1:
                wrong.append((count, record))
        return wrong

    def started(self, task):
        status, answer = self.ask("GET", f"/v1/tasks/{task}/files/read?path=ran")
        return answer["data"].count("line") if status == 200 else 0



class Killer(threading.Thread):
    """Kills the daemon so often, each time at a random moment of its life, and starts it again."""

    def __init__(self, daemon, seed, crashes):
        super().__init__()
        self._daemon, self._random, self._crashes = daemon, random.Random(seed), crashes
        self.done = 0
        self.wrong = []  # moments at which a GPU was given twice

    def run(self):
        for crash in range(self._crashes):
            time.sleep(self._random.uniform(0, LONGEST_LIFE))
            self._daemon.kill()
            # Now and then it dies again before it can answer.
            in_peace = self._random.random() < 0.7
            self._daemon.start(wait=in_peace)
            self.done += 1
            if in_peace and not self._daemon.grants_are_sound():
                self.wrong.append(crash)
        drover.wait_for(self._daemon.answers, "the daemon to answer")


class CrashServicesTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root: containers, devices and mounts are made for real")

    def play(self, crashes):
        """What is there in the end, after so many crashes."""
        daemon = drover.Daemon("dgx-a100").start()
        self.addCleanup(self.close, daemon)
        player, killer = Player(daemon, SEED), Killer(daemon, SEED + 1, crashes)
        killer.start()
        try:
            player.play(CHANGES)
        finally:
            killer.join()
        self.assertEqual((killer.done, killer.wrong), (crashes, []), f"seed {SEED}")
        player.settle(SEED)
        state = player.end_state()
        drover.wait_for(lambda: all(count > 0 for count, _ in player.started_often()), "what runs to have come so far")
        self.assertEqual(player.started_often(), [], f"seed {SEED}")
        self.assertTrue(daemon.grants_are_sound())
        tasks = [record["task"]["id"] for record in daemon.tasks()]
        daemon.remove_definitions()
        drover.wait_for(lambda: all(record["state"] in drover.FINAL_STATES for record in daemon.tasks()), "all to end")
        self.assertEqual(daemon.leaks(tasks), [], f"seed {SEED}")
        return state

    def close(self, daemon):
        found = daemon.close()
        self.assertEqual(found, [], f"seed {SEED}")

    def test_the_end_is_the_one_of_a_daemon_that_nobody_disturbed(self):
        began = time.monotonic()
        calm = self.play(crashes=0)
        undisturbed = time.monotonic() - began
        shaken = self.play(crashes=CRASHES)
        print(f"seed {SEED}: {CHANGES} changes, {CRASHES} crashes, {len(calm['apps'])} apps, {len(calm['jobs'])} jobs; "
              f"{undisturbed:.0f} s and {time.monotonic() - began - undisturbed:.0f} s")
        self.assertEqual(shaken, calm, f"seed {SEED}")
        for name, job in calm["jobs"].items():
            self.assertEqual(job["errors"], 0, name)
            self.assertEqual(len(job["history"]), len(job["records"]), f"{name}: something was left out")
            self.assertEqual(job["records"].count("finished"), job["successes"], name)


if __name__ == "__main__":
    unittest.main()
