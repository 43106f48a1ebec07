"""Tasks as pods of a real cluster, by the same commands as on one machine.

  DROVER_TEST_KILLS=1000     so often the daemon is killed (10) while tasks come and go, and pods are deleted behind its back
"""

import hashlib
import json
import os
import random
import re
import subprocess
import time
import unittest

import browser
import drover
import in_terminal
import kube
from cluster_daemon import ClusterDaemonTest
from kube.api import ApiError
from kube.machine import wait_for
from mesos_framework import Framework


class EngineTest(ClusterDaemonTest):
    @property
    def nodes(self):
        return [node.name for node in self.daemon.cluster.nodes]

    def run_probe(self, options, *words):
        return self.daemon.run_probe(["--cpus", "0.1", "--mem", "64MiB", *options], *words)

    def test_a_task_runs_with_its_gpus_its_output_and_its_exit_status(self):
        ran = self.run_probe(["--gpus", "3"], "devices", ",", "say", "hello", ",", "exit", "7")
        self.assertEqual(ran.status, 7, ran)
        devices, hello = ran.out.splitlines()
        record = self.daemon.tasks()[-1]
        self.assertEqual(hello, "hello")
        self.assertEqual(len([name for name in devices.split() if name[6:].isdigit()]), 3, devices)
        self.assertEqual(len(record["gpus"]), 3, record)
        self.assertIn(record["node"], self.nodes)
        wait_for(lambda: not self.daemon.pods(), "the pod to go when its end is recorded")
        self.assertEqual(self.daemon.output(record["task"]["id"]), ran.out)

    def test_one_that_waits_says_why_and_is_stopped(self):
        task = self.daemon.submit("sleep", "1000", gpus=8, name="large")
        self.daemon.wait_until_running(task)
        other = self.daemon.submit("sleep", "1000", gpus=8)
        self.daemon.wait_until_running(other)
        third = self.daemon.submit("sleep", "1000", gpus=8)
        wait_for(lambda: "0/2 nodes are available" in self.daemon.task(third)["reason"], lambda: self.daemon.task(third))
        self.daemon.stop_task(third)
        self.assertEqual(self.daemon.wait_until_final(third)["state"], "killed")
        self.daemon.stop_task(task)
        ended = self.daemon.wait_until_final(task)
        self.assertEqual(ended["state"], "killed", ended)
        self.daemon.end_task(other)
        wait_for(lambda: not self.daemon.pods(), "the pods to go")

    def test_the_page_shows_each_node_and_where_a_task_is(self):
        page = browser.page_of(self, self.daemon)
        for node in self.nodes:
            page.get_by_role("heading", name=re.compile(rf"^{node}: \d of 8 GPUs free")).wait_for()
        task = self.daemon.submit("say", "here", ",", "sleep", "1000", gpus=8)
        self.daemon.wait_until_running(task)
        node = self.daemon.task(task)["node"]
        page.get_by_role("heading", name=f"{node}: 0 of 8 GPUs free").wait_for()
        page.get_by_role("link", name="Tasks", exact=True).click()
        page.get_by_role("link", name=re.compile(task)).click()
        page.get_by_text(f", on {node}").wait_for()
        page.get_by_text("here").wait_for()
        self.assertEqual(page.wrong, [])
        self.daemon.end_task(task)

    def test_a_plan_is_what_the_scheduler_would_do(self):
        def plan(**body):
            return self.daemon.api("POST", "/v1/plan", {"cpus": 0.1, "memory": "64MiB", **body})

        def starts(**body):
            planned = plan(**body)
            return planned["starts_now"] and planned["members"]

        gang = drover.wait_for(lambda: starts(gpus=8, gang={"size": 2}), lambda: f"both nodes to be free: {plan(gpus=8)}")
        self.assertEqual(sorted(member["node"] for member in gang), self.nodes)
        (small,) = starts(gpus=4)
        self.assertIn(small["node"], self.nodes)
        self.assertEqual(len(small["gpus"]), 4)
        low = self.daemon.submit("sleep", "1000", gpus=8)
        self.daemon.wait_until_running(low)
        other = self.daemon.submit("sleep", "1000", gpus=8)
        self.daemon.wait_until_running(other)
        waits = plan(gpus=2)
        self.assertEqual((waits["starts_now"], waits["members"], waits["place"]), (False, [], 1))
        self.assertIn("0/2 nodes are available", waits["reasons"][0])
        urgent = plan(gpus=8, priority=5)
        self.assertEqual(urgent["victims"], 1)
        self.assertIn(urgent["victim_ids"], ([low], [other]))
        self.assertEqual(self.daemon.task(low)["state"], "running", "nothing of it is done")
        with self.assertRaises(drover.ApiError) as refused:
            plan(privileged=True)
        self.assertIn("privileged", str(refused.exception))
        # As whoever asks it: only root's goes before others.
        status, _, answer = self.daemon.request("POST", "/v1/plan", {"gpus": 8, "cpus": 0.1, "memory": "64MiB", "priority": 5}, uid=65534)
        self.assertEqual(status, 403, answer)
        for task in (low, other):
            self.daemon.end_task(task)

    def test_a_gang_starts_together(self):
        body = {"gang": {"size": 2}, "command": ["/probe", "env", "RANK", ",", "env", "MASTER_ADDR", ",", "sleep", "1"], "gpus": 8,
                "cpus": 0.1, "memory": "64MiB"}
        ids = [record["task"]["id"] for record in self.daemon.api("POST", "/v1/tasks", body)["tasks"]]
        records = [self.daemon.wait_until_final(task) for task in ids]
        self.assertEqual([record["state"] for record in records], ["finished"] * 2, records)
        self.assertEqual(len({record["node"] for record in records}), 2, "each needs a whole node")
        said = [self.daemon.output(task).splitlines() for task in ids]
        self.assertEqual([lines[0] for lines in said], ["0", "1"])
        self.assertEqual(said[0][1], said[1][1])
        self.assertRegex(said[0][1], r"^drover-[0-9a-f]+\.drover-root\.svc$")

    def test_who_makes_room_waits_again_and_runs_anew(self):
        low = [self.daemon.submit("say", "began", ",", "sleep", "1000", gpus=8) for _ in range(2)]
        for task in low:
            self.daemon.wait_for_output(task, "began")
        high = self.daemon.submit("sleep", "1000", gpus=8, priority=5)
        self.daemon.wait_until_running(high)
        victims = [task for task in low if self.daemon.task(task)["preemptions"]]
        self.assertEqual(len(victims), 1, [self.daemon.task(task) for task in low])
        self.assertEqual(self.daemon.task(victims[0])["state"], "queued")
        self.daemon.end_task(high)
        self.daemon.wait_until_running(victims[0])
        wait_for(lambda: self.daemon.output(victims[0]) == "began\nbegan\n", lambda: self.daemon.output(victims[0]))
        # So does one whose node is drained.
        node, kubectl = self.daemon.task(victims[0])["node"], self.daemon.cluster.kubectl
        self.addCleanup(kubectl, "uncordon", node)
        kubectl("drain", node, "--pod-selector=drover.dev/task", "--delete-emptydir-data", "--timeout=60s")
        wait_for(lambda: self.daemon.task(victims[0])["preemptions"] == 2, lambda: self.daemon.task(victims[0]))
        kubectl("uncordon", node)
        self.daemon.wait_until_running(victims[0])
        for task in low:
            self.daemon.end_task(task)

    def test_gpus_are_asked_for_by_what_they_are_like(self):
        ran = self.run_probe(["--gpus", "2", "--gpu-model", "V100", "--interconnect", "nvlink:2"], "devices")
        self.assertEqual(ran.status, 0, ran)
        with self.assertRaises(drover.ApiError) as refused:
            self.daemon.submit("exit", "0", gpus=1, gpu_model="H100")
        self.assertIn("H100", str(refused.exception))

    def test_files_are_brought_before_it_begins(self):
        def run(script, **more):
            body = {"command": ["/bin/sh", "-c", script], "cpus": 0.1, "memory": "64MiB", **more}
            return self.daemon.api("POST", "/v1/tasks", body)["task"]["id"]

        server = run("echo brought > data; exec busybox httpd -f -p 8080")
        self.daemon.wait_until_running(server)
        address = next(pod["status"]["podIP"] for pod in self.daemon.pods() if pod["metadata"]["labels"]["drover.dev/task"] == server)
        task = run("cat data", fetch=[f"http://{address}:8080/data"])
        self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished", self.daemon.task(task))
        self.assertEqual(self.daemon.output(task), "brought\n")
        ended = self.daemon.wait_until_final(run("cat absent", fetch=[f"http://{address}:8080/absent"]))
        self.assertEqual(ended["state"], "failed", ended)
        self.assertRegex(ended["reason"], r"could not be brought: .*/absent': .*404")
        self.daemon.end_task(server)

    def test_instances_keep_apart_where_their_constraints_say_so(self):
        app = {"id": "/apart", "cmd": "sleep 1000", "cpus": 0.1, "mem": 64, "instances": 2, "constraints": [["hostname", "UNIQUE"]]}
        self.daemon.api("POST", "/v2/apps", app)
        wait_for(lambda: self.daemon.api("GET", "/v2/apps//apart")["app"]["tasksRunning"] == 2,
                 lambda: self.daemon.api("GET", "/v2/apps//apart"))
        self.assertEqual({pod["spec"]["nodeName"] for pod in self.daemon.pods()
                          if pod["metadata"]["labels"].get("drover.dev/service") == "apart"}, set(self.nodes))
        like = {**app, "id": "/like", "instances": 1, "constraints": [["hostname", "LIKE", f".*{self.nodes[1][-1]}"]]}
        self.daemon.api("POST", "/v2/apps", like)
        wait_for(lambda: self.daemon.api("GET", "/v2/apps//like")["app"]["tasksRunning"] == 1,
                 lambda: self.daemon.api("GET", "/v2/apps//like"))
        (pod,) = [pod for pod in self.daemon.pods() if pod["metadata"]["labels"].get("drover.dev/service") == "like"]
        self.assertEqual(pod["spec"]["nodeName"], self.nodes[1])
        for name in ("apart", "like"):
            self.daemon.api("DELETE", f"/v2/apps//{name}?force=true")
        wait_for(lambda: not [pod for pod in self.daemon.pods() if "drover.dev/service" in pod["metadata"]["labels"]], "instances to go")

    def test_an_image_that_nobody_has_is_told_of(self):
        task = self.daemon.submit("exit", "0", image="registry.invalid/none:1")
        ended = self.daemon.wait_until_final(task)
        self.assertEqual(ended["state"], "failed", ended)
        self.assertIn("could not be started", ended["reason"])

    def test_commands_run_in_its_container(self):
        task = self.daemon.submit("sleep", "1000")
        self.daemon.wait_until_running(task)
        ran = self.daemon.cli("exec", task, "--", "/bin/sh", "-c", "echo out; echo err >&2; exit 3")
        self.assertEqual((ran.status, ran.out, ran.err), (3, "out\n", "err\n"), ran)
        self.daemon.end_task(task)

    def test_the_nodes_and_their_gpus_are_shown(self):
        gpus = self.daemon.api("GET", "/v1/gpus")["gpus"]
        self.assertEqual({gpu["node"] for gpu in gpus}, set(self.nodes))
        self.assertEqual(len(gpus), 16)
        self.assertEqual([node["gpus"]["total"] for node in self.daemon.api("GET", "/v1/nodes")["nodes"]], [8, 8])
        shown = self.daemon.cli("gpus")
        self.assertIn("NODE", shown.out)

    def test_after_a_crash_all_is_found_again(self):
        runs = self.daemon.submit("say", "before", ",", "sleep", "4", ",", "say", "after", ",", "exit", "5")
        self.daemon.wait_for_output(runs, "before")
        ends = self.daemon.submit("exit", "3")
        self.daemon.kill()
        time.sleep(3)
        self.daemon.start()
        self.assertEqual(self.daemon.wait_until_final(ends)["exit_status"], 3)
        self.assertEqual(self.daemon.wait_until_final(runs)["exit_status"], 5)
        self.assertEqual(self.daemon.output(runs), "before\nafter\n")


