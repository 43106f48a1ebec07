"""Lists that people live in: `drover ps` and its choices, `drover show`, names that repeat, and the logs of several tasks."""

import json
import re
import unittest

import drover
import in_terminal

WIDE = "\u8a13\u7df4" * 20  # each letter takes two columns


def columns_of(line):
    """How wide a line of these tests is on a terminal."""
    return sum(2 if "\u2e80" <= letter <= "\uffff" else 1 for letter in line)


class ListsTest(drover.DaemonTest):
    def tearDown(self):
        self.daemon.end_tasks()
        for record in self.daemon.tasks():
            self.daemon.request("DELETE", f"/v1/tasks/{record['task']['id']}")

    def listed(self, *words):
        ran = self.daemon.cli("ps", "-q", *words)
        self.assertEqual(ran.status, 0, ran)
        return ran.out.split()

    def submit(self, *command, wait=True, **fields):
        task = self.daemon.submit(*command, **fields)
        if wait:
            self.daemon.wait_until_final(task)
        return task

    def test_a_program_reads_what_went_wrong_and_by_what_a_task_ended(self):
        for words, kind in ((["show", "--json", "nosuch"], "not_found"), (["ps", "--json", "--state", "sad"], "invalid")):
            ran = self.daemon.cli(*words)
            error = json.loads(ran.err)["error"]
            self.assertEqual(error["kind"], kind)
            self.assertTrue(error["message"], error)
        self.assertTrue(self.daemon.cli("show", "nosuch").err.startswith("drover: "))

        bad, killed = self.submit("exit", 3), self.submit("crash")
        slow = self.submit("sleep", 100, timeout="1s")
        stopped = self.submit("sleep", 100, wait=False)
        self.daemon.wait_until_running(stopped)
        self.daemon.stop_task(stopped, force=True)
        self.daemon.wait_until_final(stopped)
        missing = self.submit(command=["/no/such/program"])
        fine = self.submit("exit", 0)
        causes = {record["task"]["id"]: record.get("cause") for record in self.daemon.tasks()}
        self.assertEqual([causes[task] for task in (bad, killed, slow, stopped, missing, fine)],
                         ["exit", "signal", "time_limit", "stopped", "not_started", None])
        shown = self.daemon.cli("ps", "-a", "--format", "id,cause", "--no-header").out
        self.assertIn([slow, "time_limit"], [line.split() for line in shown.splitlines()])

    def test_a_script_has_lists_in_its_own_form(self):
        task = self.submit("sleep", 100, gpus=2, wait=False, name="train")
        self.daemon.wait_until_running(task)
        for words, out in (
                (["ps", "--format", "{id} is {state}"], f"{task} is running\n"),
                (["ps", "--format", r"{{.ID}}\t{{ .Name }}"], f"{task}\ttrain\n"),
                (["ps", "--format", r"table {{.Name}}\t{{.State}}"], "NAME   STATE\ntrain  running\n"),
                (["inspect", task, "--format", "{state} {task.name} {task.gpus} {nothing}"], "running train 2 \n"),
                (["inspect", "-f", "{{.state}}", task], "running\n"),
                (["gpus", "--format", "{gpu}:{used-by}"], f"0:root {task}\n1:root {task}\n" + "".join(f"{gpu}:-\n" for gpu in range(2, 8))),
                (["queue", "--format", "queue,users", "--no-header"], "default  all\n"),
                (["node", "--format", "{gpus-free}"], "6 of 8 (simulated)\n"),
                (["image", "ls", "--format", "name"], "NAME\n"),
                (["app", "ls", "--format", "{app}"], ""),
                (["job", "ls", "--no-header"], ""),
                (["quota", "--format", "whose,limit", "--no-header"], "")):
            ran = self.daemon.cli(*words)
            self.assertEqual((ran.status, ran.out), (0, out), ran)
        self.assertEqual(json.loads(self.daemon.cli("ps", "-o", "json").out)["tasks"][0]["task"]["id"], task)
        for words, told in ((["gpus", "--format", "usedby"], "there are gpu, model"), (["ps", "--format", "{id"], "has a '{' without its '}'"),
                            (["ps", "--format", "{{json .}}"], "where a name should be"), (["ps", "--format", "{nme}"], "there are id, name")):
            ran = self.daemon.cli(*words)
            self.assertEqual(ran.status, 64, ran)
            self.assertIn(told, ran.err)

    def test_until_when_an_ended_task_is_kept(self):
        task = self.submit("exit", 0)
        self.assertRegex(self.daemon.cli("show", task).out, r"kept until +\S+, in 6d 23h")
        self.assertNotIn("kept until", self.daemon.cli("show", self.submit("sleep", 100, wait=False)).out)
        self.daemon.stop()
        self.daemon.arguments += ["--keep-ended", "10m"]
        self.daemon.start()
        self.addCleanup(self.daemon.arguments.__delitem__, slice(-2, None))
        self.assertRegex(self.daemon.cli("show", task).out, r"kept until +\S+, in 9m")
        refused = drover.run([drover.BINARY, "serve", "--keep-ended", "1m"])
        self.assertEqual(refused.status, 64, refused)
        self.assertIn("10m at least", refused.err)

    def test_choices(self):
        good = self.submit("exit", 0, name="good", labels={"team": "vision"})
        bad = self.submit("exit", 3, name="bad-one")
        runs = self.submit("sleep", 1000, name="good", uid=drover.NOBODY, wait=False)
        self.daemon.wait_until_running(runs)
        user = self.daemon.task(runs)["task"]["user"]["name"]
        self.assertEqual(self.listed(), [runs])
        self.assertEqual(self.listed("-a"), [good, bad, runs])
        self.assertEqual(self.listed("--state", "failed"), [bad])
        self.assertEqual(self.listed("--state", "ended,running"), [good, bad, runs])
        self.assertEqual(self.listed("-a", "--user", user), [runs])
        self.assertEqual(self.listed("-a", "--label", "team"), [good])
        self.assertEqual(self.listed("-a", "--label", "team=sound"), [])
        self.assertEqual(self.listed("-a", "--name", "bad*"), [bad])
        self.assertEqual(self.listed("-a", "--queue", "default"), [good, bad, runs])
        self.assertEqual(self.listed("-a", "--queue", "def"), [])
        self.assertEqual(self.listed("-n", "2"), [bad, runs])
        self.assertEqual(self.listed("-a", "--since", "1h"), [good, bad, runs])
        for time in ("2099-01-01", "2099-01-01T10:00Z", "2099-01-01 10:00:00", "2099-01-01T00:00:00.000Z"):
            self.assertEqual(self.listed("-a", "--since", time), [])
        self.assertEqual(self.listed("-a", "--sort", "name"), [bad, good, runs])
        self.assertEqual(self.listed("-a", "--sort", "-exit")[0], bad)
        shown = self.daemon.cli("ps", "-a", "--format", "name,exit,labels", "--sort", "exit", "--no-header")
        self.assertEqual([line.split() for line in shown.out.splitlines()],
                         [["good", "-", "-"], ["good", "0", "team=vision"], ["bad-one", "3", "-"]])
        as_json = json.loads(self.daemon.cli("ps", "--json", "--state", "failed").out)
        self.assertEqual([record["task"]["id"] for record in as_json["tasks"]], [bad])

    def test_what_makes_no_sense_is_refused(self):
        for words, said in ((("--state", "broken"), "there are queued"), (("--since", "yesterday"), "2h"),
                            (("--sort", "colour"), "there are id"), (("--format", "id,nme"), "there are id")):
            ran = self.daemon.cli("ps", *words)
            self.assertEqual(ran.status, 64, ran)
            self.assert_one_sentence(ran, said)

    def test_a_narrow_terminal(self):
        self.submit("exit", 3, name="n" * 100)
        task = self.submit("exit", 3, name=WIDE)
        terminal = in_terminal.Terminal(self, self.daemon.cli_command("ps", "-a"), columns=80,
                                        env={**self.daemon.environment, "DROVER_SOCKET": str(self.daemon.socket)})
        terminal.wait()
        lines = re.sub("\x1b[^m]*m", "", terminal.read_until(task)).splitlines()
        self.assertTrue(all(columns_of(line) <= 80 for line in lines), lines)
        self.assertIn("\u2026", "".join(lines))
        self.assertIn(task, "".join(lines))  # whole: it is copied
        wide = self.daemon.cli("ps", "-a")  # for programs nothing is cut, and nothing has a colour
        self.assertIn(WIDE, wide.out)
        self.assertNotIn("\x1b", wide.out)

    def test_a_list_that_is_watched(self):
        terminal = in_terminal.Terminal(self, self.daemon.cli_command("ps", "--watch"),
                                        env={**self.daemon.environment, "DROVER_SOCKET": str(self.daemon.socket)})
        terminal.read_until("STATUS")
        self.submit("sleep", 1000, name="comes-later", wait=False)
        self.assertIn("\x1b[32mrunning", terminal.read_until("comes-later") + terminal.read_until("running"))
        terminal.type("\x03")

    def test_a_page_of_a_task(self):
        task = self.submit("exit", 3, name="page", gpus=2, labels={"team": "vision"})
        page = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in self.daemon.cli("show", "page").out.splitlines())
        self.assertEqual((page["task"], page["state"], page["labels"]), (task, "failed", "team=vision"))
        self.assertRegex(page["GPUs"], r"^\d,\d \(NVIDIA A100.*\)$")
        self.assertRegex(page["ended"], r"^20\d\d-.*Z, .* ago$")
        self.assertIn("ran for", page)
        self.assertEqual(json.loads(self.daemon.cli("show", "--json", "page").out)["task"]["id"], task)

    # Names that repeat

    def test_a_name_means_the_newest(self):
        first = self.submit("say", "first", name="train")
        second = self.submit("say", "second", name="train")
        self.assertEqual(self.daemon.cli("logs", "train").out, "second\n")
        third = self.submit("say", "third", ",", "sleep", 1000, name="train", wait=False)
        self.daemon.wait_for_output(third, "third")
        self.assertEqual(self.daemon.cli("logs", "train").out, "third\n")
        self.assertEqual(self.daemon.cli("stop", "train").status, 0)
        self.daemon.wait_until_final(third)
        self.assertEqual(self.daemon.cli("rm", "train").status, 0)
        self.assertEqual(self.listed("-a"), [first, second])

    def test_the_beginning_of_several_ids_means_none(self):
        self.submit("exit", 0, name="a")
        gang = self.daemon.api("POST", "/v1/tasks", {"command": [str(self.daemon.probe), "exit", "0"], "gang": {"size": 2}, "name": "g"})
        ran = self.daemon.cli("inspect", gang["gang"])
        self.assertEqual(ran.status, 64)
        self.assertIn(gang["tasks"][1]["task"]["id"], ran.err)
        self.assertRegex(ran.err, r"\(g, \w+\)")

    # Logs of several

    def test_of_a_gang(self):
        body = {"command": ["sh", "-c", "echo rank $RANK; echo wrong $RANK >&2"], "gang": {"size": 3}, "name": "crew", "cpus": 0.1}
        gang = self.daemon.api("POST", "/v1/tasks", body)
        for record in gang["tasks"]:
            self.daemon.wait_until_final(record["task"]["id"])
        expected = [f"[{rank}] rank {rank}" for rank in range(3)]
        for name in ("crew", gang["gang"]):
            ran = self.daemon.cli("logs", name)
            self.assertEqual((ran.out.splitlines(), len(ran.err.splitlines())), (expected, 3), ran)
        self.assertEqual(sorted(self.daemon.cli("logs", "-f", "crew", "--stdout").out.splitlines()), expected)
        self.assertEqual(self.daemon.cli("logs", gang["tasks"][1]["task"]["id"]).out, "rank 1\n")

    def test_of_an_app_and_of_a_job(self):
        self.daemon.api("POST", "/v2/apps", {"id": "/shop/web", "cmd": "echo up; exec sleep 1000", "instances": 2, "cpus": 0.1, "mem": 32})
        self.addCleanup(self.daemon.remove_definitions)
        drover.wait_for(lambda: self.daemon.cli("logs", "/shop/web").out == "[0] up\n[1] up\n", "both instances to say that they are up")
        instance = self.daemon.api("GET", "/v2/apps//shop/web/tasks")["tasks"][0]["id"]
        self.assertEqual(self.daemon.cli("logs", instance).out, "up\n")  # as `app show` has it
        self.daemon.request("POST", "/v1/scheduler/iso8601", {"name": "tick", "command": "echo tock", "schedule": "R1//PT1H", "mem": 32})
        drover.wait_for(lambda: self.daemon.cli("logs", "tick").out == "tock\n", "the run to have said so")


if __name__ == "__main__":
    unittest.main()
