"""What a task gets without being asked: the folder and the environment of its caller, CPUs and memory that go with its GPUs, a line that
says how far it is, and a caller who may go away."""

import contextlib
import fcntl
import http.server
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import tempfile
import termios
import threading
import time
import unittest

import drover

SCRIPT = "import os, sys\nprint(os.getcwd(), sys.argv[1:])\nopen('model.bin', 'w').write('weights')\n"


def hear_of_hangups():
    """In a process that is about to run a program: the tests themselves may have been started by nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class StartTest(drover.DaemonTest):
    def setUp(self):
        """A project of an ordinary user, below a folder that others may enter."""
        ground = pathlib.Path(tempfile.mkdtemp(prefix="drover-start-"))
        self.addCleanup(shutil.rmtree, ground)
        ground.chmod(0o755)
        self.project = ground / "project"
        self.project.mkdir(0o700)
        (self.project / "train.py").write_text(SCRIPT)
        for path in (self.project, self.project / "train.py"):
            os.chown(path, drover.NOBODY, drover.NOBODY)

    def drover(self, *words, uid=drover.NOBODY, folder=None, before="", **environment):
        """As a shell in that folder would run it."""
        identity = {"user": uid, "group": uid, "extra_groups": []}
        command = [str(word) for word in (self.daemon.client(), *words)]
        if before:  # something of a shell first
            command = ["/bin/sh", "-c", before + '; exec "$@"', "sh", *command]
        settings = {**self.daemon.sanitizer_settings(), "DROVER_SOCKET": str(self.daemon.socket), "PATH": os.environ["PATH"],
                    **environment}
        return drover.run(command, env=settings, cwd=folder or self.project, **identity)


class FolderTest(StartTest):
    def test_the_first_line_of_the_readme(self):
        ran = self.drover("run", "--gpus", "2", "--", "python3", "train.py", "--epochs", "3")
        self.assertEqual((ran.status, ran.err), (0, ""), ran)
        self.assertEqual(ran.out, f"{self.project} ['--epochs', '3']\n")
        written = self.project / "model.bin"
        self.assertEqual((written.read_text(), written.stat().st_uid), ("weights", drover.NOBODY))

    def test_detached_and_as_a_gang(self):
        task = self.drover("run", "--detach", "--", "pwd").out.strip()
        self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished")
        self.assertEqual(self.daemon.output(task), f"{self.project}\n")
        ran = self.drover("run", "--gang", "2", "--", "pwd")
        self.assertEqual(sorted(ran.out.splitlines()), [f"[{rank}] {self.project}" for rank in (0, 1)], ran)

    def test_a_relative_folder_is_the_callers_and_is_never_made(self):
        (self.project / "sub").mkdir()
        (self.project / "sub").chmod(0o755)
        self.assertEqual(self.drover("run", "--workdir", "sub", "--", "pwd").out, f"{self.project}/sub\n")
        self.assertEqual(self.drover("run", "--workdir", "..", "--", "pwd").out, f"{self.project.parent}\n")
        ran = self.drover("run", "--workdir", "absent", "--", "pwd")
        self.assertEqual(ran.out, "")
        self.assertIn(f"--workdir: There is no '{self.project}/absent'", ran.err)
        self.assertFalse((self.project / "absent").exists())

    def test_with_an_image_the_folder_and_the_environment_are_the_images(self):
        image = drover.make_probe_image(self.daemon.folder / "image", self.daemon.probe, working_directory="/dev")
        ran = self.drover("run", "--image", image, "--", "/probe", "pwd", ",", "env", "VIRTUAL_ENV", folder="/tmp", VIRTUAL_ENV="/venv")
        self.assertEqual((ran.out, ran.err), ("/dev\n(unset)\n", ""))
        refused = self.drover("run", "--image", image, "--workdir", "src", "--", "/probe", "pwd", folder="/tmp")
        self.assertEqual(refused.status, 64)
        self.assert_one_sentence(refused, "--workdir", "'src' is a relative path")

    def starts_in_its_sandbox(self, ran, why):
        self.assertRegex(ran.out, r"/tasks/[^/]+/sandbox\n$", ran)
        self.assertEqual(len(ran.err.splitlines()), 1, ran)
        self.assertRegex(ran.err, "^drover: starts in its sandbox: .*" + why)

    def test_over_tcp_it_starts_in_its_sandbox(self):
        with contextlib.ExitStack() as stack:
            daemon = drover.Daemon(arguments=["--listen", "127.0.0.1:0"])
            stack.callback(daemon.close)
            daemon.start()
            address = drover.wait_for(lambda: re.search(r"127\.0\.0\.1:\d\d+", daemon.read_log()), "the address").group()
            token = (daemon.state / "credentials").read_text().split()[-1].split(":")[-1]
            ran = drover.run([str(daemon.client()), "--host", f"http://{address}", "run", "--", "pwd"], cwd="/tmp",
                             env={**daemon.sanitizer_settings(), "DROVER_TOKEN": token, "PATH": os.environ["PATH"]})
        self.starts_in_its_sandbox(ran, "--host")

    def test_where_others_may_not_go(self):
        self.project.chmod(0o700)
        shown = self.drover("run", "--user", drover.NOBODY + 1, "--", "pwd", uid=0)
        self.starts_in_its_sandbox(shown, f"cannot enter '{self.project}': Permission denied")
        own = self.drover("run", "--user", drover.NOBODY, "--", "pwd", uid=0)
        self.assertEqual((own.out, own.err), (f"{self.project}\n", ""))

    def test_a_folder_that_the_caller_himself_could_not_enter_again(self):
        closed = self.project.parent / "closed"
        closed.mkdir(0o700)
        command = ["/bin/sh", "-c", 'cd "$0"; exec setpriv --reuid "$1" --regid "$1" --clear-groups "$2" run -- pwd', closed,
                   str(drover.NOBODY), self.daemon.client()]
        ran = drover.run([str(word) for word in command],
                         env={**self.daemon.sanitizer_settings(), "DROVER_SOCKET": str(self.daemon.socket), "PATH": os.environ["PATH"]})
        self.starts_in_its_sandbox(ran, "Permission denied")

    def test_mounts_of_the_callers_own(self):
        private = 'mount -t tmpfs none "$PWD"; cd "$PWD"; touch here'
        ran = drover.run(["unshare", "--mount", "/bin/sh", "-c", private + '; exec "$@"', "sh", str(self.daemon.client()), "run", "--", "pwd"],
                         cwd=self.project,
                         env={**self.daemon.sanitizer_settings(), "DROVER_SOCKET": str(self.daemon.socket), "PATH": os.environ["PATH"]})
        self.starts_in_its_sandbox(ran, "the daemon sees other files")

    def test_folders_that_are_gone_or_the_containers_own(self):
        gone = self.project / "gone"
        gone.mkdir()
        gone.chmod(0o777)
        ran = self.drover("run", "--", "pwd", folder=gone, before='rmdir "$PWD"')
        self.starts_in_its_sandbox(ran, "is not there any more")
        self.starts_in_its_sandbox(self.drover("run", "--", "pwd", folder="/dev/shm"), "'/dev/shm' is another folder in its container")


class EnvironmentTest(StartTest):
    def variables(self, *options, **how):
        ran = self.drover("run", *options, "--", "env", **how)
        self.assertEqual(ran.status, 0, ran)
        return dict(line.partition("=")[::2] for line in ran.out.splitlines())

    def test_programs_are_found_as_the_caller_finds_them(self):
        programs = self.project / "venv/bin"
        programs.mkdir(parents=True)
        (programs / "greet").write_text("#!/bin/sh\necho good day\n")
        for path in (programs.parent, programs, programs / "greet"):
            path.chmod(0o755)
        path = f"{programs}:{os.environ['PATH']}"
        self.assertEqual(self.drover("run", "--", "greet", PATH=path).out, "good day\n")
        variables = self.variables(PATH=path, VIRTUAL_ENV=str(programs.parent), LC_TIME="C.UTF-8", TZ="Asia/Tokyo", HF_TOKEN="secret")
        self.assertEqual([variables.get(name) for name in ("PATH", "VIRTUAL_ENV", "LC_TIME", "TZ", "HF_TOKEN", "DROVER_SOCKET")],
                         [path, str(programs.parent), "C.UTF-8", "Asia/Tokyo", None, None])

    def test_what_is_asked_for_goes_first(self):
        variables = self.variables("--env", "TZ=UTC", "--env", "PATH=/usr/bin:/bin", TZ="Asia/Tokyo")
        self.assertEqual((variables["TZ"], variables["PATH"]), ("UTC", "/usr/bin:/bin"))

    def test_another_user_gets_nothing_of_roots(self):
        how = {"uid": 0, "PATH": f"/root/bin:{os.environ['PATH']}", "PYTHONPATH": "/root/python", "folder": "/"}
        self.assertEqual(self.variables(**how)["PYTHONPATH"], "/root/python")
        variables = self.variables("--user", drover.NOBODY, **how)
        self.assertNotIn("/root/bin", variables["PATH"])
        self.assertNotIn("PYTHONPATH", variables)


class MissingCommandTest(StartTest):
    def test_what_to_write_is_said(self):
        script = self.project / "train.sh"
        script.write_text("#!/bin/sh\necho trained\n")
        script.chmod(0o755)
        ran = self.drover("run", "--", "train.sh")
        self.assertEqual((ran.status, ran.out), (125, ""), ran)
        self.assertIn("write ./train.sh", ran.err)
        self.assertEqual(self.drover("run", "--", "./train.sh").out, "trained\n")
        self.assertIn("add --workdir .", self.drover("run", "--workdir", "/", "--", "./train.sh").err)
        script.chmod(0o644)
        self.assertIn("chmod +x ./train.sh", self.drover("run", "--", "./train.sh").err)
        self.assertNotIn("lies in", self.drover("run", "--", "absent.sh").err)


class AmountsTest(StartTest):
    """On dgx-a100: 8 GPUs, 256 CPUs."""

    def amounts(self, *options):
        task = self.daemon.task(self.drover("run", "--detach", *options, "--", "true").out.strip())["task"]
        return task["cpus"], task["memory"] / 2**30

    def test_cpus_and_memory_go_with_the_gpus(self):
        node = self.daemon.api("GET", "/v1/nodes")["nodes"][0]
        cpus, gib = node["cpus"]["total"], node["memory_bytes"]["total"] / 2**30
        self.assertEqual(cpus, 256)
        self.assertEqual(self.amounts(), (1, 1))
        self.assertEqual(self.amounts("--gpus", "1"), (32, gib // 8))
        self.assertEqual(self.amounts("--gpus", "0.5"), (16, gib // 16))
        self.assertEqual(self.amounts("--gpus", "2", "--cpus", "3", "--mem", "2G"), (3, 2))
        self.assertEqual(self.amounts("--gpus", "2", "--cpus", "3"), (3, gib * 2 // 8))

    def test_it_is_shown(self):
        planned = self.drover("plan", "--gpus", "2")
        self.assertRegex(planned.out, r"\n  with 64 CPUs, \d+(\.\d+)? GiB\n")
        task = self.drover("run", "--detach", "--gpus", "2", "--", "sleep", "600").out.strip()
        self.addCleanup(self.daemon.end_task, task)
        self.assertRegex(self.drover("explain", task).out, r"\n  with 64 CPUs, \d+(\.\d+)? GiB\n")

    def test_one_task_for_each_gpu_fit_beside_each_other(self):
        for affinity in ("prefer", "require"):
            with self.subTest(affinity=affinity):
                tasks = [self.drover("run", "--detach", "--gpus", "1", "--cpu-affinity", affinity, "--", "sleep", "600").out.strip()
                         for _ in range(8)]
                try:
                    for task in tasks:
                        self.daemon.wait_until_running(task)
                finally:
                    for task in tasks:
                        self.daemon.end_task(task)

    def test_a_site_says_otherwise(self):
        daemon = drover.Daemon(arguments=["--cpus-per-gpu", "6", "--mem-per-gpu", "20G"])
        self.addCleanup(daemon.close)
        daemon.start()
        task = daemon.api("POST", "/v1/tasks", {"command": ["true"], "gpus": 2})["task"]
        self.assertEqual((task["cpus"], task["memory"]), (12, 40 * 2**30))
        app = daemon.api("POST", "/v2/apps", {"id": "/a", "cmd": "true", "gpus": 1, "instances": 0})
        self.assertEqual(app["cpus"], 1)


class RecordTest(StartTest):
    def test_the_record_is_alone_on_standard_output(self):
        ran = self.drover("run", "--json", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
        self.assertEqual(ran.status, 3)
        self.assertEqual(json.loads(ran.out)["exit_status"], 3)
        self.assertEqual(sorted(ran.err.splitlines()), ["err", "out"])


class LineTest(StartTest):
    """On a terminal, which may go away."""

    def open(self, *words):
        """`drover WORDS` in a session of its own, on a terminal; returns the process and the terminal's other end."""
        control, terminal = pty.openpty()
        environment = {**os.environ, **self.daemon.sanitizer_settings(), "DROVER_SOCKET": str(self.daemon.socket)}

        def take_terminal():
            hear_of_hangups()
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        process = subprocess.Popen([str(word) for word in (self.daemon.client(), *words)], stdin=terminal, stdout=terminal, stderr=terminal,
                                   env=environment, cwd="/", preexec_fn=take_terminal)
        os.close(terminal)
        return process, control

    def read_until(self, control, text):
        seen = b""
        deadline = time.monotonic() + drover.PATIENCE
        while text not in seen and time.monotonic() < deadline:
            seen += os.read(control, 4096)
        return seen

    def test_a_lost_line_does_not_end_the_task(self):
        process, control = self.open("run", "--name", "held", "--", "sh", "-c", "echo up; while :; do echo on; sleep 0.1; done")
        self.read_until(control, b"up")
        os.close(control)
        process.wait(timeout=drover.PATIENCE)
        task = next(record["task"]["id"] for record in self.daemon.tasks() if record["task"]["name"] == "held")
        self.addCleanup(self.daemon.end_task, task)
        time.sleep(1)
        record = self.daemon.task(task)
        self.assertEqual((record["state"], record["stop_requested"]), ("running", False))

    def test_a_pipe_that_breaks_with_the_line_does_not_end_it_either(self):
        control, terminal = pty.openpty()
        environment = {**os.environ, **self.daemon.sanitizer_settings(), "DROVER_SOCKET": str(self.daemon.socket)}
        script = f"{self.daemon.client()} run --name piped -- sh -c 'while :; do echo on; sleep 0.01; done' | cat"
        shell = subprocess.Popen(["setsid", "--ctty", "sh", "-c", script], stdin=terminal, stdout=terminal, stderr=terminal, env=environment,
                                 cwd="/", preexec_fn=hear_of_hangups)
        os.close(terminal)
        self.read_until(control, b"on")
        os.close(control)
        shell.wait(timeout=drover.PATIENCE)
        task = next(record["task"]["id"] for record in self.daemon.tasks() if record["task"]["name"] == "piped")
        self.addCleanup(self.daemon.end_task, task)
        time.sleep(1)
        self.assertFalse(self.daemon.task(task)["stop_requested"])

    def test_who_is_still_there_hears_the_way_back(self):
        process = subprocess.Popen(self.daemon.cli_command("--socket", self.daemon.socket, "run", "--", "sh", "-c", "echo up; sleep 600"),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hear_of_hangups)
        self.assertEqual(process.stdout.readline(), "up\n")
        process.send_signal(signal.SIGHUP)
        told = process.communicate(timeout=drover.PATIENCE)[1]
        task = drover.wait_for(lambda: next((record["task"]["id"] for record in self.daemon.tasks() if record["state"] == "running"), None),
                               "the task to be known to run")
        self.addCleanup(self.daemon.end_task, task)
        self.assertEqual((process.returncode, told), (129, f"drover: the task goes on; 'drover logs -f {task}' shows its output\n"))

    def test_nohup_is_heeded(self):
        process = subprocess.Popen(["nohup", *self.daemon.cli_command("--socket", self.daemon.socket, "run", "--", "sh", "-c",
                                                                      "echo up; sleep 2; echo down")],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.assertEqual(process.stdout.readline(), "up\n")
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.communicate(timeout=drover.PATIENCE)[0], "down\n")

    def test_a_line_says_how_far_it_is_and_goes_when_output_begins(self):
        holder = self.daemon.submit("sleep", 600, gpus=8)
        self.daemon.wait_until_running(holder)
        process, control = self.open("run", "--gpus", "8", "--", "sh", "-c", "echo up; sleep 600")
        waiting = self.read_until(control, b"waiting at place 1").decode()
        task = next(record["task"]["id"] for record in self.daemon.tasks() if record["state"] == "queued")
        self.addCleanup(self.daemon.end_task, task)
        self.assertIn(f"drover: {task}: waiting at place 1", waiting)
        self.daemon.end_task(holder)
        started = self.read_until(control, b"up")
        self.assertRegex(started, rb"\r\x1b\[Kup")
        os.close(control)
        process.wait(timeout=drover.PATIENCE)


