#!/usr/bin/env python3
"""How long it takes from naming an image of a registry to its first instruction: Drover, Docker and Podman side by side.

    bench/images.py [--rounds 5] [--starts 20] [--size 1000] [--images small,framework,framework-zstd] [--before BINARY]
                    [--seed 1] [--json]

One local registry serves all of them, and all keep what they have on the same file system (that of TMPDIR). Give it one of its
own: where many files were removed in the last minutes, ext4 takes longest to find room for new ones. A round of a way
is `run IMAGE` with nothing of the image here (cold), then with all but the top layer of another image here (top layer). At the
end, with everything here, containers are started (warm). The ways take turns in a shuffled order: compare the ratios within one
run. The floor is what the shell can do: `curl | gzip -d | tar -x`, all layers at once, and nothing checked.
Needs root, a release build, docker-registry, skopeo and zstd, and for their rows dockerd and podman
(scripts/install-dependencies --tests --bench).
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import functools
import itertools
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bench")]
sys.dont_write_bytecode = True
import docker_engine  # noqa: E402
import drover  # noqa: E402
import podman  # noqa: E402
import registries  # noqa: E402
import start_latency  # noqa: E402

MIB = 1 << 20
# Folders of the machine that images are filled from: what building Drover needs is there, so everybody has much the same.
SMALL_FILES = ("/usr/include", "/usr/lib/python3", "/usr/lib/python3.11", "/usr/share")
LIBRARIES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib/llvm-19")
# Of an image as GPU frameworks have them: what each layer is made of, and its share of the whole.
FRAMEWORK = (("small", 0.06), ("libraries", 0.05), ("small", 0.04), ("libraries", 0.32), ("random", 0.08), ("libraries", 0.17),
             ("small", 0.12), ("random", 0.04), ("libraries", 0.10), ("small", 0.02))
TOP_LAYER_SHARE, SMALL_IMAGE_SHARE = 0.02, 0.008


# Images

def files_below(folders, least, most):
    """Regular files of that size, always in the same order."""
    for folder in folders:
        for path, inside, names in os.walk(folder):
            inside.sort()
            files = (pathlib.Path(path, name) for name in sorted(names))
            yield from (file for file in files if not file.is_symlink() and file.is_file()
                        and least <= file.stat().st_size <= most)


class Filling:
    """Contents of layers: files of this machine, again and again, and random bytes. The same seed gives the same layers."""

    def __init__(self, seed):
        self._dice = random.Random(seed)
        self._pools = {"small": self._again(SMALL_FILES, 1, 64 << 10), "libraries": self._again(LIBRARIES, MIB, 1 << 30)}

    @staticmethod
    def _again(*wanted):
        """(path in the image, file)"""
        for number in itertools.count():
            for file in files_below(*wanted):
                yield f"{number}{file}", file

    def files(self, kind, size):
        """About `size` bytes, by their paths."""
        files = {}
        while size > 0:
            path, content = self._random(size) if kind == "random" else self._next(kind, size)
            files[path] = content
            size -= len(content)
        return files

    def _next(self, kind, size):
        """The next file of the machine. Of a library a third is bytes that do not compress, as GPU code in them is."""
        path, file = next(self._pools[kind])
        if kind != "libraries":
            return path, file.read_bytes()[:size]
        content = file.read_bytes()[:-(-size * 2 // 3)]
        return path, content + self._dice.randbytes(len(content) // 2)

    def _random(self, size):
        return f"models/{self._dice.randrange(1 << 60):x}.bin", self._dice.randbytes(min(size, 48 * MIB))


@dataclasses.dataclass
class Image:
    """Two images of which the second has one layer more."""

    kind: str
    suffix: str        # of the layers' media type
    tars: list         # of the second
    names: tuple = ()  # of both, once they are in the registry
    layers: list = ()  # descriptors, lowest first
    bytes: int = 0     # of the first, compressed


def make_images(kinds, size, seed, program):
    filling = Filling(seed)
    base = {**dict.fromkeys(("dev", "proc", "sys", "tmp", "etc")), "first": program}
    small = [{**base, **filling.files("small", int(size * SMALL_IMAGE_SHARE))}]
    framework = [base] + [filling.files(kind, int(size * share)) for kind, share in FRAMEWORK]
    top = filling.files("small", int(size * TOP_LAYER_SHARE))
    tars = {name: [registries.make_tar(files) for files in [*layers, top]]
            for name, layers in (("small", small), ("framework", framework)) if any(kind.startswith(name) for kind in kinds)}
    return [Image(kind, "+zstd" if kind.endswith("-zstd") else "+gzip", tars[kind.removesuffix("-zstd")]) for kind in kinds]


def gzipped(tar):
    """As most images are: the usual level."""
    compressor = zlib.compressobj(level=6, wbits=31)
    return compressor.compress(tar) + compressor.flush()


def zstandard(tar):
    return subprocess.run(["zstd", "-3", "-q", "-c"], input=tar, capture_output=True, check=True).stdout


def push(image, registry, folder):
    compress = gzipped if image.suffix == "+gzip" else zstandard
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        packed = dict(zip(map(registries.digest_of, image.tars), threads.map(compress, image.tars)))
    images = registries.Images()
    both = [images.image(tars, compress=lambda tar: packed[registries.digest_of(tar)], suffix=image.suffix, Cmd=["/first"])
            for tars in (image.tars[:-1], image.tars)]
    layout = images.write_layout(folder / f"layout-{image.kind}", {"one": both[0], "two": both[1]})
    for tag in ("one", "two"):
        registry.push(f"oci:{layout}:{tag}", f"{image.kind}:{tag}")
    shutil.rmtree(layout)
    image.names = tuple(f"{registry.host}/{image.kind}:{tag}" for tag in ("one", "two"))
    image.layers = json.loads(images.blobs[both[1]["digest"]])["layers"]
    image.bytes = sum(layer["size"] for layer in image.layers[:-1])


# Ways. run(image, index) gives ms to the first instruction and to the end; forget() removes all that is here of an image.

class Drover:
    def __init__(self, name="`drover run`", binary=drover.BINARY):
        self.name = name
        self._daemon = drover.Daemon("dgx-a100", binary=binary)
        self.storage = "overlayfs over unpacked layers"
        try:
            self._daemon.start()
        except BaseException:
            self.close()
            raise

    def _command(self, *words):
        return self._daemon.cli_command("--socket", self._daemon.socket, *words)

    def run(self, image, index):
        return timed(self._command("run", "--mem", "64M", "--image", image.names[index], "--", "/first"))

    def forget(self, image):
        for name in image.names:
            drover.run(self._command("image", "rm", name))
        must(self._command("image", "prune"))

    def close(self):
        self._daemon.close()


class Docker:
    name = "`docker run`"

    def __init__(self):
        try:
            self._engine = docker_engine.Engine()
        except unittest.SkipTest as error:
            raise RuntimeError(str(error)) from None
        client = "/usr/bin/docker" if os.path.exists("/usr/bin/docker") else "docker"
        self._docker = [client, "--host", f"unix://{self._engine.socket}"]
        self.storage = must([*self._docker, "info", "--format", "{{.Driver}}"]).out.strip()

    def run(self, image, index):
        return timed([*self._docker, "run", "--rm", "--network", "host", image.names[index], "/first"])

    def forget(self, image):
        drover.run([*self._docker, "image", "rm", "--force", *image.names])

    def close(self):
        self._engine.close()


class Podman:
    name = "`podman run`"

    def __init__(self):
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="drover-podman-"))
        try:
            self._podman = [*podman.command(self._folder), "--storage-driver", "overlay", "--events-backend", "none"]
        except unittest.SkipTest as error:
            self.close()
            raise RuntimeError(str(error)) from None
        try:
            self.storage = must([*self._podman, "info", "--format", "{{.Store.GraphDriverName}}"]).out.strip()
        except AssertionError as error:
            self.close()
            raise RuntimeError(f"podman cannot run here: {error}") from None

    def run(self, image, index):
        return timed([*self._podman, "run", "--rm", "--network", "host", "--log-driver", "none", "--tls-verify=false",
                      *podman.LIMITS, image.names[index], "/first"])

    def forget(self, image):
        drover.run([*self._podman, "image", "rm", "--force", *image.names])

    def close(self):
        for mount in reversed(drover.mounts_of(self._folder)):
            drover.run(["umount", "--lazy", mount])
        shutil.rmtree(self._folder, ignore_errors=True)


class Shell:
    """The floor of what has to be brought. It starts nothing."""

    name = "`curl`, `gzip -d`, `tar -x`"
    storage = "folders"

    def __init__(self):
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="drover-shell-"))

    def run(self, image, index):
        unpack = "gzip" if image.suffix == "+gzip" else "zstd"
        host, repository = image.names[index].rsplit(":", 1)[0].split("/")
        begin = time.monotonic_ns()
        running = []
        for layer in image.layers[:-1] if index == 0 else image.layers[-1:]:
            folder = self._folder / layer["digest"].removeprefix("sha256:")
            folder.mkdir()
            script = f'curl -sSf "$0" | {unpack} -dc | tar -xC "$1"'
            url = f"http://{host}/v2/{repository}/blobs/{layer['digest']}"
            running.append(subprocess.Popen(["bash", "-o", "pipefail", "-c", script, url, folder], stderr=subprocess.PIPE))
        said = [process.communicate()[1] for process in running]
        for process, words in zip(running, said):
            if process.returncode != 0:
                raise subprocess.CalledProcessError(process.returncode, process.args, stderr=words)
        whole = (time.monotonic_ns() - begin) / 1e6
        return whole, whole

    def forget(self, image):
        for layer in image.layers:
            shutil.rmtree(self._folder / layer["digest"].removeprefix("sha256:"), ignore_errors=True)

    def close(self):
        shutil.rmtree(self._folder, ignore_errors=True)


def timed(command):
    """Milliseconds to the first instruction, and to the end of the command."""
    return start_latency.time_command(command, stderr=subprocess.PIPE)


def must(command):
    ran = drover.run(command)
    if ran.status != 0:
        raise AssertionError(f"'{' '.join(map(str, command))}' failed: {ran}")
    return ran


# Measuring

@dataclasses.dataclass
class Times:
    """Seconds of one way with one image, a list each."""

    cold: list = dataclasses.field(default_factory=list)
    cold_end: list = dataclasses.field(default_factory=list)
    cold_on_disk: list = dataclasses.field(default_factory=list)
    top_layer: list = dataclasses.field(default_factory=list)
    top_layer_end: list = dataclasses.field(default_factory=list)
    warm: list = dataclasses.field(default_factory=list)
    warm_end: list = dataclasses.field(default_factory=list)


def read_through(folder):
    """So that the registry finds all of it in memory, whoever comes."""
    for path in folder.rglob("data"):
        path.read_bytes()


def measure_round(way, image, times, registry):
    way.forget(image)
    read_through(registry.folder)
    os.sync()
    begin = time.monotonic()
    first, end = way.run(image, 0)
    os.sync()
    times.cold_on_disk.append(time.monotonic() - begin)
    times.cold.append(first / 1e3)
    times.cold_end.append(end / 1e3)
    first, end = way.run(image, 1)
    times.top_layer.append(first / 1e3)
    times.top_layer_end.append(end / 1e3)
    os.sync()


def measure_image(ways, image, registry, arguments, order, refused):
    """way -> Times. A way that cannot do it is told of in `refused`."""
    times = {way: Times() for way in ways}
    for _ in range(arguments.rounds):
        for way in order.sample(list(times), len(times)):
            try:
                measure_round(way, image, times[way], registry)
            except subprocess.CalledProcessError as error:
                refused.append(f"{way.name} failed with {image.kind}: {error.stderr.decode(errors='replace').strip()[-300:]}")
                del times[way]
    starters = [way for way in times if not isinstance(way, Shell)]
    for number in range(-2, arguments.starts):
        for way in order.sample(starters, len(starters)):
            first, end = way.run(image, 1)
            if number >= 0:
                times[way].warm.append(first / 1e3)
                times[way].warm_end.append(end / 1e3)
    for way in times:
        way.forget(image)
    return times


# What is printed

def cell(values, peer, digits=2, unit=1.0):
    """Median and range, and how many times Drover's median that is."""
    if not values:
        return "| – | – "
    ratio = statistics.median(values) / statistics.median(peer)
    shown = [f"{value * unit:.{digits}f}" for value in (statistics.median(values), min(values), max(values))]
    return f"| {shown[0]} ({shown[1]}–{shown[2]}) | {ratio:.2f} "


