from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

SPEC_FILE = Path(__file__).parents[2] / "cluster" / "spec.yaml"


@pytest.fixture
def example() -> dict[str, Any]:
    """The project's own spec as plain data, to break one thing in."""
    data: dict[str, Any] = yaml.safe_load(SPEC_FILE.read_text())
    return data


@pytest.fixture
def example_text() -> str:
    return SPEC_FILE.read_text()
