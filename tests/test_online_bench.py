"""The replay of recorded jobs: known outcomes of a list that is small enough to work out by hand."""

import json
import math
import pathlib
import random
import tempfile
import unittest

import drover

PROGRAM = drover.BUILD / "bench/online"
COLUMNS = ("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
           "creation_time,deletion_time,scheduled_time")


def naive(pods, gpus, order, strict):
    """Starts of pods (arrival, duration, GPUs) on one machine, second by second: the plainest replay there is."""
    starts, now = {}, 0
    while len(starts) < len(pods):
        free = gpus - sum(pods[i][2] for i, start in starts.items() if start + pods[i][1] > now)
        waiting = [i for i, pod in enumerate(pods) if pod[0] <= now and i not in starts]
        for i in sorted(waiting, key=lambda i: order(i, pods[i])):
            if pods[i][2] <= free:
                starts[i] = now
                free -= pods[i][2]
            elif strict:
                break
        now += 1
    return [starts[i] for i in range(len(pods))]


def in_turn(position, _):
    return position


def shortest(position, pod):
    return pod[1], position


class ReplayTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def replay(self, *pods, gpus=2):
        (self.folder / "openb_pod_list_few.csv").write_text("\n".join([COLUMNS, *pods, ""]))
        return drover.run([PROGRAM, "--data", self.folder, "--list", "few", "--nodes", "1", "--gpus", str(gpus),
                           "--cpus", "100", "--memory", "1000", "--json"])

    def test_disciplines_differ_where_they_should(self):
        # The first holds one GPU of two for 100 s, the second wants both at 10 s, the third one for 30 s at 20 s.
        ran = self.replay("a,1000,1024,1,1000,,LS,Succeeded,0,100,0",
                          "b,1000,1024,2,1000,,LS,Succeeded,10,250,200",
                          "c,1000,1024,1,1000,,LS,Succeeded,20,330,300",
                          "never,1000,1024,1,1000,,LS,Pending,20,,")
        self.assertEqual(ran.status, 0, ran)
        measured = json.loads(ran.out)
        self.assertEqual(measured["jobs"], 3)
        mean = {row["discipline"]: row["completion_mean_s"] for row in measured["rows"]}
        overtaken, in_turn = (100 + 140 + 30) / 3, (100 + 140 + 160) / 3
        self.assertAlmostEqual(mean["first come, first served"], in_turn)
        self.assertAlmostEqual(mean["whoever fits"], overtaken)
        self.assertAlmostEqual(mean["Drover's queue"], in_turn)  # the third might run for ever
        self.assertAlmostEqual(mean["Drover's queue, time limits known"], overtaken)
        self.assertAlmostEqual(mean["shortest first (oracle)"], overtaken)

    def test_the_plainest_computation_gives_the_same(self):
        dice = random.Random(3)
        for _ in range(5):
            pods = sorted((dice.randrange(400), dice.randrange(1, 60) * dice.choice([1, 1, 1, 10]), dice.randrange(1, 5))
                          for _ in range(60))
            ran = self.replay(*(f"p{i:02},1000,1024,{gpus},1000,,LS,Succeeded,{arrival},{9000 + duration},9000"
                                for i, (arrival, duration, gpus) in enumerate(pods)), gpus=4)
            self.assertEqual(ran.status, 0, ran)
            rows = {row["discipline"]: row for row in json.loads(ran.out)["rows"]}
            for name, order, strict in (("first come, first served", in_turn, True), ("whoever fits", in_turn, False),
                                        ("shortest first (oracle)", shortest, False)):
                with self.subTest(name):
                    self.check(rows[name], pods, naive(pods, 4, order, strict))
            for row in rows.values():
                self.assertLessEqual(row["gpu_use"], 1)

    def check(self, row, pods, starts):
        waits = sorted(start - pod[0] for start, pod in zip(starts, pods))
        self.assertAlmostEqual(row["wait_mean_s"], sum(waits) / len(waits))
        self.assertAlmostEqual(row["completion_mean_s"], (sum(waits) + sum(pod[1] for pod in pods)) / len(pods))
        self.assertEqual(row["wait_p99_s"], waits[math.ceil(0.99 * len(waits)) - 1])
        self.assertEqual(row["wait_p50_s"], waits[math.ceil(0.5 * len(waits)) - 1])
        self.assertEqual(row["wait_max_s"], waits[-1])
        first, last = pods[0][0], pods[-1][0]
        held = sum(max(0, min(start + pod[1], last) - start) * pod[2] for start, pod in zip(starts, pods))
        self.assertAlmostEqual(row["gpu_use"], held / (4 * (last - first)))

    def test_help_names_the_options(self):
        ran = drover.run([PROGRAM, "--help"])
        self.assertEqual(ran.status, 0, ran)
        for option in ("--data", "--list", "--nodes", "--gpus", "--json"):
            self.assertIn(option, ran.out)

    def test_a_wrong_time_is_refused_with_its_line_and_column(self):
        ran = self.replay("a,1000,1024,1,1000,,LS,Succeeded,0,100,200")
        self.assertEqual(ran.status, 2, ran)
        self.assertIn("line 2, column 'deletion_time'", ran.err)

    def test_a_list_without_times_is_refused(self):
        (self.folder / "openb_pod_list_few.csv").write_text("name,cpu_milli\na,1\n")
        ran = drover.run([PROGRAM, "--data", self.folder, "--list", "few"])
        self.assertEqual(ran.status, 2, ran)
        self.assertIn("'scheduled_time'", ran.err)


if __name__ == "__main__":
    unittest.main()
