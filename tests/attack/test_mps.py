"""What a task tries against MPS: that of another user's group, and that of its own."""

import os

import mps_host
from attack import attack

GROUP = "train"


class MpsTest(mps_host.HostTest, attack.AttackTest):
    def folder_of(self, user):
        return self.daemon.state / "mps" / f"group-{user.uid}-{GROUP}"

    def test_the_group_of_another_by_its_name(self):
        victims = self.start(uid=self.victim.uid)
        before = self.host.processes(f"group-{self.victim.uid}-")
        mine = self.start(uid=self.mallory.uid)
        self.assertFalse(set(self.gpus_of(victims)) & set(self.gpus_of(mine)))
        self.assertEqual(self.host.groups(), sorted(f"group-{user.uid}-{GROUP}" for user in (self.mallory, self.victim)))
        self.end(mine)
        self.assertEqual(self.host.processes(f"group-{self.victim.uid}-"), before)

    def test_the_pipes_of_another(self):
        self.start(uid=self.victim.uid)
        place = self.folder_of(self.victim)
        task = self.daemon.submit("exists", f"{place}/pipe/control", ",", "list", place, ",", "exists", f"{mps_host.INSIDE}/control", uid=self.mallory.uid)
        self.daemon.wait_until_final(task)
        self.assertNotIn("ok", self.daemon.output(task).splitlines())
        pid = os.fork()  # and on the machine itself
        if pid == 0:
            os.setgid(self.mallory.uid)
            os.setuid(self.mallory.uid)
            os._exit(1 if os.access(place / "pipe/control", os.F_OK) else 0)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_nothing_is_written_among_the_pipes_of_his_own(self):
        task = self.start("write", f"{mps_host.INSIDE}/control", "quit", ",", "write", f"{mps_host.INSIDE}/more", "x", ",", uid=self.mallory.uid)
        self.assertIn("EROFS", self.daemon.output(task).splitlines())
        self.assertFalse((self.folder_of(self.mallory) / "pipe/more").exists())

    def test_a_volume_over_them(self):
        for place in (mps_host.INSIDE, "/run", "/dev/shm"):
            task = self.daemon.submit("exit", 0, uid=self.mallory.uid, gpus=1, group=GROUP, share_by="mps",
                                      volumes=[{"host_path": str(self.mallory.home), "container_path": place}])
            record = self.daemon.wait_until_final(task)
            self.assertEqual(record["state"], "failed", place)
            self.assertIn("container's own", record["reason"])

    def test_processes_of_the_daemon_are_out_of_reach(self):
        """They are root's, and of another process namespace: a member neither sees nor ends them."""
        first = self.start(uid=self.mallory.uid)
        before = self.host.processes()
        words = sum(([",", "exists", f"/proc/{pid}/environ"] for pid in before), [])
        task = self.start(*words[1:], ",", uid=self.mallory.uid)
        self.assertNotIn("ok", self.daemon.output(task).splitlines())
        for pid in before:
            child = os.fork()
            if child == 0:
                os.setgid(self.mallory.uid)
                os.setuid(self.mallory.uid)
                try:
                    os.kill(pid, 9)
                except PermissionError:
                    os._exit(0)
                os._exit(1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.end(task, first)

    def test_a_process_that_bears_the_mark_is_no_daemon(self):
        task = self.start(uid=self.mallory.uid)
        daemon = self.host.processes()
        place = self.folder_of(self.mallory)
        evil = self.daemon.submit("say", "up", ",", "sleep", 600, uid=self.mallory.uid, env={"DROVER_MPS": str(place), "CUDA_MPS_LOG_DIRECTORY": "/mnt/log"})
        self.daemon.wait_for_output(evil, "up")
        impostors = set(self.host.processes()) - set(daemon)
        self.assertTrue(impostors)
        self.end(task)
        self.assertEqual(set(self.host.processes()), impostors)
        self.assertEqual(self.daemon.task(evil)["state"], "running")


class DockerMpsTest(attack.ThroughDocker, mps_host.HostTest, attack.AttackTest):
    def test_a_member_in_an_engine_is_a_client_too_and_writes_nothing_among_the_pipes(self):
        first = self.start(uid=self.mallory.uid)
        words = ("env", mps_host.PIPE, ",", "exists", f"{mps_host.INSIDE}/control", ",", "write", f"{mps_host.INSIDE}/more", "x", ",",
                 "write", "/dev/shm/mine", "x", ",", "say", "up", ",", "sleep", "600")
        task = self.daemon.submit(command=["/probe", *words], uid=self.mallory.uid, image=self.image("mps"), container_type="docker", gpus=1,
                                  group=GROUP, share_by="mps")
        self.daemon.wait_for_output(task, "up")
        self.assertEqual(self.daemon.output(task).splitlines(), [mps_host.INSIDE, "ok", "EROFS", "ok", "up"])
        self.assertEqual(self.gpus_of(task), self.gpus_of(first))
        self.end(first, task)
        self.assertEqual(self.host.left(), [])
