"""What a client did wrong, or what the service could not do, as RFC 9457 problem details."""

from __future__ import annotations


class Problem(Exception):
    """An outcome that the client is told about.

    `status` is the HTTP status, `code` a stable snake_case name that clients may branch on, `detail` one sentence that
    says what is wrong and what to do. `field` names the part of the request at fault, where one is.
    Never put personal data (pixels, names, document text) into it: problems are logged.
    """

    def __init__(
        self, status: int, code: str, detail: str, *, field: str | None = None, retry_after: float | None = None
    ):
        super().__init__(status, code, detail, field, retry_after)
        self.status = status
        self.code = code
        self.detail = detail
        self.field = field
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.status, self.code, self.detail, self.field, self.retry_after)

    @property
    def is_of_the_input(self) -> bool:
        """Whether what the client sent is at fault, as opposed to the service, the load or the time."""
        return self.status in (413, 415, 422)

    @property
    def is_of_the_service(self) -> bool:
        """Whether the load, the time, or what runs here is at fault: asked later, the same may go well."""
        return self.status in (429, 503, 504)

    def in_field(self, field: str) -> Problem:
        """The same problem, said of `field`."""
        return Problem(self.status, self.code, self.detail, field=field, retry_after=self.retry_after)


def _rebuild(status: int, code: str, detail: str, field: str | None, retry_after: float | None) -> Problem:
    return Problem(status, code, detail, field=field, retry_after=retry_after)
