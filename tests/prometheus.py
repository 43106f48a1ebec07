"""Reads what is told to Prometheus with its own parser for Python, which is Debian's module for Debian's Python."""

import json
import subprocess
import unittest

PARSER = """
import json, sys
from prometheus_client.parser import text_string_to_metric_families
print(json.dumps([[s.name, s.labels, s.value] for family in text_string_to_metric_families(sys.stdin.read()) for s in family.samples]))
"""


def parse(text):
    """Name -> [(labels, value)]. No series is there twice."""
    done = subprocess.run(["/usr/bin/python3", "-c", PARSER], input=text, capture_output=True, text=True, check=True)
    series, seen = {}, set()
    for name, labels, value in json.loads(done.stdout):
        key = (name, *sorted(labels.items()))
        assert key not in seen, key
        seen.add(key)
        series.setdefault(name, []).append((labels, value))
    return series


def require_parser():
    try:
        assert parse("up 1\n") == {"up": [({}, 1)]}
    except (OSError, subprocess.CalledProcessError):
        raise unittest.SkipTest("no Prometheus parser: install python3-prometheus-client") from None
