"""Volumes whose places in the container lie in other folders of the machine: nothing is made there with more than the user's rights."""

import contextlib
import ctypes
import os
import threading

import drover
from attack import attack

AT_FDCWD, RENAME_EXCHANGE = -100, 2
RACES = 30  # launches while a path is exchanged


class MountPlacesTest(attack.AttackTest):
    def setUp(self):
        self.canary = attack.make_folder(self.ground / "canary")
        attack.make_file(self.canary / "there")
        attack.make_folder(self.canary / "folder")
        self.own = attack.make_folder(self.mallory.home / "outer", 0o755, self.mallory.uid)
        self.file = attack.make_file(self.mallory.home / "f", "mine\n", 0o644, self.mallory.uid)
        self.fields = {"image": self.image("places")}

    def mounted(self, *volumes, command=("/probe", "say", "in")):
        """Volumes are (place, source)."""
        described = [{"container_path": str(place), "host_path": str(source)} for place, source in volumes]
        return self.attempt(self.mallory, command, volumes=described, **self.fields)

    def assert_nothing_is_made(self, *volumes):
        with self.unchanged(self.canary):
            record, _, _ = self.mounted(*volumes)
        self.assert_refused(record, volumes[-1][0])

    def test_a_file_in_a_volume_of_root(self):
        self.assert_nothing_is_made(("/v", self.canary), ("/v/nologin", self.file))

    def test_a_file_deep_in_a_volume_of_root(self):
        self.assert_nothing_is_made(("/v", self.canary), ("/v/sub/nologin", self.file))

    def test_a_folder_in_a_volume_of_root(self):
        self.assert_nothing_is_made(("/v", self.canary), ("/v/sub/folder", self.own))

    def test_three_volumes_in_each_other(self):
        self.assert_nothing_is_made(("/v", self.canary), ("/v/folder", self.canary), ("/v/folder/sub", self.own))

    def test_the_inner_one_named_first(self):
        with self.unchanged(self.canary):
            self.mounted(("/v/sub/nologin", self.file), ("/v", self.canary))

    def test_places_spelled_in_other_ways(self):
        for place in ("/v/./sub/../nologin", "//v//nologin", "/tmp/../v/nologin"):
            with self.subTest(place=place), self.unchanged(self.canary), contextlib.suppress(drover.ApiError):
                self.mounted(("/v", self.canary), (place, self.file))

    def test_a_link_of_the_image_into_the_volume(self):
        self.fields["image"] = self.image("short", lambda layer: layer.add_link("short", "/v"))
        with self.unchanged(self.canary):
            self.mounted(("/v", self.canary), ("/short/nologin", self.file))

    def test_a_link_in_a_volume_of_ones_own(self):
        for name, target in (("up", "../../../../../../../.." + str(self.canary)), ("absolute", self.canary),
                             ("magic", f"/proc/self/root{self.canary}"), ("one", f"/proc/1/root{self.canary}")):
            if not os.path.lexists(self.own / name):
                os.symlink(target, self.own / name)
            with self.subTest(link=name), self.unchanged(self.canary):
                self.mounted(("/v", self.own), (f"/v/{name}/nologin", self.file))

    def test_what_is_made_in_a_volume_of_ones_own_is_ones_own(self):
        self.mounted(("/v", self.own), ("/v/made/file", self.file))
        self.assertEqual({path.owner() for path in self.own.rglob("made*")} - {"mallory"}, set())

    def test_a_volume_where_there_is_a_place_for_it(self):
        _, output, _ = self.mounted(("/v", self.canary), ("/v/there", self.file), ("/v/folder", self.own),
                                    command=["/probe", "read", "/v/there", ",", "list", "/v"])
        self.assertEqual(output, "mine\nfolder there\n")

    def test_a_place_that_is_exchanged_meanwhile(self):
        """mallory makes a volume's place point elsewhere while the container is made."""
        outer = attack.make_folder(self.ground / "race", 0o755, self.mallory.uid)
        attack.make_folder(outer / "a", 0o755, self.mallory.uid)
        os.symlink("../../../../../../../.." + str(self.canary), outer / "b")
        ended = threading.Event()
        swapper = threading.Thread(target=exchange_paths, args=(outer / "a", outer / "b", ended))
        swapper.start()
        try:
            with self.unchanged(self.canary):
                tasks = [self.submit(self.mallory, ["/probe", "say", "in"], **self.fields, volumes=[
                    {"container_path": "/v", "host_path": str(outer)},
                    *({"container_path": f"/v/a/c{number}", "host_path": str(self.own)} for number in range(8))])
                         for _ in range(RACES)]
                for task in tasks:
                    self.daemon.wait_until_final(task)
        finally:
            ended.set()
            swapper.join()


class DockerMountPlacesTest(attack.ThroughDocker, MountPlacesTest):
    """The same through a Docker Engine."""


class HostMountPlacesTest(attack.AttackTest):
    """Without an image: places are in the sandbox."""

    def test_a_file_in_a_volume_of_root(self):
        canary = attack.make_folder(self.ground / "canary")
        attack.make_file(self.mallory.home / "f", "mine\n", 0o644, self.mallory.uid)
        for place in ("v/nologin", "v/sub/nologin"):
            with self.subTest(place=place), self.unchanged(canary):
                record, _, _ = self.attempt(self.mallory, ["/bin/true"], volumes=[
                    {"container_path": "v", "host_path": str(canary)},
                    {"container_path": place, "host_path": str(self.mallory.home / "f")}])
            self.assert_refused(record, place)


def exchange_paths(first, second, ended):
    """Again and again, until it is told to end."""
    library = ctypes.CDLL(None)
    while not ended.wait(0.0005):
        library.renameat2(AT_FDCWD, bytes(first), AT_FDCWD, bytes(second), RENAME_EXCHANGE)
