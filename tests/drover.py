"""What the black-box tests share: a private daemon with simulated GPUs, its CLI and its API, and the search for leftovers.

Nothing outside of one temporary folder is used, and everything that was started is ended by its process id.
"""

import base64
import collections
import contextlib
import dataclasses
import http.client
import json
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("DROVER_BUILD", ROOT / "build/release")).absolute()
BINARY = BUILD / "drover"
NOBODY = 65534
FINAL_STATES = {"finished", "failed", "killed", "lost"}
# Seconds after which what should come at once counts as lost. No test passes by waiting for it, so it may be far more than a slow
# machine needs that others load; an emulated one has as much more as it is slower (tests/vm).
PATIENCE = int(os.environ.get("DROVER_TEST_PATIENCE", 180)) * int(os.environ.get("DROVER_TEST_SLOWNESS", 1))

sys.path.insert(0, str(ROOT / "scripts/lib"))
import oci_layout  # noqa: E402


def built(target):
    """A program that only tests need."""
    program = BUILD / target
    if not program.exists():
        raise FileNotFoundError(f"'{program}' is not built: cmake --build {BUILD} --target {target}")
    return program


@dataclasses.dataclass
class Ran:
    """What a command gave."""

    status: int
    out: str
    err: str

    def __str__(self):
        return f"exit status {self.status}\nstdout: {self.out}\nstderr: {self.err}"


def run(command, **options):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=options.pop("timeout", PATIENCE), **options)
    return Ran(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def is_sanitized():
    """A sanitizer keeps what was freed, and wants to be loaded first."""
    return any(name.endswith("SAN_OPTIONS") for name in os.environ)


# A hook of ours runs within what a task may have: under a sanitizer that takes 62 MiB alone.
MEMORY = "128MiB" if is_sanitized() else "64MiB"


def wait_for(condition, what, timeout=PATIENCE, pause=0.02):
    """Asks until the condition holds, ever more rarely: at first after `pause` seconds. Returns what it gave. `what` is a text, or a
    function that gives one after a failure."""
    began = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - began
        if waited > timeout:
            raise AssertionError(f"waited {timeout} s in vain for {what() if callable(what) else what}")
        time.sleep(max(pause, min(waited / 20, 0.5)))


def replace(path, text):
    """Whoever reads the file finds all of what was in it, or all of the text."""
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)


