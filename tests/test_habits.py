"""What people write who come from other systems, and the mistakes that are made first: each gets a right answer."""

import http.server
import os
import re
import shlex
import subprocess
import threading
import unittest

import drover

# What is written, the exit status, and what its answer says. TASK is a task that runs, ENDED one that has ended.
MISTAKES = (
    ("run --gpus 9 true", 64, "9 GPUs are asked for, but this machine has 8", "ask for at most 8"),
    ("run --gpus all true", 64, "--gpus: 'all' is not a number of GPUs", "say how many"),
    ("run --gpus device=0 true", 64, "Drover chooses them: say how many"),
    ("run --gpu-model H100 true", 64, "1 × H100 is asked for, and this machine has 8 × NVIDIA A100-SXM4-40GB with 39.6 GiB"),
    ("run --gpu-mem 80GiB true", 64, "1 GPU with 80 GiB is asked for, and this machine has 8 × NVIDIA A100-SXM4-40GB with 39.6 GiB"),
    ("run --mem 2048 true", 64, "--mem: '2048' are so many bytes", "write --mem 2048M"),
    ("run --mem lots true", 64, "--mem: 'lots'"),
    ("run --cpus 0 true", 64, "--cpus: '0'"),
    ("run --priority high true", 64, "--priority: 'high'"),
    ("run --timeout 1:00:00 true", 64, "--timeout: '1:00:00' is not a duration", "write it as 1h"),
    ("run --interconnect nvlnk true", 64, "--interconnect", "nvlink"),
    ("run --containerizer podman true", 64, "--containerizer: 'podman' is none of oci, docker"),
    ("run --gpus 1 --gpus 2 true", 64, "--gpus is given more than once"),
    ("run --gpus", 64, "--gpus needs a value"),
    ("run", 64, "There is nothing to run", "write for example: drover run"),
    ("run -e NOPE_IS_NOT_SET true", 0, "--env: 'NOPE_IS_NOT_SET' is not set here, so the task does not get it"),
    ("run --volume /no/such:/data true", 64, "--volume: There is no '/no/such'"),
    ("run --workdir /tmpp true", 64, "--workdir: There is no '/tmpp'", "did you mean '/tmp'?"),
    ("run --workdir ./nowhere true", 64, "--workdir: There is no '", "/nowhere'"),
    ("run pyhton3 train.py", 125, "There is no command 'pyhton3' in the container", "check its spelling",
     "if 'pyhton3' is an image: drover run --image pyhton3 …"),
    ("run ubuntu bash", 125, "There is no command 'ubuntu' in the container", "if 'ubuntu' is an image: drover run --image ubuntu …"),
    ("run 'sleep 1; echo hi'", 125, "There is no command 'sleep 1; echo hi' in the container", "sh -c 'LINE'"),
    ("run -- cd /tmp", 125, "There is no command 'cd' in the container", "'cd' is a word of shells: run sh -c 'LINE'"),
    ("run --gpsu 2 true", 64, "did you mean '--gpus'?"),
    ("--json ps", 64, "'drover' has no flag '--json'", "write it behind the command: drover ps --json"),
    ("ps --jsno", 64, "did you mean '--json'?"),
    ("rum true", 64, "did you mean 'run'?"),
    ("nonsense", 64, "'drover' has no command 'nonsense'", "'drover --help' lists what there is"),
    ("queue nonsense", 64, "'drover queue' has no command 'nonsense'"),
    ("ps --nonsense", 64, "'drover ps' has no flag '--nonsense'", "'drover ps --help' lists what there is"),
    ("logs", 64, "'drover logs' needs a TASK"),
    ("logs TASK TASK", 64, "'drover logs' has no argument"),
    ("logs --tail many TASK", 64, "--tail: 'many' is not"),
    ("app", 64, "'drover app' needs one more word: ls, inspect, scale, restart, rollback, suspend, resume, rm, history"),
    ("logs nosuch", 66, "nosuch", "'drover ps -a' lists your tasks"),
    ("files cat TASK .", 64, "it is a folder: 'drover files ls' lists it"),
    ("files cat TASK nosuch", 66, "drover: There is no 'nosuch' in the sandbox"),
    ("exec TASK nosuch", 127, "There is no command 'nosuch' in the container"),
    ("exec TASK", 64, "There is no command to run", "drover exec -it TASK bash"),
    ("--host localhost ps", 64, "write it as http://HOST:PORT"),
    ("--socket /no/such ps", 69, "Failed to reach the daemon", "start it with 'sudo drover serve'"),
)

# As much as the daemon may lock, which gives itself what it can.
LOCKABLE = drover.run(["sh", "-c", "ulimit -l unlimited 2>/dev/null; ulimit -l"]).out

