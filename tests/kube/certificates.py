"""A cluster's certificate authority and what it signs, made by openssl, and the kubeconfig files that use them."""

import json
import subprocess

DAYS = "30"
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class Authority:
    """Files in one folder: ca.crt, NAME.crt and NAME.key of each certificate, sa.key and sa.pub for service accounts' tokens."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        # Without a configuration of our own openssl makes an authority of everything that it signs.
        (folder / "openssl.cnf").write_text("[req]\ndistinguished_name = name\n[name]\n")
        self._request("ca", "/CN=drover-test-ca", {"basicConstraints": "critical,CA:TRUE",
                                                   "keyUsage": "critical,keyCertSign,cRLSign,digitalSignature"})
        self._openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", folder / "sa.key")
        self._openssl("pkey", "-in", folder / "sa.key", "-pubout", "-out", folder / "sa.pub")

    def path(self, name):
        return self.folder / name

    def sign(self, name, common_name, organization="", addresses=(), names=()):
        """A certificate for clients, and for servers at the IP addresses and DNS names given."""
        subject = (f"/O={organization}" if organization else "") + f"/CN={common_name}"
        extensions = {"basicConstraints": "critical,CA:FALSE", "keyUsage": "critical,digitalSignature",
                      "extendedKeyUsage": "clientAuth,serverAuth"}
        others = [f"IP:{address}" for address in addresses] + [f"DNS:{other}" for other in names]
        if others:
            extensions["subjectAltName"] = ",".join(others)
        self._request(name, subject, extensions, "-CA", self.path("ca.crt"), "-CAkey", self.path("ca.key"))

    def kubeconfig(self, name, server):
        """Writes NAME.kubeconfig: a client that shows the certificate NAME. Returns its path."""
        path = self.path(f"{name}.kubeconfig")
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority": str(self.path("ca.crt"))}}],
            "users": [{"name": "test", "user": {"client-certificate": str(self.path(f"{name}.crt")),
                                                "client-key": str(self.path(f"{name}.key"))}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}]}))
        return path

    def _request(self, name, subject, extensions, *signer):
        added = [word for item in extensions.items() for word in ("-addext", "=".join(item))]
        self._openssl("req", "-x509", "-config", self.path("openssl.cnf"), *KEY, *signer, "-days", DAYS, "-subj", subject, *added,
                      "-keyout", self.path(f"{name}.key"), "-out", self.path(f"{name}.crt"))

    @staticmethod
    def _openssl(*words):
        subprocess.run(["openssl", *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, check=True)
