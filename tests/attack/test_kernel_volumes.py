"""File systems of the kernel are no volumes: with /proc, /sys or a cgroup in hand, root in a container has the machine."""

import contextlib
import pathlib
import subprocess

from attack import attack

WHY = "the kernel's file system"


class KernelVolumesTest(attack.AttackTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.mounted = []

    def look(self, path, *verbs, caller=None, read_only=False, image=True):
        place = "/v" if image else "v"
        program = "/probe" if image else self.daemon.probe
        more = {"image": self.image("reader")} if image else {}
        return self.attempt(caller, [program, *(verbs or ("exists", place))],
                            volumes=[{"container_path": place, "host_path": str(path), "read_only": read_only}], **more)

    def assert_no_volume(self, path, *words, **how):
        record, output, _ = self.look(path, **how)
        self.assert_refused(record, f"Volume '{path}' cannot be mounted", *(words or (WHY,)))
        self.assertEqual(output, "")

    def assert_volume(self, path, **how):
        record, output, errors = self.look(path, **how)
        self.assertEqual((record["state"], output), ("finished", "ok\n"), (record, errors))

    @contextlib.contextmanager
    def mounted_at(self, place, *words):
        """In the mount namespace of this process and the daemon, which nobody else sees."""
        subprocess.run(["mount", *map(str, words), str(place)], check=True)
        try:
            yield place
        finally:
            subprocess.run(["umount", "--lazy", str(place)], check=True)

    def test_root_leaves_its_devices_through_a_cgroup(self):
        """The first process goes to the group above its own, where every device may be opened."""
        groups = [path for path in (pathlib.Path("/sys/fs/cgroup/devices"), pathlib.Path("/sys/fs/cgroup")) if path.is_dir()]
        for group in groups:
            with self.subTest(group=group):
                record, output, _ = self.look(group, "write", "/v/cgroup.procs", "0", ",", "mknod", "/tmp/gpu", 195, 0)
                self.assertNotIn(attack.ALLOWED, output)
                self.assert_refused(record, f"Volume '{group}' cannot be mounted", WHY)

    def test_root_changes_the_kernel_through_proc(self):
        for path in ("/proc", "/proc/sys", "/proc/sys/kernel/core_pattern", "/proc/1", "/proc/version"):
            with self.subTest(path=path):
                self.assert_no_volume(path)

    def test_root_changes_the_kernel_through_sys(self):
        for path in ("/sys", "/sys/kernel", "/sys/kernel/uevent_helper", "/sys/class"):
            if pathlib.Path(path).exists():
                with self.subTest(path=path):
                    self.assert_no_volume(path)

    def test_everybody_is_refused_alike_and_also_to_read_only(self):
        for caller, read_only in ((self.mallory, False), (self.mallory, True), (None, True)):
            with self.subTest(caller=caller, read_only=read_only):
                self.assert_no_volume("/proc", caller=caller, read_only=read_only)

    def test_without_an_image(self):
        if self.containerizer == "docker":
            self.skipTest("a Docker Engine runs nothing without an image")
        self.assert_no_volume("/proc", image=False)
        self.assert_no_volume("/sys/kernel", image=False)

    def test_by_a_link(self):
        for name, target in (("to-proc", "/proc"), ("to-file", "/proc/sys/kernel/core_pattern"), ("to-link", "to-proc/sys")):
            (self.ground / name).symlink_to(target)
            with self.subTest(name=name):
                self.assert_no_volume(self.ground / name)
        self.assert_no_volume(f"{self.ground}/./to-proc/../proc/sys")

    def test_by_a_link_of_proc_itself(self):
        """What /proc/PID/root and cwd lead to is somebody else's view of the machine."""
        for path in ("/proc/self/root/proc", "/proc/1/cwd", "/proc/self/fd/0"):
            with self.subTest(path=path):
                self.assert_no_volume(path, "cannot reach it")

    def test_one_file_of_proc_mounted_elsewhere(self):
        file = attack.make_file(self.ground / "innocent")
        with self.mounted_at(file, "--bind", "/proc/sys/kernel/core_pattern"):
            self.assert_no_volume(file)
        self.assert_volume(file)

    def test_a_folder_that_holds_some(self):
        """Mounts below a volume go with it."""
        folder = attack.make_folder(self.ground / "chroot with space/proc").parent
        self.assert_volume(folder)
        with self.mounted_at(folder / "proc", "-t", "proc", "proc"):
            self.assert_no_volume(folder, f"'{folder}/proc'")
            self.assert_no_volume(self.ground, f"'{folder}/proc'")
            with self.mounted_at(folder / "proc", "-t", "tmpfs", "tmpfs"):
                self.assert_no_volume(folder, WHY)
            elsewhere = attack.make_folder(self.ground / "elsewhere")
            with self.mounted_at(elsewhere, "--rbind", folder):
                self.assert_no_volume(elsewhere, f"'{elsewhere}/proc'")
            self.assert_volume(attack.make_folder(self.ground / "beside"))
        self.assert_volume(folder)

    def test_other_kinds(self):
        place = attack.make_folder(self.ground / "kinds")
        for kind in ("mqueue", "devpts", "debugfs", "tracefs", "securityfs", "bpf", "cgroup2", "sysfs"):
            tried = subprocess.run(["mount", "-t", kind, kind, place], capture_output=True, text=True)
            if tried.returncode != 0:
                continue  # this kernel, or this machine, does not have it
            try:
                with self.subTest(kind=kind):
                    self.assert_no_volume(place, f"{WHY} {kind} ")
            finally:
                subprocess.run(["umount", place], check=True)

    def test_a_namespace_is_no_file(self):
        file = attack.make_file(self.ground / "namespace")
        with self.mounted_at(file, "--bind", "/proc/self/ns/net"):
            self.assert_no_volume(file, f"{WHY} nsfs")

    def test_what_only_holds_files_is_a_volume(self):
        place = attack.make_folder(self.ground / "memory")
        with self.mounted_at(place, "-t", "tmpfs", "tmpfs"):
            self.assert_volume(place)
        if pathlib.Path("/dev/shm").is_mount():
            self.assert_volume("/dev/shm")

    def test_a_task_on_the_machines_own_files_sees_none_of_them_elsewhere(self):
        """Without an image a task has the machine's mounts; those of the kernel, in a chroot say, are not among them."""
        if self.containerizer == "docker":
            self.skipTest("a Docker Engine runs nothing without an image")
        place = attack.make_folder(self.ground / "jail/proc")
        with self.mounted_at(place, "-t", "proc", "proc"):
            record, output, _ = self.attempt(None, [self.daemon.probe, "exists", place, ",", "exists", place / "version"])
        self.assertEqual(output, "ok\nENOENT\n", record)


class DockerKernelVolumesTest(attack.ThroughDocker, KernelVolumesTest):
    """The same through a Docker Engine."""


class PrivilegedTest(attack.ThroughDocker, attack.AttackTest):
    """An administrator lets tasks be privileged: those that are have such volumes, and no others."""

    arguments = ("--allow-privileged",)

    def test_only_a_privileged_task_has_them(self):
        volume = {"container_path": "/v", "host_path": "/proc", "read_only": True}
        for privileged in (False, True):
            with self.subTest(privileged=privileged):
                record, output, _ = self.attempt(None, ["/probe", "exists", "/v/version"], image=self.image("reader"),
                                                 volumes=[volume], **({"privileged": True} if privileged else {}))
                if "unable to apply caps" in record["reason"]:
                    self.skipTest("this machine's root may not give every capability to a container")
                self.assertEqual(output, "ok\n" if privileged else "", record)
