"""The spec's tensor types in Triton's terms."""

from __future__ import annotations

from tritonclient.grpc import model_config_pb2 as pb

from serve_app.spec.tensors import Tensor


def data_type(dtype: str) -> pb.DataType:
    wire = Tensor(dtype, ()).wire
    return pb.DataType.Value(f"TYPE_{'STRING' if wire == 'BYTES' else wire}")
