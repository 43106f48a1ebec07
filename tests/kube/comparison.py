"""Cases made at random, answered by us and by an oracle that links Kubernetes' own code."""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from drover import BUILD

CHUNK = 100          # cases
LIMIT = 600          # seconds for a chunk, in either program


def run(command, limit=LIMIT, **options):
    done = subprocess.run(command, capture_output=True, timeout=limit, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command[0]} ended with {done.returncode}: {done.stdout[-2000:]} {done.stderr[-2000:]}")
    return done.stdout


class ComparisonTest(unittest.TestCase):
    """`answers` is a test of kube_test that reads the file DROVER_TEST_<variable>_CASES and writes …_ANSWERS; DROVER_TEST_<variable>_CASE is
    the number of the one case that is looked at. DROVER_TEST_SEED says which are made."""

    answers = ""
    variable = ""

    def setUp(self):
        self.ours = BUILD / "kube_test"
        if not self.ours.exists():
            self.skipTest(f"{self.ours} is not built")
        self.oracle = self.make_oracle()

    def make_oracle(self):
        """The program that answers for Kubernetes."""
        raise NotImplementedError

    def make_case(self, seed):
        raise NotImplementedError

    def compare(self, seeds):
        cases = [self.make_case(seed) for seed in seeds]
        with tempfile.TemporaryDirectory() as folder:
            asked, answered = pathlib.Path(folder, "asked"), pathlib.Path(folder, "answered")
            asked.write_text("".join(json.dumps(case) + "\n" for case in cases))
            run([self.ours, f"--gtest_filter={self.answers}"],
                env={**os.environ, f"DROVER_TEST_{self.variable}_CASES": str(asked), f"DROVER_TEST_{self.variable}_ANSWERS": str(answered)})
            ours = [json.loads(line) for line in answered.read_text().splitlines()]
        return list(zip(seeds, cases, self.ask_oracle(cases), ours, strict=True))

    def ask_oracle(self, cases):
        lines = "".join(json.dumps(case) + "\n" for case in cases).encode()
        return [json.loads(line) for line in run([self.oracle], input=lines).splitlines()]

    def compare_all(self, count, add):
        """Calls add(seed, case, theirs, ours) for so many; returns the first seed."""
        first = int(os.environ.get("DROVER_TEST_SEED", "1")) * 1_000_000
        seeds = range(first, first + count)
        if (alone := f"DROVER_TEST_{self.variable}_CASE") in os.environ:
            seeds = [int(os.environ[alone])]
        chunks = [seeds[start:start + CHUNK] for start in range(0, len(seeds), CHUNK)]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for chunk in pool.map(self.compare, chunks):
                for answered in chunk:
                    add(*answered)
        return first
