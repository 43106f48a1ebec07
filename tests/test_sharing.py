"""Queues, quotas, priorities and what is lent between them: over the real binary."""

import unittest

import drover
import placement_case
from placement_case import ANOTHER


class SharingTest(placement_case.PlacementTest):
    profile = "pcie4"

    def set_queue(self, path, **rule):
        self.daemon.api("PATCH", "/v1/queues/" + path.replace("/", "%2F"), rule)

    def set_quota(self, subject, **rule):
        self.daemon.api("PATCH", f"/v1/quotas/{subject}", rule)

    def test_a_quota_holds_whatever_is_free(self):
        self.set_quota("user:nobody", limit={"gpus": 2})
        self.hold(gpus=1, uid=drover.NOBODY)
        half = self.hold(gpus=0.5, uid=drover.NOBODY)
        waiting = self.ask(gpus=1, uid=drover.NOBODY)
        self.assertEqual(waiting["state"], "queued")
        self.assertRegex(self.explained(waiting, uid=drover.NOBODY), "(?i)quota|hold")
        self.assertRegex(self.daemon.cli("explain", waiting["task"]["id"], uid=drover.NOBODY).out, "(?i)quota|hold")
        self.hold(gpus=2)  # it does not keep others from what is free
        self.assertIn("2", self.refused(gpus=3, uid=drover.NOBODY)["message"])
        self.end(half)
        self.daemon.wait_until_running(waiting["task"]["id"])

    def test_a_quota_of_a_namespace(self):
        self.set_quota("namespace:team", limit={"gpus": 1})
        self.hold(gpus=1, namespace="team", uid=drover.NOBODY)
        self.assertEqual(self.ask(gpus=1, namespace="team", uid=ANOTHER)["state"], "queued")
        self.hold(gpus=1, namespace="other", uid=ANOTHER)

    def test_a_limit_of_a_queue_counts_what_is_below_it(self):
        self.set_queue("research", limit={"gpus": 2})
        self.set_queue("research/vision")
        self.hold(gpus=2, queue="research/vision")
        waiting = self.ask(gpus=1, queue="research")
        self.assertEqual(waiting["state"], "queued")
        self.assertIn("research", self.explained(waiting))
        self.hold(gpus=1)

    def test_a_guarantee_is_lent_and_taken_back(self):
        self.set_queue("owner", guarantee={"gpus": 3})
        self.set_queue("guest")
        guests = [self.hold(gpus=1, queue="guest", grace="1s") for _ in range(4)]
        planned = self.plan(gpus=3, queue="owner")
        self.assertEqual((planned["starts_now"], planned["victims"]), (False, 3), planned)
        owner = self.ask(gpus=3, queue="owner")
        self.daemon.wait_until_running(owner["task"]["id"])
        drover.wait_for(lambda: sorted(self.state(guest) for guest in guests) == ["queued"] * 3 + ["running"],
                        "three guests to wait again")
        again = [self.daemon.task(guest["task"]["id"]) for guest in guests if self.state(guest) == "queued"]
        self.assertEqual([record["preemptions"] for record in again], [1, 1, 1])
        self.end(owner)
        for record in again:
            self.daemon.wait_until_running(record["task"]["id"])

    def test_a_higher_priority_goes_first_and_the_lower_runs_again(self):
        low = self.ask(gpus=4, priority=-1, grace="1s")
        self.daemon.wait_until_running(low["task"]["id"])
        high = self.daemon.submit("say", "first", gpus=4)
        self.assertEqual(self.daemon.wait_until_final(high)["state"], "finished")
        record = self.daemon.wait_until_running(low["task"]["id"])
        self.assertEqual(record["preemptions"], 1)

    def test_nothing_is_ended_that_would_not_help(self):
        low = self.hold(gpus=2, priority=-1)
        self.hold(gpus=2)
        waiting = self.ask(gpus=3)
        self.assertEqual((self.state(low), self.state(waiting)), ("running", "queued"))
        self.assertEqual(self.plan(gpus=3)["victims"], 0)

    def test_whoever_may_not_is_refused(self):
        nobody = drover.NOBODY
        for words in (["queue", "set", "mine", "--gpus-guarantee", "4"], ["queue", "remove", "default"],
                      ["quota", "set", "user:nobody", "--gpus", "100"], ["quota", "remove", "user:nobody"]):
            with self.subTest(words=words):
                ran = self.daemon.cli(*words, uid=nobody)
                self.assertEqual(ran.status, 77, ran)
                self.assert_one_sentence(ran, "root")
        self.assertEqual(self.refused(gpus=1, priority=1, uid=nobody, status=403)["path"], "/priority")
        self.set_quota("user:nobody", max_priority=5)
        self.hold(gpus=1, priority=5, uid=nobody)
        self.assertEqual(self.refused(gpus=1, priority=6, uid=nobody, status=403)["path"], "/priority")
        self.set_queue("closed", users=["daemon"])
        self.assertEqual(self.refused(gpus=1, queue="closed", uid=nobody, status=403)["path"], "/queue")
        self.hold(gpus=1, queue="closed", uid=ANOTHER)
        self.assertEqual(self.refused(gpus=1, queue="nowhere", uid=nobody, status=404)["path"], "/queue")

    def test_the_tasks_of_others_are_not_told(self):
        secrets = [self.hold(gpus=2, name="secret-job"), self.hold(gpus=2, name="secret-job", uid=ANOTHER)]
        self.ask(gpus=1, name="secret-job", priority=7)
        waiting = self.ask(gpus=1, uid=drover.NOBODY)
        self.assertEqual(waiting["state"], "queued")
        told = [self.explained(waiting, uid=drover.NOBODY), str(self.plan(gpus=2, uid=drover.NOBODY)),
                self.daemon.cli("queue", "--json", uid=drover.NOBODY).out, self.daemon.cli("queue", uid=drover.NOBODY).out,
                self.daemon.cli("gpus", "--json", uid=drover.NOBODY).out, self.daemon.cli("quota", uid=drover.NOBODY).out]
        for text in told:
            self.assertNotIn("secret-job", text)
            for record in self.daemon.tasks():
                if record["task"]["id"] != waiting["task"]["id"]:
                    self.assertNotIn(record["task"]["id"], text)
        self.assertEqual(len(secrets), 2)

    def test_rules_outlive_the_daemon(self):
        self.set_queue("kept/below", guarantee={"gpus": 1, "memory": "1GiB"}, users=["nobody"], weight=3)
        self.set_quota("user:nobody", limit={"gpus": 2}, max_priority=3)
        running = self.hold(gpus=0.5, queue="kept/below", uid=drover.NOBODY)
        before = [self.daemon.api("GET", path) for path in ("/v1/queues", "/v1/quotas")]
        self.daemon.kill()
        self.daemon.start()
        self.daemon.wait_until_running(running["task"]["id"])
        self.assertEqual([self.daemon.api("GET", path) for path in ("/v1/queues", "/v1/quotas")], before)

    def test_a_queue_that_is_used_stays(self):
        self.set_queue("busy")
        record = self.hold(gpus=1, queue="busy")
        self.assertEqual(self.daemon.cli("queue", "remove", "busy").status, 73)
        self.end(record)
        self.assertEqual(self.daemon.cli("queue", "remove", "busy").status, 0)

    def test_queues_and_quotas_are_listed(self):
        for words in (["queue", "set", "research/vision", "--gpus-guarantee", "2", "--gpus-limit", "3", "--users", "nobody,daemon"],
                      ["quota", "set", "user:nobody", "--gpus", "3", "--mem", "1GiB", "--max-priority", "4"]):
            ran = self.daemon.cli(*words)
            self.assertEqual(ran.status, 0, ran)
        self.hold(gpus=3, queue="research/vision", uid=drover.NOBODY)
        waiting = self.ask(gpus=1, queue="research/vision", uid=drover.NOBODY)
        listing = self.daemon.cli("queue", uid=drover.NOBODY).out
        self.assertRegex(listing, r"research/vision +3 GPUs, .* 2 GPUs +3 GPUs +1 +nobody,daemon +1\n")
        self.assertRegex(listing, rf"{waiting['task']['id']} +nobody +1 GPU")
        self.assertRegex(self.daemon.cli("quota", uid=drover.NOBODY).out, r"user:nobody +3 GPUs.* 3 GPUs, 1 GiB +4\n")

    def test_wrong_rules_name_the_field(self):
        for path, rule, field in (("queues/q", {"limit": {"gpus": -1}}, "/limit/gpus"), ("queues/q", {"weight": 0}, "/weight"),
                                  ("queues/q", {"limit": {"gpus": 1}, "guarantee": {"gpus": 2}}, "/guarantee"),
                                  ("queues/q", {"limits": {}}, "/limits"), ("quotas/user:a", {"limit": {"cpus": "x"}}, "/limit/cpus"),
                                  ("quotas/user:a", {"max_priority": 5000}, "/max_priority"), ("queues/a%20b", {}, ""),
                                  ("quotas/nobody", {}, "")):
            with self.subTest(path=path, rule=rule):
                with self.assertRaises(drover.ApiError) as raised:
                    self.daemon.api("PUT", f"/v1/{path}", rule)
                self.assertEqual(raised.exception.status, 400)
                self.assertIn(field, raised.exception.error["path"] + raised.exception.message)
        self.assertEqual([queue["queue"] for queue in self.daemon.api("GET", "/v1/queues")["queues"]], ["default"])


if __name__ == "__main__":
    unittest.main()
