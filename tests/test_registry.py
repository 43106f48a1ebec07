"""Images out of registries: Debian's docker-registry, and one that is slow, broken or hostile in every way that matters."""

import base64
import contextlib
import json
import os
import pathlib
import random
import shutil
import tempfile
import threading
import unittest

import drover
import registries

SAY = ["/probe", "say", "hello from the image"]


def base_files(probe):
    return {"dev": None, "etc": None, "proc": None, "sys": None, "tmp": None, "probe": probe.read_bytes(),
            "etc/passwd": b"root:x:0:0:root:/root:/probe\n"}


class RegistryTest(drover.DaemonTest):
    """A daemon that sees homes of its own, and images that say hello."""

    kind_of_daemon = registries.DaemonWithHomes

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.base = registries.make_tar(base_files(cls.daemon.probe))

    def tearDown(self):
        for user in ("root", "nobody"):
            self.daemon.log_out(user)

    def run_image(self, name, *options, uid=None):
        return self.daemon.cli("run", "--cpus", "0.1", "--mem", "64M", *options, "--image", name, uid=uid)

    def assert_says_hello(self, ran):
        self.assertEqual((ran.status, ran.out), (0, "hello from the image\n"), ran)

    def pulled(self):
        return self.daemon.state / "images/pulled"

    def partial(self):
        return sorted(path.name for path in (self.pulled() / "partial").iterdir())

    def random_tar(self, size, name="noise"):
        """A layer that does not compress, unlike any other."""
        return registries.make_tar({name: random.randbytes(size)})


