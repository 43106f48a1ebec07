"""Which GPUs tasks get, when, and what they are told when they get none: over the real binary, on simulated machines."""

import contextlib
import random
import re
import unittest

import drover

ANOTHER = 1  # a user besides root and nobody, who is on every machine: daemon


class PlacementTest(drover.DaemonTest):
    def tearDown(self):
        self.daemon.end_tasks()  # a test that failed must not keep the GPUs from the next
        for task in self.daemon.tasks():
            self.daemon.api("DELETE", f"/v1/tasks/{task['task']['id']}")
        for quota in self.daemon.api("GET", "/v1/quotas")["quotas"]:
            kind = "user" if "user" in quota else "namespace"
            self.daemon.api("DELETE", f"/v1/quotas/{kind}:{quota[kind]}")
        for queue in reversed(self.daemon.api("GET", "/v1/queues")["queues"]):
            with contextlib.suppress(drover.ApiError):  # the default one, and parents that nobody made
                self.daemon.api("DELETE", "/v1/queues/" + queue["queue"].replace("/", "%2F"))

    def hold(self, uid=None, **fields):
        """A task that runs until it is stopped; its record once it runs."""
        return self.daemon.wait_until_running(self.daemon.submit("sleep", 600, uid=uid, **fields))

    def ask(self, uid=None, **fields):
        """A task that may have to wait; its record as it was accepted."""
        return self.daemon.task(self.daemon.submit("sleep", 600, uid=uid, **fields))

    def end(self, *records):
        for record in records:
            self.daemon.stop_task(record["task"]["id"], force=True)
        for record in records:
            self.daemon.wait_until_final(record["task"]["id"])

    def state(self, record):
        return self.daemon.task(record["task"]["id"])["state"]

    def machine(self):
        """The GPUs by UUID."""
        return {gpu["uuid"]: gpu for gpu in self.daemon.api("GET", "/v1/gpus")["gpus"]}

    def indices(self, record):
        machine = self.machine()
        return sorted(machine[uuid]["index"] for uuid in record["gpus"])

    def models(self, record):
        machine = self.machine()
        return sorted(machine[uuid]["model"] for uuid in record["gpus"])

    def nvlinks(self, record):
        """Of each pair of its GPUs."""
        indices = self.indices(record)
        links = self.daemon.api("GET", "/v1/topology")["links"]
        return [links[a][b]["nvlinks"] for a in indices for b in indices if a < b]

    def plan(self, uid=None, **fields):
        return self.daemon.api("POST", "/v1/plan", {"memory": "64MiB", "cpus": 0.1, **fields}, uid=uid)

    def refused(self, uid=None, status=400, **fields):
        """The error of a request that is refused, by the submission and by the plan alike; nothing is left of it."""
        before = len(self.daemon.tasks())
        errors = []
        for path, body in (("/v1/tasks", {"command": ["true"], **fields}), ("/v1/plan", fields)):
            with self.assertRaises(drover.ApiError) as raised:
                self.daemon.api("POST", path, body, uid=uid)
            self.assertEqual(raised.exception.status, status, raised.exception)
            errors.append(raised.exception.error)
        self.assertEqual(len(self.daemon.tasks()), before)
        self.assertEqual(errors[0], errors[1])
        return errors[0]

    def explained(self, record, uid=None):
        return " / ".join(self.daemon.api("GET", f"/v1/tasks/{record['task']['id']}/explain", uid=uid)["reasons"])

    def submit_gang(self, *command, uid=None, gang, **fields):
        """Accepts words for the probe; returns the records by rank."""
        body = {"command": [str(self.daemon.probe), *(str(word) for word in command)], "memory": "64MiB", "cpus": 0.1,
                "gang": gang, **fields}
        return self.daemon.api("POST", "/v1/tasks", body, uid=uid)["tasks"]