class InputTest(ClusterDaemonTest):
    """What people write to tasks."""

    def settings(self):
        return {"env": {**self.daemon.environment, "DROVER_SOCKET": str(self.daemon.socket), "TERM": "vt100"}}

    def command(self, *words):
        return self.daemon.cli_command("run", "--cpus", "0.1", "--mem", "64MiB", *words)

    def test_standard_input_is_passed_on_to_its_end(self):
        text = random.Random(7).randbytes(1_000_000)
        done = subprocess.run(self.command("-i", "--", "sha256sum"), input=text, capture_output=True, timeout=drover.PATIENCE, **self.settings())
        self.assertEqual((done.returncode, done.stdout.split()[0].decode()), (0, hashlib.sha256(text).hexdigest()), done.stderr)

    def test_a_shell_goes_on_in_another_life_of_the_daemon(self):
        shell = in_terminal.Terminal(self, self.command("-it", "--", "sh"), **self.settings())
        shell.type("echo rea''dy\n")
        shell.read_until("ready\r\n")
        shell.type("stty size\n")
        shell.read_until("33 101\r\n")
        self.daemon.kill()
        self.daemon.start()
        shell.type("echo st''ill he''re\n")
        shell.read_until("still here\r\n")
        shell.type("sleep 1000\n")
        time.sleep(1)
        shell.type("\x03echo after $?\n")
        shell.read_until("after 130\r\n")
        shell.type("exit 7\n")
        self.assertEqual(shell.wait(), 7)
        task = self.daemon.tasks()[-1]["task"]["id"]
        self.assertIn("still here\r\n", self.daemon.output(task))

    def test_what_was_written_before_anybody_joined_is_there_too(self):
        task = self.daemon.submit("say", "at once", tty={"rows": 24, "columns": 80}, cpus=0.1)
        self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished")
        self.assertEqual(self.daemon.output(task), "at once\r\n")


