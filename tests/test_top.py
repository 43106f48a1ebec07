"""`drover top`: in a pseudo terminal, against a cell buffer that knows only what a program may send; once; as JSON; without a daemon."""

import json
import os
import pathlib
import re
import select
import signal
import time
import unittest

import cell_buffer
import drover
import in_terminal
import test_cdi

OTHER = drover.NOBODY
CHECK = drover.built("cuda_check")
SIMULATED = [drover.BUILD / "lib/drover/sim" / name for name in ("libcuda.so.1", "libnvidia-ml.so.1")]
MODES = {"25", "7"}  # of a terminal that is set back: a cursor, and lines that are wrapped


class Screen(in_terminal.Terminal):
    """The program at a terminal, and what it shows."""

    def __init__(self, test, command, rows=24, columns=80, **options):
        self.buffer = cell_buffer.CellBuffer(rows, columns)
        self.bytes = 0
        super().__init__(test, command, rows=rows, columns=columns, **options)

    def resize(self, rows, columns):
        self.look()  # what was sent for the old size
        self.buffer.resize(rows, columns)
        super().resize(rows, columns)

    def look(self, seconds=0.0):
        """What is shown after all that comes until then."""
        end = time.monotonic() + seconds
        while select.select([self.master], [], [], max(end - time.monotonic(), 0))[0]:
            data = os.read(self.master, 65536)
            self.bytes += len(data)
            self.buffer.feed(data)
        return self.buffer.text()

    def wait_for(self, pattern):
        def seen():
            return re.search(pattern, self.look(), re.MULTILINE)

        return drover.wait_for(seen, lambda: f"{pattern} in\n{self.look()}")


