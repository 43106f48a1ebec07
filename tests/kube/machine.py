"""Something like a machine on this one: processes in PID, network, mount and UTS namespaces of their own.

Its first process reads a pipe, the lifeline, that nobody writes to. When the test process closes the other end, or dies, the first
process ends, and with it the kernel ends everything in its PID namespace, and so the mounts and the network.
"""

import contextlib
import os
import pathlib
import signal
import subprocess
import unittest

import drover

PATIENCE = drover.PATIENCE
TAIL = 30                       # lines of a log that a failure shows


def wait_for(condition, what, timeout=PATIENCE, pause=0.02):
    return drover.wait_for(condition, what, timeout, pause)


def tail(path, lines=TAIL):
    with contextlib.suppress(OSError):
        return "\n".join(pathlib.Path(path).read_text(errors="replace").splitlines()[-lines:])
    return ""


def children_of(pid):
    with contextlib.suppress(OSError):
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


class Program:
    """A program that runs on a machine and writes a log. It can be killed and started again; it ends with its machine."""

    def __init__(self, machine, name, command, log, environment=None):
        self.machine, self.name, self.log = machine, name, pathlib.Path(log)
        self.command, self.environment = [str(word) for word in command], environment
        self._entering = None  # the process that has entered the namespaces, and waits for the program in them

    def start(self):
        assert not self.running(), f"{self.name} runs already"
        with open(self.log, "ab") as log:
            self._entering = self.machine.popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                env=self.environment)
        return self

    def running(self):
        return self._entering is not None and self._entering.poll() is None

    @property
    def status(self):
        """The exit status, negative for a signal; None while it runs."""
        return self._entering.poll() if self._entering else None

    @property
    def pid(self):
        """The program's process id as this machine counts."""
        def found():
            if not self.running():
                raise AssertionError(f"{self.name} ended with {self.status}:\n{self.tail()}")
            return children_of(self._entering.pid)

        return wait_for(found, f"{self.name} to start", pause=0.005)[0]

    def signal(self, number):
        os.kill(self.pid, number)
        if number == signal.SIGCONT:
            os.kill(self._entering.pid, number)  # it stops with the program

    def kill(self):
        """As a crash would."""
        if self.running():
            self.signal(signal.SIGKILL)
            self._entering.wait(PATIENCE)

    def stop(self):
        """Asks it to end; returns its exit status."""
        if self.running():
            self.signal(signal.SIGTERM)
            self._entering.wait(PATIENCE)
        return self.status

    def restart(self):
        self.kill()
        return self.start()

    def wait(self, timeout=PATIENCE):
        return self._entering.wait(timeout)

    def read_log(self):
        return self.log.read_text(errors="replace")

    def tail(self, lines=TAIL):
        return f"the end of {self.log.name}:\n{tail(self.log, lines)}"

    def wait_until(self, condition, what, timeout=PATIENCE):
        """Waits for something that the program should do; when it ends first, or does not do it, its log is shown."""
        def holds():
            if not self.running():
                raise AssertionError(f"{self.name} ended with {self.status}; {self.tail()}")
            return condition()

        return wait_for(holds, lambda: f"{what}; {self.tail()}", timeout)


class Lifeline:
    """The pipe whose end is the end of all machines that it made. See the top of this file."""

    def __init__(self):
        self.reading, self._writing = os.pipe()
        self._machines = []

    def machine(self, name):
        made = Machine(name, self.reading)
        self._machines.append(made)
        return made

    def cut(self):
        os.close(self._writing)
        os.close(self.reading)
        for machine in self._machines:
            machine.wait()


class Machine:
    """Lives until its lifeline is cut, or die() is called."""

    def __init__(self, name, reading):
        self.name = name
        self._entered = []
        self._holder = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--net", "--mount", "--uts", "--mount-proc",
             "env", "--ignore-signal=CHLD", "cat"],  # orphans that end are forgotten at once, and not left as zombies
            stdin=reading, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        self.pid = wait_for(self._first_process, f"the namespaces of {name}", pause=0.005)

    def _first_process(self):
        if self._holder.poll() is not None:
            raise unittest.SkipTest(f"namespaces cannot be made here: {self._holder.stderr.read().decode(errors='replace').strip()}")
        with contextlib.suppress(OSError):
            return next((pid for pid in children_of(self._holder.pid)
                         if pathlib.Path(f"/proc/{pid}/comm").read_text() == "cat\n"), None)
        return None

    def entering(self, command):
        """The words of a command that runs on the machine. Paths in it are absolute: it starts in /."""
        return ["nsenter", "--target", str(self.pid), "--pid", "--net", "--mount", "--uts", *(str(word) for word in command)]

    def popen(self, command, **options):
        self._entered.append(subprocess.Popen(self.entering(command), start_new_session=True, **options))
        return self._entered[-1]

    def exec(self, *command, input="", check=True, timeout=PATIENCE):
        """Runs a command on the machine to its end; returns the process with its `stdout` and `stderr` as texts."""
        done = subprocess.run(self.entering(command), input=input, capture_output=True, text=True, timeout=timeout)
        if check and done.returncode != 0:
            raise AssertionError(f"on {self.name}: '{' '.join(map(str, command))}' ended with {done.returncode}: "
                                 f"{done.stdout}{done.stderr}")
        return done

    def die(self):
        """As a power cut would: everything on it ends at once."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.wait()

    def wait(self, timeout=PATIENCE):
        """Waits until it has ended, with all that was started on it."""
        for process in [*self._entered, self._holder]:
            process.wait(timeout)
        self._holder.stderr.close()
