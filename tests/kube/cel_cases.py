"""Selectors and devices to ask two programs about: published ones, and random ones, the same for one seed."""

import pathlib
import random

PUBLISHED = pathlib.Path(__file__).parent.parent / "data/selectors.tsv"
DOMAINS = ("dra.example.com", "gpu.nvidia.com", "resource.kubernetes.io", "resource-driver.example.com", "dra.net")
NAMES = {"int": ("index", "numaNode", "name"), "bool": ("healthy", "rdma", "name"), "string": ("type", "model", "productName"),
         "version": ("driverVersion", "name"), "ints": ("names",), "strings": ("names", "type"), "bools": ("names",), "versions": ("names",)}
CAPACITY = ("memory", "name", "multiprocessors")
TEXTS = ("", "gpu", "mig", "H100", "NVIDIA A100-SXM4-80GB", "Tesla T4", "fish", "größer", "a.b.c", " x ", "0", "1.2.3", "4Gi", "ab,cd,,ef", "日本語")
VERSIONS = ("1.0.0", "2.0.0", "1.2.3-rc.1", "1.2.3-rc.1.2", "1.2.3-alpha", "12.4.0", "0.0.1", "1.2.3+build")
LOOSE_VERSIONS = VERSIONS + ("v1.2.3", "1.2", "1", "01.02.03", "1.2.3.4", "", "v1", "x.y.z", "1.2.3-01", "1.2.3-", "1.2-rc")
QUANTITIES = ("0", "1", "10Gi", "80Gi", "1Ki", "500m", "1.5Gi", "1500m", "100", "-3", "2e3", "9223372036854775807", "1e20", "0.5", "1k", "4M")
LOOSE_QUANTITIES = QUANTITIES + ("", "abc", "1K", "1 Gi", ".5", "1.", "-", "++1", "1e", "12345678901234567890", "1000n", "0.0000000001", "100Ei")
PATTERNS = ("a", "^gpu$", "[0-9]+", "(?i)nvidia", ".*", "A100|H100", "x*", "[^a]?m", "\\\\d+G", "(", "[z-a]", "\\\\pL+", "^$", "(a+)+$", "(?P<n>g)p")
ATOMS = {
    "int": ("0", "1", "-1", "2", "3", "7", "0x1F", "9223372036854775807", "-9223372036854775808", "-0"),
    "uint": ("0u", "1u", "3u", "18446744073709551615u", "0xFu"),
    "double": ("0.0", "1.5", "-2.25", "1e3", "1e300", ".5", "1.0"),
    "bool": ("true", "false"),
    "bytes": ("b'abc'", "b''", "b'\\xff'", "b\"\\101\"", "bytes('x')"),
    "null": ("null",),
}


def device(rng):
    """A device, in the API's form, with its driver beside."""
    attributes = {}
    for kind, names in NAMES.items():
        for name in names:
            if rng.random() < 0.5:
                continue
            one = {"int": lambda: rng.randrange(-2, 9), "bool": lambda: rng.random() < 0.5, "string": lambda: rng.choice(TEXTS),
                   "version": lambda: rng.choice(VERSIONS)}[kind.removesuffix("s")]
            value = [one() for _ in range(rng.randrange(1, 5))] if kind.endswith("s") else one()
            domain = rng.choice(DOMAINS)
            attributes[name if rng.random() < 0.3 else f"{domain}/{name}"] = {kind: value}
    driver = rng.choice(DOMAINS)
    # Of two that would be one, Kubernetes takes either.
    attributes = {name: value for name, value in attributes.items() if "/" in name or f"{driver}/{name}" not in attributes}
    capacity = {f"{rng.choice((driver, *DOMAINS[:2]))}/{name}": {"value": rng.choice(QUANTITIES)} for name in CAPACITY if rng.random() < 0.7}
    if rng.random() < 0.02:
        attributes[f"{driver}/bad"] = {"version": "no version"}
    return {"driver": driver, "name": "d", "attributes": attributes, "capacity": capacity, "allowMultipleAllocations": rng.random() < 0.5}


