"""Calling a model: arrays in, arrays out, over gRPC to the Triton of this node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from tritonclient.grpc import MAX_GRPC_MESSAGE_SIZE, InferInput
from tritonclient.grpc.aio import InferenceServerClient, InferResult
from tritonclient.utils import InferenceServerException

from serve_app.concurrency import together
from serve_app.context import RequestContext, request_context, timings
from serve_app.model import Array
from serve_app.spec import ProfileName, Spec
from serve_app.spec.model import Ensemble
from serve_app.spec.model import Model as ModelEntry
from serve_app.spec.paths import reached
from serve_app.spec.resolved import Resolved
from serve_app.triton.error import TritonError
from serve_app.triton.errors import is_lost, model_unavailable, problem_of
from serve_app.triton.wake_up import WakeUps

_CHANNEL = [
    ("grpc.max_send_message_length", MAX_GRPC_MESSAGE_SIZE),
    ("grpc.max_receive_message_length", MAX_GRPC_MESSAGE_SIZE),
    # The server is on this machine, whatever the environment says about a proxy.
    ("grpc.enable_http_proxy", 0),
]


class Connection:
    """This process's gRPC channel to the node's Triton.

    `locate(lost)` answers the server's address; `lost` is one that just failed, None at first.
    """

    def __init__(self, locate: Callable[[str | None], Awaitable[str]]):
        self._locate = locate
        self._lock = asyncio.Lock()
        self._address: str | None = None
        self._client: InferenceServerClient | None = None

    async def client(self, lost: InferenceServerClient | None = None) -> InferenceServerClient:
        """The client to use; a new one where `lost` is the one in use until now."""
        async with self._lock:
            if self._client is None or self._client is lost:
                address = await self._locate(self._address)
                # Its channel may carry other requests of this process, which end by themselves.
                self._address, self._client = address, InferenceServerClient(address, channel_args=_CHANNEL)
            return self._client

    async def is_ready(self, timeout: float) -> bool:
        """Whether the server is ready; one that went away is looked for once. `timeout` is for each of four calls."""
        lost: InferenceServerClient | None = None
        for _ in range(2):
            try:
                client = await asyncio.wait_for(self.client(lost), timeout)
                return bool(await client.is_server_ready(client_timeout=timeout))
            except InferenceServerException:
                lost = client
            except (asyncio.TimeoutError, TritonError):
                return False
        return False

    @property
    def in_use(self) -> InferenceServerClient | None:
        return self._client


class TritonModel:
    """A model of the spec, served by Triton. See `serve_app.model.Model` for the contract with stage code."""

    def __init__(
        self, spec: Spec, name: str, profile: ProfileName, connection: Connection, wake_ups: WakeUpsOf, folder: Path
    ):
        self.name = name
        self._entry = spec.served(name)
        self._max_batch = (
            self._entry.max_batch if isinstance(self._entry, Ensemble) else Resolved(spec, name, profile).max_batch
        )
        self._connection = connection
        self._wake_ups = wake_ups
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
        request = _request(self._entry, inputs, batched=self._max_batch > 0)
        client: InferenceServerClient | None = None
        retried = False
        while True:
            try:
                client = await self._connected(client, context)
                left = context.remaining()
                with self._wake_ups.outstanding(self.name):
                    result = await client.infer(
                        self.name,
                        request,
                        request_id=context.request_id,
                        priority=context.priority,
                        timeout=int(left * 1e6),
                        client_timeout=left,
                    )
                return self._outputs(result)
            except InferenceServerException as error:
                if retried or not is_lost(error):
                    raise problem_of(error, self.name) from None
                retried = True

    async def _connected(self, lost: InferenceServerClient | None, context: RequestContext) -> InferenceServerClient:
        left = context.remaining()
        try:
            return await asyncio.wait_for(self._connection.client(lost), left)
        except (asyncio.TimeoutError, TritonError):
            raise model_unavailable(self.name) from None

    def _outputs(self, result: InferResult) -> list[Array]:
        arrays = []
        for key, output in self._entry.outputs.items():
            array = result.as_numpy(key)
            if array is not None and not self._max_batch:
                array = array[np.newaxis]
            if array is None or (reason := output.tensor.mismatch(array)):
                raise ValueError(f"{self.name} answered {key}: {reason if array is not None else 'nothing'}")
            arrays.append(array)
        return arrays


class WakeUpsOf:
    """The wake-up requests of one process: those of a model are shared by all that call it over this connection."""

    def __init__(self, connection: Connection, spec: Spec, profile: ProfileName):
        self._connection = connection
        self._level = spec.wake_up_level
        known = {
            name: WakeUps(partial(self._wake, name, model))
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
            return wake_ups[0].outstanding()
        stack = ExitStack()
        for each in wake_ups:
            stack.enter_context(each.outstanding())
        return stack

    async def _wake(self, name: str, model: ModelEntry) -> None:
        client = self._connection.in_use
        if client is None:
            return
        # Never executed, so the smallest tensors that Triton accepts will do.
        smallest = [
            np.zeros((1, *(1 if dim == -1 else dim for dim in given.tensor.dims)), given.tensor.numpy)
            for given in model.inputs.values()
        ]
        request = _request(model, smallest, batched=model.max_batch > 0)
        try:
            await client.infer(name, request, priority=self._level, timeout=1, client_timeout=1.0)
        except InferenceServerException:
            return  # being refused is what it is for


def _request(entry: ModelEntry | Ensemble, arrays: Sequence[Array], *, batched: bool) -> list[InferInput]:
    """The tensors on the wire; a model that does not batch gets them without the batch dimension."""
    request = []
    for (key, given), array in zip(entry.inputs.items(), arrays, strict=True):
        sent = array if batched else array[0]
        request.append(InferInput(key, list(sent.shape), given.tensor.wire).set_data_from_numpy(sent))
    return request


def models_for(
    spec: Spec,
    profile: ProfileName,
    names: Sequence[str],
    connection: Connection,
    repository: Path,
    wake_ups: WakeUpsOf | None = None,
) -> dict[str, TritonModel]:
    """The callables for the models that a stage names. `wake_ups` are those of others who share the connection."""
    wake_ups = wake_ups or WakeUpsOf(connection, spec, profile)
    return {name: TritonModel(spec, name, profile, connection, wake_ups, repository / name) for name in names}
