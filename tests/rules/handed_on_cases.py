"""Names and paths that are handed on to a shell, a file system or a command line.

What a shell makes of them, and what ends the server, is in tests/triton/test_handed_on.py.
"""

from __future__ import annotations

from tests.rules.case import Case
from tests.rules.feature_cases import native
from tests.rules.model_cases import GROUP, WARMUP, group, model, warmed
from tests.rules.sequence_cases import STATE, ZERO, state
from tests.rules.server_cases import TRITON, triton

NO_TEXT = "failed to open text file for read"
ENVIRONMENT = "EXECUTION_ENV_PATH"


def labelled(labels: str) -> Case:
    return Case(
        "T143",
        model(outputs={"y": {"tensor": "float32[4]", "labels": labels}}),
        "models.m.outputs.y.labels",
        f"{labels!r} is no file in the model's folder",
        refused=NO_TEXT,
    )


CASES = {
    "a group's name with a command": Case(
        "T141", group(name="g $(true)"), f"{GROUP}.name", "'g $(true)' is no name of a group", refused="'model'"
    ),
    "a group's name with a space": Case("T141", group(name="g h"), f"{GROUP}.name", refused="No module named 'model'"),
    "a group's name with a slash": Case("T141", group(name="g/h"), f"{GROUP}.name", loads=True),
    "a group's name of nothing": Case("T141", group(name=""), f"{GROUP}.name", loads=True),
    "a group's name with a command in a profile": Case(
        "T141",
        model(profiles={"embedded": {"instances": {"name": "`true`"}}}),
        "models.m.profiles.embedded.instances.0.name",
    ),
    "a host policy with a command": Case(
        "T141", group(host_policy="p $(true)"), f"{GROUP}.host_policy", "is no name of a host policy", loads=True
    ),
    "a python file with a space": Case(
        "T142", model(file="my model.py"), "models.m.file", "'my model.py' is no file's name that it can import"
    ),
    "a python file with a command": Case("T142", model(file="$(true).py"), "models.m.file"),
    "a python file with two dots": Case("T142", model(file="a.b.py"), "models.m.file"),
    "a python file in a folder with a dot": Case("T142", model(file="sub.d/model.py"), "models.m.file"),
    "a python file that is no module": Case("T142", model(file="model.so"), "models.m.file"),
    "a python file with the name of its version": Case("T142", model(file="1.py"), "models.m.file"),
    "a python file beside its version": Case(
        "T142", model(profiles={"embedded": {"file": "../model.py"}}), "models.m.profiles.embedded.file"
    ),
    "a native model's file outside its version": Case(
        "T143", native(file="../m.onnx"), "models.m.file", "'../m.onnx' is no file in the version's folder"
    ),
    "labels outside the model's folder": labelled("../x"),
    "labels from the root": labelled("/gone/x"),
    "a warm-up from no file": Case(
        "T143", warmed({"file": ""}), f"{WARMUP}.inputs.x.file", "'' is no file in the folder warmup"
    ),
    "a warm-up from the folder itself": Case("T143", warmed({"file": "."}), f"{WARMUP}.inputs.x.file"),
    "a warm-up from the root": Case("T143", warmed({"file": "/gone/x"}), f"{WARMUP}.inputs.x.file", refused=NO_TEXT),
    "an initial value from no file": Case(
        "T143",
        state(initial=[{**ZERO, "file": ""}]),
        f"{STATE}.initial.0.file",
        "'' is no file in the folder initial_state",
    ),
    "an initial value from the folder itself": Case(
        "T143", state(initial=[{**ZERO, "file": "."}]), f"{STATE}.initial.0.file"
    ),
    "an environment with a command": Case(
        "T144",
        model(parameters={ENVIRONMENT: "/gone; true"}),
        f"models.m.parameters.{ENVIRONMENT}",
        "'/gone; true' is no word for a shell",
        refused="Failed to get the canonical path for /gone; true",
    ),
    "a stock of a resource with a colon": Case(
        "T417", triton(rate_limit=True, resources={"a:b": 1}), f"{TRITON}.resources.a:b", "'a:b' is no name"
    ),
    "a wish for a resource with a space": Case(
        "T417", group(rate_limiter={"resources": {"a b": 1}}), f"{GROUP}.rate_limiter.resources.a b", loads=True
    ),
}
