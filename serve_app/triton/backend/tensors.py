"""Exchange tensors with Triton's python backend as NumPy arrays, through DLPack.

`Tensor.as_numpy()` and `Tensor(name, array)` of the backend are compiled against NumPy 1 and misread the arrays of
NumPy 2: sizes come out as 0, and string tensors kill the process. DLPack does not depend on NumPy's memory layout, and
reading through it copies nothing.

Three things have to be right for the backend to take an array:
- Strides exactly as C order gives them. NumPy leaves those of empty arrays and of dimensions of size 1 undefined,
  the backend compares them all.
- Writable memory: NumPy exports no other through this version of the protocol.
- The name of the capsule. A consumer has to rename it to `used_dltensor`; the backend writes `used_dlpack`, and NumPy
  then prints a traceback for every tensor sent.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from numpy.typing import NDArray

_CONSUMED = ctypes.c_char_p(b"used_dltensor")  # a capsule keeps only the pointer to its name

_rename_capsule = ctypes.pythonapi.PyCapsule_SetName
_rename_capsule.argtypes = [ctypes.py_object, ctypes.c_char_p]
_rename_capsule.restype = ctypes.c_int


def read(request: Any, name: str) -> NDArray[Any]:
    """The input `name` of a request, as a read-only view of Triton's memory: copy what must outlive the request.

    Every numeric type of Triton and BOOL can be read; a string tensor kills the process before it arrives here.
    Raises KeyError where the request has no such input.
    """
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    if tensor is None:
        raise KeyError(name)
    return np.from_dlpack(tensor)


def write(name: str, array: NDArray[Any]) -> Any:
    """A tensor for a response. The array is copied only where it is not contiguous or not writable.

    Every numeric type of Triton and bool can be sent. Raises TypeError for any other dtype.
    """
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8 or not array.dtype.isnative:
        raise TypeError(f"output {name!r} is {array.dtype}: only bool, integers and floats can be sent")
    array = _with_exact_strides(np.require(array, requirements=["C", "W"]))
    capsule = array.__dlpack__()
    tensor = pb_utils.Tensor.from_dlpack(name, capsule)
    _rename_capsule(capsule, _CONSUMED)
    return tensor


def _with_exact_strides(array: NDArray[Any]) -> NDArray[Any]:
    stride, strides = array.itemsize, []
    for size in reversed(array.shape):
        strides.append(stride)
        stride *= size
    exact = tuple(reversed(strides))
    return array if array.strides == exact else np.lib.stride_tricks.as_strided(array, array.shape, exact)
