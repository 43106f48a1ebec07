"""Requests and rules that are contradictory, absurd or too large: each is refused whole, and the message names the field."""

import json
import unittest

import drover
import placement_case

# Text of JSON that next to no field takes; a field that takes one of them anyway is said to.
ABSURD = {
    "not a number": "NaN", "infinite": "1e400", "negative": "-1", "10^9": "1000000000", "10^18": "1000000000000000000",
    "2^63": "9223372036854775808", "2^64": "18446744073709551616", "-2^63": "-9223372036854775808", "1e308": "1e308",
    "next to nothing": "1e-300", "no text": '""', "a space": '" "', "a zero byte": '"\\u0000"', "half a letter": '"\\udc00"',
    "an emoji": '"\\ud83d\\ude00"', "a digit of another script": '"\u0663"', "long text": '"' + "x" * 100_000 + '"',
    "a long list": "[" + ",".join(['"a"'] * 100_000) + "]", "a list in a list": "[[]]", "a deep list": "[" * 2000 + "]" * 2000,
    "a list of nothing": "[null]", "an object": '{"a": {"b": 1}}', "infinite text": '"1e400"', "10^20 GiB": '"99999999999999999999GiB"',
    "negative text": '"-1"',
}
NAMES = {"infinite text", "10^20 GiB", "negative text"}  # they are names, if odd ones
COUNTS = {"10^9", "10^18"}


def nested(path, text):
    """The JSON that has the text at the path: ("gang", 0) is in the first entry of a list."""
    for name in reversed(path):
        text = f"[{text}]" if name == 0 else f'{{"{name}": {text}}}'
    return text


class BadRequestTest(placement_case.PlacementTest):
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


