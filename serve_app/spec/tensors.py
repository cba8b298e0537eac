"""Tensors as the spec writes them: `uint8[112, 112, 3]`, without the batch dimension."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BeforeValidator, WithJsonSchema
from tritonclient.utils import np_to_triton_dtype, triton_to_np_dtype

from serve_app.spec.part import invalid, shown
from serve_app.spec.spelling import did_you_mean

DTYPES: dict[str, type[np.generic]] = {
    "bool": np.bool_,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "float16": np.float16,
    "float32": np.float32,
    "float64": np.float64,
    "bfloat16": triton_to_np_dtype("BF16"),  # NumPy has none of its own
    "string": np.object_,
}
_WIRE = {"bfloat16": "BF16", "string": "BYTES"}
_TENSOR = re.compile(r"(?P<dtype>\w+) *\[(?P<dims>[^\]]*)\]")


@dataclass(frozen=True)
class Tensor:
    """A tensor of a model, without the batch dimension. A dimension of -1 varies from request to request."""

    dtype: str
    dims: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.dims))}]"

    @property
    def numpy(self) -> type[np.generic]:
        return DTYPES[self.dtype]

    @property
    def wire(self) -> str:
        """The type's name in the Open Inference Protocol: FP32, UINT8, …"""
        return _WIRE.get(self.dtype) or str(np_to_triton_dtype(np.dtype(self.numpy)))

    @property
    def width(self) -> int | None:
        """Bytes of one element; None for strings, each of which has its own."""
        return WIDTHS.get(self.wire)

    @property
    def fixed(self) -> bool:
        """Whether no dimension varies."""
        return -1 not in self.dims

    def mismatch(self, array: np.ndarray[Any, Any]) -> str | None:
        """Why a batch (batch dimension first) does not fit this tensor, or None where it does."""
        fits = array.ndim == len(self.dims) + 1 and all(
            want in (-1, have) for want, have in zip(self.dims, array.shape[1:], strict=True)
        )
        if fits and array.dtype == np.dtype(self.numpy):
            return None
        return f"{array.dtype}{list(array.shape)} is not a batch of {self}"


# Bytes of one element, by the type's name on the wire.
WIDTHS = {
    Tensor(dtype, ()).wire: 2 if dtype == "bfloat16" else np.dtype(numpy).itemsize
    for dtype, numpy in DTYPES.items()
    if dtype != "string"
}


def parse_dtype(text: str) -> str:
    """A type's name as it is. ValueError says which one was probably meant."""
    if text not in DTYPES:
        remedy = did_you_mean(text, DTYPES) or f"write one of {', '.join(DTYPES)}"
        raise invalid("choice", f"{shown(text)} is not a tensor type; {remedy}")
    return text


def parse_tensor(text: object) -> Tensor:
    """`float32[256, 15]` → Tensor. ValueError says how to write it."""
    example = "write a type and its dimensions without the batch, as uint8[112, 112, 3]"
    match = _TENSOR.fullmatch(text.strip(" ")) if isinstance(text, str) else None
    if match is None:
        raise invalid("tensor", f"{shown(text)} is not a tensor; {example}")
    if match["dtype"] not in DTYPES:
        remedy = did_you_mean(match["dtype"], DTYPES) or f"write one of {', '.join(DTYPES)}"
        raise invalid("tensor", f"{shown(match['dtype'])} is not a tensor type; {remedy}")
    parts = [part.strip(" ") for part in match["dims"].split(",")]
    if not all(re.fullmatch(_DIM, part) for part in parts):
        raise invalid(
            "tensor", f"{shown(text)}: a dimension is a whole number from 1, or -1 where it varies; {example}"
        )
    return Tensor(match["dtype"], tuple(map(int, parts)))


_DIM = r"-1|[1-9][0-9]{0,17}"
_DIMS = rf" *(?:{_DIM}) *(?:, *(?:{_DIM}) *)*"
TENSOR_SCHEMA = {"type": "string", "pattern": rf"^ *(?:{'|'.join(DTYPES)}) *\[{_DIMS}\] *$"}
Dtype = Annotated[str, AfterValidator(parse_dtype), WithJsonSchema({"enum": list(DTYPES)})]
TensorField = Annotated[Tensor, BeforeValidator(parse_tensor), WithJsonSchema(TENSOR_SCHEMA)]
