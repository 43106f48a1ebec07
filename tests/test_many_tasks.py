"""Many containers through all ways in: when they have ended, the machine is as it was before.

DROVER_TEST_TASKS says how many (60 by default).
"""

import collections
import concurrent.futures
import contextlib
import ctypes
import os
import pathlib
import threading
import time
import unittest

import drover

TASKS = int(os.environ.get("DROVER_TEST_TASKS", "60"))
CLIENTS = 4
PATIENCE = 60 + TASKS  # seconds
PR_SET_CHILD_SUBREAPER = 36
# What one more task may leave in the daemon's memory: its record is kept, so that it can be looked at.
KEPT_BYTES_PER_TASK = 24 << 10
SLACK_BYTES = 24 << 20


def stat_of(pid):
    """(state, parent) of a process, None when it is gone."""
    try:
        words = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return words[0], int(words[1])


def descendants(ancestor):
    """{pid: state} of everything that was started by this process, at any remove."""
    known = {int(name): stat_of(name) for name in os.listdir("/proc") if name.isdigit()}
    children = collections.defaultdict(list)
    for pid, stat in known.items():
        if stat:
            children[stat[1]].append(pid)
    found, open_pids = {}, [ancestor]
    while open_pids:
        for child in children[open_pids.pop()]:
            found[child] = known[child][0]
            open_pids.append(child)
    return found


def command_of(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return "(gone)"


class Machine:
    """What of the machine the daemon and its tasks have taken up."""

    def __init__(self, daemon):
        pid = daemon.process.pid
        self.mounts = drover.mounts_of(daemon.folder)
        self.network_mounts = [line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
                               if " - nsfs " in line and "/drover-docker-" not in line]  # engines of other tests have theirs
        self.descriptors = collections.Counter(self.descriptors_of(pid))
        status = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
        self.resident = int(status["VmRSS"].split()[0]) << 10
        self.threads = int(status["Threads"])
        self.state = sorted(path.name for path in daemon.state.iterdir() if not path.name.startswith("state.db"))
        self.task_folders = sorted(path.name for path in (daemon.state / "tasks").iterdir())
        self.processes = sorted(set(descendants(os.getpid())) - {pid})

    def counted(self):
        """What is to be as before; the memory is bounded, and so are the threads: pools start them as they need them."""
        return {name: value for name, value in vars(self).items() if name not in ("resident", "threads")}

    @staticmethod
    def descriptors_of(pid):
        for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                yield os.readlink(entry).split(":")[0]


class Reaper(threading.Thread):
    """Does what the first process of a machine does: takes in what its parents left behind. The children of this process itself
    are left to whom they belong."""

    def __init__(self, own):
        super().__init__(daemon=True)
        self._own, self._ended = own, threading.Event()
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)

    def run(self):
        while not self._ended.wait(0.05):
            for pid, state in descendants(os.getpid()).items():
                if state == "Z" and pid not in self._own:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(pid, os.WNOHANG)

    def stop(self):
        self._ended.set()
        self.join()
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0)


