"""What the command line offers to people and to scripts, besides running tasks."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import socketserver
import subprocess
import threading
import time
import unittest

import drover

LISTINGS = (["ps"], ["ps", "--all"], ["gpus"], ["topo"], ["version"], ["doctor"])


class CliTest(drover.DaemonTest):
    profile = "k80"

    def test_every_command_explains_itself(self):
        overview = self.daemon.cli("--help")
        self.assertEqual(overview.status, 0, overview)
        commands = re.findall(r"^  ([a-z]+)\b", overview.out, re.MULTILINE)
        self.assertTrue({"serve", "run", "ps", "logs", "stop", "gpus", "topo", "explain", "doctor", "version"} <= set(commands),
                        overview.out)
        for command in commands:
            with self.subTest(command=command):
                explained = self.daemon.cli(command, "--help")
                self.assertEqual(explained.status, 0, explained)
                self.assertIn(command, explained.out)

    def test_every_listing_speaks_json(self):
        for words in LISTINGS:
            with self.subTest(words=words):
                ran = self.daemon.cli(*words, "--json")
                json.loads(ran.out)

    def test_every_listing_of_simulated_gpus_says_so(self):
        for words in (["ps"], ["gpus"], ["topo"]):
            with self.subTest(words=words):
                self.assertIn("simulated", self.daemon.cli(*words).out)
        self.assertEqual(self.daemon.cli("node").out.count("(simulated)"), 3, "GPUs, CPUs and memory are")

    def test_queues_and_quotas_say_what_holds_now_and_what_cannot_be(self):
        for words, said, warned in ((["queue", "set", "big", "--gpus-guarantee", 900, "--users", "root,no-such-user"],
                                     "big: guarantee 900 GPUs, limit -, weight 1, users root,no-such-user\n",
                                     ["The guarantee of 'big' cannot be kept: 900 GPUs of it, and the machine has ",
                                      "There is no user 'no-such-user' on this machine yet"]),
                                    (["queue", "remove", "big"], "big: removed\n", []),
                                    (["quota", "set", "user:no-such-user", "--gpus", 1],
                                     "user:no-such-user: limit 1 GPU, highest priority 0\n", ["There is no user 'no-such-user'"]),
                                    (["quota", "remove", "user:no-such-user"], "user:no-such-user: removed\n", [])):
            with self.subTest(words):
                ran = self.daemon.cli(*words)
                self.assertEqual((ran.status, ran.out), (0, said), ran)
                self.assertEqual(len(ran.err.splitlines()), len(warned), ran)
                for sentence in warned:
                    self.assertIn(sentence, ran.err)

    def test_a_job_tells_its_past_in_the_times_of_all_else_and_no_change_is_silent(self):
        self.daemon.api("POST", "/v1/scheduler/iso8601", {"name": "breaks", "command": "exit 3", "schedule": "R/2040-01-01T00:00:00Z/P1D", "retries": 0})
        self.addCleanup(self.daemon.remove_definitions)
        self.assertIn("breaks", self.daemon.cli("job", "run", "breaks").out)
        past = drover.wait_for(lambda: next((ran.out for ran in [self.daemon.cli("job", "history", "breaks")] if "  Fail  " in ran.out), None), "the run to fail")
        row = next(line for line in past.splitlines() if "  Fail  " in line)
        self.assertEqual(len(re.findall(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", row)), 2, past)
        self.assertIn("exited with status 3", past)
        self.assertIn("breaks", self.daemon.cli("job", "kill", "breaks").out)
        self.assertIn("breaks", self.daemon.cli("job", "rm", "breaks").out)

    def test_nothing_simulated_or_absent_is_told_for_real(self):
        told = {line.split("  ")[0] + line[9:31].strip(): line for line in self.daemon.cli("doctor").out.splitlines() if line.startswith(("found", "warning"))}
        self.assertIn("the state folder unless --state names another", told["founddisk"])
        if "none is installed" in told["foundCDI specification"]:
            self.assertIn("Drover needs none", told["foundCDI specification"])
        for amount in ("GPUS", "CPUS", "MEMORY"):
            at = self.daemon.cli("node", "--format", f"{{{amount.lower()}-free}}").out
            self.assertIn("(simulated)", at)

    def test_a_misspelt_command_or_option_is_recognised(self):
        for words, meant in ((["rum", "--", "true"], "run"), (["run", "--gpu", "1", "--", "true"], "--gpus")):
            with self.subTest(words=words):
                ran = self.daemon.cli(*words)
                self.assertNotEqual(ran.status, 0)
                self.assertIn(meant, ran.err)

    def test_shells_accept_the_completion(self):
        for shell, check in (("bash", ["bash", "-n"]), ("zsh", ["zsh", "-n"]), ("fish", ["fish", "--no-execute"])):
            with self.subTest(shell=shell):
                ran = self.daemon.cli("completion", shell)
                self.assertEqual(ran.status, 0, ran)
                self.assertIn("drover", ran.out)
                if shutil.which(shell):
                    checked = subprocess.run(check, input=ran.out, capture_output=True, text=True)
                    self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_bash_completes_commands_and_options(self):
        script = self.daemon.cli("completion", "bash").out
        asked = script + f'\nCOMP_WORDS=({drover.BINARY} run --gp); COMP_CWORD=2; COMP_LINE="drover run --gp"; COMP_POINT=15\n' \
            'spec=$(complete -p drover); function=${spec#*-F }; function=${function%% *}; $function; echo "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "--norc", "-c", asked], capture_output=True, text=True)
        self.assertIn("--gpus", done.stdout, done.stderr)

    def test_every_command_has_a_man_page_that_is_well_formed(self):
        folder = self.daemon.folder / "man"
        folder.mkdir()
        self.assertEqual(self.daemon.cli("man-pages", folder).status, 0)
        pages = {page.name: page for page in folder.iterdir()}
        for name in ("drover-run.1", "drover-app-scale.1", "drover-queue-set.1", "drover-serve.1"):
            self.assertIn(name, pages)
        self.assertNotIn("drover-complete.1", pages, "what is for scripts has none")
        helped = re.findall(r"(--[a-z][a-z-]+)", self.daemon.cli("run", "--help").out.split("Which daemon:")[0])
        page = pages["drover-run.1"].read_text().replace("\\-", "-")
        for flag in helped:
            self.assertIn(flag, page)
        if not shutil.which("groff"):
            self.skipTest("groff is not installed")
        for page in (*pages.values(), drover.ROOT / "packaging/drover.1"):
            with self.subTest(page=page.name):
                done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", str(page)], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_doctor_has_a_line_for_each_prerequisite(self):
        ran = self.daemon.cli("doctor")
        for word in ("runc", "cgroup", "overlay", "NVML"):
            self.assertRegex(ran.out, f"(?i){word}", ran)
        for check in json.loads(self.daemon.cli("doctor", "--json").out)["checks"]:
            self.assertIn(check["state"], ("found", "warning", "missing"))
            if check["state"] == "missing":
                self.assertTrue(check["mend"], check)

    def test_doctor_says_what_a_runtime_s_version_is_known_for(self):
        runc = shutil.which("runc")
        if not runc:
            self.skipTest("runc is not installed")
        folder = self.daemon.folder / "old"
        folder.mkdir()
        (folder / "runc").write_text(f'#!/bin/sh\n[ "$1" != --version ] || exec echo "runc version 1.0.0-rc5+dev"\nexec {runc} "$@"\n')
        (folder / "runc").chmod(0o755)
        answer = json.loads(self.daemon.cli("doctor", "--json", env={"PATH": f"{folder}:{os.environ['PATH']}"}).out)
        checks = {check["name"]: check for check in answer["checks"]}
        if "ran a container" not in checks["OCI runtime runc"]["found"]:
            self.skipTest("runc does not work here")
        met, avoided = checks["runc CVE-2019-5736"], checks["runc CVE-2024-45310"]
        self.assertEqual((met["state"], avoided["state"]), ("warning", "found"))
        self.assertIn("update runc to 1.0.0-rc7 or newer", met["mend"])
        for check in (met, avoided):
            self.assertIn("1.0.0-rc5 is known for it, unless your distribution has mended it", check["found"])

    def test_tasks_go_by_name_and_by_the_beginning_of_their_id(self):
        task = self.daemon.submit("say", "here", name="unmistakable")
        self.daemon.wait_until_final(task)
        for word in ("unmistakable", task, task[:-2]):
            self.assertEqual(self.daemon.cli("logs", word).out, "here\n")
        self.assertIn("unmistakable", self.daemon.cli("ps", "--all").out)
        self.assertNotIn("unmistakable", self.daemon.cli("ps").out)

    def test_files_of_a_sandbox(self):
        task = self.daemon.submit("write", "answer", "42")
        self.daemon.wait_until_final(task)
        self.assertIn("answer", self.daemon.cli("files", "ls", task).out)
        self.assertEqual(self.daemon.cli("files", "cat", task, "answer").out, "42\n")
        copy = self.daemon.folder / "copy"
        self.assertEqual(self.daemon.cli("files", "get", task, "answer", "--output", copy).status, 0)
        self.assertEqual(copy.read_text(), "42\n")
        self.assertEqual(self.daemon.cli("rm", task).status, 0)
        self.assert_one_sentence(self.daemon.cli("files", "ls", task), task)

    def test_a_folder_of_a_sandbox_comes_as_a_tar(self):
        long = "a" * 120
        script = f"mkdir -p results/{long}; echo 42 > results/{long}/answer; : > results/empty; ln -s /etc/passwd results/link; chmod 640 results/empty; : > results/café"
        task = self.daemon.submit(command=["/bin/sh", "-c", script])
        self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished")
        folder = self.daemon.folder / "unpacked"
        folder.mkdir()
        got = self.daemon.cli("files", "get", task, "results/", cwd=folder)
        self.assertEqual(got.status, 0, got)
        self.assertIn("Not in the archive, since only files and folders are: 'results/link'", got.err)
        self.assertEqual(drover.run(["tar", "xf", "results.tar"], cwd=folder).err, "")
        self.assertEqual((folder / "results" / long / "answer").read_text(), "42\n")
        self.assertEqual(sorted(path.name for path in (folder / "results").iterdir()), [long, "café", "empty"])
        self.assertEqual((folder / "results/empty").stat().st_mode & 0o777, 0o640)
        self.assertNotEqual(self.daemon.cli("files", "get", task, "results", cwd=folder).status, 0, "a file that is there was overwritten")
        listed = drover.run(["sh", "-c", f"{' '.join(self.daemon.cli_command('--socket', self.daemon.socket, 'files', 'get', task, '/'))} "
                             "-o - | tar t"], cwd=folder)
        self.assertIn("sandbox/results/empty\n", listed.out)
        self.assertEqual(self.daemon.cli("files", "get", task, f"results/{long}/answer", "-o", "-", cwd=folder).out, "42\n")
        self.assertFalse((folder / "-").exists())
        self.assert_one_sentence(self.daemon.cli("files", "get", task, "nothing", cwd=folder), "nothing")

    def test_several_tasks_are_stopped_at_once_and_a_wrong_one_is_told(self):
        tasks = [self.daemon.submit("sleep", 600) for _ in range(2)]
        ran = self.daemon.cli("stop", "--force", tasks[0], "no-such-task", tasks[1])
        self.assertNotEqual(ran.status, 0)
        self.assertIn("no-such-task", ran.err)
        for task in tasks:
            self.assertEqual(self.daemon.wait_until_final(task)["state"], "killed")

    def test_output_into_a_closed_pipe_ends_quietly(self):
        command = " ".join(self.daemon.cli_command("--socket", self.daemon.socket, "run", "--", "yes"))
        done = subprocess.run(["sh", "-c", f"{command} | head -n 1"], capture_output=True, text=True, timeout=drover.PATIENCE)
        self.assertEqual(done.stdout, "y\n")
        self.assertNotIn("terminate", done.stderr)


class PatienceTest(drover.DaemonTest):
    """A daemon that does not answer is told of after a while; one that only takes long is waited for."""

    profile = "k40m"

    def stop_daemon(self):
        self.daemon.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.daemon.process.send_signal, signal.SIGCONT)

    def assert_gives_up(self):
        for words in (["ps"], ["gpus"], ["stop", "it"], ["exec", "it", "--", "true"], ["run", "--detach", "--", "true"]):
            with self.subTest(words=words):
                ran = self.daemon.cli("--patience", "1s", *words)
                self.assert_one_sentence(ran, f"No answer came from the daemon at '{self.daemon.socket}' in 1.0s", "--patience TIME")

    def test_a_daemon_that_is_stopped(self):
        self.stop_daemon()
        self.assert_gives_up()

    def test_a_daemon_that_takes_no_connection(self):
        self.stop_daemon()
        with contextlib.ExitStack() as waiting:
            with self.assertRaises(BlockingIOError):
                while True:
                    client = waiting.enter_context(socket.socket(socket.AF_UNIX))
                    client.setblocking(False)
                    client.connect(str(self.daemon.socket))
            self.assert_gives_up()

    def test_what_is_not_time_is_refused(self):
        self.assert_one_sentence(self.daemon.cli("--patience", "soon", "ps"), "--patience", "soon")
        self.assert_one_sentence(self.daemon.cli("ps", env={"DROVER_PATIENCE": "soon"}), "soon")

    def test_a_task_that_is_silent_for_long(self):
        ran = self.daemon.cli("--patience", "10s", "run", "--", self.daemon.probe, "sleep", "13", ",", "say", "at last")
        self.assertEqual((ran.status, ran.out), (0, "at last\n"), ran)

    def test_an_answer_that_takes_long_is_waited_for(self):
        path = self.daemon.folder / "slow"

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                body = b'{"status": "ok"}'
                if b"/health" not in self.rfile.readline():
                    body = b'{"tasks": []}'
                    time.sleep(8)
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

        with socketserver.ThreadingUnixStreamServer(str(path), Handler) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                ran = self.daemon.cli("--patience", "5s", "ps", "--json", env={"DROVER_SOCKET": str(path)})
            finally:
                server.shutdown()
                thread.join()
        self.assertEqual((ran.status, json.loads(ran.out)), (0, {"tasks": []}), ran)


if __name__ == "__main__":
    unittest.main()