def served_at(port):
    """What is served at a port of this machine; None when nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as response:
            return response.read().decode()
    except OSError:
        return None


def build_probe(folder):
    """The program that tests run inside of containers (probe.c); returns its path."""
    path = pathlib.Path(folder) / "probe"
    subprocess.run(["clang-19", "-static", "-Os", "-o", str(path), str(ROOT / "tests/probe.c")], check=True)
    return path


def make_probe_image(output, probe, labels=None, files=None, links=None, **settings):
    """An image with nothing but the probe, the folders and files that every image has, and `files` and symbolic `links` by their
    paths."""

    def fill(layer):
        for folder, mode in (("dev", 0o755), ("etc", 0o755), ("proc", 0o755), ("sys", 0o755), ("tmp", 0o1777)):
            layer.add_folder(folder, mode)
        layer.add_file("probe", probe.read_bytes(), 0o755)
        layer.add_file("etc/passwd", b"root:x:0:0:root:/root:/probe\napp:x:1234:1234::/:/probe\n")
        layer.add_file("etc/group", b"root:x:0:\napp:x:1234:\n")
        for path, content in (files or {}).items():
            layer.add_file(path, content)
        for path, target in (links or {}).items():
            layer.add_link(path, target)

    settings.setdefault("command", ["/probe", "say", "hello from the image"])
    oci_layout.write(output, fill, labels=labels, **settings)
    return f"oci:{output}"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


@contextlib.contextmanager
def acting_as(uid):
    """Connections made inside are those of this user. The whole process changes: not for tests with threads."""
    if uid is None:
        yield
        return
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


class ApiError(Exception):
    def __init__(self, status, body):
        error = body.get("error", {}) if isinstance(body, dict) else {}
        super().__init__(f"HTTP {status}: {body}")
        self.status, self.error, self.answer = status, error, body
        self.message, self.kind = error.get("message", ""), error.get("kind", "")


class Daemon:
    """`drover serve` on its own state folder and socket. close() ends everything and removes the folder."""

    def __init__(self, profile="dgx-a100", arguments=(), environment=None, binary=BINARY):
        self.binary = binary
        # Not mkdtemp(): podman names an image by its folder, and a name may not have a '_' everywhere.
        self.folder = pathlib.Path(tempfile.gettempdir(), f"drover-test-{secrets.token_hex(4)}")
        self.folder.mkdir()
        self.folder.chmod(0o755)
        self.state, self.socket, self.log = self.folder / "state", self.folder / "run/socket", self.folder / "log"
        self.arguments = [*(["--simulate", profile] if profile else []), *arguments]
        self.environment = {**os.environ, **self.sanitizer_settings(), **(environment or {})}
        self.process = None
        self.probe = build_probe(self.folder)
        self._client = None

    def sanitizer_settings(self):
        """What a sanitizer has to say goes into files of the folder: see close()."""
        names = [name for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS") if name in os.environ]
        return {name: f"{os.environ[name]}:log_path={self.folder}/sanitizer" for name in names}

    # The daemon's life

    def command(self):
        return [str(word) for word in (self.binary, "serve", "--state", self.state, "--socket", self.socket, *self.arguments)]

    def start(self, wait=True):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=self.environment, start_new_session=True)
        if wait:
            wait_for(self.answers, "the daemon to answer")
        return self

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the daemon ended with {self.process.returncode}:\n{self.read_log()}")
        try:
            return self.api("GET", "/health", timeout=5)
        except (OSError, http.client.HTTPException):
            return None

    def read_log(self):
        return self.log.read_text(errors="replace")

    def kill(self):
        """As a crash would."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """As an administrator would; returns the exit status."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError("the daemon did not end when asked to") from None
        return self.process.returncode

    def close(self):
        """Ends everything; returns what was left behind, in words."""
        tasks = self.end_tasks() if self.process and self.process.poll() is None else []
        if tasks:
            self.leaks(tasks)  # what is not cleaned up yet would be left to the next start
        status = self.stop() if self.process else 0
        found = leftovers(self.folder, tasks)
        if status not in (0, -signal.SIGKILL):
            found.append(f"the daemon ended with {status}:\n{self.read_log()[-4000:]}")
        found += [path.read_text(errors="replace") for path in sorted(self.folder.glob("sanitizer.*"))]
        for pid in processes_of(self.folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
        return found

    def remove_definitions(self):
        """Takes back what would start tasks again and again: services and schedules."""
        for app in self.api("GET", "/v2/apps")["apps"]:
            self.api("DELETE", f"/v2/apps{app['id']}?force=true")
        for job in self.api("GET", "/v1/scheduler/jobs"):
            self.api("DELETE", f"/v1/scheduler/job/{job['name']}")

    def end_tasks(self):
        """Ends all tasks and returns their ids."""
        self.remove_definitions()
        tasks = [record["task"]["id"] for record in self.tasks()]
        for record in self.tasks():
            if record["state"] not in FINAL_STATES:
                with contextlib.suppress(ApiError):  # gone in the meantime, with its job
                    self.stop_task(record["task"]["id"], force=True)
        wait_for(lambda: all(record["state"] in FINAL_STATES for record in self.tasks()), "the tasks to end")
        wait_for(lambda: not self.shims(), "the shims to end")
        return tasks

    def shims(self):
        return [pid for pid in processes_of(self.folder) if pid != self.process.pid]

    # The API

    def request(self, method, path, body=None, uid=None, timeout=PATIENCE, headers=None):
        """The raw answer: status, headers, bytes."""
        connection = UnixConnection(self.socket, timeout)
        with contextlib.closing(connection):
            with acting_as(uid):
                connection.connect()
            text = json.dumps(body) if body is not None and not isinstance(body, (str, bytes)) else body
            sent = {"Content-Type": "application/json"} if body is not None else {}
            with contextlib.suppress(BrokenPipeError):  # refused before all was sent: the answer is there
                connection.request(method, path, text, {**sent, **(headers or {})})
            response = connection.getresponse()
            return response.status, response.headers, response.read()

    def api(self, method, path, body=None, uid=None, timeout=PATIENCE):
        """The decoded answer; ApiError for anything but success."""
        status, _, data = self.request(method, path, body, uid, timeout)
        value = json.loads(data) if data else None
        if status >= 400:
            raise ApiError(status, value)
        return value

    def submit(self, *command, uid=None, **fields):
        """Accepts words for the probe, or command=…; returns the task's id."""
        fields.setdefault("command", [str(self.probe), *(str(word) for word in command)])
        return self.api("POST", "/v1/tasks", {"memory": MEMORY, "cpus": 0.1, **fields}, uid=uid)["task"]["id"]

    def task(self, task_id, uid=None):
        return self.api("GET", f"/v1/tasks/{task_id}", uid=uid)

    def tasks(self, uid=None):
        return self.api("GET", "/v1/tasks", uid=uid)["tasks"]

    def wait_until_final(self, task_id, timeout=PATIENCE):
        def ended():
            record = self.task(task_id)
            return record if record["state"] in FINAL_STATES else None

        return wait_for(ended, f"task {task_id} to end", timeout)

    def wait_until_running(self, task_id):
        def running():
            record = self.task(task_id)
            if record["state"] in FINAL_STATES:
                raise AssertionError(f"the task ended before it was seen running: {record}")
            return record if record["state"] == "running" else None

        return wait_for(running, f"task {task_id} to run")

    def wait_for_output(self, task_id, text):
        """Waits until the task has written the text to stdout, and the daemon knows that it has started: it may hear of it later."""
        wait_for(lambda: text in self.output(task_id), f"task {task_id} to write '{text}'")
        return wait_for(lambda: self.task(task_id)["state"] not in ("queued", "starting"), f"task {task_id} to have started")

    def output(self, task_id, stream="stdout", uid=None):
        status, _, data = self.request("GET", f"/v1/tasks/{task_id}/logs?stream={stream}", uid=uid)
        return data.decode(errors="replace") if status == 200 else ""

    @staticmethod
    def listener(for_tasks=False):
        """A socket that listens on a free port of 127.0.0.1 as the daemon sees it, or of an address that tasks reach."""
        return socket.create_server(("127.0.0.1", 0), backlog=128)

    def learn_image(self, layout, reference):
        """An image that was made anew: this one looks for it when it is needed."""

    def set_faults(self, faults):
        """What the simulated GPUs have from now on: the text of a fault file, or what JSON has for it."""
        replace(self.faults_file, faults if isinstance(faults, str) else json.dumps(faults))

    @property
    def faults_file(self):
        return self.state / "sim/faults.yaml"

    def sandbox(self, task_id):
        """Where the test finds it while the task runs."""
        return self.state / "tasks" / task_id / "sandbox"

    def file(self, task_id, path):
        """What a file of the sandbox holds."""
        answer = self.api("GET", f"/v1/tasks/{task_id}/files/read?path={path}")
        if answer["encoding"] == "base64":
            return base64.b64decode(answer["data"]).decode(errors="replace")
        return answer["data"]

    def stop_task(self, task_id, force=False, uid=None):
        return self.api("POST", f"/v1/tasks/{task_id}/stop", {"force": force}, uid=uid)

    def end_task(self, task_id):
        """Whether it runs or has ended by itself in the meantime."""
        with contextlib.suppress(ApiError):
            self.stop_task(task_id, force=True)
        return self.wait_until_final(task_id)

    def grants_are_sound(self):
        """No part of a GPU is with two tasks: seen through the records, the only place where ownership is kept."""
        held = collections.Counter()
        for record in self.tasks():
            if record["state"] in ("starting", "running", "stopping"):
                held.update({grant["gpu"]: grant["milli"] for grant in record["grants"]})
        return all(milli <= 1000 for milli in held.values())

    def leaks(self, task_ids):
        """What is left of tasks that have all ended, while the daemon goes on: it tells of an end first, and cleans up then."""
        wait_for(lambda: not self.shims(), "the shims to end")

        def left():
            held = [f"GPU {gpu} of {task}" for gpu, task in self.held_gpus().items()]
            return held + [found for found in leftovers(self.folder, task_ids)
                           if f"process {self.process.pid}:" not in found and found != f"mount {self.folder}"]  # those of the daemon

        with contextlib.suppress(AssertionError):
            wait_for(lambda: not left(), "all to be cleaned up")
        return left()

    def opened_by(self, task_id, *numbers):
        """How opening a device ends for a process in the cgroups of this task that runs, for each (major, minor): that is what its
        device cgroup says and nothing else, since the process is otherwise the machine's. In a container nobody makes nodes."""
        groups = cgroups_of([task_id])
        if not groups:
            raise AssertionError(f"task {task_id} has no cgroup")
        with tempfile.TemporaryDirectory(prefix="drover-nodes-") as folder:
            words = [["mknod", f"{folder}/{major}.{minor}", str(major), str(minor)] for major, minor in numbers]
            script = 'for group in $0; do echo $$ > "$group/cgroup.procs" || exit 99; done; exec "$@"'
            ran = run(["sh", "-c", script, " ".join(groups), self.probe, *sum(([*verb, ","] for verb in words), [])])
        if ran.status != 0:
            raise AssertionError(f"no process came into the groups of {task_id}: {ran}")
        return ran.out.split("\n")[:-1]

    def held_gpus(self):
        """UUID -> id of the task that has it."""
        gpus = self.api("GET", "/v1/gpus")["gpus"]
        return {gpu["uuid"]: gpu["used_by"]["task"] for gpu in gpus if gpu["used_by"]}

    # The CLI

    def client(self):
        """A copy of the program where every user can run it: a checkout may lie in a private folder."""
        if self._client is None:
            self._client = self.folder / "drover"
            shutil.copy(self.binary, self._client)
        return self._client

    def cli_command(self, *words, uid=None):
        return [str(word) for word in (self.binary if uid is None else self.client(), *words)]

    def cli(self, *words, uid=None, **options):
        user = {} if uid is None else {"user": uid, "group": uid, "extra_groups": [], "cwd": "/"}
        environment = {**self.environment, "DROVER_SOCKET": str(self.socket), **options.pop("env", {})}
        return run(self.cli_command(*words, uid=uid), env=environment, **user, **options)

    def run_probe(self, options, *words, uid=None, image=None):
        """`drover run OPTIONS -- probe WORDS`; in an image the probe is /probe."""
        program = "/probe" if image else self.probe
        reference = ["--image", image] if image else []
        return self.cli("run", *options, *reference, "--", program, *words, uid=uid)


# Leftovers

def processes_of(folder):
    """Processes with the folder in their command line."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError):
                if str(folder).encode() in pathlib.Path("/proc", entry, "cmdline").read_bytes():
                    found.append(int(entry))
    return found


def mounts_of(folder):
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    return [line.split()[4] for line in lines if str(folder) in line]


def cgroups_of(task_ids):
    wanted = set(task_ids)
    return [path for path, folders, _ in os.walk("/sys/fs/cgroup") if os.path.basename(path) in wanted]


def leftovers(folder, task_ids):
    """What there should be none of once everything has ended."""
    found = []
    for pid in processes_of(folder):
        with contextlib.suppress(OSError):
            line = pathlib.Path("/proc", str(pid), "cmdline").read_bytes().replace(b"\0", b" ").decode()
            found.append(f"process {pid}: {line}")
    found += [f"mount {path}" for path in mounts_of(folder)]
    found += [f"cgroup {path}" for path in cgroups_of(task_ids)]
    for name in ("bundle", "upper", "work", "root", "runtime"):
        found += [f"folder {path}" for path in (pathlib.Path(folder) / "state/tasks").glob(f"*/{name}")]
    return found


def makes_user_namespaces():
    """Whether this kernel does, whatever Drover thinks of it."""
    return run(["unshare", "--user", "true"]).status == 0


@unittest.skipIf(os.geteuid() != 0, "needs root: containers, devices and mounts are made for real")
def usual_daemon():
    if os.environ.get("DROVER_TEST_ENGINE", "local") == "local":
        return Daemon
    import cluster_daemon  # which needs this module

    return cluster_daemon.OneMachinesDaemon


class DaemonTest(unittest.TestCase):
    """Tests that share one daemon. Whatever is left behind at the end is a failure."""

    kind_of_daemon = None  # Daemon, where DROVER_TEST_ENGINE does not say that tasks are pods of a cluster
    profile = "dgx-a100"
    arguments = ()
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.daemon = (cls.kind_of_daemon or usual_daemon())(cls.profile, cls.arguments)
        cls.addClassCleanup(cls.close_daemon)
        cls.daemon.start()

    @classmethod
    def close_daemon(cls):
        found = cls.daemon.close()
        if found:
            raise AssertionError("left behind:\n" + "\n".join(found))

    def assert_one_sentence(self, ran, *words):
        """Refused as people should be: status other than 0, one short message that says what it must."""
        self.assertNotEqual(ran.status, 0, ran)
        lines = [line for line in ran.err.strip().splitlines() if line]
        self.assertTrue(1 <= len(lines) <= 3, f"one sentence was expected, perhaps with a hint: {ran}")
        for word in words:
            self.assertIn(word, ran.err)
        for leak in ("terminate called", "Sanitizer", "what():", "std::", "Aborted"):
            self.assertNotIn(leak, ran.err)
