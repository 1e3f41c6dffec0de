"""nft itself as the judge: tables as kube-proxy writes them are loaded into a namespace, and what nft prints of them is read as made.

Each load has a network namespace of its own that ends with its process; nothing of the machine's own rules is seen or touched.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess

import pytest
from hypothesis import given, settings
from properties.kube_proxy_nft import WORD, Table, tables

from servicepath.model.nft_rules import NftTable
from servicepath.parse.nft import parse_kube_proxy_nft

pytestmark = [pytest.mark.lab, pytest.mark.skipif(os.geteuid() != 0, reason="loading rules needs root")]


def printed(table: Table) -> list[str]:
    """The table once the kernel holds it: as text, as text with handles, as JSON, and out of the whole ruleset."""
    name = f"{WORD[table.version]} kube-proxy"
    lists = " && echo @@ && ".join([f"nft list table {name}", f"nft -a list table {name}", f"nft -j list table {name}", "nft list ruleset"])
    command = ["unshare", "--net", "sh", "-c", f"nft -f - && {lists}"]
    done = subprocess.run(command, input=table.text(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("@@\n")


def meaning(table: NftTable) -> NftTable:
    """The kernel keeps a map's elements in an order of its own."""
    return dataclasses.replace(table, version=None, services=tuple(sorted(table.services, key=lambda each: str(each))))


@settings(max_examples=15)
@given(tables())
def test_what_nft_prints_of_a_table_that_the_kernel_holds_is_read_as_it_was_made(table):
    found = [meaning(parse_kube_proxy_nft(output)) for output in printed(table)]

    assert found == [meaning(table.facts)] * 4
