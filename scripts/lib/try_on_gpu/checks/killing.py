"""Processes that are killed while they take memory: when the card has it back, and what it is to those who live."""

from .. import pages
from ..trial import Answer, Check

FREE_MS, BLOCKED_MS = 2000, 50


def kills(trial):
    machine, gpu = trial.machine, trial.machine.gpu
    machine.limit({gpu["uuid"]: trial.settings.share})
    rounds = 5 if trial.settings.brief else 50
    found = trial.child("deaths:watch", guarded=True, rounds=rounds, most_seconds=trial.left() - 15, nvml=machine.nvml, uuid=gpu["uuid"])
    found["held_at_the_end"] = pages.held(machine.folder)
    slowest = max(found["free_after_ms"], default=0)
    left = found["left"] or found["held_at_the_end"]
    verdict = (f"{len(found['free_after_ms'])} of {rounds} kills: memory was free after {median(found['free_after_ms']):.0f} ms, "
               f"{slowest:.0f} at most; {found['left']:,} bytes left on the card, {found['held_at_the_end']:,} in the account; a survivor waited "
               f"{found['survivor_ms']:.0f} ms at most for a call, {found['alone_ms']:.0f} alone")
    in_time = machine.judged(slowest <= FREE_MS and found["survivor_ms"] <= max(BLOCKED_MS, found["alone_ms"]))
    return Answer(verdict, found, False if left or not found["free_after_ms"] else in_time)


def median(values):
    return sorted(values)[len(values) // 2] if values else 0


CHECKS = [Check("kills", "How soon is the memory of a killed process free, and does that hold up others?", 120, kills, "A5")]