class FrameworkTest(ClusterDaemonTest):
    """Frameworks of Mesos, for whom each node is an agent."""

    def framework(self):
        framework = Framework(self.daemon)
        self.addCleanup(framework.stream.close)
        return framework

    def offers(self, framework):
        """By host, once there is one of each node."""
        while len(framework.offers) < len(self.daemon.cluster.nodes):
            framework.offers += framework.event("OFFERS")["offers"]["offers"]
        offers, framework.offers = framework.offers, []
        return {offer["hostname"]: offer for offer in offers}

    @staticmethod
    def amount(offer, name):
        return next((resource["scalar"]["value"] for resource in offer["resources"] if resource["name"] == name), 0)

    def test_a_task_runs_on_the_node_whose_offer_it_took(self):
        framework = self.framework()
        offers = self.offers(framework)
        self.assertEqual(sorted(offers), sorted(node.name for node in self.daemon.cluster.nodes))
        for number, (host, offer) in enumerate(sorted(offers.items())):
            self.assertEqual(self.amount(offer, "gpus"), 8)
            name = f"task-{number}"
            framework.launch(offer, name, "echo $MESOS_AGENT_ID; sleep 1; exit 3", gpus=5)
            told = [framework.status() for _ in range(3)]
            self.assertEqual([status["state"] for status in told], ["TASK_STARTING", "TASK_RUNNING", "TASK_FAILED"], told)
            self.assertEqual({status["agent_id"]["value"] for status in told}, {offer["agent_id"]["value"]})
            (record,) = [one for one in self.daemon.tasks() if one["task"]["name"] == name]
            self.assertEqual((record["node"], record["exit_status"]), (host, 3))
            self.assertEqual(self.daemon.output(record["task"]["id"]), offer["agent_id"]["value"] + "\n")
        framework.call("TEARDOWN")

    def test_what_others_hold_is_not_offered(self):
        node = self.daemon.cluster.nodes[0].name
        pods = "/api/v1/namespaces/default/pods"

        def offered():
            framework = self.framework()
            offers = self.offers(framework)
            framework.call("TEARDOWN")
            return self.amount(offers[node], "cpus")

        before = offered()
        self.daemon.cluster.api.request("POST", pods, {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other"}, "spec": {
                "nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [
                    {"name": "c", "image": kube.SHELL, "command": ["/bin/sleep", "1000"], "resources": {"requests": {"cpu": "300m"}}}]}})
        self.addCleanup(self.daemon.cluster.api.request, "DELETE", f"{pods}/other")
        wait_for(lambda: abs(before - 0.3 - offered()) < 0.01, "the node to have less")

    def test_operators_see_each_node(self):
        slaves = json.loads(self.daemon.request("GET", "/slaves")[2])["slaves"]
        self.assertEqual({slave["hostname"]: slave["resources"]["gpus"] for slave in slaves},
                         {node.name: 8 for node in self.daemon.cluster.nodes})


