"""What differs, as text for people and as JSON for scripts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from serve_app.drift.difference import Drift
from serve_app.render.changes import Effect

_DOES: dict[Effect | None, str] = {
    "in place": "change {} in place",
    "restarts the deployment": "change {} by restarting a deployment",
    "restarts the application": "change {} by restarting the application",
    "needs a new start of Serve": "not change {}, which Ray Serve reads when it starts",
    None: "not change {}, each for its own reason",
}


def render_text(dashboard: str, drift: Sequence[Drift], not_compared: Sequence[str]) -> str:
    """A line for each difference, what a redeploy would do about all of them, and what could not be compared."""
    left = [f"not compared, since Ray does not tell it: {', '.join(not_compared)}"] if not_compared else []
    if not drift:
        return "\n".join([f"what runs at {dashboard} is what the spec says", *left, ""])
    lines = [
        f"{each.part}: {each.what}: {each.running} → {each.wanted} ({each.effect or each.remedy})" for each in drift
    ]
    counts = Counter(each.effect for each in drift)
    does = ", ".join(words.format(counts[effect]) for effect, words in _DOES.items() if counts[effect])
    number = "1 difference" if len(drift) == 1 else f"{len(drift)} differences"
    return "\n".join([*lines, f"{number} at {dashboard}; a redeploy would {does}", *left, ""])


def render_json(dashboard: str, drift: Sequence[Drift], not_compared: Sequence[str]) -> str:
    """The same for scripts; an `effect` of null is a difference that no redeploy changes."""
    found = {"dashboard": dashboard, "drift": [asdict(each) for each in drift], "not_compared": not_compared}
    return json.dumps(found, indent=2) + "\n"
