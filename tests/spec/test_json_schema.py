"""The schema that editors use and the validator say the same about the shape of a spec."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, ValidationError, validators
from pydantic import ValidationError as Invalid

from serve_app.render.json_schema import render_json_schema
from serve_app.spec.document import read_document
from serve_app.spec.structure import read_structure
from serve_app.spec.tensors import parse_tensor
from serve_app.spec.units import parse_duration, parse_size
from serve_app.spec.vocabulary import parts
from tests.render.specs import specs
from tests.rules.case import MINIMAL
from tests.spec.mutations import VALUES, mutations, replaced

ROOT = Path(__file__).parents[2]
SCHEMA: dict[str, Any] = json.loads(render_json_schema())
SHIPPED = read_document((ROOT / "cluster" / "spec.yaml").read_text()).data
assert SHIPPED is not None


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Any:
    """JSON Schema's expressions are ECMA-262's, in which $ is the end, not before a last line break."""
    end = pattern.replace("$", r"\Z") if pattern.endswith("$") else pattern
    if isinstance(instance, str) and re.search(end, instance, re.ASCII) is None:
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


VALIDATOR = validators.extend(Draft202012Validator, {"pattern": _pattern})(SCHEMA)


def agree(data: dict[str, Any]) -> None:
    """The schema accepts the data where the validator finds no fault in its shape, and refuses it where it does."""
    refused = [f"{error.json_path}: {error.message[:200]}" for error in VALIDATOR.iter_errors(data)]
    faults = [f"{fault.place}: {fault.what}" for fault in read_structure(copy.deepcopy(data)).faults]
    assert bool(refused) == bool(faults), f"the schema says {refused}, and the validator {faults}"


def test_it_is_a_schema_of_the_draft_it_names() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert SCHEMA["$id"]
    assert SCHEMA["title"]


@settings(max_examples=25)
@given(specs())
def test_whatever_the_validator_accepts_the_schema_accepts_too(data: dict[str, Any]) -> None:
    assert [f"{error.json_path}: {error.message[:200]}" for error in VALIDATOR.iter_errors(data)] == []


@pytest.mark.parametrize("data", [SHIPPED, MINIMAL], ids=["the shipped spec", "the smallest spec"])
def test_a_right_spec_is_accepted(data: dict[str, Any]) -> None:
    VALIDATOR.validate(data)
    assert read_structure(copy.deepcopy(data)).faults == []


def test_editors_find_the_schema_beside_the_spec() -> None:
    first = (ROOT / "cluster" / "spec.yaml").read_text().splitlines()[0]
    found = re.fullmatch(r"# yaml-language-server: \$schema=(.+)", first)
    assert found is not None
    assert json.loads((ROOT / "cluster" / found[1]).read_text()) == SCHEMA


def test_every_mapping_of_known_keys_refuses_others() -> None:
    for name, part in SCHEMA["$defs"].items():
        if part["type"] == "object":
            assert part["additionalProperties"] is False, name


def test_defaults_are_written_as_the_spec_writes_them() -> None:
    autoscaling = SCHEMA["$defs"]["Autoscaling"]["properties"]
    assert autoscaling["upscale_delay"]["default"] == "5s"
    assert autoscaling["downscale_delay"]["default"] == "5min"
    assert SCHEMA["$defs"]["Model"]["properties"]["versions"]["default"] == {"only": [1]}


def test_every_default_is_what_its_own_schema_accepts() -> None:
    for name, part in SCHEMA["$defs"].items():
        for key, field in part.get("properties", {}).items():
            if "default" in field:
                errors = list(
                    VALIDATOR.evolve(schema={**field, "$defs": SCHEMA["$defs"]}).iter_errors(field["default"])
                )
                assert errors == [], f"{name}.{key}"


MUTATIONS: dict[str, tuple[tuple[str | int, ...], Any, bool]] = {
    "a bare number for a duration": (("service", "sla"), 8, False),
    "an unknown unit": (("service", "sla"), "8sec", False),
    "a duration in minutes": (("service", "sla"), "0.5min", True),
    "a duration finer than a microsecond": (("service", "sla"), "0.5us", False),
    "nothing where a duration must be more": (("profiles", "gpu", "triton", "health_check_period"), "0s", False),
    "a decimal size": (("service", "upload_limit"), "1.5MiB", True),
    "a megabyte": (("service", "upload_limit"), "10MB", False),
    "a tensor without dimensions": (("models", "arcface", "inputs", "crop"), "uint8[]", False),
    "a tensor in the long form": (
        ("models", "arcface", "inputs", "crop"),
        {"tensor": "uint8[-1]", "ragged": True},
        True,
    ),
    "instances as a number": (("models", "arcface", "instances"), 2, True),
    "instances as a group": (("models", "arcface", "instances"), {"count": 2, "kind": "cpu"}, True),
    "instances as groups": (("models", "arcface", "instances"), [1, {"kind": "cpu"}], True),
    "instances as text": (("models", "arcface", "instances"), "two", False),
    "models as a list": (("stages", "faces", "models"), ["face_detector"], True),
    "models as a mapping": (("stages", "faces", "models"), {"face_detector": 2}, True),
    "a model twice": (("stages", "faces", "models"), ["arcface", "arcface"], False),
    "priorities in one word": (("models", "arcface", "batching"), {"priorities": "none"}, True),
    "priorities in another word": (("models", "arcface", "batching"), {"priorities": "some"}, False),
    "a whole number with decimals": (("models", "arcface", "max_batch"), 8.0, True),
    "a number with decimals for a whole one": (("models", "arcface", "max_batch"), 8.5, False),
    "a flag for a number": (("models", "arcface", "max_batch"), True, False),
    "more than 32 bits": (("models", "arcface", "max_batch"), 2**31, False),
    "an unknown profile": (("profiles", "prod"), {}, False),
    "no models": (("models",), {}, False),
    "an unknown key": (("models", "arcface", "colour"), 1, False),
    "nothing for what may be left out": (("models", "arcface", "latency_budget"), None, True),
    "nothing for what must be there": (("models", "arcface", "max_batch"), None, False),
    "a line break at the end of a name": (("application",), "kyc\n", False),
}


@pytest.mark.parametrize(("place", "value", "accepted"), MUTATIONS.values(), ids=MUTATIONS)
def test_schema_and_validator_agree(place: tuple[str | int, ...], value: Any, accepted: bool) -> None:
    data = replaced(SHIPPED, place, value)
    agree(data)
    assert VALIDATOR.is_valid(data) == accepted


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=mutations(SHIPPED))
def test_they_agree_whatever_is_changed_in_the_shipped_spec(data: dict[str, Any]) -> None:
    agree(data)


TEXTS = [
    *(value for value in VALUES if isinstance(value, str)),
    "onnx", "python", "0" * 64, "/etc/key.pem", "s3://bucket/project.zip", "local:///srv", "in(a, b)", "12.5%", "OMP_N",
    "90s", "faces.match", "/kyc", "example.com/pool", "bool[1]", "T116",
]  # fmt: skip


def values(schema: dict[str, Any], rng: random.Random, depth: int = 0) -> Any:
    """A value that a part of the schema accepts; deep within, only what must be there."""
    if "$ref" in schema:
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return values({**SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], **beside}, rng, depth)
    if "anyOf" in schema:
        return values(rng.choice(schema["anyOf"]), rng, depth)
    if "enum" in schema or "const" in schema:
        return rng.choice(schema.get("enum", [schema.get("const")]))
    return _BY_TYPE[schema.get("type", "any")](schema, rng, depth)


def _texts(schema: dict[str, Any], rng: random.Random, depth: int) -> Any:
    return rng.choice([text for text in TEXTS if VALIDATOR.evolve(schema=schema).is_valid(text)])


def _wholes(schema: dict[str, Any], rng: random.Random, depth: int) -> Any:
    least, most = schema.get("minimum", -(2**31)), schema.get("maximum", 2**31)
    return rng.choice([least, most, rng.randint(least, most)])


def _numbers(schema: dict[str, Any], rng: random.Random, depth: int) -> Any:
    least = schema.get("minimum", schema.get("exclusiveMinimum", -1e6) + 0.001)
    return rng.choice([least, rng.uniform(least, schema.get("maximum", 1e6))])


def _lists(schema: dict[str, Any], rng: random.Random, depth: int) -> Any:
    count = max(schema.get("minItems", 0), rng.randint(0, 2 if depth < DEEP else 0))
    items = [values(schema["items"], rng, depth + 1) for _ in range(count)]
    return list(dict.fromkeys(items)) if schema.get("uniqueItems") else items


def _mappings(schema: dict[str, Any], rng: random.Random, depth: int) -> Any:
    if "properties" in schema:
        optional = [key for key in schema["properties"] if depth < DEEP and rng.random() < 1 / 2]
        names = dict.fromkeys([*schema.get("required", []), *optional])
        return {name: values(schema["properties"][name], rng, depth + 1) for name in names}
    pattern, within = next(iter(schema.get("patternProperties", {"": schema.get("additionalProperties")}).items()))
    key = {"type": "string", "pattern": pattern or "^[a-z]+$", **schema.get("propertyNames", {})}
    count = max(schema.get("minProperties", 0), rng.randint(0, 2 if depth < DEEP else 0))
    inner = within if isinstance(within, dict) else {}
    return {values(key, rng): values(inner, rng, depth + 1) for _ in range(count)}


DEEP = 4
_BY_TYPE: dict[str, Callable[[dict[str, Any], random.Random, int], Any]] = {
    "string": _texts,
    "integer": _wholes,
    "number": _numbers,
    "boolean": lambda schema, rng, depth: rng.choice([True, False]),
    "null": lambda schema, rng, depth: None,
    "array": _lists,
    "object": _mappings,
    "any": lambda schema, rng, depth: rng.choice(VALUES),
}


@pytest.mark.parametrize("part", parts(), ids=lambda part: part.__name__)
def test_what_the_schema_describes_is_a_part_of_a_spec(part: Any) -> None:
    schema = SCHEMA if part.__name__ == "Spec" else SCHEMA["$defs"][part.__name__]
    rng = random.Random(0)
    for _ in range(5 if part.__name__ == "Spec" else 30):
        value = values(schema, rng)
        try:
            part.model_validate(copy.deepcopy(value))
        except Invalid as invalid:
            pytest.fail(f"{value!r}: {invalid}")


QUANTITIES: dict[str, Callable[[object], Any]] = {
    "DURATION": parse_duration,
    "SIZE": parse_size,
    "TENSOR": parse_tensor,
}


@pytest.mark.parametrize("name", QUANTITIES)
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_every_quantity_that_the_schema_describes_can_be_read(name: str, data: st.DataObject) -> None:
    pattern = SCHEMA["$defs"][name]["pattern"].replace("$", r"\Z")
    QUANTITIES[name](data.draw(st.from_regex(re.compile(pattern, re.ASCII))))


def test_the_shipped_spec_is_read_as_yaml_elsewhere_too() -> None:
    """Editors read plain YAML; nothing in the shipped spec depends on this project's stricter reading."""
    VALIDATOR.validate(yaml.safe_load((ROOT / "cluster" / "spec.yaml").read_text()))
