"""Trains a small model and writes it to model.json beside this program. Plain Python: nothing needs to be installed.

The model tells by two numbers whether a point lies in one of two clouds (logistic regression). It computes on the CPU: put your own
GPU code in its place.
"""

import argparse
import json
import math
import os
import pathlib
import random
import time

RATE, POINTS = 0.5, 200


def made_up_points(drawn):
    """(x, y, in which cloud)"""
    clouds = [(1.5, 1.0), (-1.0, -1.5)]
    return [(drawn.gauss(clouds[label][0], 1), drawn.gauss(clouds[label][1], 1), label)
            for label in (number % 2 for number in range(POINTS))]


def chance(weights, x, y):
    return 1 / (1 + math.exp(-(weights[0] * x + weights[1] * y + weights[2])))


def main():
    parser = argparse.ArgumentParser(description="Trains a small model")
    parser.add_argument("--epochs", type=int, default=20, help="how often it looks at all points (default: %(default)s)")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds after each, as if there was more to compute")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path(__file__).with_name("model.json"))
    arguments = parser.parse_args()

    print("GPUs of this task:", os.environ.get("NVIDIA_VISIBLE_DEVICES", "none"), flush=True)
    points = made_up_points(random.Random(1))
    weights = [0.0, 0.0, 0.0]
    for epoch in range(1, arguments.epochs + 1):
        slopes = [0.0, 0.0, 0.0]
        for x, y, label in points:
            wrong = chance(weights, x, y) - label
            slopes = [slope + wrong * value / POINTS for slope, value in zip(slopes, (x, y, 1))]
        weights = [weight - RATE * slope for weight, slope in zip(weights, slopes)]
        right = sum((chance(weights, x, y) > 0.5) == bool(label) for x, y, label in points)
        if epoch % 10 == 0:
            print(f"epoch {epoch}: {100 * right / POINTS:.1f} % right", flush=True)
        time.sleep(arguments.pause)
    arguments.output.write_text(json.dumps({"weights": weights, "epochs": arguments.epochs}) + "\n")
    print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
