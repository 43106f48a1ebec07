"""Which headers the runner compiles alone: those that changed lately, and those that include one of them.

Lately is in the working tree or in the last commits, so that a clone that has just been made knows it too. Where that cannot be told
(there is no git, or no such history), it is every header.
"""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMITS = 10
ROOTS = ("src", ".")  # what headers are included relative to: src/gpu/gpu.h is "gpu/gpu.h", sim/profile.h is "sim/profile.h"
INCLUDE = re.compile(r'^#include "([^"]+\.h)"', re.MULTILINE)


def changed():
    """Paths from the root; None where it cannot be told."""
    try:
        done = subprocess.run(["git", "diff", "--name-only", f"HEAD~{COMMITS}", "--", "*.h"], cwd=ROOT, capture_output=True, text=True)
        new = subprocess.run(["git", "ls-files", "--others", "--exclude-standard", "--", "*.h"], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return None
    if done.returncode != 0 or new.returncode != 0:
        return None
    return set(done.stdout.splitlines() + new.stdout.splitlines())


def targets(build_folder):
    """What to tell ninja so that it compiles them: each is a source that CMake has made."""
    paths = changed()
    if paths is None:
        return ["lone_headers"]
    names = {path.removeprefix("src/") for path in paths}
    sources = {str(path).split("/alone/", 1)[1].removesuffix(".cc"): path for path in sorted(build_folder.glob("**/alone/**/*.h.cc"))}
    return [f"{source}^" for name, source in sources.items() if name in names or included(name) & names]


def included(name):
    for root in ROOTS:
        header = ROOT / root / name
        if header.is_file():
            return set(INCLUDE.findall(header.read_text()))
    return set()
