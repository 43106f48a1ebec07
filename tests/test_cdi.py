"""What containers with GPUs get of the driver: its files at their own paths, as a CDI specification has them; hooks
that no image can turn against the host; and never more GPUs than were given."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import drover

CLIENT = drover.built("nvml_abi_check")  # loads libnvidia-ml.so.1 and prints the GPUs that it sees


HOOK = drover.BUILD / "drover-cdi-hook"
SIMULATOR = drover.BUILD / "lib/drover/sim/libnvidia-ml.so.1"


def libraries_of(*programs):
    return sorted({path for program in programs for path in re.findall(r"(/\S+) \(0x", drover.run(["ldd", program]).out)})


def make_image(output, probe, *, links=(), merged=False, files=(), libraries_for=(), **settings):
    """The probe, and the client with the C library that it needs. `merged`: /lib64 is a link, as in most distributions."""

    def fill(layer):
        if merged:
            layer.add_folder("usr/lib64")
            add_link(layer, "lib64", "usr/lib64")
        for path in libraries_of(CLIENT, SIMULATOR, *libraries_for):
            place = path if not merged or not path.startswith("/lib64/") else "/usr" + path
            layer.add_file(place, pathlib.Path(path).read_bytes(), 0o755)
        layer.add_file("client", CLIENT.read_bytes(), 0o755)
        layer.add_file("probe", probe.read_bytes(), 0o755)
        for path, content in files:
            layer.add_file(path, content, 0o755)
        for path, target in links:
            add_link(layer, path, target)

    drover.oci_layout.write(output, fill, command=["/probe", "say", "up"], **settings)
    return f"oci:{output}"


def add_link(layer, path, target):
    member = drover.oci_layout.tarfile.TarInfo(path)
    member.type, member.linkname = drover.oci_layout.tarfile.SYMTYPE, str(target)
    layer.add_member(member)


class CdiTest(drover.DaemonTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.version = cls.daemon.api("GET", "/v1/gpus")["driver_version"]
        cls.image = make_image(cls.daemon.folder / "plain", cls.daemon.probe)

    def make(self, name, **how):
        return make_image(self.daemon.folder / name, self.daemon.probe, **how)

    def run_in(self, image, options, *words, uid=None):
        ran = self.daemon.cli("run", *options, "--image", image, "--", *words, uid=uid)
        return ran

    def gpus_seen(self, image, *options, uid=None):
        """UUIDs that a program in the image finds, which looks for the driver as every program does."""
        ran = self.run_in(image, options, "/client", uid=uid)
        self.assertEqual(ran.status, 0, ran)
        return re.findall(r"^gpu \d+ (\S+)", ran.out, re.MULTILINE)


class FilesTest(CdiTest):
    def test_programs_find_the_driver_and_exactly_their_gpus(self):
        merged = self.make("merged", merged=True)
        known = {gpu["uuid"] for gpu in self.daemon.api("GET", "/v1/gpus")["gpus"]}
        for image in (self.image, merged):
            for options in (["--gpus", 2], ["--gpus", 2, "--read-only"]):
                with self.subTest(image=image, options=options):
                    seen = self.gpus_seen(image, *options)
                    self.assertEqual(len(set(seen)), 2)
                    self.assertLess(set(seen), known)
        self.assertEqual(len(self.gpus_seen(self.image, "--gpus", 1, uid=drover.NOBODY)), 1)

    def test_the_library_is_where_the_host_has_it_and_cannot_be_written(self):
        library = f"/lib64/libnvidia-ml.so.{self.version}"
        ran = self.daemon.run_probe(["--gpus", 1], "exists", library, ",", "exists", "/lib64/libnvidia-ml.so.1", ",",
                                    "write", library, "x", ",", "exists", "/usr/local/nvidia", image=self.image)
        self.assertEqual(ran.out.split(), ["ok", "ok", "EROFS", "ENOENT"], ran)

    def test_without_gpus_there_is_nothing_of_the_driver(self):
        ran = self.daemon.run_probe([], "exists", "/lib64/libnvidia-ml.so.1", ",", "exists", "/etc/ld.so.cache",
                                    image=self.image)
        self.assertEqual(ran.out.split(), ["ENOENT", "ENOENT"], ran)
        self.assertNotEqual(self.run_in(self.image, [], "/client").status, 0)

    def test_an_image_that_asks_gets_the_volume_too(self):
        asking = self.make("asking", labels={"com.nvidia.volumes.needed": "nvidia_driver"})
        ran = self.daemon.run_probe(["--gpus", 1], "exists", "/usr/local/nvidia/lib64/libnvidia-ml.so.1", ",", "exists",
                                    "/lib64/libnvidia-ml.so.1", image=asking)
        self.assertEqual(ran.out.split(), ["ok", "ok"], ran)

    def test_a_read_only_container_stays_read_only(self):
        ran = self.daemon.run_probe(["--gpus", 1, "--read-only"], "write", "/etc/ld.so.cache", "x", ",", "write", "/etc/new",
                                    "x", ",", "write", "/lib64/new", "x", image=self.image)
        self.assertEqual(ran.out.split(), ["EROFS"] * 3, ran)

    def test_an_image_with_nothing_but_a_program_starts(self):
        ran = self.daemon.run_probe(["--gpus", 1], "exists", "/etc/ld.so.cache",
                                    image=drover.make_probe_image(self.daemon.folder / "tiny", self.daemon.probe))
        self.assertEqual(ran.out.split(), ["ok"], ran)

    def test_a_cache_that_the_image_brings_keeps_what_it_had(self):
        cache = pathlib.Path("/etc/ld.so.cache")
        if not cache.exists():
            self.skipTest("this machine has no /etc/ld.so.cache to put into an image")
        image = self.make("cached", files=[("etc/ld.so.cache", cache.read_bytes())])
        self.assertEqual(len(self.gpus_seen(image, "--gpus", 3)), 3)
        damaged = self.make("damaged", files=[("etc/ld.so.cache", cache.read_bytes()[:100])])
        self.assertEqual(len(self.gpus_seen(damaged, "--gpus", 1)), 1)


class VisibleDevicesTest(CdiTest):
    """NVIDIA_VISIBLE_DEVICES of an image or a user never widens what was given."""

    def test_it_is_exactly_what_was_given(self):
        other = self.daemon.api("GET", "/v1/gpus")["gpus"][7]["uuid"]
        for number, value in enumerate((None, "", "all", "void", "none", "0,1,2,3,4,5,6,7", other)):
            environment = [] if value is None else [f"NVIDIA_VISIBLE_DEVICES={value}"]
            image = self.make(f"visible-{number}", environment=environment)
            for said_by, used, options in (("image", image, []),
                                           ("user", self.image, ["--env", *environment] if environment else [])):
                for gpus in (0, 1, 2):
                    with self.subTest(value=value, said_by=said_by, gpus=gpus):
                        self.check(used, [*options, *(["--gpus", gpus] if gpus else [])], gpus)

    def check(self, image, options, gpus):
        ran = self.daemon.run_probe(options, "env", "NVIDIA_VISIBLE_DEVICES", ",", "devices", image=image)
        self.assertEqual(ran.status, 0, ran)
        variable, devices = ran.out.splitlines() if gpus else (ran.out.splitlines()[0], "")
        nodes = re.findall(r"\bnvidia\d+\b", ran.out)
        self.assertEqual(len(nodes), gpus, ran)
        if gpus == 0:
            self.assertEqual(variable, "void")
            self.assertEqual(devices, "")
        else:
            self.assertEqual(len(set(re.findall(r"GPU-[0-9a-f-]{36}", variable))), gpus, ran)
            self.assertEqual(variable.count(","), gpus - 1)


class HostileImageTest(CdiTest):
    """The hooks run as root, before the container's root is its own: what an image holds must not lead them out."""

    def setUp(self):
        self.outside = self.daemon.folder / f"outside-{self._testMethodName}"
        self.outside.mkdir(mode=0o777)
        (self.outside / "ld.so.cache").write_text("the host's")
        (self.outside / "libnvidia-ml.so.1").write_text("the host's")
        self.addCleanup(self.check_outside)

    def check_outside(self):
        self.assertEqual({path.name: path.read_text() for path in self.outside.iterdir()},
                         {"ld.so.cache": "the host's", "libnvidia-ml.so.1": "the host's"})

    def test_links_do_not_lead_to_the_host(self):
        up = "/".join([".."] * 20)
        for number, links in enumerate(([("etc", self.outside)], [("etc", f"{up}{self.outside}")],
                                        [("etc/ld.so.cache", self.outside / "ld.so.cache")],
                                        [("etc", "/proc/1/root" + str(self.outside))],
                                        [("etc", "/proc/self/cwd")],
                                        [("lib64/libnvidia-ml.so.1", self.outside / "libnvidia-ml.so.1")],
                                        [("lib64/libnvidia-ml.so.1", f"{up}{self.outside}/libnvidia-ml.so.1")])):
            with self.subTest(links=links):
                image = self.make(f"links-{number}", links=links)
                ran = self.daemon.run_probe(["--gpus", 1], "say", "up", image=image)
                self.check_outside()
                if ran.status != 0:
                    self.assert_one_sentence(ran)

    def test_a_library_folder_that_is_a_link_stays_inside(self):
        output = self.daemon.folder / "elsewhere"

        def fill(layer):
            layer.add_file("probe", self.daemon.probe.read_bytes(), 0o755)
            add_link(layer, "lib64", self.outside)

        drover.oci_layout.write(output, fill)
        ran = self.daemon.run_probe(["--gpus", 1], "exists", "/lib64/libnvidia-ml.so.1", image=f"oci:{output}")
        self.assertIn(ran.out, ("ok\n", ""), ran)

    def test_a_library_that_the_image_wants_preloaded_is_not_loaded_on_the_host(self):
        source = self.daemon.folder / "evil.c"
        source.write_text("""#include <fcntl.h>
            __attribute__((constructor)) static void run(void) { open("%s/loaded", O_CREAT | O_WRONLY, 0644); }
            """ % self.outside)
        evil = self.daemon.folder / "evil.so"
        subprocess.run(["clang-19", "-shared", "-fPIC", "-o", evil, source], check=True)
        for value in ("./evil.so", "/evil.so", f"{evil}"):
            with self.subTest(value=value):
                image = self.make("preload-" + str(len(value)), files=[("evil.so", evil.read_bytes())],
                                  environment=[f"LD_PRELOAD={value}", f"LD_LIBRARY_PATH={self.daemon.folder}:."])
                ran = self.daemon.run_probe(["--gpus", 1], "say", "up", image=image)
                self.assertEqual(ran.out, "up\n", ran)
                self.check_outside()

    def test_a_volume_is_not_written_to(self):
        """What a task mounts over /etc or the library's folder is its owner's, also for the runtime and the hooks."""
        for place in ("/etc", "/lib64"):
            with self.subTest(place=place):
                ran = self.daemon.run_probe(["--gpus", 1, "--volume", f"{self.outside}:{place}"], "say", "up", image=self.image)
                self.check_outside()
                self.assertEqual(ran.out, "up\n", ran)

    def test_hooks_refuse_nonsense(self):
        for program in (drover.BINARY, HOOK):
            for words in ([], ["format-disk"], ["create-symlinks", "--link"], ["update-ldcache", "--folder", "/lib"]):
                with self.subTest(program=program.name, words=words):
                    self.assert_one_sentence(drover.run([program, "cdi-hook", *words]))
            ran = drover.run([program, "cdi-hook", "create-symlinks", "--link", "a::/b"])
            self.assert_one_sentence(ran, "state")

    def test_the_hook_of_nodes_needs_no_library_of_theirs(self):
        told = drover.run(["ldd", HOOK])
        self.assertRegex(told.out + told.err, "not a dynamic executable|statically linked")


