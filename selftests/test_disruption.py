"""What disturbs the cluster is undone whatever happens, and what was seen meanwhile is judged only where its control speaks."""

import dataclasses
import datetime
import http.server
import ipaddress
import json
import os
import pathlib
import signal
import subprocess
import threading
import time
import types

import pytest

from fixtures import disruption, following
from selftests import traffic_recording as recording
from servicepath.cluster import LiveClock, LiveCluster, LivePlans
from servicepath.deadline import Deadline
from servicepath.experiments import counters, outage, temporary_service
from servicepath.model import following as model
from servicepath.model import judge_flows
from servicepath.model.addresses import Socket
from servicepath.model.cilium import MapService
from servicepath.model.difference import explain
from servicepath.model.flows import Source
from servicepath.model.following import Following, Presence
from servicepath.model.service_rules import NodeRules
from servicepath.observation import CouldNotSee, Observation, Trouble
from servicepath.parse.cilium_services import parse_service_list
from servicepath.parse.iproute import parse_ip_route
from servicepath.parse.iptables import parse_save

VIP = ipaddress.ip_address("10.43.77.7")
BACKEND = Socket(ipaddress.ip_address("10.42.1.145"), 53)
MADE = temporary_service.TemporaryService(VIP, BACKEND, "UDP")
YES, NO = Presence(True, True, True), Presence(False, False, False)
ROUTES = frozenset(parse_ip_route("default via 192.168.55.1 dev enp1s0\n10.42.1.0/24 via 10.42.0.9 dev cilium_host mtu 1450\n"))
CIDRS = (ipaddress.ip_network("10.42.0.0/16"), ipaddress.ip_network("10.43.0.0/16"))


def fact(fixture, *facts):
    """What the fixture gives, made of these facts."""
    return fixture.__wrapped__(*facts)


def shell(command, *, path=None):
    environment = os.environ | ({"PATH": f"{path}:{os.environ['PATH']}"} if path else {})
    return subprocess.run(command.argv, capture_output=True, text=True, timeout=20, env=environment, check=False)


def ended(process):
    """Whether a process has ended; one that nobody has waited for yet has."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def until(so):
    """Whether it becomes so within a minute."""
    end = time.monotonic() + 60
    while not so() and time.monotonic() < end:
        time.sleep(0.01)
    return so()


# The outage: run here for real; what is made unreachable is a file.


@pytest.fixture
def switch(tmp_path):
    """A file that stands for the API: do removes it, undo puts it back."""
    api = tmp_path / "api"
    api.touch()
    return types.SimpleNamespace(api=api, do=f"rm {api}", undo=f"touch {api}")


def test_an_outage_ends_with_its_undo_and_leaves_no_timer(switch):
    timer = shell(outage.begin(f"echo stopping; {switch.do}", switch.undo)).stdout
    assert not switch.api.exists()
    assert timer.endswith("stopping\n")

    assert shell(outage.end(switch.undo, timer)).returncode == 0
    assert switch.api.exists()
    assert until(lambda: ended(int(timer.split()[0])))


def test_the_timer_brings_the_api_back_when_nobody_else_does(switch, monkeypatch):
    monkeypatch.setattr(outage, "LONGEST", 0.1)
    timer = shell(outage.begin(switch.do, f"{switch.undo}; echo undone > {switch.api}")).stdout
    assert until(lambda: switch.api.exists() and switch.api.read_text() == "undone\n")
    assert shell(outage.end(switch.undo, timer)).returncode == 0


def test_an_undo_that_fails_is_said_and_the_timer_stays_armed(switch):
    timer = shell(outage.begin(switch.do, "exit 7")).stdout

    try:
        assert shell(outage.end("exit 7", timer)).returncode == 7
        assert not ended(int(timer))
    finally:
        os.killpg(int(timer), signal.SIGKILL)


def test_an_outage_that_never_began_is_still_undone(switch):
    switch.api.unlink()

    assert shell(outage.end(switch.undo, "")).returncode == 0
    assert switch.api.exists()


class Nodes:
    """A fleet that answers by a function of node and commands, and remembers what it was asked."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def run_one(self, node, commands, *, phase):
        """As Fleet.run_one."""
        self.asked += [(node, command.name) for command in commands]
        return self.answer(node, commands)

    def run(self, plan, *, phase):
        """As Fleet.run."""
        return {node: self.run_one(node, commands, phase=phase) for node, commands in plan.items()}


def said(node, name, text="", status=0):
    return Observation(node, name, (name,), status, text.encode(), b"", 0.0, 0.0)


