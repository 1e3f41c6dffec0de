"""What kube-proxy programs of several releases write for one Service of each kind: ``python -m bench.releases FOLDER KUBE-PROXY…``.

The programs are built by hand (``go build k8s.io/kubernetes/cmd/kube-proxy``); needs root, and some seconds for each. The API server is
the lab's, alone with one kube-proxy after the other (bench/apart.py), so that the API says the same to all of them.
FOLDER/kubernetes-VERSION/kube-proxy.tar.zst then holds the API's lists, and what nft and iptables print in each mode:

    api/services.json, api/endpointslices.json
    nftables/SETTING/ip.text, .handles (nft -a) and .json, and the same of ip6
    nftables/emptied/…: kube-proxy has just followed the Service shop/emptied, whose endpoints went
    nftables/removed/…: one endpoint of shop/three was taken out of its chain by nft
    nftables/elsewhere/…: one is translated to another address, by nft
    nftables/missing/…: its chain and the element that leads there were deleted, by nft
    iptables/SETTING/iptables-save, ip6tables-save (-c)
"""

from __future__ import annotations

import contextlib
import functools
import json
import pathlib
import re
import sys
from collections.abc import Callable, Iterator

from bench import apart, release_objects
from lab import components
from lab import topology as topologies
from lab.api import Api
from lab.process import run
from lab.waiting import until
from servicepath.recording import storage

API_LISTS = {"services": "/api/v1/services", "endpointslices": "/apis/discovery.k8s.io/v1/endpointslices"}
OPTIONS = {"cluster-cidr": "--cluster-cidr=10.42.0.0/16,fd00:42::/32", "masquerade-all": "--masquerade-all"}
FORMS = {"text": (), "handles": ("-a",), "json": ("-j",)}
SAVES = ("iptables-save", "ip6tables-save")
# For each family the ClusterIP of shop/three, one of its endpoints, and an address that no endpoint has.
FAMILIES = {"ip": ("10.43.0.16", "10.42.1.16", "10.42.9.9"), "ip6": ("fd00:43::16", "fd00:42:1:1111:2222:3333:4444:16", "fd00:42:9::9")}
THREE = "-shop/three/tcp/http"
_CHOICE = re.compile(r"mod 3 (v?map \{ 0 : .*, 1 : .*), 2 : [^}]*\}")
_RULE = re.compile(r"\t\t(.*) # handle (\d+)")
_TIMEOUT = 3600.0  # seconds for all of it

Files = Iterator[tuple[str, bytes]]


class _Alone:
    """One kube-proxy program with the API server, within the namespaces."""

    def __init__(self, place: pathlib.Path, program: pathlib.Path) -> None:
        self.place, self.program, self.topology = place, program, topologies.load()

    def api(self) -> Api:
        """A connection of its own for each use: the server closes idle ones."""
        return Api(self.topology, self.place / "pki")

    def files(self) -> Files:
        """All that it writes; in the end its rules are gone."""
        for name, path in API_LISTS.items():
            yield f"api/{name}.json", json.dumps(self.api().get(path), indent=1).encode()
        for setting in OPTIONS:
            with self.running("iptables", setting):
                until(lambda: _lack('"shop/three:http', *(run([tool]) for tool in SAVES)), "kube-proxy's rules", seconds=120)
                yield from ((f"iptables/{setting}/{tool}", run([tool, "-c"]).encode()) for tool in SAVES)
            run(["nft", "flush", "ruleset"])
        for setting in reversed(OPTIONS):
            run(["nft", "flush", "ruleset"])
            with self.running("nftables", setting):
                until(lambda: _lack(THREE, *map(_table, FAMILIES)), "kube-proxy's tables", seconds=120)
                yield from _tables(setting)
                if setting == "cluster-cidr":
                    yield from self.emptied()
        for edit in (_removed, _elsewhere, _missing):
            yield from _spoilt(edit)
        run(["nft", "flush", "ruleset"])

    @contextlib.contextmanager
    def running(self, mode: str, setting: str) -> Iterator[None]:
        """kube-proxy runs so meanwhile."""
        argv = [word for word in components.kube_proxy(self.topology.master, self.topology, mode) if "--cluster-cidr" not in word]
        running = apart.start(self.place, [*argv, OPTIONS[setting]], self.program)
        try:
            yield
        finally:
            running.terminate()
            running.wait(timeout=120)

    def emptied(self) -> Files:
        """A Service loses its endpoints; in the end they are back."""
        paths = [f"{release_objects.SLICES.format(release_objects.NAMESPACE)}/emptied-ipv{version}" for version in (4, 6)]
        before = [self.api().get(path)["endpoints"] for path in paths]
        for path in paths:
            self.api().patch(path, {"endpoints": []})
        refused = functools.partial(_lack, 'comment "shop/emptied:http"')
        until(lambda: refused(*map(_table, FAMILIES)), "the Service's end", seconds=120)
        yield from _tables("emptied")
        for path, endpoints in zip(paths, before, strict=True):
            self.api().patch(path, {"endpoints": endpoints})
        until(lambda: None if all(map(refused, map(_table, FAMILIES))) else "refused yet", "the Service's return", seconds=120)


