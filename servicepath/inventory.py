"""What to look at: the inventory file, read and checked.

``inventory.example.yaml`` shows every key. Unknown keys and bad values are errors that name file, key and what was expected.
"""

from __future__ import annotations

import ipaddress
import pathlib
import re
from typing import Annotated, Any, Literal

import pydantic
import yaml

from .expectations import Section, Text, Upgrade, UpgradeRule
from .model.addresses import IPNetwork

LAB_INVENTORY = pathlib.Path("/run/servicepath-lab/inventory.yaml")

_NAME = r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?"

Host = Annotated[str, pydantic.StringConstraints(pattern=r"^[A-Za-z0-9_\[][^\s@]*$", strict=True)]
NamespacedName = Annotated[str, pydantic.StringConstraints(pattern=rf"^{_NAME}/{_NAME}$", strict=True)]
Speaks = Literal["dns", "tcp"]


def _network(value: object) -> IPNetwork:
    if not isinstance(value, str):
        raise ValueError("expected a network such as 10.42.0.0/16")
    return ipaddress.ip_network(value)




Network = Annotated[IPNetwork, pydantic.BeforeValidator(_network), pydantic.PlainSerializer(str)]


class InventoryError(Exception):
    """The inventory cannot be used; the text is one line: file, key, what was expected."""


class Ssh(Section):
    """How to log in everywhere; what is not said, OpenSSH's own configuration says."""

    user: Text | None = None
    config: pathlib.Path | None = None
    identity: pathlib.Path | None = None
    port: Annotated[int, pydantic.Field(ge=1, le=65535, strict=True)] | None = None


class Node(Section):
    """One node: what ssh connects to, or this very machine."""

    host: Host | None = None
    connection: Literal["ssh", "local"] = "ssh"


class KubeconfigFrom(Section):
    """A kubeconfig that is read from a node, as root over ssh."""

    node: Text
    path: Text = "/etc/rancher/k3s/k3s.yaml"
    server: Annotated[str, pydantic.StringConstraints(pattern=r"^https?://\S+$", strict=True)] | None = None


class ApiOutage(Section):
    """How to make the API unreachable, and how to bring it back."""

    node: Text
    do: Text
    undo: Text


class Expect(Section):
    """What the cluster must be; a difference is a failure of its own. None: whatever is discovered."""

    proxy_mode: Literal["iptables", "nftables", "ipvs"] | None = None
    kube_proxy_replacement: Text | None = None
    socket_lb: pydantic.StrictBool | None = None
    routing: Literal["tunnel", "native"] | None = None
    tunnel: Literal["vxlan", "geneve"] | None = None
    cluster_cidr: Network | None = None
    cilium: Text | None = None
    kubernetes: Text | None = None