def answered(known):
    """Answers the senders of a short plan as the recorded flows of the same probes were."""
    kept = {}
    for name, observation in recording.answers("master").items():
        if name.startswith("send-"):
            kept |= {json.loads(line)["id"]: line for line in observation.text.splitlines()}

    def one(node, commands):
        out = {}
        for command in commands:
            ids = [i for i in kept if f'"{i}\\"'.encode() in command.stdin or f'{i}\\"'.encode() in command.stdin]
            out[command.name] = said(node, command.name, "".join(kept[i] + "\n" for i in ids) if ids else "123\n")
        return out

    return one


@pytest.fixture(scope="module")
def recorded():
    """What the API said, and the experiment of master."""
    known = recording.objects()
    return known, recording.read("master", known)


@pytest.fixture
def during(monkeypatch, recorded):
    """The outage as the fixture makes it, on a fleet of stand-ins, with the API's word of that moment."""
    known, run = recorded

    def measure(answer, *, api=("no answer", "no answer"), runs=None):
        monkeypatch.setattr(disruption, "inventory_of", lambda config: types.SimpleNamespace(api_outage=said_outage))
        words = list(api)
        monkeypatch.setattr(disruption, "_why_unreachable", lambda client: words.pop(0))
        monkeypatch.setattr(disruption, "_wait_for_api", lambda client, clock: None)
        monkeypatch.setattr(disruption, "plans_of", lambda config: LivePlans())
        monkeypatch.setattr(disruption, "clock_of", lambda config: LiveClock())
        nodes = Nodes(answer)
        try:
            return fact(disruption.outage_seen, None, nodes, None, known, runs or {"master": run}), nodes
        finally:
            measure.nodes = nodes

    said_outage = types.SimpleNamespace(node="master", do="stop", undo="start")
    measure.known = known
    return measure


def test_the_service_is_asked_from_host_and_pod_while_the_api_is_gone(during):
    seen, nodes = during(answered(during.known))
    flows = fact(disruption.outage_flows, seen)

    assert [name for _, name in nodes.asked] == ["outage-begin", "outage-host", "outage-pod", "outage-end"]
    assert {(f.probe.port.id, f.probe.source) for f in flows} == {
        (f"kube-dns:{port}", source) for port in ("dns/UDP", "dns-tcp/TCP", "metrics/TCP") for source in Source
    }
    assert all(flow.answered for flow in flows)


def test_packets_that_need_the_api_bite(during):
    flow = fact(disruption.outage_flows, during(answered(during.known))[0])[0]
    silent = dataclasses.replace(flow, answers=(None,) * len(flow.answers), connected=False, error="no answer within 2 s")

    text = explain(judge_flows.unanswered([silent], {}))

    assert all(word in text for word in (flow.probe.id, "not answered", "expected:", "actual: no answer within 2 s"))


@pytest.mark.parametrize(
    ("spoilt", "says"),
    [
        ({"api": [None]}, "the API answered"),
        ({"api": ["no answer", None]}, "the API answered"),
        ({"runs": {"worker1": Trouble("worker1", "ssh: timed out")}}, "ssh: timed out"),
        ({"answer": lambda node, commands: {c.name: said(node, c.name, "1\n") for c in commands}}, "probe sender"),
        ({"answer": lambda node, commands: {c.name: said(node, c.name, "1\n", 0 if "begin" in c.name or "end" in c.name else 1)
                                            for c in commands}}, "exit status 1"),
    ],
    ids=["no outage", "over too soon", "no node", "cut off", "no sender"],
)  # fmt: skip
def test_an_outage_without_its_control_is_no_verdict(during, spoilt, says):
    answer = spoilt.pop("answer", answered(during.known))
    seen, _ = during(answer, **spoilt)

    with pytest.raises(CouldNotSee, match=says):
        fact(disruption.outage_flows, seen)


@pytest.mark.parametrize("broken", ["outage-begin", "outage-host"])
def test_the_api_comes_back_whatever_breaks(during, broken):
    def breaks(node, commands):
        if commands[0].name == broken:
            raise KeyboardInterrupt
        return answered(during.known)(node, commands)

    with pytest.raises(KeyboardInterrupt):
        during(breaks)

    assert during.nodes.asked[-1] == ("master", "outage-end")


def test_a_flow_that_could_not_be_sent_in_the_outage_is_no_verdict(during):
    seen, _ = during(answered(during.known))
    flows = tuple(dataclasses.replace(f, unsent=True, error="Address already in use") for f in seen.flows["master"])

    with pytest.raises(CouldNotSee, match="was not sent"):
        fact(disruption.outage_flows, dataclasses.replace(seen, flows={"master": flows}))


