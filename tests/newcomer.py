"""A machine as somebody sees it who has just cloned Drover, and the pages that he reads there.

He is an ordinary user with Debian's own `sudo` (its secure_path, nothing of the environment) and a copy of the checkout at home. Both are in
namespaces of their own: what he installs, configures and starts is gone with them, and the machine itself stays as it was.

Nothing is built: the build that is tested is bound into the copy, where `scripts/build` only looks whether it is there. What
`scripts/build` really builds is held against what `cmake --install` wants by test_first_pages.BuildTest.
"""

import contextlib
import os
import pathlib
import pty
import re
import secrets
import shutil
import subprocess
import tempfile
import threading
import unittest

import drover

NAME, UID = "newcomer", 60610
HOME = pathlib.Path("/home", NAME)
CHECKOUT = HOME / "drover"
# Debian's PATH: that of /etc/login.defs. Others may load the machine: nothing fails for an answer that comes late.
ENVIRONMENT = {"HOME": str(HOME), "USER": NAME, "LOGNAME": NAME, "SHELL": "/bin/bash", "LANG": "C.UTF-8", "TERM": "dumb",
               "DROVER_PATIENCE": "10m", "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"}
NOT_CLONED = {".git", ".cache", "build", "shared"}  # of the checkout's own folder
BUILT_BEFORE = '#!/bin/sh\n# In tests: what it builds is there already.\nexec test -x "$(dirname "$0")/../build/release/drover"\n'

# $1: a folder of the test's own; $2: the build. What is written elsewhere goes to a file system in memory that covers it.
SET_UP = """set -eu
mount -t tmpfs -o mode=755 none "$1/cover"
cover() {
  name=$(echo "$1" | tr / _)
  mkdir "$cover/$name" "$cover/$name.work"
  mount -t overlay -o "lowerdir=$1,upperdir=$cover/$name,workdir=$cover/$name.work" none "$1"
}
cover=$1/cover
for place in /etc /usr/local /srv /var/lib "$2"; do cover "$place"; done
mount --bind "$1/home" /home
mount -t tmpfs -o mode=755 none /run
mkdir -p /var/lib/drover /etc/modprobe.d /etc/apparmor.d "/home/$3/drover/build/release"
mount --bind "$1/state" /var/lib/drover
mount --bind "$2" "/home/$3/drover/build/release"
groupadd --gid "$4" "$3"
useradd --uid "$4" --gid "$4" --shell /bin/bash --home-dir "/home/$3" "$3"
printf '%s ALL=(ALL:ALL) NOPASSWD: ALL\\n' "$3" >/etc/sudoers.d/test
chmod 440 /etc/sudoers.d/test
echo ready
while read -r line; do :; done
"""


def skip_without_sudo():
    if not shutil.which("sudo"):
        raise unittest.SkipTest("sudo is not installed: scripts/install-dependencies --tests")
    rules = pathlib.Path("/etc/sudoers").read_text()
    for setting in ("env_reset", "secure_path="):
        if not re.search(rf"(?m)^Defaults\s+{setting}", rules):
            raise unittest.SkipTest(f"/etc/sudoers is not as Debian has it: no '{setting}'")


class Machine:
    """close() ends all that runs there."""

    def __init__(self):
        skip_without_sudo()
        self.folder = pathlib.Path(tempfile.gettempdir(), f"drover-newcomer-{secrets.token_hex(4)}")
        for name in ("", "cover", "state", "home", "typed"):
            (self.folder / name).mkdir(mode=0o755)
        home = self.folder / "home" / NAME
        shutil.copytree(drover.ROOT, home / "drover", symlinks=True, ignore=lambda folder, names: {"__pycache__"} & set(names) | (
            NOT_CLONED & set(names) if folder == str(drover.ROOT) else set()))
        (home / "drover/build/images").mkdir(parents=True)
        (home / "drover/scripts/build").write_text(BUILT_BEFORE)
        for path in (home, *home.rglob("*")):
            os.chown(path, UID, UID, follow_symlinks=False)
        self.terminals = []
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", SET_UP, "set-up", self.folder,
             drover.BUILD, NAME, str(UID)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            reason = self.process.stderr.read()
            self.close()
            raise unittest.SkipTest(f"a machine of the test's own cannot be made here: {reason}")
        self.init = int(pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text())

    def enter(self, folder, *command):
        """What starts a command as the newcomer."""
        user = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--init-groups"]
        variables = [f"{name}={value}" for name, value in ENVIRONMENT.items()]
        return ["nsenter", f"--target={self.init}", "--mount", "--pid", f"--wdns={folder}", "--", *user, "env", "-i", *variables, *command]

    def add_image(self, name):
        """Shows an image that was made in the checkout in the copy of it."""
        shutil.copytree(drover.ROOT / "build/images" / name, self.folder / "home" / NAME / "drover/build/images" / name, symlinks=True)

    def path(self, path):
        """A path of the machine, as the test can read it."""
        return pathlib.Path(f"/proc/{self.init}/root{path}")

    def terminal(self, folder=CHECKOUT):
        self.terminals.append(Terminal(self, folder))
        return self.terminals[-1]

    def close(self):
        """Returns what was left behind, in words."""
        for terminal in self.terminals:
            terminal.close()
        self.process.kill()
        self.process.communicate()
        tasks = [path.name for path in (self.folder / "state/tasks").glob("*")]
        found = [f"cgroup {path}" for path in drover.cgroups_of(tasks)]
        for path in found:  # of a test that failed
            with contextlib.suppress(OSError):
                os.rmdir(path.removeprefix("cgroup "))
        shutil.rmtree(self.folder, ignore_errors=True)
        return found


