"""What a real Triton, or Ray's own schema, can find wrong."""

from __future__ import annotations

from serve_app.spec.findings import error, warning

NOT_PREPARED = error(
    "L001", "Weights that could not be prepared", "the deployment does not start", "do what the message says"
)
NO_SERVER = error(
    "L002", "A Triton that does not start", "no model can be served on this machine", "do what the message says"
)
NOT_LOADED = error(
    "L003", "A model that Triton cannot load", "the deployment does not start", "correct what Triton complains about"
)
LOAD_HANGS = error(
    "L004", "A model that never finishes loading", "the deployment waits until its startup_timeout, and fails",
    "see what the model does when it is initialized, or lengthen startup_timeout",
)  # fmt: skip
OTHER_CONFIG = error(
    "L005", "A configuration that Triton changed", "the model runs otherwise than the spec says",
    "write what Triton reports, or report it as a fault of Tandem's",
)  # fmt: skip
NOT_RUN = error(
    "L006", "A model that fails when it is tried", "it cannot be served",
    "correct the model, or give it a warmup with what it can run on",
)  # fmt: skip
REFUSES = warning(
    "L007", "A model that refuses what it is tried with", "its answers were not checked",
    "where it is right to refuse that, give it a warmup with what it takes",
)  # fmt: skip
RUN_HANGS = error(
    "L008", "An inference that never ends", "its requests run out of time, and its instance is lost",
    "see what the model does with such a request",
)  # fmt: skip
OTHER_ANSWER = error(
    "L009", "An answer with other tensors than the spec's", "stages and clients fail when they read it",
    "correct the spec, or the model",
)  # fmt: skip
SERVER_DIED = error(
    "L010", "A model that takes Triton down", "every model is down with it", "see what the model does there"
)
UNCHECKED = warning(
    "L011", "A model that could not be checked", "nothing is known of it", "correct the other one first"
)
NOT_UNLOADED = warning(
    "L012", "A model that does not unload", "Triton is killed at each redeploy, with the requests in work",
    "see what the model does when it is finalized, or lengthen exit_timeout",
)  # fmt: skip
OTHER_RAY = error(
    "L013", "Another Ray than the profile's is installed", "what is checked here is not what is deployed",
    "install that Ray, or write this one",
)  # fmt: skip
RAY_REFUSES = error("L014", "A configuration that Ray Serve refuses", "`serve deploy` fails", "write what Ray takes")
RAY_IGNORES = error(
    "L015", "A field that the installed Ray does not know", "Ray passes over it in silence",
    "remove it, or use a Ray that knows it",
)  # fmt: skip
OTHER_SIZE = error(
    "L016", "An answer whose tensors have other bytes than their shape", "stages and clients cannot read it",
    "correct the model",
)  # fmt: skip
WARMUP_FAILS = error(
    "L017", "A warm-up that fails", "Triton refuses to load the model, or its process ends over it, with every other "
    "model in it", "correct the warm-up, or the model",
)  # fmt: skip
FAILS_WITHOUT = error(
    "L018", "A model that fails without its optional inputs", "requests without them are let through, and fail",
    "let the model do without them, or take `optional` from what it needs",
)  # fmt: skip
REFUSES_WITHOUT = warning(
    "L019", "A model that refuses requests without its optional inputs", "the spec says that they may be left out",
    "take `optional` from what it needs; where it needs one or the other, accept this",
)  # fmt: skip