# What is written, the exit status, and what comes out.
WORKS = (
    ("run echo -n hi", 0, "hi"),
    ("run sh -c 'echo $0 $1' -- --gpus", 0, "-- --gpus\n"),
    ("run -- echo -n hi", 0, "hi"),
    ("run -e A=1 --gpus 1 sh -c 'exit 7'", 7, ""),
    ("run --shm-size 8g --ipc=host --ulimit memlock=-1 -u nobody sh -c 'ulimit -l'", 0, LOCKABLE),
    ("run -w /tmp pwd", 0, "/tmp\n"),
    ("run --gpus 2 --gpu-model A100 --gpu-mem 40GiB true", 0, ""),
    ("run --gpu-mem 40GB true", 0, ""),
    ("exec TASK echo -n hi", 0, "hi"),
    ("exec TASK -- echo -n hi", 0, "hi"),
    ("exec -i TASK -- sh -c 'echo $0' --help", 0, "--help\n"),
    ("help app scale", 0, "Usage: drover app scale [OPTIONS] APP N\n"),
    ("help list", 0, "Usage: drover ps [OPTIONS]\n"),
    ("run --help", 0, "Usage: drover run [OPTIONS] [COMMAND...]\n"),
    ("exec --help", 0, "Usage: drover exec [OPTIONS] TASK [COMMAND...]\n"),
    ("plan --help", 0, "--socket"),
    ("ps --help", 0, "--socket"),
    ("queue ls", 0, "default"),
    ("queue list --json", 0, '"queue": "default"'),
    ("queue inspect default", 0, '"queue": "default"'),
    ("app list", 0, "APP"),
    ("jobs", 0, "JOB"),
    ("image list", 0, "NAME"),
    ("cdi list --folder /no/such", 0, "No CDI device"),
    ("gpus ls", 0, "A100"),
    ("nodes", 0, "GPUS FREE"),
    ("files list TASK", 0, "MODE"),
)

GROUPS = ("app", "job", "queue", "quota", "image", "files", "cdi")
DOCUMENT = (drover.ROOT / "docs/cli.md").read_text().split("\n## Coming from Docker, Slurm, kubectl or Nomad\n")[1]


def rows_of(number):
    """(cells) of the so-many-th table of the chapter."""
    tables = re.findall(r"^\| --- \| --- \|\n((?:\|.*\n)+)", DOCUMENT, re.MULTILINE)
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in tables[number].splitlines()]


