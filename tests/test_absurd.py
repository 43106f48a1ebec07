"""Requests and rules that are contradictory, absurd or too large: each is refused whole, and the message names the field."""

import unittest

import drover
import placement_case


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


if __name__ == "__main__":
    unittest.main()