class Terminal:
    """A shell of the newcomer: it keeps its folder and its variables from one block of a page to the next."""

    def __init__(self, machine, folder):
        self.machine = machine
        self.shell = subprocess.Popen(machine.enter(folder, "bash", "--norc", "--noprofile"), stdin=subprocess.PIPE, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.held = None

    def ask(self, line):
        """For what shows nothing but one line at its end."""
        self.shell.stdin.write(line + "\n")
        self.shell.stdin.flush()
        return self.shell.stdout.readline().rstrip("\n")

    def folder(self):
        return self.ask("pwd")

    def type(self, text):
        """Runs a block of commands; returns what they wrote and `failed`: each command with its status that was not 0."""
        place = self.machine.folder / "typed" / secrets.token_hex(4)
        place.mkdir(mode=0o777)
        place.chmod(0o777)
        (place / "block").write_text(text + "\n:\n")  # so that `.` itself does not fail
        self.ask(f"trap 'echo \"$BASH_COMMAND: exit status $?\" >>{place}/failed' ERR; set -o pipefail; "
                 f". {place}/block </dev/null >{place}/out 2>{place}/err; echo done")
        read = {name: (place / name).read_text() if (place / name).exists() else "" for name in ("out", "err", "failed")}
        return Typed(text, read["out"], read["err"], read["failed"].splitlines())

    def hold(self, command, until):
        """Starts what does not come back, in a terminal with a keyboard, and waits for it to write `until`."""
        self.held = Held(self.machine, self.folder(), command)
        drover.wait_for(lambda: until in self.held.screen or self.held.process.poll() is not None, f"'{command}' to write '{until}'")
        if until not in self.held.screen:
            raise AssertionError(f"'{command}' ended with {self.held.process.returncode}:\n{self.held.screen}")

    def close(self):
        if self.held:
            self.held.interrupt()
        self.shell.communicate()


class Typed:
    def __init__(self, text, out, err, failed):
        self.text, self.out, self.err, self.failed = text, out, err, failed

    def __str__(self):
        return f"{self.text}\nfailed: {self.failed}\nstdout: {self.out}\nstderr: {self.err}"


class Held:
    """A program that has a terminal to itself."""

    def __init__(self, machine, folder, command):
        self.screen = ""
        self.keyboard, end = pty.openpty()
        self.process = subprocess.Popen(machine.enter(folder, "setsid", "--ctty", "--wait", "bash", "--norc", "--noprofile", "-c", command),
                                        stdin=end, stdout=end, stderr=end, start_new_session=True)
        os.close(end)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        with contextlib.suppress(OSError):  # the other end was closed
            while piece := os.read(self.keyboard, 65536):
                self.screen += piece.decode(errors="replace")

    def interrupt(self):
        """Ctrl-C."""
        if self.process.poll() is None:
            os.write(self.keyboard, b"\x03")
            self.process.wait(drover.PATIENCE)


# Pages

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WRITE_TO = re.compile(r"Write this to `([\w./-]+)`:\s*$")
SERVE = re.compile(r"^sudo (?:\S*/)?drover serve\b.*$", re.MULTILINE)


class Block:
    def __init__(self, page, section, kind, text, before):
        self.page, self.section, self.kind, self.text = page, section, kind, text
        self.before = before  # what stands between it and the block before

    def __str__(self):
        return f"{self.page}, {self.section}"


def blocks(page):
    text = (drover.ROOT / page).read_text()
    found, end = [], 0
    for match in BLOCK.finditer(text):
        sections = re.findall(r"^#+ (.*)$", text[:match.start()], re.MULTILINE)
        found.append(Block(page, sections[-1], match[1], match[2], text[end:match.start()]))
        end = match.end()
    return found
