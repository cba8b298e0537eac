"""Tensors of models and ensembles: names, dimensions, formats, reshapes."""

from __future__ import annotations

from serve_app.spec.checks.registry import of_each_model
from serve_app.spec.findings import Faults, error
from serve_app.spec.model import Model
from serve_app.spec.schema import Spec

SAME_NAME = error("T120", "An input and an output with the same name", "requests mix them up", "name them apart")


@of_each_model
def same_name(spec: Spec, name: str, model: Model) -> Faults:
    for tensor in sorted(set(model.inputs) & set(model.outputs)):
        yield SAME_NAME.at(("models", name, "outputs", tensor), f"an input of {name} is called {tensor} too")
