"""Parts of GPUs in MIG mode for tasks of one machine: made, given and destroyed. The GPUs are simulated, the device nodes are not."""

import json
import os
import re
import stat
import time
import unittest

import drover
import mig_profile

FOREIGN = {"id": 5, "profile": "2g.10gb", "start": 0, "compute": [{"id": 0, "start": 0, "slices": 2}]}
ALLOWED, DENIED = "ENXIO", "EPERM"  # nothing is behind simulated nodes
CAPABILITY = re.compile(r"nvidia-cap\d+")
OTHER = 4321


class PartsTest(drover.DaemonTest):
    kind_of_daemon = drover.Daemon  # pods have claims for it

    @classmethod
    def setUpClass(cls):
        cls.profile = mig_profile.made_for(cls)
        super().setUpClass()

    def setUp(self):
        self.addCleanup(self.stay_empty)
        self.addCleanup(self.daemon.end_tasks)

    def stay_empty(self):
        drover.wait_for(lambda: self.instances() == [], lambda: f"no instance to stay: {self.instances()}")

    @property
    def mig_file(self):
        return self.daemon.state / "sim/mig.yaml"

    def instances(self, gpu=None):
        """(GPU, profile, first memory slice) of each, as the simulated driver has them."""
        if not self.mig_file.exists():
            return []
        return [(int(number), one["profile"], one["start"]) for number, state in json.loads(self.mig_file.read_text()).items()
                for one in state.get("instances", []) if gpu in (None, int(number))]

    def set_instances(self, instances):
        """Of the last GPU, while no task has a part of any."""
        drover.replace(self.mig_file, json.dumps({"2": {"enabled": True}, "3": {"enabled": True, "instances": instances}}))

    def start(self, profile, *words, uid=None, **fields):
        """A task that runs and has said what it sees; its record."""
        task = self.daemon.submit("devices", ",", "list", "/dev/nvidia-caps", ",", "env", "NVIDIA_VISIBLE_DEVICES", ",", *words, "say", "up", ",", "sleep", 600, uid=uid,
                                  gpu_part=profile, **fields)
        self.daemon.wait_for_output(task, "up")
        return self.daemon.task(task)

    def id_of(self, record):
        return record["task"]["id"]

    def end(self, *records):
        for record in records:
            self.daemon.stop_task(self.id_of(record), force=True)
        for record in records:
            self.daemon.wait_until_final(self.id_of(record))

    def nodes_of(self, record):
        """Numbers of the capability nodes that the task saw."""
        folder = self.daemon.state / "sim/dev/nvidia-caps"
        seen = CAPABILITY.findall(self.daemon.output(self.id_of(record)))
        numbers = [os.stat(folder / name) for name in seen]
        self.assertTrue(all(stat.S_ISCHR(one.st_mode) for one in numbers))
        return [(os.major(one.st_rdev), os.minor(one.st_rdev)) for one in numbers]

    def refusal(self, **fields):
        with self.assertRaises(drover.ApiError) as refused:
            self.daemon.submit("exit", 0, **fields)
        return str(refused.exception)


