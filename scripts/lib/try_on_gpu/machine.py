"""Whose driver there is, where the guard stands before it, and the processes that use one or the other."""

import contextlib
import ctypes
import json
import os
import pathlib
import platform
import signal
import subprocess
import sys

from . import pages
from .trial import Failed, NotPossible

ROOT = pages.ROOT
OWN_LIMITS = pathlib.Path("/usr/local/nvidia/share/limits")  # GUARD_LIMITS_PATH: of a container with a share
LIBRARIES = {"libcuda.so.1": "libdrover-driver-cuda.so.1", "libnvidia-ml.so.1": "libdrover-driver-ml.so.1"}  # the guard's, and what it needs


class Machine:
    """A real driver, or the simulator's. `folder` is ours: the guard's links, the pages and what the simulator keeps."""

    def __init__(self, build, folder, profile=None):
        self.build, self.folder, self.profile = pathlib.Path(build), pathlib.Path(folder), profile
        self.environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts/lib"), "PYTHONDONTWRITEBYTECODE": "1",
                            "CUDA_CACHE_PATH": str(self.folder / "cache")}
        if profile:
            self._simulate()
        self.driver = self.child("look", {}, seconds=60)
        self.gpus = self.driver["gpus"]
        self.guard_folder = self.folder / "guard"
        self._stand_before()
        self.limit({})

    def _simulate(self):
        file = ROOT / f"sim/profiles/{self.profile}.yaml"
        if not file.exists():
            raise Failed(f"there is no profile '{file}'")
        self.environment.update(DROVER_SIM_PROFILE=str(file), DROVER_SIM_FAULTS=str(self.folder / "faults"),
                                DROVER_SIM_LIVE=str(self.folder / "live"),
                                LD_LIBRARY_PATH=str(self.build / "lib/drover/sim"))

    def _stand_before(self):
        """One folder as in a container: the guard's two libraries, and the driver's under the names that these need."""
        self.guard_folder.mkdir()
        for name, needed in LIBRARIES.items():
            ours = self.build / "lib/drover/guard" / name
            if ours.exists():
                (self.guard_folder / name).symlink_to(ours.resolve())
                (self.guard_folder / name.removesuffix(".1")).symlink_to(name)  # some programs ask for this one first
            (self.guard_folder / needed).symlink_to(self.driver["files"][name])

    def built(self, name):
        """A program of the build."""
        if not (self.build / name).exists():
            raise NotPossible(f"'{self.build / name}' is not built: cmake --build {self.build} --target {name}")
        return self.build / name

    def _require_guard(self):
        if OWN_LIMITS.exists():
            raise NotPossible(f"the guard goes by '{OWN_LIMITS}', and not by limits of ours: run it outside of this container")
        for name in LIBRARIES:
            if not (self.guard_folder / name).exists():
                raise NotPossible(f"'{self.build}/lib/drover/guard/{name}' is not built: cmake --build {self.build} --target "
                                  "guard-cuda guard-nvml")

    @property
    def gpu(self):
        """The one that is asked about: CUDA's first."""
        return self.gpus[0]

    @property
    def nvml(self):
        """The driver's own, as a file."""
        return str(self.guard_folder / "libdrover-driver-ml.so.1")

    def limit(self, limits):
        """New pages: bytes by UUID. What still runs keeps to the old ones."""
        for name in ("limits", "account"):
            with contextlib.suppress(FileNotFoundError):
                (self.folder / name).unlink()
        pages.write(self.folder, limits)

    def environment_of(self, guarded, extra=None):
        environment = dict(self.environment)
        if guarded:
            self._require_guard()
            path = environment.get("LD_LIBRARY_PATH")
            environment.update(LD_LIBRARY_PATH=f"{self.guard_folder}:{path}" if path else str(self.guard_folder),
                               DROVER_GUARD_LIMITS=str(self.folder / "limits"), DROVER_GUARD_ACCOUNT=str(self.folder / "account"))
        return {**environment, **(extra or {})}

    def command(self, words, seconds, guarded=False, environment=None, accepted=(0,)):
        return run(words, self.environment_of(guarded, environment), seconds, accepted)

    def child(self, role, settings, seconds, guarded=False, environment=None):
        """What a role of `child` finds out, in a process of its own."""
        words = [sys.executable, "-m", "try_on_gpu.child", role, json.dumps(settings)]
        try:
            out = self.command(words, seconds, guarded, environment)
        except Failed as failure:
            raise Failed(f"{role}: {failure}") from None
        try:
            return json.loads(out.splitlines()[-1])
        except (IndexError, ValueError):
            raise Failed(f"{role}: what it said is no finding: {out[-200:]!r}") from None

    def judged(self, good):
        """Times over simulated GPUs say nothing of real ones."""
        return None if self.profile else good

    def facts(self):
        return {"simulated": bool(self.profile), "profile": self.profile, "system": platform.platform(), "python": platform.python_version(),
                "root": os.geteuid() == 0, **self.driver}


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def start(words, environment, **streams):
    """A process in a group of its own, that ends when we do."""
    return subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, env=environment, start_new_session=True,
                            preexec_fn=die_with_parent, **streams)


def end(process):
    """Of one that has not ended yet, with its group; a process that hangs in the driver is left behind."""
    os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5)
    for stream in filter(None, (process.stdout, process.stderr)):
        stream.close()


def run(words, environment, seconds, accepted=(0,)):
    """What a program wrote when it ended, or Failed: with its signal, its words, or that it took too long."""
    name = pathlib.Path(words[0]).name
    process = start(words, environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, error = process.communicate(timeout=max(0.1, seconds))
    except subprocess.TimeoutExpired:
        end(process)
        raise Failed(f"'{name}' did not end within {seconds:.0f} s") from None
    except BaseException:  # an interrupt
        end(process)
        raise
    if process.returncode < 0:
        raise Failed(f"'{name}' was ended by {signal.Signals(-process.returncode).name}: {tail(error) or tail(out)}")
    if process.returncode not in accepted:
        raise Failed(f"'{name}' ended with {process.returncode}: {tail(error) or tail(out)}")
    return out.decode(errors="replace")


def tail(data, most=300):
    """The last of what a program said."""
    return data.decode(errors="replace").strip()[-most:].replace("\n", " | ")
