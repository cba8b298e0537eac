"""Tiers of a repository whose models have priority levels."""

from __future__ import annotations

import pytest

from serve_app.spec.load import examine
from tests.importing.carried import CARRIED
from tests.importing.conftest import PYTHON, Repository


def levels(number: int, default: int) -> str:
    return f"{PYTHON} dynamic_batching {{ priority_levels: {number} default_priority_level: {default} }}"


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