class Inventory(Section):
    """The whole file; paths are absolute, or None.

    Attributes:
        nodes: empty when the API is to be asked.
        services: ``namespace/name``; empty for the cluster's DNS Service.
        pods: ``namespace/name`` of client Pods; empty for a choice on each node.
        probes: Service → port (name, or number as text) → what it speaks.
        cluster_domain: the domain of the cluster's DNS (kubelet's clusterDomain).
        deadline: seconds for the whole run.
    """

    kubeconfig: pathlib.Path | None = None
    kubeconfig_from: KubeconfigFrom | None = None
    context: Text | None = None
    ssh: Ssh = Ssh()
    nodes: dict[Text, Node] = pydantic.Field(default_factory=dict)
    lan_client: Node | None = None
    services: tuple[NamespacedName, ...] = ()
    pods: tuple[NamespacedName, ...] = ()
    probes: dict[NamespacedName, dict[str, Speaks]] = pydantic.Field(default_factory=dict)
    api_outage: ApiOutage | None = None
    expect: Expect = Expect()
    upgrade: Upgrade = Upgrade()
    cluster_domain: Text = "cluster.local"
    deadline: Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)] = 600.0
    _file: pathlib.Path = pydantic.PrivateAttr(default=pathlib.Path("inventory.yaml"))

    @property
    def file(self) -> pathlib.Path:
        """Where it was read."""
        return self._file

    @pydantic.field_validator("nodes", mode="before")
    @classmethod
    def _bare_nodes(cls, value: Any) -> Any:
        # `worker1:` with nothing behind it is a node that ssh knows by that name.
        return {k: v if v is not None else {} for k, v in value.items()} if isinstance(value, dict) else value

    @pydantic.field_validator("probes", mode="before")
    @classmethod
    def _port_numbers(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {k: {str(port): what for port, what in v.items()} if isinstance(v, dict) else v for k, v in value.items()}

    @pydantic.model_validator(mode="after")
    def _one_kubeconfig(self) -> Inventory:
        if self.kubeconfig and self.kubeconfig_from:
            raise ValueError("kubeconfig and kubeconfig_from exclude each other")
        return self


class _Loader(yaml.SafeLoader):
    """Refuses a key that is given twice, of which YAML would silently take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping whose keys differ."""
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be one word", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key.value} is given twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def find(rootdir: pathlib.Path, lab: pathlib.Path = LAB_INVENTORY) -> pathlib.Path:
    """The file to use when none is named: ./inventory.yaml, else the running lab's.

    Raises:
        InventoryError: neither is there.
    """
    for path in (rootdir / "inventory.yaml", lab):
        if path.exists():
            return path
    raise InventoryError(
        f"no inventory: write {rootdir / 'inventory.yaml'} (see inventory.example.yaml), "
        "name one with --inventory=FILE, or start the lab with: python -m lab up"
    )


def load(path: pathlib.Path) -> Inventory:
    """Read and check an inventory; relative paths in it are relative to the file.

    Raises:
        InventoryError: the file cannot be read, is no YAML, or holds what it must not.
    """
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - a SafeLoader
    except OSError as wrong:
        raise InventoryError(f"{path}: cannot be read: {wrong.strerror}") from wrong
    except UnicodeDecodeError as wrong:
        raise InventoryError(f"{path}: expected UTF-8 text: {wrong.reason} at byte {wrong.start}") from wrong
    except (yaml.YAMLError, ValueError) as wrong:  # ValueError: a date or number that cannot be
        raise InventoryError(f"{path}: {_yaml_problem(wrong)}") from wrong
    except RecursionError as wrong:
        raise InventoryError(f"{path}: not good YAML: nested too deeply") from wrong
    if not isinstance(data, dict | None):
        raise InventoryError(f"{path}: expected keys with values (see inventory.example.yaml), found {type(data).__name__}")
    try:
        inventory = Inventory.model_validate(data or {})
    except pydantic.ValidationError as wrong:
        errors = wrong.errors()
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise InventoryError(_line(path, errors[0]) + more) from wrong
    return _absolute(inventory, path)


def _absolute(inventory: Inventory, path: pathlib.Path) -> Inventory:
    base = path.resolve().parent

    def full(value: pathlib.Path | None) -> pathlib.Path | None:
        try:
            return base / value.expanduser() if value else None
        except RuntimeError as wrong:
            raise InventoryError(f"{path}: expected a path, found {str(value)!r}: {wrong}") from wrong

    ssh = inventory.ssh.model_copy(update={"config": full(inventory.ssh.config), "identity": full(inventory.ssh.identity)})
    upgrade = inventory.upgrade.model_copy(update={"helm_values": full(inventory.upgrade.helm_values)})
    found = inventory.model_copy(update={"kubeconfig": full(inventory.kubeconfig), "ssh": ssh, "upgrade": upgrade})
    found._file = path
    for key, value in (("ssh.config", ssh.config), ("ssh.identity", ssh.identity)):
        if value and not value.exists():
            raise InventoryError(f"{path}: {key}: expected a file, found none at {value}")
    return found


def _yaml_problem(wrong: Exception) -> str:
    if isinstance(wrong, yaml.MarkedYAMLError) and wrong.problem_mark:
        mark = wrong.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: not good YAML: {wrong.problem}"
    return f"not YAML: {' '.join(str(wrong).split())}"


# Where pydantic's own words name its patterns or types, a person's.
_EXPECTED: tuple[tuple[str, str], ...] = (
    (r"^(services|pods)(\.\d+)?$|^probes\.[^.]*\.\[key\]$", "expected namespace/name"),
    (r"(^|\.)host$", "expected a host name, an address or an ssh alias"),
    (r"^probes\..*", "expected dns or tcp"),
    (r"^expect\.cluster_cidr", "expected a network such as 10.42.0.0/16"),
    (r"^kubeconfig_from\.server$", "expected a URL such as https://192.168.55.10:6443"),
    (r"^ssh\.port", "expected a port, 1 to 65535"),
    (r"^upgrade\.helm_values$", "expected a path"),
    (r"^deadline$", "expected a finite number of seconds, more than 0"),
)  # fmt: skip


_LONGEST = 120  # characters of a wrong value that are shown


def _line(path: pathlib.Path, error: Any) -> str:
    parts = [str(part) for part in error["loc"]]
    key = ".".join(parts)
    key = key if key.isprintable() else repr(key)
    if error["type"] == "extra_forbidden":
        return f"{path}: {key}: unknown key; expected one of: {', '.join(sorted(_keys(parts[:-1])))}"
    if error["type"] == "missing":
        return f"{path}: {key}: expected a value, found none"
    if error["type"] == "value_error" and "ctx" in error and key.startswith("upgrade"):
        return f"{path}: {key}: {error['ctx']['error']}, found {_found(error)}"
    if error["type"] == "value_error" and not key:
        return f"{path}: {error['ctx']['error']}"
    if error["type"] in ("model_type", "dict_type"):
        return f"{path}: {key}: expected keys with values, found {_found(error)}"
    own = next((text for pattern, text in _EXPECTED if re.search(pattern, key)), None)
    expected = own or error["msg"].replace("Input should be", "expected").replace("a valid string", "text (in quotes)")
    return f"{path}: {key}: {expected}, found {_found(error)}"


def _found(error: Any) -> str:
    text = repr(error["input"])
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _keys(parts: list[str]) -> list[str]:
    model: Any = Inventory
    sections = {
        "ssh": Ssh, "nodes": Node, "lan_client": Node, "kubeconfig_from": KubeconfigFrom, "api_outage": ApiOutage, "expect": Expect,
        "upgrade": Upgrade,
    }  # fmt: skip
    if parts:
        model = sections[parts[0]]
    if parts[:2] == ["upgrade", "expect"]:
        model = UpgradeRule
    return [field.alias or name for name, field in model.model_fields.items()]
