"""`drover serve --network bridge`: a network of its own for each task that names none."""

import unittest

import drover


class NetworkDefaultTest(drover.DaemonTest):
    profile = "k40m"
    arguments = ("--network", "bridge")

    def interfaces(self, *options, uid=None):
        ran = self.daemon.cli("run", "--mem", "64M", *options, "--", "/bin/ls", "/sys/class/net", uid=uid)
        self.assertEqual(ran.status, 0, ran)
        return set(ran.out.split())

    def test_who_names_none_is_alone(self):
        for uid in (None, drover.NOBODY):
            self.assertLessEqual(self.interfaces(uid=uid), {"lo", "tap0"})

    def test_who_names_one_gets_that(self):
        self.assertLessEqual(self.interfaces("--network", "bridge"), {"lo", "tap0"})
        record = self.daemon.wait_until_final(self.daemon.submit("exit", 0, network={"mode": "host"}))
        self.assertEqual(record["task"].get("network", {}).get("mode", "host"), "host")

    def test_the_record_says_which_it_got(self):
        for network in ({}, {"network": None}, {"network": {"ports": [{"container_port": 80}]}}):
            record = self.daemon.wait_until_final(self.daemon.submit("exit", 0, **network))
            self.assertEqual(record["task"]["network"]["mode"], "bridge", network)

    def test_what_makes_no_sense_is_still_told(self):
        with self.assertRaises(drover.ApiError) as refused:
            self.daemon.submit("exit", 0, network="bridge")
        self.assertIn("network", refused.exception.message + refused.exception.error.get("path", ""))

    def test_members_of_a_gang_reach_each_other_over_the_machine_s(self):
        gang = self.daemon.api("POST", "/v1/tasks", {"command": [str(self.daemon.probe), "exit", "0"], "memory": "64MiB", "cpus": 0.1,
                                                     "gang": {"size": 2}})
        for member in gang["tasks"]:
            record = self.daemon.wait_until_final(member["task"]["id"])
            self.assertEqual(record["task"].get("network", {}).get("mode", "host"), "host")


if __name__ == "__main__":
    unittest.main()
