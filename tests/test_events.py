"""What happened, as the API and `drover events` tell it: over restarts and kills, and by filters."""

import http.client
import json
import os
import random
import subprocess
import threading
import time

import drover
from test_api import events_of

KILLS = int(os.environ.get("DROVER_TEST_KILLS", "20"))
SEED = int(os.environ.get("DROVER_TEST_SEED", random.randrange(2**32)))
LONGEST_LIFE = 0.8  # seconds from a start of the daemon to its end


class Follower(threading.Thread):
    """A client that goes on behind the last event that it heard of, whenever the daemon is there."""

    def __init__(self, daemon):
        super().__init__()
        self._daemon, self._ended = daemon, threading.Event()
        self.heard = []

    def run(self):
        while not self._ended.is_set():
            try:
                self.follow()
            except (OSError, http.client.HTTPException):
                time.sleep(0.02)

    def follow(self):
        connection = drover.UnixConnection(self._daemon.socket, 2)
        try:
            last = {"Last-Event-ID": str(self.heard[-1]["number"])} if self.heard else {}
            connection.request("GET", "/v1/events", headers=last)
            for _, number, data in events_of(connection.getresponse()):
                self.heard.append(json.loads(data))
                assert number == str(self.heard[-1]["number"])
        finally:
            connection.close()

    def end_behind(self, number):
        drover.wait_for(lambda: self.heard and self.heard[-1]["number"] >= number, "all to be heard")
        self._ended.set()
        self.join()


