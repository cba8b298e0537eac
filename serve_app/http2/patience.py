"""How much a connection may ask for that is of no use to anybody: pings, settings, empty frames, requests that are
given up as soon as they are made. Each is legal; a flood of them only keeps the server busy (CVE-2019-9512 and its
kin, CVE-2023-44487)."""

from __future__ import annotations

from collections.abc import Callable

from serve_app.http2.frames import ConnectionFault, ErrorCode

# In frames: a thousand given-up requests at once, or ten thousand pings.
MOST = 10_000
PER_SECOND = 300
# What a request costs that is refused, broken, or given up before this many seconds have passed.
REQUEST = 10
SOON_S = 0.5
# A client that works has something to say about it: windows grow, pings measure.
FOR_WORK = 4


class Patience:
    """Spent by such frames, and regained by useful ones and with time. `clock` is in seconds."""

    def __init__(self, clock: Callable[[], float]):
        self._clock = clock
        self._left = float(MOST)
        self._since = clock()

    def spend(self, cost: int = 1) -> None:
        """ConnectionFault where there is none left."""
        self._left -= cost
        if self._left < 0:
            now = self._clock()
            self._left = min(MOST, self._left + (now - self._since) * PER_SECOND)
            self._since = now
            if self._left < 0:
                raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "too many frames that ask for nothing; send fewer")

    def regain(self) -> None:
        """After a useful exchange."""
        if self._left < MOST:
            self._left += FOR_WORK
