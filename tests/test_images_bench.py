"""The benchmark of images, in small: every way that can run here brings the image, the top layer alone, and starts."""

import json
import os
import shutil
import unittest

import drover
import registries

PROGRAM = drover.ROOT / "bench/images.py"
STATES = ["cold", "top_layer", "warm"]


@unittest.skipUnless(os.geteuid() == 0, "needs root, as container runtimes do")
@unittest.skipUnless(registries.PROGRAM and shutil.which("skopeo"), "docker-registry or skopeo is not installed")
class ImagesBenchTest(unittest.TestCase):
    def test_every_way_is_measured(self):
        ran = drover.run([PROGRAM, "--rounds", "1", "--starts", "1", "--size", "2", "--images", "framework", "--json"], timeout=300)
        self.assertEqual(ran.status, 0, ran)
        measured = json.loads(ran.out)
        rows = {}
        for row in measured["rows"]:
            rows.setdefault(row["way"], []).append(row)
        for name, given in rows.items():
            with self.subTest(way=name):
                states = STATES[:-1] if "curl" in name else STATES
                self.assertEqual([row["state"] for row in given], states)
                for row in given:
                    self.assertEqual((row["image"], row["layers"], row["rounds"]), ("framework", 11, 1))
                    self.assertGreater(row["first_instruction_s"][0], 0)
                    self.assertGreaterEqual(row["end_s"][0], row["first_instruction_s"][0])
        self.assertIn("`drover run`", rows)
        self.assertEqual(len(rows) + len(measured["notes"]), 4, "each of four ways is measured, or it is said why not")

    def test_wrong_use_is_refused(self):
        for arguments in (["--rounds", "0"], ["--images", "nothing"]):
            with self.subTest(arguments=arguments):
                self.assertEqual(drover.run([PROGRAM, *arguments]).status, 2)


if __name__ == "__main__":
    unittest.main()
