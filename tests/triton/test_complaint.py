"""What Triton says of a fault, made readable."""

from __future__ import annotations

import pytest

from serve_app.triton.complaint import STACK, complaint

FRAMES = (
    "\n\nAt:\n  /usr/lib/python3.11/json/decoder.py(354): raw_decode\n"
    "  /tmp/tandem-triton-1-2-3-x/repository/m/1/model.py(12): parse\n"
    "  /tmp/tandem-triton-1-2-3-x/repository/m/1/model.py(7): execute\n; "
)


@pytest.mark.parametrize("text", [f"ValueError: no such thing{FRAMES}", f"ValueError: no\nsuch thing{FRAMES}"])
def test_an_exception_is_its_type_its_message_and_the_line_of_the_models_own_code(text: str) -> None:
    wanted = "ValueError: no such thing (model_repository/m/1/model.py, line 12)"
    assert complaint(text) == wanted
    logged = text.replace("\n", "\\n")
    assert complaint(f'E1130 20:35:43.411012 22249 pb_stub.cc:714] "{logged}"') == wanted


def test_an_exception_in_nobodys_own_code_is_its_type_and_message_alone() -> None:
    assert complaint("E: x\n\nAt:\n  /usr/lib/python3/onnx.py(3): load\n") == "E: x"


def test_other_words_are_left_as_they_are_but_for_the_folder_and_line_breaks() -> None:
    said = "failed to open /tmp/tandem-triton-1-2-3-x/repository/m/1/model.onnx\n  because"
    assert complaint(said) == "failed to open model_repository/m/1/model.onnx because"


@pytest.mark.parametrize("line", [" 0# 0x000055FD189CE52D in /opt/x", "13# main in /opt/t", "Signal (11) received."])
def test_tritons_own_stack_is_told_from_what_it_complains_of(line: str) -> None:
    assert STACK.match(line)
    assert not STACK.match("failed to load 'm' version 1: it has no # in it")