class ConnectionTest(PlacementTest):
    profile = "dgx1-v100"

    def test_each_pair_in_turn_is_joined_by_two_links(self):
        """Four pairs fit so, if none of them breaks up what another one needs."""
        for _ in range(4):
            self.assertEqual(self.nvlinks(self.hold(gpus=2)), [2])

    def test_four_gpus_are_all_joined(self):
        self.assertNotIn(0, self.nvlinks(self.hold(gpus=4)))

    def leave_free(self, *indices):
        singles = [self.hold(gpus=1) for _ in range(8)]
        self.end(*(record for record in singles if self.indices(record)[0] in indices))

    def test_work_that_wants_a_link_waits_for_one(self):
        self.leave_free(0, 7)  # which no NVLink joins
        waiting = self.ask(gpus=2, interconnect="nvlink")
        self.assertEqual(waiting["state"], "queued")
        self.assertRegex(self.explained(waiting), "(?i)nvlink")
        self.assertFalse(self.plan(gpus=2, interconnect="nvlink")["starts_now"])
        content = self.plan(gpus=2)
        self.assertTrue(content["starts_now"] or "before" in " ".join(content["reasons"]), content)
        self.end(waiting)
        self.assertEqual(self.indices(self.hold(gpus=2, interconnect="any")), [0, 7])

    def test_more_links_than_any_pair_has_are_impossible(self):
        self.assertEqual(self.refused(gpus=2, interconnect="nvlink:3")["path"], "/interconnect")
        self.assertEqual(self.refused(gpus=8, interconnect="nvlink")["path"], "/interconnect")

    def test_cpus_are_chosen_beside_the_gpus(self):
        record = self.hold(gpus=2, cpu_affinity="require")
        near = {cpu for uuid in record["gpus"] for cpu in self.machine()[uuid]["cpus"]}
        self.assertTrue(record["cpus"])
        self.assertLessEqual(set(record["cpus"]), near)
        self.assertEqual(self.hold(gpus=1, cpu_affinity="none")["cpus"], [])

    def test_a_plan_is_what_happens_then(self):
        """Random requests, one after the other: each is planned, then made; some end meanwhile."""
        drawn = random.Random(7)
        running = []
        for _ in range(25):
            fields = {"gpus": drawn.choice([1, 1, 2, 2, 3, 4, 0.5, 0.25])}
            if fields["gpus"] >= 2 and drawn.random() < 0.4:
                fields["interconnect"] = drawn.choice(["nvlink", "nvlink:2", "switch", "node"])
            if drawn.random() < 0.3:
                fields["cpu_affinity"] = drawn.choice(["none", "require"])
            planned = self.plan(**fields)
            for remedy in planned["remedies"]:
                if found := re.fullmatch(r"ask for (\d+) GPUs?", remedy):
                    self.assertTrue(self.plan(**{**fields, "gpus": int(found[1])})["starts_now"], (fields, remedy))
            record = self.ask(**fields)
            self.assertEqual(planned["starts_now"], record["state"] != "queued", (fields, planned, record))
            if planned["starts_now"]:
                member = planned["members"][0]
                self.assertEqual((member["gpus"], member["cpus"]), (record["grants"], record["cpus"]), fields)
                self.assertEqual((planned["place"], planned["reasons"]), (0, []))
                running.append(record)
            else:
                self.assertTrue(planned["reasons"], fields)
                self.assertEqual("; ".join(planned["reasons"]), record["reason"])
                self.end(record)
            while running and drawn.random() < 0.35:
                self.end(running.pop(drawn.randrange(len(running))))


