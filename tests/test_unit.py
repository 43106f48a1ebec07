"""The service that is installed: it takes from the daemon what it does not need, and leaves what it does."""

import os
import pathlib
import re
import shutil
import stat
import subprocess
import tempfile
import unittest

import drover

UNIT = (drover.ROOT / "packaging/drover.service.in").read_text().replace("@CMAKE_INSTALL_FULL_BINDIR@", "/usr/bin")
EXPOSURE = 7.5  # of 10; a container engine's own unit has 9.6. What the rest is needed for is said in the unit.


def settings(name):
    """All that the unit's lines NAME=… name, in words."""
    return [word for value in re.findall(rf"^{name}=(.*)$", UNIT, re.MULTILINE) for word in value.split()]


class ExposureTest(unittest.TestCase):
    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed (Debian's package systemd)")
    def test_it_is_less_exposed_than_other_container_engines(self):
        with tempfile.TemporaryDirectory(prefix="drover-unit-") as folder:
            unit = os.path.join(folder, "drover.service")
            with open(unit, "w") as file:
                file.write(UNIT)
            done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--no-pager", unit], capture_output=True, text=True)
        if "unrecognized option" in done.stderr:
            self.skipTest("this systemd-analyze looks at no files")
        found = re.search(r"exposure level for drover.service: ([\d.]+)", done.stdout)
        self.assertTrue(found, done)
        self.assertLess(float(found[1]), EXPOSURE, done.stdout)


class BoundedDaemon(drover.Daemon):
    """With the capabilities that the unit leaves, and no way to more."""

    def command(self):
        left = ",".join("+" + name.removeprefix("CAP_").lower() for name in settings("CapabilityBoundingSet"))
        return ["setpriv", f"--bounding-set=-all,{left}", "--no-new-privs", *super().command()]


class BoundedTest(drover.DaemonTest):
    kind_of_daemon = BoundedDaemon

    def ended(self, *command, **fields):
        """What a task of the machine's own programs writes."""
        task = self.daemon.submit(command=list(command), **fields)
        record = self.daemon.wait_until_final(task)
        self.assertEqual(record["state"], "finished", f"{record}\n{self.daemon.output(task, 'stderr')}")
        return self.daemon.output(task)

    def test_the_daemon_has_no_more(self):
        status = (pathlib.Path("/proc") / str(self.daemon.process.pid) / "status").read_text()
        held = int(re.search(r"^CapBnd:\s*(\w+)", status, re.MULTILINE)[1], 16)
        for name, number in (("sys_module", 16), ("sys_rawio", 17), ("sys_boot", 22), ("sys_time", 25), ("mac_admin", 33), ("bpf", 39)):
            self.assertFalse(held >> number & 1, name)
        self.assertRegex(status, r"NoNewPrivs:\s*1")

    def test_tasks_of_root_and_of_others_run_and_see_their_gpus(self):
        for uid in (None, 1234):
            with self.subTest(uid=uid):
                gpus = self.ended("sh", "-c", "ls /dev/nvidia[0-9]*", gpus=2, uid=uid).split()
                self.assertEqual(len(gpus), 2, gpus)

    def test_a_command_runs_in_a_task(self):
        task = self.daemon.submit("sleep", 1000)
        self.daemon.wait_until_running(task)
        ran = self.daemon.cli("exec", task, "--", "sh", "-c", "id -u; umask")
        self.assertEqual(ran.out, "0\n0022\n", ran)
        self.daemon.stop_task(task, force=True)

    def test_root_of_a_container_is_an_ordinary_user(self):
        self.assertIn("user", settings("RestrictNamespaces"))
        if not drover.makes_user_namespaces():
            self.skipTest("this machine makes no user namespaces")
        image = drover.make_probe_image(self.daemon.folder / "image", self.daemon.probe)
        self.assertRegex(self.ended("/probe", "show", "/proc/self/uid_map", image=image), r"^\s*0 +2130706432 +65536$")

    def test_a_network_of_its_own(self):
        if not shutil.which("slirp4netns"):
            self.skipTest("slirp4netns is not installed")
        self.assertEqual(self.ended("sh", "-c", "cat /sys/class/net/*/address | sort -u | wc -l", network={"mode": "bridge"}).strip(), "2")

    def test_what_the_daemon_makes_is_its_own(self):
        """The umask of the program, not that of who starts it: nobody else reads its files, and tasks have the usual one."""
        status = (pathlib.Path("/proc") / str(self.daemon.process.pid) / "status").read_text()
        self.assertRegex(status, r"(?m)^Umask:\s*0077$")
        self.assertEqual(self.ended("sh", "-c", "umask"), "0022\n")
        self.assertEqual(self.ended("sh", "-c", "umask", uid=1234), "0022\n")

    def test_everybody_reaches_the_daemon_and_nobody_reads_its_files(self):
        def mode(path):
            return stat.S_IMODE(path.stat().st_mode)

        self.assertEqual((mode(self.daemon.socket), mode(self.daemon.socket.parent), mode(self.daemon.state)), (0o666, 0o755, 0o711))
        self.assertEqual(self.daemon.tasks(uid=1234), [])
        for path in self.daemon.state.iterdir():
            if path.is_file() and path.name not in ("drover-init", "seccomp-users", "seccomp-roots"):  # which every container has
                self.assertFalse(mode(path) & 0o077, f"{path.name} has mode {mode(path):o}")


class ServiceGroupDaemon(drover.Daemon):
    """In a control group of its own, as systemd puts a service."""

    roots = [pathlib.Path("/sys/fs/cgroup", name) for name in ("memory", "systemd", "unified")]
    roots = [root for root in roots if (root / "cgroup.procs").exists()] or [pathlib.Path("/sys/fs/cgroup")]

    def groups(self):
        return [root / f"{self.folder.name}.service" for root in self.roots]

    def command(self):
        for group in self.groups():
            group.mkdir(exist_ok=True)
        entering = ["sh", "-c", 'for group in $GROUPS_TO_ENTER; do echo $$ > "$group/cgroup.procs"; done; exec "$@"', "sh"]
        self.environment["GROUPS_TO_ENTER"] = " ".join(map(str, self.groups()))
        return [*entering, *super().command()]

    def charged(self):
        """Bytes of memory."""
        for name in ("memory.current", "memory.usage_in_bytes"):
            if (self.groups()[0] / name).exists():
                return int((self.groups()[0] / name).read_text())
        raise unittest.SkipTest("memory is not counted here by control groups")

    def close(self):
        found = super().close()
        for group in self.groups():
            group.rmdir()
        return found


@unittest.skipIf(os.geteuid() != 0, "needs root: control groups are made")
class MemoryTest(drover.DaemonTest):
    kind_of_daemon = ServiceGroupDaemon
    profile = "k40m"

    @unittest.skipIf(drover.is_sanitized(), "a shim takes more then")
    def test_a_thousand_running_tasks_do_not_throttle_the_daemon(self):
        (high,) = settings("MemoryHigh")
        self.addCleanup(self.daemon.end_tasks)

        def run(count):
            for task in [self.daemon.submit("sleep", 1000, cpus=0.01, memory="8MiB") for _ in range(count)]:
                self.daemon.wait_until_running(task)

        run(5)  # what is needed for the first ones is needed once
        before = self.daemon.charged()
        run(20)
        each = (self.daemon.charged() - before) / 20
        print(f"\n{each / 2**20:.2f} MiB of each running task are charged to the service", flush=True)
        self.assertLess(1000 * each + (1 << 30), int(high.removesuffix("G")) << 30)


if __name__ == "__main__":
    unittest.main()
