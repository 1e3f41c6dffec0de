"""What the doctor looks at, and what it makes of it."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from . import troubles
from .channel import Command
from .experiments import api
from .fleet import Answers, side_by_side
from .observation import CouldNotSee, Observation, Trouble

RIGHTS = pathlib.Path(__file__).parent.parent / "docs" / "rights" / "rbac.yaml"

# Tool → what cannot be seen without it; None: another means is as good.
_NEEDED: Mapping[str, str | None] = {
    "ip": "addresses and routes",
    "ss": "listening sockets",
    "nsenter": "a Pod's network",
    "python3": "probes",
    "tcpdump": "captures",
    "conntrack": "connection tracking, unless the kernel has /proc/net/nf_conntrack",
    "nft": "other programs' tables that translate, and kube-proxy in nftables mode",
}
_CHECK = r"""
for tool in "$@"; do command -v "$tool" >/dev/null && echo "tool $tool"; done
[ -r /proc/net/nf_conntrack ] && echo "tool conntrack"
for tool in iptables-nft-save iptables-legacy-save; do
  command -v $tool >/dev/null && echo "rules $tool $($tool -t nat 2>/dev/null | grep -c '^-A KUBE-SVC-')"
done
for tool in iptables-save; do command -v $tool >/dev/null && echo "plain $($tool -V 2>/dev/null)"; done
for path in /run/netns/* /var/run/docker/netns/*; do [ -e "$path" ] && echo "namespace $path"; done
exit 0
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor's: where, whether it is good, what was seen, and what to do about it."""

    where: str
    good: bool
    text: str
    remedy: str | None = None


def commands() -> tuple[Command, ...]:
    """What is asked of a node, in one round trip."""
    return (Command("doctor", ("sh", "-c", _CHECK.strip(), "doctor", *_NEEDED)), Command("id", ("id", "-u")))


def of_trouble(trouble: Trouble) -> Check:
    """The check of something that could not be seen."""
    first = next((line for line in trouble.output.splitlines() if line.strip(" @")), "")
    text = trouble.problem + (f": {first.strip()}" if first and first.strip() not in trouble.problem else "")
    return Check(trouble.node, False, text, trouble.remedy or trouble.command)


def of_node(name: str, answers: Answers, *, is_node: bool) -> Iterable[Check]:
    """What a node (or the LAN client) said."""
    answer = answers["doctor"]
    trouble = troubles.of_command(answer)
    if trouble:
        yield of_trouble(trouble)
        return
    lines = [line.split(" ") for line in answer.text.splitlines()]
    yield Check(name, True, "reached, as root")
    yield from _tools(name, {line[1] for line in lines if line[0] == "tool"}, is_node=is_node)
    if is_node:
        yield _flavour(name, {line[1]: int(line[2]) for line in lines if line[0] == "rules"})


def of_agent(name: str, answer: Observation) -> Check:
    """What a Cilium agent said of its version."""
    trouble = troubles.of_command(answer)
    if trouble:
        return of_trouble(trouble)
    version = next((line.partition(":")[2].strip() for line in answer.text.splitlines() if line.startswith("Daemon")), "answers")
    return Check(name, True, f"Cilium agent: {version}")


def rights(client: Any) -> list[Check]:
    """Whether the kubeconfig's user has each right of docs/rights/rbac.yaml; rights for --disruptive are not asked for.

    Raises:
        CouldNotSee: the API does not answer.
    """
    wanted = list(_wanted(yaml.safe_load_all(RIGHTS.read_text(encoding="utf-8"))))
    answers = side_by_side({text: functools.partial(_allowed, client, asked) for text, asked in wanted})
    missing = [text for text, allowed in answers.items() if not allowed]
    if not missing:
        return [Check("api", True, f"rights: all {len(wanted)} of docs/rights/rbac.yaml")]
    return [Check("api", False, f"right missing: {text}", "kubectl apply -f docs/rights/rbac.yaml") for text in missing]


def _tools(name: str, there: set[str], *, is_node: bool) -> Iterable[Check]:
    needed = [tool for tool in _NEEDED if is_node or tool in ("ip", "python3")]
    missing = [tool for tool in needed if tool not in there]
    if not missing:
        yield Check(name, True, f"tools: {', '.join(needed)}")
    for tool in missing:
        remedy = f"install the Debian package {troubles.PACKAGES.get(tool, tool)}"
        yield Check(name, False, f"{tool} is absent, by which is seen: {_NEEDED[tool]}", remedy)


def _flavour(name: str, chains: Mapping[str, int]) -> Check:
    if not chains:
        return Check(name, False, "iptables: neither nft nor legacy tools are there", "install the Debian package iptables")
    text = ", ".join(f"{tool.removesuffix('-save')} {count} rules of Services" for tool, count in chains.items())
    holding = [tool for tool, count in chains.items() if count]
    if len(holding) > 1:
        return Check(name, False, f"iptables: {text}", "rules in both back ends: one is stale; restart the node, or flush the stale one")
    return Check(name, True, f"iptables: {text}")


def _wanted(documents: Iterable[Any]) -> Iterable[tuple[str, dict[str, Any]]]:
    for document in documents:
        namespace = document["metadata"].get("namespace")
        if document["kind"] not in ("Role", "ClusterRole") or namespace == "servicepath-test":
            continue
        for rule in document["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        yield _review(namespace, group, resource, verb, rule.get("resourceNames", [None])[0])


def _review(namespace: str | None, group: str, resource: str, verb: str, name: str | None) -> tuple[str, dict[str, Any]]:
    kind, _, part = resource.partition("/")
    asked = {"namespace": namespace, "group": group, "resource": kind, "subresource": part or None, "verb": verb, "name": name}
    where = f" in {namespace}" if namespace else ""
    return f"{verb} {resource}{'.' + group if group else ''}{where}", {key: value for key, value in asked.items() if value}


def _allowed(client: Any, asked: Mapping[str, Any]) -> bool:
    import urllib3.exceptions
    from kubernetes import client as library
    from kubernetes.client.exceptions import ApiException

    body: Any = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": dict(asked)}}
    try:
        answer: Any = library.AuthorizationV1Api(client).create_self_subject_access_review(body, _request_timeout=api.REQUEST_TIMEOUT)
    except (ApiException, urllib3.exceptions.HTTPError) as wrong:
        raise CouldNotSee(api.unreachable(client, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", wrong)) from wrong
    return bool(answer.status.allowed)
