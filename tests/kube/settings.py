"""What a test may want of a cluster."""

import dataclasses

from kube.components import KUBERNETES_MINOR

# Dynamic Resource Allocation, which older versions have to be told to do, and the newest form of its objects that this one knows.
_RESOURCE_VERSIONS = {(1, 32): ["v1beta1"], (1, 33): ["v1beta1", "v1beta2"]}.get(KUBERNETES_MINOR, ["v1"])
RESOURCE_API = f"resource.k8s.io/{_RESOURCE_VERSIONS[-1]}"
_GATES = {} if "v1" in _RESOURCE_VERSIONS else {"DynamicResourceAllocation": True}
_APIS = [] if "v1" in _RESOURCE_VERSIONS else [f"resource.k8s.io/{version}=true" for version in _RESOURCE_VERSIONS]

CONTAINERD_2 = "containerd 2"            # built with the cluster; has CDI
SYSTEM_CONTAINERD = "system containerd"  # what the machine has: Debian 12's 1.6 does not know CDI and says nothing about it


def device_request(request):
    """A request of a claim in the form of RESOURCE_API: the first one has no `exactly`."""
    return {"name": request["name"], **request["exactly"]} if RESOURCE_API.endswith("/v1beta1") else request


@dataclasses.dataclass(frozen=True)
class NodeSettings:
    containerd: str = CONTAINERD_2
    cdi: bool = True                                  # what containerd's configuration says: some switch it off
    kubelet: dict = dataclasses.field(default_factory=dict)  # fields of KubeletConfiguration, over ours
    mounts: dict = dataclasses.field(default_factory=dict)   # path on the node -> path on the host
    cpus: int = 0                                     # its kubelet finds at least so many; as many as there are, if 0


@dataclasses.dataclass(frozen=True)
class Settings:
    nodes: tuple = (NodeSettings(), NodeSettings())
    services: bool = False                            # kube-proxy on every node: pods reach services, and the API at 10.96.0.1
    feature_gates: dict = dataclasses.field(default_factory=dict)  # name -> bool, for all components
    runtime_config: str = ""                          # API versions that are off by default: "api/all=true"
    flags: dict = dataclasses.field(default_factory=dict)  # component -> more command-line flags

    def fit_any_cluster(self):
        """Whether they ask for nothing that a cluster that is there already may lack, but a number of nodes."""
        return self == Settings(nodes=(NodeSettings(),) * len(self.nodes), services=self.services)

    def flags_of(self, component):
        gates = ",".join(f"{name}={str(on).lower()}" for name, on in sorted({**_GATES, **self.feature_gates}.items()))
        return ([f"--feature-gates={gates}"] if gates else []) + list(self.flags.get(component, ()))

    def served_apis(self):
        return ",".join([*_APIS, *filter(None, [self.runtime_config])])
