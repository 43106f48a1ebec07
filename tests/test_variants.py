"""One name for several images: each machine gets the one that works on it."""

import hashlib
import json
import pathlib
import shutil
import unittest

import drover
import oci_layout
import registries

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

    def test_odd_names_are_refused_in_a_sentence(self):
        daemon = self.serve("k80-396")
        for name in ("", "x" * 70_000, "variants:/dev/zero", "variants:/", "No Image", "tool@sha256:12"):
            ran = daemon.cli("image", "variants", name)
            self.assertEqual(ran.status, 64, ran)
            self.assertNotRegex(ran.err, "makes no sense|mistake of its own")

    def test_mistakes_in_a_list_are_told(self):
        daemon = self.serve("k80-396")
        path = daemon.folder / "list.yaml"
        path.write_text("variants:\n- {image: x, cpu: haswel}\n- {image: y, memory: 3}\n")
        ran = daemon.cli("image", "variants", f"variants:{path}")
        self.assertNotEqual(ran.status, 0)
        self.assertIn("haswell", ran.err)
        self.assertIn("memory", ran.err)


# Two builds for a machine with V100 and A100.
TWO = {"volta": {"compute_capability": "7.0"}, "ampere": {"compute_capability": "8.0"}}


@unittest.skipUnless(registries.PROGRAM, "needs the package docker-registry")
class RegistryVariantsTest(drover.DaemonTest):
    """The same of names that registries have."""

    profile = "mixed"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.registry = registries.RealRegistry(cls.daemon.folder / "registry")
        cls.addClassCleanup(cls.registry.close)
        cls.images = make_images(cls.daemon.folder, cls.daemon.probe, [*TWO, "driver-390"])

    def push(self, name, needs):
        """An index of images that say their names; the layers of each name are its own."""
        layout = make_index(self.daemon.folder / f"index-{name}", self.images, needs)
        self.registry.push(layout, f"{name}:1", "--all")
        return f"{self.registry.host}/{name}:1"

    def run_on(self, model, name, *options, uid=None):
        return self.daemon.cli("run", "--gpus", "1", "--gpu-model", model, "--image", name, *options, uid=uid)

    def brought(self, name):
        """The variants of an image that are on this machine, by name."""
        shown = json.loads(self.daemon.cli("image", "variants", name, "--json").out)
        here = {image["name"] for image in self.daemon.api("GET", "/v1/images")["images"]}
        return {variant["name"] for variant in shown["variants"] if variant["image"] in here}

    def test_each_gpu_gets_its_variant_and_no_other_is_brought(self):
        name = self.push("each", TWO)
        shown = json.loads(self.daemon.cli("image", "variants", name, "--json").out)
        self.assertEqual({case["gpu"][:10]: case["chosen"] for case in shown["cases"]},
                         {"Tesla V100": "volta", "NVIDIA A10": "ampere"}, shown)
        self.assertEqual(self.brought(name), set(), "to look brings nothing")
        self.assertEqual(self.run_on("V100", name).out, "volta\n")
        self.assertEqual(self.brought(name), {"volta"})
        never = self.run_on("A100", name, "--pull", "never")
        self.assertRegex(never.err, "variant 'ampere': it is not on this machine, and was not to be pulled")
        self.assertEqual(self.run_on("A100", name).out, "ampere\n")
        self.assertEqual(self.brought(name), {"volta", "ampere"})
        self.assertEqual(self.run_on("A100", name, "--pull", "never").out, "ampere\n")
        self.assertEqual(self.run_on("A100", name, uid=drover.NOBODY).out, "ampere\n")
        self.assertEqual(self.daemon.cli("image", "prune").status, 0)
        self.assertEqual(self.run_on("V100", name, "--pull", "never").out, "volta\n", "the index is kept")

    def test_a_pull_brings_what_this_machine_takes(self):
        name = self.push("pulled", {**TWO, "driver-390": {"driver": "390"}})
        pulled = self.daemon.cli("image", "pull", name)
        self.assertEqual((pulled.status, pulled.out.split()[0]), (0, name), pulled)
        self.assertEqual(self.brought(name), {"volta", "ampere"})
        self.assertEqual(self.run_on("V100", name, "--pull", "never").out, "volta\n")
        self.assertIn("stands for several images", self.daemon.cli("image", "inspect", name).err)

    def test_none_fits_is_said_before_anything_comes(self):
        name = self.push("old", {"driver-390": {"driver": "390"}})
        for ran in (self.run_on("V100", name), self.daemon.cli("image", "pull", name)):
            self.assertEqual(ran.status != 0, True)
            self.assertRegex(ran.err, "none of its 1 variants fits this machine: driver-390: it needs driver 390")
        self.assertEqual(self.brought(name), set())

    def test_a_tag_that_moves_on_is_followed_when_it_is_asked_for(self):
        name = self.push("moved", {"volta": TWO["volta"]})
        self.assertEqual(self.run_on("V100", name).out, "volta\n")
        shutil.rmtree(self.daemon.folder / "index-moved")
        self.push("moved", {"ampere": {"compute_capability": ">=7.0"}})
        self.assertEqual(self.run_on("V100", name).out, "volta\n")
        self.assertEqual(self.run_on("V100", name, "--pull", "always").out, "ampere\n")
        self.assertEqual(self.run_on("V100", name, "--pull", "never").out, "ampere\n")

    def test_placement_knows_what_has_come(self):
        name = self.push("learnt", {"ampere": TWO["ampere"]})
        self.assertIn("none of its 1 variants fits", self.run_on("V100", name).err, "refused when it starts")
        refused = lambda: "No node could hold this" in self.run_on("V100", name).err
        drover.wait_for(refused, "the image to be known")
        for _ in range(3):
            self.assertEqual(self.daemon.cli("run", "--gpus", "1", "--image", name).out, "ampere\n")

    def test_a_list_may_name_what_registries_have(self):
        for name in TWO:
            self.registry.push(self.images[name], f"listed/{name}:1")
        reference = make_list(self.daemon.folder, {name: f"{self.registry.host}/listed/{name}:1" for name in TWO}, TWO)
        self.assertEqual(self.run_on("A100", reference).out, "ampere\n")
        self.assertEqual(self.run_on("A100", reference, uid=drover.NOBODY).out, "ampere\n")
        self.assertIn("was not to be pulled", self.run_on("V100", reference, "--pull", "never").err)

    def test_an_index_is_not_loaded_as_one_image(self):
        layout = make_index(self.daemon.folder / "loaded", self.images, TWO)
        self.assertIn("it stands for 2 images", self.daemon.cli("image", "load", layout, "loaded:1").err)


