"""A python model's code, read and never run: what the python backend needs of it, and what it gets wrong there."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

BACKEND_UTILS = "triton_python_backend_utils"


def parse_code(source: bytes, name: str) -> ast.Module:
    """The module in a file called `name`. SyntaxError, also for what the grammar alone lets pass; ValueError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(source, name)
        compile(tree, name, "exec", dont_inherit=True)
    return tree


def lack(tree: ast.Module) -> str | None:
    """What the python backend looks for in a model's module and does not find, as `has no class …`."""
    names = _names(tree.body)
    if "TritonPythonModel" not in names and "*" not in names:
        return "has no class TritonPythonModel"
    found = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "TritonPythonModel"]
    # A class with a base may have the method from there.
    if found and not found[-1].bases and "execute" not in _names(found[-1].body):
        return "has a class TritonPythonModel without execute"
    return None


def numpy_calls(tree: ast.Module) -> list[str]:
    """Where the module exchanges tensors with the python backend as NumPy arrays, as `as_numpy() in line 7`."""
    modules, classes = _backend_names(tree)
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called, given = node.func, len(node.args) + len(node.keywords)
        if isinstance(called, ast.Attribute):
            is_read = called.attr == "as_numpy" and given == 0  # a client's answer has one that takes a name
            is_write = called.attr == "Tensor" and isinstance(called.value, ast.Name) and called.value.id in modules
        else:
            is_read, is_write = False, isinstance(called, ast.Name) and called.id in classes
        if is_read or is_write:
            found.append((node.lineno, "as_numpy()" if is_read else f"{ast.unparse(called)}(name, array)"))
    return [f"{what} in line {line}" for line, what in sorted(found)]


def _backend_names(tree: ast.Module) -> tuple[set[str], set[str]]:
    """What the module calls the backend's own module, and the class Tensor in it."""
    modules, classes = {"pb_utils", BACKEND_UTILS}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {each.asname for each in node.names if each.name == BACKEND_UTILS and each.asname}
        elif isinstance(node, ast.ImportFrom) and node.module == BACKEND_UTILS:
            classes |= {each.asname or each.name for each in node.names if each.name == "Tensor"}
    return modules, classes


def _names(statements: list[ast.stmt]) -> set[str]:
    """What the statements define or import, inside of conditions too; `*` where they import everything."""
    return set(_every_name(statements))


def _every_name(statements: list[ast.stmt]) -> Iterator[str]:
    for statement in statements:
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield statement.name
            continue
        for node in ast.walk(statement):
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node.name
            elif isinstance(node, ast.alias):
                yield (node.asname or node.name).partition(".")[0]
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
