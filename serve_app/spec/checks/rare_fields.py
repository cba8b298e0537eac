"""The rare rest of a model's configuration, given in Triton's own terms: `triton: {FIELD: …}`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from google.protobuf import json_format
from tritonclient.grpc import model_config_pb2 as pb

from serve_app.spec.checks.registry import of_each_ensemble, of_each_model
from serve_app.spec.findings import Faults, Place, error
from serve_app.spec.model import RARE_FIELDS, Ensemble, Model
from serve_app.spec.part import UNKNOWN
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
REFUSED = error(
    "T179", "A value of `triton` that Triton refuses", "Triton refuses to load the model", "correct it, or remove it"
)
NO_AGENT = error(
    "T430", "A repository agent that the profile's server does not have", "Triton refuses to load the model",
    "remove it, or take a server that has this agent, as the container's has checksum",
)  # fmt: skip

_LIBRARY = re.compile(r"libtriton_[A-Za-z0-9_-]+\.so|model\.py")
_AGENT = re.compile(r"[A-Za-z0-9_-]+")


def rare_fields(spec: Spec, name: str, served: Model | Ensemble) -> Faults:
    for field, value in served.triton.items():
        place = ("ensembles" if isinstance(served, Ensemble) else "models", name, "triton", field)
        if field in RARE_FIELDS:
            if reason := _mismatch(field, value):
                yield NOT_TRITONS.at(place, reason, remedy=f"write it as Triton's ModelConfig has it: {_form(field)}")
            else:
                yield from _refused(spec, place, field, served)
        elif field in WORDS:
            yield HAS_A_WORD.at(place, f"{field} has a word of its own", remedy=f"write {WORDS[field]} instead")
        else:
            close = difflib.get_close_matches(field, RARE_FIELDS, 1)
            remedy = f"did you mean {close[0]}?" if close else f"there is {', '.join(RARE_FIELDS)}"
            yield NOT_TRITONS.at(place, f"ModelConfig has no field {field!r}", remedy=remedy)


of_each_model(rare_fields)
of_each_ensemble(rare_fields)


def _refused(spec: Spec, place: Place, field: str, served: Model | Ensemble) -> Faults:
    """What is wrong with a value that the field's type allows."""
    config = json_format.ParseDict({field: served.triton[field]}, pb.ModelConfig())
    if field == "platform" and (config.platform == "ensemble") != isinstance(served, Ensemble):
        what = "an ensemble's platform is ensemble" if isinstance(served, Ensemble) else "a model is no ensemble"
        remedy = "remove it" if isinstance(served, Ensemble) else "remove it, or write an entry of `ensembles`"
        yield REFUSED.at(place, f"platform is {config.platform!r}, and {what}", remedy=remedy)
    elif field == "runtime" and _LIBRARY.fullmatch(config.runtime) is None:
        yield REFUSED.at(
            place,
            f"{config.runtime!r} is no library of a backend",
            remedy="write libtriton_NAME.so, or model.py for a backend in Python",
        )
    elif field == "runtime" and any(_wheels(spec)):
        # The wheel keeps a backend's files apart, and Tandem links them into one folder.
        yield REFUSED.at(place, "a server from a wheel finds no library outside its folder", remedy="remove it")
    elif field == "model_repository_agents":
        for agent in config.model_repository_agents.agents:
            if _AGENT.fullmatch(agent.name) is None:
                what = f"{agent.name!r} is no name of an agent" if agent.name else "an agent has no name"
                yield REFUSED.at(place, what, remedy="write its name, as checksum")
            else:
                yield from _from_a_wheel(spec, place, agent.name)


def _from_a_wheel(spec: Spec, place: Place, agent: str) -> Faults:
    for profile in _wheels(spec):
        yield NO_AGENT.at(place, f"the server of {profile} is from a wheel, which has no agents, and {agent} is one")


def _wheels(spec: Spec) -> Iterator[str]:
    """The profiles whose server is from a wheel."""
    for name, profile in spec.profiles.items():
        if profile is not UNKNOWN and profile.triton is not UNKNOWN and profile.triton.requirement is not None:
            yield name


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
