"""Lists of the API, made up at random with what it leaves out, sends as null or adds: each object is read back the same."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from properties.spoiling import outcome, reshaped
from servicepath.model.services import Endpoint, Pod, Service, ServicePort
from servicepath.parse import kubernetes

NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,12}[a-z0-9])?", fullmatch=True)
PORTS = st.integers(1, 65535)
PROTOCOLS = st.sampled_from(["TCP", "UDP", "SCTP"])
LABELS = st.dictionaries(NAMES, st.text(max_size=5), max_size=2)
FLAGS = st.sampled_from([None, True, False])


def there(draw: st.DrawFn, **members: Any) -> dict[str, Any]:
    """The members that say something; one that says nothing is left out, or null. And one that is new."""
    said = {name: value for name, value in members.items() if value not in (None, [], {}, ())}
    nothing = {name: None for name in members if name not in said and draw(st.booleans())}
    return {**said, **nothing, "newfangled": {"x": [1]}}


@st.composite
def services(draw: st.DrawFn) -> tuple[dict[str, Any], Service]:
    namespace, name = draw(NAMES), draw(NAMES)
    families = draw(st.sampled_from([("IPv4",), ("IPv6",), ("IPv4", "IPv6"), ("IPv6", "IPv4")]))
    kind, headless = draw(st.sampled_from([None, "ClusterIP", "NodePort", "LoadBalancer", "ExternalName"])), draw(st.booleans())
    named = kind == "ExternalName"
    headless = headless and not named
    ips = [] if named or headless else [draw(st.ip_addresses(v=int(family[-1]))) for family in families]
    shown = [str(ip) for ip in ips] or (["None"] if headless else [])
    ports = [draw(_ports(namespace, name)) for _ in range(draw(st.integers(0, 2)))]
    external, balanced = draw(st.lists(st.ip_addresses(), max_size=2)), draw(st.lists(st.ip_addresses(), max_size=2))
    selector, labels, annotations = draw(LABELS), draw(LABELS), draw(LABELS)
    inside, outside = (draw(st.sampled_from([None, "Cluster", "Local"])) for _ in range(2))
    affinity, early = draw(st.sampled_from([None, "None", "ClientIP"])), draw(FLAGS)
    spread = draw(st.sampled_from([None, "PreferClose", "PreferSameNode"]))
    spec = there(
        draw, type=kind, clusterIP=shown[0] if shown else None, clusterIPs=shown if draw(st.booleans()) or len(shown) > 1 else None,
        ports=[port for port, _ in ports], selector=selector, internalTrafficPolicy=inside, externalTrafficPolicy=outside,
        sessionAffinity=affinity, publishNotReadyAddresses=early, trafficDistribution=spread, externalIPs=[str(ip) for ip in external],
        ipFamilies=None if named else list(families),
    )  # fmt: skip
    # A load balancer may have a name in the place of an address.
    status = {"loadBalancer": there(draw, ingress=[{"ip": str(ip)} for ip in balanced] + [{"hostname": "lb.example.com"}])}
    item = {"metadata": there(draw, namespace=namespace, name=name, labels=labels, annotations=annotations), "spec": spec, "status": status}
    versions = () if named else tuple(int(family[-1]) for family in families)
    return item, Service(
        namespace, name, kind or "ClusterIP", tuple(ips), tuple(port for _, port in ports), selector or None, inside or "Cluster", outside,
        affinity or "None", early or False, spread, labels, annotations, tuple(external), tuple(balanced), headless, versions,
    )  # fmt: skip


@st.composite
def _ports(draw: st.DrawFn, namespace: str, service: str) -> tuple[dict[str, Any], ServicePort]:
    name, protocol, number = draw(st.none() | NAMES), draw(st.none() | PROTOCOLS), draw(PORTS)
    target, node, application = draw(st.none() | NAMES | PORTS), draw(st.none() | PORTS), draw(st.sampled_from([None, "http"]))
    shown = there(draw, name=name, protocol=protocol, port=number, targetPort=target, nodePort=node, appProtocol=application)
    return shown, ServicePort(namespace, service, name, protocol or "TCP", number, target and str(target), node, application)


@st.composite
def slices(draw: st.DrawFn) -> tuple[dict[str, Any], list[Endpoint]]:
    namespace, name, service = draw(NAMES), draw(NAMES), draw(st.none() | NAMES)
    kind = draw(st.sampled_from(["IPv4", "IPv6", "FQDN"]))
    numbers: dict[tuple[str | None, str], int | None] = {}
    ports = []
    for _ in range(draw(st.integers(0, 2))):
        key, protocol, number = draw(st.none() | NAMES), draw(st.none() | PROTOCOLS), draw(st.none() | PORTS)
        numbers[key, protocol or "TCP"] = number
        ports.append(there(draw, name=key, protocol=protocol, port=number))
    items, endpoints = [], []
    for _ in range(draw(st.integers(0, 2))):
        ips = [draw(st.ip_addresses(v=6 if kind == "IPv6" else 4)) for _ in range(draw(st.integers(1, 2)))]
        ready, serving, terminating, node = draw(FLAGS), draw(FLAGS), draw(FLAGS), draw(st.none() | NAMES)
        pod, zones = draw(st.none() | NAMES), draw(st.lists(NAMES, max_size=2))
        other = draw(st.sampled_from([None, {"kind": "Node", "name": "n"}]))
        target = {"kind": "Pod", "namespace": namespace, "name": pod} if pod else other
        shown = [str(ip) for ip in ips] if kind != "FQDN" else ["a.example.com"]
        conditions = there(draw, ready=ready, serving=serving, terminating=terminating)
        hints = there(draw, forZones=[{"name": zone} for zone in zones])
        items.append(there(draw, addresses=shown, conditions=conditions, nodeName=node, targetRef=target, hints=hints))
        told = (ready, serving, terminating, node, f"{namespace}/{pod}" if pod else None, numbers, tuple(zones))
        endpoints.append(Endpoint(namespace, service or "", name, ips[0], *told))
    labels = {"kubernetes.io/service-name": service} if service else {}
    meta = there(draw, namespace=namespace, name=name, labels=labels)
    item = {"metadata": meta, "addressType": kind, **there(draw, endpoints=items, ports=ports)}
    return item, endpoints if service and kind != "FQDN" else []


@st.composite
def pods(draw: st.DrawFn) -> tuple[dict[str, Any], Pod]:
    namespace, name, node, phase = draw(NAMES), draw(NAMES), draw(st.none() | NAMES), draw(st.sampled_from([None, "Running", "Pending"]))
    ips, labels, host, ready = draw(st.lists(st.ip_addresses(), max_size=2)), draw(LABELS), draw(FLAGS), draw(st.booleans())
    going, owner = draw(st.booleans()), draw(st.none() | NAMES)
    port, sidecar = draw(st.none() | PORTS), draw(st.booleans())
    named = there(draw, name="c", ports=[{"name": "dns", "containerPort": port, "protocol": "UDP"}] if port else [])
    begun = {**named, "restartPolicy": "Always"} if sidecar else {"name": "init", "ports": [{"name": "dns", "containerPort": 9}]}
    owners = [{"kind": "Node", "name": "x"}] + ([{"kind": "ReplicaSet", "name": owner, "controller": True}] if owner else [])
    deleted = "2026-01-01T00:00:00Z" if going else None
    item = {
        "metadata": there(draw, namespace=namespace, name=name, labels=labels, deletionTimestamp=deleted, ownerReferences=owners),
        "spec": there(draw, nodeName=node, hostNetwork=host, containers=[{"name": "a"}] if sidecar else [named], initContainers=[begun]),
        "status": there(
            draw, phase=phase, podIP=str(ips[0]) if ips else None, podIPs=[{"ip": str(ip)} for ip in ips],
            conditions=[{"type": "Ready", "status": "True" if ready else "False"}],
        ),
    }  # fmt: skip
    numbers = {("dns", "UDP"): port} if port else {}
    told = (phase or "Unknown", ready, going, labels, numbers, "ReplicaSet" if owner else None, owner)
    return item, Pod(namespace, name, node, tuple(ips), host or False, *told)


@given(st.lists(services(), max_size=2))
def test_services_are_read_back_the_same(made):
    assert list(kubernetes.parse_services({"items": [item for item, _ in made]})) == [fact for _, fact in made]


@given(st.lists(slices(), max_size=2))
def test_endpoints_are_read_back_the_same(made):
    found = kubernetes.parse_endpoint_slices({"items": [item for item, _ in made]})

    assert list(found) == [endpoint for _, endpoints in made for endpoint in endpoints]


@given(st.lists(pods(), max_size=2))
def test_pods_are_read_back_the_same(made):
    assert list(kubernetes.parse_pods({"items": [item for item, _ in made]})) == [fact for _, fact in made]


@given(st.sampled_from([(services(), "services"), (slices(), "endpoint_slices"), (pods(), "pods")]), st.data())
def test_a_reshaped_object_is_an_error_or_an_object(kind, data):
    strategy, name = kind
    item, _ = data.draw(strategy)
    outcome(lambda given: getattr(kubernetes, f"parse_{name}")({"items": [given]}), data.draw(reshaped(item)))
