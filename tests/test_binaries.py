"""The programs that are installed are built so that a mistake with memory is hard to use: read from their ELF files."""

import re
import struct
import unittest

import drover

HEADER, SEGMENT, SECTION, SYMBOL, DYNAMIC = "<16s2HI3QI6H", "<2I6Q", "<2I4Q2I2Q", "<I2BH2Q", "<2Q"
SHARED = 3                                            # e_type
LOAD, DYNAMIC_SEGMENT, INTERPRETER, STACK, RELRO = 1, 2, 3, 0x6474E551, 0x6474E552  # p_type
EXECUTABLE, WRITABLE = 1, 2                           # p_flags
NEEDED, TEXTREL, BIND_NOW, FLAGS, FLAGS_1 = 1, 22, 24, 30, 0x6FFFFFFB  # d_tag
SYMBOLS, FUNCTION = 2, 2                              # sh_type, type of a symbol
X86_64 = 62                                           # e_machine
# What is installed; the programs of tests lie beside it.
INSTALLED = sorted(path for path in [*drover.BUILD.glob("drover*"), *drover.BUILD.glob("lib/drover/**/*.so.*")]
                   if path.is_file() and not path.is_symlink() and re.fullmatch(r"drover(-[a-z-]+)?|lib.*", path.name))
CANARY = re.compile(rb"\x64[\x48\x4c]\x8b[\x04\x0c\x14\x1c\x24\x2c\x34\x3c]\x25\x28\0\0\0")  # mov %fs:0x28, REGISTER


class Elf:
    def __init__(self, path):
        self.data = path.read_bytes()
        (ident, self.type, self.machine, _, _, segments, sections, _, _, _, count, _, section_count, _) = self.unpack(HEADER, 0)
        if ident[:6] != b"\x7fELF\x02\x01":
            raise unittest.SkipTest("only ELF files of 64 bits, little endian, are read")
        self.segments = [self.unpack(SEGMENT, segments + index * 56) for index in range(count)]
        self.sections = [self.unpack(SECTION, sections + index * 64) for index in range(section_count)]

    def unpack(self, form, offset):
        return struct.unpack_from(form, self.data, offset)

    def of_type(self, kind):
        return [segment for segment in self.segments if segment[0] == kind]

    def dynamic(self):
        """tag -> value"""
        tags = {}
        for _, _, offset, _, _, size, _, _ in self.of_type(DYNAMIC_SEGMENT):
            for at in range(offset, offset + size, 16):
                tag, value = self.unpack(DYNAMIC, at)
                tags.setdefault(tag, value)
                if tag == 0:
                    break
        return tags

    def functions(self):
        """(name, code) of each function in the table of symbols, which a stripped file does not have."""
        for _, kind, _, _, offset, size, names, _, _, _ in self.sections:
            if kind != SYMBOLS:
                continue
            strings = self.sections[names][4]
            for at in range(offset, offset + size, 24):
                name, info, _, section, value, length = self.unpack(SYMBOL, at)
                if info & 15 == FUNCTION and length and 0 < section < len(self.sections):
                    _, _, _, address, start, *_ = self.sections[section]
                    begin = start + value - address
                    end = self.data.index(b"\0", strings + name)
                    yield self.data[strings + name:end].decode(), self.data[begin:begin + length]


class BinaryTest(unittest.TestCase):
    def check_each(self, check):
        for path in INSTALLED:
            with self.subTest(file=path.name):
                check(Elf(path))

    def test_all_that_is_installed_is_looked_at(self):
        names = {path.name.split(".so")[0] for path in INSTALLED}
        self.assertLessEqual({"drover", "drover-cdi-hook", "libnvidia-ml"}, names)

    def test_each_can_be_loaded_anywhere(self):
        """PIE, also where it is linked statically, and no code that is written to on loading."""
        def check(elf):
            self.assertEqual(elf.type, SHARED, "not position-independent")
            self.assertNotIn(TEXTREL, elf.dynamic())
            self.assertFalse(elf.dynamic().get(FLAGS, 0) & 4, "DF_TEXTREL")
        self.check_each(check)

    def test_nothing_is_writable_and_executable(self):
        def check(elf):
            stack = elf.of_type(STACK)
            self.assertTrue(stack and not stack[0][1] & EXECUTABLE, "the stack is executable")
            for segment in elf.of_type(LOAD):
                self.assertNotEqual(segment[1] & (WRITABLE | EXECUTABLE), WRITABLE | EXECUTABLE)
        self.check_each(check)

    def test_addresses_of_functions_are_read_only(self):
        """Full RELRO: all is bound at the start, and then write-protected."""
        def check(elf):
            dynamic = elf.dynamic()
            self.assertTrue(elf.of_type(RELRO), "no RELRO")
            self.assertTrue(BIND_NOW in dynamic or dynamic.get(FLAGS, 0) & 8 or dynamic.get(FLAGS_1, 0) & 1, "bound lazily")
        self.check_each(check)

    def test_the_hook_needs_nothing_of_the_node(self):
        hook = Elf(drover.BUILD / "drover-cdi-hook")
        self.assertFalse(hook.of_type(INTERPRETER))
        self.assertNotIn(NEEDED, hook.dynamic())


@unittest.skipIf(drover.BUILD.name in ("asan", "tsan", "debug"), "only a release build is hardened: others have no optimisation for it")
class HardenedTest(unittest.TestCase):
    def setUp(self):
        self.elf = Elf(drover.BINARY)
        if self.elf.machine != X86_64:
            self.skipTest("only the code of x86-64 is read")

    def test_own_functions_have_stack_canaries(self):
        """Those that have an array or an address on their stack: not the libraries alone, which Debian builds so."""
        own = [code for name, code in self.elf.functions() if re.match(r"_ZN?K?N?6drover", name)]
        guarded = sum(1 for code in own if CANARY.search(code))
        self.assertGreater(len(own), 1000, "the table of symbols has no functions of ours")
        self.assertGreater(guarded, len(own) / 10, f"{guarded} of {len(own)} functions look after their stack")

    def test_indirect_jumps_have_marked_targets(self):
        own = [code for name, code in self.elf.functions() if re.match(r"_ZN?K?N?6drover", name)]
        marked = sum(1 for code in own if code.startswith(b"\xf3\x0f\x1e\xfa"))  # endbr64
        self.assertGreater(marked, len(own) / 2, f"{marked} of {len(own)} functions begin with endbr64")


if __name__ == "__main__":
    unittest.main()
