"""A rule's text cut into words, as iptables quotes them: ``--comment "kube-system/kube-dns:dns cluster IP"``."""

from __future__ import annotations

import re

_WORD = re.compile(r'"(?:[^"\\]|\\.)*"(?= |$)|[^ "]+(?= |$)|\S+')
_ESCAPED = re.compile(r"\\(.)")


class Unreadable(ValueError):
    """The rule's text is not what iptables prints; the message says what was expected."""


def words_of(text: str) -> list[str]:
    """Cut a rule into words; a quoted comment is one word, without quotes and escapes.

    Raises:
        Unreadable: a quote is not closed, or stands inside a word.
    """
    if '"' not in text:
        return _split(text)
    if "\\" not in text:
        parts = text.split('"')
        if len(parts) == 3 and parts[0][-1:] == " " and parts[2][:1] in (" ", ""):
            return [*_split(parts[0]), parts[1], *_split(parts[2])]
    words = []
    for word in _WORD.findall(text):
        if word[0] == '"':
            if len(word) < 2 or word[-1] != '"':
                raise Unreadable("the closing quote")
            words.append(_ESCAPED.sub(r"\1", word[1:-1]))
        elif '"' in word:
            raise Unreadable("quotes around whole words")
        else:
            words.append(word)
    return words


def _split(text: str) -> list[str]:
    """At blanks alone: an interface's name may hold what else Python takes for one."""
    return [word for word in text.split(" ") if word]
