"""Code that specs at random name: a stage that takes any of their models, and a pipeline's arguments."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid")

    threshold: float = 0.5
    words: dict[str, Any] = {}


USUAL = Settings()


class Answer(BaseModel):
    rows: int


class Anything:
    def __init__(self, m0: Any = None, m1: Any = None, m2: Any = None, row: Any = None, settings: Settings = USUAL): ...

    async def reconfigure(self, user_config: dict[str, Any]) -> None: ...

    async def run(
        self, a: Any = None, b: Any = None, c: Any = None, d: Any = None, e: Any = None, f: Any = None, g: Any = None
    ) -> Answer:
        return Answer(rows=0)
