"""Spec → text: every generated file of a project, as a mapping from its path to its content."""

from __future__ import annotations

from serve_app.render.json_schema import render_json_schema
from serve_app.render.ray_serve import render_serve_config
from serve_app.render.triton import render_model_config, render_onnx_code
from serve_app.spec import Spec
from serve_app.spec.model import Ensemble
from serve_app.spec.resolved import Resolved

SPEC_FILE = "cluster/spec.yaml"
SCHEMA_FILE = "cluster/spec.schema.json"
SERVE_CONFIG = "serve_config.yaml"
MODEL_REPOSITORY = "model_repository"
# By this, in its second line, a generated file is known as one.
GENERATED = f"Generated from {SPEC_FILE} by `tandem render`"
VERSION_KEEPER = ".gitkeep"  # Triton wants a version of an ensemble too, and git keeps no empty folder


def _header(what: str) -> str:
    return f"# {what}\n# {GENERATED}; change that file, not this one.\n"


def render(spec: Spec) -> dict[str, str]:
    """The content of every generated file, by its path in the project."""
    header = _header(f"Ray Serve's configuration of the {spec.primary_profile} profile.")
    repository = render_repository(spec)
    return {
        SCHEMA_FILE: render_json_schema(),
        SERVE_CONFIG: render_serve_config(spec, header),
        **{f"{MODEL_REPOSITORY}/{path}": text for path, text in repository.items()},
    }


def render_repository(spec: Spec) -> dict[str, str]:
    """The content of every generated file of the model repository, by its path in it."""
    primary = spec.primary_profile
    files = {}
    for name in [*spec.models, *spec.ensembles]:
        for profile in spec.profiles:
            header = _header(f"Triton's configuration of {name} in the {profile} profile.")
            path = "config.pbtxt" if profile == primary else f"configs/{profile}.pbtxt"
            files[f"{name}/{path}"] = render_model_config(spec, name, profile, header)
        if isinstance(spec.served(name), Ensemble):
            files[f"{name}/1/{VERSION_KEEPER}"] = ""
        elif any(Resolved(spec, name, profile).has_tandems_code for profile in spec.profiles):
            header = _header("Runs the folder's model.onnx with ONNX Runtime in Triton's python backend.")
            files[f"{name}/1/model.py"] = render_onnx_code(header)
    return files
