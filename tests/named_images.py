"""Images that daemons find under the names that the definitions and examples of others use."""

import fcntl
import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import drover


def shell_image(folder, name, tags, programs_at=None, command=("/bin/bash",)):
    """An image with the machine's own shells and what they need, and programs given as bytes by their path in it, under this name
    and these tags in a folder of images."""
    files = {"/bin/bash", "/bin/sh"}
    for program in sorted(files):
        for line in drover.run(["ldd", program]).out.splitlines():
            files |= {word for word in line.split() if word.startswith("/")}

    def fill(layer):
        for path in ("dev", "etc", "proc", "sys"):
            layer.add_folder(path)
        layer.add_folder("tmp", 0o1777)
        for path in sorted(files):
            layer.add_file(path, pathlib.Path(path).read_bytes(), 0o755)
        for path, content in (programs_at or {}).items():
            layer.add_file(path, content, 0o755)

    output = pathlib.Path(folder) / name
    output.parent.mkdir(parents=True, exist_ok=True)
    drover.oci_layout.write(output, fill, command=list(command), tag=tags[0])
    index = json.loads((output / "index.json").read_text())
    (manifest,) = index["manifests"]
    name_of = "org.opencontainers.image.ref.name"
    index["manifests"] = [{**manifest, "annotations": {name_of: tag}} for tag in tags]
    (output / "index.json").write_text(json.dumps(index))


def make_digits_image():
    """The image of examples/digits, which is kept in the checkout; skips the test where it cannot be made. One module at a time."""
    folder = drover.ROOT / "build/images"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = subprocess.run([drover.ROOT / "examples/digits/make-image"], capture_output=True, text=True)
    if made.returncode != 0:
        raise unittest.SkipTest(f"the image cannot be made here: {made.stderr.strip().splitlines()[-1]}")


class NamedImagesTest(drover.DaemonTest):
    """A daemon that looks for images in `cls.images`, which is empty at first."""

    @classmethod
    def setUpClass(cls):
        cls.images = pathlib.Path(tempfile.mkdtemp(prefix="drover-images-"))
        cls.addClassCleanup(shutil.rmtree, cls.images)
        cls.images.chmod(0o755)
        cls.arguments = ("--images", cls.images)
        super().setUpClass()

    def give_shell_image(self, name, tag):
        """shell_image(), for the daemon's tasks."""
        shell_image(self.images, name, [tag])
        self.daemon.learn_image(self.images / name, f"{name}:{tag}")
