"""What the Cilium agents know, asked by pods/exec: one exec a node, all nodes side by side."""

from __future__ import annotations

import dataclasses
import functools
import re
import shlex
import time
from collections.abc import Mapping, Sequence
from typing import Any

from .. import fleet, framing, troubles
from ..channel import Command
from ..deadline import Deadline
from ..fleet import Answers
from ..model.services import Pod
from ..observation import CouldNotSee, Trouble

CONTAINER = "cilium-agent"

# The tool's name since Cilium 1.15, and before.
_CLI, _OLD_CLI = "cilium-dbg", "cilium"


def commands() -> tuple[Command, ...]:
    """The state that every conclusion about Cilium needs.

    Names: agent-status (JSON), agent-status-verbose (text), agent-services (JSON), agent-lb-list (JSON), agent-ct (text),
    agent-drops (JSON).
    """
    return (
        dbg("agent-status", "status", "-o", "json"),
        dbg("agent-status-verbose", "status", "--verbose"),
        dbg("agent-services", "service", "list", "-o", "json"),
        dbg("agent-lb-list", "bpf", "lb", "list", "-o", "json"),
        flows("agent-ct"),
        drops("agent-drops"),
    )


def flows(name: str) -> Command:
    """Cilium's connection tracking table as text (``bpf ct list global``), under a name of the caller's ("cut-2-agent-ct")."""
    return dbg(name, "bpf", "ct", "list", "global")


def drops(name: str) -> Command:
    """The datapath's own counts of what it passed on and dropped, by reason."""
    return dbg(name, "bpf", "metrics", "list", "-o", "json")


def dbg(name: str, *arguments: str) -> Command:
    """A command of cilium-dbg."""
    return Command(name, (_CLI, *arguments), timeout=20)


def exec_in_agents(
    client: Any, agents: Mapping[str, Pod], batch: Mapping[str, Sequence[Command]], *,
    deadline: Deadline, phase: str, timeout: float = 30.0,
) -> dict[str, Answers | Trouble]:  # fmt: skip
    """Run each node's commands in its agent.

    Args:
        client: from ``api.connect``.
        agents: node → the agent's Pod (ClusterObjects.agents).
        batch: node → commands.
        deadline: the run's.
        phase: named in errors.
        timeout: seconds for one node.

    Returns:
        Node → what its commands said, by name; or why nothing could be seen there (no agent, not running, forbidden, time up).
    """
    import websocket

    # The library offers no time limit of its own for making the connection; nothing else here uses websockets.
    websocket.setdefaulttimeout(max(deadline.limit(timeout), 1))

    def one(node: str) -> Answers | Trouble:
        left = deadline.limit(timeout)
        if left <= 0:
            return fleet.past(node, deadline, phase)
        pod = agents.get(node)
        if pod is None:
            return Trouble(
                node=node, problem="no Cilium agent's Pod (label k8s-app=cilium) runs on this node",
                command=f"kubectl -n kube-system get pods -l k8s-app=cilium -o wide --field-selector spec.nodeName={node}",
                remedy="kubectl -n kube-system describe daemonset cilium: its events and node selector say why there is none here",
            )  # fmt: skip
        if pod.phase != "Running":
            return Trouble(
                node=node, problem=f"the Cilium agent {pod.key} is {pod.phase}, not Running",
                remedy=f"kubectl -n {pod.namespace} describe pod {pod.name}",
            )  # fmt: skip
        try:
            return run_in(client, pod, node, batch[node], timeout=left)
        except CouldNotSee as unseen:
            return unseen.trouble

    return fleet.side_by_side({node: functools.partial(one, node) for node in batch})


def run_in(client: Any, pod: Pod, node: str, batch: Sequence[Command], *, timeout: float) -> Answers:
    """Run a batch in one agent by one exec (by two where the tool has its old name).

    Raises:
        CouldNotSee: forbidden, no such container, connection lost, time up, or output cut off.
    """
    answers = _run_once(client, pod, node, batch, timeout)
    if any(troubles.missing_tool(answer) == _CLI for answer in answers.values()):
        old = [dataclasses.replace(c, argv=(_OLD_CLI, *c.argv[1:])) if c.argv[0] == _CLI else c for c in batch]
        answers = _run_once(client, pod, node, old, timeout)
    return answers


