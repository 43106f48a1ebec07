"""python3 -B -m kube: what a cluster of tests needs.

    python3 -B -m kube                   fetches and builds the programs that the cache lacks; exit status 77 where that cannot be done
    python3 -B -m kube images FOLDER     makes the images in a new folder, for the nodes of another cluster
"""

import contextlib
import pathlib
import sys
import unittest

from kube import components, images

CANNOT = 77  # exit status by which a program says that it cannot run here


def main():
    if sys.argv[1:2] == ["images"] and len(sys.argv) == 3:
        for reference, path in images.make(pathlib.Path(sys.argv[2])):
            print(f"ctr --namespace k8s.io images import --base-name {reference.split(':')[0]} {path}")
        return 0
    if sys.argv[1:]:
        print(__doc__)
        return 2
    try:
        components.obtain()
    except unittest.SkipTest as reason:
        print(reason)
        return CANNOT
    with contextlib.suppress(unittest.SkipTest):  # there is a cluster without it: tests of the chart and of selectors say the reason
        components.helm()
        components.cel_oracle()
    return 0


if __name__ == "__main__":
    sys.exit(main())
