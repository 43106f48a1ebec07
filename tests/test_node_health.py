"""`drover kube node` says at /healthz whether it lives: what Kubernetes starts it anew by. Without a cluster."""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

import drover

HANGS = 120  # seconds after which what should take some is said to hang


class NodeHealthTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]

    def start(self, kubeconfig):
        log = open(self.folder / "log", "wb")
        self.addCleanup(log.close)
        process = subprocess.Popen(
            [drover.BINARY, "kube", "node", "--simulate", "k40m", "--state", self.folder / "state", "--kubelet-root", self.folder / "kubelet",
             "--kubeconfig", kubeconfig, "--node-name", "here", "--health-address", f"127.0.0.1:{self.port}"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        drover.wait_for(lambda: self.health() is not None, lambda: f"/healthz: {(self.folder / 'log').read_text()}")

    def health(self):
        """Status and text; None when nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()
        except OSError:
            return None

    def test_what_never_ends_is_told(self):
        kubeconfig = self.folder / "kubeconfig"
        os.mkfifo(kubeconfig)  # whoever reads it waits for a writer
        self.start(kubeconfig)
        self.assertEqual(self.health(), (200, "ok\n"))
        told = drover.wait_for(lambda: (found := self.health()) != (200, "ok\n") and found,
                               lambda: f"/healthz to tell: {(self.folder / 'log').read_text()}",
                               timeout=HANGS + drover.PATIENCE, pause=1)
        self.assertEqual(told[0], 503, told)
        self.assertRegex(told[1], "reaching the cluster has taken .* and may never end")


if __name__ == "__main__":
    unittest.main()
