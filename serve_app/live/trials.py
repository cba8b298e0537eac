"""What a model is tried with: requests like its warm-ups or else the smallest, with its optional inputs and without."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from tritonclient.grpc import service_pb2

from serve_app.spec import Spec
from serve_app.spec.batching import Sequence as Sequencing
from serve_app.spec.model import Ensemble, Input, Model, Warmup, WarmupInput
from serve_app.spec.tensors import Tensor

# What a dimension that varies is tried with. Networks that shrink their input can do nothing with one pixel.
SIZES = (1, 32, 256)
# Of an empty string, which is its length alone.
_STRING_BYTES = 4
# What is sent at the most: as a batch, and as the one item without which nothing can be tried.
LARGEST = 256 * 2**20
LARGEST_ITEM = 2**30
_RANDOM_BYTES = 2**20


@dataclass(frozen=True)
class Content:
    """What an input holds for one item: its dimensions, without the batch, and its bytes; None is zeros."""

    dims: tuple[int, ...]
    item: bytes | None = None


Sample = Mapping[str, Content]


@dataclass(frozen=True)
class Trial:
    """Samples, of which a model that can be run takes at least one; none of them where all are too large to send.

    `like` reads on from "a request".
    """

    samples: Sequence[Sample]
    like: str = ""
    bare: bool = False  # without the optional inputs


def trials(spec: Spec, name: str, repository: Path) -> list[Trial]:
    """What a model or ensemble is tried with; its warm-ups' files are in the repository."""
    served: Any = spec.served(name)
    if isinstance(served, Model) and served.warmup:
        full = [_like_warmup(served, entry, repository / name) for entry in served.warmup]
    else:
        full = [Trial(_distinct([*_of_steps(spec, name, repository), *_smallest(served, _inputs(spec, name))]))]
    return [_sendable(served, trial) for trial in [*full, *_bare(served, full)]]


def _bare(served: Model | Ensemble, full: Sequence[Trial]) -> Iterator[Trial]:
    """The first trial without the optional inputs."""
    optional = [key for key, entry in served.inputs.items() if entry.optional]
    if not optional or len(optional) == len(served.inputs):  # Triton refuses a request without any input
        return
    like = f" like its warm-up {served.warmup[0].name}" if isinstance(served, Model) and served.warmup else ""
    samples = [{key: sample[key] for key in sample if key not in optional} for sample in full[0].samples]
    yield Trial(_distinct(samples), f"{like} without {' and '.join(optional)}", bare=True)


def _sendable(served: Model | Ensemble, trial: Trial) -> Trial:
    return replace(trial, samples=[each for each in trial.samples if _item(served, each) <= LARGEST_ITEM])


