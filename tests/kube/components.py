"""The programs of a Kubernetes cluster: built once into a cache folder, or the system's.

The cache is $DROVER_KUBE_CACHE, or drover/kubernetes in the user's cache folder. A folder in it is whole or absent: it is built
under another name and renamed. Its name tells by a digest how it was built, so that a changed recipe is built anew.
"""

import contextlib
import dataclasses
import fcntl
import hashlib
import os
import pathlib
import shutil
import unittest

from kube import golang

KUBERNETES_VERSION = os.environ.get("DROVER_KUBE_VERSION", "1.36.2")
CONTAINERD_VERSION = "2.1.9"
ETCD_VERSION = "3.6.8"
HELM_VERSION = "3.22.0"
KUBERNETES_MINOR = tuple(int(part) for part in KUBERNETES_VERSION.split(".")[:2])
UNAVAILABLE = "DROVER_KUBE_UNAVAILABLE"  # environment: why there are none, when that is known already
GO = (1, 26)  # what Kubernetes asks for in its go.mod

STAGING = tuple(f"k8s.io/{name}" for name in (
    "api", "apiextensions-apiserver", "apimachinery", "apiserver", "cli-runtime", "client-go", "cloud-provider", "cluster-bootstrap",
    "code-generator", "component-base", "component-helpers", "controller-manager", "cri-api", "cri-client", "cri-streaming",
    "csi-translation-lib", "dynamic-resource-allocation", "endpointslice", "externaljwt", "kms", "kube-aggregator",
    "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubelet", "metrics", "mount-utils",
    "pod-security-admission", "sample-apiserver", "sample-cli-plugin", "sample-controller", "streaming"))


