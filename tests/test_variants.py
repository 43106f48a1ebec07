"""One name for several images: each machine gets the one that works on it (Q3)."""

import hashlib
import json
import pathlib
import shutil
import unittest

import drover
import oci_layout

# Five builds of one program, as a site with old and new machines has them.
STORY = {
    "driver-390": {"driver": "390"},
    "driver-396": {"driver": "396"},
    "broadwell": {"driver": "396", "cpu": "broadwell"},
    "skylake-avx512": {"driver": "396", "cpu": "skylake-avx512"},
    "maxwell": {"driver": "396", "compute_capability": "5.2"},
}
PROFILES = drover.ROOT / "sim/profiles"


def profile_with_cpu(folder, profile, cpu):
    """The file of a shipped profile on another processor."""
    lines = [line for line in (PROFILES / f"{profile}.yaml").read_text().splitlines() if not line.startswith("  cpu:")]
    lines.insert(lines.index("models:"), f"  cpu: {cpu}")
    path = pathlib.Path(folder) / f"{profile}-{cpu}.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


def make_images(folder, probe, names=STORY):
    """A layout for each name, whose image says the name."""
    return {name: drover.make_probe_image(folder / name, probe, command=["/probe", "say", name]) for name in names}


def make_list(folder, images, needs=STORY):
    entries = [{"name": name, "image": images[name], **fields} for name, fields in needs.items()]
    (folder / "list.yaml").write_text(json.dumps({"variants": entries}))
    return f"variants:{folder}/list.yaml"


def make_index(output, images, needs=STORY):
    """One layout with an index of all images, which say what they need in annotations."""
    blobs = output / "blobs/sha256"
    blobs.mkdir(parents=True)
    manifests = []
    for name, fields in needs.items():
        layout = pathlib.Path(images[name].removeprefix("oci:"))
        for blob in (layout / "blobs/sha256").iterdir():
            shutil.copy(blob, blobs)
        [entry] = json.loads((layout / "index.json").read_text())["manifests"]
        said = {f"dev.drover.variant.{key.replace('_', '-')}": value for key, value in {"name": name, **fields}.items()}
        manifests.append({**entry, "annotations": said})
    index = json.dumps({"schemaVersion": 2, "mediaType": oci_layout.MEDIA + "index.v1+json", "manifests": manifests}).encode()
    digest = hashlib.sha256(index).hexdigest()
    (blobs / digest).write_bytes(index)
    (output / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (output / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [
        {"mediaType": oci_layout.MEDIA + "index.v1+json", "digest": f"sha256:{digest}", "size": len(index),
         "annotations": {"org.opencontainers.image.ref.name": "1.0"}}]}))
    return f"oci:{output}:1.0"


