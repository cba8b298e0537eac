"""From a repository to a spec, and the proof that it says the same: what it renders to is compared with what was."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tritonclient.grpc import model_config_pb2 as pb

from serve_app.importing.completion import Completed, completed
from serve_app.importing.deployment import DEVICES, Deployment, Entry, fitting_profile
from serve_app.importing.entries import ensemble_entry, model_entry
from serve_app.importing.equivalence import Device, normalised
from serve_app.importing.error import NotExpressible
from serve_app.importing.repository import Found, NotCarried, read_repository
from serve_app.render.triton import model_config
from serve_app.spec.load import Report, examine
from serve_app.spec.schema import ProfileName
from serve_app.triton.message_differences import differences
from serve_app.triton.model_folder import NO_VERSION, folder_faults


@dataclass(frozen=True)
class Imported:
    """A spec, the models in it, what of the repository is not in it and why, and which of its models' files are unfit.

    `report` is what the validator says of the spec.
    """

    text: str
    carried: list[Found]
    not_carried: list[NotCarried]
    unfit: list[str]
    report: Report

    @property
    def complete(self) -> bool:
        return not self.not_carried and not self.report.errors


def import_repository(folder: Path, profile: ProfileName | None = None, file: str = "cluster/spec.yaml") -> Imported:
    """The spec of the model repository in `folder`. RepositoryError where that is none.

    `profile`: the one that the spec shall have, by default the one that fits the models; `file`: the spec's name in
    the report.
    """
    models, lost = read_repository(folder)
    known = {found.name: completed(found, "gpu") for found in models}
    profile = profile or fitting_profile(each.config for each in known.values())
    device = DEVICES[profile]
    known = {found.name: completed(found, device) for found in models}
    entries = {name: _entry(name, each, device) for name, each in known.items()}
    deployment = Deployment(_identifier(folder.resolve().name), str(folder), profile, {}, [], [])
    deployment, report = _readable(deployment, known, entries, file)
    carried = [found for found in models if entries[found.name].reason is None]
    lost += [NotCarried(name, entry.reason) for name, entry in entries.items() if entry.reason is not None]
    lost += [loss for found in carried for loss in _losses(found, known[found.name].config, report, profile)]
    unfit = [
        f"{problem.file.relative_to(folder)} {problem.what}"
        for found in carried
        for problem in folder_faults(found.folder, known[found.name].config)
        if not (_is_ensemble(known[found.name].config) and problem.rule is NO_VERSION)  # rendered anew
    ]
    return Imported(deployment.text(), carried, sorted(lost, key=lambda loss: loss.model), unfit, report)


def _entry(name: str, known: Completed, device: Device) -> Entry:
    reason = "; ".join(known.gaps) or None
    try:
        value = ensemble_entry(known.config) if _is_ensemble(known.config) else model_entry(known.config, device)
    except NotExpressible as wrong:
        return Entry(name, {}, reason=f"{reason}; {wrong}" if reason else str(wrong))
    return Entry(name, value, known.notes, reason)


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
        report = examine(deployment.text(), file)
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
    if found.config is not None and found.config.name not in ("", found.name):
        yield NotCarried(
            found.name, f"its configuration calls it {found.config.name!r}, and Triton wants the folder's name"
        )
    if report.spec is None:
        yield NotCarried(found.name, "the spec cannot be read as it is, so that nobody can tell what it renders to")
        return
    rendered = normalised(model_config(report.spec, found.name, profile), DEVICES[profile])
    for each in differences(wanted, rendered):
        yield NotCarried(found.name, f"{each.field} was {each.first}, and is {each.second}")


def _identifier(name: str) -> str:
    """The folder's name as an application may be called."""
    return re.sub(r"[^a-z0-9_]+", "_", name.lower()).lstrip("_0123456789").rstrip("_") or "imported"
