"""Registries for tests: Debian's docker-registry as it is, and one that does whatever a test wants of it.

Both are on this machine only, on ports of their own, and end with the test.
"""

import base64
import functools
import gzip
import hashlib
import http.server
import io
import json
import pathlib
import platform
import shutil
import socket
import subprocess
import tarfile
import threading
import time

import drover

PROGRAM = shutil.which("docker-registry")
OCI = "application/vnd.oci.image."
MANIFEST, INDEX = OCI + "manifest.v1+json", OCI + "index.v1+json"
ARCHITECTURE = drover.oci_layout.GO_ARCHITECTURES.get(platform.machine(), platform.machine())
HOST = "registry.drover.test"
USER, PASSWORD = "tester", "s3cret-Pa55"
# What `htpasswd -nbB tester s3cret-Pa55` prints: registries take no other kind of hash.
HTPASSWD = "tester:$2b$05$tFCHhXoxw3mgyj7rFVefMOrsqiFGIezHdgMCkhiwMTSd6DjYt/jtO\n"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def docker_config(host, user=USER, password=PASSWORD):
    """What `docker login` writes."""
    secret = base64.b64encode(f"{user}:{password}".encode()).decode()
    return json.dumps({"auths": {host: {"auth": secret}}})


def make_tar(files):
    """Files by their paths: bytes, or None for a folder."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for path, content in files.items():
            member = tarfile.TarInfo(path)
            member.mode = 0o755
            if content is None:
                member.type = tarfile.DIRTYPE
                tar.addfile(member)
            else:
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return stream.getvalue()


class Images:
    """Blobs and manifests, in memory."""

    def __init__(self):
        self.blobs, self.types = {}, {}

    def blob(self, data, media_type="application/octet-stream"):
        digest = digest_of(data)
        self.blobs[digest], self.types[digest] = data, media_type
        return {"mediaType": media_type, "digest": digest, "size": len(data)}

    def image(self, layers, compress=functools.partial(gzip.compress, mtime=0), suffix="+gzip", **settings):
        """Of these tars; returns the manifest's descriptor. The same tar makes the same layer."""
        config = {"architecture": ARCHITECTURE, "os": "linux", "config": settings,
                  "rootfs": {"type": "layers", "diff_ids": [digest_of(layer) for layer in layers]}}
        stored = [self.blob(compress(layer), OCI + "layer.v1.tar" + suffix) for layer in layers]
        return self.manifest(self.blob(json.dumps(config).encode(), OCI + "config.v1+json"), stored)

    def manifest(self, config, layers):
        return self.blob(json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": config,
                                     "layers": layers}).encode(), MANIFEST)

    def index(self, images):
        """Of descriptors with platforms."""
        return self.blob(json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": images}).encode(), INDEX)

    def write_layout(self, folder, tags):
        """As a folder that skopeo reads; `tags` are descriptors by name."""
        folder = pathlib.Path(folder)
        (folder / "blobs/sha256").mkdir(parents=True)
        for digest, data in self.blobs.items():
            (folder / "blobs/sha256" / digest[7:]).write_bytes(data)
        (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        named = [{**image, "annotations": {"org.opencontainers.image.ref.name": tag}} for tag, image in tags.items()]
        (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": named}))
        return folder


class Authority:
    """Signs certificates, in a folder: ca.crt, server.crt and server.key, client.crt and client.key."""

    def __init__(self, folder, host):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"]
        self.openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=Drover's test",
                     "-addext", "keyUsage=keyCertSign")
        for name, subject in (("server", host), ("client", "drover")):
            self.openssl("req", "-x509", *key, "-CA", "ca.crt", "-CAkey", "ca.key", "-keyout", f"{name}.key", "-out", f"{name}.crt",
                         "-subj", f"/CN={subject}", "-addext", f"subjectAltName=DNS:{subject}", "-addext", "basicConstraints=CA:FALSE")

    def openssl(self, *words):
        ran = drover.run(["openssl", *words], cwd=self.folder)
        if ran.status != 0:
            raise AssertionError(f"openssl could not make a certificate: {ran}")


class RealRegistry:
    """Debian's docker-registry; with `private`, USER and PASSWORD are needed for everything. With an authority it is spoken to over
    TLS, as `name`, and with `known_clients` only by those who show a certificate."""

    def __init__(self, folder, private=False, authority=None, name="127.0.0.1", known_clients=False):
        self.folder, self.private, self.authority = pathlib.Path(folder), private, authority
        self.folder.mkdir()
        settings = {"version": 0.1, "log": {"level": "error"}, "http": {},
                    "storage": {"filesystem": {"rootdirectory": str(self.folder / "storage")}}}
        if private:
            (self.folder / "htpasswd").write_text(HTPASSWD)
            settings["auth"] = {"htpasswd": {"realm": "test", "path": str(self.folder / "htpasswd")}}
        if authority:
            settings["http"]["tls"] = {"certificate": str(authority.folder / "server.crt"), "key": str(authority.folder / "server.key")}
            if known_clients:
                settings["http"]["tls"]["clientcas"] = [str(authority.folder / "ca.crt")]
        while not self.serves(settings):
            pass
        self.host = f"{name}:{self.port}"

    def serves(self, settings):
        """At a port that was free a moment ago; False when somebody else was faster."""
        self.port = free_port()
        settings["http"]["addr"] = f"127.0.0.1:{self.port}"
        (self.folder / "config.yml").write_text(json.dumps(settings))  # JSON is YAML
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen([PROGRAM, "serve", str(self.folder / "config.yml")], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL)
        drover.wait_for(lambda: self.process.poll() is not None or self.answers(), "docker-registry to answer")
        if self.process.poll() is None:
            return True
        said = (self.folder / "log").read_text(errors="replace")
        if "address already in use" not in said:
            raise AssertionError(f"docker-registry does not run: {said}")
        return False

    def answers(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def push(self, source, name, *options):
        """Copies from any place that skopeo knows."""
        login = ["--dest-creds", f"{USER}:{PASSWORD}"] if self.private else []
        if self.authority:
            certificates = self.folder / "client"
            certificates.mkdir(exist_ok=True)
            for own, file in (("client.cert", "client.crt"), ("client.key", "client.key")):
                shutil.copy(self.authority.folder / file, certificates / own)
            login += ["--dest-cert-dir", str(certificates)]
        # It remembers which blob is another one compressed differently, and would push that.
        ran = drover.run(["skopeo", "copy", "--quiet", "--insecure-policy", "--preserve-digests", "--dest-tls-verify=false",
                          *login, *options, source, f"docker://127.0.0.1:{self.port}/{name}"])
        if ran.status != 0:
            raise AssertionError(f"skopeo could not push {name}: {ran}")

    def close(self):
        self.process.terminate()
        self.process.wait()


class ScriptedRegistry:
    """Serves Images over HTTP. What a test wants otherwise it says in `on(path, action)`: for a request whose path holds `path`,
    the action is called with the handler, and the usual answer follows unless it returns True."""

    def __init__(self, images=None):
        self.images = images or Images()
        self.tags, self.actions, self.requests = {}, [], []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.requests.append((self.path, dict(self.headers)))
                for path, action in outer.actions:
                    if path in self.path and action(self):
                        return
                outer.answer(self)

            do_HEAD = do_GET

            def do_POST(self):
                self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.do_GET()

            def reply(self, status, body=b"", **headers):
                self.send_response(status)
                for name, value in {"Content-Length": len(body), **headers}.items():
                    self.send_header(name.replace("_", "-"), str(value))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)
                return True

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, *_):  # clients that go away are part of the tests
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    def on(self, path, action):
        self.actions.append((path, action))

    def tag(self, name, descriptor):
        """`name` is "repository:tag"."""
        self.tags[tuple(name.rsplit(":", 1))] = descriptor["digest"]
        return f"{self.host}/{name}"

    def answer(self, handler):
        path = handler.path.removeprefix("/v2/").split("?")[0]
        if not path:
            return handler.reply(200)
        if "/manifests/" in path:
            repository, version = path.split("/manifests/")
            digest = self.tags.get((repository, version), version)
        else:
            digest = path.split("/")[-1]
        data = self.images.blobs.get(digest)
        if data is None:
            return handler.reply(404, b'{"errors": [{"code": "UNKNOWN", "message": "there is no such thing"}]}')
        headers = {"Content_Type": self.images.types[digest], "Docker_Content_Digest": digest}
        begin = handler.headers.get("Range", "")
        if begin.startswith("bytes="):
            first = int(begin.removeprefix("bytes=").split("-")[0])
            headers["Content_Range"] = f"bytes {first}-{len(data) - 1}/{len(data)}"
            return handler.reply(206, data[first:], **headers)
        return handler.reply(200, data, **headers)

    def asked(self, path):
        """The headers of all requests whose path holds `path`."""
        return [headers for asked, headers in self.requests if path in asked]

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class DaemonWithHomes(drover.Daemon):
    """A daemon that sees other home folders of root and nobody, for it reads users' credentials there, and takes HOST for a name of
    this machine: copies of /etc/passwd and /etc/hosts are mounted over the machine's where only this daemon sees them."""

    def command(self):
        homes = {"root": self.folder / "root", "nobody": self.folder / "nobody"}
        lines = []
        for line in pathlib.Path("/etc/passwd").read_text().splitlines():
            fields = line.split(":")
            if fields[0] in homes:
                fields[5] = str(homes[fields[0]])
            lines.append(":".join(fields))
        users = self.folder / "passwd"
        users.write_text("\n".join(lines) + "\n")
        hosts = self.folder / "hosts"
        hosts.write_text(pathlib.Path("/etc/hosts").read_text() + f"127.0.0.1 {HOST}\n")
        # The daemon's folder alone stays what both see: an engine takes what is mounted there.
        script = ('mount --make-private / && mount --bind "$0" /etc/passwd && mount --bind "$1" /etc/hosts && '
                  'shift && exec "$@"')
        return ["unshare", "--mount", "--propagation", "unchanged", "sh", "-c", script, str(users), str(hosts), *super().command()]

    def start(self, wait=True):
        drover.run(["mount", "--bind", self.folder, self.folder])
        drover.run(["mount", "--make-shared", self.folder])
        return super().start(wait)

    def stop(self):
        status = super().stop()
        drover.run(["umount", "--lazy", self.folder])
        return status

    def log_in(self, user, host, **secret):
        """As `docker login` of this user ("root" or "nobody") would."""
        folder = self.folder / user / ".docker"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(docker_config(host, **secret))
        (folder / "config.json").chmod(0o644)

    def log_out(self, user):
        shutil.rmtree(self.folder / user, ignore_errors=True)


def drip(data, pieces, pause):
    """The data in so many pieces, with a pause after each."""
    size = max(1, len(data) // pieces)
    for begin in range(0, len(data), size):
        yield data[begin:begin + size]
        time.sleep(pause)
