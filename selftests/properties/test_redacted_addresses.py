"""The map of addresses: one to one, the same for the same key, networks stay networks and what means something stays."""

from __future__ import annotations

import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from servicepath.redact.addresses import AddressMap
from servicepath.redact.prefixes import PrefixMap

KEYS = st.binary(min_size=1, max_size=64)
IPS = st.ip_addresses()
MEANT = ("0.0.0.0", "127.0.0.1", "169.254.25.10", "224.0.0.251", "255.255.255.255", "::", "::1", "ff02::1", "ff02::fb")


def shared(one, other) -> int:
    """Leading bits that two numbers of one width share."""
    return one.max_prefixlen - (int(one) ^ int(other)).bit_length()


@given(KEYS, st.integers(4, 5).map(lambda n: 4 if n == 4 else 6), st.data())
def test_two_addresses_share_as_many_leading_bits_as_before(key, version, data):
    first, second = (data.draw(st.ip_addresses(v=version)) for _ in range(2))
    addresses = AddressMap(key)
    if version == 6 and any(int(ip) >> 24 == 0xFF0200000000000000000001FF for ip in (first, second)):
        return  # 24 bits of an address stand at their end, which are mapped by themselves

    assert shared(addresses.ip(first), addresses.ip(second)) == shared(first, second)


@given(KEYS, st.sets(st.integers(0, 255), min_size=256, max_size=256), st.sampled_from([(), ((0b10, 2),)]))
def test_it_is_one_to_one(key, numbers, kept):
    found = PrefixMap(key, 8, kept=kept, subnets=((0b1100, 4),), apart=((0b111, 3),))

    assert {found(number) for number in numbers} == numbers
    assert all(found(number) >> 5 == 0b111 for number in range(0b11100000, 0b100000000))
    assert all(found(number) == number for number in range(0b10000000, 0b11000000) if kept)


@given(KEYS, IPS)
def test_the_same_key_gives_the_same_map(key, ip):
    assert AddressMap(key).ip(ip) == AddressMap(key).ip(ip)


@given(KEYS, st.ip_addresses(v=4), st.integers(8, 30), st.integers(0, 2**32 - 1))
def test_an_address_stays_in_its_network_and_first_and_last_stay_first_and_last(key, ip, length, host):
    network = ipaddress.ip_network(f"{ip}/{length}", strict=False)
    addresses = AddressMap(key, subnets=[network])
    inside = network[host % network.num_addresses]

    assert addresses.ip(inside) in addresses.network(network)
    assert addresses.ip(network[0]) == addresses.network(network)[0]
    assert addresses.ip(network[-1]) == addresses.network(network)[-1]
    assert addresses.ip(network[1]) == addresses.network(network)[1]


@given(KEYS)
def test_what_means_something_stays(key):
    addresses = AddressMap(key)

    assert [str(addresses.ip(ipaddress.ip_address(text))) for text in MEANT] == list(MEANT)
    assert addresses.mac(bytes(6)) == bytes(6)
    assert addresses.mac(b"\xff" * 6) == b"\xff" * 6


@given(KEYS, st.ip_addresses(v=4))
def test_private_stays_private_and_ipv4_inside_ipv6_is_the_same(key, ip):
    addresses = AddressMap(key)
    found = addresses.ip(ip)

    for net in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"):
        assert (ip in ipaddress.ip_network(net)) == (found in ipaddress.ip_network(net))
    assert addresses.ip(ipaddress.ip_address(f"::ffff:{ip}")) == ipaddress.ip_address(f"::ffff:{found}")
    assert addresses.ip(ipaddress.ip_address(f"64:ff9b::{ip}")) == ipaddress.ip_address(f"64:ff9b::{found}")


@given(KEYS, st.binary(min_size=6, max_size=6), st.binary(min_size=6, max_size=6))
def test_mac_addresses_differ_as_before_and_keep_what_kind_they_are(key, one, other):
    addresses = AddressMap(key)

    assert (addresses.mac(one) == addresses.mac(other)) == (one == other)
    assert addresses.mac(one)[0] & 3 == one[0] & 3


@given(KEYS)
def test_no_network_of_a_node_stays_by_chance(key):
    network = ipaddress.ip_network("192.168.55.0/24")

    assert AddressMap(key, changed=[network]).network(network) != network
