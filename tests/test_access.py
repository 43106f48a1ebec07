"""Nobody gets in who does not belong, and nobody reaches another's tasks."""

import base64
import http.client
import json
import pathlib
import re
import shutil
import stat
import tempfile
import unittest

import drover

OTHER = 65533


class OwnTasksTest(drover.DaemonTest):
    def setUp(self):
        self.task = self.daemon.submit("say", "secret", ",", "sleep", 600, uid=drover.NOBODY, gpus=1)
        self.daemon.wait_for_output(self.task, "secret")
        self.addCleanup(self.daemon.end_tasks)

    def test_another_user_can_neither_see_nor_read_nor_stop_a_task(self):
        for method, path in (("GET", ""), ("GET", "/logs"), ("GET", "/explain"), ("GET", "/files/browse?path="),
                             ("GET", "/files/read?path=stdout&offset=0&length=10"), ("GET", "/files/download?path=stdout"),
                             ("POST", "/stop"), ("DELETE", "")):
            with self.subTest(method=method, path=path):
                status, _, data = self.daemon.request(method, f"/v1/tasks/{self.task}{path}", uid=OTHER)
                self.assertIn(status, (403, 404), data)
                self.assertNotIn(b"secret", data)
        self.assertEqual(self.daemon.task(self.task)["state"], "running")

    def test_listings_show_others_that_a_gpu_is_taken_but_not_by_which_task(self):
        self.assertEqual(self.daemon.tasks(uid=OTHER), [])
        self.assertEqual([record["task"]["id"] for record in self.daemon.tasks(uid=drover.NOBODY)][-1:], [self.task])
        used = [gpu["used_by"] for gpu in self.daemon.api("GET", "/v1/gpus", uid=OTHER)["gpus"] if gpu["used_by"]]
        self.assertTrue(used)
        self.assertNotIn(self.task, json.dumps(used))

    def test_the_cli_says_so(self):
        for command in ("stop", "logs", "explain"):
            with self.subTest(command=command):
                self.assert_one_sentence(self.daemon.cli(command, self.task, uid=OTHER))

    def test_owner_and_root_may(self):
        self.assertEqual(self.daemon.output(self.task, uid=drover.NOBODY), "secret\n")
        self.assertEqual(self.daemon.output(self.task), "secret\n")
        self.assertEqual(self.daemon.stop_task(self.task, uid=drover.NOBODY)["task"]["id"], self.task)

    def test_the_state_folder_is_closed_to_others(self):
        for name in ("state.db", "images"):
            mode = stat.S_IMODE((self.daemon.state / name).stat().st_mode)
            self.assertEqual(mode & 0o077, 0, f"{name}: {mode:o}")
        sandbox = self.daemon.state / "tasks" / self.task / "sandbox"
        self.assertEqual(sandbox.stat().st_uid, drover.NOBODY)
        self.assertEqual(stat.S_IMODE(sandbox.stat().st_mode) & 0o077, 0)


