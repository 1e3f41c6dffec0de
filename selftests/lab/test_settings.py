"""What of the running lab can be set: words read, pins written, the commands and manifests that follow."""

from dataclasses import replace

import pytest
import yaml

from lab import builds, chart, components, inventory, readiness, rollout, topology
from lab.__main__ import main
from lab.errors import RefusedError
from lab.settings import Settings, changed

OWN = Settings("1.19.1")
LAB = topology.load()
IMAGES = dict.fromkeys(("cilium", "cilium-operator"), "localhost/image:1")


@pytest.mark.parametrize(
    ("words", "after"),
    [
        (["proxy-mode=nftables"], replace(OWN, proxy_mode="nftables")),
        (["socket-lb=on"], replace(OWN, socket_lb=True)),
        (["kpr=true"], replace(OWN, kpr=True, socket_lb=True)),
        (["kpr=false", "socket-lb=on"], replace(OWN, socket_lb=True)),
        (["kpr=true", "proxy-mode=nftables"], replace(OWN, kpr=True, socket_lb=True, proxy_mode="nftables")),
        (["kpr=false"], OWN),
    ],
)
def test_words_make_a_set_up(words, after):
    assert changed(OWN, words) == after


def test_leaving_the_replacement_leaves_the_socket_lb_that_came_with_it():
    assert changed(replace(OWN, kpr=True, socket_lb=True), ["kpr=false"]) == OWN


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["kpr"], "'kpr' is none of kpr=true|false, socket-lb=on|off, proxy-mode=iptables|nftables"),
        (["mtu=1400"], "'mtu=1400' is none of kpr=true|false"),
        (["kpr=perhaps"], "'perhaps' is neither true nor false"),
        (["proxy-mode=ipvs"], "'ipvs' is none of iptables, nftables"),
        (["kpr=true", "socket-lb=off"], "socket-lb=off is not to be had with kpr=true"),
    ],
)
def test_other_words_are_refused_in_one_line(words, said):
    with pytest.raises(RefusedError) as refused:
        changed(OWN, words)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_change_without_a_lab_is_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("lab.preflight.os.geteuid", lambda: 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("lab.changing.images.prepare", lambda *_: None)
    monkeypatch.setattr("lab.cluster.state.read", lambda: None)
    assert main(["set", "kpr=true"]) == 1
    assert capsys.readouterr().err == "lab: the lab is not up, or not whole: python -m lab up\n"


def test_the_inventory_pins_what_was_set():
    def pins(settings):
        return inventory.content(LAB, settings, "v1.34.4")["expect"]

    assert pins(OWN) == {
        "routing": "tunnel",
        "tunnel": "vxlan",
        "cluster_cidr": "10.42.0.0/16",
        "proxy_mode": "iptables",
        "kube_proxy_replacement": "False",
        "socket_lb": False,
        "cilium": "1.19.1",
        "kubernetes": "v1.34.4",
    }
    assert pins(replace(OWN, proxy_mode="nftables"))["proxy_mode"] == "nftables"
    replaced = pins(Settings("1.19.5", kpr=True, socket_lb=True))
    assert (replaced["kube_proxy_replacement"], replaced["socket_lb"], replaced["cilium"]) == ("True", True, "1.19.5")
    assert "proxy_mode" not in replaced
    assert "cluster_cidr" not in replaced


@pytest.mark.parametrize(("settings", "kpr", "socket"), [(OWN, "false", False), (replace(OWN, socket_lb=True), "false", True)])
def test_the_charts_values_follow(settings, kpr, socket):
    values = yaml.safe_load(chart.values(LAB, IMAGES, settings))
    assert (values["kubeProxyReplacement"], values["socketLB"]["enabled"]) == (kpr, socket)


def test_with_the_replacement_the_chart_is_told_nothing_of_socket_lb():
    values = yaml.safe_load(chart.values(LAB, IMAGES, replace(OWN, kpr=True, socket_lb=True)))
    assert (values["kubeProxyReplacement"], values["socketLB"]["enabled"]) == ("true", False)


def test_kube_proxy_is_told_its_mode():
    assert "--proxy-mode=nftables" in components.kube_proxy(LAB.master, LAB, "nftables")


@pytest.mark.parametrize("version", ["1.19.5", "1.18.6"])
def test_another_version_of_cilium_is_a_module_of_its_own(version):
    module, own = builds.cilium_of(version), builds.modules()["cilium"]
    assert module.version == f"v{version}"
    assert module.target != own.target
    assert {**module.recipe, "ldflags": []} == {**own.recipe, "ldflags": []}
    flags = module.build_argv(builds.RECIPES, "cilium-agent", builds.RECIPES)
    words = flags[flags.index("-ldflags") + 1].split("ciliumVersion=")[1].rstrip("'").split()
    assert len(words) == 3
    assert words[0] == version
    text = (module.folder / "go.mod").read_text(encoding="utf-8")
    assert all(program["package"] in text for program in module.recipe["programs"].values())


def test_a_version_that_is_not_here_is_refused_with_those_that_are():
    with pytest.raises(RefusedError, match=r"no Cilium 1\.20\.0 here; there are 1\.18\.6, 1\.19\.1, 1\.19\.5"):
        builds.cilium_of("1.20.0")


class FakeHost:
    """A node that says what it is told to, by the first word that a command has."""

    name = "master"

    def __init__(self, **said):
        self.said = said

    def run(self, command):  # noqa: D102
        class Done:
            returncode, stderr = 0, ""
            stdout = self.said.get(command[0].rpartition("/")[2], "")

        return Done


IPTABLES = "-A KUBE-SEP-A -p udp -m comment --comment x -m udp -j DNAT --to-destination 10.42.1.5:53\n"
NFT = "\t\tmeta l4proto udp dnat to 10.42.1.5:53\n"
SYNCED = "kubeproxy_sync_proxy_rules_last_timestamp_seconds"
BACKEND = readiness.Backend("10.43.0.10", 53, "UDP", "10.42.1.5", 53)


@pytest.mark.parametrize(
    ("settings", "said", "complaint"),
    [
        (OWN, {"iptables-save": IPTABLES}, None),
        (OWN, {}, "no kube-proxy rule for 10.42.1.5:53/udp"),
        (OWN, {"iptables-save": IPTABLES, "nft": NFT}, "1 rules of kube-proxy in nftables mode are still there"),
        (replace(OWN, proxy_mode="nftables"), {"nft": NFT}, None),
        (replace(OWN, proxy_mode="nftables"), {"nft": NFT, "iptables-save": IPTABLES}, "in iptables mode are still there"),
        (replace(OWN, kpr=True), {}, None),
        (replace(OWN, kpr=True), {"iptables-save": IPTABLES}, "in iptables mode are still there"),
    ],
)
def test_rules_of_one_mode_and_of_no_other(settings, said, complaint):
    found = readiness.proxy_state(FakeHost(**said), [BACKEND], settings)
    assert found is None if complaint is None else complaint in found


@pytest.mark.parametrize(("value", "synced"), [("1.7e+09", True), ("0", False)])
def test_a_kube_proxy_that_has_just_started_is_waited_for(value, synced):
    class Host(FakeHost):
        def run(self, command):
            done = super().run(command)
            done.stdout = "nftables" if command[-1].endswith("proxyMode") else f'{SYNCED}{{ip_family="IPv4"}} {value}\n'
            return done

    assert (readiness.proxy_synced(Host(), "nftables") is None) == synced
    assert "not iptables" in readiness.proxy_synced(Host(), "iptables")


AGENTS = {
    "metadata": {"generation": 2},
    "status": {"observedGeneration": 2, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 3},
}
OPERATOR = {
    "metadata": {"generation": 1},
    "spec": {"replicas": 1},
    "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
}


@pytest.mark.parametrize(
    ("agents", "operator", "complaint"),
    [
        ({}, {}, None),
        ({"observedGeneration": 1}, {}, "not seen by its controller yet"),
        ({"updatedNumberScheduled": 1, "numberAvailable": 2}, {}, "agents: 1 of 3 updated, 2 available"),
        ({}, {"replicas": 2}, "operator: 1 of 1 updated, 1 available, 2 in all"),
    ],
)
def test_a_rollout_is_done_when_all_run_what_is_wanted(agents, operator, complaint):
    class FakeApi:
        def get(self, path):
            said, change = (AGENTS, agents) if path == rollout.AGENTS else (OPERATOR, operator)
            return {**said, "status": {**said["status"], **change}}

    found = rollout.complaint(FakeApi())
    assert found is None if complaint is None else complaint in found


def test_pods_that_run_since_before_the_reboot_are_named():
    def pod(name, started, ready="True"):
        status = {"conditions": [{"type": "Ready", "status": ready}], "containerStatuses": [{"state": {"running": {"startedAt": started}}}]}
        return {"metadata": {"name": name}, "status": status}

    class FakeApi:
        def get(self, path):
            late = pod("late", "2026-11-30T08:06:00Z", "False")
            return {"items": [pod("old", "2026-11-30T08:00:00Z"), pod("new", "2026-11-30T08:05:00Z"), late]}

    assert readiness.pods_started(FakeApi(), "worker1", "2026-11-30T08:05:00Z") == "not started again: late, old"
