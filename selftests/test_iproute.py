"""ip's listings, JSON and text, as iproute2 6.1 prints them and as other versions and installations do."""

import ipaddress
import json
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicepath.model.host import Route, RoutingRule, with_links
from servicepath.parse import iproute
from servicepath.parse.errors import ParseError

DATA = pathlib.Path(__file__).parent / "data"
REAL = DATA / "iproute-6.1"
CASES = DATA / "cases"


def ip(text):
    return ipaddress.ip_address(text)


def net(text):
    return ipaddress.ip_network(text)


def read(name, folder=REAL):
    return (folder / name).read_text()


def by_name(interfaces):
    return {interface.name: interface for interface in interfaces}


def shown(facts):
    return [str(fact) for fact in facts]


def test_addresses_read_the_same_from_json_and_text():
    from_json, from_text = iproute.parse_ip_addr(read("addr.json")), iproute.parse_ip_addr(read("addr.txt"))
    assert shown(from_json) == shown(from_text)
    assert [i.addresses for i in from_json] == [i.addresses for i in from_text]
    host = by_name(from_json)["cilium_host"]
    assert (host.link, host.mtu, host.up, host.holds(ip("10.42.0.9"))) == ("cilium_net", 1500, True, True)


def test_links_read_the_same_from_json_and_text():
    from_json, from_text = iproute.parse_ip_link(read("link.json")), iproute.parse_ip_link(read("link.txt"))
    assert from_json == from_text
    tunnel = by_name(from_json)["cilium_vxlan"]
    assert (tunnel.kind, tunnel.vxlan_id, tunnel.vxlan_port, tunnel.up) == ("vxlan", None, 8472, True)
    joined = by_name(with_links(iproute.parse_ip_addr(read("addr.json")), from_json))
    assert (joined["cilium_vxlan"].vxlan_port, joined["cilium_host"].kind) == (8472, "veth")
    assert joined["enp1s0"].holds(ip("fd00:55::10"))


@pytest.mark.parametrize("name", ["br-addr.json", "br-addr.txt"])
def test_brief_listings_hold_names_states_and_addresses(name):
    brief, full = by_name(iproute.parse_ip_addr(read(name))), by_name(iproute.parse_ip_addr(read("addr.json")))
    assert {n: (i.addresses, i.up) for n, i in brief.items()} == {n: (i.addresses, i.up) for n, i in full.items()}
    assert brief["cilium_host"].mtu is None


def test_objects_that_a_filter_hid_are_no_interfaces():
    assert [i.name for i in iproute.parse_ip_addr(read("addr-filtered.json"))] == ["cilium_vxlan"]


def test_routes_read_the_same_from_json_and_text():
    from_json, from_text = iproute.parse_ip_route(read("route-all.json")), iproute.parse_ip_route(read("route-all.txt"))
    assert from_json == from_text
    routes = {(r.table, str(r.destination)): r for r in from_json}
    remote = routes["main", "10.42.1.0/24"]
    assert (remote.via, remote.device, remote.source, remote.mtu) == (ip("10.42.0.9"), "cilium_host", ip("10.42.0.9"), 1450)
    assert routes["2004", "0.0.0.0/0"].type == "local"
    assert routes["2004", "::/0"].type == "local"
    assert routes["main", "::/0"].via == ip("fd00:55::1")
    assert routes["main", "10.94.0.0/24"].mtu == 1400  # "mtu lock 1400" in text
    assert routes["main", "10.92.0.0/24"].via == ip("fe80::1")
    assert [str(hop.via) for hop in routes["main", "10.95.0.0/24"].nexthops] == ["192.168.55.1", "192.168.55.2"]
    assert routes["main", "10.95.0.0/24"].devices == {"enp1s0"}
    assert {routes[key].type for key in [("main", "10.98.0.1/32"), ("main", "10.97.0.0/24"), ("77", "10.96.0.0/24")]} == {
        "blackhole", "prohibit", "throw",
    }  # fmt: skip


