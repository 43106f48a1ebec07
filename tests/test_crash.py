"""`kill -9` of the daemon at any moment: every accepted task ends exactly once, and nothing leaks.

DROVER_TEST_KILLS says how often (200 by default); DROVER_TEST_SEED repeats a run.
"""

import http.client
import itertools
import os
import random
import threading
import time
import unittest

import drover

KILLS = int(os.environ.get("DROVER_TEST_KILLS", "200"))
SEED = int(os.environ.get("DROVER_TEST_SEED", random.randrange(2**32)))
CLIENTS = 3
LONGEST_LIFE = 0.6  # seconds from a start of the daemon to its end
TIME_LIMIT = 480


# What the load is made of: whole GPUs, shares, gangs, and work that others make room for.
KINDS = (*({"gpus": gpus} for gpus in (0, 1, 1, 2, 4)), {"gpu_share": 0.5}, {"gpu_share": 0.25},
         {"gpus": 1, "gang": {"size": 2}}, {"gpus": 2, "gang": {"size": 3}}, {"gpus": 4, "priority": 5})


class Client(threading.Thread):
    """Submits tasks for as long as the test lasts, and keeps the ids of those that were accepted."""

    def __init__(self, daemon, image, seed, ended):
        super().__init__()
        self._daemon, self._image, self._random, self._ended = daemon, image, random.Random(seed), ended
        self.accepted = []
        self.refusals = []

    def run(self):
        while not self._ended.is_set():
            try:
                self.accepted += self.submit_one()
            except drover.ApiError as error:
                self.refusals.append(str(error))
            except (OSError, http.client.HTTPException, ValueError):
                pass  # the daemon is away: whether it had accepted the task shows later
            time.sleep(self._random.uniform(0.05, 0.4))

    def submit_one(self):
        """A task or a gang; the ids."""
        in_image = self._random.random() < 0.3
        program = "/probe" if in_image else str(self._daemon.probe)
        duration = str(round(self._random.uniform(0, 0.8), 3))
        # "ran" gets one line each time that the task is started.
        command = [program, "append", "ran", "line", ",", "sleep", duration, ",", "append", "ended", "line"]
        fields = {"command": command, "memory": drover.MEMORY, "cpus": 0.1, **({"image": self._image} if in_image else {}),
                  **self._random.choice(KINDS)}
        answer = self._daemon.api("POST", "/v1/tasks", fields)
        return [record["task"]["id"] for record in answer.get("tasks", [answer])]


class CrashTest(drover.DaemonTest):
    def setUp(self):
        self.image = drover.make_probe_image(self.daemon.folder / "image", self.daemon.probe)
        self.random = random.Random(SEED)

    def crash_repeatedly(self, is_enough):
        """Returns how often it was done: TIME_LIMIT bounds it. On a machine that is so busy that hardly anything was taken until
        then, it goes on, with longer lives, until that is enough."""
        end = time.monotonic() + TIME_LIMIT
        for kill in itertools.count():
            if kill >= KILLS and is_enough(kill):
                return kill
            time.sleep(self.random.uniform(0, LONGEST_LIFE) * (1 if kill < KILLS else 4))
            self.daemon.kill()
            # Often it dies again before it can answer; every tenth time it is looked at in peace.
            self.daemon.start(wait=kill % 10 == 0)
            if kill % 10 == 0:
                self.assertTrue(self.daemon.grants_are_sound())
            if time.monotonic() > end:
                return kill + 1

    def test_every_accepted_task_ends_exactly_once(self):
        print(f"seed {SEED}")
        ended = threading.Event()
        clients = [Client(self.daemon, self.image, self.random.random(), ended) for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        try:
            kills = self.crash_repeatedly(lambda kills: sum(len(client.accepted) for client in clients) > kills // 4)
        finally:
            ended.set()
            for client in clients:
                client.join()
        drover.wait_for(self.daemon.answers, "the daemon to answer")
        self.assertEqual([refusal for client in clients for refusal in client.refusals], [], f"seed {SEED}")
        accepted = [task for client in clients for task in client.accepted]
        self.assertEqual(len(accepted), len(set(accepted)))
        self.assertGreater(len(accepted), kills // 4, "too little load to prove anything")

        def all_ended():
            return all(record["state"] in drover.FINAL_STATES for record in self.daemon.tasks())

        drover.wait_for(all_ended, f"all tasks to end (seed {SEED})", timeout=300)
        records = {record["task"]["id"]: record for record in self.daemon.tasks()}
        self.assertEqual([task for task in accepted if task not in records], [], f"lost tasks (seed {SEED})")
        for task, record in records.items():
            with self.subTest(task=task, seed=SEED):
                self.assertEqual((record["state"], record.get("exit_status")), ("finished", 0), record)
                # Who made room starts afresh, perhaps before it had come so far.
                often = range(1, record["preemptions"] + 2)
                self.assertIn(self.daemon.file(task, "ran").count("line"), often, "it ran more or less often than it was started")
                self.assertIn(self.daemon.file(task, "ended").count("line"), often)
        self.assertEqual(self.daemon.leaks(records), [], f"seed {SEED}")
        preempted = sum(record["preemptions"] > 0 for record in records.values())
        print(f"{kills} kills, {len(records)} tasks, {len(accepted)} of them acknowledged, {preempted} preempted")


class LeftoverTest(drover.DaemonTest):
    profile = "k40m"

    def test_what_a_killed_daemon_had_begun_to_write_is_removed(self):
        task = self.daemon.submit("say", "hello")
        self.daemon.wait_until_final(task)
        sandbox = self.daemon.state / "tasks" / task / "sandbox"
        specification = self.daemon.folder / "cdi/nvidia.json"
        specification.parent.mkdir()
        self.daemon.arguments += ["--cdi-specification", specification]
        name = ".{}.0123abcd.tmp".format
        begun = [self.daemon.state / name("timeline"), self.daemon.state / "sim" / name("mig-minors"),
                 self.daemon.state / "images/pulled" / name("index.json"),
                 self.daemon.state / "images/pulled/blobs/sha256" / name("0" * 64), specification.with_name(name(specification.name))]
        others = [sandbox / name("mine"), specification.with_name(name("another.json"))]
        links = [self.daemon.state / name("link"), self.daemon.state / "sim" / name("link")]
        self.daemon.kill()
        for path in begun + others:
            path.write_text("half of")
        for path in links:
            path.symlink_to(others[0])
        self.daemon.start()
        self.assertEqual([path for path in begun if path.exists()], [])
        self.assertEqual([path for path in others + links if not path.exists()], [])


if __name__ == "__main__":
    unittest.main()