def print_table(image, times):
    print(f"{image.kind}: {len(image.layers) - 1} layers, {image.bytes / MIB:.0f} MiB compressed, "
          f"{sum(map(len, image.tars[:-1])) / MIB:.0f} MiB in tars; the top layer {image.layers[-1]['size'] / MIB:.1f} MiB\n")
    print("| way | cold, s: median (range) | ÷ Drover | … and all on the disk | ÷ Drover | top layer, s | ÷ Drover "
          "| warm, ms | ÷ Drover |\n" + "| --- " * 9 + "|")
    peer = next(own for way, own in times.items() if isinstance(way, Drover))
    for way, own in times.items():
        print(f"| {way.name} " + cell(own.cold, peer.cold) + cell(own.cold_on_disk, peer.cold_on_disk)
              + cell(own.top_layer, peer.top_layer) + cell(own.warm, peer.warm, 1, 1e3) + "|")
    print(flush=True)


def rows(image, times):
    for way, own in times.items():
        for state in ("cold", "top_layer", "warm"):
            firsts, ends = getattr(own, state), getattr(own, state + "_end")
            if firsts:
                yield {"image": image.kind, "layers": len(image.layers) - 1, "bytes": image.bytes, "way": way.name,
                       "storage": way.storage, "state": state, "rounds": len(firsts), "first_instruction_s": firsts,
                       "end_s": ends, **({"on_disk_s": own.cold_on_disk} if state == "cold" else {})}


