"""Accounts: who had how many GPU-hours, also over kills of the daemon and when the tasks are gone."""

import csv
import io
import json
import time

import drover

USER, OTHER = 12345, 12346  # nobody in particular


def report_of(daemon, query="", uid=None):
    return daemon.api("GET", f"/v1/report?since=2000-01-01T00:00:00Z{query}", uid=uid)


class ReportTest(drover.DaemonTest):
    def report(self, query="", uid=None):
        return report_of(self.daemon, query, uid)

    def finish(self, *command, **fields):
        task = self.daemon.submit(*command, **fields)
        self.daemon.wait_until_final(task)
        return task

    def test_it_outlives_the_tasks_and_the_daemon(self):
        before = self.report("&by=user")["total"]
        began = time.monotonic()
        task = self.finish("sleep", 2, gpus=2)
        most = time.monotonic() - began
        failed = self.finish("exit", 3, gpus=1)
        after = self.report("&by=user")["total"]
        held = after["gpu_seconds_held"] - before["gpu_seconds_held"]
        self.assertGreaterEqual(held, 2 * 2)
        self.assertLessEqual(held, 2 * most + 1 * drover.PATIENCE)
        self.assertEqual(after["failures"].get("exit", 0) - before["failures"].get("exit", 0), 1)
        self.assertGreaterEqual(after["waits"]["tasks"] - before["waits"]["tasks"], 2)
        for each in (task, failed):
            self.assertEqual(self.daemon.cli("rm", each).status, 0)
        self.daemon.kill()
        self.daemon.start()
        again = self.report("&by=user")
        self.assertEqual(again["total"]["gpu_seconds_held"], after["gpu_seconds_held"])
        self.assertEqual(again["total"]["ended"], after["ended"])
        self.assertIn("root", [row["user"] for row in again["rows"]])

    def test_what_the_gpus_did_is_told_beside_what_was_held(self):
        self.daemon.set_faults({gpu["uuid"]: {"utilization": {"gpu": 50}} for gpu in self.daemon.api("GET", "/v1/gpus")["gpus"]})
        self.addCleanup(self.daemon.set_faults, {})
        before = self.report()["total"]
        self.finish("sleep", 5, gpus=2)
        after = self.report()["total"]
        used = after["gpu_seconds_used"] - before.get("gpu_seconds_used", 0)
        self.assertGreater(used, 1)
        self.assertLess(used, (after["gpu_seconds_held"] - before["gpu_seconds_held"]) * 0.7)

    def test_what_runs_counts_until_now_and_what_was_killed_with_the_daemon_counts_once(self):
        before = self.report()["total"]
        task = self.daemon.submit("sleep", 1000, gpus=1)
        self.daemon.wait_until_running(task)
        first = self.report()["total"]
        time.sleep(1)
        second = self.report()["total"]
        self.assertEqual(second["running"], before["running"] + 1)
        self.assertGreaterEqual(second["gpu_seconds_held"] - first["gpu_seconds_held"], 0.9)
        for _ in range(5):
            self.daemon.kill()
            self.daemon.start()
        self.daemon.end_task(task)
        self.daemon.kill()
        self.daemon.start()
        end = self.report()["total"]
        self.assertEqual(sum(end["ended"].values()) - sum(before["ended"].values()), 1)
        self.assertEqual(end["running"], before["running"])
        self.assertGreaterEqual(end["gpu_seconds_held"], second["gpu_seconds_held"])

    def test_everybody_sees_his_own(self):
        self.daemon.api("GET", "/v1/tasks")
        task = self.daemon.submit("exit", 0, uid=USER, gpus=1)
        self.daemon.wait_until_final(task)
        own = self.report(uid=USER)
        self.assertEqual(len(own["rows"]), 1)
        self.assertEqual(own["total"]["ended"], {"finished": 1})
        self.assertEqual(self.report(uid=OTHER)["rows"], [])
        self.assertEqual(self.report("&by=gpu", uid=OTHER)["rows"], [])
        self.assertIn(own["rows"][0]["user"], {row["user"] for row in self.report()["rows"]})

    def test_by_gpu_and_by_queue(self):
        gpus = {gpu["uuid"] for gpu in self.daemon.api("GET", "/v1/gpus")["gpus"]}
        self.finish("exit", 0, gpus=2)
        by_gpu = self.report("&by=gpu")
        self.assertLessEqual({row["gpu"] for row in by_gpu["rows"]}, gpus)
        self.assertGreaterEqual(len(by_gpu["rows"]), 2)
        self.assertAlmostEqual(sum(row["gpu_seconds_held"] for row in by_gpu["rows"]), by_gpu["total"]["gpu_seconds_held"], 3)
        self.assertIn("default", {row["queue"] for row in self.report("&by=queue")["rows"]})

    def test_what_is_wrong_with_a_request(self):
        for query, word in (("by=node", "user, queue and gpu"), ("since=soon", "since"), ("until=2000-01-01T00:00:00Z&since=2001-01-01T00:00:00Z", "before"),
                            ("sort=x", "sort")):
            status, _, body = self.daemon.request("GET", f"/v1/report?{query}")
            self.assertEqual(status, 400, query)
            self.assertIn(word, body.decode(), query)

    def test_the_command(self):
        self.finish("exit", 3, gpus=1)
        shown = self.daemon.cli("report", "--since", "1h")
        self.assertEqual(shown.status, 0, shown)
        self.assertRegex(shown.out, r"(?m)^USER +GPU-HOURS +USED ")
        self.assertRegex(shown.out, r"(?m)^root +\d+\.\d\d +(-|\d+\.\d\d) ")
        self.assertRegex(shown.out, r"(?m)^total ")
        self.assertRegex(shown.out, r"(?m)^Failures: .*\d+ exit")
        rows = list(csv.DictReader(io.StringIO(self.daemon.cli("report", "--csv").out)))
        own = {row["user"]: row for row in rows}["root"]
        self.assertGreaterEqual(int(own["tasks_started"]), 1)
        self.assertIn("exit", own["failures"])
        whole = json.loads(self.daemon.cli("report", "--json", "--by", "gpu").out)
        self.assertEqual(whole["by"], "gpu")
        self.assertEqual(self.daemon.cli("report", "--format", "{user}").out.split()[-1], "total")
        self.assert_one_sentence(self.daemon.cli("report", "--csv", "--json"), "--csv")
        self.assert_one_sentence(self.daemon.cli("report", "--since", "soon"), "--since", "soon")
