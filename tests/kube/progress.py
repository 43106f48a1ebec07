"""Says on stderr what takes long, with its seconds."""

import contextlib
import sys
import time


@contextlib.contextmanager
def step(what):
    began = time.monotonic()
    print(f"kubernetes: {what} …", file=sys.stderr, flush=True)
    outcome = "did not work"
    try:
        yield
        outcome = "done"
    finally:
        print(f"kubernetes: {what}: {outcome} in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
