"""Chronos' API as its users know it: their files unchanged, runs at their times, retries, dependent jobs, restarts."""

import base64
import contextlib
import functools
import http.server
import json
import pathlib
import threading
import time
import unittest

import drover
from named_images import NamedImagesTest

DEFINITIONS = pathlib.Path(__file__).resolve().parent / "data/definitions"
API = "/v1/scheduler"


def in_seconds(seconds, period="PT1H", runs=""):
    """A schedule that begins so many seconds from now."""
    start = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + seconds))
    return f"R{runs}/{start}Z/{period}"


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(listener, handler):
    """Serves at that socket; yields its address and port."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler, bind_and_activate=False) as server:
        server.socket.close()
        server.socket = listener
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield "{}:{}".format(*listener.getsockname())
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def webhook(daemon, *statuses):
    """Serves at a free port where the daemon finds it; yields its URL and what was posted to it, as (path, headers, body). Answers with these statuses, and with
    the last of them from then on."""
    posted, left = [], list(statuses)

    class Webhook(Handler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posted.append((self.path, self.headers, json.loads(body)))
            self.send_response(left.pop(0) if len(left) > 1 else left[0])
            self.end_headers()

    with serving(daemon.listener(), Webhook) as address:
        yield f"http://teller:let-me%20in@{address}/runs?of=chronos", posted


class ChronosTest(NamedImagesTest):
    profile = "k40m"

    def tearDown(self):
        for job in self.daemon.api("GET", f"{API}/jobs"):
            self.ask("DELETE", f"/job/{job['name']}")
        self.daemon.end_tasks()

    def ask(self, method, path, body=None, status=204, prefix=API, uid=None):
        answered, headers, data = self.daemon.request(method, prefix + path, body, uid=uid)
        self.assertEqual(answered, status, data)
        if status == 204:
            self.assertEqual(data, b"")
        if headers.get_content_type() == "application/json" and data:
            return json.loads(data)
        return data.decode()

    def job(self, name, uid=None):
        return self.ask("GET", f"/job/{name}", status=200, uid=uid)

    def define(self, name, command, uid=None, **fields):
        path = "/dependency" if "parents" in fields else "/iso8601"
        body = {"name": name, "command": command, "mem": 64, **fields}
        if "parents" not in fields:
            body.setdefault("schedule", in_seconds(3600))
        self.ask("POST", path, body, uid=uid)

    def runs(self, name):
        """Records of the tasks of a job, the oldest first."""
        return [record for record in self.daemon.tasks() if record["task"]["name"] == name]

    def wait_for_success(self, name, count=1):
        drover.wait_for(lambda: self.job(name)["successCount"] >= count, f"{name} to succeed")

    def test_a_job_runs_at_its_time_and_leaves_its_output(self):
        self.define("soon", 'echo "$CHRONOS_JOB_NAME $CHRONOS_JOB_RUN_ATTEMPT $N"; env > variables',
                    schedule=in_seconds(3, runs="1"), environmentVariables=[{"name": "N", "value": "7"}])
        self.assertEqual(self.ask("GET", "/jobs/summary", status=200)["jobs"][0]["status"], "fresh")
        self.wait_for_success("soon")
        (record,) = self.runs("soon")
        self.assertEqual((record["state"], self.daemon.output(record["task"]["id"])), ("finished", "soon 0 7\n"))
        variables = dict(line.split("=", 1) for line in self.daemon.file(record["task"]["id"], "variables").splitlines())
        self.assertRegex(variables["mesos_task_id"], r"^ct:\d{13}:0:soon:$")
        self.assertEqual(variables["CHRONOS_RESOURCE_MEM"], "64")
        self.assertTrue(variables["MESOS_SANDBOX"].endswith("sandbox"))
        job = self.job("soon")
        self.assertTrue(job["schedule"].startswith("R0/"))  # it stays, and is over
        self.assertNotEqual(job["lastSuccess"], "")
        (run,) = self.ask("GET", "/job/stat/soon", status=200)["taskStatHistory"]
        self.assertEqual((run["status"], run["taskId"]), ("Success", variables["mesos_task_id"]))

    def test_a_failed_run_is_tried_again_with_its_attempt(self):
        self.define("twice", 'echo "attempt $CHRONOS_JOB_RUN_ATTEMPT"; [ "$CHRONOS_JOB_RUN_ATTEMPT" = 1 ]',
                    schedule=in_seconds(0, runs="1"))
        self.wait_for_success("twice")
        records = self.runs("twice")
        self.assertEqual([record["state"] for record in records], ["failed", "finished"])
        self.assertEqual(self.daemon.output(records[1]["task"]["id"]), "attempt 1\n")
        self.assertEqual(self.job("twice")["errorCount"], 0)

    def test_a_job_runs_after_its_parents_and_now_with_arguments(self):
        self.define("parent", "echo")
        self.define("child", "echo after", parents=["parent"])
        self.assertEqual(self.ask("GET", "/graph/csv", status=200),
                         "node,child,fresh,idle\nnode,parent,fresh,idle\nlink,parent,child\n")
        self.ask("PUT", "/job/parent?arguments=with%20words")
        self.wait_for_success("child")
        (record,) = self.runs("parent")
        self.assertEqual(self.daemon.output(record["task"]["id"]), "with words\n")
        self.assertIn("node,child,success,idle", self.ask("GET", "/graph/csv", status=200))

    def test_runs_can_be_killed_and_marked_as_successful(self):
        self.define("long", "sleep 600")
        self.ask("PUT", "/job/long")
        drover.wait_for(lambda: self.ask("GET", "/jobs/summary", status=200)["jobs"][0]["state"] == "1 running",
                        "the run to be shown")
        drover.wait_for(lambda: self.runs("long")[0]["state"] == "running", "the run")
        self.ask("DELETE", "/task/kill/long")
        drover.wait_for(lambda: self.runs("long")[0]["state"] == "killed", "the run to end")
        self.assertEqual(self.ask("PUT", "/job/success/long", status=200), "marked job long as successful: true")
        self.assertEqual(self.job("long")["successCount"], 1)

    def test_a_time_limit_ends_a_run(self):
        self.define("slow", "sleep 600", maxCompletionTime=1, retries=0, schedule=in_seconds(0, runs="1"))
        drover.wait_for(lambda: self.job("slow")["errorCount"] == 1, "the run to fail")
        self.assertIn("time", self.runs("slow")[0]["reason"])

    def test_a_url_is_told_how_runs_end(self):
        with webhook(self.daemon, 503, 200) as (url, posted):  # who has no time at first is told again
            self.define("told", "exit 3", retries=0, schedule=in_seconds(0, runs="1"), notificationUrl=url)
            drover.wait_for(lambda: len(posted) == 2, "the URL to be told twice")
            self.ask("PUT", "/job/told")
            drover.wait_for(lambda: len(posted) == 3, "the URL to be told of the second run")
        path, headers, body = posted[1]
        self.assertEqual((path, headers["Content-Type"]), ("/runs?of=chronos", "application/json"))
        self.assertEqual(headers["Authorization"], "Basic " + base64.b64encode(b"teller:let-me in").decode())
        self.assertEqual((body, body["job"], body["outcome"]), (posted[0][2], "told", "failed"))
        self.assertEqual(body["subject"], "[Chronos] job 'told' failed!")
        self.assertIn("3", body["message"])
        self.assertNotEqual(posted[2][2]["taskId"], body["taskId"])
        self.assertNotIn("let-me", self.daemon.read_log())

    def test_a_machines_secrets_are_no_url(self):
        self.define("thief", "true", schedule=in_seconds(0, runs="1"), notificationUrl="http://169.254.169.254/latest/meta-data")
        drover.wait_for(lambda: "nobody may reach its address" in self.daemon.read_log(), "the log to say that nobody is told")

    def test_after_a_crash_nothing_runs_twice_and_nothing_is_lost(self):
        self.define("once", "echo run >> $MESOS_SANDBOX/../../../../once; sleep 2", schedule=in_seconds(1, runs="1"))
        drover.wait_for(lambda: self.runs("once"), "the run to start")
        for _ in range(3):
            self.daemon.kill()
            self.daemon.start()
        self.wait_for_success("once")
        time.sleep(0.5)
        self.assertEqual(len(self.runs("once")), 1)
        self.assertEqual(self.job("once")["successCount"], 1)

    def test_a_job_runs_as_cron_says_also_after_a_crash(self):
        self.define("minutely", "echo at $CHRONOS_JOB_RUN_TIME", schedule="*/1 * * * *", scheduleTimeZone="Asia/Kathmandu")
        self.define("nightly", "true", schedule="30 2 * * mon-fri", scheduleTimeZone="Europe/Berlin")
        self.daemon.kill()
        self.daemon.start()
        for _ in range(2):  # what is shown can be sent again, and is the same
            shown = self.job("nightly")
            self.assertEqual((shown["schedule"], shown["scheduleTimeZone"]), ("30 2 * * mon-fri", "Europe/Berlin"))
            self.ask("POST", "/iso8601", shown)
        table = self.daemon.cli("job", "ls").out
        self.assertRegex(table, r"(?m)^nightly +idle +never ran +20\d\d-\d\d-\d\dT0[01]:30:00\.000Z")
        plan = self.daemon.folder / "nightly.yaml"
        plan.write_text("name: nightly\ncommand: 'true'\nmem: 64\nschedule: 30 2 * * mon-fri\nscheduleTimeZone: Europe/Berlin\n")
        self.assertEqual(self.daemon.cli("apply", "--dry-run", plan).out, "nightly: unchanged\n")
        drover.wait_for(lambda: self.job("minutely")["successCount"] > 0, "the next minute", timeout=90)
        output = self.daemon.output(self.runs("minutely")[0]["task"]["id"])
        self.assertRegex(output, r"^at \d+\n$")
        self.assertEqual(int(output.split()[1]) % 60_000, 0)
        self.assertEqual(self.job("minutely")["schedule"], "*/1 * * * *")

    def test_cron_that_is_wrong_is_refused_by_its_field(self):
        for schedule, why in (("0 25 * * *", "the hour '25' is not between 0 and 23"), ("0 0 30 2 *", "it never comes true"),
                              ("0 0 2 * * *", "it has six fields"), ("@reboot", "is not a time")):
            refused = self.ask("POST", "/iso8601", {"name": "x", "command": "true", "schedule": schedule}, status=400)
            self.assertIn(f"Cannot parse schedule '{schedule}': ", refused["message"])
            self.assertIn(why, refused["message"])

    def test_a_user_sees_and_changes_only_his_own_jobs(self):
        self.define("mine", "id -u", uid=drover.NOBODY)
        self.define("roots", "true")
        names = [job["name"] for job in self.ask("GET", "/jobs", status=200, uid=drover.NOBODY)]
        self.assertEqual(names, ["mine"])
        self.ask("DELETE", "/job/roots", status=400, uid=drover.NOBODY)
        refused = self.ask("POST", "/iso8601", {"name": "x", "command": "id", "runAsUser": "root",
                                                "schedule": in_seconds(9)}, status=403, uid=drover.NOBODY)
        self.assertEqual(refused["status"], "Forbidden")
        self.ask("POST", "/iso8601", {"name": "roots", "command": "id", "schedule": in_seconds(9)}, status=403,
                 uid=drover.NOBODY)
        self.ask("PUT", "/job/mine")
        self.wait_for_success("mine")
        self.assertEqual(self.daemon.output(self.runs("mine")[0]["task"]["id"]), f"{drover.NOBODY}\n")

    def test_the_given_files_are_taken_unchanged(self):
        for path in sorted(DEFINITIONS.glob("chronos-*.json")):
            for prefix, endpoint in ((API, "/iso8601"), ("/scheduler", "/iso8601")):
                self.ask("POST", endpoint, path.read_text(), prefix=prefix)
            given = json.loads(path.read_text())
            shown = self.job(given["name"])
            for name in ("name", "command", "retries", "cpus", "mem", "gpus", "uris", "runAsUser", "container"):
                self.assertEqual(shown[name], given[name])
            self.assertRegex(shown["schedule"], r"^R/20\d\d-\d\d-\d\dT23:00:00\.000Z/PT24H$")
            self.assertGreater(shown["schedule"], time.strftime("R/%Y-%m-%d", time.gmtime(time.time() - 60)))

    def test_a_given_file_runs_in_its_image_with_its_gpu_and_its_script(self):
        self.give_shell_image("tensorflow/tensorflow", "latest-gpu")
        script = self.images / "gpu_demo.sh"
        script.write_text('echo "devices: $NVIDIA_VISIBLE_DEVICES"; echo "attempt: $CHRONOS_JOB_RUN_ATTEMPT"\n'
                          '[ "$CHRONOS_JOB_RUN_ATTEMPT" -ge 2 ]\n')
        job = json.loads((DEFINITIONS / "chronos-test-gpu-1.json").read_text())
        server = serving(self.daemon.listener(for_tasks=True), functools.partial(Handler, directory=self.images))
        address = self.enterContext(server)
        job["uris"] = [f"http://{address}/{script.name}"]  # as given, but for a server that tests reach
        self.ask("POST", "/iso8601", job)
        self.ask("PUT", "/job/test-gpu")
        self.wait_for_success("test-gpu")
        records = self.runs("test-gpu")
        self.assertEqual([record["state"] for record in records], ["failed", "failed", "finished"])
        self.assertEqual(self.daemon.output(records[2]["task"]["id"]),
                         f"devices: {records[2]['gpus'][0]}\nattempt: 2\n")
        self.assertIn("gpu_demo.sh", [entry["name"] for entry in self.daemon.api(
            "GET", f"/v1/tasks/{records[2]['task']['id']}/files/browse?path=")["files"]])


if __name__ == "__main__":
    unittest.main()
