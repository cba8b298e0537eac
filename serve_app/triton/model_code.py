"""A python model's code, read and never run: what the python backend needs of it, and what it gets wrong there."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

BACKEND_UTILS = "triton_python_backend_utils"
_CLASS = "TritonPythonModel"
# What the backend gives each of a model's methods.
_METHODS = {"initialize": ("self", "args"), "execute": ("self", "requests"), "finalize": ("self",)}
# Functions that get a class and leave it as it is.
_HARMLESS = ("super", "isinstance", "issubclass", "type", "hasattr", "getattr", "print", "repr")


def parse_code(source: bytes, name: str) -> ast.Module:
    """The module in a file called `name`. SyntaxError, also for what the grammar alone lets pass; ValueError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source, name)
            compile(tree, name, "exec", dont_inherit=True)
        except (RecursionError, MemoryError) as deep:  # the parser's own stack, which MemoryError is said of too
            raise ValueError("it is nested too deeply") from deep
    return tree


def lack(tree: ast.Module) -> str | None:
    """What the python backend looks for in a model's module and does not find, as `has no class …`."""
    names = _names(tree.body)
    if _CLASS not in names and "*" not in names:
        return f"has no class {_CLASS}"
    found = _own_class(tree)
    if found is not None and "execute" not in _names(found.body) and not _is_changed(tree, "execute"):
        return f"has a class {_CLASS} without execute"
    return None


def odd_methods(tree: ast.Module) -> list[str]:
    """The methods of a model's class that cannot be called as the python backend calls them, as `… in line 7`."""
    found = _own_class(tree)
    if found is None:
        return []
    bound = list(_every_name(found.body))
    return [
        f"{node.name}({', '.join(_parameters(node.args))}) in line {node.lineno}, and the python backend calls "
        f"{node.name}({', '.join(_METHODS[node.name])})"
        for node in found.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.name in _METHODS
        and not node.decorator_list
        and bound.count(node.name) == 1
        and not _takes(node.args, len(_METHODS[node.name]))
        and not _is_changed(tree, node.name)
    ]


def _takes(parameters: ast.arguments, given: int) -> bool:
    """Whether a function can be called with so many arguments, none of them by name."""
    places = len(parameters.posonlyargs) + len(parameters.args)
    by_name = any(default is None for default in parameters.kw_defaults)
    fits = places - len(parameters.defaults) <= given and (given <= places or parameters.vararg is not None)
    return fits and not by_name


def _parameters(parameters: ast.arguments) -> list[str]:
    """The names of a function's parameters, with a * where names alone can be given from there on."""
    star = [f"*{parameters.vararg.arg}"] if parameters.vararg else ["*"] if parameters.kwonlyargs else []
    named = [each.arg for each in parameters.posonlyargs + parameters.args]
    return [*named, *star, *(each.arg for each in parameters.kwonlyargs)]


def _own_class(tree: ast.Module) -> ast.ClassDef | None:
    """The model's class, where all that it has is in its body: bases, a metaclass and decorators may add to it."""
    found = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == _CLASS]
    bound = list(_every_name(tree.body))
    if not found or bound.count(_CLASS) > len(found) or "*" in bound:
        return None
    last = found[-1]
    return None if last.bases or last.keywords or last.decorator_list else last


def _is_changed(tree: ast.Module, method: str) -> bool:
    """Whether a method may come to a class by an assignment, or by other code that gets the class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (
            node.attr == "__dict__" or (node.attr == method and isinstance(node.ctx, ast.Store))
        ):
            return True
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else None
            if called in ("setattr", "vars", "locals", "exec"):
                return True
            given = [*node.args, *(each.value for each in node.keywords)]
            if called not in _HARMLESS and any(isinstance(each, ast.Name) and each.id == _CLASS for each in given):
                return True
        if isinstance(node, ast.FunctionDef) and node.name in ("__getattr__", "__getattribute__"):
            return True
    return False


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
