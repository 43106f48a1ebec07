"""The placement benchmark: Drover's choices are the best ones, and a file of machines that is wrong is refused."""

import json
import pathlib
import tempfile
import unittest

import drover

PROGRAM = drover.BUILD / "bench/placement"
SHIPPED = drover.ROOT / "bench/data/topologies.json"
PAIR = [[0, 2], [2, 0]]


def bench(*arguments):
    return drover.run([PROGRAM, *arguments], timeout=500)


class RegretTest(unittest.TestCase):
    def check_that_all_is_best(self, ran):
        self.assertEqual(ran.status, 0, ran)
        measured = json.loads(ran.out)["regret"]
        for machine in measured:
            with self.subTest(machine=machine["topology"]):
                self.assertGreater(machine["choices"], 0)
                for loss in ("worse", "different", "aggregate_lost_percent", "weakest_lost", "left_lost"):
                    self.assertEqual(machine["drover"][loss], 0)
        return {machine["topology"]: machine for machine in measured}

    def test_every_choice_on_real_machines_is_the_best(self):
        machines = self.check_that_all_is_best(bench("--only", "regret", "--no-made-up", "--json"))
        self.assertEqual(set(machines), set(json.loads(SHIPPED.read_text())))
        # Every free set but the empty one, and every number of GPUs of each.
        self.assertEqual((machines["dgx2_v100_16"]["free_sets"], machines["dgx2_v100_16"]["choices"]), (65535, 524288))
        # The comparison can tell: the lowest indices are not good on a cube mesh.
        self.assertGreater(machines["dgx1_v100"]["lowest"]["worse"], 100)

    def test_every_choice_on_made_up_machines_is_the_best(self):
        machines = self.check_that_all_is_best(bench("--only", "regret", "--most-gpus", "8", "--seed", "3", "--json"))
        self.assertIn("disagreeing_pairs8", machines)
        self.assertIn("random8_60percent", machines)

    def test_any_file_of_machines_is_taken(self):
        links = [[0 if a == b else (a * b + a + b) % 5 for b in range(18)] for a in range(18)]
        machines = {"large": {"links": links, "numa": [gpu % 9 for gpu in range(18)], "unit": "NVLinks"}}
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "mine.json")
            file.write_text(json.dumps(machines))
            ran = bench("--topologies", file, "--no-made-up", "--samples", "1", "--json")
        self.assertFalse(self.check_that_all_is_best(ran)["large"]["exhaustive"])
        self.assertEqual([row["count"] for row in json.loads(ran.out)["latency"][0]["counts"]], [1, 2, 4, 8, 16])


class GangTest(unittest.TestCase):
    def test_gangs_are_placed_or_not_in_every_arrangement(self):
        ran = bench("--only", "gang", "--json")
        self.assertEqual(ran.status, 0, ran)
        rows = json.loads(ran.out)["gang"]
        self.assertEqual({row["arrangement"] for row in rows}, {"pack", "spread", "any"})
        for row in rows:
            self.assertEqual(row["placed"], "too many" not in row["gang"] and "does not" not in row["gang"], row)


class ChurnTest(unittest.TestCase):
    def test_every_policy_is_measured(self):
        for policy in ("pack", "spread", "fragmentation"):
            ran = bench("--only", "churn", "--policy", policy, "--nodes", "30", "--decisions", "300", "--json")
            self.assertEqual(ran.status, 0, ran)
            row, = json.loads(ran.out)["churn"]
            self.assertEqual((row["nodes"], row["policy"]), (30, policy))
            self.assertGreater(row["decisions_per_second"], 0)


class MalformedFileTest(unittest.TestCase):
    def refusal(self, text):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "wrong.json")
            file.write_text(text)
            ran = bench("--topologies", file)
        self.assertEqual((ran.status, ran.out), (2, ""), ran)
        return ran.err

    def test_each_mistake_is_said(self):
        for machine, said in (
            ({}, "'links' is no matrix"),
            ({"links": []}, "'links' is no matrix"),
            ({"links": 3}, "'links' is no matrix"),
            ([], "not an object"),
            ({"links": [[0, 1]]}, "not square"),
            ({"links": [[0, 1], 1]}, "not square"),
            ({"links": [[0, 1], [2, 0]]}, "not symmetric: 1 from GPU 0 to 1, and 2 back"),
            ({"links": [[0, -1], [-1, 0]]}, "'-1' between GPUs 0 and 1 is no number of NVLinks"),
            ({"links": [[0, 1.5], [1.5, 0]]}, "is no number of NVLinks"),
            ({"links": [[0, "2"], ["2", 0]]}, "is no number of NVLinks"),
            ({"links": [[0, 10 ** 30], [10 ** 30, 0]]}, "is no number of NVLinks"),
            ({"links": [[1]]}, "GPU 0 has NVLinks to itself"),
            ({"links": [[0] * 65] * 65}, "it has 65 GPUs"),
            ({"links": PAIR, "numa": [0]}, "one NUMA node for each GPU"),
            ({"links": PAIR, "numa": [0, -1]}, "'-1' is no NUMA node"),
        ):
            with self.subTest(machine=str(machine)[:60]):
                said_really = self.refusal(json.dumps({"good": {"links": PAIR}, "bad": machine}))
                self.assertIn(said, said_really)
                self.assertIn("'bad'", said_really)

    def test_a_file_that_is_no_list_of_machines_is_refused(self):
        self.assertIn("no topologies", self.refusal("{}"))
        self.assertIn("no topologies", self.refusal("[]"))
        self.assertIn("line", self.refusal('{"a": '))
        ran = bench("--topologies", "/not/there.json")
        self.assertEqual(ran.status, 2, ran)
        self.assertIn("/not/there.json", ran.err)


if __name__ == "__main__":
    unittest.main()