class HostileIndexTest(drover.DaemonTest):
    """Indexes of a registry that means no good."""

    profile = "mixed"

    def setUp(self):
        self.registry = registries.ScriptedRegistry()
        self.addCleanup(self.registry.close)

    def refusal(self, annotations, count=1):
        images = self.registry.images
        image = images.image([registries.make_tar({"file": b""})])
        index = images.index([{**image, "annotations": annotations} for _ in range(count)])
        name = self.registry.tag("bad:1", index)
        shown = [self.daemon.cli(*words, name) for words in (("image", "variants"), ("image", "pull"))]
        for ran in shown:
            self.assert_one_sentence(ran)
            self.assertLess(len(ran.err), 1000)
        self.assertNotIn(name, self.daemon.cli("image", "ls").out)
        return shown[0].err

    def test_what_is_absurd_is_refused_in_words(self):
        prefix = "dev.drover.variant."
        self.assertIn("more than 256 variants", self.refusal({prefix + "driver": "396"}, count=257))
        self.assertIn("more than 10000 images", self.refusal({}, count=10_001))
        self.assertIn("says nothing that a variant can need", self.refusal({prefix + "x" * 100_000: "1"}))
        self.assertIn("at most 1024 bytes", self.refusal({prefix + "driver": "1," * 100_000}))
        self.assertIn("at most 2048 bytes", self.refusal({prefix + "cpu": "avx+" * 100_000}))
        self.assertIn("1 to 128 bytes", self.refusal({prefix + "name": "n" * 100_000}))
        self.assertIn("did you mean 'driver'", self.refusal({prefix + "drivr": "396"}))


