"""Hostile images, in one table: each is refused with one sentence or contained, and the store is as it was.

Each is tried twice: as files of a user, and out of a registry. All of them at once, so that none can count on being alone.
"""

import dataclasses
import functools
import gzip
import hashlib
import json
import os
import shutil
import stat
import subprocess
import unittest

import drover
import raw_tar
import registries
from raw_tar import entry, folder, hard_link, symlink, tar

UP = "../" * 24
LIMIT, MOST_FILES = 64 << 20, 2000
NVIDIA, DISK = (195, 0), (8, 0)
ZEROS = bytes(1 << 20)


once = functools.cache  # the same layer is in many images


@dataclasses.dataclass
class Image:
    """What a case makes: a descriptor of a manifest or index, and what the task says when the image is contained."""

    descriptor: dict
    words: tuple = ()      # of the refusal; none: it is contained
    command: tuple = ("/probe", "say", "contained")
    said: str = "contained"
    spoil: object = None   # changes the layout's folder after it was written; such an image is not in the registry
    fields: dict = dataclasses.field(default_factory=dict)


class Cases:
    """The table. Each method makes one or more images; `canary` is a folder of the host that they reach for."""

    def __init__(self, images, base, canary):
        self.images, self.base, self.canary = images, base, str(canary)
        self.out = UP + self.canary.lstrip("/")

    # How images are made

    def layers(self, *layers, compress=once(functools.partial(gzip.compress, compresslevel=1, mtime=0)), **settings):
        return self.images.image([self.base, *layers], compress, **settings)

    def refused(self, *words, layer, below=(), **how):
        return Image(self.layers(*below, layer, **how), words)

    def contained(self, *layers, **how):
        kept = {name: how.pop(name) for name in ("command", "said", "fields") if name in how}
        return Image(self.layers(*layers, **how), **kept)

    def document(self, descriptor, change):
        """The same manifest, changed."""
        manifest = json.loads(self.images.blobs[descriptor["digest"]])
        return self.images.blob(json.dumps(change(manifest) or manifest).encode(), registries.MANIFEST)

    def changed(self, *words, change):
        return Image(self.document(self.layers(tar(entry("x"))), change), words)

    def configured(self, *words, change):
        """With a configuration of the case's own."""

        def replace(manifest):
            config = json.loads(self.images.blobs[manifest["config"]["digest"]])
            text = change(config)
            data = text if isinstance(text, bytes) else json.dumps(text or config).encode()
            manifest["config"] = self.images.blob(data, manifest["config"]["mediaType"])

        return self.changed(*words, change=replace)

    # Ways out of the image

    def climbing(self):
        yield "dots in a name", self.refused("climbs out with '..'", layer=tar(entry(f"{self.out}/file")))
        yield "dots inside of a name", self.refused("climbs out", layer=tar(entry(f"a/{self.out}/file")))
        yield "folder with dots", self.refused("climbs out", layer=tar(folder(f"{self.out}/sub")))
        yield "absolute name", self.contained(tar(entry(f"{self.canary}/file")), command=("/probe", "exists", f"{self.canary}/file"),
                                              said="ok")
        yield "hard link with dots", self.refused("climbs out", layer=tar(hard_link("x", f"{self.out}/secret")))
        yield "absolute hard link", self.refused("does not have", layer=tar(hard_link("x", f"{self.canary}/secret")))
        yield "whiteout of dots", self.refused("whiteout of no file", layer=tar(entry("a/.wh...")))
        yield "whiteout of a dot", self.refused("whiteout of no file", layer=tar(entry("a/.wh..")))
        yield "whiteout above", self.refused("climbs out", layer=tar(entry(f"{self.out}/.wh.secret")))
        yield "opaque above", self.refused("climbs out", layer=tar(entry(f"{self.out}/.wh..wh..opq")))

    def swapping(self):
        """A symbolic link first, and then something that goes through it."""
        through = {"file": entry("way/file"), "folder": folder("way/sub"), "symbolic link": symlink("way/link", "x"),
                   "fifo": entry("way/fifo", raw_tar.FIFO), "whiteout": entry("way/.wh.secret"), "opaque": entry("way/.wh..wh..opq"),
                   "hard link": hard_link("mine", "way/secret")}
        for name, second in through.items():
            for how, target in (("relative", self.out), ("absolute", self.canary)):
                words = ("leads out",) if name != "hard link" else ("hard link",)
                yield f"{name} through a {how} link", self.refused(*words, layer=tar(symlink("way", target), second))
        chain = tar(symlink("a", "b"), symlink("b", "c"), symlink("c", self.out), entry("a/file"))
        yield "link of a link of a link", self.refused("leads out", layer=chain)
        yield "links in a circle", self.refused("leads out", layer=tar(symlink("a", "b"), symlink("b", "a"), entry("a/x")))
        yield "folder swapped for a link", self.refused(
            "leads out", layer=tar(folder("way"), entry("way/x"), symlink("way", self.out), entry("way/file")))
        yield "hard link to a link", self.contained(
            tar(symlink("way", f"{self.canary}/secret"), hard_link("mine", "way"), entry("mine", content=b"owned")))
        yield "link in one layer, file in the next", self.contained(tar(symlink("way", self.out)), tar(entry("way/file")))
        yield "link in one layer, whiteout in the next", self.contained(tar(symlink("way", self.canary)), tar(entry("way/.wh.secret")))
        yield "link in one layer, hard link in the next", self.refused(
            "does not have", below=[tar(symlink("way", self.canary))], layer=tar(hard_link("mine", "way/secret")))

    def mount_points(self):
        """What Drover and the runtime mount on, and what they read, leads out."""
        for path in ("mnt", "mnt/mesos", "mnt/mesos/sandbox", "usr/local/nvidia", "run", "var"):
            top = path.split("/")[0]
            gone = entry(f".wh.{top}")
            yield f"/{path} leads out", Image(self.layers(tar(gone), tar(symlink(path, self.out))),
                                              command=("/probe", "write", "here", "x"), said="ok", fields={"gpus": 1})
        for path in ("passwd", "group", "ld.so.cache", "hosts", "resolv.conf"):
            yield f"/etc/{path} leads out", self.contained(tar(symlink(f"etc/{path}", f"{self.out}/secret")), User="root")
            fifo = tar(entry(f"etc/{path}", raw_tar.FIFO))
            yield f"/etc/{path} is a fifo", (self.refused(f"'/etc/{path}' of the image is no regular file", layer=fifo)
                                             if path in ("passwd", "group") else self.contained(fifo, fields={"gpus": 1}))

    # What must not be on a host

    def privileges(self):
        for name, kind, device in (("GPU", raw_tar.CHARACTER_DEVICE, NVIDIA), ("disk", raw_tar.BLOCK_DEVICE, DISK),
                                   ("whiteout", raw_tar.CHARACTER_DEVICE, (0, 0))):
            yield f"device node of a {name}", self.refused("is a device node",
                                                           layer=tar(entry(f"dev/{name}", kind, mode=0o666, device=device)))
        yield "setuid program", self.contained(
            tar(entry("become-root", content=self.probe, mode=0o4755)), command=("/become-root", "id"),
            said=f"{drover.NOBODY} {drover.NOBODY}", fields={"uid": drover.NOBODY})
        capabilities = bytes.fromhex("0000000202000000000000000000000000000000")  # cap_dac_override
        yield "program with capabilities", self.contained(
            tar(entry("powerful", content=self.probe, mode=0o755, extended={"SCHILY.xattr.security.capability": capabilities})),
            command=("/powerful", "write", "/etc/passwd", "x"), said="EACCES", fields={"uid": drover.NOBODY})
        for name in ("trusted.overlay.redirect", "trusted.overlay.metacopy", "user.overlay.redirect", "security.selinux"):
            yield f"attribute {name}", self.contained(tar(folder("etc"), entry("etc/x", extended={f"SCHILY.xattr.{name}": "/secret"})))
        yield "world-writable root", self.contained(tar(folder("./", 0o7777)))
        yield "root is a link", self.refused("would replace the root", layer=tar(symlink(".", self.out)))

    # Too much

    def bombs(self):
        zeros = [entry("zeros", size=b"%011o" % (LIMIT + len(ZEROS))), *[ZEROS] * (LIMIT // len(ZEROS) + 1)]
        for name, compress in compressions():
            yield f"zeros, {name}", self.refused("is larger than 64 MiB", layer=tar(*zeros), compress=compress)
        half = [part for number in range(2)
                for part in (entry(f"{number}", size=b"%011o" % (LIMIT // 4 * 3)), *[ZEROS] * (LIMIT // len(ZEROS) // 4 * 3))]
        yield "zeros in several files", self.refused("more than 64 MiB when unpacked", layer=tar(*half))
        layers = [tar(entry(str(number), size=b"%011o" % (LIMIT // 2)), *[ZEROS] * (LIMIT // len(ZEROS) // 2)) for number in range(3)]
        yield "zeros in several layers", Image(self.layers(*layers), ("more than 64 MiB when unpacked",))
        yield "zeros behind the archive", self.refused("more than 64 MiB when unpacked", layer=tar(entry("x")) + bytes(LIMIT))
        yield "compressed twice", self.refused("compressed more than once", layer=tar(entry("x")),
                                               compress=lambda data: gzip.compress(gzip.compress(data)))
        yield "a million files", self.refused(f"more than {MOST_FILES} files", layer=tar(*[entry(f"f/{n}") for n in range(3000)]))
        layers = [tar(*[entry(f"{layer}/{number}") for number in range(800)]) for layer in range(3)]
        yield "a million files in several layers", Image(self.layers(*layers), (f"more than {MOST_FILES} files",))
        yield "one file many times", self.refused(f"more than {MOST_FILES} files", layer=tar(*[entry("same")] * 3000))
        hole = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "hole", "GNU.sparse.realsize": str(1 << 50)}
        yield "a file of nothing but a hole", self.refused("is larger than", layer=tar(
            entry("hole", extended=hole, content=raw_tar.padded(b"1\n%d\n0\n" % (1 << 50)))))
        extended = raw_tar.header("pax", b"x", size=b"77777777777")
        yield "extended header of 8 GiB", self.refused("header", layer=extended + bytes(LIMIT // 2))
        yield "extended headers without end", self.refused("header", layer=tar(*[raw_tar.pax(comment="c" * 500_000)] * 40, entry("x")))
        yield "map of holes without end", self.refused("header of more than 8 MiB", layer=sparse_map(12 << 20))
        yield "attribute of 100 KiB", self.refused("cannot be set", layer=tar(entry("x", extended={"SCHILY.xattr.user.a": "a" * 100_000})))
        yield "ten thousand layers", self.changed("has 10000 layers", change=lambda manifest: manifest.update(
            layers=manifest["layers"][:1] * 10_000))
        yield "configuration of 100 MB", self.configured("4 MiB", change=lambda config: json.dumps(config).encode().ljust(100_000_000))

    # Names and numbers

    def names(self):
        deep = "/".join("d" * 300)
        yield "a part of 256 bytes", self.refused("more than 255 bytes", layer=tar(entry("n" * 256)))
        yield "a name of 5000 bytes", self.refused("more than 4095 bytes", layer=tar(entry("/".join(["n" * 99] * 50))))
        yield "300 folders deep", self.refused("more than 256 folders", layer=tar(entry(deep)))
        yield "a link of 5000 bytes", self.refused("Linux cannot hold", layer=tar(symlink("x", "n" * 5000)))
        yield "no name", self.refused("has no name", layer=tar(entry("")))
        odd = ("new\nline", "\x1b[31mred", "\x7f", "-rf", "*", "$(reboot)", b"\xff\xfe\x80", "‮txt.exe", "a" * 255)
        yield "odd names", self.contained(tar(*[entry(name) for name in odd]))
        yield "odd name climbs", self.refused("climbs out", layer=tar(entry("../new\nline\x1b[31m")))
        yield "NUL in a name", self.contained(tar(entry("x", extended={"path": "x\0/../../evil"})))
        yield "the same name thrice", self.contained(tar(entry("a"), folder("a"), symlink("a", self.out), entry("a", content=b"1")))
        yield "a file as a folder", self.refused("is not a folder", layer=tar(entry("a"), entry("a/b")))
        yield "unknown types", self.contained(tar(entry("odd", b"Z"), entry("old", b"\0")))
        yield "negative size", self.refused("layer 2 of 2", layer=tar(entry("x", size=b"\xff" * 12)))
        yield "huge size", self.refused("layer 2 of 2", layer=tar(entry("x", size=b"\x80\0\0\0\x7f" + b"\xff" * 7)))
        yield "size of a link", self.contained(tar(entry("x", raw_tar.SYMLINK, link="y", size=b"77777777777")))
        yield "absurd owner", self.refused("has an owner", layer=tar(entry("x", extended={"uid": "4294967295"})))
        yield "absurd times", self.contained(tar(entry("old", extended={"mtime": "-9223372036854775808"}),
                                                 entry("new", extended={"mtime": "9223372036854775807.999999999"})))
        yield "no tar", self.refused("layer 2 of 2", layer=b"no tar " * 1000)
        yield "half a tar", self.refused("layer 2 of 2", layer=entry("x", content=bytes(5000))[:2000])

    # Documents

    def documents(self):
        def layer(**change):
            return lambda manifest: manifest["layers"][0].update(change)

        for name, digest in (("path", "sha256:../../../../etc/passwd"), ("sha512", "sha512:" + "0" * 128), ("md5", "md5:" + "0" * 32),
                             ("short", "sha256:abc"), ("number", 5)):
            yield f"digest: {name}", self.changed("/layers/0/digest", change=layer(digest=digest))
        for size in (-1, 1e99, "5", None, 1 << 60):
            yield f"size {size}", self.changed("/layers/0/size", change=layer(size=size))
        yield "type of a layer", self.changed("cannot unpack", change=layer(mediaType="application/x-evil"))
        yield "type of a configuration", self.changed("not a container image", change=lambda manifest: manifest["config"].update(
            mediaType="application/vnd.cncf.helm.config.v1+json"))
        yield "no layers", self.changed("no layers", change=lambda manifest: manifest.update(layers=[]))
        yield "layers without end", self.changed("levels deep", change=lambda manifest: manifest.update(annotations=nested(200)))
        yield "configuration without end", self.configured("levels deep", change=lambda config: config.update(config=nested(200)))
        yield "configuration of brackets", self.configured("levels deep", change=lambda config: b"[" * 1_000_000)
        yield "configuration that is none", self.configured("configuration", change=lambda config: b"\xff\xfe")
        yield "diff_ids too few", self.configured("names 0", change=lambda config: config["rootfs"].update(diff_ids=[]))
        yield "diff_id of another layer", self.configured("diff_id", change=lambda config: config["rootfs"].update(
            diff_ids=[config["rootfs"]["diff_ids"][0], "sha256:" + "0" * 64]))
        yield "another architecture", self.configured("mips", change=lambda config: config.update(architecture="mips"))
        image = self.layers(tar(entry("x")))
        for _ in range(6):
            image = self.images.index([image])
        yield "an index in an index in an index", Image(image, ("nest more than 4 levels",))
        known = {"mediaType": registries.INDEX, "digest": "sha256:" + hashlib.sha256(b"itself").hexdigest(), "size": 100}
        self.images.blobs[known["digest"]] = json.dumps({"schemaVersion": 2, "manifests": [known]}).encode()
        self.images.types[known["digest"]] = registries.INDEX
        yield "an index of itself", Image(known, (known["digest"],))
        yield "an index of nothing", Image(self.images.index([]), ("lists no image",))

    def settings(self):
        yield "folder that climbs", Image(self.layers(tar(entry("x")), WorkingDir=f"/{self.out}"), command=("/probe", "write", "here", "x"),
                                          said="ok")
        yield "variables that are none", self.contained(tar(entry("x")), Env=["=x", "A\0B=c", "NEW\nLINE=1", "PATH", "LD_PRELOAD=/evil"])
        yield "a user of nowhere", Image(self.layers(tar(entry("x")), User="../../root"), ("does not know it",))
        yield "a user of the host", Image(self.layers(tar(entry("x")), User="daemon"), ("does not know it",))
        yield "a number too large", Image(self.layers(tar(entry("x")), User="4294967295"), ("does not know it",))

    # Files that are not what they say

    def files(self):
        for name, spoil in {"a fifo": lambda path: (path.unlink(), os.mkfifo(path)),
                            "a link to zeros": lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
                            "a folder": lambda path: (path.unlink(), path.mkdir()),
                            "cut off": lambda path: os.truncate(path, path.stat().st_size // 2),
                            "a hole of 8 TiB": lambda path: os.truncate(path, 8 << 40),
                            "damaged": lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\x55"),
                            "missing": lambda path: path.unlink()}.items():
            descriptor = self.layers(tar(entry("x", content=name.encode() * 1000)))
            digest = json.loads(self.images.blobs[descriptor["digest"]])["layers"][1]["digest"]
            yield f"a layer is {name}", Image(descriptor, ("layer 2 of 2",),
                                              spoil=lambda layout, spoil=spoil, digest=digest: spoil(layout / "blobs/sha256" / digest[7:]))
        secret = self.layers(tar(entry("y")))
        for file in ("oci-layout", "index.json"):
            yield f"{file} is a fifo", Image(secret, (file,), spoil=lambda layout, file=file: (
                (layout / file).unlink(), os.mkfifo(layout / file)))
            yield f"{file} is another's", Image(secret, (file,), fields={"uid": drover.NOBODY}, spoil=lambda layout, file=file: (
                (layout / file).unlink(), (layout / file).symlink_to(f"{self.canary}/secret")))


def compressions():
    yield "gzip", functools.partial(gzip.compress, compresslevel=1, mtime=0)
    if shutil.which("zstd"):
        yield "zstd", lambda data: subprocess.run(["zstd", "--quiet", "--stdout"], input=data, capture_output=True, check=True).stdout


def nested(depth):
    value = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def sparse_map(size):
    """A file in GNU's old sparse format, whose map of holes goes on and on."""
    hole = b"%011o\0" % 0 * 2
    block = bytearray(raw_tar.header("holes", b"S"))
    block[257:265], block[386:386 + 4 * 24], block[482] = b"ustar  \0", hole * 4, 1
    more = (hole * 21).ljust(raw_tar.BLOCK, b"\0")
    more = more[:504] + b"\1" + more[505:]
    return raw_tar.checked(block) + more * (size // len(more))


def state_of(folder):
    """Everything that could be changed in there."""
    found = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        info = path.lstat()
        found[str(path)] = (info.st_mode, info.st_uid, info.st_nlink, info.st_size, info.st_mtime_ns,
                            path.read_bytes() if stat.S_ISREG(info.st_mode) else b"")
    return found


class HostileImagesTest(drover.DaemonTest):
    arguments = ("--max-image-size", "64MiB", "--max-image-files", MOST_FILES)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.canary = cls.daemon.folder / "canary"
        cls.canary.mkdir()
        (cls.canary / "secret").write_text("nobody may read or change this")
        (cls.canary / "secret").chmod(0o600)
        cls.registry = registries.ScriptedRegistry()
        cls.addClassCleanup(cls.registry.close)
        cls.base = registries.make_tar({"dev": None, "etc": None, "proc": None, "sys": None, "tmp": None, "mnt": None, "usr": None,
                                        "probe": cls.daemon.probe.read_bytes(), "etc/passwd": b"root:x:0:0:root:/:/probe\n"})
        cases = Cases(cls.registry.images, cls.base, cls.canary)
        cases.probe = cls.daemon.probe.read_bytes()
        cls.cases = {}
        for group in (cases.climbing, cases.swapping, cases.mount_points, cases.privileges, cases.bombs, cases.names, cases.documents,
                      cases.settings, cases.files):
            cls.cases.update(group())
        cls.good = cls.registry.images.image([cls.base, tar(entry("good"))], Cmd=["/probe", "say", "good"])

    def layers(self):
        return {path.name for path in (self.daemon.state / "images/layers/sha256").iterdir()}

    def diff_ids(self, descriptor):
        blobs = self.registry.images.blobs
        config = json.loads(blobs[json.loads(blobs[descriptor["digest"]])["config"]["digest"]])
        return {digest.removeprefix("sha256:") for digest in config["rootfs"]["diff_ids"]}

    def layout(self, number, image):
        folder = self.daemon.folder / f"layout-{number}"
        (folder / "blobs/sha256").mkdir(parents=True)
        for digest in self.blobs_of(image.descriptor):
            (folder / "blobs/sha256" / digest.removeprefix("sha256:")).write_bytes(self.registry.images.blobs[digest])
        (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [image.descriptor]}))
        if image.spoil:
            image.spoil(folder)
        return f"oci:{folder}"

    def blobs_of(self, descriptor):
        """All that it leads to, as far as it can be read."""
        digest = str(descriptor.get("digest"))
        if digest not in self.registry.images.blobs:
            return set()
        found = {digest}
        if descriptor["mediaType"] in (registries.INDEX, registries.MANIFEST):
            document = json.loads(self.registry.images.blobs[digest])
            below = [*document.get("manifests", []), *document.get("layers", []), *([document["config"]] if "config" in document else [])]
            for each in below:
                if each.get("digest") != digest:
                    found |= self.blobs_of(each)
        return found

    def try_all(self, references):
        """Starts all of them, and compares what became of each; `references` are the cases' by name."""
        before = state_of(self.canary)
        tasks = {name: self.daemon.submit(image=reference, command=list(self.cases[name].command), pull="always", **self.cases[name].fields)
                 for name, reference in references.items()}
        for name, task in tasks.items():
            with self.subTest(image=name):
                self.check(self.cases[name], task)
        self.assertEqual(state_of(self.canary), before)
        self.assertEqual([name for name in os.listdir("/") if "evil" in name], [])
        self.assertEqual([layer for layer in self.layers() if layer.startswith(".")], [])
        whole = [image for name, image in self.cases.items() if name in references and not image.words]
        self.assertLessEqual(set().union(*(self.diff_ids(image.descriptor) for image in whole)), self.layers())
        self.assertEqual(list((self.daemon.state / "images/pulled/partial").iterdir()), [])

    def check(self, image, task):
        record = self.daemon.wait_until_final(task, timeout=300)  # among more than a hundred that unpack
        if image.words:
            self.assertEqual(record["state"], "failed", record)
            self.assertIsNone(record.get("exit_status"), record)
            self.assertNotIn("\n", record["reason"])
            self.assertLess(len(record["reason"]), 1000)
            for word in image.words:
                self.assertIn(word, record["reason"])
        else:
            self.assertEqual(self.daemon.output(task).strip(), image.said, record)

    def assert_the_store_is_intact(self, name):
        ran = self.daemon.cli("run", "--image", name)
        self.assertEqual((ran.status, ran.out), (0, "good\n"), ran)
        # A name stays as long as a task that has just ended is cleaned up.
        drover.wait_for(lambda: self.daemon.cli("image", "prune", "--all").status == 0 and not self.layers(), "all layers to be free")

    def test_as_files(self):
        references = {name: self.layout(number, image) for number, (name, image) in enumerate(self.cases.items())}
        self.try_all(references)
        self.assert_the_store_is_intact(self.layout("good", Image(self.good)))

    def test_out_of_a_registry(self):
        references = {name: self.registry.tag(f"hostile:{number}", image.descriptor)
                      for number, (name, image) in enumerate(self.cases.items()) if not image.spoil}
        self.try_all(references)
        self.assert_the_store_is_intact(self.registry.tag("good:1", self.good))

    def test_other_users_of_the_host_do_not_reach_the_store(self):
        """What is setuid in there is nobody's way to become root."""
        self.assertEqual(self.daemon.cli("run", "--image", self.registry.tag("good:1", self.good)).status, 0)
        store = self.daemon.state / "images/layers"
        self.assertTrue(store.exists())
        with drover.acting_as(drover.NOBODY), self.assertRaises(PermissionError):
            os.stat(store / "sha256")
        self.assertEqual(stat.S_IMODE(store.parent.stat().st_mode), 0o700)


if __name__ == "__main__":
    unittest.main()
