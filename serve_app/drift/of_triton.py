"""What each Triton says of its models, and the spec that it was started from, against the spec."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from google.protobuf import text_format
from pydantic import TypeAdapter
from tritonclient.grpc import model_config_pb2 as pb

from serve_app.drift.difference import Drift, leaves, shown
from serve_app.render.changes import Effect
from serve_app.render.ray_serve import TRITON
from serve_app.render.triton import model_config
from serve_app.spec import Spec, digest
from serve_app.spec.built import built_from
from serve_app.spec.units import show_duration
from serve_app.spec.versions import older
from serve_app.triton.reported import config_differences

_RESTART = "no redeploy changes it: start the service anew"
_APPLICATION: Effect = "restarts the application"
_ISO_DURATION = re.compile(r"-?P(\d+D)?(T(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?")


def triton_drift(spec: Spec, reports: Sequence[Mapping[str, Any]], deployed: str | None) -> Iterator[Drift]:
    """What differs. `reports` are `TritonReplica.report`'s, `deployed` is the digest of the spec that was deployed."""
    # Whatever a replica is built from changes the digest, and that restarts the application.
    effect = _APPLICATION if deployed != digest(spec) else None
    remedy = "" if effect else _RESTART
    models: set[str] = set()
    for report in reports:
        part = f"{TRITON} {report['replica']}" if "replica" in report else TRITON
        if report["failure"]:
            yield Drift(part, "answer", report["failure"], "its models' configurations", None, "see Triton's log")
            continue
        for each in _models(spec, report, part, effect, remedy):
            models.add(each.part.rpartition(" ")[2])
            yield each
        yield from _version(spec, report, part)
    answered = [report["built_from"] for report in reports if not report["failure"]]
    changed: dict[str, tuple[Any, Any]] = {}
    for running in answered:
        for path, was, becomes in leaves(running, built_from(spec)):
            changed.setdefault(_in_spec(spec, path), (was, becomes))
    for place, (was, becomes) in changed.items():
        # Of what Triton or Ray has told already, the spec's words would say the same again.
        kind, _, inner = place.partition(".")
        if kind != "overlooked" and not (kind in ("models", "ensembles") and inner.split(".")[0] in models):
            yield Drift("spec", place, _written(was), _written(becomes), effect, remedy)


def _models(spec: Spec, report: Mapping[str, Any], part: str, effect: Effect | None, remedy: str) -> Iterator[Drift]:
    wanted = [*spec.models, *spec.ensembles]
    for name in wanted:
        if name not in report["configs"]:
            known = any(name in report["built_from"].get(kind, {}) for kind in ("models", "ensembles"))
            what = "not ready" if known else "not there"
            yield Drift(f"{part} {name}", "model", what, "ready", effect, remedy)
            continue
        reported = text_format.Parse(report["configs"][name], pb.ModelConfig(), allow_unknown_field=True)
        for each in config_differences(model_config(spec, name, spec.primary_profile), reported):
            yield Drift(f"{part} {name}", each.field, each.second, each.first, effect, remedy)
    for name in report["configs"]:
        if name not in wanted:
            yield Drift(f"{part} {name}", "model", "ready", "nothing", effect, remedy)


def _version(spec: Spec, report: Mapping[str, Any], part: str) -> Iterator[Drift]:
    oldest = spec.profiles[spec.primary_profile].triton.version
    found = report["version"]
    if found is not None and older(found, oldest):
        remedy = f"install Triton {oldest} or newer there, and start the service anew"
        yield Drift(part, "version", found, f"{oldest} or newer", None, remedy)


def _in_spec(spec: Spec, path: Sequence[str | int]) -> str:
    """Where the spec has what `built_from` has at `path`."""
    if path[0] == "overrides" and len(path) > 1:
        return ".".join(map(str, ("models", path[1], "profiles", spec.primary_profile, *path[2:])))
    if path[0] in ("device", "onnx", "triton"):
        return ".".join(map(str, ("profiles", spec.primary_profile, *path)))
    return ".".join(map(str, path))


def _written(value: Any) -> str:
    """A value as the spec would write it, as far as plain data tell."""
    if isinstance(value, str) and _ISO_DURATION.fullmatch(value):
        return show_duration(TypeAdapter(timedelta).validate_python(value))
    return shown(value)