class ManyTasksTest(drover.DaemonTest):
    profile = "k40m"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        reaper = Reaper({cls.daemon.process.pid})
        reaper.start()
        cls.addClassCleanup(reaper.stop)
        cls.image = drover.make_probe_image(cls.daemon.folder / "image", cls.daemon.probe)

    def end(self, ask, path, body=None, method="POST"):
        status, _, data = self.daemon.request(method, path, body)
        self.assertLess(status, 300, f"{ask}: {data}")

    def start_app(self, name, instances):
        """Instances stay; those of every other app are in a network of their own."""
        bridged = int(name.rpartition("-")[2]) % 2 == 1
        network = {"networks": [{"mode": "container/bridge"}],
                   "container": {"type": "MESOS", "portMappings": [{"containerPort": 8080, "hostPort": 0}]}} if bridged else {"portDefinitions": []}
        self.end("create an app", "/v2/apps", {"id": name, "args": [str(self.daemon.probe), "sleep", "100000"], "cpus": 0.001,
                                               "mem": 32, "instances": instances, **network})

    def run_job(self, name):
        self.end("create a job", "/v1/scheduler/iso8601",
                 {"name": name, "command": f"exec {self.daemon.probe} append ran line", "cpus": 0.001, "mem": 32,
                  "schedule": time.strftime("R1/%Y-%m-%dT%H:%M:%SZ/PT1H", time.gmtime())})

    def run_task(self, number):
        in_image = number % 2 == 0
        command = ["/probe" if in_image else str(self.daemon.probe), "append", "ran", "line"]
        self.daemon.submit(command=command, cpus=0.001, memory="32MiB", **({"image": self.image} if in_image else {}))

    def play(self, count, tag):
        """Starts so many containers, lets those end that do, ends those that stay; returns all ids."""
        apps = [(f"/{tag}-{number}", share) for number, share in enumerate(self.shares(count // 3)) if share]
        calls = [(self.start_app, app) for app in apps]
        calls += [(self.run_job, (f"{tag}-{number}",)) for number in range(count // 3)]
        calls += [(self.run_task, (number,)) for number in range(count - 2 * (count // 3))]
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            for done in [pool.submit(function, *arguments) for function, arguments in calls]:
                done.result()
        drover.wait_for(lambda: self.all_there(count), f"{count} containers to run or to have run", PATIENCE)
        most = len(descendants(os.getpid()))
        tasks = [record["task"]["id"] for record in self.daemon.tasks()]
        for name, _ in apps:
            self.end("delete an app", f"/v2/apps{name}?force=true", method="DELETE")
        for number in range(count // 3):
            self.end("delete a job", f"/v1/scheduler/job/{tag}-{number}", method="DELETE")
        drover.wait_for(self.all_ended, "all containers to end", PATIENCE)
        return tasks, most

    @staticmethod
    def shares(instances, apps=8):
        return [instances // apps + (number < instances % apps) for number in range(apps)]

    def all_there(self, count):
        """Every app has its instances, and everything else has ended well."""
        records = self.daemon.tasks()
        bad = [record for record in records if record["state"] in ("failed", "lost", "killed")]
        self.assertEqual(bad, [])
        good = [record for record in records if record["state"] in ("running", "finished")]
        stay = [record for record in good if record["task"].get("origin", {}).get("kind") == "service"]
        ended = [record for record in good if record["state"] == "finished"]
        return len(records) == count and len(stay) + len(ended) == count

    def all_ended(self):
        return all(record["state"] in drover.FINAL_STATES for record in self.daemon.tasks()) and not self.daemon.shims()

    def forget(self, tasks):
        """The records and sandboxes of ended tasks go when somebody says so; those of services and schedules went with them."""
        for task in tasks:
            self.assertIn(self.daemon.request("DELETE", f"/v1/tasks/{task}")[0], (204, 404))

    def settled(self, before):
        """What there is once nothing changes any more."""
        def as_before():
            found = Machine(self.daemon)
            return found if found.counted() == before.counted() and not self.being_removed() else None

        with contextlib.suppress(AssertionError):
            return drover.wait_for(as_before, "the machine to be as it was")
        return Machine(self.daemon)

    def being_removed(self):
        return list((self.daemon.state / "removed").iterdir())

    def at_rest(self):
        """The machine, twice the same."""
        def same_again():
            found = Machine(self.daemon)
            time.sleep(0.3)
            return found if Machine(self.daemon).counted() == found.counted() and not self.being_removed() else None

        return drover.wait_for(same_again, "nothing to change any more")

    def test_many_containers_leave_nothing_behind(self):
        self.forget(self.play(6, "first")[0])
        drover.wait_for(lambda: not list((self.daemon.state / "tasks").iterdir()), "the folders of tasks to go")
        before = self.at_rest()
        began = time.monotonic()
        tasks, most = self.play(TASKS, "many")
        lasted = time.monotonic() - began
        with_records = Machine(self.daemon).resident
        self.assertEqual(self.daemon.leaks(tasks), [])
        self.forget(tasks)
        after = self.settled(before)
        print(f"{TASKS} containers in {lasted:.1f} s, at most {most} processes at once; resident {before.resident >> 10} KiB before, "
              f"{with_records >> 10} KiB with their records, {after.resident >> 10} KiB after; descriptors "
              f"{before.descriptors.total()} and {after.descriptors.total()}, threads {before.threads} and {after.threads}")
        self.assertEqual([f"{pid}: {stat_of(pid)} {command_of(pid)}" for pid in after.processes], [])
        self.assertEqual(after.counted(), before.counted())
        self.assertLess(after.threads, before.threads + TASKS // 2)
        if not drover.is_sanitized():
            self.assertLess(after.resident, before.resident + SLACK_BYTES + TASKS * KEPT_BYTES_PER_TASK)


if __name__ == "__main__":
    unittest.main()
