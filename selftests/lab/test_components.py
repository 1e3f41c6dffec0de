"""Command lines keep to what the lab promises: no anonymous requests, certificates everywhere, kube-proxy as k3s runs it."""

from lab import components, topology

LAB = topology.load()


def test_the_api_server_lets_in_nobody_unknown():
    argv = components.apiserver(LAB)
    assert "--anonymous-auth=false" in argv
    assert "--authorization-mode=Node,RBAC" in argv
    assert not any("token-auth-file" in word for word in argv)
    assert any(word.startswith("--kubelet-certificate-authority=") for word in argv)


def test_no_component_may_do_everything():
    every = [components.apiserver(LAB), components.controller_manager(LAB), components.scheduler(), components.etcd()]
    every += [command for node in LAB.nodes for command in (components.kubelet(node), components.kube_proxy(node, LAB))]
    assert not [word for argv in every for word in argv if "AlwaysAllow" in word or "insecure" in word]


def test_etcd_wants_a_certificate():
    argv = components.etcd()
    assert "--client-cert-auth" in argv
    assert not any("listen-client-urls=http://" in word for word in argv)


def test_kube_proxy_is_as_in_the_notes():
    argv = components.kube_proxy(LAB.master, LAB)
    assert {"--proxy-mode=iptables", "--cluster-cidr=10.42.0.0/16", "--metrics-bind-address=127.0.0.1:10249"} <= set(argv)


def test_kube_proxy_leaves_the_machines_own_settings_alone():
    assert {word for word in components.kube_proxy(LAB.master, LAB) if word.startswith("--conntrack")} == {
        "--conntrack-max-per-core=0",
        "--conntrack-tcp-timeout-established=0",
        "--conntrack-tcp-timeout-close-wait=0",
    }