def _kubernetes():
    major, minor, _ = KUBERNETES_VERSION.split(".")
    values = {"gitVersion": f"v{KUBERNETES_VERSION}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "archive"}
    return golang.Programs(
        module="k8s.io/kubernetes", version=f"v{KUBERNETES_VERSION}", go=GO,
        packages=tuple(f"k8s.io/kubernetes/cmd/{name}" for name in (
            "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl")),
        replaced=STAGING, replaced_version=f"v0{KUBERNETES_VERSION.removeprefix(major)}",
        variables=tuple(f"{package}.{name}={value}" for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
                        for name, value in values.items()))


def _kubernetes_oracle(name, *more):
    """A program of the tests' own over all of Kubernetes' modules; `more` are pairs of another file and its text."""
    kubernetes = _kubernetes()
    source = pathlib.Path(__file__).parent / f"oracle/{name}.go"
    return golang.OwnPrograms(module=kubernetes.module, version=kubernetes.version, go=GO, packages=(f"./{name}-oracle",),
                              replaced=STAGING, replaced_version=kubernetes.replaced_version, variables=kubernetes.variables,
                              sources=((f"{name}-oracle/main.go", source.read_text()),
                                       *((f"{name}-oracle/{path}", text) for path, text in more)))


def _allocator_oracle():
    # A file of assembly, even an empty one, lets Go declare functions whose bodies are in other packages.
    return _kubernetes_oracle("allocator", ("bodies.s", ""))


def _containerd():
    module = "github.com/containerd/containerd/v2"
    return golang.Programs(
        module=module, version=f"v{CONTAINERD_VERSION}", go=GO,
        packages=tuple(f"{module}/cmd/{name}" for name in ("containerd", "containerd-shim-runc-v2", "ctr")),
        variables=(f"{module}/version.Version={CONTAINERD_VERSION}",))


def _etcd():
    return golang.Programs(module="go.etcd.io/etcd/server/v3", version=f"v{ETCD_VERSION}", go=GO,
                           packages=("go.etcd.io/etcd/server/v3",))


def _helm():
    major, minor, _ = KUBERNETES_VERSION.split(".")
    module = "helm.sh/helm/v3"
    versions = {"internal/version.version": f"v{HELM_VERSION}",
                **{f"pkg/{package}.k8sVersion{part}": number for package in ("chartutil", "lint/rules")
                   for part, number in (("Major", major), ("Minor", minor))}}  # of the cluster that charts are rendered for
    return golang.Programs(module=module, version=f"v{HELM_VERSION}", go=GO, packages=(f"{module}/cmd/helm",),
                           variables=tuple(f"{module}/{name}={value}" for name, value in versions.items()))


def _cel_oracle():
    source = pathlib.Path(__file__).parent / "oracle/cel.go"
    return golang.OwnPrograms(module="k8s.io/dynamic-resource-allocation", version=f"v0{KUBERNETES_VERSION[1:]}", go=GO,
                              packages=("./cel-oracle",), sources=(("cel-oracle/main.go", source.read_text()),))


@dataclasses.dataclass(frozen=True)
class Components:
    """Where programs are: the folders of Kubernetes' and of containerd's, and etcd."""

    kubernetes: pathlib.Path
    containerd: pathlib.Path
    etcd: pathlib.Path


def cache_folder():
    user_cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(os.environ.get("DROVER_KUBE_CACHE") or pathlib.Path(user_cache) / "drover/kubernetes").absolute()


def folder_of(programs, cache):
    digest = hashlib.sha256(repr(programs).encode()).hexdigest()[:8]
    return cache / f"{programs.module.split('/')[1]}-{programs.version}-{digest}"


@contextlib.contextmanager
def locked(cache):
    """One build at a time: the second one finds what the first has built."""
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def provide(programs, cache):
    """The folder with the built programs."""
    folder = folder_of(programs, cache)
    if not folder.is_dir():
        with locked(cache):
            if not folder.is_dir():
                _build(programs, folder, cache)
    return folder / "bin"


def _build(programs, folder, cache):
    for interrupted in cache.glob(f"{folder.name}.partial-*"):
        shutil.rmtree(interrupted, ignore_errors=True)
    partial = cache / f"{folder.name}.partial-{os.getpid()}"  # what an interrupted build still writes, it writes elsewhere
    try:
        golang.build(programs, golang.obtain(programs.go, cache), partial)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def skip_if_unavailable():
    reason = os.environ.get(UNAVAILABLE)
    if reason:
        raise unittest.SkipTest(reason)


def scheduler_oracle():
    """The path of a program that says where kube-scheduler's own filters let a pod run; SkipTest says why it cannot be had here."""
    skip_if_unavailable()
    return provide(_kubernetes_oracle("scheduler"), cache_folder()) / "scheduler-oracle"


def allocator_oracle():
    """The path of a program that says which devices Kubernetes' own allocator gives; SkipTest says why it cannot be had here."""
    skip_if_unavailable()
    return provide(_allocator_oracle(), cache_folder()) / "allocator-oracle"


def helm():
    """The path of Helm, which only tests of the chart need; SkipTest says why it cannot be had here."""
    skip_if_unavailable()
    return provide(_helm(), cache_folder()) / "helm"


def cel_oracle():
    """The path of a program that says what Kubernetes' own CEL answers; SkipTest says why it cannot be had here."""
    skip_if_unavailable()
    return provide(_cel_oracle(), cache_folder()) / "cel-oracle"


def obtain():
    """All components of a cluster; SkipTest says why they cannot be had here."""
    skip_if_unavailable()
    try:
        return _obtain(cache_folder())
    except unittest.SkipTest as skipped:
        os.environ[UNAVAILABLE] = str(skipped)  # who asks again need not wait again
        raise


def _obtain(cache):
    for program in ("runc", "openssl", "ip", "iptables", "unshare", "nsenter", "setpriv"):
        if not shutil.which(program):
            raise unittest.SkipTest(f"{program} is not installed: run scripts/install-dependencies --tests --kubernetes")
    return Components(provide(_kubernetes(), cache), provide(_containerd(), cache), provide(_etcd(), cache) / "server")
