"""Names of images that somebody else has filled: what came without TLS is its puller's alone."""

import unittest

from attack import attack
import drover
import registries


class NamesTest(attack.AttackTest):
    """mallory serves a registry on loopback, which is spoken to over plain HTTP, and pulls from it."""

    def setUp(self):
        self.registry = registries.ScriptedRegistry()
        self.addCleanup(self.registry.close)
        self.images = self.registry.images

    def serve(self, text):
        """Under one name, an image that says this."""
        folders = dict.fromkeys(("dev", "etc", "proc", "sys", "tmp"))
        base = registries.make_tar({**folders, "probe": self.daemon.probe.read_bytes(), "etc/passwd": b"root:x:0:0:root:/:/probe\n"})
        return self.registry.tag("own:44", self.images.image([base], Cmd=["/probe", "say", text, ",", "id"]))

    def run_name(self, user, name, *options):
        return self.cli(user, "run", *options, "--image", name)

    def test_root_runs_a_name_that_mallory_pulled(self):
        name = self.serve("mallory was here")
        self.assertEqual(self.run_name(self.mallory, name).out.split("\n")[0], "mallory was here")
        for user in (None, self.victim):
            never = self.run_name(user, name, "--pull", "never")
            self.assertIn("not on this machine", never.err)
            self.assertEqual(never.out, "")
        self.serve("what the registry has now")
        for user in (None, self.victim):
            self.assertEqual(self.run_name(user, name).out.split("\n")[0], "what the registry has now")
        self.assertEqual(self.run_name(self.mallory, name).out.split("\n")[0], "mallory was here")

    def test_root_runs_it_when_the_registry_is_gone(self):
        name = self.serve("mallory was here")
        self.assertEqual(self.run_name(self.mallory, name).status, 0)
        self.registry.close()
        ran = self.run_name(None, name)
        self.assertNotEqual(ran.status, 0)
        self.assertNotIn("mallory was here", ran.out)

    def test_the_name_is_everybody_s_among_those_that_are_here(self):
        """Root sees all names, and whose they are; victim sees none of mallory's."""
        name = self.serve("mallory was here")
        self.assertEqual(self.cli(self.mallory, "image", "pull", name).status, 0)
        for user, seen in ((self.mallory, [False]), (self.victim, []), (None, [False])):
            images = self.daemon.api("GET", "/v1/images", uid=user.uid if user else None)["images"]
            self.assertEqual([image["everybody"] for image in images if image["name"] == name], seen, user)

    def test_mallory_takes_the_name_that_root_pulled(self):
        name = self.serve("what root wanted")
        self.assertEqual(self.cli(None, "image", "pull", name).status, 0)
        self.serve("mallory was here")
        self.assertEqual(self.run_name(self.mallory, name, "--pull", "always").out.split("\n")[0], "mallory was here")
        self.assertEqual(self.run_name(None, name, "--pull", "never").out.split("\n")[0], "what root wanted")
        self.assertEqual(self.cli(self.mallory, "image", "rm", name).status, 0)
        self.assertEqual(self.run_name(None, name, "--pull", "never").out.split("\n")[0], "what root wanted")

    def test_mallory_loads_an_image_under_a_name_of_others(self):
        layout = self.images.write_layout(self.ground / "layout", {"one": self.images.image([registries.make_tar({"x": b"x"})])})
        self.assertEqual(self.cli(self.mallory, "image", "load", f"oci:{layout}:one", "debian:12").status, 0)
        self.assertIn("not on this machine", self.run_name(None, "debian:12", "--pull", "never").err)


if __name__ == "__main__":
    unittest.main()