class GenerateTest(CdiTest):
    def test_a_generated_specification_offers_the_gpus_and_is_found_by_list(self):
        folder = self.daemon.folder / "cdi"
        folder.mkdir()
        for name in ("drover.json", "drover.yaml"):
            file = folder / name
            self.assertEqual(self.daemon.cli("cdi", "generate", "--output", file).status, 0)
            self.assertTrue(file.read_text().startswith("{" if name.endswith("json") else "---\n"))
            listed = json.loads(self.daemon.cli("cdi", "list", "--json", "--folder", folder).out)
            self.assertEqual(listed["problems"], [])
            gpus = self.daemon.api("GET", "/v1/gpus")["gpus"]
            wanted = {"all", *(str(gpu["index"]) for gpu in gpus), *(gpu["uuid"] for gpu in gpus)}
            self.assertEqual({entry["name"] for entry in listed["devices"]}, {f"nvidia.com/gpu={name}" for name in wanted})
            self.assertEqual({entry["file"] for entry in listed["devices"]}, {str(file)})
            table = self.daemon.cli("cdi", "list", "--folder", folder).out
            self.assertRegex(table, rf"nvidia.com/gpu=all +{file} +-")
            (folder / "copy.json").write_bytes((folder / name).read_bytes())
            conflicts = json.loads(self.daemon.cli("cdi", "list", "--json", "--folder", folder).out)["devices"]
            self.assertTrue(all(len(entry["conflicts"]) == 1 for entry in conflicts))
            (folder / "copy.json").unlink()
            file.unlink()

    def test_what_it_names_exists_and_is_what_containers_of_drover_get(self):
        specification = json.loads(self.daemon.cli("cdi", "generate").out)
        self.assertEqual(specification, json.loads(self.daemon.cli("cdi").out))
        edits = specification["containerEdits"]
        for node in [node for device in specification["devices"] for node in device["containerEdits"]["deviceNodes"]]:
            self.assertTrue(pathlib.Path(node["hostPath"]).is_char_device(), node)
        words = []
        for mount in edits["mounts"]:
            self.assertTrue(pathlib.Path(mount["hostPath"]).exists(), mount)
            words += ["exists", mount["containerPath"], ","]
        for hook in edits["hooks"]:
            self.assertTrue(pathlib.Path(hook["path"]).is_file(), hook)
        ran = self.daemon.run_probe(["--gpus", 1], *words[:-1], image=self.image)
        self.assertEqual(set(ran.out.split()), {"ok"}, ran)

    def test_where_no_daemon_is_it_looks_itself(self):
        ran = drover.run([drover.BINARY, "--socket", "/nonexistent/socket", "cdi", "generate"])
        if ran.status == 0:
            self.assertEqual(json.loads(ran.out)["kind"], "nvidia.com/gpu")
        else:
            self.assertNotIn("socket", ran.err)
        self.assert_one_sentence(drover.run([drover.BINARY, "cdi", "generate", "--driver-root", "/nonexistent"]))

    def test_a_file_that_cannot_be_read_is_told_and_hides_no_other(self):
        folder = self.daemon.folder / "mixed"
        folder.mkdir()
        (folder / "bad.json").write_text('{"cdiVersion": "0.5.0", "kind": "v.com/c", "surprise": 1, "more": 2, "devices": []}')
        (folder / "good.yaml").write_text("cdiVersion: 0.5.0\nkind: vendor.com/net\ndevices:\n- name: eth0\n  containerEdits:\n"
                                          "    env:\n    - NET=1\n")
        ran = self.daemon.cli("cdi", "list", "--folder", folder)
        self.assertIn("vendor.com/net=eth0", ran.out)
        self.assertRegex(ran.err, r"mistakes:?\n +/(.*\n)* +/surprise: ", "one line for each mistake")


