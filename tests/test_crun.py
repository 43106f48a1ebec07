"""The other OCI runtime: what containers are with runc, they are with crun."""

import os
import pathlib
import shutil
import unittest

import drover
import in_terminal

UNIFIED = pathlib.Path("/sys/fs/cgroup/unified")


class CrunDaemon(drover.Daemon):
    """crun refuses a mix of both cgroup versions. Where there is one, the daemon and its tasks see v1 alone."""

    def command(self):
        if not UNIFIED.is_dir():
            return super().command()
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", f'umount {UNIFIED} && exec "$@"', "sh", *super().command()]


@unittest.skipIf(os.geteuid() != 0, "needs root: containers, devices and mounts are made for real")
@unittest.skipIf(shutil.which("crun") is None, "crun is not installed")
class CrunTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = CrunDaemon("k40m", ("--runtime", "crun")).start()
        cls.addClassCleanup(cls.close_daemon)
        cls.image = drover.make_probe_image(cls.daemon.folder / "image", cls.daemon.probe)

    @classmethod
    def close_daemon(cls):
        found = cls.daemon.close()
        if found:
            raise AssertionError("left behind:\n" + "\n".join(found))

    def test_it_is_the_one_that_is_used(self):
        (node,) = self.daemon.api("GET", "/v1/nodes")["nodes"]
        self.assertTrue(node["runtime"].startswith("crun "), node["runtime"])

    def test_a_container_has_its_gpu_and_no_more(self):
        for image in (None, self.image):
            with self.subTest(image=image):
                ran = self.daemon.run_probe(["--gpus", "1"], "devices", ",", "mknod", "/tmp/node", "195", "1", ",", "exit", "3", image=image)
                self.assertEqual(ran.status, 3, ran)
                devices, made = ran.out.splitlines()
                self.assertIn("nvidia0", devices.split())
                self.assertEqual(made, "mknod EPERM")
        self.assertEqual(self.daemon.run_probe([], "devices", image=self.image).out, "\n")

    def test_memory_is_limited(self):
        self.assertNotEqual(self.daemon.run_probe(["--mem", "32MiB"], "allocate", "256").status, 0)

    def test_what_cannot_be_run_is_told_as_with_runc(self):
        ran = self.daemon.cli("run", "--", "/no/such/program")
        self.assertEqual(ran.status, 125, ran)
        self.assertIn("There is no command '/no/such/program' in the container", ran.err)

    def test_tasks_outlive_the_daemon_and_can_be_entered_and_stopped(self):
        task = self.daemon.submit("append", "ran", "line", ",", "say", "up", ",", "sleep", 1000, gpus=1)
        self.daemon.wait_for_output(task, "up")
        self.daemon.kill()
        self.daemon.start()
        self.daemon.wait_until_running(task)
        self.assertEqual(self.daemon.cli("exec", task, "--", self.daemon.probe, "say", "inside").out, "inside\n")
        self.assertEqual(self.daemon.file(task, "ran"), "line\n")
        self.daemon.stop_task(task)
        self.assertEqual(self.daemon.wait_until_final(task)["state"], "killed")
        self.assertEqual(self.daemon.held_gpus(), {})

    def test_people_type_into_a_task_and_leave_it(self):
        settings = {"env": {**self.daemon.environment, "DROVER_SOCKET": str(self.daemon.socket), "TERM": "vt100"}}
        script = 'tty; echo "$TERM"; stty size; read a; echo got $a; read b; echo got $b; exit 3'
        first = in_terminal.Terminal(self, self.daemon.cli_command("run", "-it", "--", "sh", "-c", script), **settings)
        first.read_until("/dev/pts/0\r\nvt100\r\n33 101\r\n")
        first.type("one\n")
        first.read_until("got one")
        first.type("\x10\x11")  # Ctrl-P Ctrl-Q
        self.assertEqual(first.wait(), 0)
        (task,) = [record["task"]["id"] for record in self.daemon.tasks() if record["state"] == "running"]
        again = in_terminal.Terminal(self, self.daemon.cli_command("attach", task), **settings)
        again.type("two\n")
        again.read_until("got two")
        self.assertEqual(again.wait(), 3)

    def test_a_bridge_has_a_network_of_its_own(self):
        network = {"mode": "bridge", "ports": [{"container_port": 8080}]}
        task = self.daemon.submit("serve", 8080, "from inside", network=network)
        (port,) = self.daemon.wait_until_running(task)["ports"]
        drover.wait_for(lambda: drover.served_at(port) == "from inside", "an answer")
        self.daemon.stop_task(task, force=True)
        self.daemon.wait_until_final(task)


if __name__ == "__main__":
    unittest.main()
