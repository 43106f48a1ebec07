"""How the programs of a test's Kubernetes come into the cache: whole or not at all, once, and with a word when they cannot."""

import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

import drover
from kube import components, golang

PROGRAMS = golang.Programs(module="example.com/tools", version="v1.0.0", packages=("example.com/tools/hammer",), go=(1, 26))
GO = """#!/bin/sh
# Stands for a Go: answers as FOLDER/list and FOLDER/build say.
case "$1" in
  version) echo "go version go1.26.1 linux/amd64" ;;
  list) . {folder}/list ;;
  build) echo built >>{folder}/builds; mkdir -p bin; . {folder}/build ;;
esac
"""
GOOD = "echo steel >bin/hammer"


class CacheTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="drover-kube-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cache = self.folder / "cache"
        program = self.folder / "bin/go"
        program.parent.mkdir()
        program.write_text(GO.format(folder=self.folder))
        program.chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
        patched = unittest.mock.patch.dict(os.environ, self.environment)
        patched.start()
        self.addCleanup(patched.stop)
        quiet = unittest.mock.patch("sys.stderr", open(os.devnull, "w"))
        self.addCleanup(quiet.start().close)
        self.addCleanup(quiet.stop)
        self.go_does("list", "exit 0")
        self.go_does("build", GOOD)

    def go_does(self, verb, script):
        (self.folder / verb).write_text(script + "\n")

    def builds(self):
        return (self.folder / "builds").read_text().count("built")

    def provided(self):
        return (components.provide(PROGRAMS, self.cache) / "hammer").read_text()

    def cached(self):
        return [path.name for path in self.cache.iterdir() if path.name != "lock"]

    def test_a_build_is_made_once(self):
        self.assertEqual([self.provided(), self.provided()], ["steel\n", "steel\n"])
        self.assertEqual(self.builds(), 1)

    def test_two_at_once_build_once(self):
        self.go_does("build", f"sleep 0.3; {GOOD}")
        found = []
        threads = [threading.Thread(target=lambda: found.append(self.provided())) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((found, self.builds()), (["steel\n"] * 2, 1))

    def test_a_changed_recipe_is_built_anew(self):
        self.provided()
        components.provide(dataclasses.replace(PROGRAMS, variables=("example.com/tools.colour=red",)), self.cache)
        self.assertEqual(self.builds(), 2)

    def test_a_build_that_fails_is_not_taken_for_a_good_one(self):
        self.go_does("build", "echo rust >bin/hammer; echo no more iron; exit 1")
        with self.assertRaisesRegex(RuntimeError, "no more iron"):
            self.provided()
        self.assertEqual(self.cached(), [])
        self.go_does("build", GOOD)
        self.assertEqual(self.provided(), "steel\n")

    def test_a_build_that_is_killed_is_not_taken_for_a_good_one(self):
        self.go_does("build", f"echo rust >bin/hammer; touch {self.folder}/half; exec sleep 1000")
        script = ("import pathlib, test_kube_components as tests; "
                  f"tests.components.provide(tests.PROGRAMS, pathlib.Path('{self.cache}'))")
        with subprocess.Popen([sys.executable, "-B", "-c", script], cwd=pathlib.Path(__file__).parent, env=self.environment,
                              stderr=subprocess.DEVNULL) as building:
            drover.wait_for((self.folder / "half").exists, "the build to begin")
            building.kill()
        self.go_does("build", GOOD)
        self.assertEqual(self.provided(), "steel\n")
        self.assertEqual(self.cached(), [components.folder_of(PROGRAMS, self.cache).name])

    def test_without_a_module_proxy_tests_are_skipped_and_say_why(self):
        self.go_does("list", "echo dial tcp: connection refused; exit 1")
        with self.assertRaisesRegex(unittest.SkipTest, "example.com/tools v1.0.0 cannot be fetched .*connection refused"):
            self.provided()

    def test_a_module_proxy_that_does_not_answer_is_not_waited_for(self):
        self.go_does("list", "exec sleep 1000")
        with unittest.mock.patch.object(golang, "ANSWER_LIMIT", 3), self.assertRaisesRegex(unittest.SkipTest, "it took longer than 3 s"):
            self.provided()

    def test_an_old_go_is_not_used(self):
        self.assertEqual(golang.find((1, 26)), str(self.folder / "bin/go"))
        self.assertNotEqual(golang.find((1, 27)), str(self.folder / "bin/go"))


if __name__ == "__main__":
    unittest.main()
