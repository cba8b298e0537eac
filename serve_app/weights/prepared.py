"""What a recipe answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Prepared:
    """An ONNX file, and the lines of its label file where an output is an index."""

    onnx: bytes
    labels: list[str] | None = None


def as_is(source: bytes) -> Prepared:
    """The recipe for a file that is the model already."""
    return Prepared(source)
