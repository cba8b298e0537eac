"""What the codec's tests have in common: signatures, a context with time left, and requests to break something in."""

from __future__ import annotations

import copy
import json
import struct
import time
from typing import Any

from tritonclient.grpc import service_pb2 as pb

from serve_app.context import RequestContext
from serve_app.protocol.http_request import read_request
from serve_app.protocol.http_response import Wanted
from serve_app.protocol.limits import Limits
from serve_app.protocol.signatures import Signatures
from tests.protocol.served import SPEC

SIGNATURES = Signatures(SPEC, "embedded")
LIMITS = Limits(body=2**20, listed=2**18)


def context(priority: int = 1, seconds: float = 8) -> RequestContext:
    return RequestContext("request", priority, time.time() + seconds)


def fp32(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def add_json(**changes: Any) -> dict[str, Any]:
    """A good request to `add`, in JSON, with top-level members replaced."""
    inputs = [
        {"name": name, "datatype": "FP32", "shape": [1, 1], "data": [value]}
        for name, value in {"INPUT_A": 1, "INPUT_B": 0.5}.items()
    ]
    return {"id": "7", "inputs": inputs, **copy.deepcopy(changes)}


def one_input(model: str = "every", **changes: Any) -> dict[str, Any]:
    """The first input of a request to `every`, with members replaced."""
    return {"inputs": [{"name": "X_INT8", "datatype": "INT8", "shape": [1, 2], "data": [1, 2], **changes}]}


def read(
    body: dict[str, Any] | bytes, model: str = "add", *, binary: bytes | None = None, version: str = "", **options: Any
) -> tuple[pb.ModelInferRequest, Wanted]:
    """The request as the codec writes it anew."""
    head = body if isinstance(body, bytes) else json.dumps(body).encode()
    length = None if binary is None else len(head)
    given = {"context": context(), "limits": LIMITS, **options}
    return read_request(head + (binary or b""), length, SIGNATURES[model], version, **given)


def add_message(**changes: Any) -> pb.ModelInferRequest:
    """A good request to `add` over gRPC, with fields replaced."""
    tensor = pb.ModelInferRequest.InferInputTensor
    given: dict[str, Any] = {
        "model_name": "add",
        "id": "7",
        "inputs": [tensor(name=name, datatype="FP32", shape=[1, 1]) for name in ("INPUT_A", "INPUT_B")],
        "raw_input_contents": [fp32(1), fp32(0.5)],
    }
    return pb.ModelInferRequest(**{**given, **changes})
