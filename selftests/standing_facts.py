"""A plug-in that stands in for what was observed: the facts of a healthy node, once as they are and once for each way to spoil them."""

import dataclasses
import types

import host_samples as sample
import pytest

from fixtures import host_facts
from servicepath.inventory import Inventory
from servicepath.model import lan
from servicepath.model.addresses import Socket
from servicepath.model.cilium import AgentStatus
from servicepath.model.routing import service_network
from servicepath.model.rules import Ruleset
from servicepath.model.service_rules import NodeRules
from servicepath.model.services import Endpoint
from servicepath.observation import Observation
from servicepath.parse.iptables import parse_save

WAYS = (
    "healthy", "interface", "socket", "route", "lan", "remote", "mtu", "pod", "selector", "single", "blind",
)  # fmt: skip
DUMMY = "9: kube-ipvs0: <NOARP> mtu 1500 qdisc noop state DOWN\n    inet 10.43.0.10/32 scope global kube-ipvs0\n"


@pytest.fixture(params=WAYS)
def spoiled(request):
    return request.param


@pytest.fixture
def exhibit():
    return types.SimpleNamespace(show=lambda title, lines, *, command: (title, list(lines), command))


@pytest.fixture
def inventory():
    return Inventory()


@pytest.fixture
def node():
    return sample.node()


@pytest.fixture
def vip():
    return sample.VIP


@pytest.fixture
def vips(vip):
    return (vip,)


@pytest.fixture
def service(spoiled):
    return dataclasses.replace(sample.service(), selector=None) if spoiled == "selector" else sample.service()


@pytest.fixture
def port(service):
    return service.ports[0]


@pytest.fixture
def endpoint_objects(objects):
    return objects


@pytest.fixture
def service_cidr(objects):
    """Once a way here, and not once a session."""
    return service_network(objects)


@pytest.fixture
def objects(service, spoiled):
    endpoint = Endpoint(
        "kube-system", "kube-dns", "kube-dns-abc", sample.ip("10.42.1.113"), True, True, False, "worker1", None, {("dns", "UDP"): 53}
    )
    return sample.objects(
        services=(service,),
        endpoints=(endpoint,),
        pods=(sample.pod(ready=spoiled != "pod"),),
        cilium_nodes=sample.NODES[:1] if spoiled == "single" else sample.NODES,
        cilium_config={},
    )


@pytest.fixture
def interfaces(spoiled):
    return sample.interfaces({"interface": sample.INTERFACES + DUMMY, "blind": ""}.get(spoiled, sample.INTERFACES))


@pytest.fixture
def routing(spoiled):
    changed = {
        "route": sample.ROUTES + "10.43.0.0/16 dev enp1s0\n",
        "mtu": sample.ROUTES.replace("1450", "1500"),
        "remote": sample.ROUTES.replace("10.42.2.0/24 via 10.42.0.9 dev cilium_host", "10.42.2.0/24 dev enp1s0"),
        "blind": "",
    }
    return sample.routing(routes=changed.get(spoiled, sample.ROUTES))


@pytest.fixture
def state(spoiled):
    sshd = "tcp LISTEN 0 5 0.0.0.0:22 0.0.0.0:*\n"
    said = {"socket": sshd + "tcp LISTEN 0 5 10.43.0.10:53 0.0.0.0:*\n", "blind": ""}.get(spoiled, sshd)
    return {"listeners": Observation("master", "listeners", ("ss", "-Htulnp"), 0, said.encode(), b"", 0.0, 0.0)}


@pytest.fixture
def optional_status():
    return AgentStatus("1.19.1", "False", False, None, {}, "tunnel", "vxlan", "legacy", None, {})


@pytest.fixture
def shown_lan_host(spoiled):
    def attempt(host, connected):
        return lan.Connect(Socket(sample.ip(host), 443), connected, None if connected else "timed out", 1.0, "connect")

    facts = lan.LanHostFacts(
        name="lan-client",
        interfaces=(),
        routing=sample.routing(routes="default via 192.168.55.1 dev eth0\n", rules="", lookups=""),
        rules=NodeRules(parse_save("*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n"), Ruleset("legacy", {})),
        connect_to_vip=attempt("10.43.0.1", spoiled == "lan"),
        connect_to_node=attempt("192.168.55.10", spoiled != "blind"),
    )
    host_facts.require(facts.name, lan.lan_host_silent(facts))
    return facts