class KindsTest(PlacementTest):
    profile = "mixed"
    arguments = ("--attribute", "rack=r7", "--attribute", "rack=old")

    def test_gpus_are_what_was_asked_for(self):
        a100, v100 = "NVIDIA A100-PCIE-40GB", "Tesla V100-PCIE-32GB"
        for fields, models in (({"gpu_model": "a100"}, [a100]), ({"gpu_model": ["H100", "V100"]}, [v100]),
                               ({"gpu_memory": "36GiB"}, [a100]), ({"gpu_compute_capability": "8.0"}, [a100]),
                               ({"gpus": 2, "gpu_model": "V100", "gpu_ecc": True, "gpu_driver": "525.85"}, [v100, v100]),
                               ({"gpus": 2, "different_models": True}, [a100, v100]),
                               ({"gpus": [{"count": 2, "model": "V100"}, {"model": "A100"}]}, [a100, v100, v100])):
            with self.subTest(fields=fields):
                record = self.hold(**fields)
                self.assertEqual(self.models(record), models)
                self.end(record)

    def test_what_no_gpu_is_like_is_refused_by_name(self):
        for fields, path in (({"gpu_model": "A10"}, "/gpu_model"), ({"gpu_memory": "64GiB"}, "/gpu_memory"),
                             ({"gpu_compute_capability": "9.0"}, "/gpu_compute_capability"), ({"gpu_ecc": False}, "/gpu_ecc"),
                             ({"gpu_driver": "535"}, "/gpu_driver"), ({"gpus": 5}, "/gpus"), ({"gpus": 3, "gpu_model": "A100"}, "/gpus"),
                             ({"gpus": 3, "different_models": True}, "/different_models"),
                             ({"gpus": [{"model": "V100"}, {"model": "H100"}]}, "/gpus/1/model"),
                             ({"gpus": 1, "gpu_share": "50GiB"}, "/gpu_share"), ({"constraints": {"rack": ["r8"]}}, "/constraints"),
                             ({"gpus": 2, "interconnect": "nvlink"}, "/interconnect"), ({"cpus": 65}, "/cpus"),
                             ({"memory": "1TiB"}, "/memory")):
            with self.subTest(fields=fields):
                self.assertEqual(self.refused(**fields)["path"], path)

    def test_the_command_line_names_the_option(self):
        ran = self.daemon.cli("run", "--gpu-model", "H100", "--", "true")
        self.assertEqual(ran.status, 64)
        self.assert_one_sentence(ran, "--gpu-model", "H100")
        ran = self.daemon.cli("plan", "--gpus", "1xA100,7xV100")
        self.assertEqual(ran.status, 64)
        self.assert_one_sentence(ran, "--gpus")

    def test_a_plan_is_told_in_words_and_by_its_exit_status(self):
        ran = self.daemon.cli("plan", "--gpus", "2", "--gpu-model", "V100")
        self.assertEqual(ran.status, 0, ran)
        self.assertIn("simulated", ran.out)
        self.assertIn("GPU 0,1: 2 x Tesla V100-PCIE-32GB, joined by PIX", ran.out)
        self.hold(gpus=3)
        ran = self.daemon.cli("plan", "--gpus", "2")
        self.assertEqual(ran.status, 1, ran)
        self.assertIn("would wait", ran.out)
        self.assertEqual(len(self.daemon.tasks()), 1)

    def test_attributes_of_the_machine(self):
        self.hold(constraints={"rack": ["r1", "r7"]})
        self.hold(constraints={"rack": "old"})

    def test_the_pair_on_one_switch_is_taken(self):
        self.assertEqual(self.indices(self.hold(gpus=2)), [0, 1])


