"""The documentation is true: links lead somewhere, commands and options exist, examples run as they are written."""

import os
import re
import shutil
import unittest

import drover
import named_images

DOCUMENTS = sorted([*drover.ROOT.glob("*.md"), *(drover.ROOT / "docs").rglob("*.md"),
                    *(drover.ROOT / "examples").rglob("*.md")])
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")
CODE = re.compile(r"^```(?:sh|bash|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|\s|build/release/)drover((?: +[^\s#|&;]+)+)")

GROUPS = ("files", "queue", "quota", "app", "job", "cdi", "image", "kube", "context")  # commands that have others below them


def relative(path):
    return str(path.relative_to(drover.ROOT))


class DocumentTest(unittest.TestCase):
    def test_links_lead_somewhere(self):
        for document in DOCUMENTS:
            for target, _ in LINK.findall(document.read_text()):
                if "://" not in target:
                    with self.subTest(document=relative(document), target=target):
                        self.assertTrue((document.parent / target).exists())

    def test_every_page_can_be_found(self):
        index = (drover.ROOT / "docs/index.md").read_text()
        for document in (drover.ROOT / "docs").glob("*.md"):
            if document.name != "index.md":
                with self.subTest(document=document.name):
                    self.assertIn(f"({document.name})", index)

    def test_scripts_that_are_named_exist(self):
        for document in DOCUMENTS:
            for script in re.findall(r"\b(?:scripts|examples|bench)/[\w./-]*\w", document.read_text()):
                with self.subTest(document=relative(document), script=script):
                    self.assertTrue((drover.ROOT / script).exists())

    def test_tests_that_are_named_exist(self):
        named = {(document, *found) for document in DOCUMENTS
                 for found in re.findall(r"`((?:attack\.)?test_\w+)\.(test_\w+)`", document.read_text())}
        self.assertTrue(named)
        for document, module, test in sorted(named):
            with self.subTest(document=relative(document), test=f"{module}.{test}"):
                self.assertIn(f"def {test}(self", (drover.ROOT / "tests" / f"{module.replace('.', '/')}.py").read_text())

    def commands_in(self, document):
        """(words before the task's own command) of each `drover …` in the document's shell blocks."""
        for block in CODE.findall(document.read_text()):
            for line in block.replace("\\\n", " ").splitlines():
                for found in COMMAND.findall(line.split(" #")[0]):
                    yield found.split(" -- ")[0].split()

    def test_commands_and_options_exist(self):
        helped = {}
        for document in DOCUMENTS:
            for words in self.commands_in(document):
                if not re.fullmatch(r"[a-z]+", words[0]):
                    continue
                command = words[:2] if words[0] in GROUPS and words[1:2] and words[1].isalpha() else words[:1]
                text = helped.setdefault(tuple(command), drover.run([drover.BINARY, *command, "--help"]))
                with self.subTest(document=relative(document), words=words):
                    self.assertEqual(text.status, 0, f"there is no such command: {text}")
                    for word in words[1:]:
                        if word.startswith("-") and word != "--":
                            self.assertRegex(text.out, re.escape(word.split("=")[0]) + r"\b")


class ScriptTest(drover.DaemonTest):
    """Runs what people are told to run, where they would run it."""

    def run_script(self, *command):
        programs = self.daemon.folder / "bin"
        programs.mkdir(exist_ok=True)
        if not (programs / "drover").exists():
            (programs / "drover").symlink_to(drover.BINARY)
        environment = {**os.environ, "DROVER_SOCKET": str(self.daemon.socket), "PATH": f"{programs}:{os.environ['PATH']}"}
        return drover.run([str(word) for word in command], env=environment, timeout=500)


class TranscriptTest(ScriptTest):
    profile = "dgx1-v100"

    def test_why_not(self):
        section = (drover.ROOT / "docs/placement.md").read_text().split("\n## Why not\n")[1].split("\n## ")[0]
        commands, answer = re.search(r"^```sh\n(.*?)^```\n\n```\n(.*?)^```", section, re.MULTILINE | re.DOTALL).groups()
        ran = self.run_script("sh", "-c", commands)
        self.daemon.end_tasks()
        self.assertEqual(ran.out.split("\n", 1)[1], answer, "the first line is the id of the task")