# The temporary Service.


@pytest.fixture
def api():
    """A client of an API server that keeps what is posted, and refuses what ``refused`` names by method and kind."""
    from kubernetes import client

    kept, refused, asked = {}, {}, []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def _any(self):
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size) or b"{}")
            path = self.path.partition("?")[0]
            kind = "services" if "/services" in path else "endpointslices"
            asked.append((self.command, kind))
            status, said_back = refused.get((self.command, kind)), {"kind": "Status", "message": "no"}
            if status is None:
                status, said_back = self._keep(path, kind, body)
            text = json.dumps(said_back).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def _keep(self, path, kind, body):
            if self.command == "POST":
                body["spec" if kind == "services" else "metadata"] |= {"clusterIP": str(VIP)} if kind == "services" else {}
                kept[kind, body["metadata"]["name"]] = body
                return 201, body
            if self.command == "DELETE":
                return (200, {}) if kept.pop((kind, path.rpartition("/")[2]), None) else (404, {})
            return 200, {"items": [item for (k, _), item in kept.items() if k == kind]}

        do_GET = do_POST = do_DELETE = _any

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        configuration = client.Configuration(host=f"http://127.0.0.1:{server.server_port}")
        configuration.retries = False
        made = client.ApiClient(configuration)
        made.kept, made.refused, made.asked = kept, refused, asked
        yield made
        server.shutdown()
        thread.join()


def test_a_temporary_service_is_made_with_its_endpoint_first_and_deleted_itself_first(api):
    name = temporary_service.fresh_name()

    assert temporary_service.create(api, name, BACKEND, "UDP") == MADE
    slice_ = api.kept["endpointslices", name]
    assert slice_["endpoints"] == [{"addresses": [str(BACKEND.ip)], "conditions": {"ready": True}}]
    assert slice_["metadata"]["labels"]["kubernetes.io/service-name"] == name
    assert api.kept["services", name]["spec"]["ports"] == [
        {"name": "probe", "protocol": "UDP", "port": temporary_service.PORT, "targetPort": 53}
    ]
    assert "selector" not in api.kept["services", name]["spec"]

    temporary_service.delete(api, name)
    temporary_service.delete(api, name)  # what is gone is no error

    assert api.kept == {}
    assert api.asked[:4] == [("POST", "endpointslices"), ("POST", "services"), ("DELETE", "services"), ("DELETE", "endpointslices")]


def test_what_an_interrupted_run_left_is_deleted(api):
    names = sorted(temporary_service.fresh_name() for _ in range(2))
    for name in names:
        temporary_service.create(api, name, BACKEND, "TCP")
        made_before(api, name, temporary_service.OLDEST + 60)
    api.kept.pop(("services", names[0]))

    assert temporary_service.delete_leftovers(api) == tuple(names)
    assert api.kept == {}


def test_what_another_run_has_just_made_is_left_to_it(api):
    young, unknown = temporary_service.fresh_name(), temporary_service.fresh_name()
    for name in (young, unknown):
        temporary_service.create(api, name, BACKEND, "TCP")
    made_before(api, young, 40)

    assert temporary_service.delete_leftovers(api) == ()
    assert {name for _, name in api.kept} == {young, unknown}


def made_before(api, name, seconds):
    """Let the API server have made both objects so long ago."""
    at = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=seconds)
    for kind in ("services", "endpointslices"):
        api.kept[kind, name]["metadata"]["creationTimestamp"] = at.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_refusal_names_the_right_that_is_missing(api):
    api.refused["POST", "services"] = 403

    with pytest.raises(CouldNotSee, match="cannot create the temporary Service in namespace servicepath-test: 403") as refused:
        temporary_service.create(api, "servicepath-1", BACKEND, "UDP")
    assert "rbac.yaml" in refused.value.trouble.remedy


def test_one_object_that_cannot_be_deleted_does_not_keep_the_other(api):
    temporary_service.create(api, "servicepath-1", BACKEND, "UDP")
    api.refused["DELETE", "services"] = 500

    with pytest.raises(CouldNotSee, match="cannot delete servicepath-1"):
        temporary_service.delete(api, "servicepath-1")
    assert set(api.kept) == {("services", "servicepath-1")}


