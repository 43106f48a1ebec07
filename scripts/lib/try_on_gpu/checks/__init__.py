"""All checks, in the order in which they are asked: first what the design stands on, last what takes longest."""

from . import calls, frameworks, killing, memory, product, sharing

ALL = [*calls.CHECKS, *memory.CHECKS, *killing.CHECKS, *sharing.CHECKS, *product.CHECKS, *frameworks.CHECKS]
