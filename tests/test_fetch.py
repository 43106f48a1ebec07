"""Files that are brought into a task's sandbox before it starts."""

import contextlib
import http.server
import io
import os
import pathlib
import ssl
import subprocess
import tarfile
import tempfile
import threading
import zipfile

import drover

SLIPPED = f"drover-slipped-{os.getpid()}"


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves the dictionary of its server, and notes what was asked."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.path.partition("?")[0]
        self.server.asked.append((path, dict(self.headers)))
        if path == "/redirect":
            return self.answer(302, b"", Location=self.headers.get("X-To") or "/tool.sh")
        if path == "/to-file":
            return self.answer(302, b"", Location="file:///etc/passwd")
        if path == "/slow":
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            self.server.slow.set()
            self.server.release.wait(drover.PATIENCE)
            return None
        if path not in self.server.files:
            return self.answer(404, b"no")
        content, headers = self.server.files[path]
        if "ETag" in headers and self.headers.get("If-None-Match") == headers["ETag"]:
            return self.answer(304, b"", **headers)
        return self.answer(200, content, **headers)

    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *_):
        pass


def serve(files, context=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.files, server.asked = files, []
    server.slow, server.release = threading.Event(), threading.Event()
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def tar_of(entries, mode="w:gz"):
    """entries: name -> bytes, or a TarInfo for anything else than a file."""
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode=mode) as archive:
        for name, content in entries.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
                continue
            header = tarfile.TarInfo(name)
            header.size, header.mode = len(content), 0o755
            archive.addfile(header, io.BytesIO(content))
    return output.getvalue()


def zip_of(entries):
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return output.getvalue()


