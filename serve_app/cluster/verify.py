"""A verification asked of the running service over HTTP, and the lines that tell a person how it went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from serve_app.cluster.error import ClusterError

ROUTE = "/v1/verify"
# Longer than any SLA: the service answers 504 by itself.
_TIMEOUT_S = 60


def request_verification(url: str, selfie: bytes, document: bytes, frames: Sequence[bytes]) -> dict[str, Any]:
    """The service's answer to POST /v1/verify. ClusterError where it has none."""
    files = [("selfie", ("selfie", selfie)), ("document", ("document", document))]
    files += [("frames", (f"frame{index}", frame)) for index, frame in enumerate(frames)]
    try:
        response = httpx.post(f"{url}{ROUTE}", files=files, timeout=_TIMEOUT_S, verify=not is_this_machine(url))
    except httpx.TransportError as error:
        raise ClusterError(f"no service at {url} ({error}); start it with `tandem up`") from None
    try:
        answer: dict[str, Any] = response.json()
    except ValueError:
        raise ClusterError(f"{url} answered {response.status_code} and no JSON; is this a Tandem service?") from None
    if response.status_code != 200:
        where = f" ({answer['field']})" if "field" in answer else ""
        raise ClusterError(f"{answer.get('code')}{where}: {answer.get('detail')}")
    return answer


def is_this_machine(url: str) -> bool:
    """Whether what is sent stays here, so that it does not matter that the certificate names another host."""
    return httpx.URL(url).host in ("127.0.0.1", "::1", "localhost")


def show_verification(answer: Mapping[str, Any]) -> str:
    """A few lines for a person."""
    face, liveness, document, antifraud = (answer[part] for part in ("face", "liveness", "document", "antifraud"))
    verdict = "match" if face["match"] else "no match"
    lines = [
        f"decision   {answer['decision']}" + (f"  ({', '.join(answer['reasons'])})" if answer["reasons"] else ""),
        f"face       {verdict}: similarity {face['similarity']:.3f}, threshold {face['threshold']:.3f}",
        "liveness   "
        + (f"score {liveness['score']:.2f}" if liveness["assessed"] else "not assessed: send two or more frames"),
    ]
    if document["mrz"]:
        state = "every check digit right" if document["mrz"]["valid"] else "check digits wrong"
        lines.append(f"MRZ        {document['mrz']['format']}, {state}")
    else:
        lines.append("MRZ        none found")
    lines += [f"  {key:17} {value}" for key, value in document["fields"].items() if value is not None]
    lines.append("antifraud  " + (f"risk {antifraud['risk']:.3f}" if antifraud else "could not be had"))
    lines.append(f"took       {answer['timings_ms']['total']:.0f} ms")
    return "\n".join(lines)
