"""Code that the smallest specs name to Ray Serve."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict
from ray.serve.request_router import RequestRouter

from tests.rules.stages import Answer

NOT_CALLABLE = 1


class Limits(BaseModel):
    model_config = ConfigDict(extra="forbid")

    most: int


class Live:
    """A stage whose user_config has a type."""

    def __init__(self, m: Any):
        self._m = m
        self.most = 0

    async def reconfigure(self, user_config: Limits) -> None:
        self.most = user_config.most

    async def run(self, image: bytes) -> Answer:
        return Answer(rows=self.most)


class First(RequestRouter):
    async def choose_replicas(self, candidate_replicas: Any, pending_request: Any = None) -> Any:
        return [candidate_replicas]


class Doubling:
    """A policy with state."""

    def __init__(self, factor: float = 2):
        self.factor = factor

    def __call__(self, context: Any) -> Any:
        return context.current_num_replicas * self.factor, {}


def as_many(context: Any) -> Any:
    return context.current_num_replicas, {}


def for_all(contexts: Any) -> Any:
    return {each: context.current_num_replicas for each, context in contexts.items()}, {}


def spans() -> list[Any]:
    return []