def test_the_service_is_deleted_when_a_look_breaks(api, monkeypatch):
    class Broken:
        def __init__(self, *_):
            pass

        def look(self, phase):
            return {}

        def until(self, made, *, there):
            raise KeyboardInterrupt

    for name in ("inventory_of", "options_of", "clock_of"):
        monkeypatch.setattr(disruption, name, lambda config: None)
    monkeypatch.setattr(disruption, "select_nodes", lambda *_: ())
    monkeypatch.setattr(following, "Observer", Broken)
    known = recording.objects()
    cluster = LiveCluster(api, Deadline.starting_now(60))

    with pytest.raises(KeyboardInterrupt):
        fact(disruption.followings, None, None, cluster, known, (known.service("kube-system/kube-dns"),))
    assert api.kept == {}
    assert ("POST", "services") in api.asked


# Following it.

RULES = """\
*nat
:OUTPUT ACCEPT [0:0]
:PREROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-A - [0:0]
:KUBE-SEP-A - [0:0]
-A OUTPUT -j KUBE-SERVICES
-A PREROUTING -j KUBE-SERVICES
{service}COMMIT
"""
WITH = """\
-A KUBE-SERVICES -d 10.43.77.7/32 -p udp -m udp --dport 53535 -j KUBE-SVC-A
-A KUBE-SVC-A -m comment --comment "servicepath-test/x:probe -> 10.42.1.145:53" -j KUBE-SEP-A
-A KUBE-SEP-A -p udp -m udp -j DNAT --to-destination 10.42.1.145:53
"""
REFUSED = """\
COMMIT
*filter
:KUBE-SERVICES - [0:0]
-A KUBE-SERVICES -d 10.43.77.7/32 -p udp -m udp --dport 53535 -j REJECT
"""
FRONT = Socket(VIP, temporary_service.PORT)


def reading(rules="", agent=None, mapped=None):
    """One node's dataplanes; agent and mapped are the backends listed, None for no entry at all."""
    listed = [] if agent is None else [agent_service(agent)]
    maps = [] if mapped is None else [MapService(FRONT, "UDP", "external", "ClusterIP", (), tuple(mapped), (), False)]
    return following.Reading(NodeRules(parse_save(RULES.format(service=rules)), None), tuple(listed), tuple(maps), ROUTES)


def agent_service(backends):
    text = "ID   Frontend               Service Type   Backend\n7    10.43.77.7:53535/UDP   ClusterIP"
    found = parse_service_list(text + ("      1 => 10.42.1.145:53/UDP (active)\n" if backends else "\n"))
    return found[0]


def observer(looks=()):
    made = following.Observer(None, None, LiveClock(), None, {"master": "iptables"})
    left = list(looks)
    made.look = lambda phase: {"master": left.pop(0) if len(left) > 1 else left[0]}
    return made


@pytest.mark.parametrize(
    ("one", "present", "trace"),
    [
        (reading(), NO, NO),
        (reading(WITH, [BACKEND], [BACKEND]), YES, YES),
        (reading(REFUSED, [], []), NO, YES),
        (reading(agent=[]), NO, Presence(False, True, False)),
        (reading(mapped=[]), NO, Presence(False, False, True)),
        (reading(WITH, [BACKEND]), Presence(True, True, False), Presence(True, True, False)),
    ],
    ids=["nothing", "all", "without backends", "left in the list", "left in the map", "not yet in the map"],
)
def test_a_service_is_there_with_its_backend_and_gone_without_a_trace(one, present, trace):
    assert following.presence(one, MADE) == present
    assert following.trace(one, MADE) == trace


def test_it_is_looked_at_until_it_is_so(monkeypatch):
    monkeypatch.setattr(following, "EVERY", 0)
    whole, part = reading(WITH, [BACKEND], [BACKEND]), reading(WITH)

    assert observer([part, part, whole]).until(MADE, there=True)[0] == {"master": whole}
    assert observer([whole, reading(mapped=[]), reading()]).until(MADE, there=False)[0] == {"master": reading()}
    monkeypatch.setattr(following, "WITHIN", -1)
    assert observer([part]).until(MADE, there=True)[0] == {"master": part}


def test_three_looks_tell_how_a_node_followed():
    looks = tuple({"master": one} for one in (reading(), reading(WITH, [BACKEND], [BACKEND]), reading()))

    found = following.followed("master", MADE, looks, (1.0, 2.0))

    assert (found.before, found.created, found.deleted) == (NO, YES, NO)
    lost = following.followed("master", MADE, (*looks[:2], {"master": Trouble("master", "lost")}), (1.0, 2.0))
    assert isinstance(lost, Trouble)
    assert lost.problem == "lost"


def followed(before=NO, created=YES, deleted=NO, routes=(ROUTES, ROUTES, ROUTES)):
    return Following("master", VIP, before, created, deleted, routes, (1.0, 2.0), BACKEND.ip)


