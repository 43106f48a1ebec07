"""A Prometheus of a test's own: Debian's, in a folder of the test, on a port that is free."""

import json
import pathlib
import shutil
import subprocess
import unittest
import urllib.error
import urllib.parse
import urllib.request

import drover

PROGRAM, TOOL = shutil.which("prometheus"), shutil.which("promtool")


def require_prometheus():
    if PROGRAM is None or TOOL is None:
        raise unittest.SkipTest("no Prometheus: install the Debian package prometheus (scripts/install-dependencies --tests)")


class Server:
    """Scrapes `jobs` each second: scrape_configs as Prometheus has them. `rules`: files."""

    def __init__(self, folder, jobs, rules=()):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}, "scrape_configs": jobs,
                  "rule_files": [str(path) for path in rules]}
        (self.folder / "prometheus.yml").write_text(json.dumps(config))
        with drover.Daemon.listener() as listener:
            self.port = listener.getsockname()[1]
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [PROGRAM, f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/data",
                 f"--web.listen-address=127.0.0.1:{self.port}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def close(self):
        self.process.terminate()
        self.process.wait(drover.PATIENCE)

    def ask(self, path, **parameters):
        """The data of an answer; AssertionError with Prometheus' own words when it refuses."""
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=drover.PATIENCE) as answer:
                return json.loads(answer.read())["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it is not up yet
                raise
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None

    def wait_until_up(self, targets):
        def up():
            if self.process.poll() is not None:
                raise AssertionError(f"Prometheus ended: {(self.folder / 'log').read_text()}")
            try:
                return [target["health"] for target in self.ask("targets")["activeTargets"]] == ["up"] * targets
            except OSError:
                return False

        drover.wait_for(up, lambda: f"all to be scraped: {self.ask('targets')['activeTargets']}")

    def query(self, expression):
        """[(labels, value)], without those that are no number."""
        found = self.ask("query", query=expression)
        assert found["resultType"] in ("vector", "scalar"), expression
        series = found["result"] if found["resultType"] == "vector" else [{"metric": {}, "value": found["result"]}]
        return [(one["metric"], float(one["value"][1])) for one in series if one["value"][1] != "NaN"]

    def alerts(self):
        return self.ask("alerts")["alerts"]
