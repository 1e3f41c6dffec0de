"""The doctor: one line a check, with a remedy, and an exit status that says whether everything can be seen."""

from __future__ import annotations

import fake_api
import fake_ssh
import pytest

from servicepath import doctor, inventory

NODE_IP = "203.0.113.7"


def node(name):
    status = {
        "addresses": [{"type": "InternalIP", "address": NODE_IP}],
        "conditions": [{"type": "Ready", "status": "True"}],
        "nodeInfo": {"kubeletVersion": "v1.34.4", "kernelVersion": "6.1", "osImage": "Debian", "containerRuntimeVersion": "c"},
    }
    return {"metadata": {"name": name}, "spec": {}, "status": status}


def pod(name, namespace, ip, labels=None, host_network=False):
    status = {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": [{"type": "Ready", "status": "True"}]}
    spec = {"nodeName": "master", "hostNetwork": host_network, "containers": [{"name": "cilium-agent" if labels else "c"}]}
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels or {}}, "spec": spec, "status": status}


DNS = {
    "metadata": {"name": "kube-dns", "namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}},
    "spec": {"type": "ClusterIP", "clusterIP": "10.43.0.10", "clusterIPs": ["10.43.0.10"],
             "ports": [{"name": "dns", "port": 53, "protocol": "UDP"}]},
}  # fmt: skip


@pytest.fixture
def api():
    with fake_api.serve() as server:
        server.documents["/api/v1/nodes"] = {"items": [node("master")]}
        server.documents["/api/v1/services"] = {"items": [DNS]}
        agent = pod("cilium-x", "kube-system", NODE_IP, {"k8s-app": "cilium"}, host_network=True)
        server.documents["/api/v1/pods"] = {"items": [agent, pod("client", "default", "10.42.0.9")]}
        server.documents["/api/v1/namespaces/kube-system/configmaps/cilium-config"] = {"data": {}}
        yield server


@pytest.fixture
def tools(tmp_path, monkeypatch):
    fake = fake_ssh.FakeSsh(tmp_path)
    for tool in ("ip", "ss", "nsenter", "python3", "tcpdump", "conntrack", "nft"):
        fake.program(tool, "exit 0")
    fake.program("iptables-nft-save", "echo '-A KUBE-SVC-TCOU7JCQXEZGVUNU -j KUBE-SEP-1'")
    fake.program("iptables-legacy-save", "exit 0")
    fake.program("cilium-dbg", "echo 'Client: 1.19.1'; echo 'Daemon: 1.19.1 d0d0c879'")
    monkeypatch.setenv("PATH", fake_ssh.on_path(tmp_path))
    return fake


@pytest.fixture
def examine(api, tools, tmp_path, capsys):
    api.write_kubeconfig(tmp_path / "kubeconfig.yaml")
    (tmp_path / "inventory.yaml").write_text("kubeconfig: kubeconfig.yaml\nnodes: {master: }\nlan_client: {host: desk}\n")

    def run() -> tuple[int, str]:
        status = doctor.main(["--inventory", str(tmp_path / "inventory.yaml")])
        return status, capsys.readouterr().out

    return run


def test_when_all_is_well_each_check_is_one_line(examine):
    status, said = examine()

    assert status == doctor.OK, said
    assert said.splitlines()[1:] == [
        "✔ api          reached: v1.34.4+k3s1, 1 nodes",
        next(line for line in said.splitlines() if line.startswith("✔ api          rights: all ")),
        "✔ master       reached, as root",
        "✔ master       tools: ip, ss, nsenter, python3, tcpdump, conntrack, nft",
        "✔ master       iptables: iptables-nft 1 rules of Services, iptables-legacy 0 rules of Services",
        "✔ desk         reached, as root".replace("desk      ", "lan-client"),
        "✔ lan-client   tools: ip, python3",
        "✔ api          Services under test: kube-system/kube-dns",
        "✔ master       client Pod: default/client",
        "✔ master       Cilium agent: 1.19.1 d0d0c879",
        "10 checks, all good",
    ]


def test_a_refused_sudo_is_one_line_with_a_remedy_and_status_3(examine, tools):
    tools.program("sudo", "echo 'sudo: a password is required' >&2; exit 1")
    tools.program("id", "echo 1000")

    status, said = examine()

    assert status == doctor.CANNOT_SEE
    assert "✘ master       sudo refused: a password is required" in said
    assert "NOPASSWD: /bin/sh" in said


def test_rules_in_both_back_ends_are_told(examine, tools):
    tools.program("iptables-legacy-save", "echo '-A KUBE-SVC-TCOU7JCQXEZGVUNU -j KUBE-SEP-1'")

    status, said = examine()

    assert status == doctor.CANNOT_SEE
    assert "rules in both back ends" in said


def test_a_missing_right_is_named(examine, api):
    api.denied = {("create", "pods/exec")}

    status, said = examine()

    assert status == doctor.CANNOT_SEE
    assert "✘ api          right missing: create pods/exec in kube-system" in said
    assert "kubectl apply -f docs/rights/rbac.yaml" in said


def test_an_unreachable_api_leaves_the_nodes_checks(examine, api, tmp_path):
    (tmp_path / "kubeconfig.yaml").write_text((tmp_path / "kubeconfig.yaml").read_text().replace(api.address, "http://127.0.0.1:1"))

    status, said = examine()

    assert status == doctor.CANNOT_SEE
    assert "✘ api          no answer from http://127.0.0.1:1" in said
    assert "✔ master       reached, as root" in said


def test_a_node_without_a_client_pod_is_told(examine, api):
    del api.documents["/api/v1/pods"]["items"][1]

    assert "✘ master       no client Pod" in examine()[1]


def test_a_wrong_inventory_is_one_line_and_status_2(tmp_path, capsys):
    (tmp_path / "inventory.yaml").write_text("nods: {}")

    assert doctor.main(["--inventory", str(tmp_path / "inventory.yaml")]) == doctor.WRONG_USE
    assert capsys.readouterr().err.count("\n") == 1


def test_no_connection_is_left_behind(examine, tools, monkeypatch):
    made = []
    original = doctor.SocketFolder

    def remembered():
        made.append(original())
        return made[-1]

    monkeypatch.setattr(doctor, "SocketFolder", remembered)

    examine()

    assert sum(" -O exit " in line for line in tools.calls()) == 2
    assert not made[0].path.exists()


def test_tools_that_are_absent_name_their_package():
    from servicepath import diagnosis

    checks = list(diagnosis._tools("worker1", {"ip", "ss", "nsenter", "python3", "nft"}, is_node=True))

    assert [(check.good, check.remedy) for check in checks] == [
        (False, "install the Debian package tcpdump"), (False, "install the Debian package conntrack"),
    ]  # fmt: skip


def test_without_iptables_tools_no_flavour_can_be_told():
    from servicepath import diagnosis

    assert diagnosis._flavour("worker1", {}).remedy == "install the Debian package iptables"


def test_the_rights_that_are_checked_are_those_of_the_manifest():
    import yaml

    from servicepath import diagnosis

    wanted = [text for text, _ in diagnosis._wanted(yaml.safe_load_all(diagnosis.RIGHTS.read_text(encoding="utf-8")))]

    assert {"list services", "list endpointslices.discovery.k8s.io", "create pods/exec in kube-system"} <= set(wanted)
    assert not any("servicepath-test" in text for text in wanted)


def test_the_smallest_inventory_finds_its_nodes_by_the_api(api, tools, tmp_path, capsys):
    api.write_kubeconfig(tmp_path / "k")
    (tmp_path / "inventory.yaml").write_text("kubeconfig: k\nssh: {user: me}\nlan_client: {host: desk}\n")
    tools.alias("master", "hostname 203.0.113.7")

    assert doctor.main(["--inventory", str(tmp_path / "inventory.yaml")]) == doctor.OK
    assert inventory.load(tmp_path / "inventory.yaml").nodes == {}
    assert "✔ master       reached, as root" in capsys.readouterr().out
