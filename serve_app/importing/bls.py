"""The models that a python model's code calls (BLS), read from its text: none of it is run."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from serve_app.files import names_below, read_file
from serve_app.importing.repository import versions
from serve_app.triton.model_code import parse_code

_REQUEST = "InferenceRequest"
# Where InferenceRequest takes the model's name, given by position: `src/pb_stub.cc` in the python backend.
_NAME_POSITION = 4
_LONGEST_SHOWN = 60
_LARGEST_CODE = 2**26


@dataclass(frozen=True)
class Calls:
    """The models that the code names, in the order of their names, and what else it calls, for people to look at."""

    models: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()


def calls(folder: Path, repository: Collection[str]) -> Calls:
    """What the code in a model's version folders calls. `repository`: the names of the models that there are."""
    models: set[str] = set()
    unclear: list[str] = []
    below = (path for version in versions(folder) for path in names_below(folder / version))
    for path in (path for path in below if path.suffix == ".py"):
        shown = path.relative_to(folder.parent)
        try:
            tree = parse_code(read_file(path, _LARGEST_CODE), path.name)
        except SyntaxError as broken:
            at = f"line {broken.lineno}: " if broken.lineno else ""
            unclear.append(f"{shown} is no Python that can be read ({at}{broken.msg}): which models does it call?")
            continue
        except (OSError, ValueError) as broken:
            reason = broken.strerror if isinstance(broken, OSError) else broken
            unclear.append(f"{shown} cannot be read ({reason}): which models does it call?")
            continue
        for call in _requests(tree):
            name = _model_name(call)
            if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
                given = f" ({_short(name)})" if name is not None else ""
                unclear.append(f"{shown}:{call.lineno} calls a model whose name is known only when it runs{given}")
            elif name.value in repository:
                models.add(name.value)
            else:
                unclear.append(f"{shown}:{call.lineno} calls {name.value!r}, and the repository has no such model")
    return Calls(tuple(sorted(models)), tuple(unclear))


def _requests(tree: ast.Module) -> Iterator[ast.Call]:
    """Every InferenceRequest that is made, in the order of the file."""
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name == _REQUEST
    }
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _makes_request(node.func, names)]
    yield from sorted(found, key=lambda call: (call.lineno, call.col_offset))


def _makes_request(called: ast.expr, names: Collection[str]) -> bool:
    if isinstance(called, ast.Attribute):
        return called.attr == _REQUEST
    return isinstance(called, ast.Name) and called.id in names


def _model_name(call: ast.Call) -> ast.expr | None:
    """The expression for the model's name; None where it is hidden in *args or **kwargs."""
    for keyword in call.keywords:
        if keyword.arg == "model_name":
            return keyword.value
    before = call.args[: _NAME_POSITION + 1]
    if len(before) <= _NAME_POSITION or any(isinstance(each, ast.Starred) for each in before):
        return None
    return before[_NAME_POSITION]


def _short(expression: ast.expr) -> str:
    try:
        code = ast.unparse(expression)
    except RecursionError:
        return "…"
    return code if len(code) <= _LONGEST_SHOWN else f"{code[: _LONGEST_SHOWN - 1]}…"
