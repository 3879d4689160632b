"""A certificate authority for one control plane: its server, its users, and the key that signs service accounts."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from devtools.certificates import Certificate

_SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_SERVER_ADDRESSES = ("127.0.0.1", "10.96.0.1")


class Authority:
    """Issues certificates that are valid for ten days, all written into `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("kubernetes-ca")
        self.certificate = folder / "ca.crt"
        builder = _builder(self._name, self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.certificate.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))

    def server(self, name: str, *addresses: str) -> Certificate:
        """A certificate for the loopback address, further `addresses`, and the API server's names in a cluster."""
        names = [
            *(x509.DNSName(each) for each in _SERVER_NAMES),
            *(x509.IPAddress(ipaddress.ip_address(each)) for each in sorted({*_SERVER_ADDRESSES, *addresses})),
        ]
        return self._issue(name, _name(name), ExtendedKeyUsageOID.SERVER_AUTH, x509.SubjectAlternativeName(names))

    def client(self, user: str, groups: Sequence[str] = ()) -> Certificate:
        """A client's certificate; Kubernetes takes the common name as the user and the organisations as groups."""
        return self._issue(_file_name(user), _name(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _issue(
        self, file: str, name: x509.Name, usage: x509.ObjectIdentifier, names: x509.SubjectAlternativeName | None
    ) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(name, self._name, key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if names:
            builder = builder.add_extension(names, critical=False)
        files = Certificate(self._folder / f"{file}.crt", self._folder / f"{file}.key")
        files.certificate.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        _write_key(files.key, key)
        return files


def signing_key(folder: Path) -> tuple[Path, Path]:
    """A fresh private key and its public half, with which service account tokens are signed and checked."""
    key = ec.generate_private_key(ec.SECP256R1())
    private, public = folder / "sa.key", folder / "sa.pub"
    _write_key(private, key)
    public.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    return private, public


def _builder(name: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=10))
    )


def _name(common: str, organisations: Sequence[str] = ()) -> x509.Name:
    return x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organisations),
            x509.NameAttribute(NameOID.COMMON_NAME, common),
        ]
    )


def _file_name(user: str) -> str:
    return "client-" + "".join(letter if letter.isalnum() else "-" for letter in user)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    path.chmod(0o600)