def _run_once(client: Any, pod: Pod, node: str, batch: Sequence[Command], timeout: float) -> Answers:
    boundary = framing.new_boundary()
    script = framing.build(batch, boundary).decode()
    by_hand = shlex.join(("kubectl", "-n", pod.namespace, "exec", pod.name, "-c", CONTAINER, "--", *batch[0].argv))
    stdout, stderr, status = _exec(client, pod, node, script, by_hand, timeout)
    try:
        return framing.take_apart(stdout, stderr, batch, boundary, node)
    except framing.CutOff as cut:
        text = (stderr or stdout)[-1000:].decode("utf-8", "replace")
        problem = f"in the Cilium agent {pod.key}: {cut}" + (f"; {status}" if status else "")
        raise CouldNotSee(Trouble(node=node, problem=problem, command=by_hand, output=text)) from cut


def _exec(client: Any, pod: Pod, node: str, script: str, by_hand: str, timeout: float) -> tuple[bytes, bytes, str]:
    from kubernetes.client.exceptions import ApiException
    from kubernetes.stream import ws_client
    from websocket import WebSocketException

    # Not by CoreV1Api and stream(): the import of the one takes most of a second, and the other swaps a method of the client
    # for the time of the call, so that threads could not share it.
    words = [("command", word) for word in ("/bin/sh", "-c", script)]
    method, url, headers, *_ = client.param_serialize(
        "GET", f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/exec", auth_settings=["BearerToken"],
        query_params=[("container", CONTAINER), *words, ("stdin", "false"), ("stdout", "true"), ("stderr", "true"), ("tty", "false")],
    )  # fmt: skip
    end = time.monotonic() + timeout
    try:
        open_socket: Any = ws_client.websocket_call  # it has no annotations
        socket = open_socket(
            client.configuration, method, url, headers=headers, _preload_content=False, binary=True, capture_all=False
        )
    except ApiException as wrong:
        raise CouldNotSee(_no_exec(pod, node, wrong, by_hand)) from wrong
    try:
        while socket.is_open() and time.monotonic() < end:
            socket.update(timeout=max(end - time.monotonic(), 0))
        if socket.is_open():
            raise CouldNotSee(_late(pod, node, by_hand, timeout))
        parts = tuple(bytes(socket.read_channel(channel) or b"") for channel in (1, 2, 3))
    except (WebSocketException, OSError) as wrong:
        raise CouldNotSee(_lost(pod, node, by_hand, wrong)) from wrong
    finally:
        # Without a limit it waits three seconds for the other side's farewell.
        socket.close(timeout=0.1)
    return parts[0], parts[1], _failure(parts[2])


def _failure(status: bytes) -> str:
    # The error channel holds a Status object; its message says when the container or its shell is missing.
    text = status.decode("utf-8", "replace")
    if not text:
        return "the connection ended before it told how the commands ended (was the agent, or kubelet, restarted?)"
    message = re.search(r'"message":\s*"((?:[^"\\]|\\.)*)"', text)
    return message[1] if message and '"Success"' not in text else ""


def _no_exec(pod: Pod, node: str, wrong: Any, by_hand: str) -> Trouble:
    # The handshake's text holds all response headers; what a person needs is the status and the server's message.
    text = str(wrong.reason or wrong)
    message = re.search(r'"message":\s*"((?:[^"\\]|\\.)*)"', text)
    code = re.search(r"Handshake status (\d+)", text)
    said = message[1].replace('\\\\"', '"').replace('\\"', '"') if message else text.partition(" -+-+- ")[0][:300]
    remedies = {
        "403": "give the kubeconfig's user pods/exec, verbs get and create, in the agent's namespace (docs/rights/rbac.yaml)",
        "404": "was the agent's Pod replaced just now? run again",
    }
    problem = f"no exec into the Cilium agent {pod.key}" + (f" (HTTP {code[1]})" if code else "")
    return Trouble(node=node, problem=problem, command=by_hand, output=said, remedy=remedies.get(code[1] if code else ""))


def _late(pod: Pod, node: str, by_hand: str, timeout: float) -> Trouble:
    return Trouble(node=node, problem=f"the Cilium agent {pod.key} did not answer within {timeout:.0f} s", command=by_hand)


def _lost(pod: Pod, node: str, by_hand: str, wrong: Exception) -> Trouble:
    return Trouble(node=node, problem=f"exec into the Cilium agent {pod.key}: connection lost", command=by_hand, output=str(wrong))
