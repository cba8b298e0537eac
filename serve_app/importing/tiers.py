"""The tiers that a repository's configurations were rendered with, by the level that is kept for wake-up requests.

Nothing else looks like that level: the last of several, none of which is the default, whose requests expire after a
microsecond, may say themselves when, and are refused then. A level of anybody's own would serve no request so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tritonclient.grpc import model_config_pb2 as pb

from serve_app.render.batching import WAKE_UP_POLICY

# Of more priority levels than these nobody can have meant each.
MOST_TIERS = 20


@dataclass(frozen=True)
class Tiers:
    """How many there are, and the priority of the default one; a configuration does not say more."""

    count: int
    default: int

    @property
    def names(self) -> dict[int, str]:
        """A name for each priority, the first served first."""
        above, below = self.default - 1, self.count - self.default
        ranks = [*_ranks("interactive", above), "standard", *_ranks("bulk", below)]
        return dict(enumerate(ranks, 1))


def _ranks(name: str, count: int) -> list[str]:
    return [name] if count == 1 else [f"{name}-{rank}" for rank in range(1, count + 1)]


def rendered_tiers(batching: pb.ModelDynamicBatching) -> Tiers | None:
    """The tiers that a configuration was rendered with; None where its levels are the model's own, or there are none.

    The way back of `dynamic_batching` in `render/batching.py`.
    """
    last, default = batching.priority_levels, batching.default_priority_level
    if not 1 <= default < last <= MOST_TIERS + 1 or last not in batching.priority_queue_policy:
        return None
    return Tiers(last - 1, default) if batching.priority_queue_policy[last] == WAKE_UP_POLICY else None


def most_common_tiers(configs: Iterable[pb.ModelConfig]) -> Tiers | None:
    """The tiers that most of the rendered configurations have; None where none was rendered with any.

    A project's own have all the same. Of several projects' in one folder, the others stay levels of the model's own.
    """
    found = Counter(tiers for config in configs if (tiers := rendered_tiers(config.dynamic_batching)) is not None)
    return found.most_common(1)[0][0] if found else None
