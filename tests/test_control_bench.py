"""The benchmark of the control plane, in small: every answer has what is there, and every follower hears of everything."""

import json
import unittest

import drover

PROGRAM = drover.BUILD / "bench/control"
APPS, INSTANCES, JOBS = 12, 3, 10


def bench(*arguments):
    return drover.run([PROGRAM, *arguments], timeout=300)


class ControlBenchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ran = bench("--apps", str(APPS), "--instances", str(INSTANCES), "--jobs", str(JOBS), "--rounds", "3",
                        "--followers", "5", "--events", "60", "--drover", drover.BINARY, "--json")
        assert cls.ran.status == 0, cls.ran
        cls.measured = json.loads(cls.ran.out)

    def rows(self, part):
        return {row["what"]: row for row in self.measured[part]}

    def test_every_answer_has_all_that_is_there(self):
        rows = self.rows("reads")
        for what, items in (
            ("`GET /v2/apps`", APPS),
            ("`GET /v2/apps?embed=apps.tasks`", APPS),
            ("`GET /v2/tasks`", APPS * INSTANCES),
            ("`GET /v2/deployments`", 0),
            ("`GET /v2/queue`", 0),
            ("`GET /v2/groups`", APPS),
            ("`GET /v1/tasks?active=true&summary=true`", APPS * INSTANCES),
            ("`GET /v1/tasks`", APPS * INSTANCES),
            ("`GET /v1/scheduler/jobs`", JOBS),
            ("`GET /v1/scheduler/jobs/summary`", JOBS),
            ("`GET /state`", APPS * INSTANCES),
            ("`GET /tasks?limit=100000`", APPS * INSTANCES),
            ("`GET /slave(1)/state`", APPS * INSTANCES),
            ("`GET /containers`", APPS * INSTANCES),
            ("`POST /api/v1`, GET_STATE", APPS * INSTANCES),
        ):
            with self.subTest(what=what):
                self.assertEqual(rows[what]["items"], items)
                self.assertEqual(rows[what]["rounds"], 3)
                self.assertGreaterEqual(rows[what]["bytes"], 2)
                self.assertGreater(rows[what]["floor_median_ms"], 0)
        self.assertGreater(rows["`GET /v2/apps?embed=apps.tasks`"]["bytes"],
                           rows["`GET /v2/apps`"]["bytes"] + rows["`GET /v2/tasks`"]["bytes"] // 2)
        self.assertLess(rows["`GET /v1/tasks?active=true&summary=true`"]["bytes"], rows["`GET /v1/tasks`"]["bytes"] // 2)

    def test_what_others_wait_for_is_measured(self):
        rows = {row["list"]: row for row in self.measured["neighbours"]}
        self.assertIn("/state", rows)
        for what, row in rows.items():
            with self.subTest(list=what):
                self.assertGreaterEqual(row["rounds"], 3)
                self.assertGreaterEqual(row["longest_ms"], row["median_ms"])
                self.assertEqual(row["lists"] > 0, what != "")

    def test_commands_and_changes_are_measured(self):
        self.assertEqual(len(self.measured["commands"]), 3)
        self.assertEqual({row["rounds"] for row in self.measured["changes"]}, {3})
        self.assertEqual(self.rows("fill")["an instance is found well for the first time"]["rounds"], APPS * INSTANCES)

    def test_every_follower_hears_of_everything(self):
        marathon, stalled, own = self.measured["streams"]
        for row in marathon, own:
            with self.subTest(stream=row["stream"]):
                self.assertEqual((row["followers"], row["events"], row["fewest"], row["gone"]), (5, 60, 60, 0))
        self.assertEqual((stalled["followers"], stalled["events"]), (5, 60))


class WrongUseTest(unittest.TestCase):
    def test_is_refused(self):
        for arguments in (["--apps", "0"], ["--only", "nothing"], ["--drover", "/not/there"]):
            with self.subTest(arguments=arguments):
                ran = bench(*arguments)
                self.assertEqual((ran.status, ran.out), (2, ""), ran)


if __name__ == "__main__":
    unittest.main()
