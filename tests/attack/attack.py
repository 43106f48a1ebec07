"""What attacks share: two ordinary users of a machine, mallory and victim, hostile images, and folders that are watched.

Both users exist in this process and in what it starts, and nowhere else: it leaves the machine's mount namespace and covers
/etc/passwd and /etc/group there with copies of its own.

    class WorkdirTest(attack.AttackTest):                         # tasks of runc or crun
        def test_a_closed_folder(self):
            record, output, errors = self.attempt(self.mallory, ["cat", "notes.txt"], working_directory=...)

    class DockerWorkdirTest(attack.ThroughDocker, WorkdirTest):   # the same through a Docker Engine
        pass
"""

import atexit
import contextlib
import ctypes
import dataclasses
import functools
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile
import unittest

import docker_engine
import drover
import oci_layout

CLONE_NEWNS = 0x20000
MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 0x1000, 0x4000, 0x40000, 2
# How opening a device that has no driver here ends: what the device cgroup allows finds nobody, what it denies is not permitted.
ALLOWED, DENIED = "ENXIO", "EPERM"
NOTES = "what victim wrote for nobody else\n"
ANSWERED_MEANWHILE = 60  # seconds after which a request that others hold up counts as lost; a free daemon takes milliseconds


@dataclasses.dataclass(frozen=True)
class User:
    name: str
    uid: int  # and gid: each has a group of his own
    home: pathlib.Path

    def identity(self):
        """For subprocess: the user with his own group, in his home."""
        return {"user": self.uid, "group": self.uid, "extra_groups": [], "cwd": self.home,
                "env": {"HOME": str(self.home), "USER": self.name, "PATH": os.environ["PATH"]}}


def _system_call(name, *arguments):
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


@functools.cache
def people():
    """Makes mallory and victim, once in a process; returns both. Skips the test where a process may have no mounts of its own."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="drover-people-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    (folder / "home").mkdir(mode=0o755)
    users = [User(name, uid, folder / "home" / name) for name, uid in (("mallory", 60601), ("victim", 60602))]
    try:
        _system_call("unshare", CLONE_NEWNS)
        _system_call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
        for name, line in (("passwd", "{0.name}:x:{0.uid}:{0.uid}::{0.home}:/bin/sh\n"), ("group", "{0.name}:x:{0.uid}:\n")):
            copy = folder / name
            copy.write_text(pathlib.Path("/etc", name).read_text() + "".join(map(line.format, users)))
            copy.chmod(0o644)
            _system_call("mount", str(copy).encode(), f"/etc/{name}".encode(), None, MS_BIND, None)
    except OSError as error:
        raise unittest.SkipTest(f"users of the test's own need a mount namespace of its own: {error}") from None
    mallory, victim = users
    make_folder(mallory.home, 0o755, mallory.uid)
    make_folder(victim.home, 0o700, victim.uid)
    make_folder(victim.home / "project", 0o755, victim.uid)
    make_file(victim.home / "project/notes.txt", NOTES, 0o644, victim.uid)
    return mallory, victim


def cover_null(test):
    """For the time of a test class, /dev/null is a node of its own: one that an attack may spoil. Call people() before."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="drover-null-"))
    test.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
    os.mknod(folder / "null", stat.S_IFCHR | 0o666, os.stat("/dev/null").st_rdev)
    (folder / "null").chmod(0o666)
    cover(test, folder / "null", "/dev/null")


def cover(test, source, place):
    """For the time of a test class, a file of the machine is another one. Call people() before."""
    _system_call("mount", str(source).encode(), place.encode(), None, MS_BIND, None)
    test.addClassCleanup(_system_call, "umount", place.encode())


def root_may(capability):
    """Whether this process, and what it starts, has a capability of Linux."""
    status = pathlib.Path("/proc/self/status").read_text()
    return bool(int(status.split("CapEff:")[1].split()[0], 16) >> capability & 1)


# What lies on the machine

def make_folder(path, mode=0o755, uid=0):
    path = pathlib.Path(path)
    path.mkdir(parents=True, exist_ok=True)
    os.chown(path, uid, uid)
    path.chmod(mode)
    return path


def make_file(path, content="", mode=0o644, uid=0):
    path = pathlib.Path(path)
    path.write_text(content)
    os.chown(path, uid, uid)
    path.chmod(mode)
    return path


def mount_folder(test, source, place):
    """Shows a folder of the machine in a second place until the test ends."""
    _system_call("mount", str(source).encode(), str(place).encode(), None, MS_BIND, None)
    test.addCleanup(_system_call, "umount2", str(place).encode(), MNT_DETACH)


def snapshot(*paths):
    """All that somebody could have changed at these paths and below them; what is not there is part of it."""
    found = {}
    for top in map(pathlib.Path, paths):
        for path in [top, *sorted(top.rglob("*"))] if os.path.lexists(top) else []:
            info = path.lstat()
            what = {stat.S_IFREG: lambda path: path.read_bytes(), stat.S_IFLNK: os.readlink}.get(stat.S_IFMT(info.st_mode))
            found[str(path)] = (stat.filemode(info.st_mode), info.st_uid, info.st_gid, info.st_rdev, info.st_nlink, what and what(path))
    return found


