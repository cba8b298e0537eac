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


def render_text(dashboard: str, drift: Sequence[Drift]) -> str:
    """A line for each difference, and what a redeploy would do about all of them."""
    if not drift:
        return f"what runs at {dashboard} is what the spec says\n"
    lines = [
        f"{each.part}: {each.what}: {each.running} → {each.wanted} ({each.effect or each.remedy})" for each in drift
    ]
    counts = Counter(each.effect for each in drift)
    does = ", ".join(words.format(counts[effect]) for effect, words in _DOES.items() if counts[effect])
    number = "1 difference" if len(drift) == 1 else f"{len(drift)} differences"
    return "\n".join([*lines, f"{number} at {dashboard}; a redeploy would {does}", ""])


def render_json(dashboard: str, drift: Sequence[Drift]) -> str:
    """The same for scripts; an `effect` of null is a difference that no redeploy changes."""
    return json.dumps({"dashboard": dashboard, "drift": [asdict(each) for each in drift]}, indent=2) + "\n"
