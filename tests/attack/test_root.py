"""Root of a container is an ordinary user of the machine: what it could do if it got out, and what it has of files all the same."""

import contextlib
import glob
import os
import pathlib
import stat
import subprocess
import tarfile
import unittest

from attack import attack
import drover

FIRST, OTHERS_FIRST = 0x7F000000, 300_000
MAPPED = f"0 {FIRST} 65536"
OWN = "0 0 4294967295"
SHOW_IDS = ["/probe", "show", "/proc/self/uid_map"]


def owner(path):
    info = os.lstat(path)
    return info.st_uid, info.st_gid


@unittest.skipUnless(drover.makes_user_namespaces(), "this machine makes no user namespaces")
class Ids(attack.AttackTest):
    def setUp(self):
        self.reference = self.image("image", lambda layer: layer.add_folder("room", 0o700))

    def ids(self, caller=None, **fields):
        """The map of users that a task sees, in one line."""
        record, output, errors = self.attempt(caller, SHOW_IDS, **{"image": self.reference, **fields})
        self.assertEqual(record["state"], "finished", (record, errors))
        return " ".join(output.split())

    @contextlib.contextmanager
    def started(self, command, **fields):
        task = self.submit(None, ["/probe", *command, ",", "say", "up", ",", "sleep", "600"], image=self.reference, **fields)
        try:
            self.daemon.wait_for_output(task, "up")
            yield task, next(pid for pid in self.processes() if self.daemon.probe.name in self.name_of(pid) and self.is_of(pid, task))
        finally:
            self.daemon.end_task(task)

    def processes(self):
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]

    def name_of(self, pid):
        with contextlib.suppress(OSError):
            return pathlib.Path(f"/proc/{pid}/comm").read_text()
        return ""

    def is_of(self, pid, task):
        with contextlib.suppress(OSError):
            return task in pathlib.Path(f"/proc/{pid}/cgroup").read_text()
        return False


class MappedTest(Ids):
    expected = MAPPED

    def test_every_container_of_root_with_an_image(self):
        self.assertEqual(self.ids(), self.expected)
        for fields in ({"network": {"mode": "bridge"}}, {"read_only": True}, {"gpus": 1},
                       {"network": {"mode": "bridge", "ports": [{"container_port": 80, "host_port": 1023}]}}):
            with self.subTest(**fields):
                self.assertEqual(self.ids(**fields), self.expected)

    def test_the_files_that_root_has_given_it_are_root_s(self):
        """In the sandbox and in volumes, as far down as it goes: what it makes is root's, and what is root's it may read."""
        volume = attack.make_folder(self.ground / "volume", 0o700)
        attack.make_file(volume / "kept", "of root alone\n", 0o600)
        attack.make_file(volume / "hers", "of mallory alone\n", 0o600, self.mallory.uid)
        inner = attack.make_folder(self.ground / "inner")
        volumes = [{"host_path": str(volume), "container_path": "/volume"}, {"host_path": str(inner), "container_path": "/volume/a/b"},
                   {"host_path": str(inner), "container_path": "/mnt/mesos/sandbox/place"},
                   {"host_path": str(inner), "container_path": "/new/place"}]
        words = ["read", "/volume/kept", ",", "read", "/volume/hers", ",", "write", "/volume/made", "x", ",",
                 "write", "/volume/a/b/made", "x", ",", "write", "made", "x", ",", "write", "/room/made", "x", ",",
                 "write", "/new/place/again", "x"]
        task = self.submit(None, ["/probe", *words], image=self.reference, volumes=volumes)
        record = self.daemon.wait_until_final(task)
        self.assertEqual(self.daemon.output(task).splitlines(), ["of root alone", "of mallory alone", *["ok"] * 5], record)
        sandbox = self.daemon.state / "tasks" / task / "sandbox"
        for path in (volume / "made", volume / "a", volume / "a/b", inner / "made", inner / "again", sandbox / "made", sandbox / "place"):
            with self.subTest(path):
                self.assertEqual(owner(path), (0, 0))
        self.assertEqual(owner(volume / "hers"), (self.mallory.uid,) * 2)


class OtherIdsTest(MappedTest):
    arguments, expected = ("--container-ids", str(OTHERS_FIRST)), f"0 {OTHERS_FIRST} 65536"