def test_an_encapsulation_in_a_route_is_not_its_destination_or_source():
    # ip prints the encapsulation's dst and src beside the route's own, in JSON under the same name.
    for name in ("route-all.json", "route-all.txt"):
        route = next(r for r in iproute.parse_ip_route(read(name)) if r.destination == net("10.93.0.0/24"))
        assert (route.device, route.source) == ("enp1s0", None)


def test_rules_read_the_same_from_json_and_text():
    from_json, from_text = iproute.parse_ip_rule(read("rule.json")), iproute.parse_ip_rule(read("rule.txt"))
    assert from_json == from_text
    rules = {rule.priority: rule for rule in from_json}
    assert (rules[9].fwmark, rules[9].table) == ("0x200/0xf00", "2004")
    assert (rules[200].source, rules[200].destination, rules[200].iif) == (net("10.1.0.0/16"), net("10.2.0.1/32"), "enp1s0")
    assert rules[201].negated
    assert (rules[202].action, rules[202].table, rules[207].action) == ("unreachable", None, "nop")
    assert (rules[204].goto, rules[204].other) == (32766, ("ipproto tcp", "dport 80"))
    assert (rules[205].suppress_prefixlength, rules[205].other) == (0, ("uidrange 100-200",))


@pytest.mark.parametrize("address", ["10.43.0.10", "10.42.1.113", "192.168.55.10", "10.95.0.1"])
def test_lookups_read_the_same_from_json_and_text(address):
    from_json = iproute.parse_ip_route_get(read(f"get-{address}.json"), ip(address))
    assert from_json == iproute.parse_ip_route_get(read(f"get-{address}.txt"), ip(address))


def test_a_lookup_says_device_source_and_mtu():
    found = iproute.parse_ip_route_get(read("get-10.42.1.113.json"), ip("10.42.1.113"))
    assert (found.device, found.via, found.source, found.mtu, found.type) == ("cilium_host", None, ip("10.42.0.9"), 1450, "unicast")
    assert iproute.parse_ip_route_get(read("get-192.168.55.10.json"), ip("192.168.55.10")).type == "local"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("10.99.1.1", "unreachable"), ("10.98.0.1", "blackhole"), ("10.97.0.1", "prohibit"), ("none", "unreachable")],
)
def test_a_refusal_of_the_kernel_is_an_answer(name, kind):
    address = ip("10.43.0.10" if name == "none" else name)
    assert iproute.parse_ip_route_get("", address, error_text=read(f"get-{name}.err")).type == kind


def test_no_answer_and_another_questions_answer_are_errors():
    with pytest.raises(ParseError, match="a route, or the kernel's refusal"):
        iproute.parse_ip_route_get("", ip("10.43.0.10"), error_text="Device not found")
    with pytest.raises(ParseError, match=r"the answer for 10\.43\.0\.11"):
        iproute.parse_ip_route_get(read("get-10.43.0.10.json"), ip("10.43.0.11"))


@pytest.mark.parametrize("parse", [iproute.parse_ip_addr, iproute.parse_ip_link, iproute.parse_ip_route, iproute.parse_ip_rule])
def test_nothing_printed_is_nothing_there(parse):
    assert parse("") == parse("[]") == parse("\n") == ()


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (iproute.parse_ip_addr, "Object \"adr\" is unknown, try \"ip help\".\n"),
        (iproute.parse_ip_addr, '[{"ifindex":1,"flags":[]}]'),
        (iproute.parse_ip_addr, '[{"ifname":"lo","flags":[],"mtu":"big"}]'),
        (iproute.parse_ip_addr, "1: lo: <UP> qdisc noqueue\n"),
        (iproute.parse_ip_addr, "1: lo: <UP> mtu 65536\n    inet 127.0.0.1\n"),
        (iproute.parse_ip_addr, '{"ifname":"lo"}'),
        (iproute.parse_ip_route, '[{"dst":"10.42.1.1/24"}]'),
        (iproute.parse_ip_route, "10.42.1.0/24 via\n"),
        (iproute.parse_ip_route, "Error: ipv4: FIB table does not exist.\n"),
        (iproute.parse_ip_route, "["),  # what ip -j prints when the table does not exist
        (iproute.parse_ip_rule, '[{"src":"all"}]'),
        (iproute.parse_ip_rule, '[{"priority":1,"src":"all","action":"new"}]'),
        (iproute.parse_ip_rule, "9:\tfrom all fwmark 0x200/0xf00\n"),
    ],
)  # fmt: skip
def test_what_is_no_listing_is_an_error(parse, text):
    with pytest.raises(ParseError):
        parse(text)


