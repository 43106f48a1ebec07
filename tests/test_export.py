"""All that a daemon keeps, brought to another one: 'drover export' and 'drover apply' against real daemons."""

import json

import drover

EVERYTHING = """kind: queue
queue: lab
guarantee: {gpus: 2}
---
kind: queue
queue: lab/vision
guarantee: {gpus: 1}
limit: {gpus: 3, mem: 64GiB}
users: [root, nobody]
---
kind: quota
user: nobody
limit: {gpus: 2}
---
id: /shop/web
cmd: exec sleep 1000
instances: 2
gpus: 1
cpus: 0.1
mem: 64
env: {SECRET: "of the shop"}
---
name: nightly
command: echo night
schedule: R/2030-01-31T02:30:00Z/P1D
---
name: after
command: echo then
parents: [nightly]
"""
OF_NOBODY = "id: /theirs\ncmd: exec sleep 1000\ncpus: 0.1\nmem: 32\n---\nname: theirs\ncommand: echo x\nschedule: R/2030-01-31T02:30:00Z/P1D\n"


class ExportTest(drover.DaemonTest):
    profile = "dgx1-v100"

    def setUp(self):
        super().setUp()
        self.addCleanup(self.remove_all)

    def remove_all(self):
        for app in json.loads(self.daemon.cli("app", "list", "--json").out)["apps"]:
            self.daemon.cli("app", "remove", app["id"], "--force")
        for job in ("after", "nightly", "theirs"):
            self.daemon.cli("job", "remove", job)
        for kind, name in (("queue", "lab/vision"), ("queue", "lab"), ("quota", "user:nobody")):
            self.daemon.cli(kind, "rm", name)

    def another_daemon(self, profile="dgx1-v100"):
        daemon = drover.Daemon(profile).start()

        def close():
            self.assertEqual(daemon.close(), [])
        self.addCleanup(close)
        return daemon

    def apply(self, daemon, text, *flags, uid=None):
        path = daemon.folder / "everything.yaml"
        path.write_text(text)
        path.chmod(0o644)
        return daemon.cli("apply", *flags, path, **({} if uid is None else {"uid": uid}))

    def test_what_a_daemon_keeps_is_brought_to_another_one(self):
        ran = self.apply(self.daemon, EVERYTHING)
        self.assertEqual(ran.status, 0, ran)
        exported = self.daemon.cli("export")
        self.assertEqual((exported.status, exported.err), (0, ""), exported)
        self.assertIn("# 2 queues, 1 quota, 1 app, 2 jobs.", exported.out)
        self.assertIn("cmd: exec sleep 1000\n", exported.out)
        self.assertNotIn("upgradeStrategy", exported.out, "what is as when it is not said")

        again = self.apply(self.daemon, exported.out)
        self.assertEqual(again.status, 0, again)
        self.assertEqual([line.split(": ")[1] for line in again.out.splitlines()], ["unchanged"] * 6, again)

        other = self.another_daemon(profile="dgx-a100")
        ran = self.apply(other, exported.out)
        self.assertEqual(ran.status, 0, ran)
        self.assertEqual(other.cli("export").out, exported.out)
        self.assertEqual([task["state"] for task in other.tasks()], ["running"] * 2)

    def test_root_brings_what_is_of_others_and_they_run_it_there(self):
        ran = self.apply(self.daemon, OF_NOBODY, uid=drover.NOBODY)
        self.assertEqual(ran.status, 0, ran)
        exported = self.daemon.cli("export").out
        self.assertIn("user: nobody\n", exported)
        self.assertIn("runAsUser: nobody\n", exported)
        other = self.another_daemon()
        self.assertEqual(self.apply(other, exported).status, 0)
        self.assertEqual([task["task"]["user"]["name"] for task in other.tasks() if task["state"] == "running"], ["nobody"])

    def test_nobody_is_told_of_what_is_not_his(self):
        self.assertEqual(self.apply(self.daemon, EVERYTHING).status, 0)
        self.assertEqual(self.apply(self.daemon, OF_NOBODY, uid=drover.NOBODY).status, 0)
        theirs = self.daemon.cli("export", uid=drover.NOBODY)
        self.assertEqual(theirs.status, 0, theirs)
        self.assertIn("# 1 app, 1 job.", theirs.out)
        for word in ("of the shop", "nightly", "kind: queue", "kind: quota", "user:"):
            self.assertNotIn(word, theirs.out)
        again = self.apply(self.daemon, theirs.out, uid=drover.NOBODY)
        self.assertEqual((again.status, again.out), (0, "/theirs: unchanged\ntheirs: unchanged\n"), again)

    def test_only_root_sets_queues_and_nothing_is_done_when_it_is_not(self):
        ran = self.apply(self.daemon, "kind: queue\nqueue: mine\n---\n" + OF_NOBODY, uid=drover.NOBODY)
        self.assertEqual(ran.status, 77, ran)
        self.assertIn("may not change queues", ran.err)
        self.assertEqual(json.loads(self.daemon.cli("export", "--json").out), [])
