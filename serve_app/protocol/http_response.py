"""The inference answer of the protocol's HTTP half."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tritonclient.grpc import service_pb2

from serve_app.protocol.datatypes import listed

encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


@dataclass
class Wanted:
    """How the client wants outputs: those it named as it said, all others by default. True is as bytes."""

    by_default: bool = False
    binary: dict[str, bool] = field(default_factory=dict)


def write_answer(answer: service_pb2.ModelInferResponse, wanted: Wanted) -> tuple[list[bytes], int | None]:
    """The body in parts, JSON first; the length of the JSON where bytes follow it, else None.

    Refusal where JSON cannot hold what the client wants in it.
    """
    head: dict[str, Any] = {"id": answer.id} if answer.id else {}
    head["model_name"] = answer.model_name
    head["model_version"] = answer.model_version
    if answer.parameters:
        head["parameters"] = {name: scalar(answer.parameters[name]) for name in sorted(answer.parameters)}
    outputs = head["outputs"] = []
    parts: list[bytes] = [b""]
    is_binary = False
    tensors, contents = answer.outputs, answer.raw_output_contents
    for index in range(len(tensors)):  # protobuf's own iteration is several times as slow
        output, raw = tensors[index], contents[index]
        name, wire = output.name, output.datatype
        entry: dict[str, Any] = {"name": name, "datatype": wire, "shape": list(output.shape)}
        if wanted.binary.get(name, wanted.by_default):
            is_binary = True
            entry["parameters"] = {"binary_data_size": len(raw)}
            parts.append(raw)
        else:
            entry["data"] = listed(wire, raw, f"output '{name}'")
        outputs.append(entry)
    parts[0] = encode(head).encode()
    return parts, len(parts[0]) if is_binary else None


def scalar(parameter: service_pb2.InferParameter) -> Any:
    """A parameter's value; None where it has none."""
    choice = parameter.WhichOneof("parameter_choice")
    return None if choice is None else getattr(parameter, choice)
