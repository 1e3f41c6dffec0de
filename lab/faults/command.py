"""``python -m lab fault list | apply NAME | revert [NAME] | check [NAMES]``."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping
from pathlib import Path

from lab import preflight, topology
from lab.errors import LabError
from lab.faults import actions, check, document, record
from lab.faults.catalogue import Fault, load, named
from lab.faults.effect import take_back
from lab.interrupts import heard_once
from lab.locking import only_one
from lab.progress import Progress

Commands = argparse._SubParsersAction  # the type has no public name


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add ``fault`` and its own commands to the lab's."""
    fault = commands.add_parser("fault", help="break something on purpose, and see what turns red")
    inner = fault.add_subparsers(required=True, metavar="list | apply | revert | check")
    inner.add_parser("list", help="say which faults there are, and which is applied").set_defaults(run=_list)
    apply = inner.add_parser("apply", help="make a fault")
    apply.add_argument("name", metavar="NAME")
    apply.set_defaults(run=_apply)
    revert = inner.add_parser("revert", help="take a fault back; without a name, the one that is applied")
    revert.add_argument("name", metavar="NAME", nargs="?")
    revert.set_defaults(run=_revert)
    checking = inner.add_parser("check", help="make faults one by one and compare what turns red with what they declare")
    checking.add_argument("names", metavar="NAME", nargs="*", help="only these; default: all, and docs/faults.md is written")
    checking.add_argument("--together", action="store_true", help="see that all is green again after the last fault alone")
    checking.add_argument("--again", action="store_true", help="look again at what has a kept result of these very sources, too")
    checking.add_argument("--record-to", metavar="DIR", type=Path, help="record every run in this folder, by the fault's name")
    checking.set_defaults(run=_check)


def _list(_: argparse.Namespace) -> int:
    there = record.applied()
    for fault in load().values():
        red = ", ".join(sorted({f"{conclusion} {turned.outcome}" for turned in fault.turns for conclusion in turned.conclusions}))
        print(f"{fault.name}{' (applied)' if fault.name in there else ''}\n    {fault.does}\n    turns: {red or 'nothing'}")
    return 0


def _apply(arguments: argparse.Namespace) -> int:
    progress = Progress()
    fault = named(arguments.name, load())
    preflight.check_root()
    # Whoever breaks something wants to look at it now, and not in the middle of what another command does then.
    with only_one(progress, wait=False):
        actions.apply(fault, topology.load())
    progress.say(f"{fault.name} is in effect: {fault.does}")
    return 0


def _revert(arguments: argparse.Namespace) -> int:
    progress = Progress()
    faults = load()
    preflight.check_root()
    # An interrupt is raised when all is taken back and said.
    with only_one(progress), heard_once() as interrupts, interrupts.held():
        there = record.applied()
        names = [arguments.name] if arguments.name else list(reversed(there))
        for name in names:
            fault = named(name, faults)
            if name not in there:
                raise LabError(f"{name} is not applied{': ' + ', '.join(there) + ' is' if there else ''}")
            take_back(fault, topology.load(), progress, interrupts)
            progress.say(f"{name} is taken back, and the lab is well")
    if not names:
        progress.say("no fault is applied")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    progress = Progress()
    faults = load()
    chosen = [named(name, faults) for name in arguments.names] or list(faults.values())
    preflight.check_root()
    results = check.Results()
    folder = arguments.record_to.absolute() if arguments.record_to else None
    with only_one(progress), heard_once() as interrupts:
        manner = check.Manner(interrupts, arguments.together, folder)
        kept = {} if arguments.again else check.kept(chosen, results, manner)
        left = [fault for fault in chosen if fault.name not in kept]
        if kept and left:
            progress.say(f"{len(kept)} of {len(chosen)} have a result of these very sources already (--again looks again)")
        done = check.check(left, topology.load(), results, progress, manner) if left else {}
    wrong = [name for name, result in done.items() if result.wrong]
    if wrong:
        progress.say(f"{len(wrong)} of {len(chosen)} are not as declared: {', '.join(wrong)}")
        return 1
    for line in ended(done, kept):
        progress.say(line)
    _document(faults, results, progress)
    return 0


def ended(done: Collection[str], kept: Collection[str]) -> list[str]:
    """Return what a check says in the end, by the names of the faults that were made now and of those whose results were kept."""
    if not done:
        told = f"{len(kept)} faults: kept results of these very sources; nothing was looked at now (--again looks again)"
        return [told, *record.told()]
    old = f", {len(kept)} of them by kept results of these very sources" if kept else ""
    return [f"{len(done) + len(kept)} faults, each as declared{old}, and all is green again"]


def _document(faults: Mapping[str, Fault], results: check.Results, progress: Progress) -> None:
    every = {fault.name: found for fault in faults.values() if (found := results.get(fault)) and not found.wrong}
    missing = len(faults) - len(every)
    if missing:
        progress.say(f"docs/faults.md is left as it is: {missing} of {len(faults)} have no result of these sources yet")
        progress.say(f"the results are kept in {results.folder}")
    else:
        document.write(faults.values(), every)
        progress.say("docs/faults.md is written")