class HabitsTest(drover.DaemonTest):
    profile = "dgx-a100"

    def setUp(self):
        super().setUp()
        self.running = self.daemon.submit(command=["sleep", "600"])
        self.daemon.wait_until_running(self.running)

    def ask(self, line):
        # A task of its own for what ends or forgets one.
        words = shlex.split(line)
        if words[0] in ("kill", "cancel", "scancel", "delete", "remove"):
            task = self.daemon.submit("sleep", 600)
            self.daemon.wait_until_running(task)
            if words[0] in ("delete", "remove"):
                self.daemon.end_task(task)
        else:
            task = self.running
        return self.daemon.cli(*(task if word == "TASK" else word for word in words))

    def test_typical_mistakes(self):
        for line, status, *answers in MISTAKES:
            with self.subTest(line=line):
                ran = self.ask(line)
                if status is None:
                    self.assertNotEqual(ran.status, 0, ran)
                else:
                    self.assertEqual(ran.status, status, ran)
                for answer in answers:
                    self.assertIn(answer, ran.err)
                self.assertNotIn("/volumes/0", ran.err)
                self.assertNotIn("?path", ran.err)
                self.assertNotIn("runc run failed", ran.err)
                self.assertNotIn("after '--'", ran.err)

    def test_what_works(self):
        for line, status, out in WORKS:
            with self.subTest(line=line):
                ran = self.ask(line)
                self.assertEqual(ran.status, status, ran)
                self.assertIn(out, ran.out, ran)

    def test_what_the_page_says_is_the_same_is(self):
        rows = rows_of(0)
        self.assertGreater(len(rows), 15)
        app = self.daemon.folder / "app.yaml"
        app.write_text("id: /nothing\ncmd: sleep 600\ninstances: 0\n")
        script = self.daemon.folder / "job.sh"
        script.write_text("#!/bin/sh\n#SBATCH --gres=gpu:1\ntrue\n")
        for written, meant in rows:
            own = re.findall(r"`drover ([^`]*)`", meant)[0]
            for line in re.findall(r"`drover ([^`]*)`", written):
                with self.subTest(line=line):
                    ran = self.ask(line.replace("FILE", str(app)).replace("job.sh", str(script)))
                    self.assertEqual(ran.status, 0, ran)
                    # The flags that are named are there, and so is the command.
                    command = own.split()[:2] if own.split()[0] in GROUPS else own.split()[:1]
                    helped = self.daemon.cli(*command, "--help")
                    self.assertEqual(helped.status, 0, helped)
                    for flag in re.findall(r"(?<= )--[a-z-]+", own):
                        self.assertIn(flag, helped.out)

    def test_what_the_page_says_is_refused_is_refused_so(self):
        rows = rows_of(1)
        self.assertGreater(len(rows), 15)
        for written, here in rows:
            for line in re.findall(r"`drover ([^`]*)`", written):
                with self.subTest(line=line):
                    ran = self.ask(line)
                    self.assertEqual(ran.status, 64, ran)
                    for words in re.findall(r"`([^`]*)`", here):
                        self.assertIn(words, ran.err)

    def test_every_noun_has_the_common_verbs(self):
        for noun in GROUPS:
            for verb in ("ls", "rm", "inspect"):
                with self.subTest(noun=noun, verb=verb):
                    ran = self.daemon.cli(noun, verb, "--help")
                    if ran.status != 0:  # or it is said what there is in its place
                        self.assertRegex(ran.err, r"has no command '\w+'\n        .*'drover ")
            for old, new in (("list", "ls"), ("remove", "rm"), ("show", "inspect")):
                self.assertEqual(self.daemon.cli(noun, old, "--help").out, self.daemon.cli(noun, new, "--help").out)

    def test_another_server_and_a_broken_secret(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200 if self.path.startswith("/v1/gpus") else 404)
                self.end_headers()
                self.wfile.write(b"<html>a page</html>")

            def log_message(self, *_):
                pass

        with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                host = f"http://127.0.0.1:{server.server_port}"
                for words in (["gpus"], ["queue"]):
                    self.assert_one_sentence(self.daemon.cli("--host", host, *words), "What answered", "is no daemon of Drover's", "check the address")
                ran = self.daemon.cli("--host", host, "gpus", env={"DROVER_TOKEN": "abc\ndef"})
                self.assert_one_sentence(ran, "DROVER_TOKEN", "line break")
            finally:
                server.shutdown()
                thread.join()

    def test_help(self):
        overview = self.daemon.cli("--help").out
        for chapter in ("Tasks:", "Apps and jobs:", "Images:", "This machine:", "The daemon:", "Examples:", "--help-all"):
            self.assertIn(chapter, overview)
        commands = re.findall(r"^  ([a-z]+)\b", overview, re.MULTILINE)
        self.assertNotIn("complete", commands)
        for command in commands:
            helped = self.daemon.cli(command, "--help").out
            self.assertTrue(helped, command)
            self.assertNotIn("--help-all", helped)
            self.assertIn("--socket", helped)
        for words in ("4096 when not given", "default when not given", "prefer when not given"):
            self.assertIn(words, self.daemon.cli("run", "--help").out)

    def test_bash_completes_what_the_daemon_knows(self):
        name = "unmistakable"
        self.daemon.wait_until_final(self.daemon.submit("say", "x", name=name))
        folder = self.daemon.folder / "bin"
        folder.mkdir()
        (folder / "drover").symlink_to(drover.BINARY)

        def offers(*words):
            line = " ".join(shlex.quote(str(word)) for word in ("drover", *words))
            code = self.daemon.cli("completion", "bash").out + \
                f"\nCOMP_WORDS=({line}); COMP_CWORD={len(words)}; _drover; printf '%s\\n' \"${{COMPREPLY[@]}}\""
            environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "DROVER_SOCKET": "/no/such"}
            done = subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True, env=environment)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return done.stdout.split()

        socket = ("--socket", self.daemon.socket)
        self.assertEqual(offers(*socket, "rm", "unm"), [name])
        self.assertEqual(offers(*socket, "logs", "unm"), [name])
        self.assertEqual(offers(*socket, "stop", "unm"), [])
        self.assertIn(self.running, offers(*socket, "exec", ""))
        self.assertEqual(offers(*socket, "run", "--queue", "def"), ["default"])
        self.assertEqual(offers(*socket, "run", "--gpu-model", ""), ["A100-SXM4-40GB"])
        self.assertEqual(offers(*socket, "run", "--after", "unm"), [name])
        self.assertEqual(len(offers(*socket, "cordon", "GPU-")), 8)
        self.assertEqual(offers("run", "--pull", "a"), ["always"])
        self.assertEqual(offers("serve", "--simulate", "dgx-"), ["dgx-a100", "dgx-h100"])
        self.assertEqual(offers("completion", ""), ["bash", "zsh", "fish"])
        self.assertEqual(offers("help", "val"), ["validate"])


if __name__ == "__main__":
    unittest.main()