class ImagesTest(ScriptTest):
    @unittest.skipIf(shutil.which("skopeo") is None, "skopeo is not installed: scripts/install-dependencies --tests")
    def test_look_after_those_that_are_here(self):
        section = (drover.ROOT / "docs/images.md").read_text().split("\n## Look after those that are here\n")[1]
        folder = self.daemon.folder
        image = drover.make_probe_image(folder / "tool", self.daemon.probe)
        made = drover.run(["skopeo", "copy", "--quiet", "--insecure-policy", image, f"docker-archive:{folder}/tool.tar:tool:1"])
        self.assertEqual(made.status, 0, made)
        *commands, prune = CODE.search(section)[1].splitlines()
        ran = self.run_script("sh", "-e", "-c", "\n".join([f"cd {folder}", *commands]))
        self.assertEqual(ran.status, 0, ran)
        self.assertRegex(ran.out, r"(?m)^team/tool:1\.0 +sha256:[0-9a-f]{12} .* everybody$")
        self.assertIn("hello from the image\n", ran.out)
        drover.wait_for(lambda: not list((self.daemon.state / "tasks").glob("*/bundle")), "the container to be cleaned up")
        ran = self.run_script("sh", "-e", "-c", prune)
        self.assertRegex(ran.out, r"(?m)^\d.* freed; blobs that nobody used: 3, layers: 1$")


class ExampleTest(ScriptTest):
    def run_example(self, name):
        ran = self.run_script(drover.ROOT / "examples" / name / "run")
        self.assertEqual(ran.status, 0, ran)
        return ran.out

    def test_hello_gpu(self):
        with_gpus, without = self.run_example("hello-gpu").split("Without:")
        self.assertEqual(with_gpus.count("allowed"), 2, with_gpus)
        self.assertEqual(with_gpus.count("denied"), 6, with_gpus)
        self.assertEqual(without.count("denied"), 8, without)

    def test_gang(self):
        output = self.run_example("gang")
        for rank in range(4):
            self.assertRegex(output, rf"(?m)^\[{rank}\] learnt y = 3.0\d? x -1.0")
        self.assertEqual(len(set(re.findall(r"GPU-[0-9a-f-]+", output))), 8, output)

    def test_two_tenants(self):
        """Beside queues of the reader's that have the names of the story, and stay as they are."""
        def queues():
            return [{**queue, "waiting": [], "used": {}} for queue in self.daemon.api("GET", "/v1/queues")["queues"]]

        for name, limit in (("vision", 6), ("speech", 4)):
            self.daemon.api("PUT", f"/v1/queues/{name}", {"guarantee": {"gpus": 2}, "limit": {"gpus": limit}})
            self.addCleanup(self.daemon.api, "DELETE", f"/v1/queues/{name}")
        before = queues()
        output = self.run_example("two-tenants")
        self.assertEqual(queues(), before)
        lent, plan, back, quota = re.split(r"== What would|== vision wants|== A quota", output)
        self.assertRegex(lent, r"speech +8 GPUs")
        self.assertIn("6 tasks have been ended", plan)
        self.assertRegex(back, r"vision +6 GPUs")
        self.assertIn("interns", quota)

    def test_two_tenants_wants_a_machine_that_is_free(self):
        task = self.daemon.submit("sleep", 1000, gpus=1)
        self.daemon.wait_until_running(task)
        ran = self.run_script(drover.ROOT / "examples/two-tenants/run")
        self.daemon.end_task(task)
        self.assertEqual(ran.status, 1, ran)
        self.assertIn("two-tenants: all eight GPUs must be free, and they are not now: ", ran.err)
        self.assertEqual(len(self.daemon.api("GET", "/v1/queues")["queues"]), 1)

    @unittest.skipIf(shutil.which("mmdebstrap") is None, "mmdebstrap is not installed: scripts/install-dependencies --image")
    def test_digits(self):
        named_images.make_digits_image()
        output = self.run_example("digits")
        self.assertIn("Recognises", output)
        self.assertIn("model.npz", output)
        self.assertEqual(len(re.findall(r'"nvidia\d+"', output)), 1, output)


if __name__ == "__main__":
    unittest.main()
