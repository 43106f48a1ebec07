"""The command line speaks https with a TLS proxy in front of a daemon, and shows its secret to nobody else."""

import http.server
import re
import shutil
import socket
import socketserver
import ssl
import subprocess
import threading
import time
import unittest

import drover

PROXY = "127.0.0.2"  # the daemon has the same port on another address: `Host` names both
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class Authority:
    """Files in a folder: ca.pem, and NAME.pem and NAME.key of what it signed."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        # Without a configuration of our own openssl makes an authority of everything that it signs.
        self.configuration = folder / "openssl.cnf"
        self.configuration.write_text("[req]\ndistinguished_name = name\n[name]\n")
        self.certificate = folder / "ca.pem"
        self.openssl("req", "-x509", "-config", self.configuration, *KEY, "-days", 2, "-subj", "/CN=ca",
                     "-addext", "basicConstraints=critical,CA:TRUE", "-keyout", folder / "ca.key", "-out", self.certificate)

    def sign(self, name, subject, days=2):
        """For a server with that subjectAltName; with less than no days it has expired."""
        request, key, signed = (self.folder / f"{name}.{kind}" for kind in ("csr", "key", "pem"))
        self.openssl("req", "-config", self.configuration, *KEY, "-subj", f"/CN={name}", "-addext", f"subjectAltName={subject}",
                     "-keyout", key, "-out", request)
        self.openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.folder / "ca.key", "-days", days,
                     "-copy_extensions", "copy", "-out", signed)
        return signed, key

    @staticmethod
    def openssl(*words):
        subprocess.run(["openssl", *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, check=True)


class Server(socketserver.ThreadingTCPServer):
    """Speaks TLS; what is heard is kept, and goes on to `target`."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, address, certificate, target=None, versions=None):
        self.target, self.heard = target, b""
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*certificate)
        if versions:
            self.context.set_ciphers("ALL:@SECLEVEL=0")
            self.context.minimum_version = self.context.maximum_version = versions
        super().__init__(address, None)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def finish_request(self, request, client_address):
        try:
            with self.context.wrap_socket(request, server_side=True) as secure, socket.create_connection(self.target) as plain:
                back = threading.Thread(target=self.pump, args=(plain, secure), daemon=True)
                back.start()
                self.pump(secure, plain, keep=True)
                back.join(drover.PATIENCE)
        except OSError:
            pass  # whoever does not trust us hangs up

    def pump(self, source, sink, keep=False):
        try:
            while piece := source.recv(65536):
                if keep:
                    self.heard += piece
                sink.sendall(piece)
        except OSError:
            pass
        try:
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.shutdown()
        self.server_close()


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """Sends everybody to another server, in the clear."""

    asked = []

    def do_GET(self):
        self.asked.append(self.headers["Authorization"])
        self.send_response(307)
        self.send_header("Location", f"http://{self.headers['Host']}/v1/tasks")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@unittest.skipIf(shutil.which("openssl") is None, "needs openssl, to make certificates")
