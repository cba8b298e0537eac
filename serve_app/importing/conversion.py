"""From a repository to a spec, and the proof that it says the same: what it renders to is compared with what was."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tritonclient.grpc import model_config_pb2 as pb

from serve_app.importing.bls import Calls, calls
from serve_app.importing.completion import Completed, completed
from serve_app.importing.deployment import DEVICES, Deployment, Entry, fitting_profile
from serve_app.importing.entries import ensemble_entry, model_entry
from serve_app.importing.equivalence import Device, normalised
from serve_app.importing.error import NotExpressible
from serve_app.importing.repository import Found, NotCarried, read_repository
from serve_app.importing.tiers import Tiers, most_common_tiers
from serve_app.model_files import misreads_numpy_2
from serve_app.render.triton import model_config
from serve_app.spec.load import Report, examine_to_write
from serve_app.spec.model import PYTHON
from serve_app.spec.part import Unknown
from serve_app.spec.schema import ProfileName
from serve_app.triton.message_differences import differences
from serve_app.triton.model_folder import NO_VERSION, NUMPY_2, folder_faults

_TIERS_NAMES = "the names of the tiers, which no configuration has: here they are {}; call them as clients do"


@dataclass(frozen=True)
class Imported:
    """A spec, the models in it, what of the repository is not in it and why, and what is wrong with its models' files.

    `unfit` files are missing or are not what Triton needs, `doubtful` ones it takes, and they go wrong. `unclear` is
    what models' code may call, a sentence each that begins with the model; `report` what the validator says of the
    spec.
    """

    text: str
    carried: list[Found]
    not_carried: list[NotCarried]
    unclear: list[str]
    unfit: list[str]
    doubtful: list[str]
    report: Report

    @property
    def renamed(self) -> list[Found]:
        """The models in the spec that their own configuration calls otherwise."""
        return [found for found in self.carried if found.other_name is not None]

    @property
    def complete(self) -> bool:
        return not self.not_carried and not self.report.errors


def import_repository(
    folder: Path, profile: ProfileName | None = None, file: str = "cluster/spec.yaml", *, schema: bool = False
) -> Imported:
    """The spec of the model repository in `folder`. RepositoryError where that is none.

    `profile`: the one that the spec shall have, by default the one that fits the models; `file`: the spec's name in
    the report; `schema`: whether the JSON Schema will be beside the spec, for editors.
    """
    models, lost = read_repository(folder)
    known = {found.name: completed(found, "gpu") for found in models}
    profile = profile or fitting_profile(each.config for each in known.values())
    device = DEVICES[profile]
    known = {found.name: completed(found, device) for found in models}
    names = {found.name for found in models} | {loss.model for loss in lost if loss.model is not None}
    code = {
        found.name: calls(found.folder, names) if known[found.name].config.backend == PYTHON else Calls()
        for found in models
    }
    tiers = most_common_tiers(each.config for each in known.values())
    entries = {found.name: _entry(found, known[found.name], device, tiers, code[found.name]) for found in models}
    deployment = Deployment(_identifier(folder.resolve().name), str(folder), profile, tiers, schema=schema)
    deployment, report = _readable(deployment, known, entries, file)
    carried = [found for found in models if entries[found.name].reason is None]
    lost += [NotCarried(name, entry.reason) for name, entry in entries.items() if entry.reason is not None]
    lost += [NotCarried(None, _TIERS_NAMES.format(_shown(tiers)))] if tiers is not None else []
    lost += [loss for found in carried for loss in _losses(found, known[found.name].config, report, profile)]
    faults = [
        fault
        for found in carried
        for fault in folder_faults(found.folder, known[found.name].config)
        if not (_is_ensemble(known[found.name].config) and fault.rule is NO_VERSION)  # rendered anew
        and not (fault.rule is NUMPY_2 and not _misreads_numpy_2(report, profile))
    ]
    unfit = [f"{_from(folder, fault.file)} {fault.what}" for fault in faults if fault.rule.severity == "error"]
    doubtful = [
        f"{_from(folder, fault.file)} {fault.what}: {fault.rule.consequence}"
        for fault in faults
        if fault.rule.severity == "warning"
    ]
    unclear = [f"{found.name}: {each}" for found in carried for each in code[found.name].unclear]
    lost.sort(key=lambda loss: loss.model or "")
    return Imported(deployment.text(), carried, lost, unclear, unfit, doubtful, report)


def _misreads_numpy_2(report: Report, profile: ProfileName) -> bool:
    """Whether the server that the spec asks for does."""
    return report.spec is not None and misreads_numpy_2(report.spec.profiles[profile].triton)


def _entry(found: Found, known: Completed, device: Device, tiers: Tiers | None, code: Calls) -> Entry:
    reason = "; ".join(known.gaps) or None
    try:
        is_ensemble = _is_ensemble(known.config)
        value = ensemble_entry(known.config) if is_ensemble else model_entry(known.config, device, tiers)
    except NotExpressible as wrong:
        return Entry(found.name, {}, found.comments, reason=f"{reason}; {wrong}" if reason else str(wrong))
    if code.models:
        value["calls"] = list(code.models)
    return Entry(found.name, value, found.comments, (*known.notes, *_notes(found, code)), reason)


def _from(folder: Path, file: Path) -> Path:
    return file.relative_to(folder) if file.is_relative_to(folder) else file


def _notes(found: Found, code: Calls) -> Iterator[str]:
    if found.other_name is not None:
        yield f"Its configuration called it {found.other_name!r}; Triton wants the folder's name."
    for each in code.unclear:
        yield f"Yours, under `calls`: {each}."


def _shown(tiers: Tiers) -> str:
    return ", ".join(f"{name} ({priority})" for priority, name in tiers.names.items())


def _is_ensemble(config: pb.ModelConfig) -> bool:
    return bool(config.HasField("ensemble_scheduling"))


def _readable(
    deployment: Deployment, known: dict[str, Completed], entries: dict[str, Entry], file: str
) -> tuple[Deployment, Report]:
    """The deployment with the entries that the spec can read. What it cannot is given its reason in `entries`."""
    while True:
        deployment = replace(
            deployment,
            configs={name: each.config for name, each in known.items() if entries[name].reason is None},
            models=[entry for name, entry in entries.items() if not _is_ensemble(known[name].config)],
            ensembles=[entry for name, entry in entries.items() if _is_ensemble(known[name].config)],
        )
        report = examine_to_write(deployment.text(), file)
        refused: dict[str, list[str]] = {}
        for finding in report.findings if report.spec is None else []:
            place = finding.fault.place
            if len(place) > 1 and finding.code.startswith("Y"):
                refused.setdefault(str(place[1]), []).append(f"{finding.place}: {finding.message}")
        new = {name: reasons for name, reasons in refused.items() if name in entries and not entries[name].reason}
        if not new:
            return deployment, report
        for name, reasons in new.items():
            entries[name] = replace(entries[name], reason="; ".join(reasons))


def _losses(found: Found, wanted: pb.ModelConfig, report: Report, profile: ProfileName) -> Iterator[NotCarried]:
    """Every difference between what the spec renders to and what was there, to Triton."""
    if report.spec is None:
        yield NotCarried(found.name, "the spec cannot be read as it is, so that nobody can tell what it renders to")
        return
    try:
        rendered = normalised(model_config(report.spec, found.name, profile), DEVICES[profile])
    except Unknown:  # there is a finding about it
        yield NotCarried(found.name, "it holds a value that no spec can, so that nobody can tell what it renders to")
        return
    for each in differences(wanted, rendered):
        yield NotCarried(found.name, f"{each.field} was {each.first}, and is {each.second}")


def _identifier(name: str) -> str:
    """The folder's name as an application may be called."""
    return re.sub(r"[^a-z0-9_]+", "_", name.lower()).lstrip("_0123456789").rstrip("_") or "imported"