@unittest.skipUnless(registries.PROGRAM, "needs the package docker-registry")
class RealRegistryTest(RegistryTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.registry = registries.RealRegistry(cls.daemon.folder / "registry")
        cls.addClassCleanup(cls.registry.close)
        cls.private = registries.RealRegistry(cls.daemon.folder / "private", private=True)
        cls.addClassCleanup(cls.private.close)
        images = registries.Images()
        image = images.image([cls.base, registries.make_tar({"second": b"2"})], Cmd=SAY)
        foreign = images.image([cls.base], Cmd=SAY)
        index = images.index([
            {**foreign, "platform": {"os": "windows", "architecture": registries.ARCHITECTURE}},
            {**image, "platform": {"os": "linux", "architecture": registries.ARCHITECTURE}}])
        layout = images.write_layout(cls.daemon.folder / "source", {"one": image, "several": index})
        cls.registry.push(f"oci:{layout}:one", "team/tool:1.0")
        cls.registry.push(f"oci:{layout}:one", "tool:zstd", "--dest-compress-format", "zstd")
        cls.registry.push(f"oci:{layout}:several", "tool:several", "--all")
        cls.registry.push(f"oci:{layout}:one", "tool:docker", "--format", "v2s2")
        cls.private.push(f"oci:{layout}:one", "secret:1")
        cls.digest = image["digest"]

    def test_names_of_every_kind_run(self):
        for name in ("team/tool:1.0", "tool:zstd", "tool:several", "tool:docker", f"team/tool@{self.digest}"):
            with self.subTest(name=name):
                self.assert_says_hello(self.run_image(f"{self.registry.host}/{name}"))
                self.assert_says_hello(self.run_image(f"{self.registry.host}/{name}", uid=drover.NOBODY))
        self.assertEqual(self.partial(), [])

    def test_what_is_not_there_is_said(self):
        self.assert_one_sentence(self.run_image(f"{self.registry.host}/tool:none"), "has no such image", "404")
        never = self.run_image(f"{self.registry.host}/tool:other", "--pull", "never")
        self.assert_one_sentence(never, "was not to be pulled", "drover image pull")

    def test_what_took_credentials_is_for_those_who_have_them(self):
        name = f"{self.private.host}/secret:1"
        self.assert_one_sentence(self.run_image(name), "denies access", "docker login")
        self.daemon.log_in("root", self.private.host)
        self.assert_says_hello(self.run_image(name))
        self.assert_says_hello(self.run_image(name, "--pull", "never"))
        self.assert_one_sentence(self.run_image(name, uid=drover.NOBODY), "denies access")
        self.assert_one_sentence(self.run_image(name, "--pull", "never", uid=drover.NOBODY), "not on this machine")
        self.daemon.log_in("nobody", self.private.host, password="wrong")
        denied = self.run_image(name, uid=drover.NOBODY)
        self.assert_one_sentence(denied, "denies access")
        self.daemon.log_in("nobody", self.private.host)
        self.assert_says_hello(self.run_image(name, uid=drover.NOBODY))
        self.assertNotIn(registries.PASSWORD, self.daemon.read_log() + denied.err)

    def test_layers_of_other_tools_can_be_read(self):
        self.assert_says_hello(self.run_image(f"{self.registry.host}/team/tool:1.0"))
        ran = drover.run(["skopeo", "inspect", "--raw", f"oci:{self.pulled()}:{self.registry.host}/team/tool:1.0"])
        self.assertEqual(ran.status, 0, ran)
        self.assertEqual(registries.digest_of(ran.out.encode()), self.digest)


@unittest.skipUnless(registries.PROGRAM and shutil.which("openssl"), "needs the packages docker-registry and openssl")
class TlsTest(RegistryTest):
    """Registries whose certificates no machine trusts by itself."""

    @classmethod
    def setUpClass(cls):
        cls.certificates = pathlib.Path(tempfile.mkdtemp(prefix="drover-certificates-"))
        cls.addClassCleanup(shutil.rmtree, cls.certificates)
        cls.arguments = ("--registry-certificates", cls.certificates)
        super().setUpClass()
        cls.authority = registries.Authority(cls.daemon.folder / "authority", registries.HOST)
        images = registries.Images()
        cls.layout = images.write_layout(cls.daemon.folder / "source", {"one": images.image([cls.base], Cmd=SAY)})

    def start_registry(self, **options):
        registry = registries.RealRegistry(self.daemon.folder / self.id().rpartition(".")[2], authority=self.authority,
                                           name=registries.HOST, **options)
        self.addCleanup(registry.close)
        registry.push(f"oci:{self.layout}:one", "tool:1")
        return registry

    def trust(self, host, **files):
        folder = self.certificates / host
        folder.mkdir(exist_ok=True)
        for name, file in files.items():
            shutil.copy(self.authority.folder / file, folder / name.replace("_", "."))
        return folder

    def test_an_authority_is_trusted_for_the_registry_that_it_was_put_there_for(self):
        registry = self.start_registry()
        name = f"{registry.host}/tool:1"
        words = (f"the certificate of '{registry.host}' is not trusted", f"'{self.certificates}/{registry.host}/ca.crt'")
        self.assert_one_sentence(self.run_image(name), *words)
        self.trust("other.example.com:5000", ca_crt="ca.crt")
        self.assert_one_sentence(self.run_image(name), *words)
        folder = self.trust(registry.host, ca_crt="ca.crt")
        self.assert_says_hello(self.run_image(name))
        self.assert_says_hello(self.run_image(name, "--pull", "never", uid=drover.NOBODY))
        (folder / "ca.crt").write_text("no certificate")
        self.assert_one_sentence(self.run_image(name, "--pull", "always"), "certificate")

    def test_a_certificate_is_shown_to_a_registry_that_wants_one(self):
        registry = self.start_registry(known_clients=True)
        name = f"{registry.host}/tool:1"
        folder = self.trust(registry.host, ca_crt="ca.crt", client_cert="client.crt")
        self.assert_one_sentence(self.run_image(name), str(folder), "client.key")
        self.trust(registry.host, client_key="client.key")
        self.assert_says_hello(self.run_image(name))


class ScriptedRegistryTest(RegistryTest):
    """Each test has a registry of its own."""

    def setUp(self):
        self.registry = self.new_registry()
        self.images = self.registry.images

    def new_registry(self, images=None):
        registry = registries.ScriptedRegistry(images)
        self.addCleanup(registry.close)
        return registry

    def new_image(self, size=1 << 16):
        """With a layer unlike any other; returns the image's name and that layer's digest."""
        image = self.images.image([self.base, self.random_tar(size)], Cmd=SAY)
        layer = json.loads(self.images.blobs[image["digest"]])["layers"][1]["digest"]
        return self.registry.tag("team/tool:1", image), layer

    def tampered(self, change):
        """The name of an image whose manifest was changed."""
        image = self.images.image([self.base, self.random_tar(1 << 10)], Cmd=SAY)
        manifest = json.loads(self.images.blobs[image["digest"]])
        change(manifest)
        return self.registry.tag("team/tool:1", self.images.blob(json.dumps(manifest).encode(), registries.MANIFEST))

    def assert_refused(self, name, *words):
        ran = self.run_image(name)
        self.assert_one_sentence(ran, *words)
        self.assert_one_sentence(self.run_image(name, "--pull", "never"), "not on this machine")
        return ran


class BrokenRegistryTest(ScriptedRegistryTest):
    def test_a_broken_connection_goes_on_where_it_broke(self):
        name, layer = self.new_image(1 << 20)
        data = self.images.blobs[layer]
        cuts = iter([len(data) // 4, len(data) // 2])

        def cut(handler):
            end = next(cuts, None)
            if end is None:
                return False
            begin = int(handler.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
            handler.send_response(206 if begin else 200)
            handler.send_header("Content-Length", str(len(data) - begin))
            if begin:
                handler.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
            handler.end_headers()
            handler.wfile.write(data[begin:end])
            handler.close_connection = True
            return True

        self.registry.on(layer, cut)
        self.assert_says_hello(self.run_image(name))
        asked = [headers.get("Range") for headers in self.registry.asked(layer)]
        self.assertEqual(asked, [None, f"bytes={len(data) // 4}-", f"bytes={len(data) // 2}-"])

    def test_a_server_that_is_overloaded_is_asked_again(self):
        name, layer = self.new_image()
        answers = iter([429, 503])

        def refuse(handler):
            status = next(answers, None)
            return status is not None and handler.reply(status, Retry_After=0)

        self.registry.on(layer, refuse)
        self.assert_says_hello(self.run_image(name))
        self.assertEqual(len(self.registry.asked(layer)), 3)

    def test_a_server_without_ranges_sends_all_again(self):
        name, layer = self.new_image(1 << 20)
        data = self.images.blobs[layer]
        first = threading.Event()

        def whole(handler):
            end = len(data) if first.is_set() else 1000
            first.set()
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data[:end])
            handler.close_connection = end != len(data)
            return True

        self.registry.on(layer, whole)
        self.assert_says_hello(self.run_image(name))

    def test_wrong_content_is_refused_and_leaves_nothing(self):
        for case, wrong in {"other bytes": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
                            "no gzip": lambda data: bytes(len(data))}.items():
            with self.subTest(case=case):
                name, layer = self.new_image()
                self.images.blobs[layer] = wrong(self.images.blobs[layer])
                self.assert_refused(name, "the registry sent another layer", layer)
                self.assertEqual(self.partial(), [])
                self.assertFalse((self.pulled() / "blobs/sha256" / layer[7:]).exists())

    def test_a_blob_that_ends_early_is_refused(self):
        name, layer = self.new_image()
        self.registry.on(layer, lambda handler: handler.reply(200, self.images.blobs[layer][:100]))
        self.assert_refused(name, "the registry sends only 100 of")

    def test_a_blob_without_end_is_refused(self):
        name, layer = self.new_image()

        def endless(handler):
            handler.send_response(200)
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(1000):
                    handler.wfile.write(b"10000\r\n" + bytes(1 << 16) + b"\r\n")
            handler.close_connection = True
            return True

        self.registry.on(layer, endless)
        self.assert_refused(name, "is larger than")

    def test_documents_that_are_no_images_are_refused(self):
        def with_layer(**change):
            return lambda manifest: manifest["layers"][0].update(change)

        cases = {
            "/layers/0/size": with_layer(size=1 << 60),
            "more than the 256 GiB": with_layer(size=1 << 47),
            "is not a sha256 digest": with_layer(digest="sha256:../../../etc/passwd"),
            "which Drover cannot unpack": with_layer(mediaType="application/x-evil"),
            "has no layers": lambda manifest: manifest.update(layers=[]),
            "more than the 127": lambda manifest: manifest.update(layers=manifest["layers"] * 100),
            "is an index and a manifest at once": lambda manifest: manifest.update(manifests=[]),
            "says that it is of type": lambda manifest: manifest.update(mediaType=registries.INDEX),
        }
        for words, change in cases.items():
            with self.subTest(words=words):
                self.assert_refused(self.tampered(change), words)

    def test_a_wrong_size_of_a_layer_that_is_here_is_refused(self):
        self.assert_says_hello(self.run_image(self.new_image()[0]))
        name = self.tampered(lambda manifest: manifest["layers"][0].update(size=manifest["layers"][0]["size"] + 1))
        self.assert_one_sentence(self.run_image(name, "--pull", "always"), "that the manifest says")

    def test_a_manifest_that_is_not_what_was_asked_for_is_refused(self):
        image = self.images.image([self.base], Cmd=SAY)
        other = self.images.image([self.random_tar(100)], Cmd=SAY)
        name = f"{self.registry.host}/team/tool@{image['digest']}"
        self.images.blobs[image["digest"]] = self.images.blobs[other["digest"]]
        self.assert_refused(name, "sent another manifest than it should")

    def test_a_manifest_without_end_is_refused(self):
        self.registry.on("/manifests/", lambda handler: handler.reply(200, b" " * (5 << 20)))
        self.assert_refused(f"{self.registry.host}/endless:1")

    def test_nesting_without_end_is_refused(self):
        image = self.images.image([self.base], Cmd=SAY)
        for _ in range(10):
            image = self.images.index([image])
        self.assert_refused(self.registry.tag("team/tool:nested", image), "nest more than 4 levels")

    def test_an_image_for_other_machines_only_is_refused(self):
        image = self.images.image([self.base], Cmd=SAY)
        index = self.images.index([{**image, "platform": {"os": "plan9", "architecture": "mips"}}])
        self.assert_refused(self.registry.tag("team/tool:alien", index), "only for plan9/mips")


class HostileRegistryTest(ScriptedRegistryTest):
    def assert_no_secret(self, registry):
        for path, headers in registry.requests:
            self.assertNotIn("Authorization", headers, path)

    def ask_for_login(self, challenge, expected):
        """The registry wants this header of every request."""

        def check(handler):
            if handler.headers.get("Authorization") == expected:
                return False
            return handler.reply(401, WWW_Authenticate=challenge)

        self.registry.on("/v2/", check)

    def test_a_token_is_got_and_used(self):
        tokens = self.new_registry()
        name, layer = self.new_image()
        self.daemon.log_in("root", self.registry.host)
        self.ask_for_login(f'Bearer realm="http://{tokens.host}/token",service="here",scope="repository:all:*"',
                           "Bearer a.b-c")
        tokens.on("/token", lambda handler: handler.reply(200, b'{"token": "a.b-c"}'))
        self.assert_says_hello(self.run_image(name))
        (path, headers), *_ = tokens.requests
        self.assertEqual(path, "/token?scope=repository%3Ateam%2Ftool%3Apull&service=here")
        basic = base64.b64encode(f"{registries.USER}:{registries.PASSWORD}".encode()).decode()
        self.assertEqual(headers["Authorization"], f"Basic {basic}")
        self.assert_one_sentence(self.run_image(name, "--pull", "never", uid=drover.NOBODY), "not on this machine")

    def test_a_token_is_got_without_a_login(self):
        name, layer = self.new_image()
        self.ask_for_login(f'Bearer realm="http://{self.registry.host}/token"', "Bearer open")
        self.registry.on("/token", lambda handler: handler.reply(200, b'{"access_token": "open"}'))
        for uid in (None, drover.NOBODY):
            self.assert_says_hello(self.run_image(name, uid=uid))

    def test_redirects_take_no_secret_along(self):
        storage = self.new_registry(self.images)
        name, layer = self.new_image()
        self.daemon.log_in("root", self.registry.host)
        basic = base64.b64encode(f"{registries.USER}:{registries.PASSWORD}".encode()).decode()
        self.ask_for_login('Basic realm="here"', f"Basic {basic}")
        self.registry.on("/blobs/", lambda handler: handler.reply(307, Location=f"http://{storage.host}{handler.path}"))
        self.assert_says_hello(self.run_image(name))
        self.assertTrue(storage.asked(layer))
        self.assert_no_secret(storage)

    def test_where_redirects_must_not_lead(self):
        for place in ("http://registry.invalid/x", "file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1/"):
            with self.subTest(place=place):
                name, layer = self.new_image()
                self.registry.actions = [(layer, lambda handler, to=place: handler.reply(302, Location=to))]
                self.assert_refused(name, "which is refused", place)

    def test_redirects_in_a_circle_end(self):
        name, layer = self.new_image()
        self.registry.on(layer, lambda handler: handler.reply(302, Location=handler.path))
        self.assert_refused(name, "leads on more than 10 times")

    def test_token_servers_that_lie(self):
        name, layer = self.new_image()
        self.daemon.log_in("root", self.registry.host)
        realms = {"http://tokens.invalid/token": "which is refused", "file:///etc/shadow": "which is refused"}
        for realm, words in realms.items():
            with self.subTest(realm=realm):
                self.registry.actions = []
                self.ask_for_login(f'Bearer realm="{realm}"', None)
                self.registry.actions = [("/v2/", lambda handler, to=realm: handler.reply(
                    401, WWW_Authenticate=f'Bearer realm="{to}"'))]
                self.assert_refused(name, words)
        answers = {b'{"token": "a\\r\\nX-Evil: 1"}': "without a usable token", b"<html>": "without a usable token",
                   b'{"token": ""}': "without a usable token", b'{"token": "right?"}': "denies access",
                   b'"' + b"x" * (2 << 20): "larger than"}
        for answer, words in answers.items():
            with self.subTest(answer=answer[:20]):
                self.registry.actions = [
                    ("/token", lambda handler, said=answer: handler.reply(200, said)),
                    ("/v2/", lambda handler: handler.reply(
                        401, WWW_Authenticate=f'Bearer realm="http://{self.registry.host}/token"'))]
                self.assert_refused(name, words)

    def test_a_private_blob_is_not_given_to_who_only_names_it(self):
        """Its digest is no secret, and says nothing about who may have it."""
        private = self.new_registry()
        image = private.images.image([self.base, self.random_tar(1 << 12, "secret")], Cmd=SAY)
        name = private.tag("secret:1", image)
        basic = base64.b64encode(f"{registries.USER}:{registries.PASSWORD}".encode()).decode()
        private.on("/v2/", lambda handler: handler.headers.get("Authorization") != f"Basic {basic}" and
                   handler.reply(401, WWW_Authenticate='Basic realm="x"'))
        self.daemon.log_in("root", private.host)
        self.assert_says_hello(self.run_image(name))
        manifest = json.loads(private.images.blobs[image["digest"]])
        thief = self.registry
        for digest in (image["digest"], manifest["config"]["digest"]):
            thief.images.blobs[digest], thief.images.types[digest] = private.images.blobs[digest], private.images.types[digest]
        stolen = thief.tag("mine:1", image)
        self.assert_one_sentence(self.run_image(stolen, uid=drover.NOBODY), "has no such image")


class InterruptedPullTest(ScriptedRegistryTest):
    def slow_blob(self, layer, sent, go_on):
        """The first request gets half of it, and the rest only when told."""
        data = self.images.blobs[layer]
        first = threading.Event()

        def half(handler):
            if first.is_set():
                return False
            first.set()
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data[:len(data) // 2])
            handler.wfile.flush()
            sent.set()
            go_on.wait(drover.PATIENCE)
            handler.close_connection = True
            return True

        self.registry.on(layer, half)

    def has_half(self, layer):
        found = list((self.pulled() / "partial").glob(layer[7:] + ".*"))
        return found and found[0].stat().st_size >= len(self.images.blobs[layer]) // 2

    def test_a_crash_of_the_daemon_loses_nothing(self):
        name, layer = self.new_image(1 << 20)
        sent, go_on = threading.Event(), threading.Event()
        self.addCleanup(go_on.set)
        self.slow_blob(layer, sent, go_on)
        task = self.daemon.submit(command=SAY, image=name)
        self.assertTrue(sent.wait(drover.PATIENCE))
        drover.wait_for(lambda: self.has_half(layer), "half of the layer")
        self.daemon.kill()
        go_on.set()
        self.daemon.start()
        self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished")
        self.assertIn("Range", self.registry.asked(layer)[-1])
        self.assertEqual(self.partial(), [])

    def test_a_layer_that_a_power_cut_left_short_is_fetched_again(self):
        image = self.images.image([self.base, self.random_tar(1 << 18)], Cmd=SAY)
        manifest = json.loads(self.images.blobs[image["digest"]])
        layer = manifest["layers"][1]["digest"]
        self.assert_says_hello(self.run_image(self.registry.tag("team/tool:1", image)))
        os.truncate(self.pulled() / "blobs/sha256" / layer[7:], 1000)
        manifest["annotations"] = {"of": "the same layers"}
        other = self.images.blob(json.dumps(manifest).encode(), registries.MANIFEST)
        self.assert_says_hello(self.run_image(self.registry.tag("team/tool:2", other)))
        self.assertEqual((self.pulled() / "blobs/sha256" / layer[7:]).stat().st_size, len(self.images.blobs[layer]))

    def test_a_stop_ends_a_pull(self):
        name, layer = self.new_image(1 << 20)
        sent, go_on = threading.Event(), threading.Event()
        self.addCleanup(go_on.set)
        self.slow_blob(layer, sent, go_on)
        task = self.daemon.submit(command=SAY, image=name)
        self.assertTrue(sent.wait(drover.PATIENCE))
        drover.wait_for(lambda: "pulling" in str(self.daemon.task(task)), "the task to tell of the pull")
        self.daemon.stop_task(task)
        self.assertEqual(self.daemon.wait_until_final(task)["state"], "killed")

    def test_a_pull_has_a_time_of_its_own(self):
        for flag, seconds, status in (("--pull-timeout", 600, 125), ("--timeout", 2, 0)):
            with self.subTest(flag=flag):
                name, layer = self.new_image(1 << 20)
                sent, go_on = threading.Event(), threading.Event()
                self.addCleanup(go_on.set)
                self.slow_blob(layer, sent, go_on)
                timer = threading.Timer(seconds, go_on.set)
                timer.start()
                ran = self.daemon.cli("run", flag, "1s", "--image", name, "--", *SAY)
                timer.cancel()
                self.assertEqual(ran.status, status, ran)
                self.assertEqual("Its image was not there within 1s" in ran.err, status != 0, ran)

    def test_many_tasks_pull_one_image_once(self):
        name, layer = self.new_image(1 << 18)
        tasks = [self.daemon.submit(command=SAY, image=name) for _ in range(8)]
        for task in tasks:
            self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished")
        self.assertEqual(len(self.registry.asked(layer)), 1)


if __name__ == "__main__":
    unittest.main()