class ExecTest(StartTest):
    def test_a_task_that_starts_is_waited_for(self):
        brought = threading.Event()

        class Slow(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                brought.wait(drover.PATIENCE)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"x")

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.addCleanup(brought.set)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        task = self.drover("run", "--detach", "--fetch", f"http://127.0.0.1:{server.server_port}/big", "--", "sleep", "600").out.strip()
        self.addCleanup(self.daemon.end_task, task)
        process = subprocess.Popen(self.daemon.cli_command("--socket", self.daemon.socket, "exec", task, "--", "echo", "in"),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(process.stderr.readline(), f"drover: waiting for '{task}' to start, 60 s at most\n")
        brought.set()
        self.assertEqual((*process.communicate(timeout=drover.PATIENCE), process.returncode), ("in\n", "", 0))

    def test_one_that_waits_is_not(self):
        holder = self.daemon.submit("sleep", 600, gpus=8)
        self.addCleanup(self.daemon.end_task, holder)
        task = self.drover("run", "--detach", "--gpus", "8", "--", "sleep", "600").out.strip()
        self.addCleanup(self.daemon.end_task, task)
        ran = self.drover("exec", task, "--", "true")
        self.assertEqual(ran.status, 125)
        self.assert_one_sentence(ran, "is queued")


if __name__ == "__main__":
    unittest.main()
