"""What Drover answers to selectors of devices is what Kubernetes answers: its own code is asked beside.

DROVER_TEST_EXPRESSIONS says how many random ones are tried, DROVER_TEST_SEED which.
"""

import json
import os
import random
import subprocess
import unittest

import drover
from kube import cel_cases, components

EXPRESSIONS = int(os.environ.get("DROVER_TEST_EXPRESSIONS", "20000"))
SEED = int(os.environ.get("DROVER_TEST_SEED", "5"))
LIMIT = 300  # seconds


def kinds(answer, devices):
    """What one program said of each device: true, false, error, refused or unsupported."""
    for word in ("refused", "unsupported"):
        if word in answer:
            return [word] * devices
    return [said.partition(":")[0] for said in answer["answers"]]


class SelectorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.oracle = components.cel_oracle()

    def asked(self, program, questions):
        done = subprocess.run([program], input=questions, capture_output=True, text=True, timeout=LIMIT, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])
        return [json.loads(line) for line in done.stdout.splitlines()]

    def compare(self, questions):
        """How often each answer came; what differs fails."""
        text = "".join(json.dumps(question) + "\n" for question in questions)
        theirs, ours = self.asked(self.oracle, text), self.asked(drover.BUILD / "cel-answers", text)
        self.assertEqual((len(theirs), len(ours)), (len(questions), len(questions)))
        counts, different = {}, []
        for question, their, our in zip(questions, theirs, ours):
            for device, expected, said in zip(question["devices"], kinds(their, len(question["devices"])), kinds(our, len(question["devices"]))):
                counts[said] = counts.get(said, 0) + 1
                if said not in (expected, "unsupported"):
                    different.append(f"{question['expression']}\n  of {json.dumps(device)}\n  Kubernetes: {expected} {their}\n  Drover: {said} {our}")
        self.assertEqual(different, [], f"{len(different)} of {sum(counts.values())} answers differ, with DROVER_TEST_SEED={SEED}:\n"
                         + "\n".join(sorted(different, key=len)[:10]))
        return counts

    def test_published_selectors(self):
        rng = random.Random(2)
        devices = [cel_cases.device(rng) for _ in range(25)]
        counts = self.compare([{"expression": expression, "devices": devices} for _, expression in cel_cases.published()])
        print(f"\n{len(cel_cases.published())} published selectors, {len(devices)} devices: {counts}")
        self.assertEqual(counts.get("unsupported", 0), 0)
        self.assertLess({"true", "false", "error"}, counts.keys() | {"refused"})

    def test_random_selectors(self):
        grammar, rng = cel_cases.Grammar(SEED), random.Random(SEED)
        questions = [{"expression": grammar.expression(), "devices": [cel_cases.device(rng) for _ in range(2)]} for _ in range(EXPRESSIONS)]
        counts = self.compare(questions)
        print(f"\n{EXPRESSIONS} random selectors, 2 devices each, DROVER_TEST_SEED={SEED}: {counts}")
        self.assertLess(counts.get("unsupported", 0), sum(counts.values()) / 100)


if __name__ == "__main__":
    unittest.main()