class TopTest(drover.DaemonTest):
    profile = "dgx-a100"

    def setUp(self):
        self.daemon.set_faults({})

    def tearDown(self):
        self.daemon.end_tasks()

    def environment(self, **more):
        return {**self.daemon.environment, "DROVER_SOCKET": str(self.daemon.socket), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **more}

    def top(self, *words, rows=24, columns=80, **environment):
        screen = Screen(self, self.daemon.cli_command("top", *words), rows, columns, env=self.environment(**environment))
        screen.wait_for(r"^. GPUs: 8")
        return screen

    def quit(self, screen):
        screen.type("q")
        self.assertEqual(screen.wait(), 0)
        self.assert_set_back(screen)

    def assert_set_back(self, screen):
        screen.look(0.1)
        self.assertEqual(screen.buffer.modes, MODES)
        self.assertTrue(screen.is_set_back())

    def sleeper(self, **fields):
        task = self.daemon.submit("say", "up", ",", "sleep", 1000, **fields)
        self.daemon.wait_for_output(task, "up")
        return task

    def first_process(self, task):
        """Its own first process, after the init, as the kernel counts them outside."""
        return int(pathlib.Path(drover.cgroups_of([task])[0], "cgroup.procs").read_text().split()[1])

    # At a terminal

    def test_what_there_is_is_seen_at_every_size(self):
        task = self.sleeper(gpus=1, name="train")
        screen = self.top()
        for rows, columns in ((24, 80), (60, 250), (10, 40), (3, 20), (50, 132), (24, 80)):
            screen.resize(rows, columns)
            title = "GPUs: 8" if rows > 3 else "drover top"
            screen.wait_for(title)
            drover.wait_for(lambda: "\N{REPLACEMENT CHARACTER}" not in screen.look(), "all to be drawn anew")
        for part in ("simulated", "GPUs: 8", "Processes: 0", "Tasks: 1 run, 0 wait", task, "train", "running", "? help"):
            screen.wait_for(re.escape(part))  # an older sample may be told for a second
        screen.resize(60, 250)
        screen.wait_for("NVIDIA A100-SXM4-40GB")
        self.quit(screen)

    def test_a_load_that_moves_is_seen_and_little_is_sent(self):
        screen = self.top("--interval", "500ms")
        shown = set()
        for percent in (5, 35, 65, 95):
            self.daemon.set_faults({0: {"utilization": {"gpu": percent}}})
            screen.wait_for(rf"^  0 .* {percent}% ")
            shown.add(screen.buffer.lines()[screen.buffer.line_with(f" {percent}% ")].split("%")[0])
        self.assertIn("31", screen.buffer.style_of("█"), "what is busy is red")
        history = re.search(r"95% +([▁▂▃▄▅▆▇█]+)", screen.look())[1]
        self.assertEqual(list(history), sorted(history), "it grew")
        screen.look(1.5)
        before = screen.bytes
        screen.look(5)
        self.assertLess(screen.bytes - before, 5 * 2 * 400, "no more is sent than what changed")
        self.quit(screen)

    def test_a_process_is_told_with_its_task(self):
        task = self.sleeper(gpus=1, name="train")
        gpu = next(gpu for gpu in self.daemon.api("GET", "/v1/gpus")["gpus"] if gpu["used_by"])
        pid = self.first_process(task)
        self.daemon.set_faults({gpu["uuid"]: {"utilization": {"gpu": 50}, "processes": [{"pid": pid, "memory_mib": 64},
                                                                                        {"pid": os.getpid(), "memory_mib": 32}]}})
        inside = int(re.search(r"NSpid:.*\t(\d+)$", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[1])
        screen = self.top()
        screen.wait_for(rf"^ +{pid} +{inside} +{gpu['index']} root +{task} +64 MiB +25% probe$")
        screen.wait_for(rf"^ +{os.getpid()} +- +{gpu['index']} root +- +32 MiB +25% python3$")
        (process, mine) = sorted(self.once_as_json()["gpus"][gpu["index"]]["usage"]["processes"], key=lambda each: each["task"] is None)
        self.assertEqual([process[name] for name in ("pid", "container_pid", "task", "user", "uid")], [pid, inside, task, "root", 0])
        self.assertEqual([mine[name] for name in ("pid", "container_pid", "task", "user", "uid")], [os.getpid(), None, None, None, 0])
        screen.type("\tk")
        screen.wait_for(rf"^Stop task {task} \(train\) of root\?" if pid < os.getpid() else "No task is selected")
        self.quit_with_escape(screen)

    def quit_with_escape(self, screen):
        screen.type("\x1b")
        time.sleep(0.3)
        self.quit(screen)

    def test_a_program_that_uses_cuda_is_told_with_its_task(self):
        image = test_cdi.make_image(self.daemon.folder / "cuda", self.daemon.probe, libraries_for=(CHECK, *SIMULATED),
                                    files=[("cuda_check", CHECK.read_bytes())])
        task = self.daemon.submit(command=["/cuda_check", "hold", "512", "sleep", "1000"], image=image, gpus=1, name="cuda")
        self.daemon.wait_for_output(task, "held 512")
        screen = self.top(rows=40, columns=120)
        screen.wait_for(rf"^ +\d+ +\d+ +\d root +{task} +cuda +- +8\d\d MiB +\d+% cuda_check$")
        self.quit(screen)

    def test_others_processes_and_tasks_are_not_told(self):
        task = self.sleeper(gpus=1, name="secret-name")
        gpu = next(gpu for gpu in self.daemon.api("GET", "/v1/gpus")["gpus"] if gpu["used_by"])
        self.daemon.set_faults({gpu["uuid"]: {"processes": [{"pid": self.first_process(task), "memory_mib": 64}]}})
        time.sleep(1.2)  # an older sample may be told until then
        for words in (("--once",), ("--json",)):
            ran = self.daemon.cli("top", *words, uid=OTHER)
            self.assertEqual(ran.status, 0, ran)
            self.assertNotIn(task, ran.out)
            self.assertNotIn("secret-name", ran.out)
            self.assertNotIn("probe", ran.out)
        self.assertIn("Processes: 0", self.daemon.cli("top", "--once", uid=OTHER).out)

    def test_what_waits_says_why(self):
        self.sleeper(gpus=8)
        later = self.daemon.submit("sleep", 1000, gpus=8, name="later")
        others = self.daemon.submit("sleep", 1000, gpus=8, name="bobs", uid=OTHER)
        screen = self.top(rows=40, columns=160)
        screen.wait_for(rf"^{later} +later +root +waiting [12] +wants 8 .*GPU")
        screen.wait_for(rf"^{others} +bobs +nobody +waiting [12] ")
        self.quit(screen)
        seen = self.daemon.cli("top", "--once", uid=OTHER, env={"COLUMNS": "160"}).out
        self.assertRegex(seen, rf"(?m)^- +- +root +waiting [12] +wants 8 ")
        self.assertRegex(seen, rf"(?m)^{others} +bobs +nobody +waiting [12] +wants 8 ")

    def test_a_task_is_stopped_after_a_question(self):
        task = self.sleeper(gpus=1, name="train")
        screen = self.top()
        screen.wait_for(task)
        screen.type("\t\tk")
        screen.wait_for(rf"^Stop task {task} \(train\) of root\? y:")
        screen.type("n")
        screen.wait_for(f"Task {task} goes on")
        self.assertEqual(self.daemon.task(task)["state"], "running")
        screen.type("ky")
        screen.wait_for(f"Task {task} was asked to end")
        self.daemon.wait_until_final(task)
        screen.wait_for("Tasks: 0 run")
        self.quit(screen)

    def test_keys_and_the_mouse(self):
        for number in range(3):
            self.sleeper(gpus=1, name=f"n{number}")
        screen = self.top(rows=40)
        screen.wait_for("Tasks: 3 run")
        line = screen.buffer.line_with("n1 ")
        screen.type(f"\x1b[<0;5;{line + 1}M\x1b[<0;5;{line + 1}m")
        drover.wait_for(lambda: screen.look() and screen.buffer.style_of("n1 ") and "7" in screen.buffer.style_of("n1 "), "the row to be marked")
        screen.type("/n2\r")
        drover.wait_for(lambda: screen.look() and "7" in screen.buffer.style_of("n2 "), "the row to be found")
        screen.type("ftask:n0\r")
        screen.wait_for("Tasks: 3 run, 0 wait, 1 shown")
        self.assertNotIn("n2 ", screen.look())
        screen.type("f" + "\x7f" * 20 + "\r")
        screen.wait_for("n2 ")
        screen.type("?")
        screen.wait_for("the next panel")
        screen.type("x\x0c")
        screen.wait_for("GPUs: 8")
        screen.type("p")
        screen.wait_for(" paused ")
        self.quit(screen)

    def test_a_daemon_that_is_lost_and_comes_back(self):
        task = self.sleeper(gpus=1, name="train")
        screen = self.top("--interval", "300ms")
        self.daemon.kill()
        screen.wait_for("^Failed to reach the daemon")
        self.assertIn("GPUs: 8", screen.look(), "what was seen last is still there")
        screen.type("\t")  # keys are answered
        screen.wait_for("^> Processes")
        self.daemon.start()
        drover.wait_for(lambda: "Failed" not in screen.look(), "it to be seen again")
        screen.wait_for(task)
        self.quit(screen)

    def test_a_daemon_that_does_not_answer_holds_nobody(self):
        screen = self.top("--interval", "200ms")
        self.daemon.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.daemon.process.send_signal, signal.SIGCONT)
        time.sleep(1)
        screen.type("\t")
        screen.wait_for("^> Processes")
        screen.wait_for("^No answer came from the daemon")
        self.quit(screen)
        self.daemon.process.send_signal(signal.SIGCONT)

    def test_the_terminal_is_always_set_back(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            with self.subTest(signal=number):
                screen = self.top()
                screen.process.send_signal(number)
                self.assertEqual(screen.wait(), 128 + number)
                self.assert_set_back(screen)
        screen = self.top()
        screen.type("\x03")
        self.assertEqual(screen.wait(), 0)
        self.assert_set_back(screen)

    def test_it_can_be_suspended(self):
        screen = self.top()
        for suspend in (lambda: screen.type("\x1a"), lambda: screen.process.send_signal(signal.SIGTSTP)):
            suspend()
            drover.wait_for(lambda: pathlib.Path(f"/proc/{screen.process.pid}/stat").read_text().split()[2] == "T", "it to stop")
            self.assert_set_back(screen)
            screen.process.send_signal(signal.SIGCONT)
            screen.wait_for("^> GPUs: 8")
        self.quit(screen)

    def test_colours_and_letters_are_those_of_the_terminal(self):
        self.daemon.set_faults({0: {"utilization": {"gpu": 95}}})
        screen = self.top(NO_COLOR="1")
        screen.wait_for(" 95% ")
        self.assertEqual(set().union(*map(set, screen.buffer.styles)) - {"", "1", "7"}, set())
        self.quit(screen)
        screen = self.top(LC_ALL="C")
        screen.wait_for(" 95% ")
        self.assertTrue(screen.look().isascii())
        self.quit(screen)

    def test_names_that_play_tricks(self):
        script = r"printf '\033]0;x\033[2J\n\033[1' > /proc/$$/comm; echo up; while true; do sleep 1; done"
        task = self.daemon.submit(command=["/bin/sh", "-c", script], gpus=1, name="名前" * 10)
        self.daemon.wait_for_output(task, "up")
        gpu = next(gpu for gpu in self.daemon.api("GET", "/v1/gpus")["gpus"] if gpu["used_by"])
        self.daemon.set_faults({gpu["uuid"]: {"processes": [{"pid": self.first_process(task), "memory_mib": 64}]}})
        screen = self.top()  # whose cell buffer takes no other sequences
        screen.wait_for(rf"{task} .* \?\]0;x\?\[2J\?\?\[1")
        screen.wait_for("名前名前名…")
        self.quit(screen)
        self.assertNotIn("\x1b", self.daemon.cli("top", "--once").out + self.daemon.cli("top", "--json").out)

    # Without one

    def once_as_json(self):
        ran = self.daemon.cli("top", "--json")
        self.assertEqual(ran.status, 0, ran)
        return json.loads(ran.out)

    def test_once(self):
        task = self.sleeper(gpus=1, name="train")
        for words in ((), ("--once",)):
            ran = self.daemon.cli("top", *words, env={"COLUMNS": "100", "LC_ALL": "C"})
            self.assertEqual(ran.status, 0, ran)
            self.assertTrue(ran.out.isascii() and ran.out.isprintable() is False and "\x1b" not in ran.out)
            self.assertLessEqual(max(map(len, ran.out.splitlines())), 100)
            self.assertRegex(ran.out, rf"(?m)^{task} +train +root +running ")
        self.assertLessEqual(max(map(len, self.daemon.cli("top", "--once", env={"COLUMNS": ""}).out.splitlines())), 80)

    def test_as_json(self):
        task = self.sleeper(gpus=1, name="train")
        seen = self.once_as_json()
        self.assertEqual(len(seen["gpus"]), 8)
        self.assertTrue(seen["simulated"] and seen["daemon"])
        self.assertEqual([record["task"]["id"] for record in seen["tasks"]], [task])
        self.assertIn("default", [queue["queue"] for queue in seen["queues"]])

    def test_what_makes_no_sense_is_refused(self):
        for words, said in ((("--interval", "0"), "200ms"), (("--interval", "soon"), "--interval"), (("--interval", "2h"), "1m")):
            ran = self.daemon.cli("top", *words)
            self.assertEqual(ran.status, 64, ran)
            self.assert_one_sentence(ran, said)

    def test_no_daemon(self):
        gone = self.daemon.cli("--socket", self.daemon.folder / "nowhere", "top", "--once")
        self.assert_one_sentence(gone, "Failed to reach the daemon")

    def test_without_a_daemon_the_driver_is_asked(self):
        faults = self.daemon.folder / "own-faults.yaml"
        faults.write_text(json.dumps({0: {"utilization": {"gpu": 77}, "processes": [{"pid": os.getpid(), "memory_mib": 2048}]}}))
        environment = {"LD_LIBRARY_PATH": str(drover.BUILD / "lib/drover/sim"), "DROVER_SIM_FAULTS": str(faults),
                       "DROVER_SIM_PROFILE": str(drover.ROOT / "sim/profiles/k40m.yaml")}
        ran = self.daemon.cli("top", "--once", "--here", env=environment)
        self.assertEqual(ran.status, 0, ran)
        self.assertIn("without a daemon", ran.out)
        self.assertRegex(ran.out, r"(?m)^ +0 .* 77% .*Tesla|^ +0 .* 77% ")
        self.assertRegex(ran.out, rf"(?m)^ +{os.getpid()} +- +0 root +- +2 GiB .* python3$")
        seen = json.loads(self.daemon.cli("top", "--json", "--here", env=environment).out)
        self.assertEqual((seen["daemon"], seen["tasks"]), (False, []))


if __name__ == "__main__":
    unittest.main()
