"""Trains a classifier of handwritten digits on scikit-learn's bundled data (1,797 scans of 8x8 pixels).

Writes its results into the sandbox, the folder that Drover gives every task: report.json says how well the model does,
model.npz holds its weights. The learning itself runs on the CPU (scikit-learn uses no GPU): the job shows that a real
framework runs in a container that was given one GPU, and that what it wrote can be fetched afterwards.
"""

import json
import os
import pathlib
import re
import time

import numpy
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier


def visible_gpus():
    """The GPU devices in this container, sorted."""
    return sorted(name for name in os.listdir("/dev") if re.fullmatch(r"nvidia\d+", name))


def main():
    sandbox = pathlib.Path(os.environ.get("MESOS_SANDBOX", "."))
    print(f"GPUs in this container: {', '.join(visible_gpus()) or 'none'}", flush=True)

    digits = load_digits()
    train_x, test_x, train_y, test_y = train_test_split(
        digits.data / 16.0, digits.target, test_size=0.25, random_state=1, stratify=digits.target)
    model = MLPClassifier(hidden_layer_sizes=(64,), max_iter=1, warm_start=True, random_state=1)

    began = time.monotonic()
    for epoch in range(1, 61):
        model.partial_fit(train_x, train_y, classes=range(10))
        if epoch % 10 == 0:
            print(f"epoch {epoch:3}: loss {model.loss_:.4f}, "
                  f"accuracy on unseen digits {model.score(test_x, test_y):.3f}", flush=True)

    report = {"gpus": visible_gpus(), "epochs": epoch, "accuracy": round(model.score(test_x, test_y), 4),
              "seconds": round(time.monotonic() - began, 2), "training_images": len(train_x),
              "test_images": len(test_x)}
    (sandbox / "report.json").write_text(json.dumps(report, indent=2) + "\n")
    numpy.savez(sandbox / "model.npz", *model.coefs_, *model.intercepts_)
    print(f"Recognises {report['accuracy']:.1%} of {len(test_x)} digits it has never seen", flush=True)


if __name__ == "__main__":
    main()
