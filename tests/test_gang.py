"""Gangs: members that start together, know each other, and end together."""

import unittest

import drover


class GangTest(drover.DaemonTest):
    profile = "k80"  # two GPUs

    def tearDown(self):
        self.daemon.end_tasks()

    def submit_gang(self, *command, members, **fields):
        """`members` is how many, or what each has of its own. Returns the ids by rank."""
        gang = {"size": members} if isinstance(members, int) else {"members": members}
        body = {"command": [str(self.daemon.probe), *(str(word) for word in command)], "memory": "64MiB", "cpus": 0.1,
                "gang": gang, **fields}
        return [record["task"]["id"] for record in self.daemon.api("POST", "/v1/tasks", body)["tasks"]]

    def test_members_start_together_and_know_their_places(self):
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT",
                 "DROVER_GANG_ID", "DROVER_GANG_HOSTS")
        words = " , ".join(f"env {name}" for name in names).split()
        holder = self.daemon.submit("sleep", 600, gpus=1)
        self.daemon.wait_until_running(holder)
        members = self.submit_gang(*words, members=2, gpus=1)
        self.assertEqual([self.daemon.task(member)["state"] for member in members], ["queued", "queued"])
        self.daemon.stop_task(holder, force=True)
        told = []
        for member in members:
            self.assertEqual(self.daemon.wait_until_final(member)["state"], "finished")
            told.append(dict(zip(names, self.daemon.output(member).splitlines())))
        self.assertEqual([each["RANK"] for each in told], ["0", "1"])
        gpus = [self.daemon.task(member)["gpus"] for member in members]
        self.assertEqual(len(set(gpus[0] + gpus[1])), 2)
        for name in ("WORLD_SIZE", "MASTER_PORT", "MASTER_ADDR", "DROVER_GANG_ID", "DROVER_GANG_HOSTS"):
            self.assertEqual(told[0][name], told[1][name], name)
        self.assertEqual((told[0]["WORLD_SIZE"], told[0]["LOCAL_RANK"], told[0]["LOCAL_WORLD_SIZE"]), ("2", "0", "1"))
        self.assertIn(int(told[0]["MASTER_PORT"]), range(31000, 32001))
        self.assertEqual(members[0], told[0]["DROVER_GANG_ID"] + "-0")
        self.assertEqual(len(told[0]["DROVER_GANG_HOSTS"].split(",")), 2)

    def test_when_one_fails_the_others_are_stopped_and_say_so(self):
        failing = [str(self.daemon.probe), "sleep", "0.3", ",", "exit", "7"]
        members = self.submit_gang("sleep", 600, members=[{}, {"command": failing}])
        first, second = (self.daemon.wait_until_final(member) for member in members)
        self.assertEqual((second["state"], second["exit_status"]), ("failed", 7))
        self.assertEqual(first["state"], "killed")
        self.assertIn("rank 1", first["reason"])
        self.assertIn("7", first["reason"])

    def test_a_program_that_is_not_there_ends_the_gang(self):
        members = self.submit_gang("sleep", 600, members=[{}, {"command": ["/no/such/program"]}])
        first, second = (self.daemon.wait_until_final(member) for member in members)
        self.assertEqual((first["state"], second["state"]), ("killed", "failed"))
        self.assertIn("/no/such/program", first["reason"])

    def test_stopping_the_gang_stops_all(self):
        members = self.submit_gang("say", "up", ",", "sleep", 600, members=2)
        for member in members:
            self.daemon.wait_for_output(member, "up")
        self.daemon.stop_task(members[0].rsplit("-", 1)[0])
        self.assertEqual([self.daemon.wait_until_final(member)["state"] for member in members], ["killed", "killed"])

    def test_a_restart_keeps_the_gang(self):
        members = self.submit_gang("say", "up", ",", "sleep", 600, members=2, gpus=1)
        for member in members:
            self.daemon.wait_for_output(member, "up")
        before = [self.daemon.task(member) for member in members]
        self.daemon.kill()
        self.daemon.start()
        after = [self.daemon.wait_until_running(member) for member in members]
        for name in ("gang_port", "gpus", "started_at"):
            self.assertEqual([record[name] for record in after], [record[name] for record in before])
        self.daemon.stop_task(members[1])
        self.assertIn("rank 1", self.daemon.wait_until_final(members[0])["reason"])

    def test_what_could_never_start_together_is_refused(self):
        with self.assertRaises(drover.ApiError) as refused:
            self.submit_gang("sleep", 0, members=3, gpus=1)
        self.assertEqual(refused.exception.status, 400)
        self.assertEqual([record for record in self.daemon.tasks() if record["task"]["gpus"] == 1 and
                          record["state"] == "queued"], [])


if __name__ == "__main__":
    unittest.main()
