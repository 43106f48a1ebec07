"""'drover validate' over the real program: the definitions that people bring, and what is wrong with others. There is no daemon."""

import json
import subprocess
import tempfile
import pathlib
import unittest

import drover

DEFINITIONS = drover.ROOT / "tests/data/definitions"
WRONG = """id: /shop/web
cmd: serve
cpus: lots
container:
  type: MESOS
  docker: {image: ""}
healthChecks:
  - {protocol: HTTP, path: 7}
"""


def validate(*words, text=None):
    done = subprocess.run([drover.BINARY, "validate", *words], input=text, capture_output=True, text=True, timeout=drover.PATIENCE)
    return drover.Ran(done.returncode, done.stdout, done.stderr)


class ValidateTest(unittest.TestCase):
    def test_real_definitions_are_right_as_they_are(self):
        files = sorted(DEFINITIONS.glob("*.json"))
        self.assertGreaterEqual(len(files), 5)
        for file in files:
            with self.subTest(file=file.name):
                ran = validate(str(file))
                self.assertEqual(ran.status, 0, ran)
                self.assertIn("is right", ran.out)

    def test_every_mistake_stands_where_it_is(self):
        ran = validate("-", text=WRONG)
        self.assertEqual(ran.status, 64, ran)
        self.assertIn("standard input:3:7: /cpus: ", ran.err)
        self.assertIn("\n  cpus: lots\n        ^\n", ran.err)
        told = json.loads(validate("--json", "-", text=WRONG).out)["mistakes"]
        lines = WRONG.splitlines()
        places = {mistake["path"]: lines[mistake["line"] - 1][mistake["column"] - 1:] for mistake in told}
        self.assertTrue(places["/cpus"].startswith("lots"), places)
        self.assertTrue(places["/container/docker/image"].startswith('""'), places)
        self.assertTrue(places["/healthChecks(0)/path"].startswith("7"), places)

    def test_json_and_yaml_are_told_alike(self):
        text = json.dumps({"id": "web", "cmd": "x", "mem": "lots"}, indent=2)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "app.json")
            file.write_text(text)
            ran = validate(str(file))
        self.assertEqual(ran.status, 64, ran)
        self.assertIn('app.json:4:10: /mem: ', ran.err)

    def test_typing_errors_are_warned_of(self):
        text = "id: a\ncmd: x\ninstnces: 3\n---\nname: j\ncommand: x\nparents: [a]\ngpu: 2\n"
        ran = validate("-", text=text)
        self.assertEqual(ran.status, 0, ran)
        self.assertIn("standard input:3:1: warning: /instnces: unknown field 'instnces'\n  instnces: 3\n  ^\n  did you mean 'instances'?\n", ran.err)
        self.assertIn("standard input:8:1: warning: /gpu: unknown field 'gpu'\n  gpu: 2\n  ^\n  did you mean 'gpus'?\n", ran.err)
        self.assertNotIn("is right", ran.out)
        strict = validate("--strict", "-", text=text)
        self.assertEqual((strict.status, strict.out), (64, ""), strict)
        self.assertIn("2 mistakes\n", strict.err)

    def test_one_file_may_have_every_kind(self):
        ran = validate("--strict", "-", text="""kind: app
id: web
cmd: x
---
kind: group
id: shop
apps: [{id: web, cmd: x}]
---
- {kind: job, name: nightly, command: x, schedule: R/2030-01-31T02:30:00Z/P1D}
- {kind: job, name: after, command: x, parents: [nightly]}
- {kind: task, command: [x], mem: 4GiB, gpus: 0.5, timeout: 1h}
- {kind: gang, command: [y], gang: {size: 2}}
""")
        self.assertEqual(ran.status, 0, ran)
        self.assertEqual([line.split(": ", 1)[1] for line in ran.out.splitlines()],
                         ["app '/web' is right", "group '/shop' is right", "job 'nightly' is right", "job 'after' is right",
                          "task 'x' is right", "gang 'y' is right"])

    def test_what_cannot_be_privileged_anywhere_is_known_without_a_daemon(self):
        ran = validate("-", text="{kind: task, command: [x], privileged: true}")
        self.assertEqual(ran.status, 64, ran)
        self.assertIn("Only containers of a Docker Engine can be privileged", ran.err)

    def test_paths_are_meant_from_the_file_and_from_where_one_is(self):
        text = "kind: task\ncommand: [x]\nworking_directory: src\n"
        for script, status in (("", 0), ('rmdir "$PWD"; ', 64)):
            with self.subTest(script=script), tempfile.TemporaryDirectory() as folder:
                inside = pathlib.Path(folder) / "inside"
                inside.mkdir()
                done = subprocess.run(["sh", "-c", f'{script}exec "$0" validate -', drover.BINARY], input=text, cwd=inside,
                                      capture_output=True, text=True)
                self.assertEqual(done.returncode, status, done)
                self.assertEqual("'src' is not an absolute path" in done.stderr, status != 0, done)

    def test_absurd_files_are_refused_in_few_words(self):
        laughs = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
        for text in (laughs, "[" * 1_000_000, "{\"a\": " * 1_000_000, "x" * (5 << 20), "\x00\x01", "a: 1\na: 2\n", "", "- " * 100_000,
                     "&a [*a]", "? [x]\n: y\n"):
            with self.subTest(text=text[:20]):
                ran = validate("-", text=text)
                self.assertEqual(ran.status, 64, ran)
                self.assertLess(len(ran.err), 2000)


if __name__ == "__main__":
    unittest.main()
