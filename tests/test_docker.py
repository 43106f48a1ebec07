"""What is the Docker Engine's own, and who of two containerizers gets a task."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import tempfile
import threading
import unittest

import docker_engine
import drover
import registries
import test_variants


class DockerDaemonTest(drover.DaemonTest):
    """A daemon with both containerizers, and an engine of its own."""

    containerizers = "docker,oci"
    more = ()
    live_restore = False
    options = ()  # of the engine

    @classmethod
    def setUpClass(cls):
        cls.engine = docker_engine.Engine(cls.live_restore, cls.options)
        cls.addClassCleanup(cls.engine.close)
        cls.arguments = ("--containerizers", cls.containerizers, "--docker-socket", cls.engine.socket, *cls.more)
        super().setUpClass()
        cls.layout = drover.make_probe_image(cls.daemon.folder / "image", cls.daemon.probe)
        cls.image = cls.engine.load("drover-test/image:1", cls.layout)

    def submit(self, *words, **fields):
        fields.setdefault("image", self.image)
        return self.daemon.submit(command=["/probe", *(str(word) for word in words)], **fields)

    def start(self, *words, **fields):
        task = self.submit("say", "up", ",", *words, **fields)
        self.daemon.wait_for_output(task, "up")
        return task

    def containerizer_of(self, **fields):
        task = self.submit("exit", 0, **fields)
        return self.daemon.wait_until_final(task).get("containerizer")


class DockerTest(DockerDaemonTest):
    more = ("--allow-privileged",)

    def test_a_container_removed_behind_our_back_gives_its_gpus_back(self):
        task = self.start("sleep", 600, gpus=2)
        self.assertEqual(len(self.daemon.held_gpus()), 2)
        self.engine.request("DELETE", f"/containers/drover-{task}?force=true")
        record = self.daemon.wait_until_final(task)
        self.assertEqual((record["state"], record["exit_status"]), ("failed", 137), record)
        self.assertIn("removed from the Docker Engine by somebody else", record["reason"])
        self.assertEqual(self.daemon.leaks([task]), [])

    def test_a_container_killed_behind_our_back_says_so(self):
        task = self.start("sleep", 600, gpus=1)
        self.engine.request("POST", f"/containers/drover-{task}/kill")
        record = self.daemon.wait_until_final(task)
        self.assertEqual((record["state"], record["exit_status"]), ("failed", 137), record)
        self.assertIn("which somebody sent through the Docker Engine", record["reason"])
        self.assertEqual(self.daemon.leaks([task]), [])

    def test_the_container_carries_the_task_s_labels_and_limits(self):
        task = self.start("sleep", 600, cpus=0.5, memory="64MiB")
        container = self.engine.container_of(task)
        host = container["HostConfig"]
        self.assertEqual(container["Name"], f"/drover-{task}")
        self.assertEqual(container["Config"]["Labels"]["drover.attempt"], "0")
        self.assertEqual((host["Memory"], host["CpuQuota"], host["CpuPeriod"]), (64 << 20, 50_000, 100_000))
        self.assertEqual((host["NetworkMode"], host["Privileged"], host["SecurityOpt"]), ("host", False, ["no-new-privileges"]))
        self.assertEqual(host["RestartPolicy"]["Name"], "no")
        self.daemon.stop_task(task, force=True)
        self.daemon.wait_until_final(task)
        self.assertEqual(self.engine.containers(), [])

    def test_without_the_machine_s_driver_nothing_of_it_is_mounted(self):
        library = f"libcuda.so.{self.daemon.api('GET', '/v1/gpus')['driver_version']}"
        layout = drover.make_probe_image(self.daemon.folder / "wanting", self.daemon.probe, files={f"usr/lib64/{library}": b"a library"},
                                         links={"usr/lib64/libcuda.so.1": library},
                                         labels={"com.nvidia.volumes.needed": "nvidia_driver"})
        image = self.engine.load("drover-test/wanting:1", layout)
        for driver, mounted in (("host", True), ("none", False)):
            task = self.start("sleep", 600, image=image, gpus=1, driver=driver)
            container = self.engine.container_of(task)
            self.assertEqual("/usr/local/nvidia" in [mount["Destination"] for mount in container["Mounts"]], mounted, driver)
            paths = next(word for word in container["Config"]["Env"] if word.startswith("PATH="))
            self.assertEqual("/usr/local/nvidia" in paths, mounted, driver)
            self.daemon.stop_task(task, force=True)
            self.daemon.wait_until_final(task)

    def test_an_image_that_nobody_has_is_one_sentence(self):
        ran = self.daemon.cli("run", "--image", "127.0.0.1:1/no/such:1")
        self.assert_one_sentence(ran, "could not pull '127.0.0.1:1/no/such:1'")
        ran = self.daemon.cli("run", "--image", "no such?name")
        self.assert_one_sentence(ran, "cannot be the name of an image")

    def test_who_runs_a_task_follows_from_its_type_and_its_image(self):
        self.assertEqual(self.containerizer_of(), "docker")
        self.assertEqual(self.containerizer_of(container_type="docker"), "docker")
        self.assertEqual(self.containerizer_of(image=self.layout), "oci")
        self.assertEqual(self.containerizer_of(image=self.layout, container_type="mesos"), "oci")
        bare = self.daemon.submit("exit", 0)
        self.assertEqual(self.daemon.wait_until_final(bare)["containerizer"], "oci")
        ran = self.daemon.cli("run", "--containerizer", "docker", "--image", self.image)
        self.assertEqual((ran.status, ran.out), (0, "hello from the image\n"), ran)

    def test_definitions_say_their_type_as_marathon_and_chronos_do(self):
        app = {"id": "/typed", "cmd": "/probe sleep 600", "cpus": 0.1, "mem": 32, "instances": 1}
        for kind, image in (("DOCKER", self.image), ("MESOS", self.layout)):
            container = {"type": kind, "docker": {"image": image}}
            self.daemon.api("POST", "/v2/apps", {**app, "cmd": None, "args": ["/probe", "sleep", "600"], "container": container})
            record = drover.wait_for(lambda: next((r for r in self.daemon.tasks() if r["state"] == "running"), None),
                                     "the app's instance to run")
            self.assertEqual(record["containerizer"], "docker" if kind == "DOCKER" else "oci", record)
            self.daemon.api("DELETE", "/v2/apps/typed?force=true")
            self.daemon.wait_until_final(record["task"]["id"])

    def test_a_privileged_container_sees_every_device_where_that_is_allowed(self):
        made = ["mknod", "/tmp/made", 195, 0]
        ran = self.daemon.run_probe(["--privileged"], *made)
        self.assert_one_sentence(ran, "Only containers of a Docker Engine can be privileged")
        self.assertEqual(self.daemon.run_probe([], *made, image=self.image).out, "EPERM\n")
        ran = self.daemon.run_probe(["--privileged"], *made, image=self.image)
        if "unable to apply caps" in ran.err:
            self.skipTest("this machine's root has not all capabilities, so no container can have them")
        self.assertEqual(ran.out, "ENXIO\n", ran)

    def test_a_terminal_of_a_joined_command_has_the_size_asked_for(self):
        task = self.start("sleep", 600)
        with contextlib.closing(ExecConnection(self.daemon, task, ["/probe", "say", "hello"], rows=33, columns=99)) as joined:
            self.assertEqual(joined.read_all(), (b"hello\r\n", 0))
        self.daemon.stop_task(task, force=True)
        self.daemon.wait_until_final(task)


@unittest.skipUnless(registries.PROGRAM, "needs the package docker-registry")
class SlowRuntimeTest(DockerDaemonTest):
    """An engine on a machine that is so loaded that it takes long until a command has joined a container."""

    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="drover-slow-"))
        cls.addClassCleanup(shutil.rmtree, folder)
        runtime = folder / "runtime"
        runtime.write_text('#!/bin/sh\ncase " $* " in *" exec "*) sleep 12 ;; esac\nexec runc "$@"\n')
        runtime.chmod(0o755)
        cls.options = ("--add-runtime", f"slow={runtime}", "--default-runtime", "slow")
        super().setUpClass()

    def test_a_command_that_joins_late_runs_all_the_same(self):
        if self.engine.given:
            self.skipTest("the engine that is given has its own runtime")
        task = self.start("sleep", 600)
        ran = self.daemon.cli("exec", task, "--", "/probe", "say", "joined")
        self.assertEqual((ran.status, ran.out), (0, "joined\n"), ran)


class PullTest(DockerDaemonTest):
    """What the engine pulls for tasks, from registries of this machine."""

    kind_of_daemon = registries.DaemonWithHomes

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.open = cls.start_registry("open")
        cls.private = cls.start_registry("private", private=True)
        for registry in (cls.open, cls.private):
            registry.push(cls.layout, "tool:1")

    @classmethod
    def start_registry(cls, name, **options):
        registry = registries.RealRegistry(cls.daemon.folder / name, **options)
        cls.addClassCleanup(registry.close)
        return registry

    def setUp(self):
        self.addCleanup(self.forget, f"{self.open.host}/tool:1", f"{self.private.host}/tool:1")
        for user in ("root", "nobody"):
            self.addCleanup(self.daemon.log_out, user)

    def forget(self, *images):
        for image in images:
            self.engine.request("DELETE", f"/images/{image}?force=true")

    def run_image(self, registry, *options, uid=None):
        return self.daemon.cli("run", *options, "--image", f"{registry.host}/tool:1", uid=uid)

    def assert_says_hello(self, ran):
        self.assertEqual((ran.status, ran.out), (0, "hello from the image\n"), ran)

    def test_the_registry_is_asked_as_often_as_was_said(self):
        registry = self.start_registry("short-lived")
        registry.push(self.layout, "tool:1")
        self.assert_one_sentence(self.run_image(registry, "--pull", "never"), "does not have the image")
        self.assert_says_hello(self.run_image(registry))
        registry.close()
        self.assert_says_hello(self.run_image(registry))
        self.assert_says_hello(self.run_image(registry, "--pull", "never"))
        self.assert_one_sentence(self.run_image(registry, "--pull", "always"), "could not pull")
        self.forget(f"{registry.host}/tool:1")

    def test_the_engine_shows_what_its_user_has(self):
        self.assert_one_sentence(self.run_image(self.private), "could not pull", f"docker login {self.private.host}")
        self.daemon.log_in("root", self.private.host, password="wrong")
        denied = self.run_image(self.private)
        self.assert_one_sentence(denied, "could not pull", "docker login")
        self.daemon.log_in("root", self.private.host)
        self.assert_says_hello(self.run_image(self.private))
        self.assert_says_hello(self.run_image(self.private, "--pull", "always"))
        self.assert_one_sentence(self.run_image(self.private, "--pull", "always", uid=drover.NOBODY), "'nobody' has to log in")
        self.daemon.log_in("nobody", self.private.host)
        self.assert_says_hello(self.run_image(self.private, "--pull", "always", uid=drover.NOBODY))
        self.assertNotIn(registries.PASSWORD, self.daemon.read_log() + denied.err)

    def test_of_an_index_of_variants_the_engine_is_asked_for_the_one_that_fits(self):
        """The engine by itself would take the first of its platform, and another GPU's is the first."""
        images = test_variants.make_images(self.daemon.folder, self.daemon.probe, test_variants.TWO)
        self.open.push(test_variants.make_index(self.daemon.folder / "index", images, test_variants.TWO), "several:1", "--all")
        name = f"{self.open.host}/several:1"
        self.assert_one_sentence(self.daemon.cli("run", "--gpus", "1", "--pull", "never", "--image", name), "does not have the image")
        for policy in ("missing", "always", "never"):
            ran = self.daemon.cli("run", "--gpus", "1", "--pull", policy, "--image", name)
            self.assertEqual(ran.out, "ampere\n", ran)
        self.assert_one_sentence(self.daemon.cli("run", "--image", name), "none of its 2 variants fits", "volta: ", "ampere: ")

    def test_credentials_for_one_registry_are_not_shown_to_another(self):
        self.daemon.log_in("root", "other.example.com")
        self.assert_one_sentence(self.run_image(self.private), "could not pull", "docker login")

    def test_how_far_it_is_is_told(self):
        scripted = registries.ScriptedRegistry()
        self.addCleanup(scripted.close)
        files = {"probe": self.daemon.probe.read_bytes(), "etc/passwd": b"root:x:0:0:root:/:/probe\n"}
        name = scripted.tag("tool:1", scripted.images.image([registries.make_tar(files)], Cmd=["/probe", "say", "pulled"]))
        self.addCleanup(self.forget, name)
        told = threading.Event()
        self.addCleanup(told.set)
        scripted.on("/blobs/", lambda _: told.wait(drover.PATIENCE) and None)
        task = self.daemon.submit(image=name, command=["/probe", "say", "pulled"])
        drover.wait_for(lambda: f"pulling {name}" in str(self.daemon.task(task)), "the task to tell of the pull")
        told.set()
        self.daemon.wait_until_final(task)
        self.assertEqual(self.daemon.output(task), "pulled\n")


