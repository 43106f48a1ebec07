"""One user takes all he can get of the daemon: nobody else waits for it, and the daemon lives."""

import contextlib
import http.server
import json
import pathlib
import re
import socket
import threading
import unittest

from attack import attack
import drover

MOST_OF_A_GANG = 80  # MiB: some 60 for 1,024 members with 15 MB of definitions, and room
PIDS = pathlib.Path("/sys/fs/cgroup/pids/drover")  # version 1, or below the only tree of version 2
PIDS = PIDS if PIDS.parent.is_dir() else pathlib.Path("/sys/fs/cgroup/drover")


class Dripping(http.server.ThreadingHTTPServer):
    """Serves everything at a byte now and then, until it is closed."""

    daemon_threads = True

    def __init__(self):
        self.over = threading.Event()
        over = self.over

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", "1000000")
                self.end_headers()
                with contextlib.suppress(OSError):
                    while not over.wait(0.5):
                        self.wfile.write(b"x")
                        self.wfile.flush()

            def log_message(self, *words):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.over.set()
        self.shutdown()
        self.server_close()


class Deaf:
    """Takes connections, and never answers."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]

    def close(self):
        self.listener.close()


class FairTest(attack.AttackTest):
    def refused(self, caller, method, path, body, *words):
        """Asked as `caller`: refused in one sentence, with these words in it."""
        with self.assertRaises(drover.ApiError) as refused:
            self.daemon.api(method, path, body, uid=caller.uid)
        text = refused.exception.message or refused.exception.answer.get("message", "")
        for word in words:
            self.assertIn(word, text)
        return refused.exception

    def task(self, **fields):
        return {"command": ["/bin/true"], "memory": "64MiB", "cpus": 0.1, **fields}

    def peak(self):
        """Most memory that the daemon has had, in MiB."""
        status = pathlib.Path(f"/proc/{self.daemon.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024

    @contextlib.contextmanager
    def growing_less_than(self, mebibytes):
        before = self.peak()
        yield
        self.assertLess(self.peak() - before, mebibytes)

    def victim_is_served(self):
        self.assertEqual(self.daemon.api("GET", "/v1/tasks", uid=self.victim.uid, timeout=attack.ANSWERED_MEANWHILE)["tasks"], [])


class DefinitionsTest(FairTest):
    def test_a_task_with_a_huge_environment(self):
        self.refused(self.mallory, "POST", "/v1/tasks", self.task(env={"A": "x" * 900_000}), "524288 are allowed")

    def test_a_task_with_many_labels(self):
        labels = {f"label{number:06}": "x" * 10 for number in range(20_000)}
        self.refused(self.mallory, "POST", "/v1/tasks", self.task(labels=labels), "524288 are allowed")

    def test_a_task_with_many_constraints(self):
        constraints = {f"name{number:06}": ["x"] for number in range(20_000)}
        self.refused(self.mallory, "POST", "/v1/tasks", self.task(constraints=constraints), "64 at most")

    def test_a_gang_with_a_huge_environment(self):
        with self.growing_less_than(100):
            self.refused(self.mallory, "POST", "/v1/tasks", self.task(env={"A": "x" * 200_000}, gang={"size": 100}),
                         "the definitions of all together", "16777216 are allowed")

    def test_a_gang_of_many_members_with_a_huge_environment(self):
        with self.growing_less_than(100):
            self.refused(self.mallory, "POST", "/v1/tasks",
                         self.task(env={"A": "x" * 200_000}, gang={"members": [{"cpus": 0.1}] * 100}), "16777216 are allowed")

    def test_the_plan_of_such_a_gang(self):
        with self.growing_less_than(100):
            self.refused(self.mallory, "POST", "/v1/plan", self.task(env={"A": "x" * 200_000}, gang={"size": 100}), "allowed")

    def test_an_app_of_ten_thousand_instances_with_an_environment(self):
        app = {"id": "/mallory", "args": ["/bin/sleep", "1000"], "cpus": 0.001, "mem": 32, "instances": 10_000,
               "env": {"A": "x" * 20_000}}
        with self.growing_less_than(100):
            self.refused(self.mallory, "POST", "/v2/apps", app, "'mallory' would take", "64 MiB are allowed")
        self.assertEqual(self.daemon.tasks(), [])

    def test_a_job_with_a_huge_environment(self):
        job = {"name": "mallory", "command": "true", "schedule": "R/2030-01-01T00:00:00Z/P1D",
               "environmentVariables": [{"name": "A", "value": "x" * 600_000}]}
        self.refused(self.mallory, "POST", "/v1/scheduler/iso8601", job, "524288 are allowed")


class GangMemoryTest(FairTest):
    @unittest.skipIf(drover.is_sanitized(), "a sanitizer keeps what was freed")
    def test_a_gang_of_many_members_takes_what_one_of_them_does(self):
        cpus = self.daemon.api("GET", "/v1/nodes")["nodes"][0]["cpus"]["total"]
        holder = self.daemon.submit("sleep", 1000, cpus=cpus)
        self.addCleanup(self.daemon.end_tasks)
        self.daemon.wait_until_running(holder)
        gang = self.task(env={"A": "x" * 14_600}, cpus=0.001, memory="4MiB", gang={"size": 1024})
        with self.growing_less_than(MOST_OF_A_GANG):
            self.daemon.api("POST", "/v1/tasks", gang, uid=self.mallory.uid)


class SmallLimitsTest(FairTest):
    arguments = ("--limit", "waiting-tasks=20", "--limit", "stored-size=1MiB", "--limit", "frameworks=5",
                 "--limit", "answer-size=256KiB")

    def tearDown(self):
        self.daemon.end_tasks()
        for record in self.daemon.tasks():
            with contextlib.suppress(drover.ApiError):
                self.daemon.api("DELETE", f"/v1/tasks/{record['task']['id']}")

    def waiting(self, **fields):
        """Of what waits for ever: more CPUs than are left."""
        return self.task(cpus=self.cpus, **fields)

    def setUp(self):
        self.cpus = self.daemon.api("GET", "/v1/nodes")["nodes"][0]["cpus"]["total"]
        self.daemon.submit("sleep", 1000)

    def test_many_waiting_tasks(self):
        for _ in range(20):
            self.daemon.api("POST", "/v1/tasks", self.waiting(), uid=self.mallory.uid)
        self.refused(self.mallory, "POST", "/v1/tasks", self.waiting(), "'mallory' has 20 waiting tasks, and 20 are allowed")
        self.daemon.api("POST", "/v1/tasks", self.waiting(), uid=self.victim.uid)
        for _ in range(21):
            self.daemon.api("POST", "/v1/tasks", self.waiting())

    def test_a_gang_beyond_what_may_wait(self):
        self.refused(self.mallory, "POST", "/v1/tasks", self.task(gang={"size": 21}), "and 20 are allowed")

    def test_large_definitions_that_wait(self):
        for _ in range(9):
            self.daemon.api("POST", "/v1/tasks", self.waiting(env={"A": "x" * 100_000}), uid=self.mallory.uid)
        refused = [self.refused(self.mallory, "POST", "/v1/tasks", self.waiting(env={"A": "x" * 200_000}), "1 MiB are allowed")]
        self.assertEqual(refused[0].kind, "exhausted")
        self.daemon.api("POST", "/v1/tasks", self.waiting(env={"A": "x" * 100_000}), uid=self.victim.uid)

    def test_tasks_that_are_stopped_at_once(self):
        """They are kept for days: the oldest make room."""
        ids = []
        for _ in range(30):
            ids.append(self.daemon.api("POST", "/v1/tasks", self.waiting(env={"A": "x" * 100_000}), uid=self.mallory.uid)["task"]["id"])
            self.daemon.stop_task(ids[-1], uid=self.mallory.uid)
        kept = [record["task"]["id"] for record in self.daemon.tasks(uid=self.mallory.uid)]
        self.assertLess(len(kept), 15)
        self.assertIn(ids[-1], kept)
        self.assertNotIn(ids[0], kept)

    def test_many_jobs(self):
        job = {"name": "j", "command": "true", "schedule": "R/2030-01-01T00:00:00Z/P1D",
               "environmentVariables": [{"name": "A", "value": "x" * 100_000}]}
        with self.assertRaises(drover.ApiError) as refused:
            for number in range(20):
                self.daemon.api("POST", "/v1/scheduler/iso8601", {**job, "name": f"j{number}"}, uid=self.mallory.uid)
        self.assertIn("1 MiB are allowed", refused.exception.answer["message"])

    def test_many_apps(self):
        app = {"args": ["/bin/sleep", "1000"], "cpus": 0.01, "mem": 32, "instances": 0, "labels": {"A": "x" * 50_000}}
        with self.assertRaises(drover.ApiError) as refused:
            for number in range(30):
                self.daemon.api("POST", "/v2/apps", {**app, "id": f"/mallory{number}"}, uid=self.mallory.uid)
        self.assertIn("1 MiB are allowed", refused.exception.answer["message"])

    def test_many_frameworks(self):
        call = {"type": "SUBSCRIBE", "subscribe": {"framework_info": {"user": "mallory", "name": "many", "failover_timeout": 1000}}}
        answers = []
        with contextlib.ExitStack() as streams:
            for _ in range(7):
                with drover.acting_as(self.mallory.uid):
                    stream = streams.enter_context(contextlib.closing(drover.UnixConnection(self.daemon.socket, 20)))
                    stream.connect()
                stream.request("POST", "/api/v1/scheduler", json.dumps(call),
                               {"Content-Type": "application/json", "Accept": "application/json"})
                answers.append(stream.getresponse().read(60))
            self.assertEqual([b"SUBSCRIBED" in answer for answer in answers], [True] * 5 + [False] * 2, answers)
            frameworks = self.daemon.api("GET", "/state")["frameworks"]
        self.assertEqual(len([framework for framework in frameworks if framework["name"] == "many"]), 5)

    def test_answers_that_nobody_reads(self):
        for _ in range(9):
            self.daemon.api("POST", "/v1/tasks", self.waiting(env={"A": "x" * 100_000}), uid=self.mallory.uid)
        with contextlib.ExitStack() as connections:
            for _ in range(10):
                with drover.acting_as(self.mallory.uid):
                    connection = connections.enter_context(contextlib.closing(socket.socket(socket.AF_UNIX)))
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    connection.connect(str(self.daemon.socket))
                connection.sendall(b"GET /v1/tasks HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.victim_is_served()
            refused = self.refused(self.mallory, "GET", "/v1/tasks", None, "'mallory' has too many answers, of which")
            self.assertEqual(refused.status, 503)
            self.assertTrue(self.daemon.api("GET", "/v1/tasks", timeout=attack.ANSWERED_MEANWHILE)["tasks"])


class RestartTest(FairTest):
    def test_all_that_one_user_may_have_is_no_burden_at_the_next_start(self):
        everything = self.daemon.api("GET", "/v1/nodes")["nodes"][0]["cpus"]["total"]
        holder = self.daemon.submit("sleep", 1000)
        body, accepted = self.task(cpus=everything, env={"A": "x" * 250_000}), 0
        with self.assertRaises(drover.ApiError) as refused:
            for accepted in range(400):
                self.daemon.api("POST", "/v1/tasks", body, uid=self.mallory.uid)
        self.assertIn("64 MiB are allowed", refused.exception.message)
        self.daemon.kill()
        self.daemon.start()
        self.victim_is_served()
        self.assertEqual(len(self.daemon.tasks(uid=self.mallory.uid)), accepted)
        if not drover.is_sanitized():
            self.assertLess(self.peak(), 512)
        self.daemon.stop_task(holder, force=True)


class SlowFetchTest(FairTest):
    def test_many_fetches_that_drip(self):
        server = Dripping()
        self.addCleanup(server.close)
        # More than all the threads that fetch for everybody.
        uri = "http://127.0.0.1:%d/file" % server.server_address[1]
        tasks = [self.submit(self.mallory, ["/bin/true"], cpus=0.01, memory="8MiB", fetch=[{"uri": uri}]) for _ in range(80)]
        self.addCleanup(lambda: [self.daemon.stop_task(task, force=True) for task in tasks])
        attack.make_file(self.ground / "file", "content", 0o644)
        record, output, _ = self.attempt(self.victim, ["/bin/cat", "file"], fetch=[{"uri": str(self.ground / "file")}])
        self.assertEqual((record["state"], output), ("finished", "content"))


class SlowPullTest(FairTest):
    def test_many_pulls_from_a_deaf_registry(self):
        registry = Deaf()
        self.addCleanup(registry.close)
        with contextlib.ExitStack() as pulls:
            def pull(caller, name):
                with drover.acting_as(caller.uid):
                    connection = pulls.enter_context(contextlib.closing(drover.UnixConnection(self.daemon.socket, 20)))
                    connection.connect()
                connection.request("POST", "/v1/images/pull", json.dumps({"image": f"{registry.address}/{name}"}),
                                   {"Content-Type": "application/json"})
                return connection.getresponse()

            answers = [pull(self.mallory, f"m{number}") for number in range(16)]
            self.assertEqual([answer.status for answer in answers], [200] * 4 + [507] * 12)
            self.assertIn("'mallory' pulls or loads 4 images already", answers[-1].read().decode())
            self.assertEqual(pull(self.victim, "v").status, 200)


class CommandChecksTest(FairTest):
    def app(self, name, instances, check):
        return {"id": f"/{name}", "args": ["/bin/sleep", "10000"], "cpus": 0.01, "mem": 16, "instances": instances,
                "healthChecks": [{"protocol": "COMMAND", "command": {"value": check}, "gracePeriodSeconds": 3600, "intervalSeconds": 1,
                                  "timeoutSeconds": 4000, "delaySeconds": 0, "maxConsecutiveFailures": 0}]}

    def test_many_checks_that_hang(self):
        self.daemon.api("POST", "/v2/apps", self.app("mallory", 17, "sleep 5000"), uid=self.mallory.uid)
        drover.wait_for(lambda: self.daemon.api("GET", "/v2/apps/mallory")["app"]["tasksRunning"] == 17, "the checks to hang")
        self.daemon.api("POST", "/v2/apps", self.app("victim", 1, "true"), uid=self.victim.uid)
        drover.wait_for(lambda: self.daemon.api("GET", "/v2/apps/victim")["app"]["tasksHealthy"] == 1, "the victim's app to be well")


class ProcessesTest(FairTest):
    def limit_of(self, task):
        return (PIDS / task / "pids.max").read_text().strip()

    def test_a_task_takes_no_more_processes_than_it_may(self):
        task = self.submit(self.mallory, ["/bin/sleep", 1000])
        self.daemon.wait_until_running(task)
        self.assertEqual(self.limit_of(task), "4096")
        asked = self.submit(self.mallory, ["/bin/sleep", 1000], pids=100)
        self.daemon.wait_until_running(asked)
        self.assertEqual(self.limit_of(asked), "100")
        for each in (task, asked):
            self.daemon.stop_task(each, force=True)

    def test_a_fork_bomb_ends_at_its_limit(self):
        script = "i=0; while [ $i -lt 60 ]; do sleep 1000 & i=$((i+1)); done; echo all"
        ran = self.cli_run(self.mallory, ["--pids", "20"], "/bin/sh", "-c", script)
        self.assertNotIn("all", ran.out)
        self.assertIn("fork", ran.err)

    def test_all_tasks_leave_the_machine_some(self):
        limit = int((PIDS / "pids.max").read_text())
        self.assertLess(limit, int(pathlib.Path("/proc/sys/kernel/pid_max").read_text()))


class NamesTest(unittest.TestCase):
    def test_the_documented_limits_are_those_there_are(self):
        text = (drover.ROOT / "docs/limits.md").read_text()
        documented = re.findall(r"^\| `([a-z-]+)` \| (?:`|half)", text, re.MULTILINE)
        ran = drover.run([drover.BINARY, "serve", "--limit", "nothing=1"])
        self.assertNotEqual(ran.status, 0)
        self.assertEqual(re.search(r"there are: ([a-z, -]+)", ran.err)[1].split(", "), documented, ran)


if __name__ == "__main__":
    unittest.main()
