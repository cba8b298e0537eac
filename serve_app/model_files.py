"""The files of a project's models against its spec: weights, ONNX graphs, python code, labels, versions.

What `tandem render` and `tandem models pull` have still to make is not missing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from google.protobuf import json_format

from serve_app.files import check_size, lost_link
from serve_app.live import findings as _live  # noqa: F401 - registers its codes, so that they are known to exist
from serve_app.project import Project, project_of
from serve_app.render import VERSION_KEEPER
from serve_app.render.triton import model_config
from serve_app.spec import ProfileName, Spec
from serve_app.spec.checks.acceptances import unknown_codes
from serve_app.spec.checks.ensembles import NO_VERSION as OTHER_VERSION
from serve_app.spec.findings import Fault, Place, error
from serve_app.spec.load import Report, examine_file
from serve_app.spec.model import AS_IS, ONNX_FILE, PYTHON_FILE, Model
from serve_app.spec.part import Unknown
from serve_app.spec.profile import Triton
from serve_app.spec.resolved import Resolved
from serve_app.spec.spelling import closest
from serve_app.triton.model_folder import (
    NO_ENVIRONMENT,
    NO_FOLDER,
    NO_MODEL_FILE,
    NO_VERSION,
    NUMPY_2,
    UNREADABLE,
    FileFault,
    folder_faults,
    model_file,
    served_versions,
)
from serve_app.weights.agreement import NO_WEIGHTS_BESIDE, NOT_ONNX, disagreements, lost_weights
from serve_app.weights.archive import files_in_wheel
from serve_app.weights.errors import WeightsError
from serve_app.weights.fetch import cache_directory, kept, sha256_of
from serve_app.weights.onnx_file import LARGEST, NotOnnx, read_graph
from serve_app.weights.prepare import LocalFile, PackageFile, Source, missing
from serve_app.weights.sources import sources

NO_SOURCE = error(
    "W010", "A file of weights that does not exist", "the model cannot be prepared",
    "put the file there, or correct its path",
)  # fmt: skip
OTHER_SOURCE = error(
    "W011", "A file of weights with another SHA-256 than the spec pins", "it is refused when the model is prepared",
    "write its sha256, if it is the file you mean",
)  # fmt: skip

_T = TypeVar("_T")


def examine_with_files(spec_file: Path) -> Report:
    """Read a spec and check all of it, and where it is a project's own, the files of its models.

    Those of a model whose entry is wrong itself are left out.
    """
    report, project = examine_file(spec_file), project_of(spec_file)
    spec = report.spec
    if spec is None:
        return report
    wrong = {finding.fault.place[:2] for finding in report.errors}
    report = report.adding(unknown_codes(spec, beyond_the_text=True))
    if project is None:
        return report
    report = report.adding(file_faults(project, spec, lambda base: base not in wrong))
    # What is still to be made may be what an accepted warning is about.
    return report if _still_made(project, spec) else report.settled("W")


def file_faults(project: Project, spec: Spec, wanted: Callable[[Place], bool] = lambda base: True) -> list[Fault]:
    """What is wrong with the files of the models and ensembles whose place `wanted` wants."""
    made = _still_made(project, spec)
    faults: list[Fault] = []
    found = {source.model: source for source in sources(project.root, spec) if wanted(("models", source.model))}
    for source in found.values():
        faults += _source_faults(project, source)
    for name, model in spec.models.items():
        if wanted(("models", name)):
            faults += _known(_graph_faults(project, spec, name, model, found.get(name)))
    for kind, names in (("models", spec.models), ("ensembles", spec.ensembles)):
        for name in names:
            if wanted((kind, name)):
                for profile in spec.profiles:
                    faults += _known(_folder_faults(project, spec, name, profile, (kind, name), made))
    for name in spec.ensembles:
        if wanted(("ensembles", name)):
            faults += _known(_step_faults(project, spec, name, made))
    return list(dict.fromkeys(faults))


def _known(found: Iterable[_T]) -> Iterator[_T]:
    """What is found up to the first thing that follows from another part of the spec, which is wrong."""
    try:
        yield from found
    except (Unknown, ValueError, json_format.ParseError):  # protobuf refuses a number out of its range
        return


def _source_faults(project: Project, source: Source) -> Iterator[Fault]:
    place: Place = ("models", source.model, "weights")
    if isinstance(source.file, PackageFile):
        yield from _package_faults(source.file, place)
    if not isinstance(source.file, LocalFile):
        return
    path, shown = source.file.path, _shown(project, source.file.path)
    try:
        if _own_model(source) is not None:
            check_size(path, LARGEST)
        if (found := sha256_of(path)) != source.file.sha256:
            yield OTHER_SOURCE.at((*place, "sha256"), f"{shown} has {found}")
    except FileNotFoundError:
        if _is_needed(project, source):
            link = lost_link(path)
            yield NO_SOURCE.at((*place, "file"), f"{shown} is {link}" if link else f"there is no file {shown}")
    except OSError as broken:
        yield UNREADABLE.at(
            (*place, "file"),
            f"{shown} cannot be read: {broken.strerror}",
            consequence=NO_SOURCE.consequence,
            remedy="give a file that can be read",
        )


def _package_faults(file: PackageFile, place: Place) -> Iterator[Fault]:
    """What a wheel in the cache does not have; a package that is not there is checked when it is fetched."""
    try:
        archive = kept(file.requirement, file.sha256, file.kind, cache_directory())
        held = None if archive is None else files_in_wheel(archive)
    except OSError:
        return  # which is said when it is fetched
    if archive is None or held is None or file.path in held:
        return
    meant = closest(file.path, (path for path in held if path.endswith(Path(file.path).suffix)))
    remedy = f"did you mean {meant}?" if meant else "correct its path"
    yield NO_SOURCE.at((*place, "file"), f"there is no file {file.path} in {archive.name}", remedy=remedy)


def _is_needed(project: Project, source: Source) -> bool:
    try:
        return bool(missing([source], project.repository))
    except WeightsError:
        return False  # its recipe cannot be loaded, which the checks of the spec's code say


def _own_model(source: Source | None) -> Path | None:
    """The user's own file, where it is the model already."""
    file = source.file if source is not None and source.recipe == AS_IS else None
    return file.path if isinstance(file, LocalFile) else None