def start_ways(stack, before, skipped):
    """Drover comes first."""
    kinds = [Drover, *([functools.partial(Drover, "`drover run` of before", before)] if before else []), Docker, Podman, Shell]
    ways = []
    for kind in kinds:
        try:
            way = kind()
        except RuntimeError as error:
            skipped.append(f"Skipped {kind.name}: {error}")
            continue
        stack.callback(way.close)
        ways.append(way)
    return ways


def compile_program(folder):
    subprocess.run(["clang-19", "-static", "-Os", "-o", str(folder / "first"), str(ROOT / "bench/first.c")], check=True)
    return (folder / "first").read_bytes()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="with nothing, then with all but the top layer here")
    parser.add_argument("--starts", type=int, default=20, help="with all of the image here")
    parser.add_argument("--size", type=int, default=1000, help="MiB of the larger images, unpacked")
    parser.add_argument("--images", default="small,framework,framework-zstd")
    parser.add_argument("--before", type=pathlib.Path, metavar="BINARY", help="another build of Drover, measured beside it")
    parser.add_argument("--seed", type=int, default=1, help="of the images, and of the order in which the ways take turns")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    arguments.images = arguments.images.split(",")
    if unknown := set(arguments.images) - {"small", "framework", "framework-zstd"}:
        parser.error(f"there is no image '{unknown.pop()}'")
    if min(arguments.rounds, arguments.starts, arguments.size) < 1:
        parser.error("--rounds, --starts and --size are at least 1")
    return arguments


