"""The cluster's certificates, made anew at every ``up``: one authority, one key pair for each component.

Names follow Kubernetes' requirements (v1.34, "PKI certificates and requirements"): the common name is the user, the
organization is the group. Keys are EC P-256; certificates are good for a year.
"""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from lab.paths import PKI
from lab.topology import Topology

VALID = datetime.timedelta(days=365)
CLOCK_SKEW = datetime.timedelta(minutes=5)


@dataclass(frozen=True)
class Authority:
    """The cluster's certificate authority and the folder its certificates go to."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    folder: Path

    @property
    def path(self) -> Path:
        """The authority's certificate, PEM."""
        return self.folder / "ca.crt"

    def issue(
        self,
        file: str,
        user: str,
        *,
        groups: Sequence[str] = (),
        server: Sequence[str] = (),
        client: bool = True,
    ) -> None:
        """Write FILE.crt and FILE.key (mode 0600).

        Args:
            file: their name without the ending.
            user: the common name, which Kubernetes takes as the user's name.
            groups: the organizations, which it takes as groups.
            server: names and addresses to serve as; none for a certificate of a client alone.
            client: whether it may also be shown as a client.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH] * client + [ExtendedKeyUsageOID.SERVER_AUTH] * bool(server)
        builder = (
            _builder(_name(user, groups), self.certificate.subject, key)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            # Python 3.13 and later refuse a certificate without it.
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )
        if server:
            builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(name) for name in server]), critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        (self.folder / f"{file}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(self.folder / f"{file}.key", key)


def create_authority(folder: Path = PKI) -> Authority:
    """Make the authority and write its certificate; its key stays in this process."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("servicepath-lab", ())
    certificate = (
        _builder(name, name, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_authority_usage(), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    authority = Authority(key, certificate, folder)
    authority.path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return authority


def create_all(topology: Topology, folder: Path = PKI) -> Authority:
    """Make every certificate and key that the cluster needs."""
    authority = create_authority(folder)
    master, cluster = topology.master, topology.cluster
    service = "kubernetes.default.svc"
    api_names = [str(master.address), str(cluster.api_service), "127.0.0.1", master.name, "localhost", "kubernetes"]
    api_names += ["kubernetes.default", service, f"{service}.{cluster.domain}"]
    authority.issue("etcd", "etcd", server=["127.0.0.1", "localhost"])
    authority.issue("apiserver-etcd-client", "kube-apiserver-etcd-client")
    authority.issue("apiserver", "kube-apiserver", server=api_names, client=False)
    authority.issue("apiserver-kubelet-client", "kube-apiserver-kubelet-client")
    authority.issue("kube-controller-manager", "system:kube-controller-manager", server=["127.0.0.1", "localhost"])
    authority.issue("kube-scheduler", "system:kube-scheduler", server=["127.0.0.1", "localhost"])
    authority.issue("kube-proxy", "system:kube-proxy")
    authority.issue("admin", "servicepath-lab-admin", groups=["system:masters"])
    authority.issue("suite", "servicepath")
    for node in topology.nodes:
        names = [node.name, str(node.address)]
        authority.issue(f"kubelet-{node.name}", f"system:node:{node.name}", groups=["system:nodes"], server=names)
    key = ec.generate_private_key(ec.SECP256R1())
    _write_key(folder / "service-accounts.key", key)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (folder / "service-accounts.pub").write_bytes(public)
    return authority


def _name(user: str, groups: Sequence[str]) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + VALID)
    )


def _authority_usage() -> x509.KeyUsage:
    others = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    return x509.KeyUsage(**dict.fromkeys(others, False), key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False)


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.touch(mode=0o600)
    path.write_bytes(pem)
