"""Warnings that the spec accepts: only warnings can be."""

from __future__ import annotations

from serve_app.spec.checks.registry import of_the_spec
from serve_app.spec.findings import RULES, Faults, error
from serve_app.spec.schema import Spec

ERROR_ACCEPTED = error(
    "Y026", "An error that is to be accepted", "it is no warning, and cannot work as it is",
    "mend it, and remove this entry",
)  # fmt: skip


@of_the_spec
def error_accepted(spec: Spec) -> Faults:
    for index, each in enumerate(spec.accept):
        rule = RULES.get(each.code)
        if rule is not None and rule.severity == "error":
            yield ERROR_ACCEPTED.at(("accept", index, "code"), f"{each.code} is an error ({rule.title})")
