"""Amounts that no server can have. Most of them would end the one that the other cases share."""

from __future__ import annotations

from tests.rules.case import MINIMAL, Case, merged
from tests.rules.ensemble_cases import ensemble
from tests.rules.model_cases import WARMUP, group, model, warmed
from tests.rules.sequence_cases import STATE, direct, oldest, state
from tests.rules.server_cases import TRITON, triton

HUGE = "float32[99999999999]"
VARYING = {"x": "float32[-1]"}

CASES = {
    "a warm-up that no memory holds": Case(
        "T145",
        merged(warmed({"tensor": HUGE}), model(inputs=VARYING)),
        f"{WARMUP}.inputs.x",
        f"{HUGE} takes more than 2GiB",
    ),
    "a warm-up whose size overflows": Case(
        "T145",
        merged(
            warmed({"tensor": "float32[999999999999999999, 999999999999999999]"}),
            model(inputs={"x": "float32[-1, -1]"}),
        ),
        f"{WARMUP}.inputs.x",
    ),
    "a warm-up whose batch is too large": Case(
        "T145",
        merged(warmed({"tensor": "string[100000000]"}, batch=8), model(inputs={"x": "string[-1]"})),
        f"{WARMUP}.inputs.x",
        "8 items of string[100000000] take more than 2GiB",
    ),
    "an initial value that no memory holds": Case(
        "T145",
        state(tensor=HUGE, initial=[{"name": "zero", "tensor": HUGE}]),
        f"{STATE}.initial.0.tensor",
    ),
    "an input that no message holds": Case(
        "T154",
        model(inputs={"x": "float32[999999999999999999]"}),
        "models.m.inputs.x",
        "one item of float32[999999999999999999] takes more than 2GiB: nobody can ever call it; write dimensions with "
        "which one item stays below 2GiB",
    ),
    "inputs that no message holds": Case(
        "T154",
        model(inputs={"x": "float32[400000000]", "z": "float32[400000000, -1]"}),
        "models.m.inputs",
        "one item of x and z takes more than 2GiB: nobody can ever call it; write dimensions with which "
        "one item stays below 2GiB",
    ),
    "an ensemble's input that no message holds": Case(
        "T154",
        ensemble(inputs={"x": "float32[536870912]"}, models={"m": {"inputs": {"x": "float32[-1]"}}}),
        "ensembles.e.inputs.x",
        "one item of float32[536870912] takes more than 2GiB",
    ),
    "an exposed model whose requests are too large": Case(
        "T155",
        model(exposed=True, inputs={"x": "float32[524289]"}),
        "models.m.inputs.x",
        "one item of float32[524289] takes more than 2MiB: the ingress refuses every request that a client sends; "
        "raise service.request_limit, or do not expose the model",
        loads=True,
    ),
    "an exposed model whose inputs together are too large": Case(
        "T155",
        model(exposed=True, inputs={"x": "float32[400000]", "z": "float32[400000]"}),
        "models.m.inputs",
        "one item of x and z takes more than 2MiB",
    ),
    "more candidates than memory": Case(
        "T146",
        oldest({"max_candidates": 2147483647}),
        "models.m.sequence.oldest.max_candidates",
        "2147483647 for each of 1 instances are 2147483647",
    ),
    "more candidates of all instances than memory": Case(
        "T146",
        merged(oldest({"max_candidates": 600000}), model(instances=2)),
        "models.m.sequence.oldest.max_candidates",
        "600000 for each of 2 instances are 1200000",
    ),
    "more slots than memory": Case("T146", merged(direct(), model(max_batch=2147483647)), "models.m.max_batch"),
    "more instances than a server can start": Case(
        "T147", group(count=4096), "models.m.instances", "m has 4096 instances in embedded"
    ),
    "a startup timeout of nearly nothing": Case(
        "T156", triton(startup_timeout="1ms"), f"{TRITON}.startup_timeout", "it is 1ms, and a server cannot be there"
    ),
    "a startup timeout that no machine can keep": Case(
        "T156",
        merged(triton(startup_timeout="1s"), group(count=50)),
        f"{TRITON}.startup_timeout",
        "a model of 50 instances in the python backend cannot be there before 1100ms",
    ),
    "more instances than start within the timeout": Case(
        "T157",
        merged(triton(startup_timeout="3s"), group(count=60)),
        f"{TRITON}.startup_timeout",
        "it is 3s, and 60 instances in the python backend take about 6s, 100ms each and 4 models at a time",
    ),
    "the most instances there may be, at a minute": Case(
        "T157", group(count=1000), f"{TRITON}.startup_timeout", "1000 instances in the python backend take about 100s"
    ),
    "many models' instances": Case(
        "T157",
        {"models": {name: merged(MINIMAL["models"]["m"], {"instances": 900}) for name in "mnopqrst"}},
        f"{TRITON}.startup_timeout",
        "7200 instances in the python backend take about 3min",
    ),
    "a warm-up that never ends": Case(
        "T148",
        warmed({"fill": "zeros"}, count=2147483647),
        f"{WARMUP}.count",
        "it is run 2147483647 times, and embedded has a startup_timeout of 1min",
    ),
    "a cache that is too small": Case(
        "T418", triton(response_cache="1023B"), f"{TRITON}.response_cache", "1023B is no size for a cache"
    ),
    "a cache of all the server's memory": Case(
        "T418", triton(response_cache="1GiB"), f"{TRITON}.response_cache", "the server's memory 1GiB"
    ),
}