class SharingTest(ClusterDaemonTest):
    """Queues and quotas, which the cluster's scheduler keeps to."""

    def queues(self):
        listed = json.loads(self.daemon.cluster.kubectl("get", "queues.drover.dev", "--output=json").stdout)["items"]
        return {queue["metadata"]["name"]: queue for queue in listed}

    def set(self, *words):
        ran = self.daemon.cli(*words)
        self.assertEqual(ran.status, 0, ran)

    def test_a_queue_is_the_clusters_and_its_limit_holds(self):
        self.set("queue", "set", "lab/vision", "--gpus-limit", "3", "--weight", "2")
        wait_for(lambda: self.queues().get("lab.vision", {}).get("status", {}).get("conditions"), self.queues)
        self.assertEqual(self.queues()["lab.vision"]["spec"]["limit"], {"gpus": "3"})
        first = self.daemon.submit("sleep", "1000", gpus=2, queue="lab/vision")
        self.daemon.wait_until_running(first)
        second = self.daemon.submit("sleep", "1000", gpus=2, queue="lab/vision")
        wait_for(lambda: "lab.vision" in self.daemon.task(second)["reason"], lambda: self.daemon.task(second))
        with self.assertRaises(drover.ApiError) as refused:
            self.daemon.submit("exit", "0", gpus=4, queue="lab/vision")
        self.assertIn("lab/vision", str(refused.exception))
        shown = {queue["queue"]: queue for queue in self.daemon.api("GET", "/v1/queues")["queues"]}["lab/vision"]
        self.assertEqual((shown["used"]["gpus"], len(shown["waiting"])), (2, 1), shown)
        self.set("queue", "set", "lab/vision", "--gpus-limit", "4")
        self.daemon.wait_until_running(second)
        for task in (first, second):
            self.daemon.end_task(task)
        self.set("queue", "rm", "lab/vision")
        wait_for(lambda: "lab.vision" not in self.queues(), self.queues)

    def test_a_quota_is_that_of_the_users_namespace(self):
        self.set("quota", "set", "user:nobody", "--gpus", "1")
        self.addCleanup(self.set, "quota", "rm", "user:nobody")
        wait_for(lambda: self.daemon.cluster.kubectl("get", "quotas.drover.dev", "drover-nobody", check=False).returncode == 0, "the quota")
        first = self.daemon.submit("sleep", "1000", gpus=1, uid=drover.NOBODY)
        self.daemon.wait_until_running(first)
        second = self.daemon.submit("sleep", "1000", gpus=1, uid=drover.NOBODY)
        wait_for(lambda: "quota" in self.daemon.task(second)["reason"] or "drover-nobody" in self.daemon.task(second)["reason"],
                 lambda: self.daemon.task(second))
        for task in (second, first):
            self.daemon.end_task(task)

    def test_queues_of_others_are_left_alone_and_used(self):
        queue = {"apiVersion": "drover.dev/v1alpha1", "kind": "Queue", "metadata": {"name": "theirs"}, "spec": {"weight": 7}}
        self.daemon.cluster.kubectl("apply", "--filename=-", input=json.dumps(queue))
        self.addCleanup(self.daemon.cluster.kubectl, "delete", "queue.drover.dev", "theirs")
        task = self.daemon.submit("exit", "0", queue="theirs")
        self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished", self.daemon.task(task))
        self.set("queue", "set", "theirs", "--weight", "3")
        wait_for(lambda: "somebody else keeps it" in self.daemon.read_log(), self.daemon.read_log)
        self.assertEqual(self.queues()["theirs"]["spec"]["weight"], 7)
        self.set("queue", "rm", "theirs")

    def test_what_a_cluster_cannot_have_is_refused(self):
        for words, why in ((("queue", "set", "Lab", "--weight", "1"), "can be called 'Lab'"), (("cordon", "--machine", "--reason", "x"), "kubectl cordon")):
            ran = self.daemon.cli(*words)
            self.assertNotEqual(ran.status, 0, ran)
            self.assertIn(why, ran.err)


