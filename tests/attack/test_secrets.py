"""The secrets of TCP: who could hear or guess them, and whom they let in."""

import base64
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest

from attack import attack
import drover

AF_PACKET, RAW, ALL_PROTOCOLS = 17, 3, 0x0300


class SecretsTest(attack.AttackTest):
    arguments = ("--listen", "127.0.0.1:0")
    profile = "k40m"

    def ask(self, secret, header="Authorization", more=()):
        port = int(re.search(r"http://127\.0\.0\.1:(\d+)", self.daemon.read_log()).group(1))
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=drover.PATIENCE)
        self.addCleanup(connection.close)
        connection.request("GET", "/v1/tasks", headers={header: f"Bearer {secret}", **dict(more)})
        return connection.getresponse().status

    def test_root_in_an_image_listens_to_loopback(self):
        """He has the machine's network, and root there could hear every secret."""
        _, output, _ = self.attempt(None, ["/usr/bin/python3", "-c",
                                           f"import socket\ntry:\n  socket.socket({AF_PACKET}, {RAW}, {ALL_PROTOCOLS})\n  print('hears')\n"
                                           "except OSError as error:\n  print(error.errno)"])
        self.assertIn(output.strip(), ("1", "97"))
        _, output, _ = self.attempt(None, ["/probe", "show", "/proc/self/status"], image=self.image("status"))
        self.assertEqual(int(re.search(r"CapEff:\s*(\S+)", output).group(1), 16) >> 13 & 1, 0)

    def test_secrets_that_are_guessed_are_told_with_their_address(self):
        self.assertEqual([self.ask("0" * 31 + str(digit)) for digit in range(3)], [401] * 3)
        told = re.findall(r"A wrong secret came from (\S+)", self.daemon.read_log())
        self.assertEqual(told, ["127.0.0.1"], "once a minute, however many there are")
        self.assertNotIn("0" * 31, self.daemon.read_log())

    def test_a_secret_of_another_on_the_socket(self):
        """There the kernel says who comes, whatever a request says."""
        secret = re.search(r"^root:(\S+)$", (self.daemon.state / "credentials").read_text(), re.MULTILINE)[1]
        task = self.daemon.submit("sleep", "600")
        self.addCleanup(self.daemon.end_tasks)
        self.daemon.wait_until_running(task)
        for header in ("Authorization", "Drover-Authorization"):
            with self.subTest(header=header):
                for method, path in (("GET", f"/v1/tasks/{task}"), ("POST", f"/v1/tasks/{task}/stop"), ("PUT", "/v1/queues/mine")):
                    status, _, data = self.daemon.request(method, path, {} if method != "GET" else None, uid=self.mallory.uid,
                                                          headers={header: f"Bearer {secret}"})
                    self.assertIn(status, (403, 404), data)
                made = json.loads(self.daemon.request("POST", "/v1/tasks", {"command": [str(self.daemon.probe), "exit", "0"]},
                                                      uid=self.mallory.uid, headers={header: f"Bearer {secret}"})[2])
                self.assertEqual(made["task"]["user"]["name"], self.mallory.name)
        self.assertEqual(self.daemon.task(task)["state"], "running")

    def test_two_secrets_in_one_request(self):
        """What a proxy has looked at is not another than the daemon looks at."""
        secret = re.search(r"^root:(\S+)$", (self.daemon.state / "credentials").read_text(), re.MULTILINE)[1]
        for right, wrong in (("Authorization", "Drover-Authorization"), ("Drover-Authorization", "Authorization")):
            self.assertEqual(self.ask(secret, right, {wrong: f"Bearer {'0' * 32}"}), 401)
            self.assertEqual(self.ask(secret, right), 200)

    def test_daemons_that_nobody_should_start(self):
        attempts = {"Everybody on this machine would be root": ("--listen", "127.0.0.1:0", "--anonymous", "root"),
                    "is not a loopback address": ("--listen", "0.0.0.0:0"),
                    "on a loopback address only": ("--listen", "0.0.0.0:0", "--insecure-listen", "--anonymous", "nobody"),
                    "the daemon does not listen there": ("--insecure-listen",)}
        for why, arguments in attempts.items():
            with self.subTest(arguments):
                folder = pathlib.Path(tempfile.mkdtemp(prefix="drover-test-"))
                self.addCleanup(shutil.rmtree, folder)
                ran = drover.run([drover.BINARY, "serve", "--state", folder / "state", "--socket", folder / "run/socket", "--simulate",
                                  "k40m", *arguments])
                self.assertNotEqual(ran.status, 0)
                self.assertIn(why, ran.err)


