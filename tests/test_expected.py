"""Thirty things that people who know nomad, Slurm, docker, kubectl or Marathon look for, each by the commands that they would type.

The numbers are those of the list. Not among them: 20 (shares that are enforced), 23 and 24 (a live view, a page), 28 (packages of
distributions), 29 (dashboards and mail) and 30 (roles and tokens), which Drover does not have yet.
"""

import json
import os
import signal
import socket
import subprocess
import tempfile
import unittest

import drover
import in_terminal

SLEEP = ("--", "sleep", "1000")


class ExpectedTest(drover.DaemonTest):
    arguments = ("--listen", "127.0.0.1:0")

    def tearDown(self):
        self.daemon.end_tasks()
        for record in self.daemon.tasks():
            self.daemon.request("DELETE", f"/v1/tasks/{record['task']['id']}")

    def ran(self, *words, status=0):
        ran = self.daemon.cli(*words)
        self.assertEqual(ran.status, status, ran)
        return ran

    def type(self, *words, **options):
        return self.ran(*words, **options).out

    def type_and_see(self, *words, sees, **options):
        ran = self.ran(*words, **options)
        seen = ran.out + ran.err
        for pattern in [sees] if isinstance(sees, str) else sees:
            self.assertRegex(seen, pattern)
        return seen

    def detached(self, *words):
        return self.type("run", "--detach", *words).strip()

    def running(self, *words):
        task = self.detached(*words)
        self.daemon.wait_until_running(task)
        return task

    def terminal(self, *words):
        return in_terminal.Terminal(self, self.daemon.cli_command(*words),
                                    env={**self.daemon.environment, "DROVER_SOCKET": str(self.daemon.socket)})

    def file(self, text, name="file.yaml"):
        folder = tempfile.mkdtemp(dir=self.daemon.folder)
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_01_the_first_start_says_where_it_serves_and_what_to_type(self):
        log = self.daemon.read_log()
        self.assertRegex(log, r"DROVER_HOST=http://127.0.0.1:\d+ DROVER_TOKEN=SECRET drover gpus")
        self.assertRegex(log, r"'drover( --socket \S+)? gpus' lists them")

    def test_02_a_file_to_begin_with_is_checked_and_planned(self):
        example = os.path.join(self.daemon.folder, "app.yaml")
        self.type("init", "app", example)
        self.type_and_see("validate", example, sees="is right")
        self.type_and_see("validate", self.file("id: /x\ncmd: sleep 1\ncpus: many\n"), sees=r":3:7: /cpus: expected a number", status=64)
        self.type_and_see("apply", "--dry-run", self.file("id: /x\ncmd: sleep 1\ngpus: 100\n"), sees="100 GPUs", status=64)
        self.type_and_see("plan", "--gpus", "2", sees="2 x NVIDIA A100.*joined by NV12")

    def test_03_one_line_runs_a_command(self):
        self.assertEqual(self.type("run", "--", "echo", "hello"), "hello\n")

    def test_04_one_file_holds_several_kinds(self):
        self.type_and_see("apply", self.file("id: /web\ncmd: sleep 1000\ncpus: 0.1\nmem: 32\n---\nname: nightly\ncommand: 'true'\nschedule: '0 2 * * *'\n"
                                             "---\nkind: task\nname: once\ncommand: [sleep, '1000']\n"), sees=["/web", "nightly", "once"])

    def test_05_what_happens_until_it_runs_is_shown(self):
        seen = self.terminal("run", "--gpus", "1", "--", "echo", "done").read_until("done")
        self.assertRegex(seen, r"[0-9a-f]{12}")

    def test_06_a_pull_has_a_time_of_its_own(self):
        self.type_and_see("run", "--pull-timeout", "soon", "--image", "x", "--", "true", sees="'soon' is not a duration", status=64)

    def test_07_logs(self):
        task = self.detached("--name", "talks", "--", "sh", "-c", "echo first; sleep 0.3; echo second >&2; sleep 0.3; echo third")
        self.daemon.wait_until_final(task)
        self.type_and_see("logs", "talks", sees="first")
        self.type_and_see("logs", "--timestamps", "--tail", "1", "talks", sees=r"20\d\d-\d\d-\d\dT\S+Z third")
        self.type_and_see("logs", "--since", "1h", "-n", "1", "talks", sees="third")
        self.assertEqual(self.type("logs", "--follow", "talks"), "first\nthird\n")

    def test_08_a_shell_in_a_task_whose_window_grows(self):
        talks = self.running("--", "sh", "-c", "while sleep 0.1; do echo tick; done")
        terminal = self.terminal("exec", "-it", talks, "sh")
        terminal.type("stty size\n")
        terminal.read_until("33 101")
        terminal.resize(35, 120)
        terminal.type("until stty size | grep 35.120; do sleep 0.1; done\n")  # it is told of in a moment
        terminal.read_until("35 120")
        terminal.type("exit 7\n")
        self.assertEqual(terminal.wait(), 7)
        again = self.terminal("attach", talks)
        again.read_until("tick")
        again.process.send_signal(signal.SIGINT)
        again.read_until("asking the task to stop")

    def test_09_the_files_of_a_task(self):
        task = self.detached("--fetch", self.file("x", "x"), "--", "sh", "-c", "mkdir out; echo 42 > out/result")
        self.daemon.wait_until_final(task)
        self.type_and_see("files", "ls", task, sees="out/")
        self.assertEqual(self.type("files", "cat", task, "out/result"), "42\n")
        self.type("files", "get", task, "out", "-o", os.path.join(self.daemon.folder, "out.tar"))

    def test_10_ports(self):
        task = self.running("--publish", "8000", "--", self.daemon.probe, "serve", "8000", "hello")
        self.type_and_see("show", task, sees=r"ports +\d+")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            here = free.getsockname()[1]
        process = subprocess.Popen(self.daemon.cli_command("forward", task, f"{here}:8000"), stdout=subprocess.PIPE, text=True,
                                   env={**self.daemon.environment, "DROVER_SOCKET": str(self.daemon.socket)})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertIn("leads to port 8000", process.stdout.readline())
        drover.wait_for(lambda: drover.served_at(here) == "hello", "the port to lead there")
        self.assertRegex(self.type("run", "--publish", "8000", "--", "env"), r"(?s)PORT0=\d+.*PORT_8000=\d+|PORT_8000=\d+.*PORT0=\d+")

    def test_11_volumes_and_files_that_are_fetched(self):
        data = self.file("data", "data.txt")
        self.assertEqual(self.type("run", "--volume", f"{os.path.dirname(data)}:data:ro", "--", "cat", "data/data.txt"), "data")
        self.assertEqual(self.type("run", "--fetch", data, "--", "cat", "data.txt"), "data")

    def test_12_arrays(self):
        array = self.detached("--array", "0-9%2", "--name", "sweep", "--", "sh", "-c", "echo n=$DROVER_ARRAY_INDEX")
        drover.wait_for(lambda: self.type("ps", "-aq", "--name", "sweep", "--state", "finished").count("\n") == 10, "the array to end")
        self.type_and_see("logs", array, sees="n=9")

    def test_13_one_after_the_other(self):
        first = self.detached("--", "sleep", "1")
        second = self.detached("--after", first, "--", "true")
        self.assertEqual(self.daemon.wait_until_final(second)["state"], "finished")

    def test_14_schedules_in_a_time_zone(self):
        job = self.file("name: tick\ncommand: 'true'\nschedule: '0 2 * * *'\nscheduleTimeZone: Europe/Berlin\n")
        self.type("apply", job)
        self.type_and_see("job", "ls", sees="tick")
        self.type_and_see("validate", self.file("name: t\ncommand: x\nschedule: '0 2 * * *'\nscheduleTimeZone: Europe/Berln\n"),
                          sees="did you mean 'Europe/Berlin'", status=64)

    def test_15_what_fails_is_tried_again_and_says_why(self):
        task = self.detached("--retries", "1", "--", "false")
        record = drover.wait_for(lambda: self.daemon.task(task).get("failures") and self.daemon.task(task), "the first failure")
        self.assertIn("exited with status 1", json.dumps(record))

    def test_16_an_end_by_time_and_by_idleness(self):
        self.type_and_see("run", "--timeout", "1s", *SLEEP, sees="its time of 1.0s was up", status=143)
        self.type("run", "--detach", "--gpus", "1", "--idle-timeout", "30m", *SLEEP)
        self.type("queue", "set", "lab", "--timeout", "8h", "--idle-timeout", "1h")
        self.addCleanup(self.type, "queue", "rm", "lab")
        self.type_and_see("run", "--queue", "lab", "--timeout", "9h", *SLEEP, sees="8h at most", status=64)

    def test_17_services_roll_and_go_back_and_pause(self):
        app = "id: /web\ncmd: sleep 1000\ncpus: 0.1\nmem: {}\ninstances: 2\n"
        self.type("apply", self.file(app.format(32)))
        self.type_and_see("apply", self.file(app.format(64)), sees="mem 32 → 64")
        self.type("app", "rollback", "web")
        self.type("app", "suspend", "web")
        self.type("app", "resume", "web")
        self.type_and_see("app", "ls", sees="/web +2/2")

    def test_18_why_it_waits_stands_in_the_list(self):
        self.running("--gpus", "1", *SLEEP)
        waits = self.detached("--gpus", "8", *SLEEP)
        self.type_and_see("ps", sees="8 GPUs are wanted and 7 of 8 are free")
        self.type_and_see("explain", waits, sees="what helps")

    def test_19_priorities_and_quotas(self):
        low = self.running("--gpus", "8", "--priority", "-10", *SLEEP)
        high = self.detached("--gpus", "8", *SLEEP)
        self.daemon.wait_until_running(high)
        self.type_and_see("explain", low, sees="preempted")
        self.type_and_see("quota", "set", "user:root", "--gpus", "7", sees="limit 7 GPUs")
        self.addCleanup(self.type, "quota", "rm", "user:root")

    def test_21_topology(self):
        self.type_and_see("topo", sees="NV12")
        self.type_and_see("plan", "--gpus", "2", sees="joined by NV12")

    def test_22_gangs(self):
        gang = self.type("run", "--gang", "2", "--gpus", "1", "--", "sh", "-c", "echo rank $RANK of $WORLD_SIZE")
        self.assertRegex(gang, r"rank [01] of 2")

    def test_25_scripts(self):
        self.assertRegex(self.type("ps", "--format", "{id}"), r"^$|^[0-9a-f]{12}\n")
        self.assertEqual(json.loads(self.type("gpus", "--format", "json"))["gpus"][0]["index"], 0)
        self.assertEqual(json.loads(self.ran("show", "nosuch", "--json", status=66).err)["error"]["kind"], "not_found")
        self.type("run", "--", "sh", "-c", "exit 42", status=42)

    def test_26_completion_and_suggestions(self):
        self.running("--name", "train", *SLEEP)
        self.assertIn("train\n", self.type("complete", "bash", "--", "stop", "tr"))
        self.assertIn("fragmentation\n", self.type("complete", "bash", "--", "serve", "--placement", ""))
        self.type_and_see("run", "--gpu-modle", "A100", "--", "true", sees="did you mean '--gpu-model'", status=64)
        self.type("cancel", "train")

    def test_27_manual_pages(self):
        pages = tempfile.mkdtemp(dir=self.daemon.folder)
        self.type("man-pages", pages)
        self.assertIn("drover-run.1", os.listdir(pages))
        self.assertGreater(len(os.listdir(pages)), 60)

    def test_29_metrics_and_events(self):
        self.type("run", "--", "true")
        status, _, text = self.daemon.request("GET", "/v1/metrics")
        self.assertEqual(status, 200)
        self.assertIn(b"drover_tasks", text)
        self.type_and_see("events", "--kind", "task_finished", "--since", "1h", "--format", "{kind}", sees="^task_finished\n")


if __name__ == "__main__":
    unittest.main()
