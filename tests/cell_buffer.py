"""A terminal as cells, strict: a sequence that it does not know, or that nobody should send, is a mistake. Two screens, no wrapping."""

import re
import unicodedata

SEQUENCE = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])")
KNOWN_MODES = {"1049", "25", "7", "1000", "1006", "2026"}


class UnknownSequence(AssertionError):
    pass


class CellBuffer:
    def __init__(self, rows, columns):
        self.modes = {"25", "7"}  # those that are on
        self.pending = b""
        self.resize(rows, columns)

    def resize(self, rows, columns):
        """What a terminal makes of its old lines, programs cannot know: here they are spoilt."""
        self.rows, self.columns = rows, columns
        self.cells = [["\N{REPLACEMENT CHARACTER}"] * columns for _ in range(rows)]
        self.styles = [[""] * columns for _ in range(rows)]
        self.row = self.column = 0
        self.style = ""

    def feed(self, data):
        text, self.pending = self.complete(self.pending + data)
        while text:
            if text[0] == "\x1b":
                text = self.take_sequence(text)
            else:
                self.take_letter(text[0])
                text = text[1:]

    @staticmethod
    def complete(data):
        """What can be read, and the beginning of a letter or of a sequence that is not there as a whole."""
        cut = len(data)
        escape = data.rfind(b"\x1b")
        if escape >= 0 and not SEQUENCE.match(data[escape:].decode(errors="replace")) and len(data) - escape < 40:
            cut = escape
        for back in range(1, 4):
            try:
                return data[:cut].decode(), data[cut:]
            except UnicodeDecodeError as error:
                if error.end < cut:
                    raise
                cut = error.start if back == 1 else cut
        return data[:cut].decode(), data[cut:]

    def take_sequence(self, text):
        found = SEQUENCE.match(text)
        if not found:
            raise UnknownSequence(repr(text[:60]))
        private, numbers, kind = found.groups()
        if private and kind in "hl" and numbers in KNOWN_MODES:
            (self.modes.add if kind == "h" else self.modes.discard)(numbers)
            if numbers == "1049":
                self.resize(self.rows, self.columns)
        elif kind == "H" and not private:
            self.row, self.column = (int(number) - 1 for number in numbers.split(";"))
            if not (0 <= self.row < self.rows and 0 <= self.column < self.columns):
                raise UnknownSequence(f"{found[0]!r} is outside of {self.columns}x{self.rows}")
        elif kind == "J" and numbers == "2":
            self.cells = [[" "] * self.columns for _ in range(self.rows)]
            self.styles = [[""] * self.columns for _ in range(self.rows)]
        elif kind == "m" and not private:
            self.style = ";".join(number for number in numbers.split(";") if number != "0")
        else:
            raise UnknownSequence(repr(found[0]))
        return text[found.end():]

    def take_letter(self, letter):
        if unicodedata.category(letter) in ("Cc", "Cf"):
            if letter in "\r\n" and "1049" not in self.modes:
                return
            raise UnknownSequence(f"the control character {letter!r}")
        if unicodedata.combining(letter):
            self.cells[self.row][max(self.column - 1, 0)] += letter
            return
        width = 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if self.column + width > self.columns:
            raise UnknownSequence(f"{letter!r} is beyond the edge in line {self.row + 1}")
        self.cells[self.row][self.column] = letter
        self.styles[self.row][self.column] = self.style
        if width == 2:
            self.cells[self.row][self.column + 1] = ""
        self.column = self.column + width

    def lines(self):
        return ["".join(row).rstrip() for row in self.cells]

    def text(self):
        return "\n".join(self.lines())

    def line_with(self, text):
        """The number of the first line that has it; None when none has."""
        return next((number for number, line in enumerate(self.lines()) if text in line), None)

    def style_of(self, text):
        number = self.line_with(text)
        return None if number is None else self.styles[number][self.lines()[number].index(text)]
