"""Marathon's apps, Chronos' jobs and ports: what their definitions could ask for beyond their user's rights."""

import http.server
import threading

import drover
from attack import attack

PARAMETERS = (("privileged", "true"), ("device", "/dev/nvidia0"), ("cap-add", "SYS_ADMIN"), ("security-opt", "seccomp=unconfined"),
              ("pid", "host"), ("ipc", "host"), ("uts", "host"), ("userns", "host"), ("network", "host"), ("volume", "etc:/data"), ("add-host", "a:1.2.3.4"),
              ("volumes-from", "x"), ("mount", "type=bind,src=/etc,dst=/e"), ("runtime", "nvidia"), ("gpus", "all"), ("user", "0"),
              ("cgroup-parent", "/"), ("device-cgroup-rule", "c 195:* rwm"), ("group-add", "42"), ("sysctl", "kernel.msgmax=1"),
              ("tmpfs", "/dev"), ("oom-kill-disable", "true"))


class ServiceTest(attack.AttackTest):
    def post(self, path, body, user=None):
        status, _, answer = self.daemon.request("POST", path, body, uid=(user or self.mallory).uid)
        return status, answer.decode()

    def app(self, **fields):
        return self.post("/v2/apps", {"id": "/mallory", "cmd": "true", "instances": 0, "mem": 64, "cpus": 0.1, **fields})

    def test_parameters_of_docker(self):
        for key, value in PARAMETERS:
            container = {"type": "DOCKER", "docker": {"image": "x", "parameters": [{"key": key, "value": value}]}}
            job = {"name": "mallory", "schedule": "R1//PT1H", "command": "true", "container": {**container["docker"], "type": "DOCKER"}}
            with self.subTest(parameter=key):
                self.assertEqual(self.app(container=container)[0], 422)
                self.assertEqual(self.post("/v1/scheduler/iso8601", job)[0] // 100, 4)

    def test_users_that_mallory_is_not(self):
        for name in ("root", "victim", "0", str(self.victim.uid)):
            with self.subTest(user=name):
                self.assertIn(self.app(user=name)[0], (403, 422))
                job = {"name": "mallory", "schedule": "R1//PT1H", "command": "true", "runAsUser": name}
                self.assertIn(self.post("/v1/scheduler/iso8601", job)[0], (400, 403, 422))

    def test_ids_that_climb(self):
        for name in ("/..", "/.", "//", "/A", "/a b", "/a\nb", "/" + "a" * 5000, "/a/%2e%2e/b", "/\x1b[2J", "/a\0"):
            with self.subTest(id=name[:20]):
                self.assertEqual(self.app(id=name)[0], 422)
        for name in ("../x", "a/b", "a\nb", "a b\x1b[2J", "x" * 5000, "", "."):
            with self.subTest(job=name[:20]), self.unchanged(self.ground, self.victim.home):
                job = {"name": name, "schedule": "R/2999-01-01T00:00:00Z/PT1H", "command": "true"}
                status, _ = self.post("/v1/scheduler/iso8601", job)
                self.assertIn(status, (200, 201, 204, 400, 422))

    def test_folders_of_the_machine_named_without_a_slash(self):
        for path in ("../../../../etc", "..", "data", "etc", "~root", "$HOME", "."):
            with self.subTest(path=path):
                volume = {"containerPath": "v", "hostPath": path, "mode": "RW"}
                status, answer = self.app(container={"type": "MESOS", "volumes": [volume]}, cmd="ls v")
                self.assertEqual(status, 422, answer)

    def test_somebody_elses_app(self):
        status, answer = self.post("/v2/apps", {"id": "/theirs", "cmd": "sleep 600", "instances": 0, "mem": 64}, self.victim)
        self.assertEqual(status, 201, answer)
        self.addCleanup(self.daemon.api, "DELETE", "/v2/apps/theirs?force=true")
        for method, path, body in (("PUT", "/v2/apps/theirs", {"cmd": "evil"}), ("DELETE", "/v2/apps/theirs", None),
                                   ("POST", "/v2/apps/theirs/restart", {}), ("GET", "/v2/apps/theirs", None),
                                   ("PUT", "/v2/groups", {"id": "/", "apps": []}), ("GET", "/v2/apps/theirs/versions", None),
                                   ("DELETE", "/v2/groups//theirs", None), ("PUT", "/v2/apps//theirs?force=true", {"cmd": "evil"}),
                                   ("PATCH", "/v2/apps", [{"id": "/theirs", "cmd": "evil"}]), ("POST", "/v2/tasks/delete", {"ids": ["theirs.x"]})):
            with self.subTest(method=method, path=path):
                status, _, answer = self.daemon.request(method, path, body, uid=self.mallory.uid)
                self.assertNotIn("sleep 600", answer.decode())
        (app,) = [app for app in self.daemon.api("GET", "/v2/apps")["apps"] if app["id"] == "/theirs"]
        self.assertEqual(app["cmd"], "sleep 600")

    def test_ports_that_only_root_has(self):
        for port in (22, 80, 443, 1023):
            with self.subTest(port=port):
                network = {"mode": "bridge", "ports": [{"container_port": 8080, "host_port": port}]}
                with self.assertRaises(drover.ApiError) as refused:
                    self.submit(self.mallory, ["/bin/true"], network=network)
                self.assertIn(str(port), str(refused.exception))
        status, _ = self.app(networks=[{"mode": "container/bridge"}], container={
            "type": "MESOS", "portMappings": [{"containerPort": 8080, "hostPort": 443}]})
        self.assertEqual(status // 100, 4)

    def test_a_priority_of_ones_own(self):
        with self.assertRaises(drover.ApiError) as refused:
            self.submit(self.mallory, ["/bin/true"], priority=1)
        self.assertIn("priority", str(refused.exception))

    def test_the_machines_own_loopback_from_a_network_of_ones_own(self):
        class Private(http.server.BaseHTTPRequestHandler):
            asked = False

            def do_GET(self):
                Private.asked = True
                self.send_response(200)
                self.end_headers()

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Private)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        script = f"""
import socket
for host in ("127.0.0.1", "10.0.2.2", "10.0.2.3", "10.0.2.1", "localhost", "::1", "0.0.0.0"):
    try:
        connection = socket.create_connection((host, {server.server_address[1]}), 3)
        connection.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
        connection.recv(9)
    except OSError as error:
        print(host, error)
"""
        record, output, errors = self.attempt(self.mallory, ["/usr/bin/python3", "-c", script], network={"mode": "bridge"})
        self.assertEqual(record["state"], "finished", errors)
        self.assertFalse(Private.asked, output)
        self.assertIn("10.0.2.2", output)
