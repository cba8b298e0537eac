"""What `tandem validate` found, as text for people and in the formats that machines read."""

from __future__ import annotations

from collections.abc import Callable

from serve_app.reports.github import render_github
from serve_app.reports.json import render_json
from serve_app.reports.sarif import render_sarif
from serve_app.reports.text import render_text
from serve_app.spec.load import Report

# For machines; people get `render_text`.
FORMATS: dict[str, Callable[[Report], str]] = {"json": render_json, "github": render_github, "sarif": render_sarif}

__all__ = ["FORMATS", "render_github", "render_json", "render_sarif", "render_text"]
