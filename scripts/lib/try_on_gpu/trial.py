"""Checks that fail one by one, each within its time, and the report of what they found."""

import dataclasses
import json
import os
import pathlib
import tempfile
import time
import traceback
import typing

YES, NO, IMPOSSIBLE = "yes", "no", "not possible here"


class NotPossible(Exception):
    """This machine cannot answer the question; the reason, in words."""


class Failed(Exception):
    """The question got no answer, though it should have."""


@dataclasses.dataclass
class Answer:
    """What a check found out. `holds`: whether that is what the design wants, None where it only wanted to know."""

    verdict: str
    figures: dict = dataclasses.field(default_factory=dict)
    holds: typing.Optional[bool] = None


@dataclasses.dataclass(frozen=True)
class Check:
    """`row` names the acceptance test that it belongs to. `run(trial)` returns an Answer, or raises NotPossible or Failed."""

    name: str
    question: str
    seconds: int
    run: typing.Callable
    row: str = ""


class Trial:
    """The machine, the time that is left, and the findings so far. Not thread safe."""

    def __init__(self, machine, settings, output, end):
        """`end`: by time.monotonic()."""
        self.machine, self.settings, self.output = machine, settings, pathlib.Path(output)
        self.end = self.deadline = end
        self.results = []

    def left(self, most=None):
        """Seconds for what comes next: of this check, and no more than `most`. Raises when there are none."""
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise Failed("its time was over")
        return seconds if most is None else min(seconds, most)

    def child(self, role, guarded=False, seconds=None, environment=None, **settings):
        return self.machine.child(role, settings, seconds=self.left(seconds), guarded=guarded, environment=environment)

    def command(self, words, guarded=False, seconds=None, **how):
        return self.machine.command(words, seconds=self.left(seconds), guarded=guarded, **how)

    def ask(self, check):
        """Runs one check and keeps what it found, whatever that is."""
        began = time.monotonic()
        self.deadline = min(self.end, began + check.seconds)
        if self.end - began < 1:
            answered, answer = IMPOSSIBLE, Answer("no time was left: see --minutes")
        else:
            answered, answer = self._attempt(check)
        result = {"name": check.name, "row": check.row, "question": check.question, "answered": answered, "verdict": answer.verdict,
                  "holds": answer.holds, "figures": answer.figures, "seconds": round(time.monotonic() - began, 2)}
        self.results.append(result)
        self.write()
        return result

    def _attempt(self, check):
        try:
            return YES, check.run(self)
        except NotPossible as reason:
            return IMPOSSIBLE, Answer(str(reason))
        except Failed as reason:
            return NO, Answer(str(reason))
        except Exception as error:  # a mistake of ours, or an answer that nobody thought of: the other checks go on
            return NO, Answer(f"{type(error).__name__}: {error}", {"trace": traceback.format_exc().splitlines()[-8:]})

    def write(self):
        """The whole report so far; who reads the file finds all of one."""
        report = {"format": 1, "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "machine": self.machine.facts(),
                  "checks": self.results}
        descriptor, new = tempfile.mkstemp(prefix=f".{self.output.name}.", dir=self.output.parent)
        try:
            with open(descriptor, "w") as file:
                json.dump(report, file, indent=1)
            os.chmod(new, 0o644)
            os.replace(new, self.output)
        except BaseException:
            os.unlink(new)
            raise

    def good(self):
        return all(result["answered"] != NO and result["holds"] is not False for result in self.results)


def mark(result):
    """One word for a table."""
    if result["answered"] != YES:
        return {NO: "UNANSWERED", IMPOSSIBLE: "skipped"}[result["answered"]]
    return {None: "answered", True: "holds", False: "DOES NOT HOLD"}[result["holds"]]


def line(result):
    return f"{result['name']:<22} {result['row']:<4} {mark(result):<14} {result['seconds']:>6.1f} s  {result['verdict']}"
