"""The rare rest of a model's configuration, given in Triton's own terms: `triton: {FIELD: …}`."""

from __future__ import annotations

import difflib
import re

from google.protobuf import json_format
from tritonclient.grpc import model_config_pb2 as pb

from serve_app.spec.checks.registry import of_each_ensemble, of_each_model
from serve_app.spec.findings import Faults, error
from serve_app.spec.model import RARE_FIELDS, Ensemble, Model
from serve_app.spec.schema import Spec

# The spec's words for the fields of ModelConfig that it has words for.
WORDS = {
    "name": "the key of the entry", "backend": "backend", "version_policy": "versions", "max_batch_size": "max_batch",
    "input": "inputs", "output": "outputs", "batch_input": "batch_inputs", "batch_output": "batch_outputs",
    "optimization": "optimization", "dynamic_batching": "batching", "sequence_batching": "sequence",
    "ensemble_scheduling": "an entry of `ensembles`", "instance_group": "instances", "default_model_filename": "file",
    "metric_tags": "metric_tags", "parameters": "parameters", "model_warmup": "warmup",
    "model_transaction_policy": "decoupled", "response_cache": "cache", "model_metrics": "metrics",
}  # fmt: skip

NOT_TRITONS = error(
    "T173", "A field of `triton` that Triton's ModelConfig does not have, or of another type",
    "Triton could not read the configuration", "correct it",
)  # fmt: skip
HAS_A_WORD = error(
    "T174", "A field of `triton` that the spec has a word for", "what follows from it could not be checked",
    "use the spec's word",
)  # fmt: skip


def rare_fields(spec: Spec, name: str, served: Model | Ensemble) -> Faults:
    for field, value in served.triton.items():
        place = ("ensembles" if isinstance(served, Ensemble) else "models", name, "triton", field)
        if field in RARE_FIELDS:
            if reason := _mismatch(field, value):
                yield NOT_TRITONS.at(place, reason, remedy=f"write it as Triton's ModelConfig has it: {_form(field)}")
        elif field in WORDS:
            yield HAS_A_WORD.at(place, f"{field} has a word of its own", remedy=f"write {WORDS[field]} instead")
        else:
            close = difflib.get_close_matches(field, RARE_FIELDS, 1)
            remedy = f"did you mean {close[0]}?" if close else f"there is {', '.join(RARE_FIELDS)}"
            yield NOT_TRITONS.at(place, f"ModelConfig has no field {field!r}", remedy=remedy)


of_each_model(rare_fields)
of_each_ensemble(rare_fields)


def _mismatch(field: str, value: object) -> str | None:
    """Why the value is none of the field's, in protobuf's words."""
    try:
        json_format.ParseDict({field: value}, pb.ModelConfig())
    except json_format.ParseError as mismatch:
        words = re.sub(r"Failed to parse \S+ field: |\s*Available Fields.*", "", str(mismatch), flags=re.DOTALL)
        return f"{field} cannot be read: {words.strip().rstrip('.')}"
    return None


def _form(field: str) -> str:
    """The fields of the message that a field takes, or its type."""
    kind = pb.ModelConfig.DESCRIPTOR.fields_by_name[field]
    if kind.message_type is None:
        return "a text"
    if kind.message_type.GetOptions().map_entry:
        return "texts by name"
    return "{" + ", ".join(f"{each.name}: …" for each in kind.message_type.fields) + "}"
