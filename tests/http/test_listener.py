"""Where the ingress listens, and how it ends."""

from __future__ import annotations

import asyncio
import datetime
import os
import socket
import ssl
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path

import grpc
import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tritonclient.grpc import service_pb2, service_pb2_grpc

from serve_app.http.listener import ListenError, shared_socket
from tests.http.conftest import BOTH, Listen, Listening, Service, free_ports
from tests.protocol.asgi import Behind
from tests.protocol.codec import add_message

# Listens on the port of its argument, shared, until its input ends.
NEIGHBOUR = """
import socket, sys
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
listener.bind(("127.0.0.1", int(sys.argv[1])))
listener.listen()
print("listens", flush=True)
sys.stdin.read()
"""


async def test_requests_in_work_are_answered_before_the_end_and_no_others(
    listening: Listening, service: Service, behind: Behind
) -> None:
    released = service.hold()
    idle = await listening.connect()
    async with listening.client() as client:
        request = asyncio.create_task(client.post("/v1/faces/compare", files=BOTH))
        await asyncio.wait_for(service.asked.wait(), 10)
        listening.listener.check()
        drained = asyncio.create_task(listening.listener.drain())
        assert await asyncio.wait_for(idle[0].read(1), 10) == b""
        with pytest.raises(OSError, match="Connect call failed"):
            await listening.connect()
        assert not drained.done()
        released.set()
        answer = await request
    assert (answer.status_code, answer.headers["connection"]) == (200, "close")
    await asyncio.wait_for(drained, 10)
    with pytest.raises(RuntimeError, match="does not listen any more"):
        listening.listener.check()
    idle[1].close()


async def is_live(address: str) -> bool:
    """Whether a new connection is served."""
    async with grpc.aio.insecure_channel(address) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        try:
            return bool((await stub.ServerLive(service_pb2.ServerLiveRequest(), timeout=10)).live)
        except grpc.aio.AioRpcError as refused:
            return refused.code() is not grpc.StatusCode.UNAVAILABLE


async def test_an_inference_over_grpc_is_answered_before_the_end(listening: Listening, behind: Behind) -> None:
    held = asyncio.Event()
    infer = behind.infer

    async def slowly(request: service_pb2.ModelInferRequest, timeout: float, *, repeatable: bool = True) -> object:
        behind.asked.set()
        await held.wait()
        return await infer(request, timeout, repeatable=repeatable)

    behind.infer = slowly  # type: ignore[method-assign,assignment]
    async with grpc.aio.insecure_channel(listening.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        answer = asyncio.ensure_future(stub.ModelInfer(add_message(), timeout=10))
        await asyncio.wait_for(behind.asked.wait(), 10)
        drained = asyncio.create_task(listening.listener.drain())
        while await is_live(listening.grpc):
            assert not drained.done()
        held.set()
        assert (await answer).model_name == "add"
        await asyncio.wait_for(drained, 10)


async def test_replicas_share_the_ports(listen: Listen) -> None:
    first = await listen()
    second = await listen(port=first.port, grpc={"port": first.spec.service.grpc.port})
    await first.listener.drain()
    async with second.client() as client:
        assert (await client.get("/healthz")).status_code == 200
    assert await is_live(second.grpc)


@pytest.mark.parametrize("key", ["service.port", "service.grpc.port"])
async def test_a_port_that_somebody_else_has_is_named(listen: Listen, key: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ListenError, match=f"port {port} on 127.0.0.1 cannot be had .Address already in use.; end "
                           f"its user, or change {key} in the spec"):  # fmt: skip
            await listen(**({"port": port} if key == "service.port" else {"grpc": {"port": port}}))


@pytest.mark.parametrize("raylet", ["7", None])
def test_another_clusters_process_does_not_share_the_port(monkeypatch: pytest.MonkeyPatch, raylet: str | None) -> None:
    """The kernel lets all processes of a user share it, and gives each a part of the connections."""
    monkeypatch.delenv("RAY_RAYLET_PID", raising=False)
    if raylet:
        monkeypatch.setenv("RAY_RAYLET_PID", raylet)
    (port, _) = free_ports()
    environment = {**os.environ, "RAY_RAYLET_PID": "8"}
    command = [sys.executable, "-c", NEIGHBOUR, str(port)]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as neighbour:
        assert neighbour.stdout is not None
        assert neighbour.stdout.readline() == "listens\n"
        with pytest.raises(ListenError, match=f"process {neighbour.pid} has it"):
            shared_socket("127.0.0.1", port, "service.port")
        monkeypatch.setenv("RAY_RAYLET_PID", "8")
        shared_socket("127.0.0.1", port, "service.port").close()
        neighbour.communicate("")


async def test_an_ipv6_address(listen: Listen) -> None:
    listening = await listen(host="::1")
    async with listening.client() as client:
        assert (await client.get("/healthz")).status_code == 200
    assert await is_live(f"[::1]:{listening.spec.service.grpc.port}")


async def test_what_a_gateway_takes_off_the_path_is_in_the_documentations_links(listen: Listen) -> None:
    listening = await listen(http={"root_path": "/kyc"})
    async with listening.client() as client:
        assert "/kyc/openapi.json" in (await client.get("/docs")).text
        assert (await client.get("/openapi.json")).json()["servers"] == [{"url": "/kyc"}]
        assert (await client.post("/v1/faces/compare", files=BOTH)).status_code == 200
        assert (await client.get("/v2/health/live")).status_code == 200


@pytest.fixture
def certificate(tmp_path: Path) -> dict[str, str]:
    """A certificate for 127.0.0.1 and its key, as the spec names them."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.timezone.utc)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, traditional = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
    (tmp_path / "tls.crt").write_bytes(signed.public_bytes(pem))
    (tmp_path / "tls.key").write_bytes(key.private_bytes(pem, traditional, serialization.NoEncryption()))
    return {"certificate": str(tmp_path / "tls.crt"), "key": str(tmp_path / "tls.key")}


async def test_tls_on_both_ports(listen: Listen, certificate: dict[str, str]) -> None:
    listening = await listen(tls=certificate)
    trusted = Path(certificate["certificate"]).read_bytes()
    context = ssl.create_default_context(cadata=trusted.decode())
    async with listening.client(verify=context) as client:
        assert (await client.get("/healthz")).status_code == 200
    credentials = grpc.ssl_channel_credentials(trusted)
    async with grpc.aio.secure_channel(listening.grpc, credentials) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        assert (await stub.ServerLive(service_pb2.ServerLiveRequest(), timeout=10)).live
    async with httpx.AsyncClient() as client:
        with pytest.raises(httpx.TransportError):
            await client.get(f"http://{listening.host}:{listening.port}/healthz")


@pytest.mark.parametrize("wrong", ["missing", "not a key"])
async def test_a_certificate_that_cannot_be_used_is_named(
    listen: Listen, certificate: dict[str, str], wrong: str
) -> None:
    if wrong == "missing":
        Path(certificate["key"]).unlink()
    else:
        Path(certificate["key"]).write_text("no key")
    with pytest.raises(ListenError, match=r"the certificate and key of service\.tls cannot be used"):
        await listen(tls=certificate)
