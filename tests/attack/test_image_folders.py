"""Images whose /dev and other folders are links to elsewhere: nothing is made or removed on the machine."""

import os
import shutil
import stat

from attack import attack

UP = "../../../../../../../.."


class ImageFoldersTest(attack.AttackTest):
    @classmethod
    def setUpClass(cls):
        cls.mallory, cls.victim = attack.people()
        attack.cover_null(cls)
        super().setUpClass()

    def setUp(self):
        shutil.rmtree(self.ground / "canary", ignore_errors=True)
        self.canary = attack.make_folder(self.ground / "canary", 0o700)
        attack.make_file(self.canary / "ptmx", "of the machine\n")
        attack.make_folder(self.canary / "mesos")

    def linked(self, path, target):
        """An image with a link at this path, and a command that needs a real /dev."""
        folders = [name for name in ("dev", "etc", "proc", "sys", "tmp", "mnt") if name != path]
        return self.image(path.replace("/", "-") + str(len(str(target))), lambda layer: layer.add_link(path, str(target)), folders=folders)

    def assert_contained(self, path, target, user=None, **fields):
        """It runs as if the link were the folder that it should be."""
        with self.unchanged(self.canary, "/dev/null"):
            record, output, _ = self.attempt(user, ["/probe", "open", "/dev/null", ",", "open", "/dev/ptmx", ",", "open", "/dev/pts/ptmx"],
                                             image=self.linked(path, target), **fields)
        return record, output

    def test_dev_leads_to_a_folder_of_the_machine(self):
        for user in (None, self.mallory):
            for target in (f"{UP}{self.canary}", str(self.canary), f"/proc/self/root{self.canary}", f"/proc/1/root{self.canary}"):
                with self.subTest(user=user, target=target):
                    record, output = self.assert_contained("dev", target, user)
                    self.assertEqual((record["state"], output), ("finished", "ok\nok\nok\n"), record)

    def test_dev_is_a_file(self):
        folders = ("etc", "proc", "sys", "tmp", "mnt")
        image = self.image("file", lambda layer: layer.add_file("dev", b"no folder"), folders=folders)
        self.assertEqual(self.attempt(self.mallory, ["/probe", "open", "/dev/null"], image=image)[1], "ok\n")

    def test_what_is_in_dev_leads_to_a_folder_of_the_machine(self):
        for name in ("pts", "shm", "mqueue", "null", "ptmx", "console", "fd", "stdin", "nvidia0"):
            with self.subTest(name=name):
                self.assert_contained(f"dev/{name}", f"{UP}{self.canary}/made", self.mallory, gpus=1)

    def test_other_folders_lead_to_a_folder_of_the_machine(self):
        for path in ("proc", "sys", "etc", "mnt", "mnt/mesos", "mnt/mesos/sandbox", "tmp", "etc/hosts", "etc/resolv.conf",
                     "etc/group", "etc/ld.so.cache", "usr", "usr/local", "usr/local/nvidia", "proc/self", "sys/fs/cgroup"):
            with self.subTest(path=path):
                self.assert_contained(path, f"{UP}{self.canary}", self.mallory, gpus=1)

    def test_dev_in_the_sandbox_with_a_file_for_null(self):
        """Whoever makes a container gives its standard input to the user, when that is not the container's own /dev/null."""
        attack.make_file(self.mallory.home / "null", "", 0o644, self.mallory.uid)
        record, output = self.assert_contained("dev", "mnt/mesos/sandbox/d", self.mallory,
                                               fetch=[{"uri": f"file://{self.mallory.home}/null", "output_file": "d/null"}])
        self.assertEqual((record["state"], output), ("finished", "ok\nok\nok\n"), record)

    def test_no_node_of_a_gpu_is_left_on_the_machine(self):
        task = self.submit(self.mallory, ["/probe", "say", "up", ",", "sleep", "600"], gpus=1,
                           image=self.linked("dev", "mnt/mesos/sandbox/d"))
        self.daemon.wait_for_output(task, "up")
        sandbox = self.daemon.state / "tasks" / task / "sandbox"
        self.assertEqual([path for path in sandbox.rglob("*") if stat.S_ISCHR(path.lstat().st_mode)], [])
        self.daemon.stop_task(task, force=True)
        self.daemon.wait_until_final(task)


class DockerImageFoldersTest(attack.ThroughDocker, ImageFoldersTest):
    """The same through a Docker Engine."""


class SandboxNodesTest(attack.AttackTest):
    """What root's tasks leave in their sandboxes is no way around for others."""

    def test_a_node_that_roots_task_made_in_its_sandbox(self):
        task = self.daemon.submit("say", "up", ",", "sleep", 600)
        self.daemon.wait_for_output(task, "up")
        node = self.daemon.state / "tasks" / task / "sandbox/node"
        os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(195, 0))
        node.chmod(0o666)
        self.assertEqual(self.opening(self.mallory, node), "EACCES")

    def test_a_program_of_root_in_its_sandbox(self):
        ran = self.daemon.submit(command=["/bin/sh", "-c", "cp /bin/id id; chmod 4755 id; echo up; exec sleep 600"])
        self.daemon.wait_for_output(ran, "up")
        as_mallory = self.shell(self.mallory, f"{self.daemon.state}/tasks/{ran}/sandbox/id -u")
        self.assertNotEqual(as_mallory.out, "0\n", as_mallory)
