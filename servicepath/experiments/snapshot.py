"""A node's own state in one round trip: rules, addresses, routes, sockets, kube-proxy, versions, Pods' network namespaces.

What is asked, and under which name the Observation is found (``6`` variants only with IPv6):

    iptables-nft-save, iptables-legacy-save      all tables with counters; status 127: that back end's tool is absent
    ip-tables-names                              tables of the legacy back end that the kernel has; status 1: it has none at all
    ip6tables-nft-save, ip6tables-legacy-save    the same for IPv6
    ip-addr, ip-route, ip-rule                   JSON of iproute2; ip-addr with link details, ip-route with every table
    ip6-route, ip6-rule                          IPv6
    route-get-10.43.0.10                         the kernel's answer for one address (``lookup_name``); status 2: unreachable
    listeners                                    ss -Htulnp
    nft-kube-proxy                               nft -j list table ip kube-proxy; status 1 and "No such file": no such table
    nft-other-tables                             nft -j list table of each other table that has a chain at prerouting or output,
                                                 a line each; without iptables' nat and filter, which iptables-nft-save prints
    kube-proxy-mode                              127.0.0.1:10249/proxyMode; status 127: no curl, wget or python3
    kube-proxy-sync                              the sync times among kube-proxy's metrics
    kernel, os-release, tool-versions            as text; a tool that is absent has no line
    pod-namespaces                               lines ``<Pod IP> <path> <ip -j addr in it>`` for those of the Pods' IPs that one of
                                                 the node's network namespaces holds
"""

from __future__ import annotations

import functools
import ipaddress
import shlex
from collections.abc import Iterable, Sequence

from ..channel import Command
from ..model.addresses import IPAddress
from ..observation import LOOKUP, Observation

# Where container runtimes mount network namespaces: CNI's (containerd, CRI-O, k3s) and Docker's.
_NAMESPACES = "/run/netns/* /var/run/docker/netns/*"

# A tool of its own for each back end, else the multi-call binary that k3s brings, else plain iptables-save when its version
# says that it is the back end that is asked for ("(nf_tables)", "(legacy)", nothing before 1.8).
_SAVE = """
for tool in {family}-{backend}-save "xtables-{backend}-multi {family}-save"; do
  if command -v "${{tool%% *}}" >/dev/null; then exec $tool -c{table}; fi
done
case "$({family}-save -V 2>/dev/null || {family} -V 2>/dev/null)" in
  {pattern}) exec {family}-save -c{table};;
esac
echo "{family}-{backend}-save: not found" >&2; exit 127
"""
_PATTERN = {"nft": "*nf_tables*", "legacy": "*legacy*|*' v1.'[4-7]*"}

# Which base chains there are tells which tables to list: the thousands of rules of kube-proxy's are not to be printed a second time.
# iptables prints its own nat, filter and security tables, as long as they have nothing that it cannot print; but it leaves a target out
# that it does not know (`ip daddr set`, vmap): mangle and raw are listed for that, and nat where its two chains hold such a rule. In JSON
# nft 1.0.6 does not say which tables are dormant.
_OTHER_TABLES = r"""
chains=$(nft list chains) || exit
printf '%s\n' "$chains" | grep -B 2 -E '^table |hook (prerouting|output) ' | while read -r word first second hook by priority rest; do
  case $word in
    table) family=$first; table=$second; chain=; listed=;;
    chain) chain=$first;;
    type)
      own="$family $table $chain $first $hook $priority"; chain=
      [ -z "$listed" ] || continue
      case $own in
        "ip kube-proxy "*|"ip6 kube-proxy "*) continue;;
        ip*" nat PREROUTING nat prerouting dstnat;"|ip*" nat PREROUTING nat prerouting -100;"|\
        ip*" nat OUTPUT nat output dstnat;"|ip*" nat OUTPUT nat output -100;")
          set -- $own
          nft list chain "$1" nat "$3" </dev/null | grep -qE ' set | vmap ' || continue;;
        ip*" filter OUTPUT filter output filter;"|ip*" filter OUTPUT filter output 0;") continue;;
        ip*" security OUTPUT filter output security;"|ip*" security OUTPUT filter output 50;") continue;;
        "ip "*|"ip6 "*|"inet "*) ;;
        *) continue;;
      esac
      listed=yes
      nft list table "$family" "$table" </dev/null | grep -q '^[[:space:]]flags .*dormant' && continue
      nft -j list table "$family" "$table" </dev/null || exit;;
  esac
done
"""

_FETCH = """
url=http://127.0.0.1:10249/{path}
answer=$(if command -v curl >/dev/null; then curl -sS -f --max-time 3 $url
elif command -v wget >/dev/null; then wget -q -O - -T 3 $url
elif command -v python3 >/dev/null; then
  python3 -c 'import sys, urllib.request as u; sys.stdout.write(u.urlopen(sys.argv[1], timeout=3).read().decode())' $url
else echo "curl: not found" >&2; exit 127; fi) || exit
printf '%s\\n' "$answer" | {filter}
"""
_SYNC = "grep _sync_proxy_rules_last_"

