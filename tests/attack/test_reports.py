"""Accounts of others: they are not to be read, and whoever asks for many holds nobody up."""

import concurrent.futures

from attack import attack

MANY = 30


class ReportsTest(attack.AttackTest):
    def report(self, user, query=""):
        return self.daemon.api("GET", f"/v1/report?since=2000-01-01T00:00:00Z{query}", uid=user.uid)

    def test_nothing_of_others_is_told(self):
        done = self.submit(self.victim, [self.daemon.probe, "exit", 3], name="secret", gpus=1)
        self.daemon.wait_until_final(done)
        runs = self.submit(self.victim, [self.daemon.probe, "sleep", 600], gpus=1)
        self.daemon.wait_until_running(runs)
        self.assertGreater(self.report(self.victim)["total"]["gpu_seconds_held"], 0)
        for query in ("", "&by=user", "&by=queue", "&by=gpu"):
            found = self.report(self.mallory, query)
            self.assertEqual(found["rows"], [], query)
            self.assertEqual((found["total"]["gpu_seconds_held"], found["total"]["running"], found["total"]["ended"]), (0, 0, {}), query)
        for query in ("&user=victim", "&owner=0", "&all=true"):
            self.assertEqual(self.daemon.request("GET", f"/v1/report?by=user{query}", uid=self.mallory.uid)[0], 400, query)
        self.assertNotIn("victim", self.cli(self.mallory, "report", "--since", "1d", "--csv").out)

    def test_nobody_waits_for_many_reports(self):
        def ask(_):
            return self.daemon.request("GET", "/v1/report?by=gpu")[0]

        with concurrent.futures.ThreadPoolExecutor(MANY) as pool:
            answers = set(pool.map(ask, range(MANY)))
        self.assertLessEqual(answers, {200, 503}, answers)
        self.assertIn(200, answers)
        task = self.submit(self.victim, [self.daemon.probe, "exit", 0])
        self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished")
        self.assertEqual(self.report(self.victim)["total"]["running"], 0)