class VariantsTest(unittest.TestCase):
    def serve(self, profile):
        daemon = drover.Daemon(profile=str(profile))
        self.addCleanup(lambda: self.assertEqual(daemon.close(), []))
        return daemon.start()

    def on(self, profile, cpu=None):
        """A daemon of the machine with the story's images, as a list and as an index."""
        if cpu:
            folder = pathlib.Path(self.enterContext(drover.tempfile.TemporaryDirectory()))
            profile = profile_with_cpu(folder, profile, cpu)
        daemon = self.serve(profile)
        images = make_images(daemon.folder, daemon.probe)
        return daemon, [make_list(daemon.folder, images), make_index(daemon.folder / "index", images)]

    def assert_takes(self, wanted, profile, cpu=None):
        daemon, references = self.on(profile, cpu)
        for reference in references:
            with self.subTest(reference=reference):
                ran = daemon.cli("run", "--gpus", "1", "--image", reference)
                self.assertEqual((ran.status, ran.out), (0, wanted + "\n"), ran)
                shown = json.loads(daemon.cli("image", "variants", reference, "--json").out)
                self.assertEqual([case["chosen"] for case in shown["cases"]], [wanted], shown)

    def test_a_k80_gets_the_build_for_its_driver_and_processor(self):
        self.assert_takes("broadwell", "k80-396")

    def test_an_m60_gets_the_build_for_maxwell(self):
        self.assert_takes("maxwell", "m60-396")

    def test_an_old_processor_gets_the_generic_build(self):
        self.assert_takes("driver-396", "k80-396", "ivybridge")

    def test_avx512_goes_only_where_it_is(self):
        self.assert_takes("skylake-avx512", "k80-396", "cascadelake")

    def test_the_old_driver_gets_its_build(self):
        self.assert_takes("driver-390", "k40m", "broadwell")

    def test_none_fits_is_said_for_each(self):
        daemon, references = self.on("dgx-a100")
        for reference in references:
            with self.subTest(reference=reference):
                ran = daemon.cli("run", "--gpus", "1", "--image", reference)
                self.assertNotEqual(ran.status, 0, ran)
                shown = daemon.cli("image", "variants", reference)
                self.assertEqual(shown.status, 1, shown)
                for name in STORY:
                    self.assertIn(name, ran.err)
                    self.assertRegex(shown.out, rf"(?m)^{name} .* no: it needs")

    def test_the_choice_is_explained_for_other_machines_too(self):
        daemon, [reference, _] = self.on("k80-396")
        for profile, wanted in (("m60-396", "maxwell"), ("k80-396", "broadwell")):
            shown = json.loads(daemon.cli("image", "variants", reference, "--profile", profile, "--json").out)
            self.assertEqual([(shown["profile"], case["chosen"]) for case in shown["cases"]], [(profile, wanted)])
            verdicts = {verdict["name"]: verdict for verdict in shown["cases"][0]["verdicts"]}
            self.assertEqual(verdicts["driver-390"]["reason"], "it needs driver 390, and this machine has 396.44")
        for profile in ("no-such", "../k80", "/etc/passwd"):
            ran = daemon.cli("image", "variants", reference, "--profile", profile)
            self.assertNotEqual(ran.status, 0)
            self.assertIn("profile", ran.err)

    def test_a_list_is_read_with_the_rights_of_who_asks(self):
        daemon = self.serve("k80-396")
        images = make_images(daemon.folder, daemon.probe, ["broadwell"])
        reference = make_list(daemon.folder, images, {"broadwell": {"cpu": "broadwell"}})
        ran = daemon.cli("run", "--gpus", "1", "--image", reference, uid=drover.NOBODY)
        self.assertEqual(ran.out, "broadwell\n", ran)
        (daemon.folder / "list.yaml").chmod(0o600)
        for words in (("run", "--gpus", "1", "--image", reference), ("image", "variants", reference)):
            self.assertIn("list.yaml", daemon.cli(*words, uid=drover.NOBODY).err)
        self.assertEqual(daemon.cli("run", "--gpus", "1", "--image", reference).out, "broadwell\n")

    def test_an_entry_of_an_index_can_be_named_by_its_digest(self):
        daemon, [_, reference] = self.on("k80-396")
        shown = json.loads(daemon.cli("image", "variants", reference, "--json").out)
        [maxwell] = [variant["image"] for variant in shown["variants"] if variant["name"] == "maxwell"]
        self.assertEqual(daemon.cli("run", "--gpus", "1", "--image", maxwell).out, "maxwell\n")
        self.assertIn("single image", daemon.cli("image", "variants", maxwell).out)

    def test_mistakes_in_a_list_are_told(self):
        daemon = self.serve("k80-396")
        path = daemon.folder / "list.yaml"
        path.write_text("variants:\n- {image: x, cpu: haswel}\n- {image: y, memory: 3}\n")
        ran = daemon.cli("image", "variants", f"variants:{path}")
        self.assertNotEqual(ran.status, 0)
        self.assertIn("haswell", ran.err)
        self.assertIn("memory", ran.err)


if __name__ == "__main__":
    unittest.main()
