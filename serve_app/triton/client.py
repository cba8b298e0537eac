"""Calling a model: arrays in, arrays out, over gRPC to the Triton of this node."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from tritonclient.grpc import InferResult, service_pb2
from tritonclient.utils import serialize_byte_tensor

from serve_app.concurrency import together
from serve_app.context import request_context, timings
from serve_app.model import Array
from serve_app.spec import ProfileName, Spec
from serve_app.spec.model import Ensemble
from serve_app.spec.model import Model as ModelEntry
from serve_app.spec.paths import reached
from serve_app.spec.resolved import Resolved
from serve_app.triton.breakers import Breakers
from serve_app.triton.channel import CallError
from serve_app.triton.connection import Connection
from serve_app.triton.errors import model_failed, problem_of
from serve_app.triton.wake_up import WakeUps

logger = logging.getLogger("ray.serve")


class TritonModel:
    """A model of the spec, served by Triton. See `serve_app.model.Model` for the contract with stage code."""

    def __init__(
        self,
        spec: Spec,
        name: str,
        profile: ProfileName,
        connection: Connection,
        wake_ups: WakeUpsOf,
        breakers: Breakers,
        folder: Path,
    ):
        self.name = name
        self._entry = spec.served(name)
        self._max_batch = (
            self._entry.max_batch if isinstance(self._entry, Ensemble) else Resolved(spec, name, profile).max_batch
        )
        self._tensors = _Tensors(self._entry, batched=self._max_batch > 0)
        self._connection = connection
        self._wake_ups = wake_ups
        self._breakers = breakers
        self._folder = folder

    @cached_property
    def labels(self) -> Sequence[str]:
        for output in self._entry.outputs.values():
            if output.labels is not None:
                text = (self._folder / output.labels).read_text(encoding="utf-8")
                return text.removesuffix("\n").split("\n")
        return ()

    async def __call__(self, *inputs: Array) -> Any:
        self._check(inputs)
        rows = len(inputs[0])
        with timings.get().measure(self.name):
            size = self._max_batch or 1
            if rows <= size:
                answers = [await self._infer(inputs)]
            else:
                parts = range(0, rows, size)
                answers = await together(
                    *(self._infer([array[start : start + size] for array in inputs]) for start in parts)
                )
        outputs = tuple(
            np.concatenate(column) if len(column) > 1 else column[0] for column in zip(*answers, strict=True)
        )
        return outputs[0] if len(outputs) == 1 else outputs

    def _check(self, inputs: Sequence[Array]) -> None:
        """ValueError where the arrays are not what the spec says the model takes."""
        tensors = {key: entry.tensor for key, entry in self._entry.inputs.items()}
        if len(inputs) != len(tensors):
            raise ValueError(f"{self.name} takes {len(tensors)} inputs ({', '.join(tensors)}), not {len(inputs)}")
        for (key, tensor), array in zip(tensors.items(), inputs, strict=True):
            if reason := tensor.mismatch(array):
                raise ValueError(f"{self.name}.{key}: {reason}")
            if len(array) != len(inputs[0]) or not len(array):
                raise ValueError(
                    f"{self.name}.{key}: the batch has {len(array)} rows; all inputs need the same, at least one"
                )

    async def _infer(self, inputs: Sequence[Array]) -> list[Array]:
        context = request_context.get()
        left = context.remaining()
        request = self._tensors.request(self.name, inputs)
        request.id = context.request_id
        request.parameters["priority"].uint64_param = context.priority
        request.parameters["timeout"].int64_param = max(1, int(left * 1e6))
        try:
            with self._breakers.around(self.name, left), self._wake_ups.outstanding(self.name):
                answer = await self._connection.call("ModelInfer", request, service_pb2.ModelInferResponse, left)
        except CallError as error:
            raise problem_of(error, self.name) from None
        return self._outputs(InferResult(answer))

    def _outputs(self, result: InferResult) -> list[Array]:
        arrays = []
        for key, output in self._entry.outputs.items():
            array = result.as_numpy(key)
            if array is not None and not self._max_batch:
                array = array[np.newaxis]
            if array is None or (reason := output.tensor.mismatch(array)):
                logger.error("%s answered %s: %s", self.name, key, "nothing" if array is None else reason)
                raise model_failed(self.name)
            arrays.append(array)
        return arrays


class WakeUpsOf:
    """The wake-up requests of one process: those of a model are shared by all that call it over this connection."""

    def __init__(self, connection: Connection, spec: Spec, profile: ProfileName):
        self._level = spec.wake_up_level
        known = {
            name: WakeUps(partial(connection.wake, self._request(name, model)))
            for name, model in spec.models.items()
            if Resolved(spec, name, profile).by_tiers
        }
        # A request to an ensemble waits in the queues of its steps.
        self._of = {
            name: [known[model] for model in dict.fromkeys(reached(spec, name)) if model in known]
            for name in (*spec.models, *spec.ensembles)
        }

    def outstanding(self, name: str) -> AbstractContextManager[Any]:
        """Around each request to the model or ensemble."""
        wake_ups = self._of[name]
        if len(wake_ups) == 1:
            return wake_ups[0]
        stack = ExitStack()
        for each in wake_ups:
            stack.enter_context(each)
        return stack

    def _request(self, name: str, model: ModelEntry) -> service_pb2.ModelInferRequest:
        """Never executed, so the smallest tensors that Triton accepts will do."""
        smallest = [
            np.zeros((1, *(1 if dim == -1 else dim for dim in given.tensor.dims)), given.tensor.numpy)
            for given in model.inputs.values()
        ]
        request = _Tensors(model, batched=model.max_batch > 0).request(name, smallest)
        request.parameters["priority"].uint64_param = self._level
        request.parameters["timeout"].int64_param = 1
        return request


class _Tensors:
    """A model's inputs as they are sent; a model that does not batch gets them without the batch dimension."""

    def __init__(self, entry: ModelEntry | Ensemble, *, batched: bool):
        self._inputs = [(name, given.tensor.wire) for name, given in entry.inputs.items()]
        self._batched = batched

    def request(self, model: str, arrays: Sequence[Array]) -> service_pb2.ModelInferRequest:
        request = service_pb2.ModelInferRequest(model_name=model)
        for (name, wire), array in zip(self._inputs, arrays, strict=True):
            sent = array if self._batched else array[0]
            request.inputs.add(name=name, datatype=wire, shape=sent.shape)
            request.raw_input_contents.append(_raw(wire, sent))
        return request


def _raw(wire: str, array: Array) -> bytes:
    return bytes(serialize_byte_tensor(array).item()) if wire == "BYTES" else array.tobytes()


def models_for(
    spec: Spec,
    profile: ProfileName,
    names: Sequence[str],
    connection: Connection,
    repository: Path,
    wake_ups: WakeUpsOf | None = None,
    breakers: Breakers | None = None,
) -> dict[str, TritonModel]:
    """The callables for the models that a stage names.

    `wake_ups` and `breakers` are those of others who share the connection.
    """
    wake_ups = wake_ups or WakeUpsOf(connection, spec, profile)
    breakers = breakers or Breakers.of(spec, connection.renewed)
    return {name: TritonModel(spec, name, profile, connection, wake_ups, breakers, repository / name) for name in names}
