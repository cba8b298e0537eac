"""Triton's tensors as the spec writes them."""

from __future__ import annotations

from typing import Any

from serve_app.importing.error import NotExpressible
from serve_app.render.data_types import data_type
from serve_app.spec.tensors import DTYPES, Tensor

_NAMES = {data_type(name): name for name in DTYPES}


def dtype(given: int, of: str) -> str:
    """The spec's name of a data type. NotExpressible where none is given."""
    if given not in _NAMES:
        raise NotExpressible(f"{of} has no data_type; add it")
    return _NAMES[given]


def tensor(message: Any, of: str) -> str:
    """A message with data_type and dims as `float32[3, 224, 224]`. NotExpressible where it is no such tensor."""
    if not message.dims:
        raise NotExpressible(f"{of} has no dims; add them")
    wrong = [size for size in message.dims if size < 1 and size != -1]
    if wrong:
        raise NotExpressible(f"{of} has a dimension of {wrong[0]}; Triton knows 1 and more, and -1")
    return str(Tensor(dtype(message.data_type, of), tuple(message.dims)))