# Images

def make_image(output, probe, fill=None, folders=("dev", "etc", "proc", "sys", "tmp", "mnt"), passwd="", **settings):
    """An image of the probe (/probe) with these folders, these further lines of /etc/passwd, and with what `fill(layer)` adds: see
    oci_layout.Layer."""

    def fill_all(layer):
        for folder in folders:
            layer.add_folder(folder, 0o1777 if folder == "tmp" else 0o755)
        layer.add_file("probe", probe.read_bytes(), 0o755)
        if "etc" in folders:  # as every image has it
            layer.add_file("etc/passwd", f"root:x:0:0:root:/:/probe\n{passwd}".encode())
        if fill:
            fill(layer)

    oci_layout.write(output, fill_all, **settings)
    return f"oci:{output}"


class AttackTest(drover.DaemonTest):
    """A daemon with mallory and victim as its users. `self.ground` is a folder of the test's own in which both may look around."""

    containerizer = "oci"

    @classmethod
    def setUpClass(cls):
        cls.mallory, cls.victim = people()
        super().setUpClass()
        cls.ground, cls.images = (make_folder(tempfile.mkdtemp(prefix=f"drover-{what}-")) for what in ("ground", "images"))
        for folder in (cls.ground, cls.images):
            cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)

    @classmethod
    def build(cls, name):
        """The program of a source beside this file, static; returns its path."""
        program = cls.ground / name
        subprocess.run(["clang-19", "-static", "-Os", "-o", str(program), str(drover.ROOT / f"tests/attack/{name}.c")], check=True)
        return program

    # Tasks

    def submit(self, caller, command, /, **fields):
        """As `caller` (None: root) by the API; returns the task's id. `image` is a reference that image() gave."""
        return self.daemon.submit(command=[str(word) for word in command], uid=caller.uid if caller else None,
                                  container_type=self.containerizer, **fields)

    def attempt(self, caller, command, /, **fields):
        """Runs a task to its end; returns its record, and its outputs as the caller reads them."""
        task = self.submit(caller, command, **fields)
        record = self.daemon.wait_until_final(task)
        uid = caller.uid if caller else None
        return record, self.daemon.output(task, uid=uid), self.daemon.output(task, "stderr", uid=uid)

    def cli(self, user, *words):
        """`drover WORDS` as `user` (None: root), at home."""
        identity = user.identity() if user else {"env": dict(os.environ)}
        environment = {**self.daemon.sanitizer_settings(), **identity.pop("env"), "DROVER_SOCKET": str(self.daemon.socket)}
        return drover.run([self.daemon.client(), *words], env=environment, **identity)

    def cli_run(self, user, options, *command):
        return self.cli(user, "run", "--containerizer", self.containerizer, *options, "--", *command)

    def shell(self, user, script):
        """What `user` can do on the machine without Drover."""
        return drover.run(["/bin/sh", "-c", script], **user.identity())

    def image(self, name, fill=None, **settings):
        """A reference to an image that mallory made: see make_image()."""
        return make_image(self.images / name, self.daemon.probe, fill, **settings)

    # Verdicts

    @contextlib.contextmanager
    def unchanged(self, *paths):
        """Nothing at these paths of the machine is made, changed or removed inside."""
        before = snapshot(*paths)
        yield
        after = snapshot(*paths)
        changed = {path: (before.get(path), after.get(path)) for path in {**before, **after} if before.get(path) != after.get(path)}
        self.assertEqual(changed, {})

    def assert_refused(self, record, *words):
        """It never ran, and says why in one sentence."""
        self.assertEqual(record["state"], "failed", record)
        self.assertIn(record.get("exit_status"), (None, 126, 127), record)  # an engine has a status for it
        self.assertTrue(record["reason"])
        self.assertNotIn("\n", record["reason"])
        for word in words:
            self.assertIn(word, record["reason"])

    def opening(self, user, path):
        """How opening a file of the machine ends for `user`: "ok" or the error's name, like ALLOWED and DENIED."""
        opened = subprocess.run([self.daemon.probe, "open", path], stdin=subprocess.DEVNULL, capture_output=True, check=True,
                                text=True, **user.identity())
        return opened.stdout.strip()


class ThroughDocker:
    """Comes before an AttackTest: its tasks go to a Docker Engine of the test's own, where one can be started."""

    containerizer = "docker"

    @classmethod
    def setUpClass(cls):
        people()  # first: the engine must see what the daemon mounts
        cls.engine = docker_engine.Engine()
        cls.addClassCleanup(cls.engine.close)
        cls.arguments = (*cls.arguments, "--containerizers", "oci,docker", "--docker-socket", cls.engine.socket)
        super().setUpClass()

    def image(self, name, fill=None, **settings):
        return self.engine.load(f"drover-attack/{name}:1", super().image(name, fill, **settings))
