"""Memory: of GPUs, of the machine, and of /dev/shm."""

from __future__ import annotations

from tests.rules.case import Case, merged
from tests.rules.server_cases import GPU, triton

BIG = "uint8[1048576]"

CASES = {
    "models that do not fit on a GPU": Case(
        "T421",
        {
            "profiles": {"gpu": merged(GPU, {"triton": {"gpus": 2, "device_memory": "8GiB"}})},
            "models": {"m": {"memory": "3GiB", "profiles": {"gpu": {"instances": [
                {"kind": "gpu", "gpus": [0]}, {"kind": "gpu", "gpus": [1], "count": 3}, {"kind": "cpu"}]}}}},
        },
        "profiles.gpu.triton.device_memory",
        "on GPU 1 m 9GiB want 9GiB, more than 8GiB",
    ),
    "models that hold more than the server asks for": Case(
        "T422",
        {"models": {"m": {"memory": "300MiB", "instances": 4}}},
        "profiles.embedded.triton.memory",
        "m 1200MiB want 1200MiB, more than 1GiB",
    ),
    "tensors that do not fit into shared memory": Case(
        "T423",
        {
            **triton(shared_memory="144MiB"),
            "models": {"m": {"inputs": {"x": BIG}, "outputs": {"y": BIG}}},
        },
        "profiles.embedded.triton.shared_memory",
        "m 17MiB + Ray's object store 128MiB want 145MiB, more than 144MiB",
    ),
    "varying tensors that do not fit into shared memory": Case(
        "T423",
        {
            **triton(shared_memory="144MiB"),
            "models": {"m": {
                "inputs": {"x": {"tensor": "uint8[-1]", "largest": [1048576]}}, "outputs": {"y": "uint8[-1]"},
                "instances": 2}},
        },
        "profiles.embedded.triton.shared_memory",
        "m 18MiB + Ray's object store 128MiB",
    ),
}  # fmt: skip
