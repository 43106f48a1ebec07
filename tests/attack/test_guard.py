"""mallory has a share of a GPU, and spoils what holds her to it: nobody else is short of anything, and the daemon goes on."""

from attack import attack
import drover
from prometheus import parse, require_parser
import test_cdi
import test_guard

PAGES = "/usr/local/nvidia/share"
GIB = 1024  # MiB


class GuardTest(attack.AttackTest):
    profile = "dgx-a100"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.spoiling = test_cdi.make_image(cls.ground / "guarded", cls.daemon.probe,
                                           libraries_for=(test_guard.CHECK, *test_guard.LIBRARIES),
                                           files=[("cuda_check", test_guard.CHECK.read_bytes()), ("spoil", cls.build("spoil").read_bytes())])

    def setUp(self):
        self.addCleanup(self.daemon.end_tasks)

    def start(self, caller, *command, **fields):
        return self.submit(caller, list(map(str, command)), image=self.spoiling, **{"gpus": 1, "gpu_share": "8GiB", **fields})

    def hold(self, task, mib, **how):
        """What a further program of the task says."""
        return self.daemon.cli("exec", task, "--", "/cuda_check", "hold", str(mib), **how)

    def refusals(self):
        """By task, as metrics have them."""
        require_parser()
        series = parse(self.daemon.request("GET", "/v1/metrics")[2].decode())
        return {labels["task_id"]: value for labels, value in series["drover_container_gpu_memory_refused_total"]}

    def ends_for_its_share(self, task):
        record = self.daemon.wait_until_final(task)
        self.assertEqual((record["state"], record["cause"]), ("failed", "share"), record)

    def test_an_account_that_is_spoilt_is_the_loss_of_its_container_alone(self):
        victim = self.start(self.victim, "/cuda_check", "hold", 7 * GIB, "sleep", 1000)
        self.daemon.wait_for_output(victim, "held")
        refused = 0
        for way in ("garbage", "lies", "empty", "short", "grow"):
            with self.subTest(way):
                task = self.start(self.mallory, "/spoil", f"{PAGES}/account", way)
                account = self.daemon.state / "tasks" / task / "share/account"
                drover.wait_for(account.exists, "the task to be prepared")
                size = account.stat().st_size
                self.daemon.wait_for_output(task, way)
                drover.wait_for(lambda: account.stat().st_size == size and account.stat().st_blocks < 1000, "its size to be put right")
                self.assertEqual(self.hold(victim, GIB).status, 2, "whose container is full, is full")
                self.assertIn("held 256", self.hold(victim, 256).out)
                gpus = self.daemon.api("GET", "/v1/gpus?usage=true", timeout=attack.ANSWERED_MEANWHILE)["gpus"]
                self.assertTrue(all(gpu["healthy"] for gpu in gpus))
                for said in self.refusals().values():
                    self.assertLessEqual(said, 1 << 53, "her word, and a number all the same")
                self.assertEqual(self.refusals()[victim], refused := refused + 1)
                self.daemon.end_task(task)
        self.assertEqual(self.daemon.task(victim)["state"], "running")

    def test_limits_cannot_be_written_by_who_is_root_there(self):
        for caller in (self.mallory, None):
            with self.subTest(caller):
                task = self.start(caller, "/spoil", f"{PAGES}/limits", "garbage")
                self.assertEqual(self.daemon.wait_until_final(task)["exit_status"], 1)
                self.assertRegex(self.daemon.output(task), "Read-only|Permission denied")

    def test_variables_of_a_task_change_nothing(self):
        hold = ("/cuda_check", "hold", 9 * GIB)
        for env in ({"DROVER_GUARD_LIMITS": "/dev/null"}, {"DROVER_GUARD_LIMITS": "/nothing", "DROVER_GUARD_ACCOUNT": "/nothing"},
                    {"LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu:/usr/lib64:/lib64:/usr/lib"}, {"LD_BIND_NOW": "1"},
                    {"NVIDIA_VISIBLE_DEVICES": "all"}):
            with self.subTest(env):
                task = self.start(self.mallory, *hold, env=env)
                self.assertEqual(self.daemon.wait_until_final(task)["exit_status"], 2, self.daemon.output(task, "stderr"))

    def test_who_takes_the_drivers_own_file_is_ended(self):
        victim = self.start(self.victim, "/cuda_check", "hold", 512, "sleep", 1000)
        self.daemon.wait_for_output(victim, "held")
        task = self.start(self.mallory, "/cuda_check", "hold", 20 * GIB, "sleep", 1000, env={"CUDA_LIBRARY": test_guard.BEHIND})
        self.ends_for_its_share(task)
        self.assertEqual(self.daemon.task(victim)["state"], "running")

    def test_nothing_is_mounted_over_what_holds_him(self):
        record = self.attempt_to_mount("/usr/local/nvidia")
        self.assertIn("the container's own", record)

    def attempt_to_mount(self, place):
        """A volume of her own there; why not."""
        task = self.start(self.mallory, "/cuda_check", "hold", 9 * GIB,
                          volumes=[{"host_path": str(self.mallory.home), "container_path": place}])
        return self.daemon.wait_until_final(task)["reason"]
