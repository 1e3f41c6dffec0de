"""The command lines of everything that runs as a process of a host: control plane, node agents, sshd.

Flags as of Kubernetes v1.34, etcd 3.4 and containerd 1.6 (Debian 12). Nothing here runs anything.
"""

from lab.kubeconfig import API_PORT
from lab.topology import KubernetesNode, Topology

PROGRAMS = "/opt/servicepath-lab/bin"
PKI = "/etc/kubernetes/pki"
KUBECONFIGS = "/etc/kubernetes"
ETCD = "https://127.0.0.1:2379"

Argv = list[str]


def sshd() -> Argv:
    """Return sshd's command; OpenSSH insists on an absolute path."""
    return ["/usr/sbin/sshd", "-D", "-e", "-f", "/etc/ssh/servicepath-lab.conf"]


def containerd() -> Argv:
    """Return containerd's command."""
    return ["containerd", "--config", "/etc/containerd/config.toml"]


def etcd() -> Argv:
    """Return etcd's command: TLS with client certificates, and no wait for a disk, since nothing here outlives the lab."""
    return [
        "etcd",
        "--data-dir=/var/lib/etcd",
        "--unsafe-no-fsync",
        f"--listen-client-urls={ETCD}",
        f"--advertise-client-urls={ETCD}",
        "--listen-peer-urls=http://127.0.0.1:2380",
        f"--cert-file={PKI}/etcd.crt",
        f"--key-file={PKI}/etcd.key",
        "--client-cert-auth",
        f"--trusted-ca-file={PKI}/ca.crt",
    ]


def apiserver(topology: Topology) -> Argv:
    """Return kube-apiserver's command: Node and RBAC authorization, no anonymous requests."""
    return [
        f"{PROGRAMS}/kube-apiserver",
        f"--advertise-address={topology.master.address}",
        f"--secure-port={API_PORT}",
        f"--service-cluster-ip-range={topology.cluster.service_cidr}",
        "--anonymous-auth=false",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged",
        f"--client-ca-file={PKI}/ca.crt",
        f"--tls-cert-file={PKI}/apiserver.crt",
        f"--tls-private-key-file={PKI}/apiserver.key",
        f"--etcd-servers={ETCD}",
        f"--etcd-cafile={PKI}/ca.crt",
        f"--etcd-certfile={PKI}/apiserver-etcd-client.crt",
        f"--etcd-keyfile={PKI}/apiserver-etcd-client.key",
        f"--kubelet-certificate-authority={PKI}/ca.crt",
        f"--kubelet-client-certificate={PKI}/apiserver-kubelet-client.crt",
        f"--kubelet-client-key={PKI}/apiserver-kubelet-client.key",
        "--kubelet-preferred-address-types=InternalIP",
        f"--service-account-issuer=https://kubernetes.default.svc.{topology.cluster.domain}",
        f"--service-account-key-file={PKI}/service-accounts.pub",
        f"--service-account-signing-key-file={PKI}/service-accounts.key",
    ]


def controller_manager(topology: Topology) -> Argv:
    """Return kube-controller-manager's command; it alone hands out Node.spec.podCIDR."""
    cluster = topology.cluster
    return [
        f"{PROGRAMS}/kube-controller-manager",
        *_delegated("kube-controller-manager"),
        "--use-service-account-credentials",
        f"--service-account-private-key-file={PKI}/service-accounts.key",
        f"--root-ca-file={PKI}/ca.crt",
        "--allocate-node-cidrs",
        f"--cluster-cidr={cluster.cidr}",
        f"--service-cluster-ip-range={cluster.service_cidr}",
        f"--node-cidr-mask-size={cluster.node_mask}",
        "--leader-elect=false",
    ]


def scheduler() -> Argv:
    """Return kube-scheduler's command."""
    return [f"{PROGRAMS}/kube-scheduler", *_delegated("kube-scheduler"), "--leader-elect=false"]


def kubelet(node: KubernetesNode) -> Argv:
    """Return kubelet's command."""
    return [
        f"{PROGRAMS}/kubelet",
        "--config=/etc/kubernetes/kubelet.yaml",
        f"--kubeconfig={KUBECONFIGS}/kubelet.kubeconfig",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
        "--root-dir=/var/lib/kubelet",
    ]


def kube_proxy(node: KubernetesNode, topology: Topology, mode: str = "iptables") -> Argv:
    """Return kube-proxy's command: a process of the node, as k3s runs it, with its state at 127.0.0.1:10249.

    The three conntrack settings are zero (leave alone) because their sysctls belong to the machine, not to a network namespace.
    """
    return [
        f"{PROGRAMS}/kube-proxy",
        f"--kubeconfig={KUBECONFIGS}/kube-proxy.kubeconfig",
        f"--hostname-override={node.name}",
        f"--proxy-mode={mode}",
        f"--cluster-cidr={topology.cluster.cidr}",
        "--metrics-bind-address=127.0.0.1:10249",
        "--conntrack-max-per-core=0",
        "--conntrack-tcp-timeout-established=0",
        "--conntrack-tcp-timeout-close-wait=0",
    ]


def _delegated(name: str) -> Argv:
    """Return what makes a component ask the API server who may ask it what, and serve with its own certificate."""
    kubeconfig = f"{KUBECONFIGS}/{name}.kubeconfig"
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--tls-cert-file={PKI}/{name}.crt",
        f"--tls-private-key-file={PKI}/{name}.key",
    ]
