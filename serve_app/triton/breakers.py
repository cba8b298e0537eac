"""The breakers of one process, around its calls to models."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from types import TracebackType

import grpc

from serve_app.problem import Problem
from serve_app.spec import Spec
from serve_app.spec.paths import reached
from serve_app.triton.breaker import Breaker
from serve_app.triton.errors import is_of_the_model

logger = logging.getLogger("ray.serve")


class Breakers:
    """Each model and ensemble by its name; one without a breaker is always asked.

    `renewed` and `clock` are the connection's: see `serve_app.triton.connection.Connection.renewed`.
    """

    def __init__(
        self,
        breakers: Mapping[str, Breaker],
        renewed: Callable[[], float] = lambda: -math.inf,
        clock: Callable[[], float] = time.time,
    ):
        self._breakers = breakers
        self._renewed = renewed
        self._clock = clock

    @classmethod
    def of(cls, spec: Spec, renewed: Callable[[], float], clock: Callable[[], float] = time.time) -> Breakers:
        given = spec.service.breaker
        names = [name for name in (*spec.models, *spec.ensembles) if given.enabled and _has_no_sequences(spec, name)]
        open_for = given.open_for.total_seconds()
        return cls(
            {
                name: Breaker(
                    given.failures, open_for, patience(spec, name).total_seconds(), partial(_log, name, open_for)
                )
                for name in names
            },
            renewed,
            clock,
        )

    def around(self, model: str, timeout: float) -> Guarded:
        """Around a call of a model that has `timeout` seconds. Problem 503 where the model is not asked just now."""
        return Guarded(model, self._breakers.get(model), timeout, self._renewed, self._clock)


class Guarded:
    """One call, within `with`."""

    __slots__ = ("_began", "_breaker", "_clock", "_model", "_renewed", "_timeout")

    def __init__(
        self,
        model: str,
        breaker: Breaker | None,
        timeout: float,
        renewed: Callable[[], float],
        clock: Callable[[], float],
    ):
        self._model = model
        self._breaker = breaker
        self._timeout = timeout
        self._renewed = renewed
        self._clock = clock
        self._began = 0.0

    def __enter__(self) -> Guarded:
        if self._breaker is not None:
            self._began = self._clock()
            if wait := self._breaker.ask(self._began, self._timeout, self._renewed()):
                raise _silent(self._model, wait)
        return self

    def answered(self) -> None:
        """The model has answered, and may answer more."""
        if self._breaker is not None:
            self._breaker.answered(self._clock())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._breaker is None:
            return
        if error is None or (isinstance(error, grpc.RpcError) and is_of_the_model(error)):
            self._breaker.answered(self._clock())
        elif _ended_waiting(error):
            self._breaker.unanswered(self._began, self._clock(), self._renewed())
        else:
            self._breaker.inconclusive(self._began, self._clock())


def patience(spec: Spec, model: str) -> timedelta:
    """How long a call of the model or ensemble has to wait in vain to count: half of the shortest time that a request
    has for a step which calls it, or that the service gives to requests to models."""
    times = [
        min(step.within or spec.sla(name), spec.sla(name))
        for name, pipeline in spec.pipelines.items()
        for step in pipeline.steps.values()
        if model in spec.stages[step.stage].models
    ]
    return min([*times, spec.service.sla]) / 2


def _has_no_sequences(spec: Spec, name: str) -> bool:
    """Sequences that are under way keep others waiting for as long as their clients like: their model is well then."""
    return all(spec.models[model].sequence is None for model in reached(spec, name))


def _ended_waiting(error: BaseException) -> bool:
    if isinstance(error, grpc.RpcError):
        return bool(error.code() is grpc.StatusCode.DEADLINE_EXCEEDED)
    return isinstance(error, asyncio.CancelledError | GeneratorExit)


def _silent(model: str, seconds: float) -> Problem:
    detail = f"{model} does not answer just now; retry in {math.ceil(seconds)} s"
    return Problem(503, "model_unavailable", detail, retry_after=seconds)


def _log(model: str, open_for: float, is_open: bool) -> None:
    if is_open:
        logger.warning("%s does not answer; its calls fail at once, but for one every %g s", model, open_for)
    else:
        logger.warning("%s is asked again", model)
