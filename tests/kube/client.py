"""What tests do with any cluster."""

import json
import pathlib
import subprocess

import drover
from kube import images
from kube.api import Api
from kube.machine import PATIENCE


class Client:
    """Methods work in `namespace` unless they are told of another one."""

    def __init__(self, kubectl, kubeconfig, folder, enter=(), namespace="default"):
        """`enter` is what comes before a command so that it reaches the cluster."""
        self.kubeconfig, self.folder, self.namespace = kubeconfig, folder, namespace
        self.api = Api(f"{folder}/api.sock")
        self._kubectl = [kubectl, f"--kubeconfig={kubeconfig}", f"--cache-dir={folder}/kubectl"]
        self._enter = list(enter)

    def proxy_command(self):
        """The program that `api` needs."""
        return [*self._kubectl, "proxy", f"--unix-socket={self.folder}/api.sock"]

    def reaching(self, *command):
        """This command, so that it reaches the cluster."""
        return [*self._enter, *command]

    def kubectl(self, *words, input="", check=True, timeout=PATIENCE):
        """Runs kubectl to its end; returns the process with `stdout` and `stderr` as texts."""
        done = subprocess.run([str(word) for word in self.reaching(*self._kubectl, *words)], input=input, capture_output=True,
                              text=True, timeout=timeout)
        if check and done.returncode != 0:
            raise AssertionError(f"'kubectl {' '.join(map(str, words))}' ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def apply(self, objects):
        """Makes or changes one object, or each of a list."""
        listed = objects if isinstance(objects, list) else [objects]
        self.kubectl("apply", "--filename=-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": listed}))

    def get(self, kind, name, namespace=None):
        """The object; None when there is none."""
        return self.api.get(kind, name, namespace or self.namespace)

    def list(self, kind, namespace=None, **query):
        """All objects of a kind in a namespace; the query may have `labelSelector` and `fieldSelector`."""
        return self.api.list(kind, namespace or self.namespace, **query)

    def delete(self, kind, *names, namespace=None, wait=True, options=()):
        self.kubectl("delete", kind, *names, "--namespace", namespace or self.namespace, "--ignore-not-found",
                     f"--wait={str(wait).lower()}", *options)

    def events(self, name=None, namespace=None):
        """Events, the oldest first: all, or those of the object of that name."""
        found = self.list("events", namespace, **({"fieldSelector": f"involvedObject.name={name}"} if name else {}))
        return sorted(found, key=lambda event: event.get("lastTimestamp") or event.get("eventTime") or "")

    def logs(self, pod, *options, namespace=None, lines=1):
        """Waits until it has written so many: Ready, it runs, and has perhaps said nothing yet."""
        def read():
            text = self.kubectl("logs", pod, "--namespace", namespace or self.namespace, *options).stdout
            return text if text.count("\n") >= lines else None

        return drover.wait_for(read, f"{pod} to write {lines} lines", PATIENCE)

    def exec(self, pod, *command, container=None, namespace=None, check=True):
        """Runs a command in a pod; returns the process."""
        chosen = ["--container", container] if container else []
        return self.kubectl("exec", pod, "--namespace", namespace or self.namespace, *chosen, "--", *command, check=check)

    def wait(self, kind, name, condition, timeout=PATIENCE, namespace=None):
        """Waits until condition(object) holds, where object is None as long as there is none; returns the object."""
        last = None

        def holds():
            nonlocal last
            with self.api.outages_suppressed():
                last = self.get(kind, name, namespace)
                return (last or True) if condition(last) else None

        def what():
            wanted, seen = getattr(condition, "__name__", "a condition"), json.dumps(last and last.get("status"), indent=1)
            return f"{wanted} of {kind} {name}; its status is\n{seen}\n{self._explain(name, namespace)}"

        return drover.wait_for(holds, what, timeout)

    def wait_until_running(self, pod, **options):
        return self.wait("pod", pod, pod_is_ready, **options)

    def wait_until_ended(self, pod, **options):
        return self.wait("pod", pod, pod_has_ended, **options)

    # Accounts

    def make_account(self, name, rules, namespace=None):
        """A service account with a ClusterRole of these rules; returns the path of its kubeconfig."""
        account = {"kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace or self.namespace}}
        group = "rbac.authorization.k8s.io"
        self.apply([
            {"apiVersion": "v1", **account},
            {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
            {"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
             "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
             "subjects": [{"kind": "ServiceAccount", **account["metadata"]}]}])
        return self.account_kubeconfig(name, namespace)

    def account_kubeconfig(self, name, namespace=None):
        """The path of a kubeconfig for a service account that is there."""
        namespace = namespace or self.namespace
        token = self.kubectl("create", "token", name, "--namespace", namespace, "--duration=24h").stdout.strip()
        return self.write_kubeconfig(f"account-{namespace}-{name}", user={"token": token}, namespace=namespace)

    def write_kubeconfig(self, name, namespace, user=None):
        """This client's kubeconfig with another default namespace, and perhaps another user; returns its path."""
        config = json.loads(self.kubectl("config", "view", "--minify", "--flatten", "--output=json").stdout)
        config["contexts"][0]["context"]["namespace"] = namespace
        if user:
            config["users"][0]["user"] = user
        path = pathlib.Path(self.folder) / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(config))
        return path

    # What went wrong

    def log_tails(self):
        return ""

    def _explain(self, name, namespace):
        told = [f"{event['type']} {event['reason']}: {event.get('message')}" for event in self.events(name, namespace)]
        return "\n".join(told + [self.log_tails()])


def condition_of(item, kind):
    """The status of one of an object's conditions: "True", "False", "Unknown"; None when it has no such condition."""
    return next((found["status"] for found in item.get("status", {}).get("conditions", ()) if found["type"] == kind), None)


def node_is_ready(node):
    return node is not None and condition_of(node, "Ready") == "True"


def pod_is_ready(pod):
    return pod is not None and condition_of(pod, "Ready") == "True"


def pod_has_ended(pod):
    return pod is not None and pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def is_gone(item):
    return item is None


def pod(name, *args, node=None, image=images.PROBE, **container):
    """A pod with one container, whose arguments are words for tests/probe.c; more fields of the container by their names."""
    main = {"name": "main", "image": image, "imagePullPolicy": "Never", "args": [str(word) for word in args], **container}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [main], "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                     **({"nodeName": node} if node else {})}}