class ReaderTest(attack.AttackTest):
    """Whoever has the secret that Prometheus shows, and wants more than metrics."""

    arguments = ("--listen", "127.0.0.1:0")
    profile = "k40m"
    secret = "what-prometheus-shows"
    # What strangers are told, too.
    OPEN = {("GET", "/health"), ("GET", "/v1/schemas/{name}"), ("GET", "/ui"), ("GET", "/ui/{file}"), ("GET", "/v1/socket")}
    # Of other APIs.
    MORE = {("GET", "/v2/apps"), ("POST", "/v2/apps"), ("DELETE", "/v2/apps/web"), ("GET", "/v2/info"), ("GET", "/v2/events"), ("GET", "/metrics"),
            ("GET", "/v1/scheduler/jobs"), ("POST", "/v1/scheduler/iso8601"), ("GET", "/master/state"), ("GET", "/metrics/snapshot"),
            ("POST", "/api/v1"), ("POST", "/api/v1/scheduler"), ("POST", "/api/v1/executor")}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.port = int(re.search(r"http://127\.0\.0\.1:(\d+)", cls.daemon.read_log()).group(1))
        with open(cls.daemon.state / "credentials", "a") as credentials:
            credentials.write(f"@metrics:{cls.secret}\n")
        drover.wait_for(lambda: cls.ask("GET", "/v1/metrics")[0] == 200, "the secret to count")

    @classmethod
    def ask(cls, method, path, headers=None, body=None, secret=None):
        connection = http.client.HTTPConnection("127.0.0.1", cls.port, timeout=drover.PATIENCE)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"Authorization": f"Bearer {secret or cls.secret}", "Content-Type": "application/json",
                                                    **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def test_he_is_told_what_root_is_told(self):
        task = self.daemon.submit("sleep", "600", gpus=1)
        self.addCleanup(self.daemon.end_tasks)
        self.daemon.wait_until_running(task)
        basic = "Basic " + base64.b64encode(f"@metrics:{self.secret}".encode()).decode()
        for headers in ({}, {"Authorization": basic}, {"Drover-Authorization": f"Bearer {self.secret}", "Host": "a.proxy"}):
            status, page = self.ask("GET", "/v1/metrics", headers)
            self.assertEqual(status, 200, page)
            self.assertIn(f'task_id="{task}"', page)
            self.assertIn('drover_tasks{state="running"} 1\n', page)

    def test_he_gets_nothing_else(self):
        described = (drover.ROOT / "docs/openapi.yaml").read_text().partition("\npaths:")[2].partition("\ncomponents:")[0]
        routes = {(method.upper(), path.split(":")[0]) for path in re.split(r"^  (?=/)", described, flags=re.MULTILINE)[1:]
                  for method in re.findall(r"^    (get|put|post|patch|delete):", path, re.MULTILINE)}
        self.assertGreater(len(routes), 40)
        before = self.daemon.api("GET", "/v1/export")
        for method, path in sorted(routes - self.OPEN - {("GET", "/v1/metrics")} | self.MORE):
            with self.subTest(method=method, path=path):
                status, answer = self.ask(method, path.replace("...}", "}").replace("{", "").replace("}", ""), {"Connection": "Upgrade", "Upgrade": "drover-exec"},
                                          None if method == "GET" else '{"command": ["true"], "force": true}')
                self.assertEqual(status, 403, answer)
                self.assertIn("The secret of a metrics reader is good for GET /v1/metrics alone", answer)
        self.assertEqual((self.daemon.tasks(), self.daemon.api("GET", "/v1/export")), ([], before))
        for method in ("POST", "PUT", "DELETE"):
            self.assertEqual(self.ask(method, "/v1/metrics")[0], 405)
        self.assertNotIn("problems", self.ask("GET", "/health")[1], "as a stranger")

    def test_the_command_line_says_so(self):
        ran = drover.run([drover.BINARY, "ps", "--host", f"http://127.0.0.1:{self.port}"], env={**os.environ, "DROVER_TOKEN": self.secret})
        self.assert_one_sentence(ran, "good for GET /v1/metrics alone")

    def test_no_user_goes_by_a_name_like_that(self):
        for line in ("@root:another-secret-of-roots", "@metrics2:another-secret-of-roots"):
            file = self.daemon.state / "credentials"
            before = file.read_text()
            file.write_text(before + line + "\n")
            name = line.split(":")[0]
            drover.wait_for(lambda: f"is for '{name}', and the only such name is @metrics" in self.daemon.read_log(), "the mistake to be told")
            file.write_text(before)
            self.assertEqual(self.ask("GET", "/v1/metrics", secret="another-secret-of-roots")[0], 401)
            self.assertEqual(self.ask("GET", "/v1/metrics")[0], 200)


class OpenTest(attack.AttackTest):
    arguments = ("--listen", "0.0.0.0:0", "--insecure-listen")
    profile = "k40m"

    def test_who_says_so_listens_everywhere(self):
        self.assertRegex(self.daemon.read_log(), r"Serving on http://0\.0\.0\.0:\d+")


class SocketTest(attack.AttackTest):
    """A task without an image does not meet the daemon's socket, also after a restart, wherever that is."""

    profile = "k40m"

    def test_the_socket_of_a_daemon_that_was_started_again(self):
        self.assertNotEqual(self.daemon.socket.parent, pathlib.Path("/run/drover"))
        task = self.submit(self.mallory, ["/bin/sleep", "600"])
        self.daemon.wait_until_running(task)
        look = ["exec", task, "--", "/bin/sh", "-c", f"test -S {self.daemon.socket} && echo there || echo hidden"]
        self.assertEqual(self.cli(self.mallory, *look).out, "hidden\n")
        self.daemon.stop()
        self.daemon.start()
        self.assertEqual(self.cli(self.mallory, *look).out, "hidden\n")
        self.daemon.stop_task(task, force=True)
        self.daemon.wait_until_final(task)

    def test_the_state_folder_under_another_name_as_a_volume(self):
        """A bind mount of the administrator's, of the folder itself, of one in it and of one around it."""
        for source, wanted in ((self.daemon.state, ""), (self.daemon.state / "tasks", ""), (self.daemon.folder, "state"),
                               (self.daemon.state, "..")):
            place = attack.make_folder(self.ground / "places" / f"{source.name}{len(wanted)}")
            attack.mount_folder(self, source, place)
            volume = place.parent if wanted == ".." else place / wanted
            with self.subTest(source=source, volume=volume):
                record, _, _ = self.attempt(None, ["/bin/true"], volumes=[{"container_path": "v", "host_path": str(volume)}])
                self.assert_refused(record, "Drover keeps its own files")


if __name__ == "__main__":
    unittest.main()
