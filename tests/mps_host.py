"""What is seen of MPS on this machine for the groups of a daemon's tasks; the driver's programs are simulated."""

import contextlib
import json
import os
import pathlib

import drover

PIPE = "CUDA_MPS_PIPE_DIRECTORY"
INSIDE = "/run/drover-mps"
EXCLUSIVE = "3"  # how nvidia-smi numbers Exclusive_Process


class Host:
    def __init__(self, daemon):
        self.daemon = daemon

    @property
    def settings(self):
        return self.daemon.state / "sim/settings"

    def modes(self):
        """Compute modes that are not the default one, by UUID."""
        modes = {path.name.split(".")[0]: path.read_text().strip() for path in self.settings.glob("*.compute-mode")}
        return {gpu: mode for gpu, mode in modes.items() if mode != "0"}

    def record(self):
        with contextlib.suppress(FileNotFoundError):
            return json.loads((self.daemon.state / "sharing.json").read_text())
        return {"owners": {}, "gpus": {}}

    def groups(self):
        return sorted(self.record()["owners"])

    def processes(self, group=""):
        """Daemons and their servers, by age."""
        mark = f"DROVER_MPS={self.daemon.state}/mps/{group}".encode()
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
        return sorted(found)

    def told(self, group):
        """What the daemon of a group was told."""
        return (self.daemon.state / "mps" / group / "log/control.log").read_text()

    def left(self):
        mounts = [mount for mount in drover.mounts_of(self.daemon.state) if "/mps/" in mount]
        folders = [path.name for path in (self.daemon.state / "mps").glob("*")]
        record = self.record()
        return [each for each in (record["owners"], record["gpus"], self.processes(), mounts, folders, self.modes()) if each]


class HostTest:
    """For tests of a daemon: nothing is left after each."""

    def setUp(self):
        super().setUp()
        self.host = Host(self.daemon)
        self.addCleanup(self.nothing_stays)
        self.addCleanup(self.daemon.end_tasks)

    def nothing_stays(self):
        drover.wait_for(lambda: not self.host.left(), lambda: f"nothing to be left: {self.host.left()}; {self.daemon.read_log()[-2000:]}")

    def start(self, *words, uid=None, group="train", **fields):
        """A member that runs; its id."""
        task = self.daemon.submit("env", PIPE, ",", *words, "say", "up", ",", "sleep", 600, uid=uid, group=group,
                                  **{"gpus": 1, "share_by": "mps", **fields})
        self.daemon.wait_for_output(task, "up")
        return task

    def refusal(self, uid=None, **fields):
        try:
            self.daemon.submit("exit", 0, uid=uid, **fields)
        except drover.ApiError as refused:
            return str(refused)
        raise AssertionError(f"it was accepted: {fields}")

    def gpus_of(self, task):
        return [grant["gpu"] for grant in self.daemon.task(task)["grants"]]

    def end(self, *tasks):
        for task in tasks:
            self.daemon.end_task(task)


def end_process(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 9)