class OneGpuTest(PlacementTest):
    profile = "k40m"

    def test_two_halves_fit_and_a_third_waits(self):
        halves = [self.hold(gpus=0.5) for _ in range(2)]
        third = self.ask(gpus=0.5)
        self.assertEqual(third["state"], "queued")
        self.assertRegex(self.explained(third), "(?i)gpu")
        gpu, = self.machine().values()
        self.assertEqual([holder["milli"] for holder in gpu["holders"]], [500, 500])
        self.assertEqual({holder["task"] for holder in gpu["holders"]}, {half["task"]["id"] for half in halves})
        self.end(halves[0])
        self.daemon.wait_until_running(third["task"]["id"])

    def test_a_share_is_never_shown_without_saying_that_it_is_not_enforced(self):
        record = self.hold(gpus=0.5, name="half")
        for words in (["gpus"], ["ps"], ["explain", "half"]):
            with self.subTest(words=words):
                self.assertRegex(self.daemon.cli(*words).out, "0.5.*not enforced|not enforced.*0.5")
        self.assertIn("0.5 of 0 (not enforced)", self.daemon.cli("plan", "--gpus", "0.5").out)
        self.assertEqual(record["task"]["gpu_share"], {"milli": 500, "enforced": False})

    def test_shares_of_memory_are_exact(self):
        total = next(iter(self.machine().values()))["memory_bytes"]
        part = (total // 2 >> 20) << 20
        self.hold(gpu_share=f"{part}B")
        self.hold(gpu_share=f"{part}B")
        left = total - 2 * part
        self.assertEqual(self.ask(gpu_share=f"{left + 1}B")["state"], "queued")
        self.assertEqual(self.refused(gpu_share=f"{total + 1}B")["path"], "/gpu_share")

    def test_tiny_shares_add_up_without_loss(self):
        for part in (0.333, 0.333, 0.333):
            self.hold(gpus=part)
        self.assertEqual(self.ask(gpus=0.002)["state"], "queued")
        self.end(self.daemon.tasks()[-1])
        self.hold(gpus=0.001)

    def test_a_task_is_told_its_share(self):
        task = self.daemon.submit("env", "DROVER_GPU_SHARE", ",", "env", "DROVER_GPU_MEMORY", gpus=0.25)
        self.daemon.wait_until_final(task)
        memory = next(iter(self.machine().values()))["memory_bytes"]
        self.assertEqual(self.daemon.output(task).split(), ["0.25", str(memory * 250 // 1000)])

    def test_a_group_has_one_set_of_gpus(self):
        first = self.hold(gpus=1, group="pair")
        second = self.hold(gpus=1, group="pair")
        self.assertEqual(first["gpus"], second["gpus"])
        waiting = self.ask(gpus=1)
        self.assertEqual(waiting["state"], "queued")
        self.end(first)
        self.assertEqual(self.state(waiting), "queued", "the group still has the GPU")
        self.end(second)
        self.daemon.wait_until_running(waiting["task"]["id"])

    def test_a_group_is_its_owners_alone(self):
        self.hold(gpus=1, group="pair")
        stranger = self.ask(gpus=1, group="pair", uid=drover.NOBODY)
        self.assertEqual(stranger["state"], "queued")


class GangTest(PlacementTest):
    profile = "pcie4"

    def test_all_start_at_once_or_none(self):
        holder = self.hold(gpus=1)
        members = self.submit_gang("sleep", 600, gang={"size": 4}, gpus=1)
        self.assertEqual({self.state(member) for member in members}, {"queued"})
        self.assertEqual(len(self.daemon.held_gpus()), 1)
        self.assertFalse(self.plan(gpus=1, gang={"size": 4})["starts_now"])
        self.end(holder)
        held = [self.daemon.wait_until_running(member["task"]["id"])["gpus"] for member in members]
        self.assertEqual(len({uuid for gpus in held for uuid in gpus}), 4)
        self.daemon.stop_task(members[2]["task"]["id"], force=True)
        for member in members:
            self.assertEqual(self.daemon.wait_until_final(member["task"]["id"])["state"], "killed")
        self.assertEqual(self.daemon.held_gpus(), {})

    def test_a_gang_is_explained_by_its_id_with_what_would_help(self):
        self.hold(gpus=1)
        members = self.submit_gang("sleep", 600, gang={"size": 4}, gpus=1)
        gang = members[0]["task"]["gang"]["id"]
        explained = self.daemon.cli("explain", gang).out
        self.assertIn(f"Task {gang}-0 is queued at place 1, queue default", explained)
        self.assertIn("rank 0 of the 4", explained)
        self.assertIn("to start sooner: make it a gang of 3", explained)
        self.daemon.stop_task(gang, force=True)
        self.assertTrue(self.plan(gpus=1, gang={"size": 3})["starts_now"])

    def test_members_may_differ(self):
        members = self.submit_gang("sleep", 600, gang={"members": [{"gpus": 0}, {"gpus": 3}]})
        held = [len(self.daemon.wait_until_running(member["task"]["id"])["gpus"]) for member in members]
        self.assertEqual(held, [0, 3])

    def test_a_gang_that_can_never_start_is_refused(self):
        for gang, fields, path in (({"size": 5}, {"gpus": 1}, "/gang/size"), ({"size": 2}, {"gpus": 5}, "/gpus"),
                                   ({"size": 2, "arrangement": "spread"}, {"gpus": 1}, "/gang"),
                                   ({"members": [{"gpus": 1}, {"gpus": 9}]}, {}, "/gang/members/1/gpus")):
            with self.subTest(gang=gang, fields=fields):
                self.assertIn(path, self.refused(gang=gang, **fields)["path"])

    def test_in_the_foreground_lines_have_ranks_and_the_first_failure_counts(self):
        ran = self.daemon.run_probe(["--gang", "3", "--gpus", "1", "--cpus", "0.1", "--mem", "64M"], "env", "RANK")
        self.assertEqual(ran.status, 0, ran)
        self.assertEqual(sorted(ran.out.splitlines()), ["[0] 0", "[1] 1", "[2] 2"])
        script = 'echo here; [ "$RANK" != 1 ] || exit 7; sleep 600'
        ran = self.daemon.cli("run", "--gang", "3", "--cpus", "0.1", "--mem", "64M", "--", "sh", "-c", script)
        self.assertEqual(ran.status, 7, ran)
        self.assertIn("rank 1", ran.err)

    def test_a_detached_gang_is_stopped_by_its_id(self):
        ran = self.daemon.cli("run", "--detach", "--gang", "2", "--cpus", "0.1", "--mem", "64M", "--name", "pair", "--",
                              self.daemon.probe, "sleep", "600")
        ids = ran.out.split()
        self.assertEqual(len(ids), 2, ran)
        self.assertIn("pair[1]", self.daemon.cli("ps").out)
        self.assertEqual(self.daemon.cli("stop", "--force", self.daemon.task(ids[0])["task"]["gang"]["id"]).status, 0)
        for member in ids:
            self.assertEqual(self.daemon.wait_until_final(member)["state"], "killed")


class SharingTest(PlacementTest):
    profile = "pcie4"

    def set_queue(self, path, **rule):
        self.daemon.api("PATCH", "/v1/queues/" + path.replace("/", "%2F"), rule)

    def set_quota(self, subject, **rule):
        self.daemon.api("PATCH", f"/v1/quotas/{subject}", rule)

    def test_a_quota_holds_whatever_is_free(self):
        self.set_quota("user:nobody", limit={"gpus": 2})
        self.hold(gpus=1, uid=drover.NOBODY)
        half = self.hold(gpus=0.5, uid=drover.NOBODY)
        waiting = self.ask(gpus=1, uid=drover.NOBODY)
        self.assertEqual(waiting["state"], "queued")
        self.assertRegex(self.explained(waiting, uid=drover.NOBODY), "(?i)quota|hold")
        self.assertRegex(self.daemon.cli("explain", waiting["task"]["id"], uid=drover.NOBODY).out, "(?i)quota|hold")
        self.hold(gpus=2)  # it does not keep others from what is free
        self.assertIn("2", self.refused(gpus=3, uid=drover.NOBODY)["message"])
        self.end(half)
        self.daemon.wait_until_running(waiting["task"]["id"])

    def test_a_quota_of_a_namespace(self):
        self.set_quota("namespace:team", limit={"gpus": 1})
        self.hold(gpus=1, namespace="team", uid=drover.NOBODY)
        self.assertEqual(self.ask(gpus=1, namespace="team", uid=ANOTHER)["state"], "queued")
        self.hold(gpus=1, namespace="other", uid=ANOTHER)

    def test_a_limit_of_a_queue_counts_what_is_below_it(self):
        self.set_queue("research", limit={"gpus": 2})
        self.set_queue("research/vision")
        self.hold(gpus=2, queue="research/vision")
        waiting = self.ask(gpus=1, queue="research")
        self.assertEqual(waiting["state"], "queued")
        self.assertIn("research", self.explained(waiting))
        self.hold(gpus=1)

    def test_a_guarantee_is_lent_and_taken_back(self):
        self.set_queue("owner", guarantee={"gpus": 3})
        self.set_queue("guest")
        guests = [self.hold(gpus=1, queue="guest", grace="1s") for _ in range(4)]
        planned = self.plan(gpus=3, queue="owner")
        self.assertEqual((planned["starts_now"], planned["victims"]), (False, 3), planned)
        owner = self.ask(gpus=3, queue="owner")
        self.daemon.wait_until_running(owner["task"]["id"])
        drover.wait_for(lambda: sorted(self.state(guest) for guest in guests) == ["queued"] * 3 + ["running"],
                        "three guests to wait again")
        again = [self.daemon.task(guest["task"]["id"]) for guest in guests if self.state(guest) == "queued"]
        self.assertEqual([record["preemptions"] for record in again], [1, 1, 1])
        self.end(owner)
        for record in again:
            self.daemon.wait_until_running(record["task"]["id"])

    def test_a_higher_priority_goes_first_and_the_lower_runs_again(self):
        low = self.ask(gpus=4, priority=-1, grace="1s")
        self.daemon.wait_until_running(low["task"]["id"])
        high = self.daemon.submit("say", "first", gpus=4)
        self.assertEqual(self.daemon.wait_until_final(high)["state"], "finished")
        record = self.daemon.wait_until_running(low["task"]["id"])
        self.assertEqual(record["preemptions"], 1)

    def test_nothing_is_ended_that_would_not_help(self):
        low = self.hold(gpus=2, priority=-1)
        self.hold(gpus=2)
        waiting = self.ask(gpus=3)
        self.assertEqual((self.state(low), self.state(waiting)), ("running", "queued"))
        self.assertEqual(self.plan(gpus=3)["victims"], 0)

    def test_whoever_may_not_is_refused(self):
        nobody = drover.NOBODY
        for words in (["queue", "set", "mine", "--gpus-guarantee", "4"], ["queue", "remove", "default"],
                      ["quota", "set", "user:nobody", "--gpus", "100"], ["quota", "remove", "user:nobody"]):
            with self.subTest(words=words):
                ran = self.daemon.cli(*words, uid=nobody)
                self.assertEqual(ran.status, 77, ran)
                self.assert_one_sentence(ran, "root")
        self.assertEqual(self.refused(gpus=1, priority=1, uid=nobody, status=403)["path"], "/priority")
        self.set_quota("user:nobody", max_priority=5)
        self.hold(gpus=1, priority=5, uid=nobody)
        self.assertEqual(self.refused(gpus=1, priority=6, uid=nobody, status=403)["path"], "/priority")
        self.set_queue("closed", users=["daemon"])
        self.assertEqual(self.refused(gpus=1, queue="closed", uid=nobody, status=403)["path"], "/queue")
        self.hold(gpus=1, queue="closed", uid=ANOTHER)
        self.assertEqual(self.refused(gpus=1, queue="nowhere", uid=nobody, status=404)["path"], "/queue")

    def test_the_tasks_of_others_are_not_told(self):
        secrets = [self.hold(gpus=2, name="secret-job"), self.hold(gpus=2, name="secret-job", uid=ANOTHER)]
        self.ask(gpus=1, name="secret-job", priority=7)
        waiting = self.ask(gpus=1, uid=drover.NOBODY)
        self.assertEqual(waiting["state"], "queued")
        told = [self.explained(waiting, uid=drover.NOBODY), str(self.plan(gpus=2, uid=drover.NOBODY)),
                self.daemon.cli("queue", "--json", uid=drover.NOBODY).out, self.daemon.cli("queue", uid=drover.NOBODY).out,
                self.daemon.cli("gpus", "--json", uid=drover.NOBODY).out, self.daemon.cli("quota", uid=drover.NOBODY).out]
        for text in told:
            self.assertNotIn("secret-job", text)
            for record in self.daemon.tasks():
                if record["task"]["id"] != waiting["task"]["id"]:
                    self.assertNotIn(record["task"]["id"], text)
        self.assertEqual(len(secrets), 2)

    def test_rules_outlive_the_daemon(self):
        self.set_queue("kept/below", guarantee={"gpus": 1, "memory": "1GiB"}, users=["nobody"], weight=3)
        self.set_quota("user:nobody", limit={"gpus": 2}, max_priority=3)
        running = self.hold(gpus=0.5, queue="kept/below", uid=drover.NOBODY)
        before = [self.daemon.api("GET", path) for path in ("/v1/queues", "/v1/quotas")]
        self.daemon.kill()
        self.daemon.start()
        self.daemon.wait_until_running(running["task"]["id"])
        self.assertEqual([self.daemon.api("GET", path) for path in ("/v1/queues", "/v1/quotas")], before)

    def test_a_queue_that_is_used_stays(self):
        self.set_queue("busy")
        record = self.hold(gpus=1, queue="busy")
        self.assertEqual(self.daemon.cli("queue", "remove", "busy").status, 73)
        self.end(record)
        self.assertEqual(self.daemon.cli("queue", "remove", "busy").status, 0)

    def test_queues_and_quotas_are_listed(self):
        for words in (["queue", "set", "research/vision", "--gpus-guarantee", "2", "--gpus-limit", "3", "--users", "nobody,daemon"],
                      ["quota", "set", "user:nobody", "--gpus", "3", "--mem", "1GiB", "--max-priority", "4"]):
            ran = self.daemon.cli(*words)
            self.assertEqual(ran.status, 0, ran)
        self.hold(gpus=3, queue="research/vision", uid=drover.NOBODY)
        waiting = self.ask(gpus=1, queue="research/vision", uid=drover.NOBODY)
        listing = self.daemon.cli("queue", uid=drover.NOBODY).out
        self.assertRegex(listing, r"research/vision +3 GPUs, .* 2 GPUs +3 GPUs +1 +nobody,daemon +1\n")
        self.assertRegex(listing, rf"{waiting['task']['id']} +nobody +1 GPU")
        self.assertRegex(self.daemon.cli("quota", uid=drover.NOBODY).out, r"user:nobody +3 GPUs.* 3 GPUs, 1 GiB +4\n")

    def test_wrong_rules_name_the_field(self):
        for path, rule, field in (("queues/q", {"limit": {"gpus": -1}}, "/limit/gpus"), ("queues/q", {"weight": 0}, "/weight"),
                                  ("queues/q", {"limit": {"gpus": 1}, "guarantee": {"gpus": 2}}, "/guarantee"),
                                  ("queues/q", {"limits": {}}, "/limits"), ("quotas/user:a", {"limit": {"cpus": "x"}}, "/limit/cpus"),
                                  ("quotas/user:a", {"max_priority": 5000}, "/max_priority"), ("queues/a%20b", {}, ""),
                                  ("quotas/nobody", {}, "")):
            with self.subTest(path=path, rule=rule):
                with self.assertRaises(drover.ApiError) as raised:
                    self.daemon.api("PUT", f"/v1/{path}", rule)
                self.assertEqual(raised.exception.status, 400)
                self.assertIn(field, raised.exception.error["path"] + raised.exception.message)
        self.assertEqual([queue["queue"] for queue in self.daemon.api("GET", "/v1/queues")["queues"]], ["default"])


class BadRequestTest(PlacementTest):
    profile = "dgx2"

    WRONG = (
        ({"gpus": -1}, "/gpus"), ({"gpus": 1e308}, "/gpus"), ({"gpus": 10 ** 30}, "/gpus"), ({"gpus": 0.0001}, "/gpus"),
        ({"gpus": 1.5}, "/gpus"), ({"gpus": "two"}, "/gpus"), ({"gpus": []}, "/gpus"), ({"gpus": [{"count": 0}]}, "/gpus/0/count"),
        ({"gpus": [{"count": 2 ** 31}]}, "/gpus/0/count"), ({"gpus": [{"modle": "x"}]}, "/gpus/0/modle"),
        ({"gpus": 0, "gpu_model": "V100"}, "/gpu_model"), ({"gpu_model": ""}, "/gpu_model"), ({"gpu_memory": -1}, "/gpu_memory"),
        ({"gpu_memory": "much"}, "/gpu_memory"), ({"gpu_memory": 2 ** 63}, "/gpu_memory"),
        ({"gpu_compute_capability": "seven"}, "/gpu_compute_capability"), ({"gpu_ecc": "on"}, "/gpu_ecc"),
        ({"gpu_driver": "latest"}, "/gpu_driver"), ({"gpu_share": 0}, "/gpu_share"), ({"gpu_share": 2}, "/gpu_share"),
        ({"gpu_share": "0"}, "/gpu_share"), ({"gpus": 0.5, "gpu_share": 0.5}, "/gpus"),
        ({"gpus": 1, "different_models": True}, "/different_models"), ({"gpus": 1, "interconnect": "nvlink"}, "/interconnect"),
        ({"gpus": 2, "interconnect": "telepathy"}, "/interconnect"), ({"gpus": 2, "interconnect": "nvlink:0"}, "/interconnect"),
        ({"cpu_affinity": "require"}, "/cpu_affinity"), ({"gpus": 1, "nic": "please"}, "/nic"),
        ({"constraints": {"rack": []}}, "/constraints/rack"), ({"group": "g"}, "/group"), ({"gpus": 1, "group": "a b"}, "/group"),
        ({"queue": "a//b"}, "/queue"), ({"queue": 7}, "/queue"), ({"namespace": "a b"}, "/namespace"), ({"priority": 1001}, "/priority"),
        ({"priority": 0.5}, "/priority"), ({"gang": {"size": 0}}, "/gang/size"), ({"gang": {"size": -4}}, "/gang/size"),
        ({"gang": {"size": 10 ** 9}}, "/gang/size"), ({"gang": {"size": 2, "arrangement": "heap"}}, "/gang/arrangement"),
        ({"gang": {"members": []}}, "/gang/members"), ({"gang": {}}, "/gang/size"), ({"gang": 4}, "/gang"),
        ({"gpus": 17}, "/gpus"), ({"gpus": 1024}, "/gpus"), ({"cpus": 1e300}, "/cpus"), ({"memory": "8EiB"}, "/memory"),
    )

    def test_every_wrong_request_names_its_field(self):
        for fields, path in self.WRONG:
            with self.subTest(fields=fields):
                error = self.refused(**fields)
                self.assertEqual((error["kind"], error["path"]), ("invalid", path), error)
                self.assertTrue(error["message"])

    def test_all_mistakes_at_once(self):
        message = self.refused(gpus=-1, gpu_memory="x", nic="y", queue="", priority=9999, gpux=1)["message"]
        for path in ("/gpus", "/gpu_memory", "/nic", "/queue", "/priority", "/gpux"):
            self.assertIn(path, message)

    def test_numbers_that_are_none(self):
        for text in ("NaN", "Infinity", "-Infinity", "1e999"):
            status, _, data = self.daemon.request("POST", "/v1/tasks", f'{{"command": ["true"], "gpus": {text}}}')
            self.assertEqual(status, 400, data)

    def test_flags_of_the_command_line(self):
        for option, value in (("--gpus", "nan"), ("--gpus", "1e9"), ("--gpus", "2x"), ("--gpus", "0xA100"), ("--gpus", ""),
                              ("--gpu-mem", "much"), ("--gpu-cc", "x"), ("--gpu-ecc", "perhaps"), ("--gpu-share", "0"),
                              ("--interconnect", "rope"), ("--gang", "0"), ("--gang", "1e9"), ("--arrangement", "pack"),
                              ("--priority", "top"), ("--constraint", "rack"), ("--queue", "a b"), ("--nic", "x")):
            with self.subTest(option=option, value=value):
                ran = self.daemon.cli("run", f"{option}={value}", "--", "true")
                self.assertEqual(ran.status, 64, ran)
                self.assert_one_sentence(ran, option)

    def test_sixteen_gpus_and_no_more(self):
        record = self.hold(gpus=16)
        self.assertEqual(len(record["gpus"]), 16)
        self.assertEqual(self.ask(gpus=1)["state"], "queued")


if __name__ == "__main__":
    unittest.main()