class KillTest(ClusterDaemonTest):
    kills = int(os.environ.get("DROVER_TEST_KILLS", "10"))

    def delete(self, pod):
        """Whether it was still there."""
        try:
            self.daemon.cluster.api.request("DELETE", f"/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}?gracePeriodSeconds=1")
        except ApiError as error:
            if error.status != 404:
                raise
            return False
        return True

    def test_each_task_ends_once_with_its_own_status(self):
        seed = int(os.environ.get("DROVER_TEST_SEED", time.time()))
        print(f"seed {seed}", flush=True)
        chance, expected, deleted = random.Random(seed), {}, set()
        for _ in range(self.kills):
            for _ in range(chance.randrange(1, 4)):
                status = chance.randrange(4)
                task = self.daemon.submit("say", "began", ",", "sleep", round(chance.uniform(0, 1.5), 2), ",", "say", "ended", ",", "exit", status)
                expected[task] = status
            if chance.random() < 0.3 and (pods := self.daemon.pods()):
                pod = chance.choice(pods)["metadata"]
                if self.delete(pod):
                    deleted.add(pod["labels"]["drover.dev/task"])
            time.sleep(chance.uniform(0, 1))
            self.daemon.kill()
            self.daemon.start()
        for task, status in expected.items():
            record, output = self.daemon.wait_until_final(task), self.daemon.output(task)
            if task in deleted:  # it may have ended before, or not have begun and come again
                self.assertIn(record["state"], ("finished", "failed"), record)
                continue
            self.assertEqual((record.get("exit_status"), output), (status, "began\nended\n"), record)
            self.assertEqual(record["state"], "finished" if status == 0 else "failed", record)
        wait_for(lambda: not self.daemon.pods(), "the pods to go")