_VERSIONS = """
show() {
  command -v "$1" >/dev/null || return 0
  said=$("$@" 2>&1); printf '%s\\t%s\\n' "$1" "${said%%
*}"
}
show iptables-save -V; show iptables-nft-save -V; show iptables-legacy-save -V; show ip -V; show nft -v; show tcpdump --version
show conntrack -V; show dig -v; show python3 -V; show nsenter -V
"""


def commands(
    *, lookups: Sequence[IPAddress], pod_ips: Sequence[IPAddress] = (), ipv6: bool = False
) -> tuple[Command, ...]:
    """The batch for one node.

    Args:
        lookups: the addresses to ask the kernel's way to: ClusterIPs under test, remote backends, one address of each other
            node's PodCIDR.
        pod_ips: Pods of this node whose network namespace is to be found: the client Pod, backends of Services under test.
        ipv6: whether the cluster has IPv6 too.
    """
    found = [*_rules("iptables"), *(_rules("ip6tables") if ipv6 else ())]
    found += [
        Command("ip-tables-names", ("cat", "/proc/net/ip_tables_names")),
        Command("ip-addr", ("ip", "-j", "-d", "addr", "show")),
        Command("ip-route", ("ip", "-4", "-j", "route", "show", "table", "all")),
        Command("ip-rule", ("ip", "-4", "-j", "rule", "show")),
        Command("listeners", ("ss", "-Htulnp")),
        Command("nft-kube-proxy", ("nft", "-j", "list", "table", "ip", "kube-proxy")),
        Command("nft-other-tables", ("sh", "-c", _OTHER_TABLES.strip())),
        Command("kube-proxy-mode", ("sh", "-c", _FETCH.format(path="proxyMode", filter="cat").strip())),
        Command("kube-proxy-sync", ("sh", "-c", _FETCH.format(path="metrics", filter=_SYNC).strip())),
        Command("kernel", ("uname", "-r")),
        Command("os-release", ("cat", "/etc/os-release")),
        Command("tool-versions", ("sh", "-c", _VERSIONS.strip())),
    ]
    if ipv6:
        found.append(Command("ip6-route", ("ip", "-6", "-j", "route", "show", "table", "all")))
        found.append(Command("ip6-rule", ("ip", "-6", "-j", "rule", "show")))
    found += [Command(lookup_name(ip), ("ip", "-j", "route", "get", str(ip))) for ip in dict.fromkeys(lookups)]
    if pod_ips:
        found.append(Command("pod-namespaces", ("sh", "-c", _find_namespaces(pod_ips)), timeout=20))
    return tuple(found)


@functools.cache
def lookup_name(ip: IPAddress) -> str:
    """The name of the Observation that answers ``ip route get`` for an address (fit for a file: an IPv6 colon is a dash)."""
    return f"{LOOKUP}{str(ip).replace(':', '-')}"


def namespaces(observation: Observation) -> dict[IPAddress, tuple[str, str]]:
    """Pod IP → path of its network namespace and its addresses (``ip -j addr``); an IP that no namespace holds is absent.

    Args:
        observation: ``pod-namespaces``.
    """
    lines = (line.split(" ", 2) for line in observation.text.splitlines())
    return {ipaddress.ip_address(ip): (path, addresses) for ip, path, addresses in lines}


def save_rules(family: str, backend: str, table: str | None = None) -> tuple[str, ...]:
    """The command that prints the rules of one back end with their counters; status 127 where the node has no program for it.

    Args:
        family: iptables or ip6tables.
        backend: nft or legacy.
        table: only this one; None for all.
    """
    only = f" -t {table}" if table else ""
    return ("sh", "-c", _SAVE.format(family=family, backend=backend, pattern=_PATTERN[backend], table=only).strip())


def _rules(family: str) -> Iterable[Command]:
    return (Command(f"{family}-{backend}-save", save_rules(family, backend)) for backend in _PATTERN)


def _find_namespaces(ips: Sequence[IPAddress]) -> str:
    # iproute2 prints JSON without blanks, and "local" is the interface's own address.
    words = " ".join(shlex.quote(str(ip)) for ip in ips)
    return f"""
left="{words}"
for path in {_NAMESPACES}; do
  [ -n "$left" ] || break
  [ -e "$path" ] || continue
  seen=$(nsenter --net="$path" ip -j addr show 2>/dev/null) || continue
  rest=
  for ip in $left; do
    case "$seen" in *'"local":"'"$ip"'"'*) echo "$ip $path $seen";; *) rest="$rest $ip";; esac
  done
  left=${{rest# }}
done
""".strip()
