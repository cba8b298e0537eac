"""Spec → text: every generated file of a project, as a mapping from its path to its content."""

from __future__ import annotations

from serve_app.render.ray_serve import render_serve_config
from serve_app.render.triton import render_model_config, render_onnx_code
from serve_app.spec import Spec
from serve_app.spec.model import Ensemble
from serve_app.spec.resolved import Resolved

SPEC_FILE = "cluster/spec.yaml"
SERVE_CONFIG = "serve_config.yaml"
MODEL_REPOSITORY = "model_repository"


def _header(what: str) -> str:
    return f"# {what}\n# Generated from {SPEC_FILE} by `tandem render`; change that file, not this one.\n"


def render(spec: Spec) -> dict[str, str]:
    """The content of every generated file, by its path in the project."""
    primary = spec.primary_profile
    files = {SERVE_CONFIG: render_serve_config(spec, _header(f"Ray Serve's configuration of the {primary} profile."))}
    for name in [*spec.models, *spec.ensembles]:
        folder = f"{MODEL_REPOSITORY}/{name}"
        for profile in spec.profiles:
            header = _header(f"Triton's configuration of {name} in the {profile} profile.")
            path = "config.pbtxt" if profile == primary else f"configs/{profile}.pbtxt"
            files[f"{folder}/{path}"] = render_model_config(spec, name, profile, header)
        if isinstance(spec.served(name), Ensemble):
            files[f"{folder}/1/.gitkeep"] = ""  # Triton wants a version, and git keeps no empty folder
        elif any(Resolved(spec, name, profile).has_tandems_code for profile in spec.profiles):
            header = _header("Runs the folder's model.onnx with ONNX Runtime in Triton's python backend.")
            files[f"{folder}/1/model.py"] = render_onnx_code(header)
    return files