class HostileTest(ClusterDaemonTest):
    """What users might try, who have no rights on the cluster."""

    def refused(self, **fields):
        with self.assertRaises(drover.ApiError) as refusal:
            task = self.daemon.submit("exit", "0", uid=drover.NOBODY, **fields)
            record = self.daemon.wait_until_final(task)
            raise drover.ApiError(record["state"], record["reason"])
        return str(refusal.exception)

    def test_nobody_reaches_the_node(self):
        self.assertIn("folders of its node", self.refused(volumes=[{"host_path": "/etc", "container_path": "/host"}]))
        self.assertIn("rivileged", self.refused(privileged=True, image="registry.invalid/none:1", container_type="docker"))

    def test_a_task_is_its_users_and_has_no_word_of_the_cluster(self):
        task = self.daemon.submit("id", ",", "exists", "/var/run/secrets/kubernetes.io", ",", "say", "$(HOME) $PATH", ",", "env", "A", uid=drover.NOBODY,
                                  env={"A": "$(MESOS_SANDBOX)"})
        self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished", self.daemon.task(task))
        self.assertEqual(self.daemon.output(task).splitlines(), [f"{drover.NOBODY} {drover.NOBODY}", "ENOENT", "$(HOME) $PATH",
                                                                       "$(MESOS_SANDBOX)"])

    def test_others_neither_see_nor_touch_it(self):
        task = self.daemon.submit("say", "secret", ",", "sleep", "1000")
        self.daemon.wait_until_running(task)
        self.assertEqual(self.daemon.output(task, uid=drover.NOBODY), "")
        for words in (("exec", task, "--", "/bin/true"), ("stop", task), ("logs", task)):
            self.assertNotEqual(self.daemon.cli(*words, uid=drover.NOBODY).status, 0, words)
        self.daemon.end_task(task)

    def test_what_writes_like_a_log_is_only_what_it_wrote(self):
        """Lines that look like those of a node's log, and more than one entry of it holds."""
        line = "2026-11-27T14:00:00.5Z not a time of ours"
        task = self.daemon.submit(command=["/bin/sh", "-c", f"echo '{line}'; head -c 70000 /dev/zero | tr '\\0' x; echo; printf end"])
        self.daemon.wait_until_final(task)
        self.assertEqual(self.daemon.output(task), f"{line}\n{'x' * 70000}\nend")


if __name__ == "__main__":
    unittest.main()