def batches(spec: Spec, name: str, max_batch: int, trial: Trial) -> list[int | None]:
    """The batches to try: one item, and as many as the model takes, if such a request is of a size to send."""
    served = spec.served(name)
    if max_batch == 0:
        return [None]
    if trial.bare or [*_sequences(spec, name)] or any(entry.ragged for entry in served.inputs.values()):
        return [1]
    item = _item(served, trial.samples[0])
    return list(dict.fromkeys([1, min(max_batch, max(1, LARGEST // max(1, item)))]))


def request(spec: Spec, name: str, version: str, sample: Sample, batch: int | None) -> Any:
    """A ModelInferRequest of the sample; `batch` is the batch dimension, None where there is none.

    It is a whole sequence where the model, or a step of the ensemble, wants one.
    """
    served: Any = spec.served(name)
    made = service_pb2.ModelInferRequest(model_name=name, model_version=version)
    if any(not sequence.iterative for sequence in _sequences(spec, name)):
        made.parameters["sequence_id"].int64_param = 1
        made.parameters["sequence_start"].bool_param = True
        made.parameters["sequence_end"].bool_param = True
    for key, content in sample.items():
        entry = served.inputs[key]
        shape = [*([] if batch is None else [batch]), *content.dims]
        made.inputs.add(name=key, datatype=entry.tensor.wire, shape=shape)
        made.raw_input_contents.append(_bytes(entry, content) * (1 if batch is None else batch))
    return made


def _sequences(spec: Spec, name: str) -> Iterator[Sequencing]:
    """How the model, or each step of the ensemble that does so, takes requests in sequences."""
    served = spec.served(name)
    if isinstance(served, Ensemble):
        for step in served.steps:
            yield from _sequences(spec, step.model)
    elif served.sequence is not None:
        yield served.sequence


# -- warm-ups


def _like_warmup(model: Model, entry: Warmup, folder: Path) -> Trial:
    """A warm-up's own request, and what optional inputs it leaves out in the sizes that they may have with it."""
    given = {key: _content(model.inputs[key].tensor, each, folder) for key, each in entry.inputs.items()}
    others = {key: each.tensor.dims for key, each in model.inputs.items() if key not in given}
    theirs = [
        size
        for key, content in given.items()
        for size, dim in zip(content.dims, model.inputs[key].tensor.dims, strict=True)
        if dim == -1
    ]
    samples = [{**given, **_zeros(others, size)} for size in (*theirs, *SIZES)]
    added = f" with {' and '.join(others)} as well" if others else ""
    return Trial(_distinct(samples), f" like its warm-up {entry.name}{added}")


def _content(tensor: Tensor, given: WarmupInput, folder: Path) -> Content:
    """What Triton fills a warm-up's input with: for random strings, too, empty ones."""
    dims = tensor.dims if given.tensor is None else given.tensor.dims
    if given.file is not None:
        item = (folder / "warmup" / given.file).read_bytes()
        return Content(dims, item if tensor.width is None else item[: _size(tensor, dims)])
    if given.fill == "random" and tensor.width is not None and (size := _size(tensor, dims)) <= LARGEST_ITEM:
        block = random.Random(0).randbytes(min(size, _RANDOM_BYTES))
        return Content(dims, (block * (size // len(block) + 1))[:size])
    return Content(dims)


def _of_steps(spec: Spec, name: str, repository: Path) -> Iterator[Sample]:
    """What an ensemble hands its steps, where it is like their warm-ups; at most one."""
    ensemble = spec.served(name)
    if not isinstance(ensemble, Ensemble):
        return
    given: dict[str, Content] = {}
    for step in ensemble.steps:
        inner = spec.served(step.model)
        if isinstance(inner, Model):
            known = [_like_warmup(inner, entry, repository / step.model).samples[0] for entry in inner.warmup]
        else:
            known = list(_of_steps(spec, step.model, repository))
        for key, tensor in step.takes.items():
            if known and tensor in ensemble.inputs and _fits(ensemble.inputs[tensor].tensor, known[0][key]):
                given.setdefault(tensor, known[0][key])
    if given:
        yield {**_zeros(_inputs(spec, name), SIZES[0]), **given}


def _fits(tensor: Tensor, content: Content) -> bool:
    return len(tensor.dims) == len(content.dims) and all(
        want in (-1, have) for want, have in zip(tensor.dims, content.dims, strict=True)
    )


# -- the smallest


def _inputs(spec: Spec, name: str) -> dict[str, tuple[int, ...]]:
    """The dimensions of the inputs. Those of an ensemble that vary are as the steps have them that take the input."""
    served = spec.served(name)
    found = {key: [*entry.tensor.dims] for key, entry in served.inputs.items()}
    for step in served.steps if isinstance(served, Ensemble) else ():
        inner = _inputs(spec, step.model)
        for key, tensor in step.takes.items():
            dims = found.get(tensor, [])
            # From the last one: a batch dimension comes first, where one of the two has it among its dimensions.
            for place, dim in zip(reversed(range(len(dims))), reversed(inner[key]), strict=False):
                dims[place] = dim if dims[place] == -1 else dims[place]
    return {key: tuple(dims) for key, dims in found.items()}


def _smallest(served: Model | Ensemble, inputs: Mapping[str, tuple[int, ...]]) -> Iterator[Sample]:
    """Zeros, or empty strings, smallest first."""
    for size in SIZES:
        yield _zeros(inputs, size)
    if any(entry.largest for entry in served.inputs.values()):
        largest = {key: Content(tuple(entry.largest)) for key, entry in served.inputs.items() if entry.largest}
        yield {**_zeros(inputs, SIZES[-1]), **largest}


def _zeros(inputs: Mapping[str, tuple[int, ...]], size: int) -> dict[str, Content]:
    return {key: Content(tuple(size if dim == -1 else dim for dim in dims)) for key, dims in inputs.items()}


def _distinct(samples: Iterable[Sample]) -> list[Sample]:
    found: list[Sample] = []
    for sample in samples:
        if sample not in found:
            found.append(sample)
    return found


def _item(served: Model | Ensemble, sample: Sample) -> int:
    """The bytes of one item."""
    return sum(
        _size(served.inputs[key].tensor, content.dims) if content.item is None else len(content.item)
        for key, content in sample.items()
    )


def _bytes(entry: Input, content: Content) -> bytes:
    return bytes(_size(entry.tensor, content.dims)) if content.item is None else content.item


def _size(tensor: Tensor, dims: Sequence[int]) -> int:
    return (tensor.width or _STRING_BYTES) * prod(dims)
