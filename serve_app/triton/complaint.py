"""What Triton says of a fault, on one line and in its reader's terms."""

from __future__ import annotations

import re

# What Triton writes to its log when it gets a signal: which, and where in its own code, line by line.
STACK = re.compile(r"\s*\d+# \S|Signal \(\d+\) received\.")
_PREFIX = re.compile(r"[EWF]\d{4} [\d:.]+ \d+ \S+?\] ")
_TRACEBACK = re.compile(r"\n+At:\n")
# A frame in a model's own folder; the frames are innermost first.
_OWN_FRAME = re.compile(r"/repository/(.+?)\((\d+)\): ")
_REPOSITORY = re.compile(r"/\S*/repository/")


def complaint(text: str) -> str:
    """Triton's words, from an answer or a line of its log, without line breaks, frames and the repository's folder.

    Of a python model's exception there is its type, its message, and where in the model's own code it was raised.
    """
    plain = _PREFIX.sub("", text, count=1).replace("\\n", "\n")
    head, *frames = _TRACEBACK.split(plain, maxsplit=1)
    words = " ".join(_REPOSITORY.sub("model_repository/", head).split()).strip('"; ')
    own = _OWN_FRAME.search(frames[0]) if frames else None
    return words if own is None else f"{words} (model_repository/{own[1]}, line {own[2]})"