@pytest.mark.parametrize("name", ["addr.json", "link.json", "route-all.json", "rule.json"])
@given(cut=st.floats(0, 1, exclude_max=True))
def test_json_that_was_cut_off_is_an_error(name, cut):
    text = read(name).strip()
    parse = {"addr": iproute.parse_ip_addr, "link": iproute.parse_ip_link, "rout": iproute.parse_ip_route, "rule": iproute.parse_ip_rule}
    part = text[: int(len(text) * cut)]
    if part:
        with pytest.raises(ParseError):
            parse[name[:4]](part)


ADDRESSES = st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6))
DEVICES = st.from_regex(r"[a-z][a-z0-9_.]{0,13}", fullmatch=True)


@st.composite
def routes(draw):
    version = draw(st.sampled_from([4, 6]))
    address, bits = draw(st.ip_addresses(v=version)), draw(st.integers(0, 32 if version == 4 else 128))
    same = st.none() | st.ip_addresses(v=version)
    via = draw(st.ip_addresses(v=version))  # tells a default route's family
    return Route(
        destination=ipaddress.ip_network((address, bits), strict=False),
        type=draw(st.sampled_from(["unicast", "local", "blackhole", "throw"])),
        table=draw(st.sampled_from(["main", "local", "2004"])),
        via=via,
        device=draw(st.none() | DEVICES),
        source=draw(same),
        mtu=draw(st.none() | st.integers(68, 65535)),
        metric=draw(st.none() | st.integers(0, 4294967295)),
        protocol=draw(st.sampled_from([None, "kernel", "50"])),
    )


@given(routes())
def test_a_route_that_is_printed_reads_the_same(route):
    assert iproute.parse_ip_route(f"{route}\n") == (route,)


@st.composite
def rules(draw):
    goto, table = draw(st.sampled_from([(None, "main"), (None, "2004"), (100, None), (None, None)]))
    return RoutingRule(
        priority=draw(st.integers(0, 32767)),
        source=draw(st.none() | st.just(net("10.1.0.0/16"))),
        destination=draw(st.none() | st.just(net("10.43.0.0/16"))),
        fwmark=draw(st.sampled_from([None, "0x200/0xf00", "0x5", "0/0x1"])),
        table=table,
        action="goto" if goto else None if table else draw(st.sampled_from(["unreachable", "blackhole", "nop"])),
        negated=draw(st.booleans()),
        iif=draw(st.none() | DEVICES),
        oif=draw(st.none() | DEVICES),
        goto=goto,
        suppress_prefixlength=draw(st.none() | st.just(0)) if table else None,
        other=draw(st.sampled_from([(), ("ipproto tcp", "dport 80")])),
    )


@given(rules())
def test_a_rule_that_is_printed_reads_the_same(rule):
    assert iproute.parse_ip_rule(f"{rule}\n") == (rule,)