class OtherVendorsTest(CdiTest):
    """--device vendor.com/class=name."""

    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="drover-cdi-"))
        cls.addClassCleanup(shutil.rmtree, folder)
        (folder / "first").mkdir()
        (folder / "second").mkdir()
        cls.folder = folder
        cls.arguments = ("--cdi-folder", folder / "first", "--cdi-folder", folder / "second")
        super().setUpClass()
        (folder / "library.so").write_text("a library")
        cls.install("first/net.yaml", "vendor.com/net", {
            "eth0": {"env": ["CARD=old"]},
            "eth1": {"env": ["CARD=1", "NVIDIA_VISIBLE_DEVICES=all"],
                     "deviceNodes": [{"path": "/dev/card1", "hostPath": "/dev/full"}],
                     "mounts": [{"hostPath": str(folder / "library.so"), "containerPath": "/lib/vendor.so", "options": ["ro", "bind"]}]}},
            {"env": ["VENDOR=common"]})
        cls.install("second/net.json", "vendor.com/net", {"eth0": {"env": ["CARD=new"]}})

    @classmethod
    def install(cls, name, kind, devices, edits=None):
        (cls.folder / name).write_text(json.dumps({
            "cdiVersion": "0.6.0", "kind": kind, "containerEdits": edits or {},
            "devices": [{"name": device, "containerEdits": made} for device, made in devices.items()]}))

    def test_a_device_brings_what_its_specification_says(self):
        ran = self.daemon.run_probe(["--device", "vendor.com/net=eth1"], "env", "CARD", ",", "env", "VENDOR", ",", "exists",
                                    "/lib/vendor.so", ",", "open", "/dev/card1", ",", "write", "/lib/vendor.so", "x", ",", "env",
                                    "NVIDIA_VISIBLE_DEVICES", image=self.image)
        self.assertEqual(ran.out.split(), ["1", "common", "ok", "ok", "EROFS", "void"], ran)
        ran = self.daemon.run_probe([], "exists", "/dev/card1", image=self.image)
        self.assertEqual(ran.out, "ENOENT\n", ran)

    def test_the_later_folder_counts(self):
        ran = self.daemon.run_probe(["--device", "vendor.com/net=eth0"], "env", "CARD")
        self.assertEqual(ran.out, "new\n", ran)

    def test_with_gpus_both_are_there(self):
        ran = self.daemon.run_probe(["--gpus", 1, "--device", "vendor.com/net=eth1"], "exists", "/lib/vendor.so", ",", "exists",
                                    "/lib64/libnvidia-ml.so.1", image=self.image)
        self.assertEqual(ran.out.split(), ["ok", "ok"], ran)

    def refused(self, device, *words, image=True):
        reference = ["--image", self.image] if image else []
        ran = self.daemon.cli("run", "--device", device, *reference, "--", "/probe")
        self.assert_one_sentence(ran, *words)

    def test_unknown_devices_are_refused_with_those_that_there_are(self):
        self.refused("vendor.com/net=eth7", "vendor.com/net=eth7", "vendor.com/net=eth1")
        self.refused("nonsense", "vendor.com/class=name")
        self.refused("/dev/fuse", "--device")
        self.refused("vendor.com/net=eth1", "image", image=False)

    def test_gpus_are_not_given_as_devices(self):
        gpu = self.daemon.state / "sim/dev/nvidia3"
        self.install("first/sly.json", "sly.com/thing", {"gpu": {"deviceNodes": [{"path": "/dev/innocent", "hostPath": str(gpu)}]},
                                                         "number": {"deviceNodes": [{"path": "/dev/x", "type": "c", "major": 195,
                                                                                     "minor": 3}]}})
        self.refused("sly.com/thing=gpu", "--gpus")
        self.refused("sly.com/thing=number", "--gpus")
        self.refused("nvidia.com/gpu=0", "--gpus")
        self.refused("nvidia.com/gpu=all", "--gpus")


@unittest.skipIf(os.geteuid() != 0, "needs root: device nodes are made for real")
class FreshTest(unittest.TestCase):
    """`serve --cdi-specification` keeps the file right."""

    def test_the_file_is_written_at_the_start_and_again_when_it_is_wrong(self):
        daemon = drover.Daemon()
        self.addCleanup(daemon.close)
        file = daemon.folder / "cdi/gpus.yaml"
        file.parent.mkdir()
        daemon.arguments += ["--cdi-specification", file]
        daemon.start()
        first = file.read_text()
        self.assertIn("nvidia.com/gpu", first)
        uuid = daemon.api("GET", "/v1/gpus")["gpus"][3]["uuid"]
        self.assertIn(uuid, first)
        (daemon.state / "sim/faults.yaml").write_text("3:\n  lost: true\n")
        drover.wait_for(lambda: uuid not in file.read_text(), "the specification to leave the lost GPU out")
        self.assertEqual(list(file.parent.iterdir()), [file])


if __name__ == "__main__":
    unittest.main()