class GivenTest(PartsTest):
    def test_a_task_has_its_part_and_nothing_else(self):
        record = self.start("1g.5gb")
        grant, = record["grants"]
        self.assertEqual((grant["tier"], grant["mig"]["profile"], grant["mig"]["size"]), ("hard", "1g.5gb", 1))
        self.assertEqual(self.instances(), [(2, "1g.5gb", grant["mig"]["start"])])
        said = self.daemon.output(self.id_of(record))
        self.assertIn(grant["mig"]["uuid"], said.splitlines())
        self.assertTrue(grant["mig"]["uuid"].startswith("MIG-"))
        self.assertEqual(re.findall(r"nvidia\d+", said.splitlines()[0]), ["nvidia2"])
        self.assertEqual(len(self.nodes_of(record)), 2)
        self.end(record)
        self.assertEqual(self.instances(), [], "it is gone before the end is told")

    def test_each_of_two_opens_its_own_only(self):
        small, large = self.start("1g.5gb"), self.start("3g.20gb", uid=OTHER)
        self.assertEqual([gpu for gpu, _, _ in self.instances()], [2, 2])
        for own, other in ((small, large), (large, small)):
            self.assertEqual(self.daemon.opened_by(self.id_of(own), *self.nodes_of(own)), [ALLOWED] * 2)
            self.assertEqual(self.daemon.opened_by(self.id_of(own), *self.nodes_of(other)), [DENIED] * 2)
            self.assertEqual(self.daemon.opened_by(self.id_of(own), (195, 2), (195, 3), (195, 0)), [ALLOWED, DENIED, DENIED])

    def test_several_parts_of_one_task(self):
        record = self.start("3g.20gb", gpus=4)
        self.assertEqual(sorted(self.instances()), [(2, "3g.20gb", 0), (2, "3g.20gb", 4), (3, "3g.20gb", 0), (3, "3g.20gb", 4)])
        self.assertEqual(len(set(grant["mig"]["uuid"] for grant in record["grants"])), 4)
        self.assertEqual(len(self.nodes_of(record)), 8)

    def test_what_does_not_fit_waits_with_a_reason_and_starts_as_soon_as_it_does(self):
        first, second = self.start("4g.20gb"), self.start("7g.40gb")
        waiting = self.daemon.submit("sleep", 600, gpu_part="7g.40gb")
        self.assertEqual(self.daemon.task(waiting)["reason"],
                         "the machine has no room for 7g.40gb on its GPUs in MIG mode: GPU 2 has 4g.20gb, GPU 3 has 7g.40gb")
        self.end(second)
        self.daemon.wait_until_running(waiting)
        self.assertEqual(sorted(self.instances()), [(2, "4g.20gb", 0), (3, "7g.40gb", 0)])
        self.end(first)

    def test_whole_gpus_and_shares_get_none_of_them(self):
        self.assertEqual(self.daemon.wait_until_running(self.daemon.submit("sleep", 600, gpus=2))["state"], "running")
        for fields in ({"gpus": 1}, {"gpu_share": 0.5}):
            self.assertEqual(self.daemon.task(self.daemon.submit("sleep", 600, **fields))["state"], "queued")

    def test_what_cannot_be_is_refused_in_a_sentence(self):
        self.assertIn("no GPU with the MIG profile 1g.99gb: there are 7g.40gb", self.refusal(gpu_part="1g.99gb"))
        self.assertIn("fewer than 15 × 1g.5gb", self.refusal(gpu_part="1g.5gb", gpus=15))
        self.assertIn("is not the name of a MIG profile", self.refusal(gpu_part="huge"))
        for fields, field in (({"gpu_share": 0.5}, "/gpu_share"), ({"gpus": 0.5}, "/gpus"), ({"group": "g"}, "/group"),
                              ({"gpus": 2, "interconnect": "nvlink"}, "/interconnect"), ({"gpu_memory": "1GiB"}, "/gpu_memory"),
                              ({"gang": {"size": 2}}, "members of a gang")):
            self.assertIn(field, self.refusal(gpu_part="1g.5gb", **fields), fields)
        self.assertIn("in MIG mode", self.refusal(gpu_part="1g.5gb", gpu_model="V100"))

    def test_a_share_that_the_hardware_is_to_hold_is_the_smallest_part_that_has_it(self):
        for fields, profile in (({"gpu_share": "8GiB"}, "1g.10gb"), ({"gpu_share": 0.25}, "2g.10gb"), ({"gpus": 0.5}, "4g.20gb")):
            task = self.daemon.submit("say", "up", ",", "sleep", 600, share_by="mig", **fields)
            self.daemon.wait_for_output(task, "up")
            record = self.daemon.task(task)
            self.assertEqual((record["task"]["gpu_part"], record["task"]["share_by"]), (profile, "mig"))
            self.assertEqual((record["grants"][0]["mig"]["profile"], record["grants"][0]["tier"]), (profile, "hard"))
            self.assertEqual([name for _, name, _ in self.instances()], [profile])
            self.end(record)
        self.assertIn("no profile of the GPUs here has 60 GiB: the largest is 7g.40gb", self.refusal(gpu_share="60GiB", share_by="mig"))
        self.assertIn("whole GPUs", self.refusal(gpus=1, share_by="mig"))
        self.assertIn("/group", self.refusal(gpu_share=0.5, share_by="mig", group="g"))
        self.assertIn("no GPU here is in MIG mode that is what is asked for", self.refusal(gpu_share=0.5, share_by="mig", gpu_model="V100"))

    def test_lists_say_which_part_and_that_it_holds(self):
        self.start("2g.10gb")
        self.assertRegex(self.daemon.cli("gpus").out, r"2g\.10gb \(hard\)")
        self.assertIn("ok, in parts", self.daemon.cli("gpus").out)
        self.assertNotIn("unfit", self.daemon.cli("gpus").out)
        self.assertRegex(self.daemon.cli("ps").out, r"2g\.10gb of 2 \(hard\)")
        plan = self.daemon.cli("plan", "--gpu-part", "2g.10gb").out
        self.assertIn("2g.10gb of 2 (hard)", plan)


