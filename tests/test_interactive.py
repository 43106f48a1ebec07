"""Tasks that people type into: `drover run -i`, `-t` and `-it`, and `drover attach`."""

import hashlib
import json
import random
import subprocess
import time

import drover
import in_terminal

LEAVE = "\x10\x11"  # Ctrl-P Ctrl-Q


class InteractiveTest(drover.DaemonTest):
    profile = "k40m"

    def tearDown(self):
        self.daemon.end_tasks()

    def settings(self):
        return {"env": {**self.daemon.environment, "DROVER_SOCKET": str(self.daemon.socket), "TERM": "vt100"}}

    def terminal(self, *words, **size):
        return in_terminal.Terminal(self, self.daemon.cli_command(*words), **size, **self.settings())

    def run_with_input(self, text, *words):
        done = subprocess.run(self.daemon.cli_command(*words), input=text, capture_output=True, timeout=drover.PATIENCE,
                              **self.settings())
        return done.returncode, done.stdout, done.stderr.decode()

    def only_task(self):
        (record,) = [record for record in self.daemon.tasks() if record["state"] not in drover.FINAL_STATES]
        return record["task"]["id"]

    def input_of(self, task, uid=None):
        return in_terminal.Frames(self, f"/v1/tasks/{task}/input", "drover-input", {}, uid=uid)

    # Without a terminal

    def test_standard_input_is_passed_on_to_its_end(self):
        text = random.Random(7).randbytes(3_000_000)
        status, output, errors = self.run_with_input(text, "run", "-i", "--", "sha256sum")
        self.assertEqual((status, output.split()[0].decode()), (0, hashlib.sha256(text).hexdigest()), errors)

    def test_a_task_that_reads_nothing_does_not_hold_it_up(self):
        status, output, errors = self.run_with_input(b"x" * 3_000_000, "run", "-i", "--", "sh", "-c", "exec <&-; sleep 0.5; echo done")
        self.assertEqual((status, output), (0, b"done\n"), errors)

    def test_without_it_nothing_is_read(self):
        loop = "\n".join(["while read line; do", '  "$0" run -- cat', '  echo "$line"', "done"])
        done = subprocess.run(["sh", "-c", loop, str(self.daemon.binary)], input=b"one\ntwo\n", capture_output=True, timeout=drover.PATIENCE,
                              **self.settings())
        self.assertEqual(done.stdout, b"one\ntwo\n", done)
        status, output, errors = self.run_with_input(b"for nobody", "run", "--", "cat")
        self.assertEqual((status, output), (0, b""))
        self.assertIn("not passed on; '-i'", errors)

    def test_no_byte_is_lost_when_the_daemon_is_killed(self):
        text = random.Random(8).randbytes(6_000_000)
        slow_reader = ("import hashlib, sys, time\nseen = hashlib.sha256()\n"
                       "while piece := sys.stdin.buffer.read(100_000):\n    seen.update(piece)\n    time.sleep(0.02)\nprint(seen.hexdigest())")
        command = self.daemon.cli_command("run", "-i", "--", "python3", "-c", slow_reader)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **self.settings()) as process:
            for begin in range(0, len(text), 2_000_000):
                process.stdin.write(text[begin:begin + 2_000_000])
                process.stdin.flush()
                self.daemon.kill()
                self.daemon.start()
            process.stdin.close()
            output = process.stdout.read()
            self.assertEqual(process.wait(drover.PATIENCE), 0)
        self.assertEqual(output.split()[0].decode(), hashlib.sha256(text).hexdigest())

    def test_what_makes_no_sense_is_refused(self):
        for words, said in ((("-i", "--gang", "2"), "several tasks"), (("-t",), "needs a terminal")):
            ran = self.daemon.cli("run", *words, "--", "cat")
            self.assertEqual(ran.status, 64, ran)
            self.assert_one_sentence(ran, said)

    # With one

    def test_a_shell_is_as_at_home(self):
        terminal = self.terminal("run", "-it", "--", "sh", "-c", 'tty; echo "$TERM"; stty size; exec sh -i')
        terminal.read_until("/dev/pts/0\r\nvt100\r\n33 101\r\n")
        terminal.resize(44, 99)
        terminal.type("until stty size | grep '44 99'; do sleep 0.1; done\n")
        terminal.read_until("44 99\r\n")
        terminal.type("echo goes to sl''eep; sleep 1000\n")
        terminal.read_until("goes to sleep\r\n")
        time.sleep(0.5)
        terminal.type("\x03")  # for the command that sleeps
        terminal.type("echo after $?\n")
        terminal.read_until("after 130\r\n")
        terminal.type("exit 7\n")
        self.assertEqual(terminal.wait(), 7)
        self.assertTrue(terminal.is_set_back())

    def test_one_may_leave_and_come_back(self):
        terminal = self.terminal("run", "-it", "--", "sh", "-c", "echo ready; read a; echo got $a; read b; echo got $b; exit 3")
        terminal.read_until("ready")
        terminal.type("one\n")
        terminal.read_until("got one")
        terminal.type(LEAVE)
        self.assertEqual(terminal.wait(), 0)
        self.assertTrue(terminal.is_set_back())
        task = self.only_task()
        self.assertIn(f"drover attach {task}", terminal.read_until(task))
        again = self.terminal("attach", task, "--tail", "1")
        again.read_until("got one")
        again.type("two\n")
        again.read_until("got two")
        self.assertEqual(again.wait(), 3)
        ended = self.daemon.cli("attach", task)
        self.assert_one_sentence(ended, "has ended", "drover logs")

    def test_a_lost_line_costs_nothing(self):
        terminal = self.terminal("run", "-it", "--", "sh", "-c", "echo ready; read a; echo got $a")
        terminal.read_until("ready")
        terminal.process.kill()
        terminal.wait()
        again = self.terminal("attach", self.only_task())
        again.type("line\n")
        again.read_until("got line")
        self.assertEqual(again.wait(), 0)

    def test_a_program_draws_anew_for_who_comes_back(self):
        task = self.daemon.submit(command=["sh", "-c", "trap 'stty size' WINCH; echo ready; while true; do sleep 0.05; done"],
                                  tty={"rows": 33, "columns": 101})
        self.daemon.wait_for_output(task, "ready")
        self.terminal("attach", task).read_until("33 101")

    def test_who_comes_last_has_the_keyboard(self):
        first = self.terminal("run", "-it", "--", "cat")
        first.type("from the first\n")
        first.read_until("from the first\r\nfrom the first")
        second = self.terminal("attach", self.only_task())
        first.read_until("Somebody else writes to the task now")
        second.type("from the second\n")
        second.read_until("from the second\r\nfrom the second")
        first.read_until("from the second\r\nfrom the second")  # who looks on sees it
        second.type("\x04")
        self.assertEqual((first.wait(), second.wait()), (0, 0))

    def test_a_shell_is_stopped_at_once(self):
        terminal = self.terminal("run", "-it", "--grace", "1h", "--", "bash", "--norc", "-i")
        terminal.type("echo rea''dy\n")
        terminal.read_until("ready")
        self.daemon.stop_task(self.only_task())  # a shell at a terminal does not listen to SIGTERM
        self.assertEqual(terminal.wait(), 129)

    def test_the_daemon_may_be_killed(self):
        terminal = self.terminal("run", "-it", "--", "cat")
        terminal.type("one\n")
        terminal.read_until("one\r\none")
        self.daemon.kill()
        terminal.type("two\n")
        self.daemon.start()
        terminal.read_until("two\r\ntwo")
        terminal.type("\x04")
        self.assertEqual(terminal.wait(), 0)

    # The connection

    def test_the_wire(self):
        task = self.daemon.submit(command=["sh", "-c", "cat; echo end"], stdin=True)
        self.daemon.wait_until_running(task)
        writer = self.input_of(task).assert_upgraded()
        writer.send(2, b"me")
        self.assertEqual(writer.read(), (4, b'{"bytes":0}'))
        writer.send(0, b"hello\n")
        self.assertEqual(writer.read(), (4, b'{"bytes":6}'))
        writer.connection.close()
        again = self.input_of(task).assert_upgraded()
        again.send(2, b"me")
        self.assertEqual(again.read(), (4, b'{"bytes":6}'))
        other = self.input_of(task).assert_upgraded()
        other.send(2, b"another")
        self.assertEqual(other.read(), (4, b'{"bytes":0}'))
        channel, said = again.read()
        self.assertEqual((channel, json.loads(said)["error"]["kind"]), (3, "conflict"))
        self.assertEqual(self.daemon.task(task)["state"], "running")  # input ends only when somebody says so
        other.send(0, b"")
        self.daemon.wait_until_final(task)
        self.assertEqual(self.daemon.output(task), "hello\nend\n")

    def test_a_task_that_takes_none(self):
        task = self.daemon.submit(command=["sleep", "1000"])
        self.daemon.wait_until_running(task)
        self.assertIn(b"HTTP/1.1 422 ", self.input_of(task).head)


if __name__ == "__main__":
    import unittest
    unittest.main()
