"""The comments of a config.pbtxt, which no message keeps."""

from __future__ import annotations

import re

from serve_app.render import GENERATED

# A text in quotes ends on its line.
_WITH_COMMENT = re.compile(r"""((?:[^#"']|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')*)#(.*)""")
_GENERATED_LINES = 2


def comments(text: str) -> tuple[str, ...]:
    """Every comment with its `#`, a line each; one that is beside a field comes with the field.

    `# Generated from …`, which `tandem render` writes, is left out with the line above it.
    """
    lines = text.split("\n")
    if GENERATED in "".join(lines[1:_GENERATED_LINES]):
        lines = lines[_GENERATED_LINES:]
    found = (_WITH_COMMENT.match(line) for line in lines)
    return tuple(_one_line(each[1].strip(), each[2].rstrip()) for each in found if each)


def _one_line(before: str, comment: str) -> str:
    return f"# {before}  #{comment}" if before else f"#{comment}"
