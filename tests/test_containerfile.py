"""The image of packaging/kubernetes/Containerfile, built by podman from the source tree, on a Debian that is made on the spot."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import drover
import podman

FILE = drover.ROOT / "packaging/kubernetes/Containerfile"
BASE, IMAGE = "localhost/drover-test-debian:12", "localhost/drover-test:1"
BUILD_LIMIT = 90 * 60


class ContainerfileTest(unittest.TestCase):
    def test_what_it_copies_is_there(self):
        for words in re.findall(r"^COPY (?!--)(.*) \S+$", FILE.read_text(), re.MULTILINE):
            for path in words.split():
                self.assertTrue((drover.ROOT / path).exists(), path)

    @unittest.skipUnless(os.environ.get("DROVER_TEST_CONTAINERFILE"), "compiles everything anew: DROVER_TEST_CONTAINERFILE=1 runs it")
    def test_the_image_runs_and_holds_little(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="drover-containerfile-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        command = podman.command(folder)
        self.addCleanup(subprocess.run, [*command, "system", "reset", "--force"], capture_output=True)

        def run(*words, **options):
            done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
            self.assertEqual(done.returncode, 0, done.stdout[-4000:])
            return done.stdout

        run("mmdebstrap", "--variant=minbase", "bookworm", folder / "debian.tar")
        run(*command, "import", folder / "debian.tar", BASE)
        (folder / "debian.tar").unlink()
        run(*command, "build", *podman.LIMITS, "--network=host", "--build-arg", f"DEBIAN={BASE}", "--file", FILE, "--tag", IMAGE,
            drover.ROOT, timeout=BUILD_LIMIT)
        self.assertIn("drover", run(*command, "run", "--rm", *podman.LIMITS, "--network=none", "--read-only", IMAGE, "version"))
        self.assertLess(int(run(*command, "image", "inspect", "--format={{.Size}}", IMAGE)), 100 << 20)


if __name__ == "__main__":
    unittest.main()
