"""Tiers of a repository whose models have priority levels."""

from __future__ import annotations

from pathlib import Path

import pytest

from serve_app.importing.conversion import import_repository
from serve_app.importing.summary import summary
from serve_app.project import Project
from serve_app.render import MODEL_REPOSITORY
from serve_app.render.triton import model_config
from serve_app.spec.load import examine, load_spec
from tests.importing.carried import CARRIED
from tests.importing.conftest import PYTHON, Repository, lost, original

ROOT = Path(__file__).parents[2]
WAKE_UP = "default_timeout_microseconds: 1 allow_timeout_override: true"


def levels(number: int, default: int) -> str:
    return f"{PYTHON} dynamic_batching {{ priority_levels: {number} default_priority_level: {default} }}"


def with_tiers(count: int, default: int, more: str = "", wake_up: str = WAKE_UP) -> str:
    """As rendering a model by so many tiers makes it."""
    return f"""{PYTHON} dynamic_batching {{
        max_queue_delay_microseconds: 2000 priority_levels: {count + 1} default_priority_level: {default}
        default_queue_policy {{
          default_timeout_microseconds: 5000000 allow_timeout_override: true max_queue_size: 128
        }}
        priority_queue_policy {{ key: {count + 1} value {{ {wake_up} }} }} {more}
    }} version_policy {{ specific {{ versions: 1 }} }} default_model_filename: "model.py" """.replace(
        "KIND_CPU }", "KIND_CPU count: 1 }"
    )


def tiers(repository: Repository) -> tuple[list[str], str]:
    """Their names, in the order of their priorities, and the default."""
    spec = repository.spec()
    return sorted(spec.tiers, key=lambda name: spec.tiers[name].priority), spec.default_tier


def test_there_is_a_tier_for_each_of_the_most_levels(repository: Repository) -> None:
    repository.add("a", levels(2, 2))
    repository.add("b", levels(4, 2))
    repository.add("c", PYTHON)
    assert tiers(repository) == (["1", "2", "3", "4"], "2")


def test_a_default_that_models_do_not_agree_on_is_left_to_the_user(repository: Repository) -> None:
    for name, default in {"a": 1, "b": 3, "c": 3}.items():
        repository.add(name, levels(3, default))
    assert tiers(repository) == (["1", "2", "3"], "3")
    assert "  # Yours: the default, which the models do not agree on: a 1, b 3, c 3.\n" in repository.imported().text


@pytest.mark.parametrize("number", [0, 1000])
def test_there_is_one_tier_where_there_are_no_levels_or_too_many_to_be_meant(
    number: int, repository: Repository
) -> None:
    repository.add("m", levels(number, 1))
    text = repository.imported().text
    assert "  standard: {priority: 1, default: true}\n" in text
    assert (f"a model has {number} priority levels" in text) == (number > 0)


def test_the_models_own_levels_can_be_given_up_for_the_tiers_as_a_finding_advises(repository: Repository) -> None:
    repository.add("m", CARRIED["priorities and queue policies"], "1/model.py")
    imported = repository.imported()
    (advised,) = (each for each in imported.report.findings if each.code == "T116")
    assert advised.place == "models.m.batching.priorities"
    changed = imported.text.replace("priorities: {levels: 3, default: 2}", "priorities: tiers")
    assert changed != imported.text
    assert [each.show("spec") for each in examine(changed).errors] == []


def test_tandems_own_repository_is_imported_with_no_finding_but_accepted_ones_and_renders_to_the_same() -> None:
    """Its level for wake-ups is no level of anybody's, and its queues are those of the tiers."""
    shipped = load_spec(Project(ROOT).spec_file)
    imported = import_repository(ROOT / MODEL_REPOSITORY)
    assert {each.code for each in imported.report.findings} <= {each.code for each in shipped.accept}
    spec = imported.report.usable()
    assert [tier.priority for tier in spec.tiers.values()] == [tier.priority for tier in shipped.tiers.values()]
    for name in shipped.models:
        assert model_config(spec, name, "embedded") == model_config(shipped, name, "embedded")


@pytest.mark.parametrize(
    ("count", "default", "names"),
    [
        (1, 1, ["standard"]),
        (2, 1, ["standard", "bulk"]),
        (2, 2, ["interactive", "standard"]),
        (5, 3, ["interactive-1", "interactive-2", "standard", "bulk-1", "bulk-2"]),
    ],
)
def test_the_tiers_that_models_were_rendered_with_come_back_under_new_names_which_are_listed(
    count: int, default: int, names: list[str], repository: Repository
) -> None:
    config = with_tiers(count, default)
    repository.add("m", config, "1/model.py")
    imported = repository.imported()
    spec = imported.report.usable()
    assert (list(spec.tiers), spec.default_tier) == (names, "standard")
    assert model_config(spec, "m", "embedded") == original(config, "m")
    (loss,) = lost(imported)
    assert loss.startswith(f"the names of the tiers, which no configuration has: here they are {names[0]} (1)")


def test_the_queues_of_single_tiers_are_called_by_their_names(repository: Repository) -> None:
    policy = "default_timeout_microseconds: 3000000 allow_timeout_override: true max_queue_size: 8"
    config = with_tiers(2, 1, f"priority_queue_policy {{ key: 2 value {{ {policy} }} }}")
    repository.add("m", config, "1/model.py")
    spec = repository.imported().report.usable()
    assert "queues: {bulk: {timeout: 3s, size: 8}}" in repository.imported().text
    assert model_config(spec, "m", "embedded") == original(config, "m")


@pytest.mark.parametrize(
    "wake_up",
    [
        "default_timeout_microseconds: 2 allow_timeout_override: true",
        "default_timeout_microseconds: 1",
        f"{WAKE_UP} max_queue_size: 1",
        f"{WAKE_UP} timeout_action: DELAY",
    ],
)
def test_a_last_level_that_is_not_just_as_it_is_rendered_is_the_models_own(
    wake_up: str, repository: Repository
) -> None:
    repository.add("m", with_tiers(2, 1, wake_up=wake_up), "1/model.py")
    imported = repository.imported()
    assert "priorities: {levels: 3, default: 1}" in imported.text
    assert lost(imported) == []


def test_models_of_other_tiers_than_most_keep_their_levels(repository: Repository) -> None:
    for name, count in {"a": 2, "b": 3, "c": 3}.items():
        repository.add(name, with_tiers(count, 1), "1/model.py")
    imported = repository.imported()
    assert imported.report.spec is not None
    priorities = {
        name: model.batching.priorities for name, model in imported.report.spec.models.items() if model.batching
    }
    assert {name: given.use for name, given in priorities.items()} == {"a": "levels", "b": "tiers", "c": "tiers"}
    assert len(imported.report.spec.tiers) == 3


def test_names_of_tiers_alone_make_no_model_one_that_is_carried_in_part(repository: Repository) -> None:
    repository.add("m", with_tiers(2, 1), "1/model.py")
    imported = repository.imported()
    assert [each.model for each in imported.not_carried] == [None]
    lines = list(summary(imported, repository.folder))
    assert lines[0] == "cluster/spec.yaml: 1 of 1 models"
    assert lines[1:3] == ["not carried:", f"  {imported.not_carried[0]}"]
