"""The cluster's API, without the start of a kubectl for every question: a `kubectl proxy` serves it at a unix socket."""

import contextlib
import http.client
import json
import urllib.parse

import drover

DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class ApiError(Exception):
    def __init__(self, status, answer):
        super().__init__(f"HTTP {status}: {answer.get('message', answer) if isinstance(answer, dict) else answer}")
        self.status = status


class Api:
    """Safe for several threads."""

    def __init__(self, socket):
        self.socket = socket
        self._resources = {}  # any name of a kind -> its path under the root, whether it is namespaced, its plural

    @staticmethod
    @contextlib.contextmanager
    def outages_suppressed():
        """The API server may be away for a while."""
        try:
            yield
        except (OSError, http.client.HTTPException):
            pass
        except ApiError as error:
            if error.status < 500:
                raise

    def is_ready(self):
        with self.outages_suppressed():
            return self.request("GET", "/readyz") == "ok"
        return False

    def request(self, method, path, body=None, accept="application/json", timeout=60):
        """The decoded answer, or its text; ApiError for anything but success."""
        with contextlib.closing(drover.UnixConnection(self.socket, timeout)) as connection:
            connection.request(method, path, json.dumps(body) if body is not None else None,
                               {"Accept": accept, "Content-Type": "application/json"})
            response = connection.getresponse()
            text = response.read().decode()
            json_answer = response.headers.get_content_type() == "application/json"
            answer = json.loads(text) if json_answer else text
            if response.status >= 400:
                raise ApiError(response.status, answer)
            return answer

    def get(self, kind, name, namespace):
        """The object; None when there is none."""
        try:
            return self.request("GET", self.path(kind, namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(self, kind, namespace=None, **query):
        """The objects of a namespace, or of all; the query may have `labelSelector` and `fieldSelector`."""
        chosen = f"?{urllib.parse.urlencode(query)}" if query else ""
        return self.request("GET", self.path(kind, namespace) + chosen)["items"]

    def path(self, kind, namespace, name=None):
        """Kinds have the names that kubectl knows: "pod", "pods", "po", "resourceslice", "resourceslices.resource.k8s.io"."""
        if kind.lower() not in self._resources:
            self._discover()
        if kind.lower() not in self._resources:
            raise LookupError(f"the cluster knows no kind '{kind}'")
        root, namespaced, plural = self._resources[kind.lower()]
        middle = f"namespaces/{namespace}/" if namespaced and namespace else ""
        return f"{root}/{middle}{plural}" + (f"/{name}" if name else "")

    def _discover(self):
        for top in ("/api", "/apis"):
            for group in self.request("GET", top, accept=DISCOVERY)["items"]:
                name = group["metadata"].get("name")
                for version in group["versions"]:  # the preferred one first
                    root = "/".join([top, *([name] if name else []), version["version"]])
                    for resource in version.get("resources", ()):
                        self._learn(resource, root, name)

    def _learn(self, resource, root, group):
        plural = resource["resource"]
        found = (root, resource["scope"] == "Namespaced", plural)
        for spelling in (plural, f"{plural}.{group}", resource.get("singularResource"), *resource.get("shortNames", ())):
            self._resources.setdefault(spelling, found)
