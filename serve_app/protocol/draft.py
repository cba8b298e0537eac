"""An inference request written anew, part by part, each checked against the model's signature first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tritonclient.grpc import service_pb2

from serve_app.context import RequestContext
from serve_app.protocol.datatypes import BYTES, RANKED, check_strings
from serve_app.protocol.limits import Limits
from serve_app.protocol.parameters import write_parameters
from serve_app.protocol.refusals import invalid, shown
from serve_app.protocol.signatures import Signature, TensorSignature


class Draft:
    """`message` is fit for Triton after `finish`. Every method raises Refusal for what does not fit the model."""

    __slots__ = ("_batch", "_limits", "_outputs", "_seen", "message", "signature")

    def __init__(self, signature: Signature, version: str, request_id: str, limits: Limits):
        self.signature = signature
        self.message = service_pb2.ModelInferRequest(
            model_name=signature.name, model_version=signature.version(version), id=request_id
        )
        self._limits = limits
        self._seen: set[str] = set()
        self._outputs: set[str] = set()
        self._batch = 0

    def input(self, name: object, datatype: object, shape: Sequence[Any]) -> tuple[TensorSignature, int]:
        """The next input's tensor, and how many elements it has; its content follows by `content`."""
        tensor = self.signature.inputs.get(name) if type(name) is str else None
        if tensor is None:
            raise invalid(f"unexpected inference input '{shown(name)}' for model '{self.signature.name}'")
        if tensor.name in self._seen:
            raise invalid(f"input '{tensor.name}' already exists in request")
        self._seen.add(tensor.name)
        if datatype != tensor.wire:
            raise invalid(
                f"inference input '{tensor.name}' data-type is '{shown(datatype)}', "
                f"but model '{self.signature.name}' expects '{tensor.wire}'"
            )
        elements = self._elements(tensor, shape)
        self.message.inputs.add(name=tensor.name, datatype=tensor.wire, shape=shape)
        return tensor, elements

    def content(self, tensor: TensorSignature, elements: int, raw: bytes) -> None:
        """The bytes of the input that was named last."""
        if tensor.wire == BYTES:
            check_strings(raw, elements, f"input '{tensor.name}'", self._limits)
        elif len(raw) != elements * tensor.size:
            raise invalid(
                f"input byte size mismatch for input '{tensor.name}' for model '{self.signature.name}'. "
                f"Expected {elements * tensor.size}, got {len(raw)}"
            )
        self.message.raw_input_contents.append(raw)

    def output(self, name: object, classes: object = 0) -> None:
        """An output that is asked for; of its values only the `classes` largest, where that is not 0."""
        tensor = self.signature.outputs.get(name) if type(name) is str else None
        if tensor is None:
            raise invalid(f"unexpected inference output '{shown(name)}' for model '{self.signature.name}'")
        if tensor.name in self._outputs:
            raise invalid(f"output '{tensor.name}' is requested twice")
        self._outputs.add(tensor.name)
        wanted = self.message.outputs.add(name=tensor.name)
        if type(classes) is not int or not 0 <= classes < 2**31:
            raise invalid("invalid value for 'classification' parameter, expected a whole number >= 0")
        if classes:
            if tensor.wire not in RANKED:
                raise invalid(f"class result not available for output due to unsupported type '{tensor.wire}'")
            wanted.parameters["classification"].int64_param = classes

    def finish(self, parameters: Mapping[str, Any], context: RequestContext) -> service_pb2.ModelInferRequest:
        missing = self.signature.required - self._seen
        if missing:
            raise invalid(
                f"expected inputs {sorted(self.signature.required)} for model '{self.signature.name}', "
                f"but missing required input(s) {sorted(missing)}"
            )
        write_parameters(self.message, parameters, self.signature, context, self._limits)
        return self.message

    def _elements(self, tensor: TensorSignature, shape: Sequence[Any]) -> int:
        dims = tensor.dims
        if len(shape) != len(dims):
            raise self._misshapen(tensor, shape)
        elements = 1
        for have, want in zip(shape, dims, strict=True):
            if type(have) is not int or not 0 < have < 2**31 or want not in (have, -1):
                raise self._misshapen(tensor, shape)
            elements *= have
        if tensor.batched:
            batch = shape[0]
            if batch > self.signature.max_batch:
                raise invalid(
                    f"inference request batch-size must be <= {self.signature.max_batch} for '{self.signature.name}'"
                )
            if self._batch and batch != self._batch:
                raise invalid(
                    f"input '{tensor.name}' batch size does not match other inputs for '{self.signature.name}'"
                )
            self._batch = batch
        return elements

    def _misshapen(self, tensor: TensorSignature, shape: Sequence[Any]) -> Exception:
        dims = ",".join(map(str, tensor.dims))
        note = "; the first dimension is the batch" if tensor.batched else ""
        return invalid(
            f"unexpected shape for input '{tensor.name}' for model '{self.signature.name}'. Expected [{dims}], "
            f"got [{shown(','.join(map(str, shape[:16])))}]; -1 stands for any number from 1{note}"
        )


def refuse_shared_memory(parameters: Iterable[str]) -> None:
    for name in parameters:
        if name.startswith("shared_memory_"):
            raise invalid("shared memory of other processes is not read or written here; send tensors with the request")
