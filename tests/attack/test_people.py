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

    def test_an_image_that_names_somebody_else(self):
        """Its user is for root's tasks; what it says of users and groups gives nobody else's rights."""
        secret = attack.make_file(self.ground / "of-victims-group", "secret\n", 0o640, self.victim.uid)
        for number, user in enumerate((f"{self.victim.uid}", f"{self.victim.uid}:{self.victim.uid}", "root", "0:0", "mallory", "victim")):
            def fill(layer):
                layer.add_file("etc/group", f"root:x:0:mallory,{self.mallory.uid}\nv:x:{self.victim.uid}:mallory\nm:x:{self.mallory.uid}:"
                                            f"\nshadow:x:42:mallory\n".encode())
            with self.subTest(user=user):
                image = self.image(f"names{number}", fill, user=user, passwd=f"mallory:x:0:0::/:/probe\nvictim:x:{self.mallory.uid}:0::/:\n")
                _, output, _ = self.attempt(self.mallory, ["/probe", "id", ",", "read", "/v/of-victims-group"], image=image,
                                            volumes=[{"container_path": "/v", "host_path": str(self.ground), "read_only": True}])
                self.assertEqual(output.splitlines()[:2], [f"{self.mallory.uid} {self.mallory.uid}", "EACCES"])
        self.assertEqual(secret.read_text(), "secret\n")


class DockerPeopleTest(attack.ThroughDocker, PeopleTest):
    """The same through a Docker Engine."""
