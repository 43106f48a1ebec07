"""Working directories that are not for the task's user: nothing of them is read, and none is made."""

import os

from attack import attack


class WorkdirTest(attack.AttackTest):
    def assert_kept_out(self, folder, **fields):
        """Of a task that would tell what is there."""
        with self.unchanged(self.victim.home, self.ground):
            record, output, _ = self.attempt(self.mallory, [self.daemon.probe if "image" not in fields else "/probe",
                                                            "list", ".", ",", "read", "notes.txt"],
                                             working_directory=str(folder), **fields)
        self.assertEqual(output, "")
        self.assert_refused(record, str(folder))
        return record["reason"]

    def in_image(self, name, fill=None, **settings):
        """All homes are at /v there."""
        return {"image": self.image(name, fill, **settings),
                "volumes": [{"container_path": "/v", "host_path": str(self.victim.home.parent), "read_only": True}]}

    def test_a_folder_below_a_closed_one(self):
        fields = self.in_image("workdir")
        self.assert_kept_out("/v/victim/project", **fields)
        self.assertEqual(self.attempt(self.mallory, ["/probe", "read", "/v/victim/project/notes.txt"], **fields)[1], "EACCES\n")

    def test_the_closed_folder_itself(self):
        self.assert_kept_out("/v/victim", **self.in_image("workdir"))

    def test_a_folder_below_a_closed_one_that_the_image_names(self):
        with self.unchanged(self.victim.home):
            record, output, _ = self.attempt(self.mallory, ["/probe", "list", "."],
                                             **self.in_image("named", working_directory="/v/victim/project"))
        self.assertEqual(output, "")
        self.assert_refused(record, "/v/victim/project")

    def test_a_link_of_the_image_to_it(self):
        self.assert_kept_out("/short", **self.in_image("link", lambda layer: layer.add_link("short", "/v/victim/project")))

    def test_ways_through_the_kernels_links(self):
        fields = self.in_image("workdir")
        for way in ("/proc/self/root", "/proc/1/root", "/proc/self/cwd/..", "/v/../v"):
            with self.subTest(way=way):
                self.assert_kept_out(f"{way}/v/victim/project", **fields)

    def test_a_folder_that_is_not_there_is_not_made_in_a_volume(self):
        shared = attack.make_folder(self.ground / "shared")
        fields = {"image": self.image("workdir"), "volumes": [{"container_path": "/v", "host_path": str(shared)}]}
        self.assert_kept_out("/v/new", **fields)
        self.assert_kept_out("/v/new/deep/er", **fields)

    def test_whether_something_is_behind_a_closed_folder_cannot_be_told(self):
        fields = self.in_image("workdir")
        reasons = {name: self.assert_kept_out(f"/v/victim/{name}", **fields).replace(name, "NAME")
                   for name in ("project", "project/notes.txt", "absent", "absent/deeper")}
        self.assertEqual(len(set(reasons.values())), 1, reasons)


class DockerWorkdirTest(attack.ThroughDocker, WorkdirTest):
    """The same through a Docker Engine."""


class HostWorkdirTest(attack.AttackTest):
    """Without an image."""

    def assert_kept_out(self, folder):
        with self.unchanged(self.victim.home, self.ground):
            record, output, _ = self.attempt(self.mallory, ["/bin/ls", "-la"], working_directory=str(folder))
        self.assertEqual(output, "")
        self.assert_refused(record, str(folder))
        return record["reason"]

    def test_a_folder_of_victim_below_a_closed_one(self):
        self.assertIn("Permission denied", self.shell(self.mallory, f"cat {self.victim.home}/project/notes.txt").err)
        self.assert_kept_out(self.victim.home / "project")

    def test_the_same_by_the_command_line(self):
        ran = self.cli_run(self.mallory, ["--workdir", self.victim.home / "project"], "/bin/cat", "notes.txt")
        self.assertNotIn(attack.NOTES, ran.out)
        self.assert_one_sentence(ran, str(self.victim.home / "project"))

    def test_a_folder_of_root_below_a_closed_one(self):
        attack.make_folder(attack.make_folder(self.ground / "closed", 0o700) / "inside")
        self.assert_kept_out(self.ground / "closed/inside")

    def test_links_to_it(self):
        os.symlink(self.victim.home / "project", self.mallory.home / "short")
        self.addCleanup(os.unlink, self.mallory.home / "short")
        self.assert_kept_out(self.mallory.home / "short")
        self.assert_kept_out(f"/proc/self/root{self.victim.home}/project")

    def test_a_folder_that_is_not_there_is_not_made(self):
        for folder in (self.ground / "made", self.ground / "made/a/b", self.victim.home / "made-by-mallory"):
            with self.subTest(folder=folder):
                self.assert_kept_out(folder)

    def test_whether_something_is_behind_a_closed_folder_cannot_be_told(self):
        reasons = {name: self.assert_kept_out(self.victim.home / name).replace(name, "NAME")
                   for name in ("project", "project/notes.txt", "absent", "absent/deeper")}
        self.assertEqual(len(set(reasons.values())), 1, reasons)

    def test_a_folder_of_ones_own_is_entered(self):
        attack.make_folder(self.mallory.home / "own", 0o700, self.mallory.uid)
        self.assertEqual(self.attempt(self.mallory, ["/bin/pwd"], working_directory=str(self.mallory.home / "own"))[1],
                         f"{self.mallory.home}/own\n")
        self.assertEqual(self.attempt(None, ["/bin/pwd"], working_directory=str(self.victim.home / "project"))[1],
                         f"{self.victim.home}/project\n", "root may")