class TlsTest(drover.DaemonTest):
    profile = "k40m"
    arguments = ("--listen", "127.0.0.1:0", "--host-name", PROXY)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.port = int(re.search(r"127\.0\.0\.1:(\d+)", cls.daemon.read_log()).group(1))
        cls.secret = re.search(r"^root:(\S+)$", (cls.daemon.state / "credentials").read_text(), re.MULTILINE).group(1)
        cls.authority = Authority(cls.daemon.folder / "authority")
        cls.certificate = cls.authority.sign("proxy", f"IP:{PROXY},DNS:proxy.example")

    def serve(self, certificate=None, **options):
        server = Server((PROXY, self.port), certificate or self.certificate, ("127.0.0.1", self.port), **options)
        self.addCleanup(server.close)
        return server

    def command(self, *words, trusted=True):
        flags = ["--ca-file", self.authority.certificate] if trusted else []
        return [str(word) for word in (drover.BINARY, *flags, *words)]

    def variables(self, url=None):
        return {**self.daemon.environment, "DROVER_TOKEN": self.secret, "DROVER_HOST": url or f"https://{PROXY}:{self.port}"}

    def cli(self, *words, url=None, trusted=True):
        return drover.run(self.command(*words, trusted=trusted), env=self.variables(url))

    def assert_not_spoken_with(self, server, ran, sentence):
        self.assertEqual(ran.status, 69, ran)
        self.assert_one_sentence(ran, sentence)
        self.assertEqual(server.heard, b"")

    def test_everything_works_behind_a_proxy(self):
        server = self.serve()
        self.addCleanup(self.daemon.end_tasks)
        self.assertEqual(self.cli("run", "--", "sh", "-c", "echo out; exit 3").status, 3)
        ran = self.cli("run", "--detach", "--name", "long", "--", "sh", "-c", "echo begun; exec sleep 1000")
        self.assertEqual(ran.status, 0, ran)
        task = ran.out.strip()
        self.daemon.wait_for_output(task, "begun")
        self.assertIn("begun", self.cli("logs", task).out)
        self.assertIn(task, self.cli("ps").out)
        text = "x" * 300_000
        ran = subprocess.run(self.command("exec", "-i", task, "--", "cat"), env=self.variables(), input=text, capture_output=True,
                             text=True, check=False)
        self.assertEqual((ran.returncode, ran.stdout), (0, text), ran.stderr)
        self.assertIn(self.secret.encode(), server.heard)
        self.assertEqual(self.cli("stop", task).status, 0)

    def test_the_authority_may_stand_in_a_variable(self):
        self.serve()
        self.daemon.environment["DROVER_CA_FILE"] = str(self.authority.certificate)
        self.addCleanup(self.daemon.environment.pop, "DROVER_CA_FILE")
        self.assertEqual(self.cli("ps", trusted=False).status, 0)

    def test_a_certificate_of_another_host(self):
        server = self.serve(self.authority.sign("other", "IP:127.0.0.9,DNS:other.example"))
        self.assert_not_spoken_with(server, self.cli("ps"), f"The certificate of '{PROXY}' is for another host")

    def test_a_name_that_is_not_that_of_the_certificate(self):
        server = Server(("127.0.0.1", 0), self.certificate, ("127.0.0.1", self.port))
        self.addCleanup(server.close)
        ran = self.cli("ps", url=f"https://localhost:{server.server_address[1]}")
        self.assert_not_spoken_with(server, ran, "The certificate of 'localhost' is for another host")

    def test_a_certificate_that_has_expired(self):
        server = self.serve(self.authority.sign("expired", f"IP:{PROXY}", days=-1))
        self.assert_not_spoken_with(server, self.cli("ps"), f"The certificate of '{PROXY}' has expired")

    def test_an_authority_that_nobody_knows(self):
        server = self.serve()
        self.assert_not_spoken_with(server, self.cli("ps", trusted=False),
                                    f"The certificate of '{PROXY}' comes from an authority that is not trusted here")
        stranger = Authority(self.daemon.folder / "stranger").sign("proxy", f"IP:{PROXY}")
        server.context.load_cert_chain(*stranger)
        self.assert_not_spoken_with(server, self.cli("ps"),
                                    f"The certificate of '{PROXY}' comes from an authority that is not trusted here")

    def test_a_version_of_tls_that_is_too_old(self):
        server = self.serve(versions=ssl.TLSVersion.TLSv1_1)
        self.assert_not_spoken_with(server, self.cli("ps"), f"Failed to agree on TLS with '{PROXY}'")

    def test_a_server_without_tls(self):
        ran = self.cli("ps", url=f"https://127.0.0.1:{self.port}")
        self.assertEqual(ran.status, 69, ran)
        self.assert_one_sentence(ran, "Failed to agree on TLS with '127.0.0.1'")

    def test_a_server_that_says_nothing(self):
        with socket.create_server((PROXY, 0)) as deaf:
            began = time.monotonic()
            ran = self.cli("--patience", "1s", "ps", url=f"https://{PROXY}:{deaf.getsockname()[1]}")
        self.assertEqual(ran.status, 69, ran)
        self.assert_one_sentence(ran, f"Failed to agree on TLS with '{PROXY}'")
        self.assertLess(time.monotonic() - began, 15, "it is as patient as it was told to be")

    def test_a_file_without_authorities(self):
        server = self.serve()
        for file in ("/nonexistent", "/etc/hostname"):
            ran = self.cli("--ca-file", file, "ps", trusted=False)
            self.assertEqual(ran.status, 64, ran)
            self.assert_one_sentence(ran, f"Failed to read certificate authorities from '{file}'")
        self.assertEqual(server.heard, b"")

    def test_nobody_else_is_asked(self):
        server = http.server.ThreadingHTTPServer((PROXY, 0), Elsewhere)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        ran = self.cli("ps", url=f"https://{PROXY}:{server.server_address[1]}")
        self.assertEqual(ran.status, 69, ran)
        self.assert_one_sentence(ran, "The answer is to ask another server (status 307), which is not done")
        self.assertEqual(Elsewhere.asked, [f"Bearer {self.secret}"])


if __name__ == "__main__":
    unittest.main()
