"""The spec: what a deployment is, checked before anything is made from it."""

from serve_app.spec.built import digest
from serve_app.spec.findings import Finding, SpecError
from serve_app.spec.load import examine_file, load_spec
from serve_app.spec.schema import ProfileName, Spec

__all__ = ["Finding", "ProfileName", "Spec", "SpecError", "digest", "examine_file", "load_spec"]
