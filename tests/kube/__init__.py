"""A real Kubernetes of a test's own, on this machine. CONTRIBUTING.md says how tests use it.

case.py            what tests are made from
cluster.py         a cluster's life; client.py and api.py: what tests do with it; existing.py: a cluster that was there before
settings.py        what a test may want of it; configuration.py: the files that follow from that
control_plane.py   etcd, the API server and their companions; node.py: a kubelet and a containerd
machine.py         the namespaces that these live in, and programs that are started there
cgroups.py, certificates.py, images.py
components.py      the programs, in the cache; golang.py: built from Go modules
janitor.py         tidies up behind a cluster; leftovers.py: looks whether it did
"""

from kube.case import ClusterTest  # noqa: F401
from kube.client import condition_of, is_gone, node_is_ready, pod, pod_has_ended, pod_is_ready  # noqa: F401
from kube.cluster import Cluster  # noqa: F401
from kube.components import CONTAINERD_VERSION, KUBERNETES_VERSION  # noqa: F401
from kube.images import PROBE, SHELL  # noqa: F401
from kube.settings import CONTAINERD_2, RESOURCE_API, SYSTEM_CONTAINERD, NodeSettings, Settings, device_request  # noqa: F401
