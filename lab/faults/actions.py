"""Applying and reverting a fault in the running lab.

What is applied stands in faults.json in the lab's state before anything is changed, with the variables it was applied with: a
revert is possible after a crash, and after Pods and addresses have changed. All changes lie in the lab's own hosts and cluster,
so that ``lab down`` takes them away, too.
"""

from __future__ import annotations

import dataclasses
import shlex
import subprocess
from functools import partial
from pathlib import Path

from lab import builds, components, readiness, state, status
from lab.api import Api
from lab.errors import LabError
from lab.faults import record, setups
from lab.faults.catalogue import MACHINE, NODES, Fault, Step
from lab.faults.places import on_machine, variables
from lab.faults.record import Applied, applied
from lab.host import LabHost
from lab.paths import RUN
from lab.topology import Topology
from lab.waiting import NotInTimeError, until

PRELUDE = Path(__file__).with_name("prelude.sh")
PROGRAMS = Path(__file__).with_name("programs")
KEEP = "run/servicepath/faults"
TIMEOUT = 120.0  # seconds for one shell text
IN_EFFECT = 90.0  # seconds; a node that is not heard of is NotReady after 40
WELL_AGAIN = 120.0  # seconds; an agent that starts anew takes some 20


class StillSeenError(LabError):
    """A fault was undone and the lab is well, but what tells of the fault still says that it is in effect."""


def apply(fault: Fault, topology: Topology, *, alone: bool = True) -> None:
    """Make the fault and return once it is seen to be in effect; ``alone`` refuses to do so beside another one.

    Raises:
        LabError: a step could not be made or is not in effect; what was made stays recorded, so that it can be reverted.
    """
    there = applied()
    in_the_way = [name for name, each in there.items() if name == fault.name or (alone and not each.undone)]
    if in_the_way:
        raise LabError(f"{in_the_way[0]} is applied already: python -m lab fault revert {in_the_way[0]}")
    known = variables(topology, Api(topology))
    record.write({**there, fault.name: Applied(known)})
    if fault.change:
        setups.turn(fault.change, topology)
    for step in fault.steps:
        for place in _places(step, topology):
            if step.stops:
                _stop(_host(topology, place), step.stops)
            if step.do:
                _must(fault, topology, place, step.do, known)
        for place in _places(step, topology):
            _await(fault, topology, place, step, known, there=True)


def revert(fault: Fault, topology: Topology) -> None:
    """Take the fault back and return once the lab is seen to be well again.

    Raises:
        StillSeenError: all was undone and the lab is well, but the fault is not seen gone; the record says so.
        LabError: something cannot be taken back, or the lab is not well; the record then stays.
    """
    there = applied()
    if fault.name not in there:
        raise LabError(f"{fault.name} is not applied{': ' + ', '.join(there) + ' is' if there else ''}")
    known = there[fault.name].variables
    for step in reversed(fault.steps):
        for place in _places(step, topology):
            if step.undo:
                _must(fault, topology, place, step.undo, known)
            component = step.stops or step.restarts
            if component:
                _start(_host(topology, place), component, topology)
    still = _still_seen(fault, topology, known)
    if fault.change:
        setups.bring(fault.setup, topology)
    until(partial(_not_well, topology), "the lab well again", seconds=WELL_AGAIN, every=0.5)
    if still:
        record.write({**there, fault.name: dataclasses.replace(there[fault.name], undone=True)})
        again = f"python -m lab fault revert {fault.name}"
        raise StillSeenError(f"{fault.name} was undone and the lab is well, but it is not seen gone ({again} tries again): {still}")
    record.write({name: each for name, each in there.items() if name != fault.name})


def _still_seen(fault: Fault, topology: Topology, known: dict[str, str]) -> str | None:
    """Wait until the fault is gone; return what says that it is not, in the end."""
    try:
        for step in fault.steps:
            if step.undo or step.stops or step.restarts:
                for place in _places(step, topology):
                    _await(fault, topology, place, step, known, there=False)
    except NotInTimeError as error:
        return str(error)
    return None