class EventsTest(drover.DaemonTest):
    def listed(self, query="", uid=None):
        return self.daemon.api("GET", f"/v1/events?follow=false{query}", uid=uid)["events"]

    def numbers(self, query="", uid=None):
        return [event["number"] for event in self.listed(query, uid)]

    def lines(self, *words, uid=None):
        ran = self.daemon.cli("events", *words, uid=uid)
        self.assertEqual(ran.status, 0, ran)
        return ran.out.splitlines()

    def finish(self, *command, **fields):
        task = self.daemon.submit(*command, **fields)
        self.daemon.wait_until_final(task)
        return task

    def restart(self):
        self.daemon.stop()
        self.daemon.start()

    def test_the_story_of_a_task_is_told_after_a_restart_and_its_removal(self):
        task = self.finish("exit", 3, name="story", gpus=2)
        before = self.listed(f"&task={task}")
        self.assertEqual([event["kind"] for event in before], ["task_starting", "task_running", "task_failed"])
        self.restart()
        self.assertEqual(self.listed(f"&task={task}"), before)
        self.assertEqual(self.daemon.cli("rm", task).status, 0)
        self.restart()
        self.assertEqual(self.listed("&task=story"), before)
        end = before[-1]
        self.assertEqual((end["name"], end["user"], len(end["gpus"]), end["exit_status"], end["cause"]),
                         ("story", "root", 2, 3, "exit"))
        self.assertLessEqual(end["started_at"], end["finished_at"])
        self.assertRegex(self.lines("--task", "story")[-1],
                         rf"^\S+Z  task_failed +{task} +story is failed: .*\(root, 2 GPUs, exit status 3, ran \S+\)$")
        again = self.finish("exit", 0, name="story")
        self.assertEqual({event["task"] for event in self.listed("&task=story")}, {task, again})
        self.assertGreater(self.numbers(f"&task={again}")[0], end["number"])

    def test_who_follows_them_goes_on_over_a_restart(self):
        process = subprocess.Popen(self.daemon.cli_command("events", "--follow", "--kind", "task_finished", "--format", "{name}"), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   env={**self.daemon.environment, "DROVER_SOCKET": str(self.daemon.socket)})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        names = ["before", "between", "after"]
        for name in names:
            self.daemon.wait_until_final(self.daemon.submit("exit", 0, name=name))
            while (heard := process.stdout.readline()) not in (f"{each}\n" for each in names):
                self.assertNotEqual(heard, "")
            self.assertEqual(heard, f"{name}\n")
            self.daemon.kill()
            self.daemon.start()
        self.assertEqual(self.daemon.cli("events", "-f", "--until", "1h").status, 0)

    def test_parts_and_wholes(self):
        answer = self.daemon.api("POST", "/v1/tasks", {"command": [str(self.daemon.probe), "exit", "0"], "memory": "64MiB",
                                                       "gang": {"size": 2}, "name": "pair"})
        for record in answer["tasks"]:
            self.daemon.wait_until_final(record["task"]["id"])
        ids = {record["task"]["id"] for record in answer["tasks"]}
        for word in (answer["gang"], "pair"):
            self.assertEqual({event["task"] for event in self.listed(f"&task={word}")}, ids, word)
            self.assertEqual({line.split()[2] for line in self.lines("--task", word)}, ids, word)
        one = sorted(ids)[1]
        self.assertEqual({line.split()[2] for line in self.lines("--task", one)}, {one})

    def test_filters_and_pages(self):
        begin = self.finish("exit", 0, name="first")
        for number in range(3):
            self.finish("exit", number, name=f"page{number}", uid=1234)
        after = self.listed(f"&task={begin}")[-1]
        rest = self.listed(f"&after={after['number']}")
        self.assertEqual(len(rest), 9)
        self.assertEqual(self.listed(f"&limit=4&after={after['number']}"), rest[-4:])
        self.assertEqual(self.listed(f"&limit=4&before={rest[-4]['number']}"), rest[-8:-4])
        self.assertEqual(self.numbers(f"&after={after['number']}&kind=task_failed&kind=task_finished"),
                         [event["number"] for event in rest if event["kind"] in ("task_failed", "task_finished")])
        self.assertEqual(self.listed(f"&since={rest[0]['at']}&after={after['number']}"), rest)
        self.assertEqual(self.listed(f"&until={after['at']}")[-1], after)
        self.assertEqual(self.listed(uid=1234), rest)
        self.assertEqual(len(self.lines("-n", "4")), 4)
        self.assertEqual([json.loads(line) for line in self.lines("--json", "--limit", "2")], rest[-2:])
        self.assertEqual(self.lines("--kind", "task_lost", "--since", "1h"), [])
        self.assertEqual(len(self.lines("--since", "1h", "--kind", "task_failed", "--task", "page2")), 1)
        self.assertEqual(self.lines("--until", "2020-01-01"), [])

    def follow(self, query):
        connection = drover.UnixConnection(self.daemon.socket, drover.PATIENCE)
        self.addCleanup(connection.close)
        connection.request("GET", f"/v1/events?{query}")
        return events_of(connection.getresponse())

    def test_a_live_answer_takes_the_filters_too_and_ends_with_until(self):
        self.finish("exit", 0, name="quiet")
        live = self.follow("kind=task_finished&task=loud")
        self.finish("exit", 0, name="quiet")
        loud = self.finish("exit", 0, name="loud")
        kind, _, data = next(live)
        self.assertEqual((kind, json.loads(data)["task"]), ("task_finished", loud))
        until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 2))
        heard = list(self.follow(f"task=loud&limit=2&until={until}"))
        self.assertEqual([kind for kind, _, _ in heard], ["task_running", "task_finished"])

    def test_what_is_wrong_is_said_with_what_would_be_right(self):
        self.assert_one_sentence(self.daemon.cli("events", "--kind", "task_runing"), "--kind", "'task_runing'", "task_running", "gpu_unfit")
        self.assert_one_sentence(self.daemon.cli("events", "--since", "then"), "--since", "'then'", "2h")
        self.assert_one_sentence(self.daemon.cli("events", "-n", "0"), "--limit")
        for query in ("kind=x", "since=2h", "limit=0", "task=", "before=x", "task=" + "x" * 5000):
            self.assertEqual(self.daemon.request("GET", f"/v1/events?{query}")[0], 400, query[:20])
        refused = self.daemon.request("GET", "/v1/events?user=root", uid=1234)
        self.assertEqual(refused[0], 403, refused)
        kinds = self.daemon.cli("complete", "bash", "--", "events", "--kind", "gpu_").out.split()
        self.assertEqual(kinds, ["gpu_fit", "gpu_unfit"])

    def test_what_is_kept_has_limits(self):
        refused = drover.run([drover.BINARY, "serve", "--keep-events", "1m"])
        self.assert_one_sentence(refused, "--keep-events", "10m at least")
        self.assert_one_sentence(drover.run([drover.BINARY, "serve", "--max-events", "5"]), "--max-events")


class KillsTest(drover.DaemonTest):
    def test_who_follows_over_kills_hears_of_all_once(self):
        print(f"seed {SEED}")
        chance = random.Random(SEED)
        follower = Follower(self.daemon)
        follower.start()
        accepted = []
        for _ in range(KILLS):
            end = time.monotonic() + chance.uniform(0.1, LONGEST_LIFE)
            while time.monotonic() < end:
                try:
                    accepted.append(self.daemon.submit("exit", 0, gpus=chance.choice((0, 1))))
                except (OSError, http.client.HTTPException, ValueError):
                    pass  # whether it was accepted shows later
            self.daemon.kill()
            self.daemon.start(wait=False)
        drover.wait_for(self.daemon.answers, "the daemon to answer")
        for task in accepted:
            self.daemon.wait_until_final(task)
        for record in self.daemon.tasks():
            self.daemon.wait_until_final(record["task"]["id"])
        told = self.daemon.api("GET", "/v1/events?follow=false")["events"]
        follower.end_behind(told[-1]["number"])
        self.assertEqual(follower.heard, told)
        numbers = [event["number"] for event in told]
        self.assertTrue(all(one < next_one for one, next_one in zip(numbers, numbers[1:])))
        ends = [event["task"] for event in told if "finished_at" in event]
        self.assertEqual(sorted(ends), sorted(record["task"]["id"] for record in self.daemon.tasks()))
        self.assertLessEqual(set(accepted), set(ends))
