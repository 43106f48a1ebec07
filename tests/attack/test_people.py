"""Tasks run as who asked for them, and nobody else can be named."""

from attack import attack
import drover


class PeopleTest(attack.AttackTest):
    def who(self, caller, /, **fields):
        return self.attempt(caller, ["/probe", "id"], image=self.image("who"), **fields)[1].split()

    def test_a_task_runs_as_its_caller(self):
        self.assertEqual(self.who(self.mallory), [str(self.mallory.uid)] * 2)

    def test_root_names_a_user_by_name(self):
        self.assertEqual(self.who(None, user="victim"), [str(self.victim.uid)] * 2)

    def test_mallory_names_somebody_else(self):
        for name in ("victim", "root", "0", str(self.victim.uid)):
            with self.subTest(user=name), self.assertRaises(drover.ApiError) as refused:
                self.submit(self.mallory, ["/bin/true"], user=name)
            self.assertIn(refused.exception.status, (403, 422), refused.exception)

    def test_the_command_line_acts_for_who_calls_it(self):
        ran = self.cli_run(self.mallory, ["--image", self.image("who")], "/probe", "id")
        self.assertEqual(ran.out.split(), [str(self.mallory.uid)] * 2, ran)
        self.assertEqual(self.cli_run(self.mallory, ["--user", "victim"], "/bin/true").out, "")


class DockerPeopleTest(attack.ThroughDocker, PeopleTest):
    """The same through a Docker Engine."""
