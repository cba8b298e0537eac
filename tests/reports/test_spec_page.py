"""Every key of the spec is described, where it is written and on a page of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor
from pydantic import BaseModel
from ray.runtime_env import RuntimeEnv
from ray.serve import config as ray_config
from ray.serve import schema as ray_schema
from tritonclient.grpc import model_config_pb2

from serve_app.render.json_schema import render_json_schema
from serve_app.reports.spec_page import ENGINE_NAMES, render_spec_page
from serve_app.spec.part import Part
from serve_app.spec.schema import Spec
from serve_app.spec.vocabulary import parts
from serve_app.triton import launch

ROOT = Path(__file__).parents[2]
PAGE = render_spec_page()
SCHEMA = json.loads(render_json_schema())
SECTIONS = {text.partition("\n")[0]: text for text in PAGE.split("\n## ")[1:]}


def test_the_committed_page_is_what_the_spec_is() -> None:
    assert (ROOT / "docs" / "spec.md").read_text(encoding="utf-8") == PAGE, "run `tandem explain --spec > docs/spec.md`"


@pytest.mark.parametrize("part", parts(), ids=lambda part: part.__name__)
def test_every_part_and_each_of_its_keys_is_described(part: type[Part]) -> None:
    schema = SCHEMA if part is Spec else SCHEMA["$defs"][part.__name__]
    assert schema.get("description"), f"{part.__name__} has no docstring"
    assert part.__name__ in SECTIONS
    rows = "".join(SECTIONS[base.__name__] for base in part.__mro__ if base.__name__ in SECTIONS)
    for key, field in schema["properties"].items():
        assert field.get("description"), f"{part.__name__}.{key} has no Field(description=…)"
        assert f"\n| `{key}` |" in rows


def test_a_row_is_one_line_with_four_cells() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    assert len(rows) > 200
    for row in rows:
        assert len(re.findall(r"(?<!\\)\|", row)) == 5, row


def test_a_row_says_what_to_write_and_what_holds_without_it() -> None:
    assert "| `upscale_delay` | a duration | `5s` |" in PAGE
    assert "| `sla` | a duration, more than 0 | required |" in PAGE
    assert "| `instances` | a whole number or [Instances](#instances) or a list of these |  |" in PAGE
    assert "| `profiles` | a mapping: `embedded` or `gpu` → [Profile](#profile) | required |" in PAGE
    assert (
        "| `inputs` | a mapping: name → image, image[0..8] for a list, or flag | required |".replace("[", "\\[") in PAGE
    )


@pytest.mark.parametrize("file", ["docs/spec.md", "README.md"])
def test_links_to_a_part_lead_to_its_section(file: str) -> None:
    to_page = r"\]\(#([a-z]+)\)" if file == "docs/spec.md" else r"\]\(docs/spec\.md#([^)]+)\)"
    links = re.findall(to_page, (ROOT / file).read_text(encoding="utf-8"))
    assert links
    assert set(links) <= {title.lower() for title in SECTIONS}


def triton_names(message: Descriptor) -> set[str]:
    """The fields of a message and of those within it, and the values of their enumerations."""
    names = {value.name for enumeration in message.enum_types for value in enumeration.values}
    for field in message.fields:
        names |= {field.name} | (triton_names(field.message_type) if field.message_type else set())
    return names | {name for nested in message.nested_types for name in triton_names(nested)}


def ray_names() -> set[str]:
    models = [each for module in (ray_schema, ray_config) for each in vars(module).values()]
    fields = {
        name for each in models if isinstance(each, type) and issubclass(each, BaseModel) for name in each.model_fields
    }
    return fields | set(RuntimeEnv.known_fields)


def test_the_names_of_the_engines_are_their_own() -> None:
    flags = set(re.findall(r"--[a-z-]+", Path(launch.__file__).read_text(encoding="utf-8")))
    real = {
        "Triton": triton_names(model_config_pb2.ModelConfig.DESCRIPTOR) | flags | {"…"},
        "Ray": ray_names(),
    }
    descriptions = [field.description or "" for part in parts() for field in part.model_fields.values()]
    named = [(engine, name) for text in descriptions for engine, names in ENGINE_NAMES.findall(text)
             for name in re.split(r", |\.", names)]  # fmt: skip
    assert len(named) > 80
    assert [each for each in named if each[1] not in real[each[0]]] == []
