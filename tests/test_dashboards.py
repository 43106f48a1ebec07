"""The dashboards and alerts of packaging/: every query, asked of a Prometheus that scrapes a daemon with work of every kind. The nodes of a
cluster are a page as they write it; that they do, tests/test_kube_metrics.py shows."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import alert_cases
import drover
import prometheus_server
import test_guard

PACKAGING = drover.ROOT / "packaging"
ALERTS = PACKAGING / "prometheus/alerts.yaml"
DASHBOARDS = sorted((PACKAGING / "grafana").glob("*.json"))
NODE = drover.ROOT / "tests/data/node_metrics.txt"
READER = "a-secret-that-only-reads-metrics"
METRIC = re.compile(r"\b(?:drover_|DCGM_FI_)\w+")
VARIABLES = {"$__rate_interval": "30s", "$datasource": "", "${datasource}": ""}
# What the dashboard that NVIDIA publishes for its exporter asks for, by its panels and variables.
NVIDIAS = ('DCGM_FI_DEV_GPU_TEMP{instance=~".*", gpu=~".*"}', 'avg(DCGM_FI_DEV_GPU_TEMP{instance=~".*", gpu=~".*"})',
           'DCGM_FI_DEV_POWER_USAGE{instance=~".*", gpu=~".*"}', 'sum(DCGM_FI_DEV_POWER_USAGE{instance=~".*", gpu=~".*"})',
           'DCGM_FI_DEV_SM_CLOCK{instance=~".*", gpu=~".*"} * 1000000', 'DCGM_FI_DEV_GPU_UTIL{instance=~".*", gpu=~".*"}',
           'DCGM_FI_DEV_FB_USED{instance=~".*", gpu=~".*"}')
NOT_THERE = 'DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{instance=~".*", gpu=~".*"}'


def dashboards():
    return [(path.name, json.loads(path.read_text())) for path in DASHBOARDS]


def queries(board):
    """(where, query) of panels, as they stand there."""
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def filled_in(board, query):
    names = {f"${variable['name']}": ".*" for variable in board["templating"]["list"] if variable["type"] == "query"}
    for name, value in {**VARIABLES, **names}.items():
        query = query.replace(name, value)
    assert "$" not in query, query
    return query


def alerts():
    """name -> expression: each stands on a line of its own."""
    rules = re.split(r"^ +- alert: ", ALERTS.read_text(), flags=re.MULTILINE)[1:]
    return {rule.split()[0]: re.search(r"^ +expr: (.*)$", rule, re.MULTILINE)[1] for rule in rules}


class FilesTest(unittest.TestCase):
    def test_everything_asked_for_is_documented(self):
        told = set(METRIC.findall((drover.ROOT / "docs/metrics.md").read_text()))
        asked = {(name, metric) for name, board in dashboards() for metric in METRIC.findall(json.dumps(board))}
        asked |= {("alerts", metric) for expression in alerts().values() for metric in METRIC.findall(expression)}
        asked |= {("node", metric) for metric in METRIC.findall(NODE.read_text())}
        self.assertGreater(len(asked), 80)
        for where, metric in sorted(asked):
            with self.subTest(where=where, metric=metric):
                self.assertIn(re.sub(r"_(bucket|count|sum)$", "", metric), told)

    def test_dashboards_can_be_imported_side_by_side(self):
        boards = dashboards()
        self.assertEqual(len({board["uid"] for _, board in boards}), len(boards))
        for name, board in boards:
            with self.subTest(name):
                ids = [panel["id"] for panel in board["panels"]]
                self.assertEqual(len(set(ids)), len(ids))
                taken = set()
                for panel in board["panels"]:
                    place = panel["gridPos"]
                    squares = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
                    self.assertFalse(taken & squares, panel["title"])
                    self.assertLessEqual(place["x"] + place["w"], 24)
                    taken |= squares
                self.assertIsNone(board.get("id"), "it is Grafana's to give")


class AlertsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        prometheus_server.require_prometheus()

    def test_each_comes_when_it_should_and_not_before(self):
        self.assertEqual(set(alert_cases.FIRING), set(alerts()), "each alert has a case")
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="drover-test-")))
        (folder / "cases.yaml").write_text(json.dumps(alert_cases.unit_tests(ALERTS)))
        done = drover.run([prometheus_server.TOOL, "test", "rules", folder / "cases.yaml"])
        self.assertEqual(done.status, 0, done)


class QueriesTest(test_guard.ImagesTest):
    arguments = ("--listen", "127.0.0.1:0")

    @classmethod
    def setUpClass(cls):
        prometheus_server.require_prometheus()
        super().setUpClass()
        cls.at_work()
        cls.start_prometheus()
        cls.spoil_gpus()

    def tearDown(self):
        pass  # the tasks are for all tests

    @classmethod
    def at_work(cls):
        """A task with a GPU that does nothing, two that share one and want it at once, one that waits, an app."""
        daemon = cls.daemon
        daemon.api("PUT", "/v1/queues/research", {"guarantee": {"gpus": 2}, "limit": {"gpus": 2}})
        daemon.wait_until_running(daemon.submit("sleep", 1000, gpus=1, queue="research"))
        daemon.submit("sleep", 1000, gpus=2, queue="research")
        daemon.api("POST", "/v2/apps", {"id": "/web", "cmd": "sleep 1000", "cpus": 0.1, "mem": 64, "instances": 1})
        for _ in range(2):
            task = daemon.submit(command=["/cuda_check", "hold", "512", "share", "2000", "1000"], image=cls.images["plain"], gpu_share="8GiB")
            daemon.wait_for_output(task, "held 512")

    @classmethod
    def start_prometheus(cls):
        with open(cls.daemon.state / "credentials", "a") as credentials:
            credentials.write(f"@metrics:{READER}\n")
        drover.wait_for(lambda: "were read again" in cls.daemon.read_log(), "the secret to count")
        pages = cls.daemon.folder / "pages"
        pages.mkdir()
        cls.page = pages / "metrics"
        cls.page.write_text(NODE.read_text())
        with drover.Daemon.listener() as listener:
            port = listener.getsockname()[1]
        nodes = subprocess.Popen([sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", pages, str(port)],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.addClassCleanup(nodes.wait)
        cls.addClassCleanup(nodes.terminate)
        address = re.search(r"http://(127\.0\.0\.1:\d+)", cls.daemon.read_log())[1]
        # At once, whatever an alert waits for.
        rules = cls.daemon.folder / "alerts.yaml"
        rules.write_text(re.sub(r"^ +for: .*\n", "", ALERTS.read_text(), flags=re.MULTILINE))
        cls.prometheus = prometheus_server.Server(cls.daemon.folder / "prometheus", [
            {"job_name": "drover", "metrics_path": "/v1/metrics", "authorization": {"credentials": READER},
             "static_configs": [{"targets": [address]}]},
            {"job_name": "drover-nodes", "honor_labels": True, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}], [rules])
        cls.addClassCleanup(cls.prometheus.close)
        cls.prometheus.wait_until_up(2)

    @classmethod
    def spoil_gpus(cls):
        """The last GPU, and the counters of the nodes go on."""
        cls.daemon.set_faults({"7": {"xid": [79], "recovery_action": "reset", "ecc": {"volatile": {"corrected": 3, "uncorrected": 1}}},
                               "0": {"memory_temperature": 84, "nvlink": {"sent_kib": 1 << 20, "received_kib": 1 << 19}}})
        drover.replace(cls.page, re.sub(r"^(.*(?:_total|_bucket|_count|_sum)\b.*) ([\d.]+)$", lambda line: f"{line[1]} {float(line[2]) * 2 + 1}",
                                        NODE.read_text(), flags=re.MULTILINE))
        drover.wait_for(lambda: cls.prometheus.query("drover_gpu_trouble{takes_out='true'}"), "the fault to be told")

    def assert_answered(self, query):
        """In a moment: rates want a second look, and what is worked out of them another."""
        drover.wait_for(lambda: self.prometheus.query(query), f"data for: {query}", timeout=20)

    def test_every_panel_of_every_dashboard_has_data(self):
        for name, board in dashboards():
            for panel, query in queries(board):
                with self.subTest(dashboard=name, panel=panel, query=query):
                    self.assert_answered(filled_in(board, query))

    def test_every_variable_has_values(self):
        for name, board in dashboards():
            for variable in board["templating"]["list"]:
                if variable["type"] == "query":
                    metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"]).groups()
                    with self.subTest(dashboard=name, variable=variable["name"]):
                        self.assertTrue(any(labels.get(label) for labels, _ in self.prometheus.query(metric)))

    def test_what_the_alerts_look_at_is_there(self):
        for name, expression in alerts().items():
            # As it is with cards whose memory has rows, or pages: one of the two.
            for metric in set(METRIC.findall(expression)) - {"DCGM_FI_DEV_RETIRED_PENDING"}:
                with self.subTest(alert=name, metric=metric):
                    self.assert_answered(metric)

    def test_alerts_are_sentences(self):
        wanted = {"DroverGpuUnhealthy", "DroverGpuXid", "DroverNodeHearsNothing"}
        told = drover.wait_for(lambda: (found := self.prometheus.alerts()) and wanted <= {one["labels"]["alertname"] for one in found} and found,
                               lambda: f"the alerts: {self.prometheus.alerts()}")
        for alert in told:
            for text in alert["annotations"].values():
                with self.subTest(text):
                    self.assertRegex(text, r"^[`A-Z0-9].*\.$")
                    self.assertNotRegex(text, r"<no value>|<error|\{\{|  ")
        machine = drover.run(["hostname"]).out.strip()
        self.assertIn(f"GPU 7 of {machine} had XID error 79.", {alert["annotations"]["summary"] for alert in told})

    def test_the_dashboard_of_nvidias_exporter_has_data(self):
        for query in NVIDIAS:
            with self.subTest(query):
                self.assert_answered(query)
        self.assertEqual(self.prometheus.query(NOT_THERE), [], "docs/metrics.md says so")
        labels, _ = self.prometheus.query('DCGM_FI_DEV_GPU_TEMP{job="drover"}')[0]
        self.assertLessEqual({"gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "DCGM_FI_DRIVER_VERSION"}, set(labels))


if __name__ == "__main__":
    unittest.main()