def _graph_faults(project: Project, spec: Spec, name: str, model: Model, source: Source | None) -> Iterator[Fault]:
    """What is wrong with the ONNX files of a model.

    A file of the user's own that is the model already stands for the model.onnx that is made of it, or will be.
    """
    base: Place = ("models", name)
    prepared, own = project.repository / name / "1" / ONNX_FILE, _own_model(source)
    batches: dict[Path, set[int]] = {} if own is None else {own: set()}
    for profile in spec.profiles:
        for path, max_batch in _known(_graphs(project, spec, name, profile)):
            batches.setdefault(own if own is not None and path == prepared else path, set()).add(max_batch)
    for path, found in batches.items():
        shown, place = _shown(project, path), (*base, "weights", "file") if path == own else base
        try:
            graph = read_graph(path, whole=path == own and not prepared.is_file())
        except NotOnnx as broken:
            yield NOT_ONNX.at(place, f"{shown} cannot be read ({broken})")
            continue
        except OSError:
            continue  # found where it is looked for
        folder = prepared.parent if path == own else path.parent
        for lost in lost_weights(graph, folder):
            what = f"{shown} has weights in {lost}, which is not in {_shown(project, folder)}"
            yield NO_WEIGHTS_BESIDE.at(place, what)
        for max_batch in sorted(found):
            yield from disagreements(graph, model, max_batch, base)


