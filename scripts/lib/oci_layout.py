"""Writes an OCI image layout with one layer: https://github.com/opencontainers/image-spec/blob/main/image-layout.md

The layer is a plain tar. Device nodes are left out: containers get theirs from the runtime, and Drover refuses layers
that bring their own. The layout appears whole or not at all.
"""

import hashlib
import io
import json
import os
import pathlib
import platform
import shutil
import tarfile

GO_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64le", "s390x": "s390x", "riscv64": "riscv64"}
MEDIA = "application/vnd.oci.image."
RECIPE = "recipe"  # annotation of the manifest: what the image was made from


class Layer:
    """A layer being written: a tar with its digest."""

    def __init__(self, path):
        self._file = open(path, "wb")
        self._hash = hashlib.sha256()
        self.size = 0
        self._tar = tarfile.open(fileobj=self, mode="w|", format=tarfile.PAX_FORMAT)

    def write(self, data):  # what tarfile needs of a file
        self._hash.update(data)
        self.size += len(data)
        return self._file.write(data)

    def add_tar(self, stream, leave_out=()):
        """Copies a tar stream, without device nodes and the paths named."""
        with tarfile.open(fileobj=stream, mode="r|") as source:
            for member in source:
                path = member.name.removeprefix("./")
                if not (member.ischr() or member.isblk() or member.isfifo() or path in leave_out):
                    self._tar.addfile(member, source.extractfile(member) if member.isreg() else None)

    def add_folder(self, path, mode=0o755):
        member = tarfile.TarInfo(path.strip("/"))
        member.type, member.mode = tarfile.DIRTYPE, mode
        self._tar.addfile(member)

    def add_file(self, path, content, mode=0o644):
        member = tarfile.TarInfo(path.strip("/"))
        member.size, member.mode = len(content), mode
        self._tar.addfile(member, io.BytesIO(content))

    def add_link(self, path, target):
        member = tarfile.TarInfo(path.strip("/"))
        member.type, member.linkname, member.mode = tarfile.SYMTYPE, target, 0o777
        self._tar.addfile(member)

    def add_member(self, member, content=b""):
        """Any TarInfo: what a test of hostile layers needs."""
        self._tar.addfile(member, io.BytesIO(content))

    def close(self):
        """Returns the layer's descriptor."""
        self._tar.close()
        self._file.close()
        return {"mediaType": MEDIA + "layer.v1.tar", "digest": "sha256:" + self._hash.hexdigest(), "size": self.size}


def _add_json(blobs, media_type, value):
    data = json.dumps(value, sort_keys=True).encode()
    digest = hashlib.sha256(data).hexdigest()
    (blobs / digest).write_bytes(data)
    return {"mediaType": MEDIA + media_type, "digest": "sha256:" + digest, "size": len(data)}


def write(output, fill, *, command=(), entrypoint=(), environment=(), labels=None, user="", working_directory="",
          volumes=(), tag="latest", recipe=""):
    """Makes the layout `output`. `fill(layer)` writes the layer's content.

    `environment` is a list of "NAME=value"; `recipe` names what the image is made from (see made_from()).
    """
    output = pathlib.Path(output)
    partial = output.with_name(f".{output.name}.partial-{os.getpid()}")
    blobs = partial / "blobs/sha256"
    blobs.mkdir(parents=True)
    try:
        layer = Layer(partial / "layer")
        fill(layer)
        described = layer.close()
        digest = described["digest"]
        (partial / "layer").rename(blobs / digest.removeprefix("sha256:"))

        settings = {"Cmd": list(command), "Entrypoint": list(entrypoint), "Env": list(environment),
                    "Labels": labels or {}, "User": user, "WorkingDir": working_directory,
                    "Volumes": {place: {} for place in volumes}}
        config = _add_json(blobs, "config.v1+json", {
            "architecture": GO_ARCHITECTURES.get(platform.machine(), platform.machine()), "os": "linux",
            "config": {name: value for name, value in settings.items() if value},
            "rootfs": {"type": "layers", "diff_ids": [digest]}})
        manifest = _add_json(blobs, "manifest.v1+json", {
            "schemaVersion": 2, "mediaType": MEDIA + "manifest.v1+json", "config": config, "layers": [described]})
        manifest["annotations"] = {"org.opencontainers.image.ref.name": tag, RECIPE: recipe}
        (partial / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        (partial / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}))
        if output.exists():
            shutil.rmtree(output)
        partial.rename(output)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def made_from(output, recipe):
    """Whether the layout `output` is there and was made from `recipe`."""
    try:
        index = json.loads((pathlib.Path(output) / "index.json").read_text())
        return index["manifests"][0]["annotations"][RECIPE] == recipe
    except (OSError, ValueError, KeyError, IndexError):
        return False
