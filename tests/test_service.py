"""The unit as systemd runs it: the daemon in its confinement, and tasks that go on whatever becomes of the service.

Needs a machine whose process 1 is systemd. tests/test_vm.py brings one along.
"""

import contextlib
import os
import pathlib
import re
import secrets
import signal
import subprocess
import unittest

import drover
import test_unit

UNITS = pathlib.Path("/run/systemd/system")


def is_systemd_here():
    with contextlib.suppress(OSError):
        return pathlib.Path("/proc/1/comm").read_text().strip() == "systemd"
    return False


def systemctl(*words):
    done = drover.run(["systemctl", "--no-ask-password", *words])
    if done.status != 0:
        raise AssertionError(f"systemctl {' '.join(words)}: {done}")
    return done.out


class Service(drover.Daemon):
    """The daemon as a service of a name of its own, with the installed unit's lines."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.unit = f"drover-test-{secrets.token_hex(4)}.service"

    def start(self, wait=True):
        command = " ".join(self.command())
        lines = re.sub(r"(?m)^ExecStart=.*$", f"ExecStart={command}", test_unit.UNIT)
        # The state and the socket are in a folder of the test's own.
        lines = re.sub(r"(?m)^(State|Runtime)Directory.*\n", "", lines)
        lines = lines.replace("WatchdogSec=60", "WatchdogSec=20")
        lines = lines.replace("[Service]", f"[Service]\nStandardOutput=append:{self.log}\nStandardError=append:{self.log}")
        (UNITS / self.unit).write_text(lines)
        systemctl("daemon-reload")
        systemctl("start", self.unit)
        self.process = ServiceProcess(self.unit)
        if wait:
            drover.wait_for(self.answers, "the service to answer")
        return self

    def close(self):
        try:
            return super().close()
        finally:
            (UNITS / self.unit).unlink(missing_ok=True)
            systemctl("daemon-reload")


class ServiceProcess:
    """What drover.Daemon wants of a subprocess.Popen."""

    def __init__(self, unit):
        self.unit = unit
        self.returncode = None

    @property
    def pid(self):
        return int(systemctl("show", "--property=MainPID", "--value", self.unit))

    def poll(self):
        state = systemctl("show", "--property=ActiveState", "--value", self.unit).strip()
        self.returncode = None if state in ("active", "activating", "deactivating") else \
            int(systemctl("show", "--property=ExecMainStatus", "--value", self.unit))
        return self.returncode

    def terminate(self):
        systemctl("stop", self.unit)

    def kill(self):
        systemctl("kill", "--kill-whom=main", "--signal=SIGKILL", self.unit)

    def wait(self, timeout=drover.PATIENCE):
        drover.wait_for(lambda: self.poll() is not None, "the service to end", timeout)
        return self.returncode


@unittest.skipUnless(is_systemd_here(), "process 1 of this machine is not systemd")
class ServiceTest(drover.DaemonTest):
    kind_of_daemon = Service

    def setUp(self):
        self.task = self.daemon.submit("devices", ",", "append", "ran", "line", ",", "say", "up", ",", "sleep", 1000, gpus=2)
        self.daemon.wait_for_output(self.task, "up")
        self.addCleanup(self.daemon.end_task, self.task)

    def opened(self):
        """How opening each of the eight GPUs ends inside of the task."""
        return self.daemon.opened_by(self.task, *((195, minor) for minor in range(8)))

    def assert_it_has_two_gpus(self):
        self.assertEqual(sorted(self.opened()), ["ENXIO"] * 2 + ["EPERM"] * 6)

    def assert_it_goes_on(self):
        """It is the same run, with the same GPUs."""
        self.daemon.wait_until_running(self.task)
        self.assertEqual(self.daemon.file(self.task, "ran"), "line\n")
        self.assert_it_has_two_gpus()
        inside = self.daemon.cli("exec", self.task, "--", self.daemon.probe, "devices")
        self.assertEqual(inside.out, self.daemon.output(self.task).splitlines(keepends=True)[0], inside)

    def test_reloading_units_takes_no_gpu_from_a_task(self):
        """systemd writes device lists of its own where it thinks that a control group is its own."""
        before = self.opened()
        for _ in range(3):
            systemctl("daemon-reload")
        systemctl("daemon-reexec")
        self.assertEqual(self.opened(), before)
        self.assert_it_goes_on()

    def test_a_restart_of_the_service_leaves_tasks_alone(self):
        systemctl("restart", self.daemon.unit)
        drover.wait_for(self.daemon.answers, "the service to answer")
        self.assert_it_goes_on()

    def test_a_stopped_service_leaves_tasks_alone(self):
        systemctl("stop", self.daemon.unit)
        try:
            self.assert_it_has_two_gpus()
        finally:
            systemctl("start", self.daemon.unit)
            drover.wait_for(self.daemon.answers, "the service to answer")
        self.assert_it_goes_on()

    def test_a_killed_service_comes_back(self):
        before = self.daemon.process.pid
        self.daemon.process.kill()
        drover.wait_for(lambda: self.daemon.process.pid not in (0, before), "systemd to start it again")
        drover.wait_for(self.daemon.answers, "the service to answer")
        self.assert_it_goes_on()

    def test_a_service_that_hangs_is_started_anew(self):
        before = self.daemon.process.pid
        os.kill(before, signal.SIGSTOP)
        drover.wait_for(lambda: self.daemon.process.pid not in (0, before), "systemd to lose its patience")
        drover.wait_for(self.daemon.answers, "the service to answer")
        self.assert_it_goes_on()

    def test_tasks_are_not_charged_to_the_service(self):
        groups = "\n".join(pathlib.Path(f"/proc/{pid}/cgroup").read_text() for pid in self.daemon.shims())
        self.assertNotIn(self.daemon.unit, groups)

    def test_root_and_others_with_an_image_and_without(self):
        image = drover.make_probe_image(self.daemon.folder / f"image-{secrets.token_hex(2)}", self.daemon.probe)
        for uid in (None, 1234):
            for reference in (None, image):
                with self.subTest(uid=uid, image=reference):
                    program = "/probe" if reference else str(self.daemon.probe)
                    fields = {"image": reference} if reference else {}
                    task = self.daemon.submit(command=[program, "devices", ",", "id"], gpus=1, uid=uid, **fields)
                    record = self.daemon.wait_until_final(task)
                    self.assertEqual(record["state"], "finished", (record, self.daemon.output(task, "stderr")))
                    self.assertEqual(len(re.findall(r"nvidia\d", self.daemon.output(task).splitlines()[0])), 1)

    def test_what_the_unit_takes_away_is_away(self):
        status = pathlib.Path(f"/proc/{self.daemon.process.pid}/status").read_text()
        self.assertRegex(status, r"NoNewPrivs:\s*1")
        self.assertRegex(status, r"Seccomp:\s*2")
        shown = subprocess.run(["systemd-analyze", "security", "--no-pager", self.daemon.unit], capture_output=True, text=True)
        found = re.search(r"exposure level for \S+: ([\d.]+)", shown.stdout)
        self.assertTrue(found, shown)
        self.assertLess(float(found[1]), test_unit.EXPOSURE, shown.stdout)


if __name__ == "__main__":
    unittest.main()