class AbsurdTest(placement_case.PlacementTest):
    """Every field with every absurd value: refused, by name, in few words, and nothing is stored."""

    profile = "dgx2"

    def stored(self):
        return [self.daemon.api("GET", path) for path in ("/v1/tasks", "/v1/queues", "/v1/quotas")]

    def check(self, method, address, path, taken=(), also=""):
        before = self.stored()
        name = "/".join(["", *(str(part) for part in path)])
        for what, text in ABSURD.items():
            if what in taken:
                continue
            with self.subTest(address=address, field=name, value=what):
                status, _, data = self.daemon.request(method, address, (f"{{{also}, " + nested(path, text)[1:] if also else nested(path, text)).encode())
                self.assertIn(status, (400, 404), data)
                error = json.loads(data)["error"]
                own = name.removesuffix("/0")  # of a list of texts, the list is named
                self.assertTrue(error["path"].startswith(own) or f"\n  {own}" in error["message"], error)
                self.assertLess(len(data), 5000)
        self.assertEqual(self.stored(), before)
        self.assertTrue(self.daemon.answers())

    def test_what_a_task_asks_for(self):
        for field, taken in (
                ("gpus", ()), ("gpu_model", ()), ("gpu_memory", {"10^9"}), ("gpu_compute_capability", ()), ("gpu_ecc", ()),
                ("gpu_driver", ()), ("gpu_share", ()), ("gpu_part", ()), ("different_models", ()), ("interconnect", ()), ("cpu_affinity", ()), ("nic", ()),
                ("cpus", ()), ("memory", {"10^9"}), ("constraints", ()), ("group", ()), ("queue", ()), ("priority", {"negative"}),
                ("namespace", NAMES), ("gang", ())):
            self.check("POST", "/v1/plan", (field,), taken)

    def test_what_a_task_is(self):
        for field in ("timeout", "grace", "env", "labels", "user", "working_directory", "read_only"):
            self.check("POST", "/v1/tasks", (field,), {"no text"} if field == "working_directory" else (), also='"command": ["true"]')
        self.check("POST", "/v1/tasks", ("command",))

    def test_what_kinds_of_gpus_and_members_of_gangs_ask_for(self):
        for path, taken in (
                (("gpus", 0), ()), (("gpus", 0, "count"), ()), (("gpus", 0, "model"), ()), (("gpus", 0, "model", 0), ()),
                (("gpus", 0, "memory"), {"10^9"}), (("gpus", 0, "compute_capability"), ()), (("gpus", 0, "ecc"), ()),
                (("gpus", 0, "driver"), ()), (("constraints", "rack"), ()), (("constraints", "rack", 0), ()),
                (("gang", "size"), ()), (("gang", "arrangement"), ()), (("gang", "members"), ()), (("gang", "members", 0), ()),
                (("gang", "members", 0, "gpus"), ()), (("gang", "members", 0, "gpu_share"), ()), (("gang", "members", 0, "cpus"), ())):
            self.check("POST", "/v1/plan", path, taken)

    def test_rules_of_queues_and_users(self):
        for kind in ("limit", "guarantee"):
            self.check("PUT", "/v1/queues/q", (kind,))
            for amount, taken in (("gpus", ()), ("cpus", ()), ("memory", COUNTS)):
                self.check("PUT", "/v1/queues/q", (kind, amount), taken)
        self.check("PUT", "/v1/queues/q", ("weight",))
        self.check("PUT", "/v1/queues/q", ("users",))
        self.check("PUT", "/v1/queues/q", ("users", 0), NAMES | {"an emoji", "a digit of another script"})
        self.check("PUT", "/v1/quotas/user:a", ("limit", "gpus"))
        self.check("PUT", "/v1/quotas/user:a", ("limit", "memory"), COUNTS)
        self.check("PUT", "/v1/quotas/user:a", ("max_priority",), {"negative"})

    def test_sums_do_not_overflow(self):
        for child in range(20):  # 2^60 bytes each: their sum is more than 64 bits hold
            self.daemon.api("PUT", f"/v1/queues/parent%2F{child}", {"guarantee": {"memory": 1 << 60}})
        with self.assertRaises(drover.ApiError) as raised:
            self.daemon.api("PUT", "/v1/queues/parent", {"guarantee": {"memory": 1 << 61}})
        self.assertEqual(raised.exception.error["path"], "/guarantee/memory", raised.exception)
        self.assertEqual(self.refused(gpus=[{"count": 1024}] * 64)["path"], "/gpus")
        self.assertEqual(self.refused(gpus=16, gang={"size": 1024})["path"], "/gang/size")
        self.assertEqual(self.refused(memory=1 << 59, gang={"size": 1024})["path"], "/memory")

    def test_many_mistakes_are_told_in_few_words(self):
        wrong = {"gpus": -1, "cpus": -1, "memory": -1, "nic": "x"}
        for body in ({"gang": {"members": [wrong] * 1024}}, {f"field{i}": 1 for i in range(50_000)}, {"x" * 500_000: 1},
                     {"constraints": {f"rack{i}": "r" for i in range(50_000)}}):
            status, _, data = self.daemon.request("POST", "/v1/plan", body)
            self.assertEqual(status, 400, data[:1000])
            self.assertLess(len(data), 5000)

    def test_flags(self):
        absurd = ("", "-1", "nan", "1e400", "1e9", "1e18", "9" * 30, "0x10", "\u0663", "x" * 10_000)
        for flag, taken in (("--gpus", ()), ("--gpu-mem", {"9" * 30}), ("--gpu-cc", ()), ("--gpu-ecc", ()), ("--gpu-driver", {"9" * 30}),
                            ("--gpu-share", ()), ("--interconnect", ()), ("--cpu-affinity", ()), ("--nic", ()), ("--cpus", ()),
                            ("--mem", ()), ("--gang", ()), ("--priority", {"-1"}), ("--timeout", ()), ("--grace", ())):
            for value in absurd:
                if value in taken:
                    continue
                with self.subTest(flag=flag, value=value[:40]):
                    ran = self.daemon.cli("run", f"{flag}={value}", "--", "true")
                    self.assertEqual(ran.status, 64, ran)
                    self.assertIn(flag, ran.err)
                    self.assertLess(len(ran.err), 12_000)
        for words in (["queue", "set", "q", "--gpus-limit"], ["queue", "set", "q", "--cpus-guarantee"], ["queue", "set", "q", "--mem-limit"],
                      ["queue", "set", "q", "--weight"], ["quota", "set", "user:a", "--gpus"], ["quota", "set", "user:a", "--max-priority"]):
            for value in absurd:
                if words[-1] == "--max-priority" and value == "-1":
                    continue
                with self.subTest(words=words, value=value[:40]):
                    ran = self.daemon.cli(*words[:-1], f"{words[-1]}={value}")
                    self.assertEqual(ran.status, 64, ran)
                    self.assertIn(words[-1], ran.err)
        self.assertEqual([self.daemon.tasks(), len(self.stored()[1]["queues"]), self.stored()[2]["quotas"]], [[], 1, []])


if __name__ == "__main__":
    unittest.main()
