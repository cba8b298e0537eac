from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import triton_to_np_dtype

DTYPES = ["BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64"]
SHAPES = [(2, 3, 4, 5), (1, 1, 1, 1), (1, 7, 1, 3), (0, 3, 4, 5), (2, 3, 0, 5), (1, 160, 220, 3)]


def extreme_values(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    kind = np.dtype(triton_to_np_dtype(dtype))
    size = int(np.prod(shape))
    if kind.kind == "b":
        return (np.arange(size) % 3 == 0).reshape(shape)
    limits = np.iinfo(kind) if kind.kind in "iu" else np.finfo(kind)
    values = np.array([limits.min, limits.max, 0, 1, 2, 3, 5, 7], dtype=kind)
    return np.resize(values, shape) if size else np.empty(shape, kind)


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_any_dtype_and_shape_arrive_and_return_unchanged(server, infer, dtype):
    for shape in SHAPES:
        sent = extreme_values(dtype, shape)
        received = infer(server.address, "reverse", {f"X_{dtype}": sent}, f"Y_{dtype}")
        assert received.dtype == sent.dtype
        np.testing.assert_array_equal(received, sent[..., ::-1])


def test_thousands_of_requests_leave_memory_as_it_was(server, encode, stub_of):
    stub = stub_of(server.prefix, "reverse")
    image = encode({"X_UINT8": np.full((1, 200, 200, 3), 7, np.uint8)})
    wanted = [triton.InferRequestedOutput("Y_UINT8")]
    with triton.InferenceServerClient(server.address) as client:

        def send(count: int) -> tuple[float, int]:
            for _ in range(count):
                client.infer("reverse", image, outputs=wanted)
            return resident_mib(stub), sum(s.stat().st_size for s in Path("/dev/shm").glob(f"{server.prefix}*"))

        resident, shared = send(300)
        resident_later, shared_later = send(2000)  # 2,000 leaked images would be 229 MiB
    assert resident_later - resident < 8
    assert shared_later == shared


def test_answering_writes_nothing_to_the_log(server, infer, server_log):
    before = server_log.read_bytes()
    infer(server.address, "reverse", {"X_FP32": np.ones((1, 1, 1, 2), np.float32)}, "Y_FP32")
    assert server_log.read_bytes() == before


def resident_mib(pid: int) -> float:
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024
