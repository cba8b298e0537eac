"""Names that Triton, a shell, a file system or Python would trip over."""

from __future__ import annotations

import keyword
import re

from serve_app.spec.checks.registry import of_each_stage, of_the_spec
from serve_app.spec.findings import Faults, error, warning
from serve_app.spec.pipeline import Stage
from serve_app.spec.schema import Spec

MODEL_ARGUMENT = error(
    "T121", "A stage's model whose name is no name in Python", "the stage's constructor cannot take it by name",
    "write letters, digits and underscores, a letter first, and no word of Python's own",
)  # fmt: skip
MODEL_NAME = error(
    "T122", "A model's name that cannot be a folder, a word for a shell and a part of a URL",
    "Triton's python backend hands it to a shell, so that loading hangs or fails, and clients write it into URLs",
    "write letters, digits, dots, hyphens and underscores, a letter or digit first, at most 200 of them",
)  # fmt: skip
SAME_NAME = error(
    "T123", "A model and an ensemble with the same name", "they would share a folder, and Triton serve one of them",
    "rename one",
)  # fmt: skip
SAME_BUT_FOR_CASE = warning(
    "T124", "Two models whose names differ in upper and lower case only",
    "they share a folder where the file system does not tell the two apart, as macOS's", "name them apart",
)  # fmt: skip
TENSOR_NAME = error(
    "T125", "A tensor's name with characters in it that cannot be seen", "clients would have to guess them",
    "write the name that the model has",
)  # fmt: skip

_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


@of_the_spec
def model_names(spec: Spec) -> Faults:
    for section, names in (("models", spec.models), ("ensembles", spec.ensembles)):
        for name in names:
            if _MODEL.fullmatch(name) is None:
                shown = name if len(name) <= 40 else f"{name[:37]}…"
                yield MODEL_NAME.at((section, name), f"{shown!r} is no name for a model")


@of_the_spec
def same_names(spec: Spec) -> Faults:
    for name in spec.ensembles:
        if name in spec.models:
            yield SAME_NAME.at(("ensembles", name), f"a model is called {name} too")


@of_the_spec
def same_but_for_case(spec: Spec) -> Faults:
    seen: dict[str, str] = {}
    for section, names in (("models", spec.models), ("ensembles", spec.ensembles)):
        for name in names:
            first = seen.setdefault(name.casefold(), name)
            if first != name:
                yield SAME_BUT_FOR_CASE.at((section, name), f"there is {first} too")


@of_each_stage
def model_arguments(spec: Spec, name: str, stage: Stage) -> Faults:
    for section, names in (("models", spec.models), ("ensembles", spec.ensembles)):
        for model in stage.models:
            if model in names and (not model.isidentifier() or keyword.iskeyword(model)):
                yield MODEL_ARGUMENT.at((section, model), f"stage {name} uses it, and {model!r} is no name in Python")


@of_the_spec
def tensor_names(spec: Spec) -> Faults:
    for section, entries in (("models", spec.models), ("ensembles", spec.ensembles)):
        for name, served in entries.items():
            for side, tensors in (("inputs", served.inputs), ("outputs", served.outputs)):
                for tensor in tensors:
                    if not tensor.isprintable():
                        yield TENSOR_NAME.at((section, name, side, tensor), f"{tensor!r} is no name for a tensor")
