"""Spec → text: every generated file of a project, as a mapping from its path to its content."""

from __future__ import annotations

from serve_app.render.ray_serve import render_serve_config
from serve_app.render.triton import render_model_config, render_onnx_code
from serve_app.spec import Spec

SPEC_FILE = "cluster/spec.yaml"
SERVE_CONFIG = "serve_config.yaml"
MODEL_REPOSITORY = "model_repository"


def _header(what: str) -> str:
    return f"# {what}\n# Generated from {SPEC_FILE} by `tandem render`; change that file, not this one.\n"


def render(spec: Spec) -> dict[str, str]:
    """The content of every generated file, by its path in the project."""
    files = {SERVE_CONFIG: render_serve_config(spec, _header("Ray Serve's configuration of the embedded profile."))}
    for name, model in spec.models.items():
        folder = f"{MODEL_REPOSITORY}/{name}"
        header = _header(f"Triton's configuration of {name} in the embedded profile.")
        files[f"{folder}/config.pbtxt"] = render_model_config(spec, name, "embedded", header)
        if "gpu" in spec.profiles:
            header = _header(f"Triton's configuration of {name} in the gpu profile.")
            files[f"{folder}/configs/gpu.pbtxt"] = render_model_config(spec, name, "gpu", header)
        if model.backend == "onnx":
            header = _header("Runs the folder's model.onnx with ONNX Runtime in Triton's python backend.")
            files[f"{folder}/1/model.py"] = render_onnx_code(header)
    return files
