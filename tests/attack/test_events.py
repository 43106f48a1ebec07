"""Events of others: they are not to be read, whatever is asked, nor to be pushed out."""

import json

from attack import attack
from test_api import events_of

import drover

MOST = 200


class EventsTest(attack.AttackTest):
    arguments = ("--max-events", MOST)

    def events(self, user, query=""):
        return self.daemon.api("GET", f"/v1/events?follow=false{query}", uid=user.uid)["events"]

    def test_nothing_of_others_is_told(self):
        task = self.submit(self.victim, [self.daemon.probe, "exit", 0], name="secret")
        self.daemon.wait_until_final(task)
        own = self.events(self.victim, f"&task={task}")
        self.assertGreaterEqual(len(own), 3)
        first, last = own[0]["number"], own[-1]["number"]
        for query in ("", f"&task={task}", f"&task={task[:4]}", "&task=secret", f"&after={first - 1}&before={last + 1}",
                      f"&before={last}&limit=1", "&limit=1", "&kind=task_finished", f"&before={last + 1}&kind=task_starting", "&since=2020-01-01T00:00:00Z", "&user=mallory",
                      f"&user=mallory&task={task}"):
            found = self.events(self.mallory, query)
            self.assertNotIn(task, json.dumps(found), query)
            self.assertNotIn("secret", json.dumps(found), query)
        for name in ("victim", "root"):
            self.assertEqual(self.daemon.request("GET", f"/v1/events?user={name}", uid=self.mallory.uid)[0], 403)
            self.assert_one_sentence(self.cli(self.mallory, "events", "--user", name), "Only root")
        self.assertEqual(self.cli(self.mallory, "events", "--task", task).out, "")
        # A live answer that begins before it, until something of mallory's own comes.
        connection = drover.UnixConnection(self.daemon.socket, drover.PATIENCE)
        self.addCleanup(connection.close)
        with drover.acting_as(self.mallory.uid):
            connection.connect()
        connection.request("GET", "/v1/events", headers={"Last-Event-ID": str(first - 1)})
        stream = events_of(connection.getresponse())
        mine = self.submit(self.mallory, [self.daemon.probe, "exit", 0])
        self.assertEqual(json.loads(next(stream)[2])["task"], mine)

    def test_a_flood_pushes_out_its_own(self):
        quiet = [self.submit(self.victim, [self.daemon.probe, "exit", 0], name=f"quiet{number}") for number in range(5)]
        for task in quiet:
            self.daemon.wait_until_final(task)
        before = self.events(self.victim)
        flood = [self.submit(self.mallory, ["/no/such/program"], name=f"flood{number}") for number in range(MOST)]
        for task in flood:
            self.daemon.wait_until_final(task)
        self.assertEqual(self.events(self.victim), before)
        drover.wait_for(lambda: len(self.events(self.mallory)) <= 1.1 * MOST, "what is too much to be removed")
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.events(self.victim), before)
        self.assertIn(self.events(self.mallory)[-1]["task"], flood)
