"""Hardware addresses are the same at every start, local ones, and no two alike."""

from lab import network, topology

LAB = topology.load()


def test_a_hardware_address_has_the_ip_address_in_it():
    assert network.hardware_address(LAB.master.address) == "02:00:c0:a8:37:0a"


def test_addresses_are_local_and_all_different():
    addresses = [network.hardware_address(host.address, first) for host in LAB.hosts for first in (0x02, 0x06, 0x0A)]
    assert len(set(addresses)) == len(addresses)
    assert all(int(address[:2], 16) & 0b11 == 0b10 for address in addresses)