class FetchTest(drover.DaemonTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/tmp"
        device = tarfile.TarInfo("device")
        device.type, device.devmajor, device.devminor = tarfile.CHRTYPE, 1, 3
        cls.server = serve({
            "/tool.sh": (b"#!/bin/sh\necho the tool\n", {}),
            "/model.bin": (b"weights", {"ETag": '"v1"'}),
            "/plain.bin": (b"no validators", {}),
            "/tree.tgz": (tar_of({"in/side/file": b"from the tar\n"}), {}),
            "/tree.zip": (zip_of({"in/side/file": b"from the zip\n"}), {}),
            "/slip.zip": (zip_of({"../../slipped": b"x"}), {}),
            "/slip.tgz": (tar_of({"../slipped": b"x"}), {}),
            "/absolute.tgz": (tar_of({f"/tmp/{SLIPPED}": b"x"}), {}),
            "/through.tgz": (tar_of({"a": link, f"link/{SLIPPED}": b"x"}), {}),
            "/device.tgz": (tar_of({"d": device}), {}),
        })
        cls.addClassCleanup(cls.server.shutdown)
        cls.base = f"http://127.0.0.1:{cls.server.server_address[1]}"

    def run_with(self, fetch, script, uid=None, **fields):
        task = self.daemon.submit(command=["/bin/sh", "-c", script], fetch=fetch, uid=uid, **fields)
        return task, self.daemon.wait_until_final(task)

    def assert_not_fetched(self, fetch, *words, uid=None):
        task, record = self.run_with(fetch, "echo it ran", uid=uid)
        self.assertEqual(record["state"], "failed", record)
        for word in words:
            self.assertIn(word, record["reason"])
        self.assertEqual(self.daemon.output(task), "")
        return task

    def test_a_program_is_fetched_and_run(self):
        task, record = self.run_with([{"uri": f"{self.base}/tool.sh?token=1", "executable": True}], "./tool.sh")
        self.assertEqual(record["state"], "finished", record)
        self.assertEqual(self.daemon.output(task), "the tool\n")

    def test_files_lie_in_the_sandbox_and_belong_to_the_user(self):
        script = 'cd /; stat -c "%u %a" "$MESOS_SANDBOX/tool.sh"; cat "$MESOS_SANDBOX/a/b"'
        fetch = [f"{self.base}/tool.sh"]
        task, record = self.run_with(fetch, script.split("; cat")[0], uid=drover.NOBODY)
        self.assertEqual(self.daemon.output(task, uid=drover.NOBODY), f"{drover.NOBODY} 644\n", record)
        task, record = self.run_with([{"uri": f"{self.base}/model.bin", "output_file": "a/b"}], 'cat "$MESOS_SANDBOX/a/b"')
        self.assertEqual(self.daemon.output(task), "weights", record)

    def test_archives_are_unpacked_unless_not_wanted(self):
        for name, text in (("tree.tgz", "from the tar\n"), ("tree.zip", "from the zip\n")):
            task, record = self.run_with([f"{self.base}/{name}"], f"cat in/side/file; test -f {name}")
            self.assertEqual((record["state"], self.daemon.output(task)), ("finished", text), record)
        task, record = self.run_with([{"uri": f"{self.base}/tree.zip", "extract": False}], "test ! -e in")
        self.assertEqual(record["state"], "finished", record)

    def test_archives_do_not_get_out(self):
        for name in ("slip.zip", "slip.tgz", "absolute.tgz", "through.tgz", "device.tgz"):
            with self.subTest(name):
                task = self.assert_not_fetched([f"{self.base}/{name}"], f"{self.base}/{name}", "unpacked")
                self.assertFalse(pathlib.Path(f"/tmp/{SLIPPED}").exists())
                self.assertEqual(list(self.daemon.state.glob("**/slipped")), [])
                self.assertEqual(list((self.daemon.state / "tasks" / task / "sandbox").glob("**/device")), [])

    def test_what_is_not_there_is_told_in_a_sentence(self):
        self.assert_not_fetched([f"{self.base}/absent"], f"Failed to fetch '{self.base}/absent'", "404")
        self.assert_not_fetched(["http://127.0.0.1:1/x"], "http://127.0.0.1:1/x")
        self.assert_not_fetched(["hdfs://a/b"], "'hdfs' is not supported")
        self.assert_not_fetched([f"{self.base}/to-file"], "to-file")

    def test_redirects_are_followed(self):
        task, record = self.run_with([{"uri": f"{self.base}/redirect", "output_file": "t"}], "sh t")
        self.assertEqual(self.daemon.output(task), "the tool\n", record)

    def test_files_of_the_machine_are_read_with_the_rights_of_the_user(self):
        folder = self.daemon.folder / "private"
        folder.mkdir(mode=0o700)
        (folder / "secret").write_text("secret")
        self.assert_not_fetched([f"file://{folder}/secret"], f"{folder}/secret", "Permission denied", uid=drover.NOBODY)
        task, record = self.run_with([f"file://{folder}/secret"], "cat secret")
        self.assertEqual(self.daemon.output(task), "secret", record)

    def test_the_cache_asks_whether_a_file_has_changed(self):
        fetch = [{"uri": f"{self.base}/model.bin", "cache": True}, {"uri": f"{self.base}/plain.bin", "cache": True}]
        for _ in range(2):
            task, record = self.run_with(fetch, "cat model.bin plain.bin")
            self.assertEqual(self.daemon.output(task), "weightsno validators", record)
        validators = [headers.get("If-None-Match") for path, headers in self.server.asked if path == "/model.bin"]
        self.assertIn('"v1"', validators)
        self.server.files["/model.bin"] = (b"new weights", {"ETag": '"v2"'})
        task, record = self.run_with(fetch, "cat model.bin")
        self.assertEqual(self.daemon.output(task), "new weights", record)
        self.assertEqual((self.daemon.state / "fetched").stat().st_mode & 0o777, 0o700)

    def test_a_stop_does_not_wait_for_the_end(self):
        task = self.daemon.submit(command=["/bin/true"], fetch=[f"{self.base}/slow"])
        self.assertTrue(self.server.slow.wait(drover.PATIENCE))
        drover.wait_for(lambda: "fetching slow" in self.daemon.task(task)["reason"], "the task to say so")
        self.daemon.stop_task(task)
        self.assertEqual(self.daemon.wait_until_final(task)["state"], "killed")
        self.server.release.set()


class TrustTest(drover.DaemonTest):
    """https: only servers whose certificate can be trusted."""

    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", folder / "key",
                        "-out", folder / "certificate"], check=True, capture_output=True)
        os.chmod(folder / "certificate", 0o644)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "certificate", folder / "key")
        cls.server = serve({"/tool.sh": (b"echo trusted\n", {})}, context)
        cls.addClassCleanup(cls.server.shutdown)
        cls.uri = f"https://localhost:{cls.server.server_address[1]}/tool.sh"
        cls.daemon = drover.Daemon(environment={"SSL_CERT_FILE": str(folder / "certificate")})
        cls.addClassCleanup(cls.close_daemon)
        cls.daemon.start()
        cls.untrusting = drover.Daemon()
        cls.untrusting.start()
        cls.addClassCleanup(cls.untrusting.close)

    def test_a_trusted_server_is_read(self):
        task = self.daemon.submit(command=["/bin/sh", "tool.sh"], fetch=[self.uri])
        self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished")
        self.assertEqual(self.daemon.output(task), "trusted\n")

    def test_an_untrusted_server_is_not(self):
        task = self.untrusting.submit(command=["/bin/sh", "tool.sh"], fetch=[self.uri])
        record = self.untrusting.wait_until_final(task)
        self.assertEqual(record["state"], "failed", record)
        self.assertIn("certificate", record["reason"])
