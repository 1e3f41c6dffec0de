"""What a paste brings along: prompts with commands, several outputs in one file, colours, fences, indentation, remarks of kubectl.

    [root@node1 ~]# kubectl -n kube-system exec cilium-x2k4p -- cilium service list
    Defaulting container name to cilium-agent.
    ID   Frontend       Service Type   Backend
    …
    [root@node1 ~]# ip route

Everything that is taken away leaves its line behind, empty, so that messages name the lines of the file as it is.
"""

from __future__ import annotations

import dataclasses
import html
import re
from collections.abc import Iterable, Iterator

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_SPACES = str.maketrans({"\u00a0": " ", "\u2007": " ", "\u202f": " ", "\u200b": None, "\u200c": None, "\u2060": None, "\ufeff": None})
_TAGS = re.compile(r"</?(?:pre|code|details|summary|p|span|div|br)(?:\s[^<>\n]*)?/?>", re.IGNORECASE)
_SUMMARY = re.compile(r"<summary>[^<\n]*</summary>", re.IGNORECASE)
_TRAILING = re.compile(r"[ \t]+$", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[\w+-]*[ \t]*(?=$|[A-Z])", re.MULTILINE)

_IP = r"ip (?:-\S+ )*(?:a|ad|addr|address|l|link|r|ro|route|ru|rule|n|neigh)\b"
_ASKED = r"(?:\S*/)?ip6?tables(?:-nft|-legacy)?(?:-save(?=[ ]|$)| -)|(?:kubectl|cilium(?:-dbg)?|nft|conntrack|k3s) +[a-z-]"
_TOOL = (
    r"(?:\S*/)?(?:ip6?tables(?:-nft|-legacy)?(?:-save)?|nft|conntrack|cilium(?:-dbg)?|kubectl|k3s|microk8s|oc|ss|ipvsadm|ipset|route"
    r"|bridge|tcpdump|crictl|docker|nsenter|dmesg|journalctl|cat|grep|watch|ssh|curl|dig|nslookup|uname|sysctl|exit|logout)"
)
# A prompt may end in a mark alone; behind ``#`` and ``>``, which begin other lines, too, there must be a command that is known.
_PROMPT = re.compile(
    r"^(?:\([\w.-]+\) ?)?(?:"
    r"\[?[\w.-]+@[\w.-]+(?:[:~ ][^#$%\n]*)?[#$%](?: +(?P<at>\S.*))?"
    rf"|(?:[\w./@~:\[\] -]{{0,100}}[#>%»❯➜] *|[^\s#$%][^#$%\n]{{0,100}}[#$] +|[❯➜»] +\S* *)(?P<mark>(?:sudo )?(?:{_IP}|{_TOOL}(?=[ ]|$)).*)"
    r"|\$ *(?P<dollar>\S.*)"
    rf"|(?P<bare>(?:sudo (?:-\w+ )*)?(?:{_IP}|{_ASKED})[^\n:=]*)"
    r")[ \t]*$"
)  # fmt: skip
# Remarks of kubectl, sudo, and of the tools themselves that are no part of the output.
_REMARK = re.compile(
    r"^(?:Defaulted container \"|Defaulting container name to |Use 'kubectl describe |Unable to use a TTY|\[sudo\] password for "
    r"|Warning: (?:v1 Endpoints is deprecated|kubectl )|ip6?tables(?:-\w+)*: invalid option|Try `?ip6?tables\S* -h"
    r"|conntrack v\S+ \(conntrack-tools\): \d"
    r"|(?:time=\S+(?: \d\S* \S+)? )?level=(?:info|warn\w*|debug) msg=).*$"
)  # fmt: skip
_UNMARKED = re.compile(r"^(?=Warning: ip6?tables-legacy tables present)", re.MULTILINE)


@dataclasses.dataclass(frozen=True, slots=True)
class Piece:
    """One output of a file.

    Attributes:
        command: the command above it; None: there is none.
        text: the output; the lines of the file before it are empty ones.
        line: the number of its first line.
    """

    command: str | None
    text: str
    line: int


def pieces(data: bytes) -> tuple[Piece, ...]:
    """The outputs of a file, cut at the prompts, in order; at least one, which may be empty.

    Args:
        data: the file; never a capture.
    """
    lines = _plain(data).split("\n")
    starts = [(0, None), *((number + 1, command) for number, command in _prompts(lines))]
    ends = [start - 1 for start, _ in starts[1:]] + [len(lines)]
    # A file that ends in a line feed has an empty last line, which is the end of the piece before a prompt, too.
    found = [
        Piece(command, "\n" * start + "\n".join(_without_remarks(lines[start:end])) + ("" if end == len(lines) else "\n"), start + 1)
        for (start, command), end in zip(starts, ends, strict=True)
    ]
    return tuple(piece for piece in found if piece.text.strip()) or (Piece(None, "", 1),)


def joined(parts: Iterable[Piece], *, commands: bool = False) -> str:
    """Several pieces of one file as one text, each on its own lines.

    Args:
        parts: the pieces, in order.
        commands: whether each command stands above its output as a remark (``# iptables -t nat -L KUBE-SVC-…``).
    """
    text = ""
    for part in parts:
        rest = part.text[text.count("\n") :]
        if commands and part.command and rest.startswith("\n"):
            blank = len(rest) - len(rest.lstrip("\n"))
            above = min(part.line - 2 - text.count("\n"), blank - 1)
            rest = f"{rest[:above]}# {part.command}{rest[above:]}"
        text += rest
    return text


def _plain(data: bytes) -> str:
    codec = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"  # PowerShell's > writes UTF-16
    text = _ESCAPES.sub("", data.decode(codec, "replace")).translate(_SPACES).replace("\r\n", "\n")
    if text.lstrip()[:1] in ("{", "["):
        return text
    if _TAGS.search(text):
        text = html.unescape(_TAGS.sub("", _SUMMARY.sub("", text)))
    text = _TRAILING.sub("", _FENCE.sub("", text))
    return _UNMARKED.sub("# ", _outdented(text))


def _outdented(text: str) -> str:
    """Without the indentation of the whole text, as of a block in Markdown; an output whose first line begins at the edge has none."""
    lines = [line for line in text.split("\n") if line.strip()]
    margin = min((len(line) - len(line.lstrip(" ")) for line in lines), default=0)
    return re.sub(rf"^ {{{margin}}}", "", text, flags=re.MULTILINE) if margin and len(lines) > 1 and _starts_deep(lines, margin) else text


def _starts_deep(lines: list[str], margin: int) -> bool:
    return margin >= 4 or len(lines[0]) - len(lines[0].lstrip(" ")) == margin


def _prompts(lines: list[str]) -> Iterator[tuple[int, str]]:
    """(index, command) of the lines that are prompts; a prompt without a command ends the output above it."""
    for number, line in enumerate(lines):
        found = _PROMPT.match(line) if line[:1] not in ("", " ", "\t", "-", ":", "*", "{") else None
        if found and not line.startswith(("# Generated", "# Completed", "# Warning", "# Table")):
            yield number, (found["at"] or found["mark"] or found["dollar"] or found["bare"] or "").strip()


def _without_remarks(lines: list[str]) -> list[str]:
    """The lines with remarks emptied; where nothing but remarks is there, they are what the tool said."""
    left = ["" if _REMARK.match(line) else line for line in lines]
    return left if any(line.strip() for line in left) else lines