class SurvivalTest(PartsTest):
    def bring_foreign(self):
        self.addCleanup(self.set_instances, [])
        self.addCleanup(self.daemon.end_tasks)
        self.set_instances([FOREIGN])
        self.daemon.kill()
        self.daemon.start()  # it is seen at once then

    def test_an_instance_of_somebody_else_stays(self):
        self.bring_foreign()
        records = [self.start("7g.40gb"), self.start("3g.20gb"), self.start("2g.10gb")]
        self.assertEqual(sorted(self.instances(3)), [(3, "2g.10gb", 0), (3, "2g.10gb", 2), (3, "3g.20gb", 4)])
        self.end(*records)
        self.assertEqual(self.instances(), [(3, "2g.10gb", 0)])
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.instances(), [(3, "2g.10gb", 0)])

    def test_a_task_keeps_its_part_while_the_daemon_is_away(self):
        record = self.start("2g.10gb")
        before = self.instances()
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.daemon.wait_until_running(self.id_of(record))["grants"], record["grants"])
        self.assertEqual(self.instances(), before)
        self.assertEqual(len(self.start("2g.10gb")["grants"]), 1)
        self.assertEqual(len(self.instances()), 2)

    def test_the_part_of_a_task_that_ended_meanwhile_goes(self):
        task = self.daemon.submit("say", "up", ",", "sleep", "1", gpu_part="1g.5gb")
        self.daemon.wait_for_output(task, "up")
        self.daemon.kill()
        drover.wait_for(lambda: not self.daemon.shims(), "the task to end")
        self.assertEqual(len(self.instances()), 1)
        self.daemon.start()
        self.daemon.wait_until_final(task)
        self.stay_empty()

    def test_kill_at_any_moment_leaves_no_instance(self):
        for delay in range(12):
            tasks = [self.daemon.submit("sleep", "0.05", gpu_part=profile) for profile in ("1g.5gb", "3g.20gb", "7g.40gb")]
            time.sleep(delay * 0.03)
            self.daemon.kill()
            self.daemon.start()
            for task in tasks:
                self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished")
            self.assertEqual(self.instances(), [], delay)

    def test_one_that_cannot_be_destroyed_is_given_to_nobody(self):
        record = self.start("7g.40gb", gpu_model="A100")
        gpu = str(self.instances()[0][0])
        self.addCleanup(self.daemon.set_faults, {})
        self.daemon.set_faults({gpu: {"fail": {"nvmlComputeInstanceDestroy": 19}}})
        self.daemon.stop_task(self.id_of(record), force=True)
        other = self.start("7g.40gb")
        waiting = self.daemon.submit("exit", "0", gpu_part="7g.40gb")
        self.assertEqual(self.daemon.task(waiting)["state"], "queued")
        self.daemon.set_faults({})
        self.daemon.wait_until_final(self.id_of(record))
        self.assertEqual(self.daemon.wait_until_final(waiting)["state"], "finished")
        self.end(other)


if __name__ == "__main__":
    unittest.main()