def published():
    """Pairs of where a selector is published, and the selector."""
    lines = PUBLISHED.read_text().splitlines()
    return [tuple(line.split("\t", 1)) for line in lines if line and not line.startswith("#")]


class Grammar:
    """Makes expressions: of right types for the most part, and of wrong ones now and then."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.variables = []

    def expression(self):
        self.variables = []
        return self.make("bool", self.rng.randrange(1, 6))

    def quoted(self, text):
        quote = self.rng.choice(("'", '"', "'", '"', "'''", '"""'))
        prefix = "r" if self.rng.random() < 0.05 and "\\" not in text else ""
        return f"{prefix}{quote}{text}{quote}"

    def any_type(self):
        return self.rng.choice(("bool", "int", "uint", "double", "string", "bytes", "quantity", "semver", "dyn", "null",
                                ("list", "int"), ("list", "string"), ("list", "dyn"), ("map", "int"), ("optional", "int"), ("optional", "string"), "type"))

    def scalar(self):
        return self.rng.choice(("int", "int", "string", "string", "bool", "double", "uint", "quantity", "semver"))

    def make(self, kind, depth):
        if self.rng.random() < 0.015:
            kind = self.any_type()
        if self.rng.random() < 0.06 and kind != "null":
            kind = "dyn"
        known = [name for name, of in self.variables if of == kind]
        if known and self.rng.random() < 0.5:
            return self.rng.choice(known)
        if kind == "dyn" and self.variables and self.rng.random() < 0.1:
            return self.rng.choice(self.variables)[0]
        if depth > 0 and self.rng.random() < 0.12:
            return self.general(kind, depth - 1)
        name = kind if isinstance(kind, str) else kind[0]
        return getattr(self, f"make_{name}")(*(() if isinstance(kind, str) else kind[1:]), depth - 1)

    def general(self, kind, depth):
        """What there is of every type."""
        choice = self.rng.randrange(7)
        if choice == 0:
            return f"({self.make('bool', depth)} ? {self.make(kind, depth)} : {self.make(kind, depth)})"
        if choice == 1:
            return self.bound(kind, depth)
        if choice == 2:
            return f"{self.make(('optional', kind), depth)}.orValue({self.make(kind, depth)})"
        if choice == 3:
            return f"{self.make(('list', kind), depth)}[{self.make('int', depth)}]"
        if choice == 4:
            return f"{self.make(('map', kind), depth)}[{self.make('string', depth)}]"
        if choice == 5:
            return f"({self.make(kind, depth)})"
        return f"{self.make(('optional', kind), depth)}.value()"

    def bound(self, kind, depth):
        of = self.scalar() if self.rng.random() < 0.7 else self.any_type()
        start = self.make(of, depth)
        return f"cel.bind({self.within(of, lambda name: f'{name}, {start}, {self.make(kind, depth)}')})"

    def within(self, of, made):
        name = self.rng.choice("xyz")
        self.variables.append((name, of))
        hidden = [one for one in self.variables[:-1] if one[0] == name]
        self.variables = [one for one in self.variables if one not in hidden or one == (name, of)]
        try:
            return made(name)
        finally:
            self.variables.remove((name, of))
            self.variables += hidden

    def make_null(self, _):
        return "null"

    def make_type(self, depth):
        return self.rng.choice((f"type({self.make(self.any_type(), depth)})", "int", "string", "list", "map", "bool", "double"))

    def make_dyn(self, depth):
        rng = self.rng
        domain, name = rng.choice(DOMAINS), rng.choice(NAMES[rng.choice(tuple(NAMES))] + ("bad",) * (rng.random() < 0.05))
        front = f"device.attributes[{self.quoted(domain)}]"
        choice = rng.randrange(12)
        if choice < 5:
            return f"{front}.{name}"
        if choice < 7:
            return f"{front}[{self.quoted(name)}]"
        if choice == 7 and depth > 0:
            return f"dyn({self.make(self.any_type(), depth)})"
        if choice == 8:
            return f"{front}.?{name}.orValue({self.make(self.scalar(), depth)})"
        if choice == 9 and depth > 0:
            return f"{self.make(('list', 'dyn'), depth)}[{self.make('int', depth)}]"
        if choice == 10 and depth > 0:
            return f"{self.make('dyn', depth)}.{name}"
        return f"{front}.{name}"

    def make_bool(self, depth):
        rng = self.rng
        if depth <= 0:
            return rng.choice((*ATOMS["bool"], "device.allowMultipleAllocations", f"device.driver == {self.quoted(rng.choice(DOMAINS))}",
                               f"{self.quoted(rng.choice(DOMAINS))} in device.attributes", self.make_dyn(0), self.presence(0)))
        one = getattr(self, rng.choice(("logic", "logic", "logic", "comparison", "comparison", "comparison", "membership", "presence", "text_test",
                                        "quantifier", "quantifier", "kubernetes_test", "kubernetes_test", "set_test", "conversion_to_bool")))
        return one(depth)

    def logic(self, depth):
        choice = self.rng.randrange(5)
        parts = [self.make("bool", depth) for _ in range(self.rng.randrange(2, 4))]
        if choice < 2:
            return f"({' && '.join(parts)})"
        if choice < 4:
            return f"({' || '.join(parts)})"
        return f"{'!' * self.rng.randrange(1, 4)}({parts[0]})"

    def comparison(self, depth):
        of = self.scalar() if self.rng.random() < 0.85 else self.any_type()
        other = of
        if of in ("int", "uint", "double") and self.rng.random() < 0.3:
            other = self.rng.choice(("int", "uint", "double"))
        ordered = of in ("int", "uint", "double", "string", "bool", "bytes", "dyn") or self.rng.random() < 0.05
        operator = self.rng.choice(("==", "!=", "<", "<=", ">", ">=") if ordered else ("==", "!="))
        return f"({self.make(of, depth)} {operator} {self.make(other, depth)})"

    def membership(self, depth):
        of = self.scalar()
        if self.rng.random() < 0.3:
            return f"({self.make('string', depth)} in {self.make(('map', of), depth)})"
        if self.rng.random() < 0.3:
            return f"{self.make('dyn', depth)}.includes({self.make(of, depth)})"
        return f"({self.make(of, depth)} in {self.make(('list', of), depth)})"

    def presence(self, depth):
        domain, name = self.rng.choice(DOMAINS), self.rng.choice(("type", "model", "name", "memory", "index"))
        front = self.rng.choice(("device.attributes", "device.capacity"))
        return self.rng.choice((f"has({front}[{self.quoted(domain)}].{name})", f"has({front}.{name})", f"({self.quoted(name)} in {front}[{self.quoted(domain)}])",
                                f"{front}[{self.quoted(domain)}].?{name}.hasValue()", f"{front}[?{self.quoted(domain)}].{name}.hasValue()",
                                f"has({self.make('dyn', depth)}.{name})", f"has({front}[{self.quoted(domain)}].?{name}.x)"))

    def text_test(self, depth):
        text = self.make("string", depth)
        pattern = self.quoted(self.rng.choice(PATTERNS)) if self.rng.random() < 0.8 else self.make("string", depth)
        return self.rng.choice((f"{text}.startsWith({self.make('string', depth)})", f"{text}.endsWith({self.make('string', depth)})",
                                f"{text}.contains({self.make('string', depth)})", f"{text}.matches({pattern})", f"matches({text}, {pattern})"))

    def quantifier(self, depth):
        of = self.scalar() if self.rng.random() < 0.8 else "dyn"
        macro = self.rng.choice(("all", "exists", "exists_one", "existsOne"))
        choice = self.rng.random()
        if choice < 0.55:
            collection = self.make(("list", of), depth)
            return f"{collection}.{macro}({self.within(of, lambda name: f'{name}, ' + self.make('bool', depth))})"
        if choice < 0.75:
            collection = self.make(("map", of), depth)
            return f"{collection}.{macro}({self.within('string', lambda name: f'{name}, ' + self.make('bool', depth))})"
        collection = self.make(("list", of), depth)
        inner = lambda name: self.within(of, lambda other: f"{name}, {other}, {self.make('bool', depth)}")
        return f"{collection}.{macro}({self.within('int', inner)})"

    def kubernetes_test(self, depth):
        quantity, version = lambda: self.make("quantity", depth), lambda: self.make("semver", depth)
        return self.rng.choice((lambda: f"{quantity()}.isGreaterThan({quantity()})", lambda: f"{quantity()}.isLessThan({quantity()})",
                                lambda: f"{quantity()}.isInteger()", lambda: f"isQuantity({self.make('string', depth)})",
                                lambda: f"{version()}.isGreaterThan({version()})", lambda: f"{version()}.isLessThan({version()})",
                                lambda: f"isSemver({self.make('string', depth)})", lambda: f"isSemver({self.make('string', depth)}, {self.make('bool', depth)})",
                                lambda: f"({quantity()}.compareTo({quantity()}) >= 0)", lambda: f"({version()}.compareTo({version()}) >= 0)"))()

    def set_test(self, depth):
        of = self.rng.choice(("int", "string", "double"))
        function = self.rng.choice(("sets.contains", "sets.equivalent", "sets.intersects"))
        if self.rng.random() < 0.3:
            return f"{self.make(('list', of), depth)}.isSorted()"
        return f"{function}({self.make(('list', of), depth)}, {self.make(('list', of), depth)})"

    def conversion_to_bool(self, depth):
        return self.rng.choice((f"bool({self.make('string', depth)})", "bool('true')", "bool('F')", f"bool({self.make('bool', depth)})",
                                f"{self.make(('optional', self.scalar()), depth)}.hasValue()"))

    def number(self, kind, depth, operators):
        rng = self.rng
        if depth <= 0 or rng.random() < 0.3:
            return rng.choice(ATOMS[kind])
        if rng.random() < 0.5:
            return f"({self.make(kind, depth)} {rng.choice(operators)} {self.make(kind, depth)})"
        return None

    def make_int(self, depth):
        made = self.number("int", depth, "+-*/%")
        if made:
            return made
        return self.rng.choice((
            lambda: f"-({self.make('int', depth)})", lambda: f"size({self.make(self.rng.choice(('string', 'bytes', ('list', 'int'), ('map', 'int'))), depth)})",
            lambda: f"{self.make(self.rng.choice(('string', ('list', 'string'))), depth)}.size()",
            lambda: f"int({self.make(self.rng.choice(('uint', 'double', 'string', 'int')), depth)})",
            lambda: f"{self.make('string', depth)}.{self.rng.choice(('indexOf', 'lastIndexOf'))}({self.make('string', depth)})",
            lambda: f"{self.make('string', depth)}.{self.rng.choice(('indexOf', 'lastIndexOf'))}({self.make('string', depth)}, {self.make('int', depth)})",
            lambda: f"{self.make(('list', 'int'), depth)}.{self.rng.choice(('sum', 'min', 'max'))}()",
            lambda: f"{self.make(('list', 'string'), depth)}.{self.rng.choice(('indexOf', 'lastIndexOf'))}({self.make('string', depth)})",
            lambda: f"{self.make('semver', depth)}.{self.rng.choice(('major', 'minor', 'patch'))}()",
            lambda: f"{self.make('quantity', depth)}.asInteger()", lambda: f"sign({self.make('quantity', depth)})",
            lambda: f"{self.make('quantity', depth)}.compareTo({self.make('quantity', depth)})"))()

    def make_uint(self, depth):
        return self.number("uint", depth, "+-*/%") or f"uint({self.make(self.rng.choice(('int', 'double', 'string', 'uint')), depth)})"

    def make_double(self, depth):
        return self.number("double", depth, "+-*/") or self.rng.choice((
            lambda: f"double({self.make(self.rng.choice(('int', 'uint', 'string', 'double')), depth)})", lambda: f"-{self.make('double', depth)}",
            lambda: f"{self.make('quantity', depth)}.asApproximateFloat()", lambda: f"{self.make(('list', 'double'), depth)}.max()"))()

    def make_string(self, depth):
        rng = self.rng
        if depth <= 0 or rng.random() < 0.35:
            return rng.choice((self.quoted(rng.choice(TEXTS)), self.quoted(rng.choice(TEXTS)), "device.driver", "'a\\tb\\u00e9\\x41\\101'", "r'\\d'"))
        text, number = lambda: self.make("string", depth), lambda: self.make("int", depth)
        return rng.choice((
            lambda: f"({text()} + {text()})", lambda: f"{text()}.lowerAscii()", lambda: f"{text()}.upperAscii()", lambda: f"{text()}.trim()",
            lambda: f"{text()}.substring({number()})", lambda: f"{text()}.substring({rng.randrange(3)}, {rng.randrange(1, 6)})", lambda: f"{text()}.charAt({number()})",
            lambda: f"{text()}.replace({text()}, {text()})", lambda: f"{text()}.replace({text()}, {text()}, {number()})",
            lambda: f"{self.make(('list', 'string'), depth)}.join()", lambda: f"{self.make(('list', 'string'), depth)}.join({text()})",
            lambda: f"string({self.make(rng.choice(('int', 'uint', 'double', 'bool', 'bytes', 'string')), depth)})",
            lambda: f"{text()}.find({self.quoted(rng.choice(PATTERNS))})", lambda: f"{text()}.find({text()})"))()

    def make_bytes(self, depth):
        if depth <= 0 or self.rng.random() < 0.5:
            return self.rng.choice(ATOMS["bytes"])
        return self.rng.choice((f"bytes({self.make('string', depth)})", f"({self.make('bytes', depth)} + {self.make('bytes', depth)})"))

    def make_quantity(self, depth):
        rng = self.rng
        if depth > 0 and rng.random() < 0.3:
            other = self.make(rng.choice(("quantity", "int")), depth)
            return f"{self.make('quantity', depth)}.{rng.choice(('add', 'sub'))}({other})"
        domain, name = self.quoted(rng.choice(DOMAINS[:3])), rng.choice(CAPACITY)
        text = self.quoted(rng.choice(LOOSE_QUANTITIES if rng.random() < 0.2 else QUANTITIES))
        return rng.choice((f"quantity({text})", f"quantity({text})", f"device.capacity[{domain}].{name}", f"device.capacity[{domain}][{self.quoted(name)}]",
                           f"device.capacity[{domain}].?{name}.orValue(quantity({text}))"))

    def make_semver(self, depth):
        rng = self.rng
        if rng.random() < 0.25:
            return f"semver({self.quoted(rng.choice(LOOSE_VERSIONS))}, {self.make('bool', min(depth, 0))})"
        return f"semver({self.quoted(rng.choice(LOOSE_VERSIONS if rng.random() < 0.1 else VERSIONS))})"

    def make_list(self, of, depth):
        rng = self.rng
        if depth <= 0 or rng.random() < 0.4:
            if of == "dyn" and rng.random() < 0.7:
                return self.make_dyn(0)
            count = rng.randrange(4)
            return "[" + ", ".join(self.make(of, depth if rng.random() < 0.3 else 0) for _ in range(count)) + ("," if count and rng.random() < 0.05 else "") + "]"
        mapped = self.scalar()
        choices = [
            lambda: f"({self.make(('list', of), depth)} + {self.make(('list', of), depth)})",
            lambda: f"{self.make(('list', of), depth)}.filter({self.within(of, lambda name: f'{name}, ' + self.make('bool', depth))})",
            lambda: f"{self.make(('list', mapped), depth)}.map({self.within(mapped, lambda name: f'{name}, ' + self.make(of, depth))})",
            lambda: f"{self.make(('list', mapped), depth)}.map({self.within(mapped, lambda name: f'{name}, ' + self.make('bool', depth) + ', ' + self.make(of, depth))})",
            lambda: f"{self.make(('list', of), depth)}.{rng.choice(('reverse', 'distinct'))}()",
            lambda: f"{self.make(('list', of), depth)}.slice({rng.randrange(2)}, {rng.randrange(1, 3)})",
            lambda: f"[{self.make(('list', of), depth)}, {self.make(('list', of), depth)}].flatten()",
            lambda: f"[?{self.make(('optional', of), depth)}, {self.make(of, depth)}]",
            lambda: f"{self.make(('list', mapped), depth)}.transformList(i, {self.within(mapped, lambda name: f'{name}, ' + self.make(of, depth))})",
        ]
        if of in ("int", "string", "double"):
            choices.append(lambda: f"{self.make(('list', of), depth)}.sort()")
            choices.append(lambda: f"{self.make(('list', of), depth)}.sortBy({self.within(of, lambda name: f'{name}, ' + self.make('int', 0))})")
        if of == "string":
            choices += [lambda: f"{self.make('string', depth)}.split({self.make('string', depth)})", lambda: f"{self.make('string', depth)}.split({self.make('string', 0)}, {self.make('int', 0)})",
                        lambda: f"{self.make('string', depth)}.findAll({self.quoted(rng.choice(PATTERNS))})",
                        lambda: f"{self.make('string', depth)}.findAll({self.quoted(rng.choice(PATTERNS))}, {rng.randrange(-1, 3)})"]
        if of == "int":
            choices.append(lambda: f"lists.range({rng.randrange(5)})")
        return rng.choice(choices)()

    def make_map(self, of, depth):
        rng = self.rng
        if of == "dyn" and rng.random() < 0.7:
            return f"device.attributes[{self.quoted(rng.choice(DOMAINS))}]"
        if of == "quantity" and rng.random() < 0.7:
            return f"device.capacity[{self.quoted(rng.choice(DOMAINS))}]"
        if depth > 0 and rng.random() < 0.15:
            return f"{self.make(('map', of), depth)}.transformMap(k, {self.within(of, lambda name: f'{name}, ' + self.make(of, depth))})"
        entries = [f"{self.quoted(rng.choice(TEXTS[:6]))}: {self.make(of, depth)}" for _ in range(rng.randrange(3))]
        if rng.random() < 0.1:
            entries.append(f"?'gpu': {self.make(('optional', of), depth)}")
        return "{" + ", ".join(entries) + "}"

    def make_optional(self, of, depth):
        rng = self.rng
        choices = [lambda: f"optional.of({self.make(of, depth)})", lambda: "optional.none()", lambda: f"optional.ofNonZeroValue({self.make(of, depth)})",
                   lambda: f"{self.make(('list', of), depth)}[?{self.make('int', depth)}]", lambda: f"{self.make(('map', of), depth)}[?{self.make('string', depth)}]",
                   lambda: f"{self.make(('list', of), depth)}.{rng.choice(('first', 'last'))}()"]
        if depth > 0:
            mapped = self.scalar()
            choices += [lambda: f"{self.make(('optional', of), depth)}.or({self.make(('optional', of), depth)})",
                        lambda: f"{self.make(('optional', mapped), depth)}.optMap({self.within(mapped, lambda name: f'{name}, ' + self.make(of, depth))})",
                        lambda: f"{self.make(('optional', mapped), depth)}.optFlatMap({self.within(mapped, lambda name: f'{name}, ' + self.make(('optional', of), depth))})"]
        return rng.choice(choices)()