def main():
    arguments = parse_arguments()
    if os.geteuid() != 0:
        sys.exit("images: needs root, as container runtimes do")
    if not registries.PROGRAM or not shutil.which("skopeo"):
        sys.exit("images: docker-registry or skopeo is not installed: run scripts/install-dependencies --tests")
    notes, measured = [], []
    show = functools.partial(print, file=sys.stderr if arguments.json else sys.stdout)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="drover-bench-")))
        registry = registries.RealRegistry(folder / "registry")
        stack.callback(registry.close)
        images = make_images(arguments.images, arguments.size * MIB, arguments.seed, compile_program(folder))
        for image in images:
            push(image, registry, folder)
        ways = start_ways(stack, arguments.before, notes)
        order = random.Random(arguments.seed)
        for image in images:
            times = measure_image(ways, image, registry, arguments, order, notes)
            measured += rows(image, times)
            if not arguments.json:
                print_table(image, times)
        storage = ", ".join(f"{way.name}: {way.storage}" for way in ways)
        system = must(["stat", "--file-system", "--format=%T", folder]).out.strip()
    show("\n".join([f"{arguments.rounds} rounds, {arguments.starts} warm starts. On {system}: {storage}.", *notes]))
    if arguments.json:
        print(json.dumps({"rows": measured, "notes": notes}, indent=1))


if __name__ == "__main__":
    main()
