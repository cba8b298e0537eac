"""Which requests an ingress takes, how many it works on at a time, and in which order; the others it refuses at once.

`gate.py` is all of it without a clock or an event loop, of three parts: `queue.py`, `service_times.py`,
`concurrency.py`. `admission.py` is what the doors use.
"""

from serve_app.admission.admission import Admission
from serve_app.admission.limits import AdmissionLimits, TierLimits

__all__ = ["Admission", "AdmissionLimits", "TierLimits"]
