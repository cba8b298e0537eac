"""Whether a model's answers are what the spec says."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from serve_app.protocol.datatypes import BYTES, split
from serve_app.spec.model import Ensemble, Model, Output
from serve_app.spec.tensors import WIDTHS


def mismatches(served: Model | Ensemble, response: Any, batch: int | None) -> Iterator[tuple[str, str]]:
    """The outputs of an answer that are not the spec's, each with what it is instead."""
    found = {output.name: output for output in response.outputs}
    for name, entry in served.outputs.items():
        if name not in found:
            yield name, f"the answer has no {name}" + (f", only {', '.join(found)}" if found else "")
        elif reason := _mismatch(entry, found[name], batch):
            yield name, f"the answer's {name} is {reason}"


def miscounts(response: Any) -> Iterator[tuple[str, str]]:
    """The outputs of an answer whose bytes are not those of their own shape, each with what it is."""
    contents = [*response.raw_output_contents]
    contents += [b""] * (len(response.outputs) - len(contents))
    for output, content in zip(response.outputs, contents, strict=True):
        reason = _miscount(output.datatype, prod(output.shape), content)
        if reason is not None:
            yield output.name, f"the answer's {output.name} is {output.datatype}{list(output.shape)}, {reason}"


def _miscount(datatype: str, elements: int, content: bytes) -> str | None:
    if datatype != BYTES:
        wanted = WIDTHS[datatype] * elements
        return None if len(content) == wanted else f"{wanted} bytes, and comes with {len(content)}"
    try:
        found = len(split(content))
    except ValueError:
        return f"and comes with {len(content)} bytes that are no strings, each behind its length"
    return None if found == elements else f"strings, {elements} of them, and comes with {found}"


def _mismatch(entry: Output, output: Any, batch: int | None) -> str | None:
    wanted = [*([] if batch is None else [batch]), *entry.tensor.dims]
    fits = len(wanted) == len(output.shape) and all(
        want in (-1, have) for want, have in zip(wanted, output.shape, strict=True)
    )
    if fits and output.datatype == entry.tensor.wire:
        return None
    return f"{output.datatype}{list(output.shape)}, and the spec's {entry.tensor.wire}{wanted}"
