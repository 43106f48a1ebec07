"""A page of Markdown out of an OpenAPI document: each operation by its tag, then each schema. Pure. It knows what docs/openapi.yaml uses."""

import json

import yaml

METHODS = ("get", "put", "post", "patch", "delete")
HEAD = """# API reference

What [openapi.yaml](openapi.yaml) describes, for people. [HTTP API](api.md) explains access, live answers and errors.
"""


def page(text):
    document = yaml.safe_load(text)
    parts = [HEAD]
    for tag in document["tags"]:
        parts.append(f"## {tag['name'].capitalize()}")
        for path, item in document["paths"].items():
            for method in METHODS:
                if tag["name"] in item.get(method, {}).get("tags", ()):
                    parts += operation(document, method, path, item[method], item.get("parameters", []))
    parts.append("## Schemas")
    for name, schema in document["components"]["schemas"].items():
        parts += [f"### {name} {{#schema-{name.lower()}}}", described(schema), *fields(schema, 0)]
    return "\n\n".join(part for part in parts if part) + "\n"


def operation(document, method, path, operation, shared):
    yield f"### `{method.upper()} {path}` {{#{operation['operationId'].lower()}}}"
    yield sentence(operation["summary"])
    yield operation.get("description", "").strip()
    parameters = [resolved(document, each) for each in [*shared, *operation.get("parameters", [])]]
    if parameters:
        rows = [(f"`{each['name']}`", each["in"] + (", required" if each.get("required") else ""), kind(each["schema"]), each.get("description", ""))
                for each in parameters]
        yield table(("parameter", "in", "type", "what it is"), rows)
    body = operation.get("requestBody")
    if body:
        yield "Body" + ("" if body.get("required") else ", which may be left out") + ": " + contents(resolved(document, body))
    yield table(("status", "what it says", "body"), [answer(document, status, each) for status, each in operation["responses"].items()])


def answer(document, status, response):
    response = resolved(document, response)
    return "any other" if status == "default" else f"`{status}`", response.get("description", ""), contents(response)


def contents(holder):
    return "; ".join(f"`{media}` {kind(each['schema'])}" for media, each in holder.get("content", {}).items())


def resolved(document, node):
    while "$ref" in node:
        found = document
        for key in node["$ref"].removeprefix("#/").split("/"):
            found = found[key]
        node = found
    return node


def kind(schema):
    """In a few words; other schemas as links."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#schema-{name.lower()})"
    if "oneOf" in schema:
        return " or ".join(kind(each) for each in schema["oneOf"])
    types = schema.get("type", "any")
    words = " or ".join(types) if isinstance(types, list) else types
    if words == "array":
        words = f"array of {kind(schema.get('items', {}))}"
    if isinstance(schema.get("additionalProperties"), dict):
        words = f"map of {kind(schema['additionalProperties'])}"
    if "enum" in schema:
        words += ": " + ", ".join(f"`{value}`" for value in schema["enum"])
    limits = [f"{said} {schema[key]}" for key, said in (("minimum", "at least"), ("maximum", "at most"), ("maxItems", "at most")) if key in schema]
    if "default" in schema:
        limits.append(f"by default `{json.dumps(schema['default'])}`")
    return ", ".join([words, *limits])


def fields(schema, depth):
    """A list of what an object has, and what that has, as deep as it goes."""
    lines = list(lines_of(schema, depth))
    return ["\n".join(lines)] if lines else []


def lines_of(schema, depth):
    if schema.get("type") == "array":
        schema = schema.get("items", {})
    for each in schema.get("oneOf", ()):
        yield from lines_of(each, depth)
    for name, field in schema.get("properties", {}).items():
        there = "" if name in schema.get("required", ()) else ", not always there"
        said = field.get("description", "").strip()
        yield f"{'    ' * depth}- `{name}` ({kind(field)}{there})" + (f": {said}" if said else "")
        yield from lines_of(field, depth + 1)
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        yield from lines_of(more, depth)


def described(schema):
    said = schema.get("description", "").strip()
    return sentence(said) if said else kind(schema).capitalize() if "properties" not in schema else ""


def sentence(text):
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")


def table(head, rows):
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ").strip() for cell in line) + " |" for line in lines)
