"""The one exception that parsers raise."""

from __future__ import annotations


class ParseError(ValueError):
    """Text that a parser could not read.

    Args:
        tool: whose output it is ("iptables-save", "cilium-dbg status").
        line: line number, counted from 1; 0 where the input as a whole is meant.
        text: the offending text, cut short.
        expected: what should have stood there.
    """

    def __init__(self, tool: str, line: int, text: str, expected: str) -> None:
        self.tool, self.line, self.text, self.expected = tool, line, text[:200], expected
        where = f"line {line}" if line else "the input"
        super().__init__(f"{tool}: {where}: {self.text!r}: expected {expected}")
