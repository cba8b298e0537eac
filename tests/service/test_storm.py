"""A bounded storm of malformed requests at the running service: every answer is documented, and nothing dies.

The requests are those of well-behaved clients, broken at random places; the seed makes them the same each time.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable

import grpc
import httpx
from tritonclient.grpc import service_pb2 as pb

from serve_app.bench.requests import Content, grpc_infer, http_infer
from tests.service.conftest import Service

COUNT = 400  # of each kind
AT_ONCE = 16
ANSWERED_S = 20.0
METHODS = ("ModelInfer", "ModelConfig", "ModelStatistics", "RepositoryModelLoad", "SystemSharedMemoryRegister", "None")
INPUTS = [Content("landmarks", "FP32", [1, 2, 5, 2], bytes(80))]
BYTES = [
    b"\0",
    b"\xff",
    b"\r\n",
    b"-1",
    b"999999999999999999999",
    b"\x7f",
    b'"',
    b"{",
    b"[",
    b"\xc3\x28",
    b"NaN",
    b"%00",
]
# Those of Triton's own server that the protocol's clients know, and the service's own: README, Errors.
STATUSES = {200, 400, 403, 404, 405, 413, 415, 422, 429, 431, 500, 501, 503, 504}
CODES = {
    grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.DEADLINE_EXCEEDED,
}  # fmt: skip


def broken(data: bytes, drawn: random.Random) -> bytes:
    """The bytes with a few cut out, put in, doubled or turned over."""
    for _ in range(drawn.randint(1, 4)):
        at = drawn.randrange(len(data) + 1)
        kind = drawn.randrange(5)
        if kind == 0:
            data = data[:at] + drawn.choice(BYTES) + data[at:]
        elif kind == 1:
            data = data[:at] + data[at + drawn.randint(1, 8) :]
        elif kind == 2:
            data = data[:at] + data[max(0, at - 20) :]
        elif kind == 3:
            data = data[:at]
        else:
            data = data[:at] + bytes([drawn.randrange(256)]) + data[at + 1 :]
    return data


def running(service: Service) -> dict[str, list[int]]:
    """The processes that requests could end."""
    parts = ("bin/tritonserver --", "triton_python_backend_stub", "ServeReplica:kyc")
    return {part: sorted(process.pid for process in service.processes(part)) for part in parts}


def assert_unharmed(service: Service, before: dict[str, list[int]], photos: dict[str, bytes]) -> None:
    assert service.is_ready()
    assert service.post("/v1/faces/embed", image=photos["person_a_1"]).status_code == 200
    after = running(service)
    # More replicas may have come for the load; those that there were are still there.
    assert {part: [pid for pid in pids if pid not in after[part]] for part, pids in before.items()} == {
        part: [] for part in before
    }


async def together(requests: list[bytes], send: Callable[[bytes], Awaitable[object]]) -> Counter[object]:
    """The outcomes of all requests, so many at a time."""
    outcomes: Counter[object] = Counter()
    waiting = iter(requests)

    async def client() -> None:
        for request in waiting:
            outcomes[await asyncio.wait_for(send(request), ANSWERED_S)] += 1

    await asyncio.gather(*(client() for _ in range(AT_ONCE)))
    assert outcomes.total() == len(requests)
    return outcomes


async def test_broken_http_is_answered_with_documented_problems(service: Service, photos: dict[str, bytes]) -> None:
    host, port = service.url.removeprefix("http://").split(":")
    inference = http_infer(service.url, "liveness", INPUTS, {})
    kind = {"Content-Type": "multipart/form-data; boundary=a-boundary"}
    form = httpx.Request("POST", service.url, files={"image": photos["person_a_1"][:2000]}, headers=kind)
    posts = [
        ("/v2/models/liveness/infer", inference.headers, inference.body),
        ("/v1/faces/embed", dict(form.headers), form.read()),
        ("/v1/faces/embed?aligned=true", {"Content-Type": "image/jpeg"}, photos["person_a_1"][:2000]),
        ("/v2/repository/index", {}, b"{}"),
    ]
    whole = [
        f"POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {len(body)}\r\n".encode()
        + "".join(f"{name}: {value}\r\n" for name, value in headers.items() if name.lower() == "content-type").encode()
        + b"\r\n"
        + body
        for path, headers, body in posts
    ]

    async def send(request: bytes) -> object:
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(request)
            writer.write_eof()
            answer = await reader.read()
        except ConnectionError:
            return "closed"
        finally:
            writer.close()
        if not answer:
            return "closed"  # where the request is not there in whole: it was given up, not answered
        head, _, body = answer.partition(b"\r\n\r\n")
        status = int(head.split()[1])
        if status >= 400:
            json.loads(body)
        return status

    before, drawn = running(service), random.Random(1)
    outcomes = await together([broken(drawn.choice(whole), drawn) for _ in range(COUNT)], send)
    assert outcomes.keys() <= STATUSES | {"closed"}
    assert 400 in outcomes
    assert_unharmed(service, before, photos)


async def test_broken_grpc_is_answered_with_the_protocols_codes(service: Service, photos: dict[str, bytes]) -> None:
    address = f"127.0.0.1:{service.project.spec().service.grpc.port}"
    message = grpc_infer(address, "liveness", INPUTS, {}).message
    message.parameters["priority"].uint64_param = 1
    typed = pb.ModelInferRequest(model_name="liveness")
    typed.inputs.add(name="landmarks", datatype="FP32", shape=[1, 2, 5, 2]).contents.fp32_contents.extend([0.0] * 20)
    whole = [message.SerializeToString(), typed.SerializeToString()]

    before, drawn = running(service), random.Random(2)
    async with grpc.aio.insecure_channel(address) as channel:

        async def send(request: bytes) -> object:
            method = "ModelInfer" if drawn.random() < 0.7 else drawn.choice(METHODS)
            try:
                await channel.unary_unary(f"/inference.GRPCInferenceService/{method}")(request, timeout=ANSWERED_S)
            except grpc.aio.AioRpcError as refused:
                return refused.code()
            return grpc.StatusCode.OK

        outcomes = await together([broken(drawn.choice(whole), drawn) for _ in range(COUNT)], send)
    assert outcomes.keys() <= CODES
    assert outcomes.keys() >= {grpc.StatusCode.INVALID_ARGUMENT}
    assert_unharmed(service, before, photos)


async def test_what_is_no_grpc_at_its_port_is_hung_up_on(service: Service, photos: dict[str, bytes]) -> None:
    port = service.project.spec().service.grpc.port
    settings = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0" + b"\0\0\1\1\5\0\0\0\1\x83" + bytes(200)

    async def send(request: bytes) -> object:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(request)
            writer.write_eof()
            await reader.read()
        except ConnectionError:
            pass
        finally:
            writer.close()
        return "closed"

    before, drawn = running(service), random.Random(3)
    await together([broken(settings, drawn) for _ in range(COUNT)], send)
    assert_unharmed(service, before, photos)
