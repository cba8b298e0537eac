"""Tags and histograms of a model's metrics.

Source of what becomes of a histogram: Triton core's `src/metric_model_reporter.cc`.
"""

from __future__ import annotations

import re
from itertools import pairwise

from serve_app.spec.checks.registry import of_each_ensemble, of_each_model
from serve_app.spec.findings import Faults, error, warning
from serve_app.spec.model import Ensemble, Model
from serve_app.spec.schema import Spec

FIRST_RESPONSE = "nv_inference_first_response_histogram_ms"
# Prometheus's rule for a label; Triton puts `_` before the tag, and two are Prometheus's own.
TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*")

NO_HISTOGRAM = warning(
    "T170", "A histogram that Triton does not keep", "the buckets have no effect",
    f"write {FIRST_RESPONSE}, of a decoupled model",
)  # fmt: skip
BUCKETS = error(
    "T171", "Buckets that are none", "Triton refuses them, or ends while it loads the model",
    "write at least one, each larger than the one before",
)  # fmt: skip
TAG_NAME = error(
    "T172", "A metric tag that Prometheus takes for no label", "Triton's process ends while it loads the model, with "
    "every other model in it", "write letters, digits and underscores, no underscore first",
)  # fmt: skip


def histograms(spec: Spec, name: str, served: Model | Ensemble) -> Faults:
    for family, histogram in served.metrics.items():
        place = ("ensembles" if isinstance(served, Ensemble) else "models", name, "metrics", family)
        if family != FIRST_RESPONSE:
            yield NO_HISTOGRAM.at(place, f"there is no histogram {family!r}")
        elif not served.decoupled:
            yield NO_HISTOGRAM.at(place, f"{name} is not decoupled", remedy="remove it")
        buckets = histogram.buckets
        if not buckets:
            yield BUCKETS.at((*place, "buckets"), "there are no buckets")
        elif any(after <= before for before, after in pairwise(buckets)):
            yield BUCKETS.at((*place, "buckets"), "the buckets do not rise")


def tags(spec: Spec, name: str, served: Model | Ensemble) -> Faults:
    for tag in served.metric_tags:
        if TAG.fullmatch(tag) is None:
            place = ("ensembles" if isinstance(served, Ensemble) else "models", name, "metric_tags", tag)
            yield TAG_NAME.at(place, f"{tag!r} is no name of a tag")


for _check in (histograms, tags):
    of_each_model(_check)
    of_each_ensemble(_check)