class ExecConnection:
    """POST /v1/tasks/{id}/exec with a terminal: docs/api.md has the frames."""

    def __init__(self, daemon, task, command, **size):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(drover.PATIENCE)
        self.socket.connect(str(daemon.socket))
        body = json.dumps({"command": command, "tty": True, **size}).encode()
        self.socket.sendall(f"POST /v1/tasks/{task}/exec HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
                            f"Upgrade: drover-exec\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
                            .encode() + body)
        self.stream = self.socket.makefile("rb")
        while self.stream.readline() not in (b"\r\n", b""):
            pass

    def read_all(self):
        """What it wrote, and its exit status."""
        output = b""
        while head := self.stream.read(5):
            payload = self.stream.read(int.from_bytes(head[1:], "big"))
            if head[0] == 3:
                return output, json.loads(payload)["exit_status"]
            output += payload
        return output, None

    def close(self):
        self.stream.close()
        self.socket.close()


class PolicyTest(DockerDaemonTest):
    containerizers = "oci,docker"
    live_restore = True

    def test_privileged_is_refused_unless_the_administrator_allows_it(self):
        ran = self.daemon.cli("run", "--privileged", "--containerizer", "docker", "--image", self.image)
        self.assert_one_sentence(ran, "they see all GPUs", "--privileged")
        container = {"type": "DOCKER", "docker": {"image": self.image, "privileged": True}}
        with self.assertRaises(drover.ApiError) as refused:
            self.daemon.api("POST", "/v2/apps", {"id": "/all", "instances": 1, "container": container})
        self.assertEqual(refused.exception.status, 422, refused.exception)
        self.assertIn("they see all GPUs", str(refused.exception))
        ran = self.daemon.cli("serve", "--state", self.daemon.folder / "other", "--allow-privileged")
        self.assert_one_sentence(ran, "--containerizers docker,oci")

    def test_the_first_of_the_configured_gets_what_names_no_type(self):
        self.assertEqual(self.containerizer_of(image=self.layout), "oci")
        self.assertEqual(self.containerizer_of(container_type="docker"), "docker")

    def setUp(self):
        if self.engine.given and "engine" in self.id().rpartition(".")[2]:
            self.skipTest("the engine is not the test's own to stop")

    def test_an_engine_that_restarts_is_waited_for_and_one_that_is_gone_is_told_of(self):
        task = self.start("sleep", 3, ",", "say", "meanwhile", ",", "sleep", 600, container_type="docker", gpus=1)
        self.engine.stop()
        ran = self.daemon.cli("run", "--containerizer", "docker", "--image", self.image)
        self.assert_one_sentence(ran, "No Docker Engine answers at", "--docker-socket")
        drover.wait_for(lambda: "trying again" in self.daemon.output(task, "stderr"), "the shim to say that it waits")
        self.assertEqual(len(self.daemon.held_gpus()), 1)
        self.assertEqual(self.daemon.task(task)["state"], "running")
        self.engine.start()
        drover.wait_for(lambda: "answers again" in self.daemon.output(task, "stderr"), "the shim to go on")
        self.daemon.wait_for_output(task, "meanwhile")
        self.assertEqual(self.daemon.output(task), "up\nmeanwhile\n")
        self.daemon.stop_task(task)
        record = self.daemon.wait_until_final(task)
        self.assertEqual((record["state"], record["exit_status"]), ("killed", 143), record)
        self.assertEqual(self.daemon.leaks([task]), [])
        self.assertEqual(self.engine.containers(), [])

    def test_what_is_written_while_an_engine_restarts_comes_once(self):
        lines = [str(i) for i in range(300)]
        task = self.start(*(word for line in lines for word in ("say", line, ",", "sleep", 0.01, ",")), "sleep", 0,
                          container_type="docker")
        self.engine.stop()
        self.engine.start()
        self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished")
        self.assertEqual(self.daemon.output(task).splitlines(), ["up", *lines])

    def test_what_an_engine_ends_with_itself_has_ended(self):
        task = self.start("sleep", 600, container_type="docker", gpus=1)
        self.engine.stop()
        os.kill(self.first_process_of(task), signal.SIGKILL)
        self.engine.start()
        record = self.daemon.wait_until_final(task)
        self.assertEqual((record["state"], record["exit_status"]), ("failed", 137), record)
        self.assertEqual(self.daemon.leaks([task]), [])

    def first_process_of(self, task):
        status = json.loads((self.daemon.state / "tasks" / task / "status.json").read_text())
        return status["running"]["pid"]


if __name__ == "__main__":
    unittest.main()
