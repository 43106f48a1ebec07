"""The configuration files of a node's programs, as texts."""

import json

from kube.control_plane import PODS, pod_range
from kube.images import PAUSE
from kube.settings import CONTAINERD_2

SOCKET = "/run/containerd/containerd.sock"
CNI_PROGRAMS = "/usr/lib/cni"
CDI_FOLDERS = ["/etc/cdi", "/var/run/cdi"]


def kubelet(node):
    path = node.authority.path
    return json.dumps({
        "kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "failCgroupV1": False, "failSwapOn": False, "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{node.cgroup}",
        "enforceNodeAllocatable": ["pods"], "oomScoreAdj": 0,
        "maxOpenFiles": 20000,  # without CAP_SYS_RESOURCE a limit cannot be raised
        "volumePluginDir": f"{node.folder}/volume-plugins", "resolvConf": f"{node.folder}/resolv.conf",
        "clusterDNS": ["10.96.0.10"], "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint": f"unix://{SOCKET}", "readOnlyPort": 0,
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                           "x509": {"clientCAFile": str(path("ca.crt"))}},
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(path(f"{node.name}.crt")), "tlsPrivateKeyFile": str(path(f"{node.name}.key")),
        "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "nodeStatusUpdateFrequency": "2s", **node.settings.kubelet})


def kube_proxy(node):
    return json.dumps({
        "kind": "KubeProxyConfiguration", "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "mode": "iptables",
        "clientConnection": {"kubeconfig": str(node.authority.path("kube-proxy.kubeconfig"))},
        "clusterCIDR": PODS, "hostnameOverride": node.name, "healthzBindAddress": "127.0.0.1", "metricsBindAddress": "127.0.0.1",
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}})


def pod_network(node):
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [
        {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True,
         "ipam": {"type": "host-local", "ranges": [[{"subnet": pod_range(node.index)}]], "routes": [{"dst": "0.0.0.0/0"}]}},
        {"type": "portmap", "capabilities": {"portMappings": True}}]})


def containerd(node):
    """TOML. Values that JSON writes are TOML as well."""
    if node.settings.containerd == CONTAINERD_2:
        version, runtime, images = 3, "io.containerd.cri.v1.runtime", "io.containerd.cri.v1.images"
    else:
        version, runtime, images = 2, "io.containerd.grpc.v1.cri", "io.containerd.grpc.v1.cri"
    settings = {"restrict_oom_score_adj": True}  # lowering it needs CAP_SYS_RESOURCE
    tables = {
        "": {"version": version, "root": "/var/lib/containerd", "state": "/run/containerd"},
        "grpc": {"address": SOCKET},
        _plugin("io.containerd.internal.v1.opt"): {"path": f"{node.folder}/opt"},
        _plugin(runtime): settings,
        _plugin(runtime, "cni"): {"conf_dir": f"{node.folder}/cni"},
        _plugin(runtime, "containerd"): {"default_runtime_name": "runc"},
        _plugin(runtime, "containerd", "runtimes", "runc"): {"runtime_type": "io.containerd.runc.v2"},
        _plugin(runtime, "containerd", "runtimes", "runc", "options"): {"SystemdCgroup": False},
    }
    if version == 3:
        settings.update(enable_cdi=node.settings.cdi, cdi_spec_dirs=CDI_FOLDERS)
        tables[_plugin(runtime, "cni")]["bin_dirs"] = [CNI_PROGRAMS]
        tables[_plugin(images, "pinned_images")] = {"sandbox": PAUSE}
        tables[_plugin("io.containerd.nri.v1.nri")] = {"disable": True}
    else:
        settings["sandbox_image"] = PAUSE
        tables[_plugin(runtime, "cni")]["bin_dir"] = CNI_PROGRAMS
    lines = []
    for name, table in tables.items():
        lines += ([f"[{name}]"] if name else []) + [f"{key} = {json.dumps(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def _plugin(*words):
    return ".".join(["plugins", *(f"'{word}'" if "." in word else word for word in words)])
