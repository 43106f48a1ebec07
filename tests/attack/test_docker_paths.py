"""What a Docker Engine's runtime does as root on paths that the user or his image chooses: working folders, and places of volumes."""

import ctypes
import io
import itertools
import os
import signal
import stat
import tarfile
import unittest

from attack import attack
import drover

SANDBOX = "mnt/mesos/sandbox"
AT_FDCWD, RENAME_EXCHANGE = -100, 2


def exchange_for_ever(user, one, other):
    """A process of the user's; returns its id."""
    parent = os.getpid()
    child = os.fork()
    if child != 0:
        return child
    try:
        os.setgroups([])
        os.setgid(user.uid)
        os.setuid(user.uid)
        library = ctypes.CDLL(None)
        while os.getppid() == parent:
            library.renameat2(AT_FDCWD, bytes(one), AT_FDCWD, bytes(other), RENAME_EXCHANGE)
    finally:
        os._exit(0)


def volume(source, place, read_only=False):
    return {"host_path": str(source), "container_path": place, "read_only": read_only}


class DockerPathsTest(attack.ThroughDocker, attack.AttackTest):
    numbers = itertools.count()

    def setUp(self):
        name = self.id().rpartition(".")[2]
        self.place = attack.make_folder(self.ground / name)
        # Root's, and nobody else may change it; and what mallory may mount.
        self.canary = attack.make_folder(self.place / "canary")
        self.own = attack.make_folder(self.place / "own", 0o755, self.mallory.uid)
        self.file = attack.make_file(self.place / "file", "mine\n", 0o644, self.mallory.uid)
        self.home = self.victim.home.parent

    def made(self, links=None, **settings):
        """A new image with symbolic links."""
        def fill(layer):
            for path, target in (links or {}).items():
                layer.add_link(path, target)

        return self.image(f"made-{next(self.numbers)}", fill, **settings)

    def run_it(self, *words, volumes=(), **fields):
        fields.setdefault("image", None)
        fields["image"] = fields["image"] or self.made()
        return self.attempt(self.mallory, ["/probe", *(words or ["say", "ran"])], volumes=list(volumes), **fields)

    def assert_refused_in_words(self, record, *words):
        self.assertEqual(record["state"], "failed", record)
        self.assertNotIn("\n", record["reason"])
        for word in words:
            self.assertIn(word, record["reason"])
        for leak in ("OCI runtime", "runc", "shim task"):
            self.assertNotIn(leak, record["reason"])

    # Working folders

    def assert_not_entered(self, folder, **fields):
        record, output, _ = self.run_it("say", "ran", ",", "pwd", ",", "append", "trace", "x", volumes=[volume(self.home, "/v", True)],
                                        **fields)
        self.assertEqual((record.get("exit_status"), output), (126, ""), record)
        self.assert_refused_in_words(record, f"Cannot enter the working folder '{folder}': Permission denied")

    def test_a_working_folder_below_a_closed_one_of_a_volume(self):
        self.assert_not_entered("/v/victim/project", working_directory="/v/victim/project")

    def test_an_image_s_own_working_folder_in_a_volume(self):
        image = self.made(working_directory="/v/victim/project")
        self.assert_not_entered("/v/victim/project", image=image)

    def test_an_image_s_own_working_folder_through_a_link(self):
        image = self.made({"l": "/v/victim"}, working_directory="/l/project")
        self.assert_not_entered("/l/project", image=image)

    def test_a_working_folder_that_is_not_there_is_not_made_in_a_volume(self):
        for number, how in enumerate(({"working_directory": "/v/new/er"}, {"image": self.made(working_directory="/v/new/er")})):
            with self.subTest(number), self.unchanged(self.canary):
                record, output, _ = self.run_it(volumes=[volume(self.canary, "/v")], **how)
                self.assertEqual((record.get("exit_status"), output), (127, ""), record)
                self.assert_refused_in_words(record, "Cannot enter the working folder '/v/new/er': No such file or directory")

    def test_working_folders_that_processes_have(self):
        marker = attack.make_file(self.place / "marker", "here\n")
        up = "../" * 30 + str(marker).lstrip("/")
        folders = [f"/proc/self/fd/{number}" for number in range(3, 14)]
        folders += ["/proc/self/cwd", "/proc/1/cwd", "/proc/1/root", "/proc/self/root", "/proc/self/map_files", "/dev/fd/7"]
        for way in ("the user's", "the image's"):
            for folder in folders if way == "the user's" else folders[4:6]:
                how = {"working_directory": folder} if way == "the user's" else {"image": self.made(working_directory=folder)}
                with self.subTest(way, folder=folder):
                    _, output, errors = self.run_it("exists", up, ",", "pwd", **how)
                    self.assertNotIn("ok", output)
                    self.assertNotIn(str(self.daemon.folder), output + errors)

    def start(self, **fields):
        task = self.submit(self.mallory, ["/probe", "say", "up", ",", "sleep", 600], **fields)
        drover.wait_for(lambda: "up" in self.daemon.output(task), "the task to run")
        self.addCleanup(self.daemon.end_task, task)
        return task

    def test_a_command_joins_in_a_folder_that_became_a_link_to_a_closed_one(self):
        inside = attack.make_folder(self.own / "work", 0o755, self.mallory.uid)
        task = self.start(image=self.made(), working_directory="/v/work",
                          volumes=[volume(self.own, "/v"), volume(self.home, "/homes", True)])
        joined = self.cli(self.mallory, "exec", task, "--", "/probe", "pwd")
        self.assertEqual((joined.status, joined.out), (0, "/v/work\n"), joined)
        inside.rename(self.own / "before")
        (self.own / "work").symlink_to("/homes/victim/project")
        joined = self.cli(self.mallory, "exec", task, "--", "/probe", "exists", "notes.txt")
        self.assertEqual((joined.status, joined.out), (126, ""), joined)
        self.assertIn("Cannot enter the working folder '/v/work': Permission denied", joined.err)

    # Places of volumes

    def assert_nothing_made(self, volumes, *words, **fields):
        """Whether it is refused or runs without: nothing of root's on the machine changes."""
        with self.unchanged(self.canary):
            record, output, _ = self.run_it(volumes=volumes, **fields)
        self.assert_refused_in_words(record, *words)
        self.assertEqual(output, "")

    def test_a_file_in_a_folder_of_root_s(self):
        self.assert_nothing_made([volume(self.canary, "/v"), volume(self.file, "/v/nologin")], "Permission denied")

    def test_folders_on_the_way_into_a_folder_of_root_s(self):
        self.assert_nothing_made([volume(self.canary, "/v"), volume(self.own, "/v/sub/sub/nologin")], "Permission denied")

    def test_the_inner_volume_named_first(self):
        self.assert_nothing_made([volume(self.own, "/v/sub/nologin"), volume(self.canary, "/v")], "Permission denied")

    def test_a_read_only_volume_around_it(self):
        self.assert_nothing_made([volume(self.canary, "/v", True), volume(self.own, "/v/new")], "Volume")

    def test_links_in_a_volume_lead_into_another(self):
        for name, target in (("absolute", "/c"), ("relative", "../c"), ("up", "../../../../../../../../c")):
            (self.own / name).symlink_to(target)
            with self.subTest(name):
                self.assert_nothing_made([volume(self.canary, "/c"), volume(self.own, "/v"), volume(self.file, f"/v/{name}/nologin")],
                                         "Volume")

    def test_links_of_the_image_lead_into_a_volume(self):
        image = self.made({"l": "/v", "k": "l/deep", "j": "/v/../j2", "j2": "v"})
        for place in ("/l/nologin", "/k/nologin", "/j/nologin"):
            with self.subTest(place):
                self.assert_nothing_made([volume(self.canary, "/v"), volume(self.file, place)], "would be mounted in it", image=image)

    def test_a_volume_that_the_image_declares_in_another(self):
        image = self.made({"l": "/v"}, volumes=["/v/sub/nologin", "/l/other"])
        self.assert_nothing_made([volume(self.canary, "/v")], "would be mounted in it", image=image)

    def test_what_the_engine_puts_into_etc(self):
        image = self.made({"l": "/etc", "k": "/"})
        for place in ("/etc", "/l", "/k"):
            with self.subTest(place):
                self.assert_nothing_made([volume(self.canary, place)], "Volume", image=image)

    def test_nodes_in_a_folder_that_the_image_s_links_make_dev(self):
        image = self.made({"l": "/dev", "k": "dev/shm"})
        for place in ("/dev", "/dev/x", "/l", "/l/drover-init", "/k/x"):
            with self.subTest(place), self.unchanged(self.own):
                try:
                    self.assert_nothing_made([volume(self.own, place)], "the container's own", image=image)
                except drover.ApiError as refused:
                    self.assertIn("the container's own", str(refused))

    def test_nodes_in_a_sandbox_that_the_image_makes_dev(self):
        for target in ("/dev", "/proc", "/"):
            image = self.made({SANDBOX: target}, folders=("dev", "etc", "proc", "sys", "tmp", "mnt", "mnt/mesos"))
            with self.subTest(target):
                task = self.submit(self.mallory, ["/probe", "say", "ran"], image=image, gpus=1)
                self.assert_refused_in_words(self.daemon.wait_until_final(task), "container's own")
                sandbox = self.daemon.state / "tasks" / task / "sandbox"
                nodes = [path for path in sandbox.rglob("*") if stat.S_ISCHR(path.lstat().st_mode)] if sandbox.exists() else []
                self.assertEqual(nodes, [])

    def test_an_image_whose_dev_is_a_link(self):
        attack.make_file(self.canary / "ptmx", "root's\n")
        up = "../" * 12 + str(self.canary).lstrip("/")
        image = self.made({"dev": up}, folders=("etc", "proc", "sys", "tmp", "mnt"))
        with self.unchanged(self.canary, "/dev/null"):
            self.run_it(image=image)

    def test_links_that_files_fetched_into_the_sandbox_bring(self):
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for name, target in (("out", "/v"), ("up", "../../../../v")):
                member = tarfile.TarInfo(name)
                member.type, member.linkname = tarfile.SYMTYPE, target
                tar.addfile(member)
        (self.place / "links.tar").write_bytes(archive.getvalue())
        for name in ("out", "up"):
            with self.subTest(name):
                self.assert_nothing_made([volume(self.canary, "/v"), volume(self.own, f"{name}/nologin")], "Volume",
                                         fetch=[{"uri": f"file://{self.place}/links.tar", "extract": True}])

    def test_folders_that_are_exchanged_for_links_meanwhile(self):
        attack.make_folder(self.own / "way", 0o755, self.mallory.uid)
        (self.own / "link").symlink_to("/c")
        exchanger = exchange_for_ever(self.mallory, self.own / "way", self.own / "link")
        self.addCleanup(os.waitpid, exchanger, 0)
        self.addCleanup(os.kill, exchanger, signal.SIGKILL)
        image = self.made()
        with self.unchanged(self.canary):
            for number in range(12):
                self.run_it(volumes=[volume(self.canary, "/c"), volume(self.own, "/v"), volume(self.file, f"/v/way/a/b/{number}")],
                            image=image)

    def test_volumes_in_volumes_of_one_s_own(self):
        """Not an attack: what is refused above works where the user may do it himself."""
        inner = attack.make_folder(self.place / "inner", 0o755, self.mallory.uid)
        attack.make_file(inner / "deep", "deep\n", 0o644, self.mallory.uid)
        (self.own / "link").symlink_to("/a")
        record, output, _ = self.run_it("exists", "/v/a/b/deep", ",", "exists", "/v/a/f", ",", "exists", "in/side/deep", ",", "write",
                                        "/v/a/b/new", "x", ",", "write", "/v/a/r/new", "x",
                                        volumes=[volume(inner, "/v/a/b"), volume(self.own, "/v"), volume(self.file, "/v/a/f"),
                                                 volume(inner, "in/side"), volume(inner, "/v/a/r", True)])
        self.assertEqual(output.split(), ["ok", "ok", "ok", "ok", "EROFS"], record)
        self.assertEqual((self.own / "a").stat().st_uid, self.mallory.uid)
        self.assertTrue((inner / "new").exists())

    def test_names_that_engines_take_apart(self):
        for name in ("a b", "a,b", "a:b:ro", "a=b", 'a"b', "ä", "a\\b", "$HOME", "-v"):
            folder = attack.make_folder(self.own / name, 0o755, self.mallory.uid)
            attack.make_file(folder / "there", "", 0o644, self.mallory.uid)
            with self.subTest(name):
                _, output, _ = self.run_it("exists", f"/data/{name}/there", ",", "write", f"/data/{name}/new", "x",
                                           volumes=[volume(folder, f"/data/{name}", True)])
                self.assertEqual(output.split(), ["ok", "EROFS"])

    def test_a_folder_over_a_file_and_a_file_over_a_folder(self):
        attack.make_file(self.own / "f", "", 0o644, self.mallory.uid)
        attack.make_folder(self.own / "d", 0o755, self.mallory.uid)
        for source, place in ((self.file, "/v/d"), (self.own, "/v/f")):
            with self.subTest(place), self.unchanged(self.own):
                self.assert_nothing_made([volume(self.own, "/v"), volume(source, place)], "Volume")

    # Who it is

    def test_names_in_the_image_that_look_like_numbers(self):
        def fill(layer):
            layer.add_file("etc/passwd", f"{self.mallory.uid}:x:0:0::/:/probe\n".encode())
            layer.add_file("etc/group", f"{self.mallory.uid}:x:0:\nroot:x:0:{self.mallory.uid},{self.mallory.name}\n".encode())

        image = self.image("numbers", fill, folders=("dev", "proc", "sys", "tmp", "mnt"))
        _, output, _ = self.attempt(self.mallory, ["/probe", "id"], image=image)
        self.assertEqual(output.split(), [str(self.mallory.uid)] * 2)

    # What else is given to a container

    def test_nodes_in_the_sandbox_cannot_be_opened(self):
        """Root's task, which may make nodes: what the device cgroup allows (null) is denied by the mount."""
        _, output, _ = self.attempt(None, ["/probe", "mknod", "node", 1, 3, ",", "mknod", "/v/node", 1, 3], image=self.made(),
                                    volumes=[volume(self.own, "/v")])
        self.assertEqual(output.split(), ["EACCES", "EACCES"])

    def test_the_first_process_cannot_be_replaced(self):
        _, output, _ = self.attempt(None, ["/probe", "write", "/dev/drover-init", "x", ",", "write", "/proc/1/exe", "x"],
                                    image=self.made())
        self.assertIn(output.split()[0], ("EROFS", "ETXTBSY"))
        self.assertIn(output.split()[1], ("EROFS", "ETXTBSY"))

    def test_what_the_machine_keeps_for_a_start_is_gone_and_closed(self):
        task = self.start(image=self.made(), volumes=[volume(self.own, "/v")])
        folder = self.daemon.state / "tasks" / task / "volumes"
        self.assertEqual([path for path in drover.mounts_of(self.daemon.folder) if "/volumes" in path], [])
        self.assertFalse(folder.exists() and list(folder.iterdir()))
        seen = self.shell(self.mallory, f"ls {folder} {folder.parent}")
        self.assertNotEqual(seen.status, 0, seen)


if __name__ == "__main__":
    unittest.main()
