"""The commands to see a conclusion by hand: filled in, quoted for each shell on the way, and such as the suite's own user may run."""

from __future__ import annotations

import ast
import pathlib
import re
import shlex
import subprocess

import pytest

from fixtures import by_hand

ROOT = pathlib.Path(__file__).parent.parent
KNOWN = {
    **{"node": ("worker1",), "nodes": ("master", "worker1"), "vip": ("10.43.0.10",)},
    **{"service": ("kube-dns",), "flows": ("40001", "40002")},
}
# Each remote line here has all that a shell may take for its own.
HARD = """printf '%s|' "$HOME" 'a "b" c' `echo d` \\| e {vip} | cat"""
# What stand in for ssh and sudo: sudo lets sh be started alone, as the line in README's sudoers does.
STANDINS = """
ssh() { shift; HOME=/there sh -c "$*"; }
export -f ssh
"""
SUDO = """#!/bin/sh
[ "$1" = sh ] || [ "$1" = /bin/sh ] || { echo "sudo: a password is required" >&2; exit 1; }
exec "$@"
"""


def pasted(lines: tuple[str, ...], folder: pathlib.Path) -> str:
    (folder / "sudo").write_text(SUDO, encoding="utf-8")
    (folder / "sudo").chmod(0o755)
    script = STANDINS + f'PATH="{folder}:$PATH"\n' + "\n".join(lines)
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=30, check=False)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("prompt", ["$", "#"])
@pytest.mark.parametrize("known", [KNOWN, {}], ids=["known", "unknown"])
def test_what_the_last_shell_reads_is_what_the_marker_says(prompt, known, tmp_path):
    lines = by_hand.commands(["{node}" + prompt + " " + HARD], known)

    values = ("NODE=worker1", "VIP=10.43.0.10") if not known else ()
    assert pasted((*values, lines[-1]), tmp_path) == '/there|a "b" c|d|||e|10.43.0.10|'


def test_root_is_asked_for_a_shell_and_nothing_else():
    (line,) = by_hand.commands(["{node}# iptables-save -t nat | grep {vip}"], KNOWN)

    assert line == """ssh worker1 "sudo sh -c 'iptables-save -t nat | grep 10.43.0.10'\""""


def test_what_needs_no_root_has_no_sudo():
    assert by_hand.commands(["{node}$ ip route get {vip}"], KNOWN) == ("ssh worker1 'ip route get 10.43.0.10'",)


def test_a_comment_is_for_the_person_and_not_for_the_node():
    (line,) = by_hand.commands(["{node}$ dig @{vip}  # while tcpdump runs"], KNOWN)

    assert line == "ssh worker1 'dig @10.43.0.10'  # while tcpdump runs"


def test_every_node_is_named(tmp_path):
    (line,) = by_hand.commands(["{nodes}# echo {vip}"], KNOWN)

    assert line.startswith("for node in master worker1; do ")
    assert pasted((line,), tmp_path) == "master:\n10.43.0.10\nworker1:\n10.43.0.10\n"


def test_a_line_of_several_is_one_line():
    see = ("kubectl create x", "{node}$ ip route", "kubectl delete x")

    assert by_hand.commands([see], KNOWN) == ("kubectl create x; ssh worker1 'ip route'; kubectl delete x",)


def test_what_is_not_known_is_a_variable_and_a_line_before_says_how_to_set_it():
    lines = by_hand.commands(["{node}# conntrack -L -d {vip}"], {"node": ("worker1",), "vip": ("$(reboot)",)})

    assert lines == (
        "NAMESPACE=kube-system  # the Service's",
        "SERVICE=kube-dns  # the Service's name",
        "VIP=$(kubectl -n $NAMESPACE get service $SERVICE -o 'jsonpath={.spec.clusterIP}')",
        """ssh worker1 "sudo sh -c 'conntrack -L -d $VIP'\"""",
    )


def test_source_ports_are_one_of_these():
    assert by_hand.commands(["grep -E ':({flows}) '"], KNOWN) == ("grep -E ':(40001|40002) '",)


def markers() -> list[object]:
    """Each conclusion's commands as its module writes them, by the conclusion."""
    found = []
    for path in sorted((ROOT / "tests").glob("test_*.py")):
        namespace: dict[str, object] = {}
        exec(compile(path.read_text(encoding="utf-8"), path, "exec"), namespace)
        tests = [each.name for each in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(each, ast.FunctionDef)]
        for name in tests:
            (marker,) = (mark for mark in namespace[name].pytestmark if mark.name == "conclusion")
            found.append(pytest.param(marker.kwargs["see"], id=name.removeprefix("test_")))
    return found


@pytest.mark.parametrize("see", markers())
def test_the_conclusions_commands_can_be_read_by_a_shell_and_leave_nothing_to_be_filled_in(see):
    assert isinstance(see, tuple)
    for line in by_hand.commands(see, {}):
        assert subprocess.run(["bash", "-n", "-c", line], capture_output=True, timeout=30, check=False).stderr == b""
        assert not re.search(r"\{[a-z]+\}|CILIUM-POD|\bPOD\b(?!=)(?<!\$POD)|BACKEND-IP|CLUSTERIP|…", line.replace("$POD", ""))
        assert shlex.split(line, comments=True) != []
        assert "sudo" not in line or "sudo sh -c" in line
