"""`drover image pull|ls|inspect|load|rm|prune`."""

import json
import shutil
import unittest

import drover
import test_registry


class ImageCommandTest(test_registry.ScriptedRegistryTest):
    def image(self, *words, uid=None):
        return self.daemon.cli("image", *words, uid=uid)

    def listed(self, uid=None):
        return [image["name"] for image in self.daemon.api("GET", "/v1/images", uid=uid)["images"]]

    def layers(self):
        return {path.name for path in (self.daemon.state / "images/layers/sha256").iterdir()}

    def blobs(self):
        return {path.name for path in (self.pulled() / "blobs/sha256").iterdir()}

    def test_a_pull_tells_of_each_layer(self):
        name, layer = self.new_image()
        ran = self.image("pull", name)
        self.assertEqual(ran.status, 0, ran)
        self.assertRegex(ran.err, rf"(?m)^{layer[7:19]}  done  64\.\d KiB$")
        self.assertRegex(ran.out, rf"^{name}  sha256:[0-9a-f]{{64}}\n$")
        again = self.image("pull", name)
        self.assertEqual((again.status, len(self.registry.asked(layer))), (0, 1))
        asked = len(self.registry.requests)
        self.assert_says_hello(self.run_image(name))
        self.assertEqual(len(self.registry.requests), asked, "a name that is here is not looked up again")

    def test_the_api_tells_bytes_of_each_layer(self):
        name, layer = self.new_image()
        status, headers, data = self.daemon.request("POST", "/v1/images/pull", {"image": name})
        self.assertEqual((status, headers["Content-Type"]), (200, "text/event-stream"))
        events = [dict(line.split(": ", 1) for line in event.splitlines()) for event in data.decode().split("\n\n") if event]
        self.assertEqual({event["event"] for event in events}, {"progress", "done"})
        *_, progress, done = [json.loads(event["data"]) for event in events]
        (mine,) = [each for each in progress["layers"] if each["digest"] == layer]
        size = len(self.images.blobs[layer])
        self.assertEqual(mine, {"digest": layer, "bytes": size, "done": size, "state": "done"})
        self.assertEqual((done["name"], done["everybody"]), (name, False))

    def test_what_is_here_is_listed_and_shown(self):
        name, layer = self.new_image()
        self.assertEqual(self.image("pull", name).status, 0)
        self.assertIn(name, self.listed())
        self.assertNotIn(name, self.listed(uid=drover.NOBODY))
        self.assertRegex(self.image("ls").out, rf"(?m)^{name} +sha256:[0-9a-f]{{12}} ")
        self.assertNotRegex(self.image("ls").out, rf"(?m)^{name} .* everybody$")
        shown = json.loads(self.image("inspect", name).out)
        self.assertEqual(shown["config"]["command"], test_registry.SAY)
        self.assertEqual(shown["layers"][1]["digest"], layer)
        self.assert_one_sentence(self.image("inspect", "no/such:image"), "There is no image 'no/such:image'")
        self.assert_one_sentence(self.image("inspect", "No Image"), "is no name of a registry")

    def test_what_is_pulled_in_vain_is_said(self):
        self.assert_one_sentence(self.image("pull", f"{self.registry.host}/no/such"), "has no such image")
        self.assert_one_sentence(self.image("pull", "oci:/some/where"), "is no name of a registry")

    def test_files_are_loaded_for_their_owner(self):
        image = self.images.image([self.base, self.random_tar(1000)], Cmd=test_registry.SAY)
        layout = self.images.write_layout(self.daemon.folder / "layout", {"one": image})
        archive = self.daemon.folder / "archive.tar"
        ran = drover.run(["skopeo", "copy", "--quiet", "--insecure-policy", f"oci:{layout}:one",
                          f"docker-archive:{archive}:team/tool:1"])
        self.assertEqual(ran.status, 0, ran)
        for reference, name in ((f"oci:{layout}:one", "loaded:oci"), (f"docker-archive:{archive}", "loaded:docker")):
            with self.subTest(reference=reference):
                loaded = self.image("load", reference, name, uid=drover.NOBODY)
                self.assertEqual(loaded.status, 0, loaded)
                self.assert_says_hello(self.run_image(name, "--pull", "never", uid=drover.NOBODY))
                self.assert_one_sentence(self.run_image(name, "--pull", "never"), "not on this machine")
                self.assertEqual(self.image("load", reference, name).status, 0)
                self.assert_says_hello(self.run_image(name, "--pull", "never"))
                self.assertRegex(self.image("ls").out, rf"(?m)^{name} +sha256:[0-9a-f]{{12}} .* everybody$")
        self.assertEqual(self.daemon.api("GET", "/v1/images/loaded:oci", uid=drover.NOBODY)["digest"], image["digest"])
        secret = self.daemon.folder / "secret.tar"
        shutil.copy(archive, secret)
        secret.chmod(0o600)
        denied = self.image("load", f"docker-archive:{secret}", "loaded:secret", uid=drover.NOBODY)
        self.assert_one_sentence(denied, "Permission denied")

    def test_names_are_removed_by_those_who_pulled_them(self):
        layout = self.images.write_layout(self.daemon.folder / "removed", {"one": self.images.image([self.base], Cmd=test_registry.SAY)})
        name = "loaded:removed"
        self.assertEqual(self.image("load", f"oci:{layout}:one", name).status, 0)
        self.assert_one_sentence(self.image("rm", name, uid=drover.NOBODY), "only root removes it")
        self.assertEqual(self.image("rm", name).status, 0)
        self.assertNotIn(name, self.listed())
        self.assert_one_sentence(self.image("rm", name), "There is no image")

    def test_prune_leaves_what_tasks_use(self):
        other, _ = self.new_image()
        image = self.images.image([self.base, self.random_tar(1 << 16)], Cmd=["/probe", "sleep", "600"])
        running = self.registry.tag("team/running:1", image)
        config = json.loads(self.images.blobs[json.loads(self.images.blobs[image["digest"]])["config"]["digest"]])
        mine = {digest[7:] for digest in config["rootfs"]["diff_ids"]}
        task = self.daemon.submit(command=["/probe", "sleep", "600"], image=running)
        self.daemon.wait_until_running(task)
        self.assertEqual(self.image("pull", other).status, 0)
        pruned = json.loads(self.image("prune", "--all", "--json").out)
        self.assertIn(other, pruned["names"])
        self.assertNotIn(running, pruned["names"])
        self.assertEqual(self.image("rm", running).status, 0)
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.image("prune").status, 0)
        self.assertEqual(self.layers(), mine)
        self.assertEqual(self.blobs(), set())
        self.assertEqual(self.daemon.task(task)["state"], "running")
        self.assertEqual(self.daemon.cli("exec", task, "--", "/probe", "say", "still here").out, "still here\n")
        self.daemon.stop_task(task, force=True)
        self.daemon.wait_until_final(task)
        drover.wait_for(lambda: self.image("prune").status == 0 and not self.layers(), "the layers to be free")


if __name__ == "__main__":
    unittest.main()
