"""nginx, as ``deploy/nginx`` sets it up, on the loopback in front of some servers."""

import os
import shutil
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from string import Template

from benchmarks.servers.account import Account
from benchmarks.servers.process import HOST, Program, Server, executable, free_port
from benchmarks.shop import ROOT

TEMPLATE = ROOT / "deploy" / "nginx" / "shop.conf.template"
NAME = "shop.example"


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Front:
    """A running nginx."""

    tls_port: int
    plain_port: int
    certificate: Path

    def connect(self) -> HTTPSConnection:
        """Return a connection to it, over TLS."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        context.check_hostname = False
        return HTTPSConnection(HOST, self.tls_port, timeout=10, context=context)

    def call(self, method: str, path: str, body: str = "", **headers: str) -> Reply:
        """Make one call on a connection of its own."""
        wire = self.connect()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            wire.request(method, path, body or None, {"Host": HOST, **named})
            answer = wire.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(status=answer.status, headers=told, body=answer.read())
        finally:
            wire.close()


def configuration(*, directory: Path, upstreams: Sequence[int], tls_port: int, plain_port: int) -> Path:
    """Fill the template in as envsubst does, listen on the loopback only, and put nginx's own frame around it."""
    values = {
        "SHOP_HOST": HOST,
        # Where a name stands for several addresses, nginx makes as many servers of it.
        "SHOP_UPSTREAM": " max_fails=0; server ".join(f"{HOST}:{port}" for port in upstreams),
        "TLS_CERTIFICATE": str(directory / "cert.pem"),
        "TLS_KEY": str(directory / "key.pem"),
    }
    text = Template(TEMPLATE.read_text()).safe_substitute(values)
    text = text.replace("listen 443 ", f"listen {HOST}:{tls_port} ").replace(
        "listen 80;", f"listen {HOST}:{plain_port};"
    )
    text = text.replace("/tmp/shop-cache", str(directory / "cache"))  # noqa: S108  the template's
    # Its workers would else be nobody, who has no way into a test's directory.
    user = "user root;" if os.geteuid() == 0 else ""
    frame = f"{user} pid {directory}/pid; error_log stderr; daemon off; worker_processes 1; events {{}}\n"
    paths = "".join(
        f"{kind}_temp_path {directory}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    conf = directory / "nginx.conf"
    conf.write_text(f"{frame}http {{ {paths} {text} }}\n")
    return conf


def make_certificate(directory: Path) -> Path:
    """Make a certificate of its own authority, and its key beside it; return the certificate's path."""
    subject = ("-subj", f"/CN={NAME}", "-addext", f"subjectAltName=IP:{HOST},DNS:{NAME}")
    command = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject)
    files = ("-keyout", str(directory / "key.pem"), "-out", str(directory / "cert.pem"))
    subprocess.run([*command, *files], check=True, capture_output=True)
    return directory / "cert.pem"


@contextmanager
def run_front(*, certificate: Path, directory: Path, upstreams: Sequence[int]) -> Iterator[Front]:
    """Run nginx for the length of the block."""
    for name in ("cert.pem", "key.pem"):
        shutil.copy(certificate.with_name(name), directory / name)
    tls_port, plain_port = free_port(), free_port()
    conf = configuration(directory=directory, upstreams=upstreams, tls_port=tls_port, plain_port=plain_port)
    nginx = executable("nginx", str(ROOT / ".venv" / "bin" / "nginx"))
    checked = subprocess.run([nginx, "-t", "-c", str(conf)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    front = Front(tls_port=tls_port, plain_port=plain_port, certificate=certificate)
    server = Server(
        program=Program(
            executable=nginx,
            arguments=(nginx, "-c", str(conf)),
            port=tls_port,
            directory=directory,
            log=directory / "nginx.log",
            account=Account(),
            is_ready=lambda: _answers(front),
        )
    )
    server.start()
    try:
        yield front
    finally:
        server.stop()


def _answers(front: Front) -> bool:
    try:
        return front.call("GET", "/metrics").status == 404
    except OSError:
        return False
