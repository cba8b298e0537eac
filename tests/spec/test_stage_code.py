"""Code of stages that is odd, or broken: a finding where something is wrong with it, and never a traceback."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.rules.case import report
from tests.rules.pipeline_cases import PIPELINE, STAGE

HEAD = """\
from __future__ import annotations
from typing import TYPE_CHECKING, Any
from pydantic import BaseModel
if TYPE_CHECKING:
    from elsewhere import Client, Later
class Answer(BaseModel):
    rows: int
class Settings(BaseModel):
    most: int = 1
"""
RUN = "    async def run(self, image: bytes) -> Answer: ...\n"
INIT = "    def __init__(self, m: Any): ...\n"
SLY = "class Sly(type):\n"
_numbers = itertools.count()

Said = Callable[..., list[str]]


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Said:
    """What is found of a stage whose class `Odd` is in a module of this text, each with its code and place."""
    monkeypatch.syspath_prepend(tmp_path)

    def found(text: str, *, takes: dict[str, str] | None = None, code: str = "", **stage: Any) -> list[str]:
        module = f"odd_stage_{next(_numbers)}"
        (tmp_path / f"{module}.py").write_text(HEAD + text)
        call = {"call": "odd.run", "takes": {"image": "image"} if takes is None else takes}
        findings = report(
            {
                "stages": {"odd": {**STAGE, "code": code or f"{module}:Odd", **stage}},
                "pipelines": {"odd": {**PIPELINE, "steps": {"answer": call}}},
            }
        ).findings
        return [f"{each.code} {each.place}: {each.message}".replace(f"{module}:", "") for each in findings]

    return found


NOT_LOADED = "the deployment fails when it starts; correct the path, or the module"


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        (f"class Odd:\n    def __init__(self, m: Client): ...\n{RUN}", {}),
        (f"class Odd:\n    def __init__(self, m: Client, settings: Settings): ...\n{RUN}", {"settings": {"most": 2}}),
        (f"class Odd:\n{INIT}    async def run(self, image: Client) -> Answer: ...\n", {}),
        (f"class Odd:\n    def __init__(self, m, settings: Settings | None = None): ...\n{RUN}", {}),
        (f"class Odd:\n    def __init__(self, **models): ...\n{RUN}", {}),
        (f"class Odd:\n    def __init__(self, m, *args, **others): ...\n{RUN}", {}),
        (f"class Odd:\n{INIT}    async def run(self, image, *args, **kw) -> Answer: ...\n", {}),
        (f"class Odd:\n{INIT}    async def run(self, *, image) -> Answer: ...\n", {}),
        (f"class Odd:\n{INIT}    async def run(self, **kw) -> Answer: ...\n", {}),
        (f"class Odd:\n{INIT}{RUN}    __signature__ = 1\n", {}),
        (f"{SLY}    __signature__ = property(lambda self: 1 / 0)\nclass Odd(metaclass=Sly):\n{INIT}{RUN}", {}),
    ],
    ids=[
        "a model's type for type checkers only", "and settings", "an argument's", "optional settings", "any models",
        "any more models", "any more arguments", "by keyword", "any arguments", "no signature",
        "a signature that raises",
    ],
)  # fmt: skip
def test_ordinary_code_and_code_of_which_nothing_can_be_known_are_taken(
    said: Said, text: str, stage: dict[str, Any]
) -> None:
    assert said(text, **stage) == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Odd = 7\n", f"Odd is no class, but of type int: {NOT_LOADED}"),
        ("def Odd(m): ...\n", f"Odd is no class, but of type function: {NOT_LOADED}"),
        ("1 / 0\n", f"Odd cannot be loaded: ZeroDivisionError: division by zero: {NOT_LOADED}"),
        ("raise SystemExit('no such option')\n", f"Odd cannot be loaded: SystemExit: no such option: {NOT_LOADED}"),
        ("class Odd\n", None),
        (
            f"class Odd:\n    def __init__(self, m, settings: Later): ...\n{RUN}",
            "what Odd takes cannot be known: the type of settings cannot be looked up (NameError: name 'Later' is not "
            "defined): the deployment fails when it starts; annotate its settings with a pydantic model that is there "
            "when it runs",
        ),
        (
            f"class Odd:\n    def __init__(self, m, settings: dict[str, Any]): ...\n{RUN}",
            "what Odd takes cannot be known: the type of settings is no pydantic model: the deployment fails when it "
            "starts; annotate its settings with a pydantic model that is there when it runs",
        ),
    ],
    ids=["a number", "a function", "a module that raises", "a script", "no Python", "no settings", "other settings"],
)
def test_a_stage_that_is_no_usable_class_is_found_at_its_code(said: Said, text: str, wanted: str | None) -> None:
    (found,) = said(text)
    if wanted is not None:
        assert found == f"C001 stages.odd.code: {wanted}"
    else:
        assert found.startswith("C001 stages.odd.code: Odd cannot be loaded: SyntaxError: expected ':' (")


@pytest.mark.parametrize("code", ["builtins:int", "builtins:dict", "collections:OrderedDict", "builtins:type"])
def test_a_class_written_in_c_has_no_method_for_the_step(said: Said, code: str) -> None:
    no_method = (
        f"C005 pipelines.odd.steps.answer.call: {code} has no `async def run`: the route fails when it is called"
    )
    assert any(each.startswith(no_method) for each in said("", code=code))


def test_a_metaclass_that_raises_for_every_attribute_hides_what_the_class_has(said: Said) -> None:
    sly = f"{SLY}    def __getattribute__(self, name): 1 / 0\nclass Odd(metaclass=Sly):\n{INIT}{RUN}"
    assert said(sly) == [
        "C001 stages.odd.code: what Odd takes cannot be known: ZeroDivisionError: division by zero: the deployment "
        "fails when it starts; annotate its settings with a pydantic model that is there when it runs",
        "C005 pipelines.odd.steps.answer.call: Odd has no `async def run`: the route fails when it is called; correct "
        "the name",
    ]


def test_a_settings_class_whose_validator_raises_is_found_at_the_stages_code(said: Said) -> None:
    text = (
        "from pydantic import field_validator\n"
        "class Sly(BaseModel):\n    most: int\n"
        "    @field_validator('most')\n    def check(cls, value): return {}[value]\n"
        f"class Odd:\n    def __init__(self, m, settings: Sly): ...\n{RUN}"
    )
    assert said(text, settings={"most": 1}) == [
        "C001 stages.odd.code: what Odd takes cannot be known: KeyError: 1: the deployment fails when it starts; "
        "annotate its settings with a pydantic model that is there when it runs"
    ]


@pytest.mark.parametrize(
    ("init", "wanted"),
    [
        ("m, n", "takes the models m, n"),
        ("n, *others", "takes the models n"),
        ("n, **others", "takes the models n"),
        ("*others", "takes no models"),
        ("settings: Settings", "takes no models"),
        ("n=None", "takes the models n"),
    ],
)
def test_the_models_a_stage_takes_are_named_without_what_collects_the_others(
    said: Said, init: str, wanted: str
) -> None:
    assert said(f"class Odd:\n    def __init__(self, {init}): ...\n{RUN}") == [
        f"C002 stages.odd.models: Odd {wanted}: the stage cannot be built; name exactly these models"
    ]


@pytest.mark.parametrize(
    ("method", "wanted"),
    [
        ("image, page, **more", "C006 pipelines.odd.steps.answer.takes: Odd.run takes image, page, any other, and "),
        ("image, page, *more", "C006 pipelines.odd.steps.answer.takes: Odd.run takes image, page, and "),
        ("*more", "C006 pipelines.odd.steps.answer.takes.image: Odd.run takes nothing, and no image: "),
    ],
)
def test_the_arguments_a_method_takes_are_named_without_what_collects_the_others(
    said: Said, method: str, wanted: str
) -> None:
    (found,) = said(f"class Odd:\n{INIT}    async def run(self, {method}) -> Answer: ...\n")
    assert found.startswith(wanted)


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (
            " -> Later",
            "Odd.run: the type of what it returns cannot be looked up (NameError: name 'Later' is not defined): the "
            "route's API cannot be described; correct its annotation",
        ),
        (
            "",
            "Odd.run names no pydantic model as its answer: the route's API cannot be described; annotate that it "
            "returns a pydantic model",
        ),
    ],
)
def test_an_answer_whose_type_is_not_there_is_found(said: Said, answer: str, wanted: str) -> None:
    assert said(f"class Odd:\n{INIT}    async def run(self, image){answer}: ...\n") == [
        f"C007 pipelines.odd.steps.answer.call: {wanted}"
    ]


@pytest.mark.parametrize(
    ("annotation", "wanted"),
    [
        (
            "Later",
            "Odd.reconfigure: the type of user_config cannot be looked up (NameError: name 'Later' is not defined): "
            "Ray Serve fails to deploy the stage; correct its annotation",
        ),
        ("dict[str, Any]", None),
    ],
)
def test_a_user_config_is_checked_by_its_own_annotation_alone(said: Said, annotation: str, wanted: str | None) -> None:
    text = f"class Odd:\n{INIT}{RUN}    async def reconfigure(self, user_config: {annotation}) -> Client: ...\n"
    replicas = {**STAGE["replicas"], "user_config": {"most": 1}}
    found = [each for each in said(text, replicas=replicas) if "user_config" in each]
    assert found == ([] if wanted is None else [f"R060 stages.odd.replicas.user_config: {wanted}"])


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("os:sep", "os:sep is no function, but of type str"),
        ("os:nothing", "os:nothing cannot be loaded: module 'os' has no attribute 'nothing'"),
    ],
)
def test_a_recipe_that_cannot_be_called_is_found(path: str, wanted: str) -> None:
    (found,) = report({"models": {"m": {"backend": "onnx", "weights": {"prepare": path}}}}).findings
    assert (found.code, found.place) == ("C001", "models.m.weights.prepare")
    assert found.message == f"{wanted}: {NOT_LOADED}"