class NoIdsTest(MappedTest):
    arguments, expected = ("--container-ids", "0"), OWN


class RootTest(Ids):
    def test_it_may_look_for_its_control_group(self):
        """Else a runtime cannot make the container, and root's own ids would be the machine's."""
        groups = [path for path in map(pathlib.Path, glob.glob("/sys/fs/cgroup/*/drover") + ["/sys/fs/cgroup/drover"]) if path.exists()]
        self.assertTrue(groups)
        for group in groups:
            with self.subTest(group):
                self.assertEqual(stat.S_IMODE(group.stat().st_mode), 0o755)

    def test_out_of_its_container_it_is_nobody(self):
        secret = attack.make_file(self.ground / "secret", "of root alone\n", 0o600)
        theirs = attack.make_file(self.ground / "theirs", "x", 0o644)
        with self.started(["show", "/proc/self/status"]) as (task, pid):
            self.assertEqual(os.stat(f"/proc/{pid}").st_uid, FIRST)
            escape = ["nsenter", "--target", str(pid), "--user", "--setuid", "0", "--setgid", "0", "--", "/bin/sh", "-c"]
            for attempt in (f"cat {secret}", f"echo spoilt > {theirs}", f"chown 0 {theirs}", f"kill -0 {os.getpid()}",
                            "mount -t tmpfs none /mnt", "hostname mine"):
                with self.subTest(attempt):
                    self.assertNotEqual(subprocess.run([*escape, attempt], capture_output=True, check=False).returncode, 0)
            joined = self.cli(None, "exec", task, "--", *SHOW_IDS)
            self.assertEqual(" ".join(joined.out.split()), MAPPED, joined)
        self.assertEqual(theirs.read_text(), "x")

    def test_the_owners_of_an_image_s_files(self):
        """They have their names inside, and root of the container may do with them what it likes."""
        def fill(layer):
            for name, uid, mode in (("private", 1234, 0o600), ("roots", 0, 0o600)):
                member = tarfile.TarInfo(name)
                member.uid = member.gid = uid
                member.mode, member.size = mode, 5
                layer.add_member(member, b"text\n")

        reference = self.image("owners", fill)
        record, output, errors = self.attempt(None, ["/probe", "read", "/private", ",", "append", "/roots", "more", ",", "read", "/roots",
                                                     ",", "write", "/etc/made", "x", ",", "mknod", "/null", 1, 3], image=reference)
        self.assertEqual(output.splitlines(), ["text", "ok", "text", "ok", "mknod EPERM"], (record, errors))

    def test_who_is_not_mapped(self):
        """Others are themselves in their containers; and where the map would take away what was asked for, there is none."""
        self.assertEqual(self.ids(self.mallory), OWN)
        self.assertEqual(self.ids(None, user=str(self.mallory.uid)), OWN)
        with self.subTest("a port of the machine that only root may take"):
            self.assertEqual(self.ids(network={"mode": "host", "ports": [{"host_port": 1021}]}), OWN)
        with self.subTest("a file system that knows no other owners"):
            below = [attack.make_folder(self.ground / name) for name in ("lower", "upper", "work", "merged")]
            attack.make_file(below[0] / "file", "seen\n")
            options = "lowerdir={},upperdir={},workdir={}".format(*below)
            subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, below[3]], check=True)
            self.addCleanup(subprocess.run, ["umount", "--lazy", below[3]], check=False)
            volumes = [{"host_path": str(below[3]), "container_path": "/volume"}]
            record, output, errors = self.attempt(None, [*SHOW_IDS, ",", "read", "/volume/file", ",", "write", "/volume/made", "x"],
                                                  image=self.reference, volumes=volumes)
            self.assertEqual(" ".join(output.split()), f"{OWN} seen ok", (record, errors))

    def test_a_volume_that_cannot_be_mounted_is_named_all_the_same(self):
        record, _, _ = self.attempt(None, SHOW_IDS, image=self.reference,
                                    volumes=[{"host_path": str(self.ground / "nowhere"), "container_path": "/volume"}])
        self.assert_refused(record, "nowhere")


if __name__ == "__main__":
    unittest.main()
