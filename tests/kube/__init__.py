"""A real Kubernetes of a test's own, on this machine."""

from kube.case import ClusterTest  # noqa: F401
from kube.client import condition_of, is_gone, node_is_ready, pod, pod_has_ended, pod_is_ready  # noqa: F401
from kube.cluster import Cluster  # noqa: F401
from kube.components import CONTAINERD_VERSION, KUBERNETES_VERSION  # noqa: F401
from kube.images import PROBE, SHELL  # noqa: F401
from kube.settings import CONTAINERD_2, SYSTEM_CONTAINERD, NodeSettings, Settings  # noqa: F401
