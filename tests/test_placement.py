"""Which GPUs tasks get, when, and what they are told when they get none: over the real binary, on simulated machines."""

import json
import random
import subprocess
import unittest

import drover
import placement_case
from placement_case import heeded


class ConnectionTest(placement_case.PlacementTest):
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
                if (other := heeded(fields, remedy)) is not None:
                    self.assertTrue(self.plan(**other)["starts_now"], (fields, remedy))
            record = self.ask(**fields)
            self.assertEqual(planned["starts_now"], record["state"] != "queued", (fields, planned, record))
            if planned["starts_now"]:
                member = planned["members"][0]
                granted = [{name: value for name, value in grant.items() if name != "tier"} for grant in record["grants"]]
                self.assertEqual((member["gpus"], member["cpus"]), (granted, record["cpus"]), fields)
                self.assertEqual((planned["place"], planned["reasons"]), (0, []))
                running.append(record)
            else:
                self.assertTrue(planned["reasons"], fields)
                self.assertEqual("; ".join(planned["reasons"]), record["reason"])
                self.end(record)
            while running and drawn.random() < 0.35:
                self.end(running.pop(drawn.randrange(len(running))))


class KindsTest(placement_case.PlacementTest):
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
                             ({"gpus": 1, "gpu_share": "50GiB"}, "/gpu_share"), ({"constraints": {"rack": ["r8"]}}, "/constraints/rack"),
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

    def test_what_would_help_starts_at_once(self):
        self.hold(gpus=[{"count": 1, "model": "A100"}, {"count": 1, "model": "V100"}])
        for fields, first in (({"gpus": 2, "gpu_model": "V100"}, "be content with GPUs of another model: NVIDIA A100-PCIE-40GB"),
                              ({"gpus": 2, "gpu_memory": "36GiB"}, "be content with GPUs of less memory: NVIDIA A100-PCIE-40GB and Tesla V100-PCIE-32GB"),
                              ({"gpus": 2, "gpu_compute_capability": "8.0"},
                               "be content with GPUs of a lower compute capability: NVIDIA A100-PCIE-40GB and Tesla V100-PCIE-32GB"),
                              ({"gpus": 3}, "ask for 2 GPUs"), ({"gpus": 1, "gang": {"size": 4}}, "make it a gang of 2")):
            with self.subTest(fields=fields):
                planned = self.plan(**fields)
                self.assertEqual((planned["starts_now"], planned["remedies"][0]), (False, first), planned)
                for remedy in planned["remedies"]:
                    self.assertTrue(self.plan(**heeded(fields, remedy))["starts_now"], remedy)
        self.hold(gpus=2)
        self.assertEqual(self.plan(gpus=2)["remedies"], ["wait for 2 GPUs of " + self.daemon.api("GET", "/v1/nodes")["nodes"][0]["name"]])

    def test_attributes_of_the_machine(self):
        self.hold(constraints={"rack": ["r1", "r7"]})
        self.hold(constraints={"rack": "old"})

    def test_the_pair_on_one_switch_is_taken(self):
        self.assertEqual(self.indices(self.hold(gpus=2)), [0, 1])


class OneGpuTest(placement_case.PlacementTest):
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
        self.assertIn("GPU 0.5 of 0:", self.daemon.cli("plan", "--gpus", "0.5").out)
        self.assertEqual(record["task"]["gpu_share"], {"milli": 500})

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


class GangTest(placement_case.PlacementTest):
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

    def test_in_the_foreground_it_is_told_once_why_it_waits_and_what_helps(self):
        holder = self.hold(gpus=1)
        for words, helps in ((["--gpus", "4"], "ask for 3 GPUs"), (["--gang", "4", "--gpus", "1"], "make it a gang of 3")):
            with self.subTest(words=words):
                command = self.daemon.cli_command("--socket", self.daemon.socket, "run", "--json", *words, "--cpus", "0.1", "--mem",
                                                  "64M", "--", self.daemon.probe, "exit", "0")
                with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
                    told = [running.stderr.readline(), running.stderr.readline()]
                    self.end(holder)
                    out, rest = running.communicate(timeout=drover.PATIENCE)
                self.assertRegex(told[0], "^drover: waiting: .*GPU|^drover: waiting: 3 of 4 members")
                self.assertEqual(told[1], f"drover: what helps: {helps}\n")
                self.assertNotIn("what helps", rest)
                self.assertTrue(json.loads(out))
                self.assertEqual(running.returncode, 0, rest)
                holder = self.hold(gpus=1)

    def test_a_gang_is_explained_by_its_id_with_what_would_help(self):
        self.hold(gpus=1)
        members = self.submit_gang("sleep", 600, gang={"size": 4}, gpus=1)
        gang = members[0]["task"]["gang"]["id"]
        explained = self.daemon.cli("explain", gang).out
        self.assertIn(f"Task {gang}-0 is queued at place 1, queue default", explained)
        self.assertIn("rank 0 of the 4", explained)
        self.assertIn("what helps: make it a gang of 3", explained)
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


if __name__ == "__main__":
    unittest.main()
