"""Certificates carry the names that Kubernetes judges by, and private keys are private."""

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from lab import pki, topology


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pki")
    pki.create_all(topology.load(), folder)
    return folder


def certificate(folder: Path, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes())


def names(subject: x509.Name, oid: x509.ObjectIdentifier) -> list[str]:
    return [str(attribute.value) for attribute in subject.get_attributes_for_oid(oid)]


@pytest.mark.parametrize(
    ("file", "user", "groups"),
    [
        ("kubelet-worker1", "system:node:worker1", ["system:nodes"]),
        ("kube-proxy", "system:kube-proxy", []),
        ("suite", "servicepath", []),
        ("admin", "servicepath-lab-admin", ["system:masters"]),
        ("apiserver-kubelet-client", "kube-apiserver-kubelet-client", []),
    ],
)
def test_user_and_groups(folder: Path, file: str, user: str, groups: list[str]):
    subject = certificate(folder, file).subject
    assert names(subject, NameOID.COMMON_NAME) == [user]
    assert names(subject, NameOID.ORGANIZATION_NAME) == groups


def test_every_certificate_is_the_authoritys(folder: Path):
    authority = certificate(folder, "ca")
    for path in folder.glob("*.crt"):
        certificate(folder, path.stem).verify_directly_issued_by(authority)


def test_the_api_server_answers_to_its_addresses(folder: Path):
    names = certificate(folder, "apiserver").extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = {str(address) for address in names.get_values_for_type(x509.IPAddress)}
    assert {"192.168.55.10", "10.43.0.1", "127.0.0.1"} <= addresses


def test_keys_are_for_their_owner_alone(folder: Path):
    assert {path.stat().st_mode & 0o777 for path in folder.glob("*.key")} == {0o600}


def test_the_authoritys_key_is_nowhere(folder: Path):
    assert not (folder / "ca.key").exists()
