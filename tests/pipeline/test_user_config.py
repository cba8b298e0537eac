from __future__ import annotations

import pytest
from pydantic import ValidationError

from serve_app.pipeline.stage import StageReplica
from tests.rules.ray_code import Live


def replica_of(stage: object) -> StageReplica:
    """A replica without a Triton to wait for."""
    replica = object.__new__(StageReplica)
    replica._stage = stage
    return replica


async def test_a_stage_gets_its_user_config_as_the_model_that_it_asks_for() -> None:
    stage = Live(None)
    await replica_of(stage).reconfigure({"most": 3})
    assert stage.most == 3


async def test_a_stage_without_a_model_gets_it_as_it_is() -> None:
    class Plain:
        async def reconfigure(self, user_config: dict[str, int]) -> None:
            self.given = user_config

    stage = Plain()
    await replica_of(stage).reconfigure({"most": 3})
    assert stage.given == {"most": 3}


async def test_a_user_config_that_the_model_refuses_changes_nothing() -> None:
    stage = Live(None)
    with pytest.raises(ValidationError, match="most"):
        await replica_of(stage).reconfigure({"most": "many"})
    assert stage.most == 0
