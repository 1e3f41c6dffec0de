"""Can this machine see the cluster? One line a check, with a remedy: ``python -m servicepath.doctor``, or ``make doctor``.

    ✔ api      reached: v1.34.4, 3 nodes
    ✔ master   ssh and root
    ✘ worker1  tcpdump is absent: captures are not possible
      ↳ install the Debian package tcpdump

Exit status: 0 when everything can be seen, 3 when something cannot, 2 when the inventory or an option is wrong.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from . import connection, diagnosis, inventory
from .channels.ssh import SocketFolder
from .deadline import Deadline
from .diagnosis import Check
from .experiments import agent, api
from .fleet import Fleet
from .inventory import InventoryError
from .model.services import ClusterObjects
from .observation import CouldNotSee, Trouble
from .parse.errors import ParseError
from .parse.kubernetes import parse_kubernetes
from .selection import Options, SelectionError, client_pods, select_services
from .targets import LAN_CLIENT

OK, WRONG_USE, CANNOT_SEE = 0, 2, 3
_DEADLINE = 60.0  # seconds; each check has shorter ones of its own


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all checks and print them; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m servicepath.doctor", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--inventory", metavar="FILE", type=pathlib.Path)
    said = parser.parse_args(arguments)
    try:
        found = inventory.load(said.inventory or inventory.find(pathlib.Path.cwd()))
    except InventoryError as wrong:
        print(wrong, file=sys.stderr)
        return WRONG_USE
    print(f"inventory: {found.file}")
    checks = []
    for check in examine(found):
        print(_lines(check), flush=True)
        checks.append(check)
    failed = sum(not check.good for check in checks)
    print(f"{len(checks)} checks, {failed} with a remedy" if failed else f"{len(checks)} checks, all good")
    return CANNOT_SEE if failed else OK


def examine(found: inventory.Inventory) -> Iterable[Check]:
    """All checks, as they are done: the API, then the nodes side by side, then the agents."""
    deadline = Deadline.starting_now(_DEADLINE)
    sockets = SocketFolder()
    try:
        client, objects, checks = _api(found, sockets, deadline)
        yield from checks
        yield from _nodes(found, objects, sockets, deadline)
        if objects is not None:
            yield from _pods(found, objects)
            yield from _agents(client, objects, deadline)
    finally:
        sockets.remove()


def _api(found: inventory.Inventory, sockets: SocketFolder, deadline: Deadline) -> tuple[Any, ClusterObjects | None, list[Check]]:
    try:
        client = connection.kube_client(found, sockets, deadline)
        rights = diagnosis.rights(client)
        objects = parse_kubernetes(api.read_cluster(client).documents)
    except CouldNotSee as unseen:
        return None, None, [diagnosis.of_trouble(unseen.trouble)]
    except ParseError as wrong:
        return None, None, [Check("api", False, f"its answer cannot be read: {wrong}")]
    reached = Check("api", True, f"reached: {objects.server_version}, {len(objects.nodes)} nodes")
    return client, objects, [reached, *rights]


def _nodes(found: inventory.Inventory, objects: ClusterObjects | None, sockets: SocketFolder, deadline: Deadline) -> Iterable[Check]:
    fleet = Fleet(connection.channels(found, objects.nodes if objects else (), sockets), deadline)
    if not fleet.nodes:
        yield Check("nodes", False, "none known without the API", "name them in the inventory (nodes:), or mend the API's check")
    try:
        plan = {name: diagnosis.commands() for name in fleet.nodes}
        for name, answers in fleet.run(plan, phase="doctor", timeout=20).items():
            if isinstance(answers, Trouble):
                yield diagnosis.of_trouble(answers)
            else:
                yield from diagnosis.of_node(name, answers, is_node=name != LAN_CLIENT)
    finally:
        fleet.close()


def _pods(found: inventory.Inventory, objects: ClusterObjects) -> Iterable[Check]:
    try:
        services = select_services(objects, Options(), found)
        clients = client_pods(objects, Options(), found, services)
    except SelectionError as wrong:
        yield Check("api", False, str(wrong))
        return
    yield Check("api", True, f"Services under test: {', '.join(service.key for service in services)}")
    for name, pod in clients.items():
        if pod:
            yield Check(name, True, f"client Pod: {pod.key}")
        else:
            remedy = "start one there that no egress policy selects, or the conclusions about Pods are skipped for this node"
            yield Check(name, False, "no client Pod", remedy)


def _agents(client: Any, objects: ClusterObjects, deadline: Deadline) -> Iterable[Check]:
    batch = {node.name: (agent.dbg("version", "version"),) for node in objects.nodes}
    answers = agent.exec_in_agents(client, objects.agents, batch, deadline=deadline, phase="doctor", timeout=20)
    for name, answer in answers.items():
        yield diagnosis.of_trouble(answer) if isinstance(answer, Trouble) else diagnosis.of_agent(name, answer["version"])


def _lines(check: Check) -> str:
    line = f"{'✔' if check.good else '✘'} {check.where:<12} {check.text}"
    return line if not check.remedy else f"{line}\n  ↳ {check.remedy}"


if __name__ == "__main__":
    sys.exit(main())
