"""A store behind a real https server: the same bytes, the same refusals, nothing to push to."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.registry.shared_recipe import stored

from agentrecipes.errors import AgentRecipesError, CheckFailed, RecipeError
from agentrecipes.recipe.load import load
from agentrecipes.registry.fetch import pull, verify
from agentrecipes.registry.index import rebuild
from agentrecipes.registry.publish import push
from agentrecipes.registry.store import open_store

HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate of this machine's own address, with its key, valid for a day."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("certificate") / "own.pem"
    plain = serialization.NoEncryption()
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    file.write_bytes(made.public_bytes(encoding) + key.private_bytes(encoding, form, plain))
    return file


class Quiet(SimpleHTTPRequestHandler):
    """Gives out the files of a folder."""

    timeout = 10

    def log_message(self, *_):  # noqa: ANN002 - the base class's signature
        """Say nothing on stderr."""


@pytest.fixture
def served(tmp_path, certificate, monkeypatch):
    """The store of a recipe behind https: its folder, its address, what was put there."""
    folder, made = stored(tmp_path)
    server = ThreadingHTTPServer((HOST, 0), partial(Quiet, directory=str(folder)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    yield folder, f"https://{HOST}:{server.server_address[1]}", made
    server.shutdown()
    server.server_close()
    thread.join(timeout=10)


def test_a_recipe_comes_over_https_as_it_was_pushed(tmp_path, served):
    _, address, made = served
    found = pull(open_store(address), "capitals@1.2.0", tmp_path / "capitals")
    assert found == made
    assert load(tmp_path / "capitals" / "capitals.yaml").hash == made.card.recipe_hash
    assert verify(open_store(address)) == (1, [])


def test_a_changed_file_is_refused_over_https_too(tmp_path, served):
    folder, address, made = served
    (folder / "files" / made.card.files["base.yaml"].sha256).write_bytes(b"version: 6.6.6\n")
    with pytest.raises(CheckFailed, match=r"base\.yaml was changed|base\.yaml .* was changed"):
        pull(open_store(address), "capitals", tmp_path / "capitals")
    assert not (tmp_path / "capitals").exists()


def test_an_answer_that_does_not_end_in_time_is_cut(tmp_path, served):
    folder, address, made = served
    (folder / "files" / made.card.files["base.yaml"].sha256).write_bytes(b"\0" * 50_000_000)
    with pytest.raises(CheckFailed, match=r"base\.yaml was changed: .* may have"):
        pull(open_store(address), "capitals", tmp_path / "capitals")


def test_an_unknown_certificate_is_refused(tmp_path, served, monkeypatch):
    _, address, _ = served
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(AgentRecipesError, match=r"index\.yaml: .*certificate"):
        pull(open_store(address), "capitals", tmp_path / "capitals")


def test_nothing_is_pushed_to_a_server_and_nothing_listed(tmp_path, served):
    _, address, _ = served
    with pytest.raises(RecipeError, match="is read-only here"):
        push(load(tmp_path / "mine" / "capitals.yaml"), open_store(address))
    with pytest.raises(RecipeError, match="cannot list its files"):
        rebuild(open_store(address))


def test_a_server_that_is_not_there_is_one_line():
    with pytest.raises(AgentRecipesError, match=r"https://127\.0\.0\.1:9/index\.yaml") as error:
        verify(open_store("https://127.0.0.1:9"))
    assert len(str(error.value).splitlines()) == 1
