"""Calls to models and what their ends say: which open a breaker, which close it, and which say nothing."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Any

import grpc
import pytest

from serve_app.problem import Problem
from serve_app.spec.schema import Spec
from serve_app.triton.breaker import Breaker
from serve_app.triton.breakers import Breakers, patience
from serve_app.triton.channel import CallError
from tests.rules.case import patched
from tests.rules.pipeline_cases import served

Code = grpc.StatusCode
LATE = CallError(Code.DEADLINE_EXCEEDED, "Deadline Exceeded")
SEQUENCE: dict[str, Any] = {
    "oldest": {"max_candidates": 4},
    "idle_timeout": "5s",
    "controls": [
        {"input": "START", "signals": "start", "type": "int32", "off": 0, "on": 1},
        {"input": "SEQUENCE", "signals": "corrid", "type": "uint64"},
    ],
}


class Model:
    """A model whose calls take a minute each, by its own clock; by default its breaker opens after two failures."""

    def __init__(self, spec: Spec | None = None):
        self.now = 100.0
        if spec is None:
            breaker = Breaker(2, 10.0, 30.0, lambda _: None)
            self._breakers = Breakers({"m": breaker}, clock=lambda: self.now)
        else:
            self._breakers = Breakers.of(spec, lambda: -1.0, lambda: self.now)

    def call(self, end: BaseException | None, answers: int = 0) -> None:
        with self._breakers.around("m", 60.0) as guarded:
            self.now += 60
            for _ in range(answers):
                guarded.answered()
            if end is not None:
                raise end

    def is_asked(self) -> bool:
        try:
            self.call(CallError(Code.UNAVAILABLE, "Exceeds maximum queue size"))
        except CallError:
            return True
        except Problem:
            return False
        raise AssertionError("that call has no other end")

    def fail(self, *ends: BaseException) -> None:
        for end in ends:
            with pytest.raises(type(end)):
                self.call(end)


@pytest.mark.parametrize("end", [LATE, asyncio.CancelledError(), GeneratorExit()], ids=["late", "cancelled", "closed"])
def test_a_call_that_ended_in_waiting_opens(end: BaseException) -> None:
    model = Model()
    model.fail(LATE, end)
    assert not model.is_asked()


@pytest.mark.parametrize(
    "end",
    [
        CallError(Code.INTERNAL, "Failed to process the request(s) for model 'm': ValueError: x"),
        None,
    ],
    ids=["raised", "answered"],
)
def test_whatever_the_model_itself_answers_keeps_it_closed(end: CallError | None) -> None:
    """A model that raises may have been given bad input, by one client; it must not be lost to the others."""
    model = Model()
    for _ in range(5):
        model.fail(LATE)
        if end is None:
            model.call(None)
        else:
            model.fail(end)
    assert model.is_asked()


@pytest.mark.parametrize(
    "end",
    [
        CallError(Code.UNAVAILABLE, "Exceeds maximum queue size"),
        CallError(Code.UNAVAILABLE, "Request timeout expired"),
        CallError(Code.INVALID_ARGUMENT, "unexpected shape for input 'x'"),
        CallError(Code.UNAVAILABLE, "the connection to 127.0.0.1:1 was lost"),
        CallError(Code.INTERNAL, "Stub process 'm' is not healthy."),
        ValueError("a bug"),
    ],
    ids=["full queue", "queue timeout", "bad tensor", "lost", "lost process", "a bug"],
)
def test_what_the_model_has_no_part_in_neither_opens_nor_closes(end: BaseException) -> None:
    model = Model()
    model.fail(end, end, end)
    assert model.is_asked()
    model.fail(LATE, end, LATE)
    assert not model.is_asked()


def test_a_stream_whose_deadline_passes_amid_its_answers_does_not_count() -> None:
    model = Model()
    for _ in range(5):
        with pytest.raises(CallError):
            model.call(LATE, answers=1)
    assert model.is_asked()


def test_the_refusal_says_when_to_come_back() -> None:
    model = Model()
    model.fail(LATE, LATE)
    model.now += 2.5
    with pytest.raises(Problem) as refused:
        model.call(None)
    problem = refused.value
    assert (problem.status, problem.code, problem.retry_after) == (503, "model_unavailable", 7.5)
    assert problem.detail == "m does not answer just now; retry in 8 s"


def of(patch: dict[str, Any]) -> Spec:
    return Spec.model_validate(patched(served(patch)))


def is_asked_after_failures(spec: Spec) -> bool:
    model = Model(spec)
    model.fail(*[LATE] * spec.service.breaker.failures)
    return model.is_asked()


def test_a_model_has_a_breaker_unless_the_spec_switches_them_off() -> None:
    assert not is_asked_after_failures(of({}))
    assert not is_asked_after_failures(of({"service": {"breaker": {"failures": 1}}}))
    assert is_asked_after_failures(of({"service": {"breaker": {"enabled": False}}}))


def test_a_model_of_sequences_has_none_since_one_client_can_keep_others_waiting() -> None:
    assert is_asked_after_failures(of({"models": {"m": {"batching": None, "sequence": SEQUENCE}}}))


def test_opening_and_closing_is_logged_once_each(caplog: pytest.LogCaptureFixture) -> None:
    model = Model(of({}))
    with caplog.at_level(logging.WARNING, "ray.serve"):
        model.fail(LATE, LATE, LATE)
        model.now += 2
        model.fail(LATE)
        model.now += 2
        model.call(None)
        model.call(None)
    assert [record.getMessage() for record in caplog.records] == [
        "m does not answer; its calls fail at once, but for one every 2 s",
        "m is asked again",
    ]


@pytest.mark.parametrize(
    ("patch", "seconds"),
    [
        ({}, 4),
        ({"pipelines": {"echo": {"sla": "2s"}}}, 1),
        ({"pipelines": {"echo": {"sla": "2s", "steps": {"answer": {"optional": True, "within": "500ms"}}}}}, 0.25),
        ({"stages": {"echo": {"models": ["other"]}}, "pipelines": {"echo": {"sla": "2s"}}}, 4),
    ],
    ids=["the service's SLA", "the pipeline's SLA", "the step's time", "another model's"],
)
def test_a_call_counts_after_half_of_the_shortest_time_that_its_steps_have(
    patch: dict[str, Any], seconds: float
) -> None:
    assert patience(of(patch), "m") == timedelta(seconds=seconds)
