from __future__ import annotations

import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, BinaryIO, Generic, Literal, NewType, Optional, Protocol, TypeVar, Union

import pytest
from pydantic import BaseModel

from serve_app.spec.annotations import fits, show_type
from tests.rules.argument_cases import steps
from tests.rules.argument_code import Judged, Seen, SeenTwice
from tests.rules.case import report

Item = TypeVar("Item")
Picture = NewType("Picture", bytes)


class HasRows(Protocol):
    rows: int


class Fields(typing.TypedDict):
    rows: int


class Page(BaseModel, Generic[Item]):
    items: list[Item]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        *[(bytes, each) for each in (bytes, Any, object, bytes | None, Picture, Item)],
        *[(bytes, each) for each in (Optional[bytes], Union[str, bytes])],  # noqa: UP007, UP045
        *[(bytes, each) for each in (Sequence, Iterable[int], Literal[b"x"])],
        *[(list[bytes], each) for each in (list[bytes], list, typing.List[bytes], list[Any], list[bytes | None])],  # noqa: UP006
        *[(list[bytes], each) for each in (Sequence[bytes], Iterable[bytes], Collection[bytes], list[bytes] | None)],
        *[(list[bytes], each) for each in (typing.Sequence[bytes], Sequence[Picture], Iterable[Item])],
        *[(bool, each) for each in (bool, int, float, bool | None, Literal[True, False])],
        *[(Seen, each) for each in (Seen, BaseModel, Seen | Judged, HasRows, Fields)],
        (SeenTwice, Seen),
        *[(Page[Seen], each) for each in (Page, Page[Seen], Page[Any])],
    ],
)  # fmt: skip
def test_a_type_that_a_type_checker_takes_or_that_cannot_be_judged_fits(given: Any, wanted: Any) -> None:
    assert fits(given, wanted)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        *[(bytes, each) for each in (bool, str, list[bytes], Sequence[bytes], Iterable[bytes], BinaryIO, Seen)],
        *[(bytes, each) for each in (bool | None, Callable[[], bytes], Literal[True], type[bytes])],
        *[(list[bytes], each) for each in (bytes, list[str], tuple[bytes, ...], Mapping[str, bytes], list[Seen])],
        *[(bool, each) for each in (bytes, str, list[bool], Literal["yes"])],
        *[(Seen, each) for each in (bytes, Judged, Judged | None, dict[str, Any], SeenTwice, Page)],
    ],
)  # fmt: skip
def test_a_type_that_a_type_checker_refuses_does_not_fit(given: Any, wanted: Any) -> None:
    assert not fits(given, wanted)


def test_a_type_is_shown_without_its_modules() -> None:
    assert [show_type(each) for each in (bytes, Seen, Sequence[bytes], list[Seen], bytes | None)] == [
        "bytes", "Seen", "Sequence[bytes]", "list[Seen]", "bytes | None",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("inputs", "calls"),
    [
        ({"image": "image", "hard": "flag"}, [("look", {"image": "image", "hard": "hard"})]),
        ({"image": "image[0..3]"}, [("look_at_all", {"images": "image"})]),
        ({"image": "image"}, [("look_if_any", {"image": "image"})]),
        ({"image": "image"}, [("judge_anything", {"seen": "image", "more": "image"})]),
        ({"image": "image"}, [("look_twice", {"image": "image"}), ("judge", {"seen": "step0"})]),
    ],
    ids=["a picture and a flag", "many for a sequence", "one for an optional one", "no annotation", "a subclass"],
)
def test_what_a_method_takes_has_no_finding(inputs: dict[str, str], calls: list[tuple[str, dict[str, str]]]) -> None:
    parts = {f"step{index}": {"call": f"echo.{method}", "takes": takes} for index, (method, takes) in enumerate(calls)}
    assert [each for each in report(steps(inputs=inputs, **parts)).findings if each.code[0] == "C"] == []