def _places(step: Step, topology: Topology) -> list[str]:
    return [node.name for node in topology.nodes] if step.where == NODES else [step.where]


def _host(topology: Topology, name: str) -> LabHost:
    return status.running_host(topology, name)


def _must(fault: Fault, topology: Topology, place: str, text: str, known: dict[str, str]) -> None:
    done = _shell(fault, topology, place, text, known)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip())[-1000:]
        raise LabError(f"{fault.name}: on {place}: exit status {done.returncode}: {said or 'nothing was said'}: {text.strip()}")


def _await(fault: Fault, topology: Topology, place: str, step: Step, known: dict[str, str], *, there: bool) -> None:
    def complaint() -> str | None:
        done = _shell(fault, topology, place, step.seen, known)
        return None if (done.returncode == 0) == there else f"on {place}: {step.seen.strip()}: exit status {done.returncode}"

    until(complaint, f"{fault.name} {'in effect' if there else 'gone'}", seconds=IN_EFFECT, every=0.2)


def _shell(fault: Fault, topology: Topology, place: str, text: str, known: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run shell text at a place; its variables are set in the text itself, since a host has an environment of its own."""
    root = Path("/") if place == MACHINE else _host(topology, place).root
    folder = root / (RUN / "faults" if place == MACHINE else KEEP) / fault.name
    folder.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS.iterdir():
        (folder.parent / program.name).write_bytes(program.read_bytes())
    inside = Path("/") / folder.relative_to(root)
    extra = {"KEEP": str(inside), "FAULTS": str(inside.parent)}
    if place == MACHINE:
        extra |= on_machine(str(builds.modules()["kubernetes"].program("kubectl").parent))
    settings = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in {**known, **extra}.items())
    argv = ["sh", "-e", "-c", f"{settings}{PRELUDE.read_text(encoding='utf-8')}\n{text}"]
    if place != MACHINE:
        return _host(topology, place).run(argv, timeout=TIMEOUT)
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT, check=False, input="")
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{fault.name}: no end after {TIMEOUT:.0f} s: {text.strip()}") from error


def _stop(host: LabHost, component: str) -> None:
    """End a component of a host; it stays recorded, so that the lab knows that it should run."""
    host.run(["sh", "-c", f"kill -KILL $(cat /run/servicepath/{component}.pid)"])
    recorded = state.read()
    process = recorded.components[host.name][component] if recorded else None
    if process is not None:
        until(lambda: "it still runs" if host.runs(process) else None, f"ending {component} on {host.name}", seconds=10)


def _start(host: LabHost, component: str, topology: Topology) -> None:
    """Start a component anew, ending it first where it runs."""
    recorded = state.read()
    if recorded is None:
        raise LabError("the lab is not up: python -m lab up")
    if host.runs(recorded.components[host.name][component]):
        _stop(host, component)
    recorded.components[host.name][component] = host.start(component, _argv(host, component, topology))
    recorded.save()


def _argv(host: LabHost, component: str, topology: Topology) -> list[str]:
    node = next(node for node in topology.nodes if node.name == host.name)
    made = {
        "kube-proxy": lambda: components.kube_proxy(node, topology, setups.now().proxy_mode),
        "kubelet": lambda: components.kubelet(node),
    }
    if component not in made:
        raise LabError(f"{component}: a fault can stop or restart {', '.join(made)}")
    return made[component]()


def _not_well(topology: Topology) -> str | None:
    """What is still missing until the lab is as it was: components, Pods, endpoints, and what the nodes hold of them."""
    found = status.complaints(topology)
    if found:
        return "; ".join(found)
    wanted = readiness.backends(Api(topology))
    for node in topology.nodes:
        host = _host(topology, node.name)
        missing = readiness.proxy_state(host, wanted, setups.now()) or readiness.cilium_maps(host, wanted)
        if missing:
            return missing
    return None
