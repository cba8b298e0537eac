"""Warnings that the spec accepts: only warnings can be, where the spec has something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from serve_app.spec.checks.registry import of_the_spec
from serve_app.spec.findings import RULES, Faults, Place, error, show_place, warning
from serve_app.spec.part import UNKNOWN, Part, shown
from serve_app.spec.schema import Spec
from serve_app.spec.spelling import did_you_mean
from serve_app.spec.vocabulary import part_at

ERROR_ACCEPTED = error(
    "Y026", "An error that is to be accepted", "it is no warning, and cannot work as it is",
    "mend it, and remove this entry",
)  # fmt: skip
NO_CODE = error(
    "Y028", "A code that is to be accepted and does not exist", "nothing is ever found under it",
    "write the code that `tandem validate` shows, or remove this entry",
)  # fmt: skip
NO_PLACE = error(
    "Y029", "A place where a warning is to be accepted and that does not exist", "nothing is ever found there",
    "write the place that `tandem validate` shows, or remove this entry",
)  # fmt: skip
UNMET = warning(
    "Y030", "A warning that is to be accepted and is not there", "the next one that comes there would be hidden",
    "remove this entry, or correct its code and place",
)  # fmt: skip
# Families of codes whose rules are known, and whose findings are made, beyond the spec's text: by the checks of files
# (W) and the live ones (L).
BEYOND_THE_TEXT = "WL"


@of_the_spec
def error_accepted(spec: Spec) -> Faults:
    for index, each in enumerate(spec.accept):
        rule = RULES.get(each.code)
        if rule is not None and rule.severity == "error":
            yield ERROR_ACCEPTED.at(("accept", index, "code"), f"{each.code} is an error ({rule.title})")


def unknown_codes(spec: Spec, *, beyond_the_text: bool) -> Faults:
    """Accepted codes that no rule has: of the families that are known with the text alone, or of the others."""
    warnings = [code for code, rule in RULES.items() if rule.severity == "warning"]
    for index, each in enumerate(spec.accept):
        if each is UNKNOWN or each.code is UNKNOWN or each.code in RULES:
            continue
        if (each.code[0] in BEYOND_THE_TEXT) == beyond_the_text:
            yield NO_CODE.at(
                ("accept", index, "code"), f"there is no {each.code}", remedy=did_you_mean(each.code, warnings)
            )


@of_the_spec
def no_code(spec: Spec) -> Faults:
    yield from unknown_codes(spec, beyond_the_text=False)


@of_the_spec
def no_place(spec: Spec) -> Faults:
    for index, each in enumerate(spec.accept):
        if each is UNKNOWN or each.at is UNKNOWN or each.at == show_place(()):
            continue
        if astray := _astray(spec, (), each.at):
            yield NO_PLACE.at(
                ("accept", index, "at"),
                f"there is no {shown(astray.step)} in {show_place(astray.place)}",
                remedy=did_you_mean(astray.step, astray.choices),
            )


class _Astray(NamedTuple):
    """Where the way to a place ends too soon: after `place`, whose next step could be one of `choices`."""

    place: Place
    step: str
    choices: list[str]


def _astray(holder: Any, place: Place, rest: str) -> _Astray | None:
    """Whether `rest`, as `show_place` writes it, leads from what stands at `place` to nothing."""
    if holder is UNKNOWN:
        return None
    within = _within(holder, place)
    ends: list[_Astray] = []
    for step, value in within.items():
        name = show_place((step,))
        if rest == name:
            return None
        if rest.startswith(f"{name}."):
            end = _astray(value, (*place, step), rest.removeprefix(f"{name}."))
            if end is None:
                return None
            ends.append(end)
    here = _Astray(place, rest.partition(".")[0], [show_place((step,)) for step in within])
    return max(ends, key=lambda end: len(end.place), default=here)


def _within(holder: Any, place: Place) -> Mapping[str | int, Any]:
    """What stands below a value, and below a part that is not given what could."""
    if isinstance(holder, Part):
        return {name: getattr(holder, name) for name in type(holder).model_fields}
    if isinstance(holder, list):
        return dict(enumerate(holder))
    if isinstance(holder, dict):
        return holder
    part = part_at(place) if holder is None else None
    return dict.fromkeys(part.model_fields) if part is not None else {}
