"""``python -m lab up | down | status | set … | upgrade … | restart … | reboot … | exec … | kubectl … | fault … | soak N``.

Exit status: 0 done; 1 failed, or ``status`` found something wrong; 2 refused, or a wrong command line; 3 ``status`` found no lab.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from lab import builds, changing, cluster, host, images, preflight, soak, status, teardown, topology
from lab.errors import LabError
from lab.faults import command as fault
from lab.faults import record
from lab.locking import only_one
from lab.paths import ADMIN_KUBECONFIG, INVENTORY, TIMINGS
from lab.progress import Progress


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status; what the lab cannot do is one line on standard error."""
    words = list(sys.argv[1:] if argv is None else argv)
    # argparse would take kubectl's own options ("-n kube-system …") for the lab's.
    own, theirs = (words[:1], words[1:]) if words[:1] == ["kubectl"] else (words, [])
    arguments = _parser().parse_args(own)
    arguments.words = theirs
    try:
        return int(arguments.run(arguments))
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return error.status
    except PermissionError as error:
        if os.geteuid() == 0:
            raise
        print(f"lab: {error.filename}: not to be read: the lab is root's: run this as root (sudo)", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        left = record.told() or ["`python -m lab down` takes away what was started"]
        print(f"lab: interrupted; {'; '.join(left)}", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab", description="A real Kubernetes cluster on this machine.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    commands.add_parser("up", help="build what is missing, start the lab, wait until it works").set_defaults(run=_up)
    commands.add_parser("down", help="take the lab away, whatever state it is in").set_defaults(run=_down)
    commands.add_parser("status", help="say whether the lab is up and well").set_defaults(run=_status)
    changing.add(commands)
    inside = commands.add_parser("exec", help="run a command as root on a host of the lab")
    inside.add_argument("host", metavar="HOST")
    inside.add_argument("command", metavar="COMMAND", nargs=argparse.REMAINDER)
    inside.set_defaults(run=_exec)
    commands.add_parser("kubectl", help="run kubectl as the cluster's administrator: kubectl WORDS …").set_defaults(run=_kubectl)
    fault.add_to(commands)
    soak.add_to(commands)
    return parser


def _up(_: argparse.Namespace) -> int:
    progress = Progress()
    wanted = topology.load()
    preflight.check(wanted)
    with only_one(progress):
        complaints = status.complaints(wanted)
        if complaints == []:
            progress.say(f"the lab is already up and well; its inventory is {INVENTORY}")
            for line in record.told():
                progress.say(line)
            return 0
        if complaints:
            progress.say(f"clearing away a lab that is not well: {'; '.join((*complaints, *record.told()))}")
            teardown.down(progress)
        preflight.check_inotify()
        modules = builds.modules()
        builds.build(modules, progress)
        made = images.prepare(modules, progress)
        cluster.up(wanted, modules, made, progress)
        progress.write(TIMINGS)
    print(progress.table(), file=sys.stderr)
    progress.say(f"the lab is up; its inventory is {INVENTORY}; `python -m lab down` takes it away")
    return 0


def _down(_: argparse.Namespace) -> int:
    progress = Progress()
    preflight.check_root()
    with only_one(progress):
        if not teardown.left_over():
            progress.say("there is no lab")
            return 0
        teardown.down(progress)
    progress.say("the lab is gone")
    return 0


def _status(_: argparse.Namespace) -> int:
    complaints = status.complaints(topology.load())
    if complaints is None:
        print("no lab")
        return 3
    complaints += record.told()
    for complaint in complaints:
        print(complaint)
    if not complaints:
        print(f"the lab is up and well; its inventory is {INVENTORY}")
    return 1 if complaints else 0


def _exec(arguments: argparse.Namespace) -> int:
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        raise LabError("exec: no command given: python -m lab exec HOST -- COMMAND …")
    host.become(status.running_host(topology.load(), arguments.host), command)
    return 1  # not reached: become() replaces this process


def _kubectl(arguments: argparse.Namespace) -> int:
    if not ADMIN_KUBECONFIG.exists():
        raise LabError("the lab is not up: python -m lab up")
    program = builds.modules()["kubernetes"].program("kubectl")
    os.execv(program, [str(program), f"--kubeconfig={ADMIN_KUBECONFIG}", *arguments.words])  # noqa: S606 - become kubectl


if __name__ == "__main__":
    sys.exit(main())
