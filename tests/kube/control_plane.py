"""etcd, the API server, the controller manager and the scheduler, on a machine of their own, and the network between machines.

The control plane's machine has a bridge, 10.55.0.1; node I is at 10.55.0.(10+I), and its pods are in 10.56.I.0/24. Nothing of
this is seen on the host.
"""

import subprocess

from kube.machine import Program

ADDRESS = "10.55.0.1"
SERVER = f"https://{ADDRESS}:6443"
SERVICES = "10.96.0.0/16"
FIRST_SERVICE = "10.96.0.1"  # the API server, as pods know it
PODS = "10.56.0.0/16"
ETCD = "http://127.0.0.1:2379"
ETCD_PEERS = "http://127.0.0.1:2380"


def node_address(index):
    return f"10.55.0.{10 + index}"


def pod_range(index):
    return f"10.56.{index}.0/24"


class ControlPlane:
    """Made stopped; start() starts the API server, start_controllers() the others, and wait_until_ready() waits for them all."""

    def __init__(self, folder, components, authority, machine, settings):
        self.folder, self.components, self.authority, self.settings = folder, components, authority, settings
        self.machine = machine
        self._prepare_machine()
        self._make_certificates()
        self.etcd = Program(self.machine, "etcd", self._etcd(), folder / "logs/etcd.log")
        self.api_server = self._program("kube-apiserver", self._api_server())
        self.controller_manager = self._program("kube-controller-manager", self._controller_manager())
        self.scheduler = self._program("kube-scheduler", self._scheduler())

    def start(self):
        for program in (self.etcd, self.api_server):
            program.start()

    def start_controllers(self, client):
        """Once the API server is ready: the controller manager gives up when it is not within 20 s."""
        self.api_server.wait_until(client.api.is_ready, "the API server to be ready")
        for program in (self.controller_manager, self.scheduler):
            program.start()

    def wait_until_ready(self, client):
        """The controller manager makes the account that pods run as: before it is there, no pod is accepted."""
        self.api_server.wait_until(client.api.is_ready, "the API server to be ready")
        self.controller_manager.wait_until(lambda: client.get("serviceaccount", "default"), "the account of pods to be made")

    def connect(self, index, node):
        """Ties a node's machine to the bridge."""
        port = f"node{index}"
        for words in (f"link add {port} type veth peer name eth0", f"link set {port} master br0 up",
                      f"link set eth0 netns {node.pid}", f"route add {pod_range(index)} via {node_address(index)}"):
            # In this network, but where the process ids of other machines mean something.
            subprocess.run(["nsenter", "--target", str(self.machine.pid), "--net", "ip", *words.split()], check=True)
        for words in ("link set lo up", f"address add {node_address(index)}/24 dev eth0", "link set eth0 up",
                      f"route add default via {ADDRESS}"):
            node.exec("ip", *words.split())

    def _prepare_machine(self):
        for command in ("hostname control-plane", "ip link set lo up", "ip link add br0 type bridge",
                        f"ip address add {ADDRESS}/24 dev br0", "ip link set br0 up", "sysctl --quiet --write net.ipv4.ip_forward=1"):
            self.machine.exec(*command.split())

    def _make_certificates(self):
        sign = self.authority.sign
        sign("kube-apiserver", "kube-apiserver", addresses=("127.0.0.1", ADDRESS, FIRST_SERVICE),
             names=("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"))
        sign("kubelet-client", "kube-apiserver-kubelet-client", "system:masters")
        for name in ("kube-controller-manager", "kube-scheduler", "kube-proxy"):
            sign(name, f"system:{name}")
        sign("admin", "admin", "system:masters")
        for name in ("kube-controller-manager", "kube-scheduler", "kube-proxy", "admin"):
            self.authority.kubeconfig(name, SERVER)

    def _program(self, name, flags):
        command = [self.components.kubernetes / name, *flags, *self.settings.flags_of(name)]
        return Program(self.machine, name, command, self.folder / f"logs/{name}.log")

    def _etcd(self):
        return [self.components.etcd, "--name=test", f"--data-dir={self.folder}/etcd", "--unsafe-no-fsync", f"--listen-client-urls={ETCD}",
                f"--advertise-client-urls={ETCD}", f"--listen-peer-urls={ETCD_PEERS}", f"--initial-cluster=test={ETCD_PEERS}",
                f"--initial-advertise-peer-urls={ETCD_PEERS}"]

    def _api_server(self):
        path = self.authority.path
        flags = [f"--etcd-servers={ETCD}", "--bind-address=0.0.0.0", f"--advertise-address={ADDRESS}", "--secure-port=6443",
                 f"--service-cluster-ip-range={SERVICES}", f"--client-ca-file={path('ca.crt')}",
                 f"--tls-cert-file={path('kube-apiserver.crt')}", f"--tls-private-key-file={path('kube-apiserver.key')}",
                 "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={path('sa.pub')}",
                 f"--service-account-signing-key-file={path('sa.key')}", "--authorization-mode=Node,RBAC",
                 "--enable-admission-plugins=NodeRestriction", f"--kubelet-client-certificate={path('kubelet-client.crt')}",
                 f"--kubelet-client-key={path('kubelet-client.key')}", f"--kubelet-certificate-authority={path('ca.crt')}",
                 "--kubelet-preferred-address-types=InternalIP", "--allow-privileged=true"]
        return flags + ([f"--runtime-config={self.settings.served_apis()}"] if self.settings.served_apis() else [])

    def _controller_manager(self):
        path = self.authority.path
        return [f"--kubeconfig={path('kube-controller-manager.kubeconfig')}", f"--root-ca-file={path('ca.crt')}",
                f"--service-account-private-key-file={path('sa.key')}", "--use-service-account-credentials", "--leader-elect=false",
                "--bind-address=127.0.0.1", "--allocate-node-cidrs=false", f"--cluster-cidr={PODS}", "--flex-volume-plugin-dir="]

    def _scheduler(self):
        return [f"--kubeconfig={self.authority.path('kube-scheduler.kubeconfig')}", "--leader-elect=false",
                "--bind-address=127.0.0.1"]
