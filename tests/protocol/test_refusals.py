from __future__ import annotations

import pytest

from serve_app.protocol.refusals import Code, Refusal, cleaned

FAILED = "Failed to process the request(s) for model 'm_0_0', message: ValueError: no"
UNTOUCHED = "Expected [-1,1], got [1,2] for input 'A/B' and/or 'C'"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (f"{FAILED}\n\nAt:\n  /srv/m/1/model.py(3): execute\n", FAILED),
        ("unable to open /dev/shm/triton_python_backend_shm_region_5", "unable to open …"),
        ("no region: 'tandem-40265-17-99-shm_region_3'", "no region: '…'"),
        ("ipv4:127.0.0.1:8001: Failed to connect", "… Failed to connect"),
        ("no answer of 10.0.0.7:8001 or localhost:9000", "no answer of … or …"),
        ("at 0x7f87c785a050", "at …"),
        (UNTOUCHED, UNTOUCHED),
    ],
)
def test_what_triton_says_loses_the_names_of_its_insides(said: str, told: str) -> None:
    assert cleaned(said) == told


def test_what_a_refusal_quotes_can_always_be_written() -> None:
    assert Refusal(Code.INTERNAL, "\ud800").message.encode() == rb"\ud800"
