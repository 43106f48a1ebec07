"""Commands in the containers of tasks that run: `drover exec`."""

import errno
import json
import os
import socket
import struct
import subprocess
import threading

import drover
import in_terminal


class ExecTest(drover.DaemonTest):
    def setUp(self):
        self.task = self.daemon.submit(command=["/bin/sh", "-c", "echo up; exec sleep 1000"], env={"A": "from the task"},
                                       gpus=1)
        self.addCleanup(self.end_task)
        self.daemon.wait_until_running(self.task)

    def end_task(self):
        """Its GPU is for the next test."""
        if self.daemon.task(self.task)["state"] not in drover.FINAL_STATES:
            self.daemon.stop_task(self.task, force=True)
        self.daemon.wait_until_final(self.task)

    def exec(self, *words, **options):
        return self.daemon.cli("exec", *words, **options)

    def test_it_gives_outputs_and_status(self):
        ran = self.exec("-e", "B=2", self.task, "--", "/bin/sh", "-c", 'echo "$A $B"; echo wrong >&2; exit 9')
        self.assertEqual((ran.status, ran.out, ran.err), (9, "from the task 2\n", "wrong\n"))

    def test_it_has_the_devices_of_the_task(self):
        visible = self.exec(self.task, "--", "/bin/sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES; ls /dev | grep -c 'nvidia[0-9]'")
        self.assertEqual(visible.out.splitlines()[1], "1", visible)
        self.assertTrue(visible.out.startswith("GPU-"), visible)

    def test_input_is_passed_on_when_asked(self):
        command = self.daemon.cli_command("exec", "-i", self.task, "--", "/bin/sh", "-c", "wc -c")
        text = b"x" * 3_000_000
        done = subprocess.run(command, input=text, capture_output=True, timeout=drover.PATIENCE,
                              env={**self.daemon.environment, "DROVER_SOCKET": str(self.daemon.socket)})
        self.assertEqual(done.stdout.strip(), b"3000000", done)
        self.assertEqual(self.exec(self.task, "--", "/bin/cat").out, "")

    def test_large_output_is_whole(self):
        ran = self.exec(self.task, "--", "/bin/sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' x")
        self.assertEqual(len(ran.out), 5_000_000)

    def test_a_daemon_that_hears_no_more_has_said_how_it_ended(self):
        path = self.daemon.folder / "told-and-gone"
        end = json.dumps({"exit_status": 7}).encode()
        answer = (b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: drover-exec\r\n\r\n"
                  + struct.pack(">BI", 3, len(end)) + end)

        def tell_and_go(server):
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen()
            thread = threading.Thread(target=tell_and_go, args=(server,))
            thread.start()
            ran = drover.run([self.daemon.binary, "exec", self.task, "--", "true"], env={**os.environ, "DROVER_SOCKET": str(path)})
            thread.join()
        self.assertEqual((ran.status, ran.err), (7, ""), ran)

    def test_what_cannot_be_run(self):
        self.assertEqual(self.exec(self.task, "--", "/no/such").status, 127)
        self.assertEqual(self.exec(self.task, "--", "/etc/passwd").status, 126)
        self.assertEqual(self.exec("absent", "--", "true").status, 125)
        self.assertEqual(self.exec(self.task).status, 64)
        self.assertEqual(self.exec("-t", self.task, "--", "true").status, 64)

    def test_only_the_owner_may(self):
        self.assertEqual(self.exec(self.task, "--", "true", uid=drover.NOBODY).status, 125)
        own = self.daemon.submit(command=["/bin/sleep", "1000"], uid=drover.NOBODY)
        self.daemon.wait_until_running(own)
        self.assertEqual(self.exec(own, "--", "id", "-u", uid=drover.NOBODY).out, f"{drover.NOBODY}\n")
        self.assertEqual(self.exec(own, "--", "id", "-u").out, f"{drover.NOBODY}\n")

    def test_a_task_that_has_ended(self):
        self.daemon.stop_task(self.task, force=True)
        self.daemon.wait_until_final(self.task)
        self.assert_one_sentence(self.exec(self.task, "--", "true"), "killed")

    # A terminal

    def start_in_terminal(self, *command):
        return in_terminal.Terminal(self, self.daemon.cli_command("exec", "-it", self.task, "--", *command),
                                    env={**self.daemon.environment, "DROVER_SOCKET": str(self.daemon.socket)})

    def test_a_terminal_is_one_and_is_set_back(self):
        terminal = self.start_in_terminal("/bin/sh", "-c", 'stty size; read line; echo "got $line"; '
                                          'until stty size | grep "44 99"; do sleep 0.1; done; exit 5')
        terminal.read_until("33 101")
        terminal.type("hello\r")
        terminal.read_until("got hello")
        terminal.resize(44, 99)
        terminal.read_until("44 99")
        self.assertEqual(terminal.wait(), 5)
        self.assertTrue(terminal.is_set_back())

    def test_control_c_is_the_commands(self):
        terminal = self.start_in_terminal("/bin/sh", "-c", "trap 'echo caught; exit 6' INT; echo ready; "
                                          "while true; do sleep 0.1; done")
        terminal.read_until("ready")
        terminal.type("\x03")
        terminal.read_until("caught")
        self.assertEqual(terminal.wait(), 6)

    # The connection

    def connect(self, body):
        return in_terminal.Frames(self, f"/v1/tasks/{self.task}/exec", "drover-exec", body).assert_upgraded()

    def test_the_wire(self):
        connection = self.connect({"command": ["/bin/sh", "-c", "read a; echo got $a; echo e >&2; exit 4"]})
        connection.send(0, b"hi\n")
        frames = [connection.read()]
        while frames[-1][0] != 3:
            frames.append(connection.read())
        self.assertEqual(b"".join(text for channel, text in frames if channel == 1), b"got hi\n")
        self.assertEqual(b"".join(text for channel, text in frames if channel == 2), b"e\n")
        self.assertEqual(json.loads(frames[-1][1]), {"exit_status": 4})
        self.assertEqual(connection.connection.recv(1), b"")

    def test_the_command_ends_when_the_client_goes(self):
        connection = self.connect({"command": ["/bin/sh", "-c", "echo started; setsid sleep 98765 & sleep 98765"]})
        self.assertEqual(connection.read(), (1, b"started\n"))
        connection.connection.close()

        def gone():
            return not [pid for pid in os.listdir("/proc") if pid.isdigit() and self.sleeps(pid)]

        drover.wait_for(gone, "the command to end with its client")

    @staticmethod
    def sleeps(pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return file.read() == b"sleep\x0098765\x00"
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ESRCH):
                return False
            raise

    def test_without_an_upgrade_it_is_refused(self):
        with self.assertRaises(drover.ApiError) as refused:
            self.daemon.api("POST", f"/v1/tasks/{self.task}/exec", {"command": ["true"]})
        self.assertEqual(refused.exception.status, 400)