def _inside(folder: pathlib.Path, programs: list[str]) -> None:
    """The work itself, in the namespaces."""
    topology = topologies.load()
    place = apart.begin(topology, f"--service-cluster-ip-range={topology.cluster.service_cidr},{release_objects.SERVICE_CIDR}")
    run(["ip", "addr", "add", f"{release_objects.node_ip(0)}/64", "dev", "lo"])
    apart.create(topology, place, list(release_objects.surroundings(topology)))
    apart.create(topology, place, list(release_objects.objects()))
    for path, status in release_objects.statuses():
        Api(topology, place / "pki").patch(path, status)
    for program in map(pathlib.Path, programs):
        version = run([program, "--version"]).split()[-1].removeprefix("v")
        storage.store(list(_Alone(place, program).files()), folder / f"kubernetes-{version}" / "kube-proxy.tar.zst")


def _table(family: str, *form: str) -> str:
    """The table as nft prints it, "" where there is none."""
    there = "kube-proxy" in run(["nft", "list", "tables", family])
    return run(["nft", *form, "list", "table", family, "kube-proxy"]) if there else ""


def _lack(word: str, *printed: str) -> str | None:
    return None if all(word in each for each in printed) else f"no {word} in them"


def _tables(name: str) -> Files:
    for family in FAMILIES:
        yield from ((f"nftables/{name}/{family}.{kind}", _table(family, *form).encode()) for kind, form in FORMS.items())


def _spoilt(edit: Callable[[str], list[tuple[str, str, str, str]]]) -> Files:
    """The tables while rules of theirs are replaced by others; in the end those that were there are back."""
    made = [rule for family in FAMILIES for rule in edit(family)]
    for family, where, _, spoilt in made:
        run(["nft", "-f", "-"], stdin=f"replace rule {family} kube-proxy {where} {spoilt}\n")
    yield from _tables(edit.__name__.removeprefix("_"))
    for family, where, whole, _ in made:
        run(["nft", "-f", "-"], stdin=f"replace rule {family} kube-proxy {where} {whole}\n")


def _rules(family: str) -> Iterator[tuple[str, str]]:
    """The rules of the chains of shop/three: each one's chain and handle, and its text."""
    chain = ""
    for line in _table(family, "-a").splitlines():
        chain = line.split()[1] if line.startswith("\tchain ") else chain
        if THREE in chain and (found := _RULE.fullmatch(line)):
            yield f"{chain} handle {found[2]}", found[1]


def _removed(family: str) -> list[tuple[str, str, str, str]]:
    return [(family, where, rule, _CHOICE.sub(r"mod 2 \1 }", rule)) for where, rule in _rules(family) if _CHOICE.search(rule)]


def _elsewhere(family: str) -> list[tuple[str, str, str, str]]:
    _, endpoint, other = FAMILIES[family]
    return [(family, where, rule, rule.replace(endpoint, other)) for where, rule in _rules(family) if "dnat" in rule and endpoint in rule]


def _missing(family: str) -> list[tuple[str, str, str, str]]:
    """Deletes what cannot be put back by replacing a rule, and so is the last."""
    name = next(where.split()[0] for where, _ in _rules(family) if where.startswith("service-"))
    run(["nft", "delete", "element", family, "kube-proxy", "service-ips", f"{{ {FAMILIES[family][0]} . tcp . 80 }}"])
    for verb in ("flush", "delete"):
        run(["nft", verb, "chain", family, "kube-proxy", name])
    return []


if __name__ == "__main__":
    if sys.argv[1] == "apart":
        _inside(pathlib.Path(sys.argv[2]), sys.argv[3:])
    else:
        arguments = [str(pathlib.Path(each).resolve()) for each in sys.argv[1:]]
        apart.call("bench.releases", ["apart", *arguments], _TIMEOUT)
