"""``python -m lab fault list | apply NAME | revert [NAME] | check [NAMES]``."""

from __future__ import annotations

import argparse
from pathlib import Path

from lab import topology
from lab.faults import actions, check, document
from lab.faults.catalogue import load, named
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
    checking.add_argument("--record-to", metavar="DIR", type=Path, help="record every run in this folder, by the fault's name")
    checking.set_defaults(run=_check)


def _list(_: argparse.Namespace) -> int:
    there = actions.applied()
    for fault in load().values():
        red = ", ".join(sorted({f"{conclusion} {turned.outcome}" for turned in fault.turns for conclusion in turned.conclusions}))
        print(f"{fault.name}{' (applied)' if fault.name in there else ''}\n    {fault.does}\n    turns: {red or 'nothing'}")
    return 0


def _apply(arguments: argparse.Namespace) -> int:
    progress = Progress()
    fault = named(arguments.name, load())
    with only_one(progress):
        actions.apply(fault, topology.load())
    progress.say(f"{fault.name} is in effect: {fault.does}")
    return 0


def _revert(arguments: argparse.Namespace) -> int:
    progress = Progress()
    faults = load()
    names = [arguments.name] if arguments.name else list(reversed(actions.applied()))
    with only_one(progress):
        for name in names:
            actions.revert(named(name, faults), topology.load())
            progress.say(f"{name} is taken back, and the lab is well")
    if not names:
        progress.say("no fault is applied")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    progress = Progress()
    faults = load()
    chosen = [named(name, faults) for name in arguments.names] or list(faults.values())
    results = check.Results()
    manner = check.Manner(arguments.together, arguments.record_to.absolute() if arguments.record_to else None)
    with only_one(progress):
        done = check.check(chosen, topology.load(), results, progress, manner)
    wrong = [result.name for result in done if result.wrong]
    if wrong:
        progress.say(f"{len(wrong)} of {len(done)} are not as declared: {', '.join(wrong)}")
        return 1
    progress.say(f"{len(done)} faults, each as declared, and all is green again")
    every = {fault.name: found for fault in faults.values() if (found := results.get(fault)) and not found.wrong}
    missing = [name for name in faults if name not in every]
    if missing:
        progress.say(f"docs/faults.md is left as it is: no result yet of {', '.join(missing)}")
    else:
        document.write(faults.values(), every)
        progress.say("docs/faults.md is written")
    return 0