def test_numbers_for_names_and_old_fields_are_read():
    route = iproute.parse_ip_route('[{"dst":"local","dst":"x"},{}]'.replace('"local","dst":"x"', '"default","table":200,"protocol":50'))[0]
    assert (route.table, route.protocol, route.destination) == ("200", "50", net("0.0.0.0/0"))
    assert iproute.parse_ip_rule('[{"priority":0,"src":"all","table":255}]')[0].table == "255"
    assert iproute.parse_ip_route('[{"dst":"default","dev":"lo","pref":"medium"}]')[0].destination == net("::/0")
    assert iproute.parse_ip_route('[{"dst":"default","dev":"lo"}]', family=6, table="2004")[0].table == "2004"


@pytest.mark.parametrize(
    ("case", "name", "count"),
    [
        ("05-eks-dash-s-no-cluster-cidr", "ip-addr.txt", 3),
        ("12-ipvs-dummy-holds-vips", "ip-addr.txt", 3),
        ("12-ipvs-dummy-holds-vips", "ip-j-addr.json", 2),
        ("16-vxlan-tunnel-capture", "ip-j-addr.json", 13),
        ("19-vxlan-port-taken", "ip-link.txt", 5),
        ("19-vxlan-port-taken", "ip-j-d-link-type-vxlan.json", 2),
        ("20-k3s-svclb-pod-netns", "svclb-pod-ip-j-addr.json", 2),
        ("22-route-and-mtu-shapes", "ip-addr-cilium.txt", 4),
        ("22-route-and-mtu-shapes", "ip-br-addr.txt", 5),
        ("22-route-and-mtu-shapes", "gke-addr.txt", 3),
        ("22-route-and-mtu-shapes", "ip-link-bond0.txt", 1),
    ],
)
def test_listings_of_the_cases_are_read_whole(case, name, count):
    assert len(iproute.parse_ip_addr(read(name, CASES / case))) == count


def test_names_with_dots_and_ends_in_other_namespaces():
    eks = by_name(iproute.parse_ip_addr(read("ip-addr.txt", CASES / "05-eks-dash-s-no-cluster-cidr")))
    assert (eks["vlan.eth.2"].link, eks["vlan.eth.2"].link_index) == ("eth2", None)
    assert (eks["eni5f2d60c848c"].link, eks["eni5f2d60c848c"].link_index) == (None, 3)
    assert by_name(iproute.parse_ip_link(read("ip-link.txt", CASES / "19-vxlan-port-taken")))["flannel.1"].up


def test_case_16_text_and_json_of_routes_and_of_the_tunnel_agree():
    case = CASES / "16-vxlan-tunnel-capture"
    assert iproute.parse_ip_route(read("ip-route.txt", case)) == iproute.parse_ip_route(read("ip-j-route.json", case))
    text, exact = (
        iproute.parse_ip_link(read(f"ip-{form}-link-cilium_vxlan.{end}", case))[0] for form, end in (("d", "txt"), ("j-d", "json"))
    )
    assert text == exact
    assert (exact.vxlan_id, exact.vxlan_port) == (None, 8472)


def test_case_22_shapes():
    case = CASES / "22-route-and-mtu-shapes"
    table_200 = iproute.parse_ip_route(read("ip-route-table-200.txt", case), table="200")[0]
    assert (table_200.type, table_200.table, table_200.protocol, table_200.device) == ("local", "200", "50", "cilium_vxlan")
    assert [r.table for r in iproute.parse_ip_rule(read("ip-rule.txt", case))] == ["2004", "local", "main", "default"]
    gke = iproute.parse_ip_addr(read("gke-addr.txt", case))
    assert [i.name for i in gke if i.holds(ip("10.8.1.1"))] == ["gke52f8ac0a1b2", "gkedf31c7e9f00"]
    with pytest.raises(ParseError):
        iproute.parse_ip_route(read("route-n.txt", case))  # route -n is another tool


def test_raw_holds_what_the_tool_printed():
    route = iproute.parse_ip_route(read("route-all.json"))[0]
    assert json.loads(route.raw)["dst"] == "10.96.0.0/24"
    assert iproute.parse_ip_rule(read("rule.txt"))[0].raw == "9:\tfrom all fwmark 0x200/0xf00 lookup 2004"
