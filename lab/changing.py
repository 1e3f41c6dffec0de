"""The commands that change the running lab: ``set``, ``upgrade``, ``restart`` and ``reboot``."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from lab import builds, changes, cluster, images, preflight, reboot, topology
from lab.errors import LabError
from lab.locking import only_one
from lab.progress import Progress
from lab.settings import Settings, changed


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the commands to the command line."""
    setting = commands.add_parser("set", help="change the set-up: kpr=true|false, socket-lb=on|off, proxy-mode=iptables|nftables")
    setting.add_argument("pairs", metavar="NAME=VALUE", nargs="+")
    setting.set_defaults(run=_set)
    upgrade = commands.add_parser("upgrade", help="another version of a component, by Helm: upgrade cilium 1.19.5")
    upgrade.add_argument("component", choices=["cilium"])
    upgrade.add_argument("version")
    upgrade.set_defaults(run=_upgrade)
    restart = commands.add_parser("restart", help="restart kube-proxy, on a NODE or on all one after another, or Cilium's agents, rolling")
    restart.add_argument("component", choices=["kube-proxy", "cilium"])
    restart.add_argument("node", nargs="?", metavar="NODE")
    restart.set_defaults(run=_restart)
    power = commands.add_parser("reboot", help="turn a node off and on again")
    power.add_argument("node", metavar="NODE")
    power.set_defaults(run=_reboot)


def _set(arguments: argparse.Namespace) -> int:
    with _running() as lab:
        wanted = changed(_now(lab), arguments.pairs)
        return _apply(lab, wanted)


def _upgrade(arguments: argparse.Namespace) -> int:
    with _running() as lab:
        return _apply(lab, replace(_now(lab), cilium=arguments.version.removeprefix("v")))


def _restart(arguments: argparse.Namespace) -> int:
    with _running() as lab:
        if arguments.component == "kube-proxy":
            changes.restart_proxy(lab, [reboot.node(lab, arguments.node)] if arguments.node else lab.topology.nodes)
        elif arguments.node:
            raise LabError("restart cilium: the agents are restarted on every node, as the DaemonSet rolls them")
        else:
            changes.restart_agents(lab)
        lab.progress.say(f"{arguments.component} was restarted")
    return 0


def _reboot(arguments: argparse.Namespace) -> int:
    with _running() as lab:
        reboot.reboot(lab, reboot.node(lab, arguments.node))
        lab.progress.say(f"{arguments.node} was rebooted")
    return 0


def _apply(lab: cluster.Cluster, wanted: Settings) -> int:
    cilium = builds.cilium_of(wanted.cilium)
    builds.build({"cilium": cilium}, lab.progress)
    done = changes.apply(lab, wanted, cilium)
    lab.progress.say(f"the lab has {'now' if done else 'already'} {_described(wanted)}")
    return 0


def _described(settings: Settings) -> str:
    proxy = "no kube-proxy" if settings.kpr else f"kube-proxy in {settings.proxy_mode} mode"
    return f"Cilium {settings.cilium}, KubeProxyReplacement {settings.kpr}, socket LB {settings.socket_lb}, {proxy}"


def _now(lab: cluster.Cluster) -> Settings:
    assert lab.state.settings is not None  # cluster.running() has seen to it
    return lab.state.settings


@contextmanager
def _running() -> Iterator[cluster.Cluster]:
    preflight.check_root()
    progress = Progress()
    with only_one(progress):
        modules = builds.modules()
        yield cluster.running(topology.load(), modules, images.prepare(modules, progress), progress)
