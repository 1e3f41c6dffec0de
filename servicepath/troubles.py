"""From a program's error text to what a person can do about it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from .observation import Observation, Trouble

# Tool → the Debian and Ubuntu package that brings it.
PACKAGES = {
    "tcpdump": "tcpdump", "dig": "dnsutils", "conntrack": "conntrack", "python3": "python3", "nft": "nftables", "ip": "iproute2",
    "ss": "iproute2", "iptables-save": "iptables", "iptables-nft-save": "iptables", "iptables-legacy-save": "iptables",
    "ip6tables-save": "iptables", "ip6tables-nft-save": "iptables", "ip6tables-legacy-save": "iptables", "nsenter": "util-linux",
    "curl": "curl", "sudo": "sudo", "timeout": "coreutils", "bash": "bash",
}  # fmt: skip

# What OpenSSH 8.0 to 10 and sudo 1.8 to 1.9 print → (problem, remedy). The first that matches counts: the special before the
# general ("Host key verification failed" follows both host key cases).
_CONNECTION: tuple[tuple[str, str, str], ...] = (
    (r"REMOTE HOST IDENTIFICATION HAS CHANGED", "the host key is not the one in known_hosts",
     "if the node was installed anew: ssh-keygen -R HOST -f KNOWN_HOSTS, then ssh HOST once by hand and compare the fingerprint"),
    (r"key is known for .* strict checking|Host key verification failed", "the host key is not in known_hosts",
     "ssh HOST once by hand and compare the fingerprint, or name the host in the inventory (nodes.NAME.host) as ssh knows it"),
    (r"Could not resolve hostname", "the name does not resolve",
     "give the node's address in the inventory (nodes.NAME.host) or an alias in the OpenSSH configuration"),
    (r"Connection refused", "ssh: connection refused", "is sshd running there, and on that port (ssh.port)?"),
    (r"(Connection|Operation) timed out|Timeout, server .* not responding|timed out during banner exchange", "ssh: timed out",
     "is the node up, and does a firewall let this machine reach its ssh port?"),
    (r"No route to host|Network is unreachable", "ssh: no route to the host",
     "is the node up and on a network that this machine reaches?"),
    (r"Permission denied \(|Too many authentication failures", "ssh: permission denied",
     "check the user (ssh.user), the key (ssh.identity, or an agent) and ~/.ssh/authorized_keys on the node"),
    (r"Bad owner or permissions on|Bad configuration option|terminating, \d+ bad configuration|Can't open user config",
     "ssh does not accept its configuration file", "correct the file that it names"),
    (r"Connection (closed|reset) by|kex_exchange_identification|Broken pipe", "ssh: the connection was closed",
     "look into sshd's log on the node (MaxStartups, AllowUsers, a full disk)"),
    (r"sudo: (a password is required|no tty present|a terminal is required|sorry, you must have a tty)",
     "sudo refused: a password is required",
     "add to /etc/sudoers.d/servicepath on the node: USER ALL=(root) NOPASSWD: /bin/sh"),
    (r"is not in the sudoers file|is not allowed to execute|may not run sudo|is not allowed to run sudo",
     "sudo refused: the user may not run /bin/sh as root",
     "add to /etc/sudoers.d/servicepath on the node: USER ALL=(root) NOPASSWD: /bin/sh"),
    (r"sudo: (command )?not found|exec: sudo: not found|sudo: No such file", "sudo is not there and the user is not root",
     "install the Debian package sudo, or log in as root (ssh.user: root)"),
    (r"account is currently not available|This account is (locked|expired)", "the account cannot log in",
     "give the user a login shell on the node"),
)  # fmt: skip
_NOT_FOUND = (
    re.compile(r"(?:^|[\s:'\"])(?P<tool>[\w.+-]+): (?:command |applet )?not found", re.MULTILINE),
    re.compile(r"failed to (?:run command|execute) [‘'\"]?(?P<tool>[\w.+/-]+?)[’'\"]?: No such file", re.MULTILINE),
    re.compile(r"can't execute '(?P<tool>[\w.+/-]+)': No such file", re.MULTILINE),
)


def of_connection(node: str, host: str, command: str, text: str, user: str | None = None) -> Trouble | None:
    """Why ssh or sudo did not let us in; None when its text is none of those known.

    Args:
        node: the node's name.
        host: what ssh was told to connect to.
        command: the connection as a person would try it.
        text: what ssh and sudo said.
        user: who logs in; None where OpenSSH's own configuration says it.
    """
    for pattern, problem, remedy in _CONNECTION:
        if re.search(pattern, text):
            said = _filled(remedy, node, host, user, text)
            shown = [line for line in text.strip().splitlines() if not re.search(r"@{9}|NASTY|man-in-the-middle", line)]
            return Trouble(node=node, problem=problem, command=command, output="\n".join(shown) or text.strip(), remedy=said)
    return None


def _filled(remedy: str, node: str, host: str, user: str | None, text: str) -> str:
    """The remedy with the names that belong there; where ssh names the line of a known_hosts file, by what that line is known."""
    offending = re.search(r"^Offending .* key in (?P<file>\S+):\d+", text, re.MULTILINE)
    known = re.search(r"^Host key for (?P<name>\S+) has changed", text, re.MULTILINE)
    words = {
        "-R HOST": f"-R {shlex.quote(known['name'] if known else host)}",
        " -f KNOWN_HOSTS": f" -f {shlex.quote(offending['file'])}" if offending else "",
        "USER": user or "USER", "HOST": host, "NAME": node,
    }  # fmt: skip
    return re.sub("|".join(words), lambda match: words[match[0]], remedy)


def missing_tool(observation: Observation) -> str | None:
    """The tool that a command (exit status 127) did not find, or None."""
    if observation.status != 127:
        return None
    for pattern in _NOT_FOUND:
        found = pattern.search(observation.error_text)
        if found:
            return found["tool"].rpartition("/")[2]
    return observation.argv[0]


def of_command(observation: Observation, *, allowed: Sequence[int] = (0,)) -> Trouble | None:
    """Why a command's output cannot be used: ended for its time, tool absent, exit status not allowed; None when it can."""
    if observation.status in allowed:
        return None
    output = observation.error_text.strip() or observation.text.strip()
    tool = missing_tool(observation)
    if observation.status is None:
        problem = f"{observation.name}: not finished after {observation.took:.0f} s, ended"
        remedy = "see it by hand; is the node overloaded?"
    elif tool is not None:
        package = PACKAGES.get(tool)
        problem = f"{tool} is not on the node" if tool == observation.name else f"{observation.name}: {tool} is not on the node"
        remedy = f"install the Debian package {package}" if package else f"install {tool}"
    else:
        problem, remedy = f"{observation.name}: exit status {observation.status}", ""
    return Trouble(node=observation.node, problem=problem, command=observation.command, output=output, remedy=remedy or None)
