"""The replay of recorded jobs: known outcomes of a list that is small enough to work out by hand."""

import json
import pathlib
import tempfile
import unittest

import drover

PROGRAM = drover.BUILD / "bench/online"
COLUMNS = ("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
           "creation_time,deletion_time,scheduled_time")


class ReplayTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def replay(self, *pods):
        (self.folder / "openb_pod_list_few.csv").write_text("\n".join([COLUMNS, *pods, ""]))
        return drover.run([PROGRAM, "--data", self.folder, "--list", "few", "--nodes", "1", "--gpus", "2",
                           "--cpus", "8", "--memory", "64", "--json"])

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
