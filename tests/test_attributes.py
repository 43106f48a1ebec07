"""What a machine says of itself, and work that asks for it."""

import os
import unittest

import drover


class AttributesTest(drover.DaemonTest):
    profile = "k80"
    arguments = ("--attribute", "rack=r7", "--attribute", "rack=old-r1", "--placement", "spread")

    def tearDown(self):
        self.daemon.end_tasks()

    def test_work_goes_where_what_it_asks_for_is(self):
        for constraints in ({"rack": "r7"}, {"rack": ["r1", "old-r1"]}, {"cpu_arch": os.uname().machine},
                            {"gpu_model": "Tesla K80", "rack": "r7"}):
            with self.subTest(constraints=constraints):
                task = self.daemon.submit("exit", 0, constraints=constraints)
                self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished")

    def test_what_no_machine_has_is_refused_by_name(self):
        for constraints in ({"rack": "r8"}, {"site": "north"}, {"cpu": "x86-64-v9"}):
            with self.subTest(constraints=constraints):
                with self.assertRaises(drover.ApiError) as refused:
                    self.daemon.submit("exit", 0, constraints=constraints)
                self.assertEqual(refused.exception.status, 400)
                self.assertIn(next(iter(constraints)), refused.exception.message)

    @unittest.skipUnless(os.uname().machine == "x86_64", "a level of x86-64")
    def test_the_level_of_the_cpu_is_known(self):
        task = self.daemon.submit("exit", 0, constraints={"cpu": "x86-64"})
        self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished")


if __name__ == "__main__":
    unittest.main()
