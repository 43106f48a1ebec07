"""Nobody gets round the referee of shares by where his processes are, and nobody has another ended for what is not his."""

import os
import pathlib
import subprocess
import time
import unittest

from attack import attack
import drover

GIB = 1024  # MiB
# A child in a session of its own goes on, and its parent ends.
ORPHAN = "import os, sys, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\nprint('up', flush=True)\ntime.sleep(600)\n"
PARENT = f"import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', {ORPHAN!r}])\ntime.sleep(600)"
# The first thread of the process ends, and another one goes on with what it has.
HEADLESS = ("import ctypes, threading, time\n"
            "threading.Thread(target=lambda: (time.sleep(0.3), print('up', flush=True), time.sleep(600))).start()\n"
            "ctypes.CDLL(None).pthread_exit(None)\n")
# It writes itself into every group of others that it finds.
WANDERER = ("import os, pathlib, sys\n"
            "moved = 0\n"
            "for folder, _, files in os.walk('/sys/fs/cgroup'):\n"
            "    if 'cgroup.procs' not in files: continue\n"
            "    try:\n"
            "        pathlib.Path(folder, 'cgroup.procs').write_text(str(os.getpid())); moved += 1\n"
            "    except OSError: pass\n"
            "print(moved, 'up', flush=True)\n"
            "import time; time.sleep(600)\n")


class SharesTest(attack.AttackTest):
    kind_of_daemon = drover.Daemon
    profile = "k80"
    arguments = ("--share-offence", "kill")

    def setUp(self):
        self.addCleanup(self.daemon.end_tasks)
        self.addCleanup(self.daemon.set_faults, {})

    def start(self, caller, *command, **fields):
        task = self.submit(caller, command or ["/bin/sh", "-c", "echo up; exec sleep 600"], gpus=1, gpu_share="4GiB", **fields)
        drover.wait_for(lambda: "up" in self.daemon.output(task) or self.ended(task), "the task to be up")
        self.assertFalse(self.ended(task), self.daemon.output(task, "stderr"))
        return task

    def ended(self, task):
        return self.daemon.task(task)["state"] in drover.FINAL_STATES

    def processes(self, task):
        group = drover.cgroups_of([task])[0]
        return [int(pid) for pid in pathlib.Path(group, "cgroup.procs").read_text().split()[1:]]

    def hold(self, task, *held):
        gpu, = self.daemon.task(task)["gpus"]
        self.daemon.set_faults({gpu: {"processes": [{"pid": pid, "memory_mib": mib} for pid, mib in held]}})

    def assert_ended_for_its_share(self, task):
        record = self.daemon.wait_until_final(task)
        self.assertEqual((record["state"], record["cause"]), ("failed", "share"), record)

    def assert_goes_on(self, *tasks):
        time.sleep(1)  # ten looks
        for task in tasks:
            self.assertEqual(self.daemon.task(task)["state"], "running")

    def test_children_that_left_their_parent_count(self):
        task, victim = self.start(self.mallory, "python3", "-c", PARENT), self.start(self.victim)
        held = [(pid, 3 * GIB) for pid in self.processes(task)]
        self.assertGreater(len(held), 1)
        self.hold(task, *held, *((pid, 4 * GIB) for pid in self.processes(victim)))
        self.assert_ended_for_its_share(task)
        self.assert_goes_on(victim)

    def test_a_process_whose_first_thread_has_ended(self):
        task = self.start(self.mallory, "python3", "-c", HEADLESS)
        pid, = self.processes_in(task)
        self.hold(task, (pid, 6 * GIB))
        self.assert_ended_for_its_share(task)

    def processes_in(self, task):
        """Also those whose first thread has ended, which a group of the first version does not list."""
        group = pathlib.Path(drover.cgroups_of([task])[0])
        threads = group.joinpath("tasks" if group.joinpath("tasks").exists() else "cgroup.threads").read_text().split()
        pids = {int(line.split()[1]) for thread in threads for line in pathlib.Path("/proc", thread, "status").read_text().splitlines()
                if line.startswith("Tgid:")}
        return sorted(pids)[1:]

    def test_a_process_does_not_move_into_the_task_of_another(self):
        victim = self.start(self.victim)
        task = self.start(self.mallory, "python3", "-c", WANDERER)
        pid, = self.processes(task)
        self.assertIn("0 up", self.daemon.output(task))
        self.hold(task, (pid, 6 * GIB), *((each, 1 * GIB) for each in self.processes(victim)))
        self.assert_ended_for_its_share(task)
        self.assert_goes_on(victim)

    def test_the_number_of_a_process_that_has_ended(self):
        """The driver may tell of a process for a while after its end. Whoever has its number then is not meant."""
        victim = self.start(self.victim)
        gone = subprocess.Popen(["sleep", "600"])
        self.addCleanup(lambda: (gone.kill(), gone.wait()))
        self.hold(victim, (gone.pid, 6 * GIB))
        self.assert_goes_on(victim)
        gone.kill()
        gone.wait()
        self.assert_goes_on(victim)  # the number is nobody's
        try:
            pathlib.Path("/proc/sys/kernel/ns_last_pid").write_text(str(gone.pid - 1))
        except OSError as error:
            self.skipTest(f"numbers of processes cannot be chosen here: {error}")
        again = self.taken(gone.pid, victim)
        if again is None:
            self.skipTest("somebody else was given the number")
        self.assert_goes_on(victim)
        self.hold(victim)
        time.sleep(0.5)
        self.hold(victim, (again, 6 * GIB))
        self.assert_ended_for_its_share(victim)

    def taken(self, pid, task):
        """A process of the task by this number, by `drover exec`; None when it got another."""
        group = drover.cgroups_of([task])[0]
        for _ in range(50):
            pathlib.Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
            child = subprocess.Popen(["sleep", "600"])
            self.addCleanup(lambda child=child: (child.kill(), child.wait()))
            if child.pid == pid:
                pathlib.Path(group, "cgroup.procs").write_text(str(pid))
                return pid
        return None

    def test_memory_that_is_nobodys_is_charged_to_nobody(self):
        victim = self.start(self.victim)
        own = [(pid, 4 * GIB) for pid in self.processes(victim)]
        self.hold(victim, *own, (os.getpid(), 6 * GIB))
        self.assert_goes_on(victim)


if __name__ == "__main__":
    unittest.main()
