"""iptables-save's and nft's output with neutral names, addresses and hashes.

kube-proxy's names stand in comments (``--comment "kube-system/kube-dns:dns cluster IP"``), in hashes (KUBE-SVC-TCOU7JCQXEZGVUNU) and in
nft's chains (``service-FY5PMXPG-kube-system/kube-dns/udp/dns``). What other rules say in words of their own is left out.
"""

from __future__ import annotations

import re

from .mapping import Mapping
from .texts import EVERYWHERE, Texts

_CHAIN = r"(?P<prefix>\bKUBE-(?:SVC|SVL|EXT|FW|SEP|XLB)-)(?P<hash>[A-Z2-7]{16})(?![\w-])"
_NFT = (
    r"(?P<nftkind>\b(?:service|endpoint|affinity|firewall|external|local))-(?P<nfthash>[A-Z2-7]{8})-"
    r"(?P<nftns>[a-z0-9][-a-z0-9]*)/(?P<nftsvc>[a-z0-9][-a-z0-9.]*)/(?P<nftproto>tcp|udp|sctp)/(?P<nftport>[-a-z0-9]*)"
    r"(?:__(?P<nftip>[0-9a-fA-F.:]+)/(?P<nftend>\d+))?"
)
_INTRO = r'(?P<intro>--comment "?|\bcomment "|"comment":\s*")'
_NAMED = rf"(?P<named>{_INTRO}(?P<ns>[a-z0-9][-a-z0-9]*)/(?P<svc>[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)(?::(?P<port>[-a-z0-9]*))?(?=[\s\"]|$))"
_WORDS = r'(?P<words>(?:--comment |\bcomment (?=")|"comment":\s*)(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^\s"]+)))'
_SAID = r'(?P<said>(?P<option>--(?:log-prefix|nflog-prefix|ulog-prefix|string|hex-string) )(?:"(?:[^"\\]|\\.)*"|\S+))'
_LOGGED = r'(?P<logged>(?<="log":\{"prefix":)"(?:[^"\\]|\\.)*"|(?<="log": \{"prefix": )"(?:[^"\\]|\\.)*")'
_SET = r"(?P<set>(?<=--match-set )\S+)"
_OWNER = r"(?P<owner>(?<=--uid-owner |--gid-owner )[A-Za-z_]\S*)"
_RULES = re.compile("|".join((_NFT, _CHAIN, _NAMED, _WORDS, _SAID, _LOGGED, _SET, _OWNER, EVERYWHERE)), re.M)

# Whose words may stay: those of kube-proxy, kubelet, Cilium, and the network plug-ins of k3s.
_EVERYBODYS = re.compile(r"^(?:kube|cilium|flannel|CNI portfwd|cali:|KUBE-)|kubernetes|SNAT|localnet|masquerad|loopback|conntrack rule")
_ENDPOINT = re.compile(r'--comment "?([a-z0-9][-a-z0-9]*)/([a-z0-9][-a-z0-9.]*?)(?::([-a-z0-9]*))?[" ].*--to-destination (\S+)')


class Rules:
    """Rewrites rules by a Mapping; in the first pass they come back as they are."""

    def __init__(self, mapping: Mapping, texts: Texts) -> None:
        self._mapping = mapping
        self._texts = texts

    def rules(self, text: str) -> str:
        """Any of the save formats, nft's text or its JSON."""
        if not self._mapping.settled:
            for namespace, service, port, endpoint in _ENDPOINT.findall(text):
                self._mapping.chains.see((namespace, service, port), endpoint)
        return _RULES.sub(self._part, text)

    def _part(self, found: re.Match[str]) -> str:
        if found["nftkind"]:
            return self._nft(found)
        if found["hash"]:
            return found["prefix"] + (self._mapping.chains(found["hash"]) if self._mapping.settled else found["hash"])
        if found["named"]:
            return found["intro"] + self._port(found["ns"], found["svc"], found["port"])
        if found["words"]:
            said = found["quoted"] if found["quoted"] is not None else found["bare"]
            if _EVERYBODYS.search(said):
                return self._texts.plain(found[0]) if self._mapping.settled else found[0]
            return found[0].replace(said, "a-rule-of-its-own") if said else found[0]
        if found["said"]:
            return f"{found['option']}words"
        if found["logged"]:
            return '"words"'
        if found["set"]:
            return found[0] if _EVERYBODYS.search(found[0]) else self._mapping.names("set", found[0])
        if found["owner"]:
            return self._mapping.names("user", found[0])
        return self._texts.everywhere(found)

    def _port(self, namespace: str, service: str, port: str | None) -> str:
        """``namespace/service:port`` of a comment."""
        if not self._mapping.settled:
            self._mapping.chains.see((namespace, service, port or ""))
        names = self._mapping.names
        return f"{names('namespace', namespace)}/{names('service', service)}" + (f":{port}" if port is not None else "")

    def _named_ip(self, text: str) -> str:
        """An address in a name, where IPv6 has dots instead of colons."""
        six = text.count(".") != 3 or ".." in text
        new = self._mapping.ip(text.replace(".", ":") if six else text) or text
        return new.replace(":", ".")

    def _nft(self, found: re.Match[str]) -> str:
        names, mapping = self._mapping.names, self._mapping
        kind, old_hash, namespace, service, protocol, port = found.group("nftkind", "nfthash", "nftns", "nftsvc", "nftproto", "nftport")
        if not mapping.settled:
            mapping.chains.see((namespace, service, port))
        endpoint = f"__{self._named_ip(found['nftip'])}/{found['nftend']}" if found["nftip"] else ""
        text = f"{names('namespace', namespace)}/{names('service', service)}/{protocol}/{port}{endpoint}"
        before = found[0].partition(f"-{old_hash}-")[2]
        new_hash = mapping.chains.of_nft(old_hash, before, text) if mapping.settled else old_hash
        return f"{kind}-{new_hash}-{text}"
