"""A real Docker Engine of a test's own: on a private socket, in a private folder, behind a private bridge, and ended with it.

With DROVER_TEST_ENGINE=/run/podman/podman.sock the engine that answers there is tried instead.
"""

import contextlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import unittest
import urllib.parse

import drover


class Engine:
    """Starts `dockerd`; where it cannot start, the test is skipped with what it said. With `live_restore` its containers live on
    when it does not. `options` are dockerd's."""

    def __init__(self, live_restore=False, options=()):
        self.options = [*(["--live-restore"] if live_restore else []), *options]
        self.given = os.environ.get("DROVER_TEST_ENGINE")
        if self.given:
            self.socket, self.bridge, self.process = pathlib.Path(self.given), "its own", None
            return
        self.program = shutil.which("dockerd")
        if not self.program:
            raise unittest.SkipTest("dockerd is not installed: run scripts/install-dependencies --tests")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="drover-docker-"))
        self.socket = self.folder / "docker.sock"
        self.bridge = self._make_bridge()
        self.process = None
        try:
            self.start()
        except AssertionError as error:
            self.close()
            raise unittest.SkipTest(f"dockerd cannot run here: {error}") from None

    def _make_bridge(self):
        """Its name; None where none can be made: then there are containers on the machine's network only."""
        name = f"drt{os.getpid()}"[:15]
        subnet = f"10.{213 + os.getpid() // 250 % 40}.{os.getpid() % 250}.1/24"
        made = drover.run(["ip", "link", "add", name, "type", "bridge"]) if shutil.which("ip") else None
        if made is None or made.status != 0:
            return None
        drover.run(["ip", "address", "add", subnet, "dev", name])
        return name

    def start(self):
        network = [f"--bridge={self.bridge or 'none'}", "--iptables=false", "--ip6tables=false", "--ip-forward=false",
                   "--ip-masq=false"]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [self.program, *network, *self.options, "--host", f"unix://{self.socket}", "--data-root", self.folder / "data",
                 "--exec-root", self.folder / "exec", "--pidfile", self.folder / "pid", "--shutdown-timeout", "2"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        drover.wait_for(self._answers, "dockerd to answer")

    def _answers(self):
        if self.process.poll() is not None:
            raise AssertionError(f"it ended: {(self.folder / 'log').read_text()[-300:]}")
        with contextlib.suppress(OSError):
            return self.request("GET", "/_ping")[0] == 200
        return False

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(drover.PATIENCE)

    def close(self):
        if self.given:
            return
        self.stop()
        for pid in drover.processes_of(self.folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        for mount in reversed(drover.mounts_of(self.folder)):  # it leaves its network namespaces mounted
            drover.run(["umount", "--lazy", mount])
        if self.bridge:
            drover.run(["ip", "link", "delete", self.bridge])
        shutil.rmtree(self.folder, ignore_errors=True)

    def request(self, method, path, body=None, content_type="application/json"):
        """Status and bytes of the engine's answer."""
        connection = drover.UnixConnection(self.socket, drover.PATIENCE)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"Content-Type": content_type})
            response = connection.getresponse()
            return response.status, response.read()

    def containers(self):
        """Drover's, running or not."""
        filters = urllib.parse.quote(json.dumps({"label": ["drover.task"]}))
        return json.loads(self.request("GET", f"/containers/json?all=true&filters={filters}")[1])

    def container_of(self, task):
        filters = urllib.parse.quote(json.dumps({"label": [f"drover.task={task}"]}))
        (found,) = json.loads(self.request("GET", f"/containers/json?all=true&filters={filters}")[1])
        return json.loads(self.request("GET", f"/containers/{found['Id']}/json")[1])

    def load(self, name, reference):
        """Gives it an image that lies in an OCI layout ("oci:FOLDER") under a name; returns the name."""
        blobs = pathlib.Path(reference.removeprefix("oci:")) / "blobs/sha256"
        index = json.loads((blobs.parent.parent / "index.json").read_text())
        manifest = json.loads((blobs / index["manifests"][0]["digest"].removeprefix("sha256:")).read_text())
        config = manifest["config"]["digest"].removeprefix("sha256:")
        layers = [layer["digest"].removeprefix("sha256:") for layer in manifest["layers"]]
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            def add(path, content):
                member = tarfile.TarInfo(path)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))

            add(f"{config}.json", (blobs / config).read_bytes())
            for layer in layers:
                add(f"{layer}/layer.tar", (blobs / layer).read_bytes())
            described = [{"Config": f"{config}.json", "RepoTags": [name], "Layers": [f"{layer}/layer.tar" for layer in layers]}]
            add("manifest.json", json.dumps(described).encode())
        status, answer = self.request("POST", "/images/load?quiet=true", archive.getvalue(), "application/x-tar")
        if status != 200 or b"errorDetail" in answer:
            raise AssertionError(f"the engine did not take the image: {answer}")
        return name
