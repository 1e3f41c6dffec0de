"""``recording.yaml`` of a folder of loose outputs: what its files do not say themselves. Every key may be left out.

files:                                  # path → what it is (servicepath/loose/whatis.py, KINDS), of which node, at which time
dump.txt: {is: iptables-legacy-save, node: worker1, time: 2}
rules.txt: iptables-save
noise.txt: ignore
nodes:                                  # where no Node list says it
worker1: {internal_ips: [192.168.55.11], pod_cidrs: [10.42.1.0/24]}
services:                               # ClusterIPs where no Service list says them
kube-system/kube-dns: 10.43.0.10
between: {host: 20}                     # flows sent between …@1 and …@2; a list where there are more times: [{pod: 20}, {host: 20}]
kubernetes: v1.28.3                     # the API server's version
expect: {proxy_mode: nftables}          # as in the inventory
judge: [kube-system/kube-dns]           # the Services to judge; without: all that the folder tells of
"""

from __future__ import annotations

import ipaddress
from typing import Annotated, Any

import pydantic
import yaml

from ..inventory import Expect, NamespacedName, Network
from ..recording.model import RecordingError
from . import whatis

IGNORE = "ignore"


def _address(value: object) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    if not isinstance(value, str):
        raise ValueError("expected an IP address")
    return ipaddress.ip_address(value)


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


Text = Annotated[str, pydantic.StringConstraints(min_length=1, strict=True)]
Address = Annotated[ipaddress.IPv4Address | ipaddress.IPv6Address, pydantic.BeforeValidator(_address)]


class _Section(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class File(_Section):
    """What one file is; None: it is left to its content and name."""

    is_: Annotated[str | None, pydantic.Field(alias="is")] = None
    node: Text | None = None
    time: Annotated[int | None, pydantic.Field(ge=1, strict=True)] = None
    table: Text | None = None

    @pydantic.field_validator("is_")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        if value is not None and value not in (*whatis.KINDS, IGNORE):
            raise ValueError(f"expected one of {', '.join((*whatis.KINDS, IGNORE))}")
        return value


class Node(_Section):
    """What a Node object would say."""

    internal_ips: Annotated[tuple[Address, ...], pydantic.BeforeValidator(_listed)] = ()
    pod_cidrs: Annotated[tuple[Network, ...], pydantic.BeforeValidator(_listed)] = ()


class Between(_Section):
    """How many new flows were sent between two readings, from where, and to which Service port where there are several."""

    host: Annotated[int | None, pydantic.Field(ge=1, strict=True)] = None
    pod: Annotated[int | None, pydantic.Field(ge=1, strict=True)] = None
    to: Annotated[str | None, pydantic.StringConstraints(pattern=r"^[^/\s]+/[^/\s:]+(:[^/\s:]+)?$", strict=True)] = None

    @pydantic.model_validator(mode="after")
    def _one(self) -> Between:
        if (self.host is None) == (self.pod is None):
            raise ValueError("expected host: or pod: with a number of flows, and not both: their counts could not be told apart")
        return self


class Hints(_Section):
    """The whole file."""

    files: dict[Text, File] = {}
    nodes: dict[Text, Node] = {}
    services: dict[NamespacedName, Annotated[tuple[Address, ...], pydantic.BeforeValidator(_listed)]] = {}
    between: tuple[Between, ...] = ()
    kubernetes: Text | None = None
    expect: Expect = Expect()
    judge: tuple[NamespacedName, ...] = ()

    @pydantic.field_validator("files", mode="before")
    @classmethod
    def _bare(cls, value: Any) -> Any:
        return {k: {"is": v} if isinstance(v, str) else v for k, v in value.items()} if isinstance(value, dict) else value

    @pydantic.field_validator("between", mode="before")
    @classmethod
    def _single(cls, value: Any) -> Any:
        return [value] if isinstance(value, dict) else value

    @pydantic.field_validator("nodes", mode="before")
    @classmethod
    def _named_only(cls, value: Any) -> Any:
        return {k: {} if v is None else v for k, v in value.items()} if isinstance(value, dict) else value


def load(content: bytes | None, place: str) -> Hints:
    """Read recording.yaml; None: there is none.

    Raises:
        RecordingError: it is no YAML, or not built as above; one line with file, key and what was expected.
    """
    if content is None:
        return Hints()
    try:
        told = yaml.safe_load(content.decode())
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as wrong:
        raise RecordingError(f"{place}: expected YAML: {' '.join(str(wrong).split())}") from wrong
    try:
        return Hints.model_validate({} if told is None else told)
    except pydantic.ValidationError as wrong:
        first = wrong.errors()[0]
        key = ".".join(map(str, first["loc"])) or "the file"
        raise RecordingError(f"{place}: {key}: {first['msg']}, found {repr(first['input'])[:120]}") from wrong
