"""Runs one module of black-box tests and writes a line of JSON per finished test: [name, outcome, detail].

    python3 -B tests/blackbox.py MODULE REPORT [TEXT]     TEXT: only tests whose name contains it
"""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))


class Reporter(unittest.TestResult):
    def __init__(self, report):
        super().__init__()
        self._report = report
        self._wrong = {}  # test id -> details, so that a test with several wrong parts counts once

    def _write(self, test, outcome, detail=""):
        json.dump([test.id(), outcome, detail], self._report)
        self._report.write("\n")
        self._report.flush()

    def _note(self, test, error):
        self._wrong.setdefault(test.id(), []).append(self._exc_info_to_string(error, test))

    def addSuccess(self, test):
        self._write(test, "passed")

    def addSkip(self, test, reason):
        self._write(test, "skipped", reason)

    def addFailure(self, test, error):
        self._note(test, error)

    addError = addFailure

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self._wrong.setdefault(test.id(), []).append(f"{subtest}\n" + self._exc_info_to_string(error, test))

    def stopTest(self, test):
        super().stopTest(test)
        self._flush(test)

    def _flush(self, test):
        if test.id() in self._wrong:
            self._write(test, "failed", "\n".join(self._wrong.pop(test.id())))

    def finish(self):
        """Reports what went wrong outside of a test: in setUpClass, or while a module was loaded."""
        for name, details in self._wrong.items():
            json.dump([name, "failed", "\n".join(details)], self._report)
            self._report.write("\n")


def select(suite, text):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from select(test, text)
        elif text in test.id():
            yield test


def main():
    module, report, *text = sys.argv[1:]
    suite = unittest.TestSuite(select(unittest.defaultTestLoader.loadTestsFromName(module), text[0] if text else ""))
    with open(report, "a") as stream:
        result = Reporter(stream)
        suite.run(result)
        result.finish()


if __name__ == "__main__":
    main()
