"""AppArmor where the kernel has it: every container is under the profile, and what that denies stays denied to root of an image."""

import pathlib
import shutil
import unittest

from attack import attack
import drover

PROFILE = drover.ROOT / "packaging/apparmor/drover-default"
CONFINED = "drover-default (enforce)"


def is_apparmor_here():
    enabled = pathlib.Path("/sys/module/apparmor/parameters/enabled")
    return enabled.exists() and enabled.read_text().startswith("Y") and shutil.which("apparmor_parser")


@unittest.skipUnless(is_apparmor_here(), "AppArmor is not in force on this machine, or apparmor_parser is not installed")
class AppArmorTest(attack.AttackTest):
    @classmethod
    def setUpClass(cls):
        loaded = drover.run(["apparmor_parser", "--replace", PROFILE])
        assert loaded.status == 0, loaded
        super().setUpClass()
        cls.reference = cls.image(cls, "image")

    def everywhere(self, *verbs):
        """What the probe's verbs come to, for root and mallory, in an image and without: a line of outputs a try."""
        words = sum(([*verb, ","] for verb in verbs), [])[:-1]
        for caller in (None, self.mallory):
            for program, where in ((self.daemon.probe, {}), ("/probe", {"image": self.reference})):
                record, output, errors = self.attempt(caller, [program, *words], **where)
                self.assertEqual(record["state"], "finished", (caller, where, record, errors))
                yield caller, where, output.splitlines()

    def test_every_container_is_under_the_profile(self):
        for caller, where, lines in self.everywhere(["show", "/proc/self/attr/current"]):
            self.assertEqual(lines, [CONFINED], (caller, where))

    def test_a_command_that_joins_is_under_it_too(self):
        for caller in (None, self.mallory):
            task = self.submit(caller, ["/probe", "say", "up", ",", "sleep", "600"], image=self.reference)
            self.daemon.wait_for_output(task, "up")
            self.assertEqual(self.cli(caller, "exec", task, "--", "/probe", "show", "/proc/self/attr/current").out.strip(), CONFINED)
            self.daemon.end_task(task)

    def test_nobody_leaves_it(self):
        """Neither by asking for another profile nor by a program that is executed."""
        shown = ["show", "/proc/self/attr/current"]
        tries = [["write", f"/proc/self/attr/{name}", f"{verb} unconfined"]
                 for name, verb in (("current", "changeprofile"), ("exec", "exec"), ("apparmor/current", "changeprofile"))]
        for caller, where, lines in self.everywhere(*tries, shown):
            self.assertNotIn("ok", lines, (caller, where))
            self.assertEqual(lines[-1], CONFINED, (caller, where))

    def test_what_changes_the_machine_is_denied_by_it(self):
        """Also where root of a container has the machine's ids, and whatever else is mounted read-only."""
        places = ("/proc/sys/kernel/domainname", "/proc/sysrq-trigger", "/sys/kernel/mm/transparent_hugepage/enabled")
        for caller, where, lines in self.everywhere(*(["write", place, "x"] for place in places)):
            self.assertNotIn("ok", lines, (caller, where))

    def test_doctor_says_so(self):
        told = drover.run([self.daemon.binary, "doctor"])
        self.assertIn("profile 'drover-default'", told.out, told)


if __name__ == "__main__":
    unittest.main()