class PlacedVariantsTest(drover.DaemonTest):
    """Work is only given GPUs that a variant of its image works on, and is refused where there can be none."""

    profile = "mixed"
    SLEEP = ["/probe", "sleep", "600"]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        images = make_images(cls.daemon.folder, cls.daemon.probe, [*TWO, "driver-390"])
        lists = {"two": TWO, "ampere": {"ampere": TWO["ampere"]}, "old": {"driver-390": {"driver": "390"}}}
        cls.images = {}
        for name, needs in lists.items():
            folder = cls.daemon.folder / f"list-{name}"
            folder.mkdir()
            cls.images[name] = make_list(folder, images, needs)

    def tearDown(self):
        for task in self.daemon.tasks():
            if task["state"] not in drover.FINAL_STATES:
                self.daemon.end_task(task["task"]["id"])

    def submit(self, image, gpus=1, **fields):
        return self.daemon.submit(gpus=gpus, image=self.images[image], command=self.SLEEP, **fields)

    def take(self, model):
        """Both GPUs of this model."""
        task = self.daemon.submit("sleep", "600", gpus=2, gpu_model=model)
        self.daemon.wait_until_running(task)
        return task

    def models(self, task):
        models = {gpu["uuid"]: gpu["model"] for gpu in self.daemon.api("GET", "/v1/gpus")["gpus"]}
        return {models[grant["gpu"]].split()[1].split("-")[0] for grant in self.daemon.task(task)["grants"]}

    def test_work_waits_for_gpus_that_its_image_works_on(self):
        holder = self.take("A100")
        waiting = self.submit("ampere")
        why = r"lacks 1 free GPU of compute capability 8\.0: its image has no variant for others"
        self.assertEqual(self.daemon.task(waiting)["state"], "queued")
        self.assertRegex(self.daemon.cli("explain", waiting).out, why)
        plan = self.daemon.api("POST", "/v1/plan", {"gpus": 1, "image": self.images["ampere"]})
        self.assertFalse(plan["starts_now"])
        self.assertRegex(plan["reasons"][0], why)
        self.daemon.kill()
        self.daemon.start()
        drover.wait_for(lambda: "lacks 1 free GPU" in self.daemon.task(waiting)["reason"], "the image to be known again")
        self.daemon.stop_task(holder, force=True)
        self.daemon.wait_until_running(waiting)
        self.assertEqual(self.models(waiting), {"A100"})

    def test_gpus_of_different_variants_are_not_mixed(self):
        first, second = (self.submit("two", gpus=2) for _ in range(2))
        for task in (first, second):
            self.daemon.wait_until_running(task)
        self.assertEqual([len(self.models(first)), len(self.models(second))], [1, 1])
        ran = self.daemon.cli("run", "--gpus", "3", "--image", self.images["two"])
        self.assert_one_sentence(ran, "volta: it needs compute capability 7.0, and GPU", "ampere: it needs compute capability 8.0, and")

    def test_what_can_never_run_is_refused_with_a_reason_for_each_variant(self):
        before = len(self.daemon.tasks())
        why = "driver-390: it needs driver 390, and this machine has"
        self.assert_one_sentence(self.daemon.cli("run", "--gpus", "1", "--image", self.images["old"]), why)
        self.assert_one_sentence(self.daemon.cli("plan", "--gpus", "1", "--image", self.images["old"]), why)
        self.assert_one_sentence(self.daemon.cli("run", "--image", self.images["ampere"]), "there is no GPU for it")
        v100 = self.daemon.cli("run", "--gpus", "1", "--gpu-model", "V100", "--image", self.images["ampere"])
        self.assert_one_sentence(v100, "ampere: it needs compute capability 8.0, and GPU")
        job = {"name": "never", "schedule": "R/2100-01-01T00:00:00Z/PT1H", "command": "true", "cpus": 0.1, "mem": 64,
               "gpus": 1, "container": {"type": "MESOS", "image": self.images["old"]}}
        status, _, data = self.daemon.request("POST", "/v1/scheduler/iso8601", job)
        self.assertEqual((status // 100, why in data.decode()), (4, True), data)
        self.assertEqual(len(self.daemon.tasks()), before)

    def test_services_wait_as_all_work_does(self):
        holder = self.take("A100")
        self.daemon.api("POST", "/v2/apps", {"id": "/waits", "cpus": 0.1, "mem": 64, "gpus": 1, "cmd": "/probe sleep 600",
                                             "container": {"type": "MESOS", "docker": {"image": self.images["ampere"]}}})
        self.addCleanup(self.daemon.api, "DELETE", "/v2/apps/waits?force=true")
        waits = lambda: [task for task in self.daemon.tasks() if "its image has no variant" in (task.get("reason") or "")]
        [instance] = drover.wait_for(waits, "the instance to wait")
        self.assertEqual(instance["state"], "queued")
        self.daemon.stop_task(holder, force=True)
        drover.wait_for(lambda: self.daemon.task(instance["task"]["id"])["state"] != "queued", "the instance to start")
        self.assertEqual(self.models(instance["task"]["id"]), {"A100"})


if __name__ == "__main__":
    unittest.main()
