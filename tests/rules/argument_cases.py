"""Steps and the methods they call: what is there, and of which type each argument is and would get."""

from __future__ import annotations

from typing import Any

from tests.rules.case import GONE, Case
from tests.rules.pipeline_cases import PIPELINE, STAGE, STEP, step

STEPS = "pipelines.echo.steps"


def steps(*, inputs: dict[str, str], **parts: Any) -> dict[str, Any]:
    """A pipeline of the steps of `parts`, and its stage, whose methods take and answer many types."""
    return {
        "stages": {"echo": {**STAGE, "code": "tests.rules.argument_code:Typed"}},
        "pipelines": {"echo": {**PIPELINE, "inputs": inputs, "steps": parts}},
    }


def one(method: str, *, inputs: dict[str, str], **takes: str) -> dict[str, Any]:
    return steps(answer={"call": f"echo.{method}", "takes": takes}, inputs=inputs)


def recipe(path: str, **weights: str) -> dict[str, Any]:
    return {"models": {"m": {"backend": "onnx", "weights": {"prepare": path, **weights}}}}


CASES = {
    "many pictures for an argument that takes one": Case(
        "C008",
        one("look", inputs={"image": "image[1..3]"}, image="image"),
        f"{STEPS}.answer.takes.image",
        "Typed.look takes image as bytes, and would get list[bytes] from the input image, image[1..3]: the method gets "
        "what it is not written for, and the route fails when it is called; write the input as image: image",
    ),
    "one picture for an argument that takes many": Case(
        "C008",
        one("look_at_all", inputs={"image": "image"}, images="image"),
        f"{STEPS}.answer.takes.images",
        "takes images as Sequence[bytes], and would get bytes from the input image, image: the method gets what it is "
        "not written for, and the route fails when it is called; write the input as image: image[1..8]",
    ),
    "a picture for a flag, where there is a flag": Case(
        "C008",
        one("look", inputs={"image": "image", "hard": "flag"}, image="image", hard="image"),
        f"{STEPS}.answer.takes.hard",
        "takes hard as bool, and would get bytes from the input image, image: the method gets what it is not written "
        "for, and the route fails when it is called; take hard, or write the input as image: flag",
    ),
    "a flag for a picture that may be left out": Case(
        "C008",
        one("look_if_any", inputs={"image": "image", "hard": "flag"}, image="hard"),
        f"{STEPS}.answer.takes.image",
        "and would get bool from the input hard, flag",
    ),
    "an input for an earlier step's answer": Case(
        "C008",
        one("judge", inputs={"image": "image"}, seen="image"),
        f"{STEPS}.answer.takes.seen",
        "takes seen as Seen, and would get bytes from the input image, image: the method gets what it is not written "
        "for, and the route fails when it is called; take a step that answers Seen",
    ),
    "an earlier step's answer for a picture": Case(
        "C009",
        steps(
            inputs={"image": "image"},
            first={"call": "echo.look", "takes": {"image": "image"}},
            answer={"call": "echo.look", "takes": {"image": "first"}},
        ),
        f"{STEPS}.answer.takes.image",
        "takes image as bytes, and would get Seen from first, the answer of echo.look: the method gets what it is not "
        "written for, and the route fails when it is called; take image",
    ),
    "an earlier step's answer for another's": Case(
        "C009",
        steps(
            inputs={"image": "image"},
            first={"call": "echo.look", "takes": {"image": "image"}},
            other={"call": "echo.judge", "takes": {"seen": "first"}},
            answer={"call": "echo.judge", "takes": {"seen": "other"}},
        ),
        f"{STEPS}.answer.takes.seen",
        "takes seen as Seen, and would get Judged from other, the answer of echo.judge: the method gets what it is not "
        "written for, and the route fails when it is called; take first",
    ),
    "an optional step's answer for an argument that has to be there": Case(
        "C011",
        steps(
            inputs={"image": "image"},
            first={"call": "echo.look", "takes": {"image": "image"}, "optional": True},
            answer={"call": "echo.judge", "takes": {"seen": "first"}},
        ),
        f"{STEPS}.answer.takes.seen",
        "Typed.judge takes seen as Seen, and first is optional: the route fails whenever that step does, or is too "
        "late; annotate it with | None",
    ),
    "a method that is not there": Case(
        "C005", step(answer={"call": "echo.runs"}), f"{STEPS}.answer.call", "has no `async def runs`"
    ),
    "a method that is not async": Case(
        "C005",
        one("measure", inputs={"image": "image"}, image="image"),
        f"{STEPS}.answer.call",
        "Typed has no `async def measure`, but a plain one: the route fails when it is called; write it as `async def",
    ),
    "an argument that the method does not have": Case(
        "C006",
        step(answer={**STEP, "takes": {"image": "image", "hard": "image"}}),
        f"{STEPS}.answer.takes.hard",
        "tests.rules.stages:Echo.run takes image, and no hard: the route fails when it is called; remove it",
    ),
    "an argument that is misspelt": Case(
        "C006",
        step(answer={"takes": {"image": GONE, "imag": "image"}}),
        f"{STEPS}.answer.takes.imag",
        "did you mean image?",
    ),
    "a required argument that is not given": Case(
        "C006",
        step(answer={"call": "echo.judge", "takes": {"image": GONE}}),
        f"{STEPS}.answer.takes",
        "Echo.judge takes first, second, and does not get first, second",
    ),
    "a method that does not say what it answers": Case(
        "C007", one("mumble", inputs={"image": "image"}, image="image"), f"{STEPS}.answer.call", "names no pydantic"
    ),
    "a recipe that takes no file": Case(
        "C010",
        recipe("os:getcwdb", file="m.onnx", sha256=64 * "0"),
        "models.m.weights.prepare",
        "os:getcwdb cannot be called with the file's bytes",
    ),
    "a recipe that takes a file where there is none": Case(
        "C010",
        recipe("os:fsencode"),
        "models.m.weights.prepare",
        "os:fsencode cannot be called with nothing",
    ),
}  # fmt: skip
