"""MkDocs' hooks for Drover's documentation. Which pages there are, and in which order, docs/index.md says. A link that leaves docs/ leads to a
page of its own here, with what it leads to in the source; openapi.yaml to a reference that is made of it."""

import os
import pathlib
import posixpath
import re
import sys

from mkdocs.structure.files import File

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import api_reference  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = "docs/"
OPENAPI, REFERENCE = "docs/openapi.yaml", "api-reference.md"
PICTURES = pathlib.Path(os.environ.get("DROVER_PICTURES", ROOT / "build/pictures"))
LINK = re.compile(r"\]\(([^)#\s]+)((?:#[^)]*)?)\)")
FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
LANGUAGES = {".yaml": "yaml", ".json": "json", ".py": "python", ".sh": "sh", ".md": "markdown"}

origins = {}  # page -> where its text is from, relative to ROOT


def page_of(path):
    """The page of a file or a folder of the source."""
    if path == OPENAPI:
        return REFERENCE
    if path.startswith(DOCS):
        return path.removeprefix(DOCS)
    return f"source/{path}" if path.endswith(".md") else f"source/{path}.md"


def links_of(path, text):
    """Paths relative to ROOT of what a text of the source links to."""
    for target, _ in LINK.findall(FENCE.sub("", text)):
        if "://" not in target:
            yield posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def relinked(path, text):
    """With links that lead to pages."""
    def to_page(found):
        target, anchor = found.groups()
        if "://" in target:
            return found[0]
        page = page_of(posixpath.normpath(posixpath.join(posixpath.dirname(path), target)))
        return f"]({posixpath.relpath(page, posixpath.dirname(page_of(path)) or '.')}{anchor})"

    pieces, last = [], 0
    for fence in FENCE.finditer(text):
        pieces += [LINK.sub(to_page, text[last:fence.start()]), fence[0]]
        last = fence.end()
    return "".join([*pieces, LINK.sub(to_page, text[last:])])


def source_page(path):
    """What a page shows that is not in docs/: a text as it is, another file as code, of a folder each file."""
    place = ROOT / path
    if path.endswith(".md"):
        return place.read_text()
    if place.is_file():
        return f"# {place.name}\n\n{as_code(place)}"
    files = sorted(each for each in place.rglob("*") if each.is_file() and "__pycache__" not in each.parts)
    return "\n\n".join([f"# {path}", *(f"## {each.relative_to(place)}\n\n{as_code(each)}" for each in files)])


def as_code(file):
    return f"````{LANGUAGES.get(file.suffix, 'text')}\n{file.read_text().rstrip()}\n````"


def beyond_docs():
    """Path -> text of each page that is not in docs/, and that one of them leads to."""
    waiting = [(f"{DOCS}{file.name}", file.read_text()) for file in (ROOT / DOCS).glob("*.md")]
    found = {}
    while waiting:
        for target in links_of(*waiting.pop()):
            if not target.startswith(DOCS) and target not in found:
                found[target] = source_page(target)
                if target.endswith(".md"):
                    waiting.append((target, found[target]))
    return found


def pictures():
    return sorted(PICTURES.glob("*.png")) if PICTURES.is_dir() else []


def on_config(config):
    """The sections of the index, and what they list."""
    navigation = [{"Home": "index.md"}]
    for section in re.split(r"^## ", (ROOT / DOCS / "index.md").read_text(), flags=re.MULTILINE)[1:]:
        entries = re.findall(r"\[([^]]+)\]\(([^)#\s]+)\)", section)
        navigation.append({section.split("\n")[0]: [{title: page_of(posixpath.normpath(DOCS + target))} for title, target in entries]})
    if pictures():
        navigation.append({"Pictures": "pictures.md"})
    config.nav = navigation
    return config


def on_files(files, config):
    files.append(File.generated(config, REFERENCE, content=api_reference.page((ROOT / OPENAPI).read_text())))
    for path, text in beyond_docs().items():
        origins[page_of(path)] = path
        files.append(File.generated(config, page_of(path), content=text))
    for picture in pictures():
        files.append(File.generated(config, f"pictures/{picture.name}", abs_src_path=str(picture)))
    if pictures():
        shown = [f"## {picture.stem.replace('-', ' ')}\n\n![{picture.stem}](pictures/{picture.name})" for picture in pictures()]
        files.append(File.generated(config, "pictures.md", content="\n\n".join(["# Pictures", *shown])))
    return files


def on_page_markdown(markdown, page, config, files):
    uri = page.file.src_uri
    if uri in (REFERENCE, "pictures.md"):
        return markdown
    return relinked(origins.get(uri, DOCS + uri), markdown)
