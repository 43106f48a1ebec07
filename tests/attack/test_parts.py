"""What a task with a part of a GPU tries, to come at the parts of others."""

import os
import pathlib
import re
import shutil
import tempfile

import drover
from attack import attack

MIXED = drover.ROOT / "sim/profiles/mixed.yaml"


class PartTest(attack.AttackTest):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="drover-test-"))
        cls.addClassCleanup(shutil.rmtree, folder)
        profile = folder / "mig.yaml"
        profile.write_text(MIXED.read_text().replace('"pci0000:ae"]}', '"pci0000:ae"], mig: true}'))
        cls.profile = str(profile)
        super().setUpClass()

    def start(self, user, **fields):
        task = self.daemon.submit("list", "/dev/nvidia-caps", ",", "say", "up", ",", "sleep", 600, uid=user.uid, gpu_part="1g.5gb", **fields)
        self.addCleanup(self.daemon.end_task, task)
        self.daemon.wait_for_output(task, "up")
        return task

    def capabilities(self, task):
        folder = self.daemon.state / "sim/dev/nvidia-caps"
        numbers = [os.stat(folder / name).st_rdev for name in re.findall(r"nvidia-cap\d+", self.daemon.output(task))]
        return [(os.major(number), os.minor(number)) for number in numbers]

    def test_the_capabilities_of_another_part_and_those_that_rule_all(self):
        mine, others = self.start(self.mallory), self.start(self.victim)
        own, foreign = self.capabilities(mine), self.capabilities(others)
        self.assertEqual((len(own), len(foreign), set(own) & set(foreign)), (2, 2, set()))
        major = own[0][0]
        config, monitor = (major, 1), (major, 2)
        tried = (*own, *foreign, config, monitor)
        self.assertEqual(self.daemon.opened_by(mine, *tried), [attack.ALLOWED] * 2 + [attack.DENIED] * 4)

    def test_a_node_of_his_own_making(self):
        victims = self.capabilities(self.start(self.victim))
        words = sum(([",", "mknod", "made", major, minor] for major, minor in victims), [])
        task = self.daemon.submit("say", "began", *map(str, words), uid=self.mallory.uid, gpu_part="1g.5gb")
        self.daemon.wait_until_final(task)
        self.assertEqual(self.daemon.output(task).splitlines()[1:], ["mknod EPERM"] * 2)

    def test_another_part_by_the_environment(self):
        other = self.daemon.task(self.start(self.victim))["grants"][0]["mig"]["uuid"]
        task = self.daemon.submit("env", "NVIDIA_VISIBLE_DEVICES", uid=self.mallory.uid, gpu_part="1g.5gb",
                                  env={"NVIDIA_VISIBLE_DEVICES": other})
        record = self.daemon.wait_until_final(task)
        self.assertIn(record["grants"][0]["mig"]["uuid"], self.daemon.output(task))
        self.assertNotIn(other, self.daemon.output(task))
