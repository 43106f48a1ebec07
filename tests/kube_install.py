"""What a cluster needs to have Drover installed: an image of the program, made on the spot, and Helm with the chart."""

import json
import os
import pathlib
import subprocess
import tempfile

import drover
from kube import components, images

PACKAGING = drover.ROOT / "packaging/kubernetes"
CHART = PACKAGING / "chart"
IMAGE = "drover.invalid/drover:1"
# Of the chart: that image, which no registry has.
VALUES = {"image": {"repository": IMAGE.split(":")[0], "tag": "1", "pullPolicy": "Never"}}
PATIENCE = 180


def make_image(folder):
    """As packaging/kubernetes/Containerfile makes it, but of the program that is built already. Returns its reference and archive."""
    root = folder / "root"
    subprocess.run([PACKAGING / "image-root", drover.BUILD, root], check=True)

    def fill(layer):
        for path in sorted(root.rglob("*")):
            inside = str(path.relative_to(root))
            if path.is_dir():
                layer.add_folder(inside)
            else:
                layer.add_file(inside, path.read_bytes(), path.stat().st_mode & 0o777)

    return images.archive(folder, IMAGE, fill, entrypoint=["/usr/bin/drover"], command=["kube", "node"])


class Helm:
    """Helm with folders of its own; on `cluster`, or on none. SkipTest where there is no Helm."""

    def __init__(self, cluster=None):
        self._program, self._cluster = components.helm(), cluster
        self._folder = tempfile.TemporaryDirectory(prefix="drover-helm-")
        self.close = self._folder.cleanup

    def call(self, *words, values=None, check=True):
        """Runs it to its end, with values for the chart; returns the process."""
        command = [self._program, *words]
        if self._cluster:
            command = self._cluster.reaching(*command, "--kubeconfig", self._cluster.kubeconfig)
        if values is not None:
            file = pathlib.Path(self._folder.name) / "values.json"
            file.write_text(json.dumps(values))
            command += ["--values", file]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=2 * PATIENCE,
                              env={**os.environ, "HOME": self._folder.name})
        if check and done.returncode != 0:
            raise AssertionError(f"'helm {' '.join(map(str, words))}' ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def template(self, *options, values=None, name="drover", namespace="kube-system", **more):
        return self.call("template", name, CHART, "--namespace", namespace, *options, values=values, **more).stdout