class TcpTest(drover.DaemonTest):
    profile = "k40m"
    arguments = ("--listen", "127.0.0.1:0")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.port = int(re.search(r"127\.0\.0\.1:(\d+)", cls.daemon.read_log()).group(1))
        credentials = (cls.daemon.state / "credentials").read_text()
        cls.user, cls.secret = re.search(r"^(\w+):(\S+)$", credentials, re.MULTILINE).groups()

    def ask(self, headers=None, path="/v1/tasks", method="GET", body=None, host=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=drover.PATIENCE)
        connection.putrequest(method, path, skip_host=True)
        sent = {"Host": host or f"127.0.0.1:{self.port}", "Content-Length": str(len(body or "")), **(headers or {})}
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.endheaders((body or "").encode())
        response = connection.getresponse()
        data = response.read()
        connection.close()
        return response.status, data

    def bearer(self, secret=None):
        return {"Authorization": f"Bearer {secret or self.secret}"}

    def basic(self, user, secret):
        return {"Authorization": "Basic " + base64.b64encode(f"{user}:{secret}".encode()).decode()}

    def test_nobody_gets_in_without_a_secret(self):
        for headers in ({}, self.bearer("wrong-" + self.secret), self.bearer(self.secret[:-1]), self.basic(self.user, "drover"),
                        self.basic("", ""), {"Authorization": "Bearer "}, {"Authorization": "Negotiate x"}):
            with self.subTest(headers=headers):
                status, data = self.ask(headers)
                self.assertEqual(status, 401, data)
                status, data = self.ask(headers, method="POST", body='{"command": ["true"]}')
                self.assertEqual(status, 401, data)
        self.assertEqual(self.daemon.tasks(), [])

    def test_the_secret_opens(self):
        for headers in (self.bearer(), self.basic(self.user, self.secret)):
            status, data = self.ask(headers)
            self.assertEqual(status, 200, data)

    def test_strangers_learn_that_the_daemon_lives_and_no_more(self):
        status, data = self.ask(path="/health")
        self.assertEqual(status, 200)
        self.assertNotIn("problems", json.loads(data))

    def test_other_hosts_and_origins_are_refused(self):
        status, data = self.ask(self.bearer(), host="evil.example")
        self.assertIn(status, (400, 403, 421), data)
        status, data = self.ask({**self.bearer(), "Origin": "http://evil.example"})
        self.assertEqual(status, 403, data)

    def test_a_change_of_the_credentials_counts_at_once(self):
        file, other = self.daemon.state / "credentials", "another-secret-of-root"
        before = file.read_text()
        self.addCleanup(file.write_text, before)

        def becomes(secret, status):
            drover.wait_for(lambda: self.ask(self.bearer(secret))[0] == status, f"'{secret}' to be answered with {status}")

        with file.open("a") as credentials:
            credentials.write(f"root:{other}\n")
        becomes(other, 200)
        with file.open("a") as credentials:
            credentials.write("no secret\n")
        drover.wait_for(lambda: "the secrets that were read before stay" in self.daemon.read_log(), "the mistake to be told")
        self.assertEqual(self.ask(self.bearer(other))[0], 200)
        replacement = file.with_name("credentials.new")
        replacement.touch(0o600)
        replacement.write_text(before)
        replacement.rename(file)
        becomes(other, 401)
        self.assertEqual(self.ask(self.bearer())[0], 200)
        self.assertNotIn(other, self.daemon.read_log())

    def test_the_credentials_are_for_the_daemons_user_alone(self):
        file = self.daemon.state / "credentials"
        self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)
        self.assertGreaterEqual(len(self.secret), 16)
        self.assertNotIn(self.secret, self.daemon.read_log())


class AnonymousTest(drover.DaemonTest):
    profile = "k40m"
    arguments = ("--listen", "127.0.0.1:0", "--anonymous", "nobody", "--host-name", "marathon.mesos")

    def setUp(self):
        self.port = int(re.search(r"http://127\.0\.0\.1:(\d+)", self.daemon.read_log()).group(1))

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=drover.PATIENCE)
        self.addCleanup(connection.close)
        connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json", **headers})
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def test_who_shows_no_secret_is_that_user_and_no_more(self):
        roots = self.daemon.submit("sleep", 600)
        self.addCleanup(self.daemon.stop_task, roots, force=True)
        status, made = self.ask("POST", "/v1/tasks", {"command": [str(self.daemon.probe), "id"]})
        self.assertEqual(status, 201, made)
        self.assertEqual(made["task"]["user"]["uid"], drover.NOBODY)
        self.assertEqual([record["task"]["id"] for record in self.ask("GET", "/v1/tasks")[1]["tasks"]], [made["task"]["id"]])
        self.assertEqual(self.ask("POST", f"/v1/tasks/{roots}/stop", {})[0], 404)
        self.assertEqual(self.ask("GET", "/v1/tasks", Authorization="Bearer " + "x" * 32)[0], 401)
        self.assertEqual(self.ask("GET", "/v1/tasks", Origin="http://elsewhere.example")[0], 403)

    def test_the_daemon_goes_by_further_names_when_it_is_told_to(self):
        for host in ("marathon.mesos", f"marathon.mesos:{self.port}", "127.0.0.1"):
            self.assertEqual(self.ask("GET", "/v2/apps", Host=host)[0], 200, host)
        self.assertEqual(self.ask("GET", "/v2/apps", Host=f"leader.mesos:{self.port}")[0], 403)

    def test_it_is_refused_where_strangers_could_come(self):
        for arguments in (("--anonymous", "nobody", "--listen", "0.0.0.0:0"), ("--anonymous", "nobody"),
                          ("--anonymous", "no-such-user", "--listen", "127.0.0.1:0"), ("--host-name", "a"),
                          ("--host-name", "a:80", "--listen", "127.0.0.1:0")):
            with self.subTest(arguments):
                folder = pathlib.Path(tempfile.mkdtemp(prefix="drover-test-"))
                self.addCleanup(shutil.rmtree, folder)
                ran = drover.run([drover.BINARY, "serve", "--state", folder / "state", "--socket", folder / "socket",
                                  "--simulate", "k40m", *arguments], timeout=drover.PATIENCE)
                self.assertNotEqual(ran.status, 0)
                self.assertIn(arguments[0], ran.err)


if __name__ == "__main__":
    unittest.main()