def _graphs(project: Project, spec: Spec, name: str, profile: ProfileName) -> Iterator[tuple[Path, int]]:
    """The ONNX files that the profile's server loads, also those that are still made, each with its max_batch."""
    folder, config = project.repository / name, model_config(spec, name, profile)
    has_tandems_code = Resolved(spec, name, profile).has_tandems_code
    for version in served_versions(folder, config) or [folder / "1"]:
        file = version / ONNX_FILE if has_tandems_code else model_file(version, config)
        if file is not None and (config.backend == "onnxruntime" or file.suffix == ".onnx"):
            yield file / ONNX_FILE if os.path.isdir(file) else file, config.max_batch_size


def _folder_faults(
    project: Project, spec: Spec, name: str, profile: ProfileName, base: Place, made: set[Path]
) -> Iterator[Fault]:
    for problem in folder_faults(project.repository / name, model_config(spec, name, profile)):
        # What another device's profile loads is often made there, as TensorRT's engines are.
        if profile != spec.primary_profile and problem.rule in (NO_MODEL_FILE, NO_VERSION, NO_ENVIRONMENT):
            continue
        if problem.rule is NUMPY_2 and not misreads_numpy_2(spec.profiles[profile].triton):
            continue
        will_be = any(path == problem.file or problem.file in path.parents for path in made)
        if problem.rule is NO_FOLDER or not will_be:
            place = _place(spec, name, profile, base, problem)
            yield problem.rule.at(place, f"{_shown(project, problem.file)} {problem.what}", remedy=problem.remedy)


def misreads_numpy_2(triton: Triton) -> bool:
    """Whether the profile's server is the one of a wheel. All of them were compiled against NumPy 1."""
    return triton.requirement is not None


def _step_faults(project: Project, spec: Spec, name: str, made: set[Path]) -> Iterator[Fault]:
    """The steps of an ensemble that want versions which nobody serves, where only the folders say which those are."""
    for index, step in enumerate(spec.ensembles[name].steps):
        served, folder = spec.models.get(step.model) or spec.ensembles.get(step.model), project.repository / step.model
        if served is None or served.versions.only or step.version < 1:
            continue  # said without the files
        still = {path.relative_to(folder).parts[0] for path in made if path.is_relative_to(folder)}
        config = model_config(spec, step.model, spec.primary_profile)
        versions = [version.name for version in served_versions(folder, config, still)]
        if versions and str(step.version) not in versions:
            yield OTHER_VERSION.at(
                ("ensembles", name, "steps", index, "version"),
                f"{step.model} serves version {', '.join(versions)} of {_shown(project, folder)}, and the step wants "
                f"{step.version}",
            )


def _place(spec: Spec, name: str, profile: ProfileName, base: Place, problem: FileFault) -> Place:
    if problem.about == ("file",) and isinstance(spec.served(name), Model):
        found = Resolved(spec, name, profile)
        given = found.override.file is not None or found.model.file is not None
        return found.place("file" if given else "backend")
    if problem.about == ("versions",) and "versions" not in spec.served(name).model_fields_set:
        return base
    return (*base, *problem.about)


def _shown(project: Project, path: Path) -> str:
    return str(path.relative_to(project.root)) if path.is_relative_to(project.root) else str(path)


def _still_made(project: Project, spec: Spec) -> set[Path]:
    """The files that are not there yet because `tandem render` or `tandem models pull` makes them."""
    made = {project.repository / name / "1" / VERSION_KEEPER for name in spec.ensembles}
    for name, model in spec.models.items():
        if any(Resolved(spec, name, profile).has_tandems_code for profile in spec.profiles):
            made.add(project.repository / name / "1" / PYTHON_FILE)
        if model.weights is not None:
            onnx = project.repository / name / "1" / ONNX_FILE
            # A recipe may make a label file too, together with the model.
            made |= {onnx} if os.path.exists(onnx) else {onnx, *(onnx.parents[1] / labels for labels in _labels(model))}
    return {path for path in made if not os.path.exists(path)}


def _labels(model: Model) -> list[str]:
    return [output.labels for output in model.outputs.values() if output.labels == "labels.txt"]