def test_dataplanes_follow_bites():
    late, stays = followed(created=Presence(True, True, False)), followed(deleted=Presence(True, False, False))

    assert model.not_followed(followed()) == ()
    text = explain(model.not_followed(late))
    assert "master: the temporary Service 10.43.77.7" in text
    assert "actual: iptables: yes, agent's Service list: yes, load-balancing map: no" in text
    assert "still there 2.0 s after its deletion" in explain(model.not_followed(stays))
    assert len(model.lines(stays)) == 4


@pytest.mark.parametrize(
    ("route", "wrong"),
    [
        ("10.43.77.7 dev cilium_host", 2),
        ("10.42.1.145 dev lxc1", 2),
        ("172.16.0.0/12 dev x", 0),
        # Endpoint routes: another Pod came, and what leads to it is no doing of the Service's.
        ("10.42.1.146 dev lxc9 proto kernel scope link", 0),
        ("10.43.77.7 dev lxc9", 2),
        ("10.42.1.128/25 dev lxc9", 2),
        ("10.42.1.146 dev cilium_host", 2),
    ],
)
def test_dnat_adds_no_route_bites(route, wrong):
    more = ROUTES | frozenset(parse_ip_route(route + "\n"))
    came_and_went, stayed = followed(routes=(ROUTES, more, ROUTES)), followed(routes=(ROUTES, more, more))

    assert model.routes_changed(followed(), CIDRS) == ()
    assert len(model.routes_changed(came_and_went, CIDRS)) == wrong // 2
    found = model.routes_changed(stayed, CIDRS)
    assert len(found) == wrong
    assert not wrong or "+ " in explain(found)


def test_a_route_that_goes_with_the_service_bites():
    default = frozenset(r for r in ROUTES if r.destination.prefixlen == 0)

    assert "- " in explain(model.routes_changed(followed(routes=(ROUTES, default, ROUTES)), CIDRS))


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (Trouble("master", "ssh: timed out"), "ssh: timed out"),
        (followed(before=Presence(False, False, True)), "was in use before"),
    ],
)
def test_a_service_that_could_not_be_followed_is_no_verdict(found, says):
    with pytest.raises(CouldNotSee, match=says):
        fact(disruption.followed, types.SimpleNamespace(name="master"), {"master": found})


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (Trouble("master", "ssh: timed out"), "ssh: timed out"),
        (followed(created=Presence(False, True, True)), "the NAT rules did not change"),
        (followed(routes=(frozenset(),) * 3), "no route at all"),
    ],
)
def test_unchanged_routes_need_changed_rules_and_a_listing(found, says):
    assert fact(disruption.all_followed, {"master": followed()}) == (followed(),)
    with pytest.raises(CouldNotSee, match=says):
        fact(disruption.all_followed, {"worker1": followed(), "master": found})


def test_routes_are_judged_by_the_cidrs_that_the_api_names():
    known, nets = recording.objects(), [ipaddress.ip_network(cidr) for cidr in ("10.42.0.0/24", "10.43.0.0/16", "10.43.77.7/32")]
    published = dataclasses.replace(known, service_cidrs=(nets[1],))

    assert {nets[0], nets[1]} <= set(fact(disruption.pod_and_service_cidrs, published, (followed(),)))
    assert {nets[0], nets[2]} <= set(fact(disruption.pod_and_service_cidrs, dataclasses.replace(known, service_cidrs=()), (followed(),)))


# The counters' commands, run here with a stand-in for the conntrack program.


@pytest.mark.parametrize(
    ("addresses", "kept"),
    [(["10.43.0.1"], 1), (["10.43.0.10", "10.43.0.1"], 2), (["10.43.0.2"], 0), ([], 0)],
    ids=["one", "two", "none matches", "no address"],
)
def test_conntrack_keeps_the_entries_of_the_addresses_and_no_match_is_no_error(tmp_path, addresses, kept):
    tool = tmp_path / "conntrack"
    tool.write_text("#!/bin/sh\nprintf 'udp src=1.1.1.1 dst=10.43.0.1 sport=1\\nudp src=1.1.1.1 dst=10.43.0.10 sport=2\\n'\n")
    tool.chmod(0o755)

    done = shell(counters.conntrack("conntrack", [ipaddress.ip_address(a) for a in addresses]), path=tmp_path)

    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == kept


def test_a_conntrack_that_fails_is_no_empty_table(tmp_path):
    tool = tmp_path / "conntrack"
    tool.write_text("#!/bin/sh\necho 'Operation failed: insufficient rights' >&2; exit 3\n")
    tool.chmod(0o755)

    assert shell(counters.conntrack("conntrack", [VIP]), path=tmp_path).returncode == 3
