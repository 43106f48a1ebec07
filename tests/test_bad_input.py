"""Bad input: each gets one clear sentence and a status other than 0, and nothing half-done is left behind."""

import contextlib
import io
import os
import pathlib
import re
import shutil
import stat
import subprocess
import tarfile
import tempfile
import unittest

import drover
import oci_layout


class BadImageTest(drover.DaemonTest):
    def setUp(self):
        self.folder = self.daemon.folder / self.id().rsplit(".", 1)[-1]
        self.folder.mkdir()

    def refuse(self, reference, *words):
        """The image is refused, and its store is as it was."""
        before = sorted(str(path) for path in (self.daemon.state / "images").rglob("*"))
        ran = self.daemon.run_probe([], "say", "hello", image=reference)
        self.assert_one_sentence(ran, *words)
        self.assertEqual(ran.out, "")
        self.assertEqual(sorted(str(path) for path in (self.daemon.state / "images").rglob("*")), before)

    def hostile_layout(self, *members):
        """An image whose layer ends with these members."""

        def fill(layer):
            layer.add_file("probe", self.daemon.probe.read_bytes(), 0o755)
            for member, content in members:
                layer.add_member(member, content)

        oci_layout.write(self.folder / "image", fill)
        return f"oci:{self.folder / 'image'}"

    @staticmethod
    def member(name, kind=tarfile.REGTYPE, link="", content=b""):
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname, entry.size, entry.mode = kind, link, len(content), 0o755
        return entry, content

    def test_an_image_that_is_not_there(self):
        self.refuse(f"oci:{self.folder}/missing", "missing")

    def test_a_file_that_is_no_image(self):
        file = self.folder / "letter.txt"
        file.write_text("Dear Sir or Madam,\n" * 1000)
        self.refuse(f"docker-archive:{file}", "letter.txt")
        self.refuse(str(file), "letter.txt")

    def test_a_folder_that_is_no_layout(self):
        self.refuse(f"oci:{self.folder}", str(self.folder))

    def test_an_archive_that_was_cut_off(self):
        whole = io.BytesIO()
        with tarfile.open(fileobj=whole, mode="w") as tar:
            entry, content = self.member("manifest.json", content=b"x" * 4096)
            tar.addfile(entry, io.BytesIO(content))
        file = self.folder / "half.tar"
        file.write_bytes(whole.getvalue()[:1500])
        self.refuse(f"docker-archive:{file}", "half.tar")

    def test_a_layer_that_was_changed(self):
        reference = self.hostile_layout()
        blobs = sorted((self.folder / "image/blobs/sha256").iterdir(), key=lambda path: path.stat().st_size)
        data = bytearray(blobs[-1].read_bytes())
        data[len(data) // 2] ^= 1
        blobs[-1].write_bytes(data)
        self.refuse(reference, "sha256")

    def test_an_index_that_is_no_json(self):
        reference = self.hostile_layout()
        (self.folder / "image/index.json").write_text('{"manifests": [')
        self.refuse(reference, "index.json")

    def test_a_layer_that_climbs_out(self):
        victim = pathlib.Path(tempfile.gettempdir()) / f"drover-victim-{os.getpid()}"
        climbing = {
            "dots": [self.member("../" * 12 + str(victim).lstrip("/"), content=b"owned")],
            "link": [self.member("way", tarfile.SYMTYPE, "../" * 12 + str(victim.parent).lstrip("/")),
                     self.member(f"way/{victim.name}", content=b"owned")],
            "absolute link": [self.member("way", tarfile.SYMTYPE, str(victim.parent)),
                              self.member(f"way/{victim.name}", content=b"owned")],
            "hard link": [self.member("file", tarfile.LNKTYPE, "../" * 12 + "etc/passwd")],
        }
        for name, members in climbing.items():
            with self.subTest(name):
                shutil.rmtree(self.folder / "image", ignore_errors=True)
                self.daemon.run_probe([], "say", "hello", image=self.hostile_layout(*members))
                self.assertFalse(victim.exists(), "a file was written outside of the layer")
        self.refuse_dots(climbing["dots"])

    def refuse_dots(self, members):
        shutil.rmtree(self.folder / "image")
        self.refuse(self.hostile_layout(*members), "..")

    def test_a_layer_with_a_device_node(self):
        entry, content = self.member("sneaky", tarfile.CHRTYPE)
        entry.devmajor, entry.devminor = 195, 0
        self.refuse(self.hostile_layout((entry, content)), "sneaky")

    def test_another_users_image_is_not_read_for_him(self):
        reference = self.hostile_layout()
        self.folder.chmod(0o700)
        ran = self.daemon.run_probe([], "say", "hello", image=reference, uid=drover.NOBODY)
        self.assert_one_sentence(ran, "ermission")


class BadCommandTest(drover.DaemonTest):
    def test_unknown_flags_and_commands_are_named(self):
        for words, wrong in ((["run", "--gpu", "1", "--", "true"], "--gpu"), (["frobnicate"], "frobnicate"),
                             (["serve", "--sate", "/tmp"], "--sate"), (["gpus", "--yaml"], "--yaml")):
            with self.subTest(words=words):
                ran = self.daemon.cli(*words)
                self.assertNotEqual(ran.status, 0)
                self.assertIn(wrong, ran.err)

    def test_values_that_mean_nothing(self):
        for option, value in (("--gpus", "many"), ("--gpus", "-1"), ("--mem", "plenty"), ("--cpus", "0"), ("--timeout", "soon"),
                              ("--env", "=x"), ("--user", "nobody-of-that-name")):
            with self.subTest(option=option, value=value):
                self.assert_one_sentence(self.daemon.cli("run", f"{option}={value}", "--", "true"))

    def test_nothing_to_run(self):
        self.assert_one_sentence(self.daemon.cli("run"))

    def test_tasks_that_are_not_there(self):
        for command in ("logs", "stop", "explain"):
            with self.subTest(command=command):
                self.assert_one_sentence(self.daemon.cli(command, "no-such-task"), "no-such-task")

    def test_no_daemon(self):
        ran = drover.run([drover.BINARY, "--socket", self.daemon.folder / "nothing", "ps"])
        self.assert_one_sentence(ran, str(self.daemon.folder / "nothing"))

    def test_bodies_that_are_wrong_name_every_mistake(self):
        status, _, data = self.daemon.request("POST", "/v1/tasks", {"comand": ["true"], "gpus": "two", "cpus": -1})
        self.assertEqual(status, 400)
        for path in (b"comand", b"gpus", b"cpus"):
            self.assertIn(path, data)
        for body in ("{", "[]", '"text"', "{" * 100000, '{"command": ["' + "x" * (32 << 20) + '"]}'):
            status, _, data = self.daemon.request("POST", "/v1/tasks", body)
            self.assertIn(status, (400, 413), data[:200])
            self.assertIn(b"error", data)
        self.assertTrue(self.daemon.answers())


class BadMachineTest(unittest.TestCase):
    """A daemon that cannot start says why in one sentence, or starts and says what it lacks."""

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root: containers, devices and mounts are made for real")
        self.daemon = drover.Daemon("k40m")
        self.addCleanup(self.close)

    def close(self):
        found = self.daemon.close()
        self.assertEqual(found, [])

    def serve(self, *arguments, profile="k40m"):
        """A daemon that is expected to end by itself."""
        ran = drover.run([drover.BINARY, "serve", "--state", self.daemon.state, "--socket", self.daemon.socket, "--simulate",
                          profile, *arguments])
        log_line = re.compile(r"\d{4}-\d\d-\d\dT")
        ran.err = "".join(line for line in ran.err.splitlines(keepends=True) if not log_line.match(line))
        return ran

    assert_one_sentence = drover.DaemonTest.assert_one_sentence

    def test_an_unknown_profile_names_those_that_exist(self):
        ran = self.serve(profile="cray-1")
        self.assertNotEqual(ran.status, 0)
        self.assertIn("cray-1", ran.err)
        self.assertIn("dgx-a100", ran.err)

    def test_a_corrupt_state_file(self):
        self.daemon.start()
        self.daemon.submit("sleep", 0)
        self.daemon.end_tasks()
        self.daemon.stop()
        database = self.daemon.state / "state.db"
        for leftover in self.daemon.state.glob("state.db-*"):
            leftover.unlink()
        database.write_bytes(b"This is no database. " * 1000)
        damaged = database.read_bytes()
        self.assert_one_sentence(self.serve(), "state.db")
        self.assertEqual(database.read_bytes(), damaged, "what is damaged must be kept as evidence")

    def test_a_state_folder_that_another_daemon_uses(self):
        self.daemon.start()
        self.assert_one_sentence(self.serve(), str(self.daemon.state))
        self.assertTrue(self.daemon.answers())

    def test_a_state_folder_that_is_a_file(self):
        self.daemon.state.write_text("")
        self.assert_one_sentence(self.serve(), str(self.daemon.state))

    def test_a_full_disk(self):
        """The task is refused or fails with the reason, the daemon lives, and works again when there is room."""
        self.daemon.state.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", self.daemon.state], check=True)
        self.addCleanup(subprocess.run, ["umount", "--lazy", self.daemon.state], check=False)
        self.daemon.start()
        ballast = self.daemon.state / "ballast"
        with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        ran = self.daemon.run_probe([], "say", "hello")
        self.assertNotEqual(ran.status, 0)
        self.assertRegex(ran.err, "(?i)no space|disk|full")
        ballast.unlink()
        ran = self.daemon.run_probe([], "say", "hello")
        self.assertEqual((ran.status, ran.out), (0, "hello\n"), ran)
        self.daemon.end_tasks()
        self.daemon.stop()

    def test_a_runtime_that_is_missing(self):
        ran = self.serve("--runtime", "no-such-runtime")
        self.assert_one_sentence(ran, "no-such-runtime")

    def test_a_runtime_that_dies(self):
        """Found good when the daemon starts, and broken when a task is started."""
        runtime = self.daemon.folder / "runc"
        broken = self.daemon.folder / "broken"
        runtime.write_text(f'#!/bin/sh\n[ ! -e {broken} ] || kill -9 $$\nexec runc "$@"\n')
        runtime.chmod(runtime.stat().st_mode | stat.S_IXUSR)
        self.daemon.arguments += ["--runtime", str(runtime)]
        self.daemon.start()
        self.assertEqual(self.daemon.run_probe([], "say", "hello").out, "hello\n")
        broken.touch()
        ran = self.daemon.run_probe(["--gpus", "1"], "say", "hello")
        self.assert_one_sentence(ran, "runc")
        self.assertEqual(self.daemon.held_gpus(), {})
        broken.unlink()
        self.assertEqual(self.daemon.run_probe(["--gpus", "1"], "say", "hello").out, "hello\n")

    def test_a_driver_root_without_a_driver(self):
        empty = self.daemon.folder / "empty"
        empty.mkdir()
        ran = self.serve("--driver-root", str(empty))
        self.assert_one_sentence(ran, str(empty))


if __name__ == "__main__":
    unittest.main()
