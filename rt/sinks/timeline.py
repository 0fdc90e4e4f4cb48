"""Where pictures and samples fall on a sink's own time line, which begins with its first picture."""

from __future__ import annotations

import numpy as np

from rt.audio import RATE_HZ, AudioChunk


class ConstantRate:
    """Numbers pictures at a constant rate.

    A camera's stamps jitter and its clock drifts from the nominal rate. The next number is given to any picture that lies within
    ``REACH`` of its place, so jitter alone neither skips nor repeats a picture, and drift is mended by one picture when it adds up.
    """

    REACH = 1.25
    """Periods. Above a half, so that a picture on the border between two places does not flip; 42 ms at 30 fps, so lips stay in step."""

    def __init__(self, start_ns: int, fps: float) -> None:
        self.next = 0
        """The number of the next picture to be sent; the caller raises it for every picture sent."""
        self._start_ns = start_ns
        self._fps = fps

    def missing_before(self, captured_ns: int) -> int:
        """Pictures to be filled in before this one; -1 when its place is taken already and it is to be left out."""
        early = (captured_ns - self._start_ns) * self._fps / 1e9 - self.next
        if early < -self.REACH:
            return -1
        return round(early) if early > self.REACH else 0

    def due_ns(self, number: int) -> int:
        """When picture ``number`` ought to be captured."""
        return self._start_ns + round(number * 1e9 / self._fps)


class SoundLine:
    """Lays chunks of sound without gaps: silence where nothing was heard, and what overlaps is cut. Free of drift.

    Chunks are joined as they come while their stamps agree with the samples laid so far within ``SLACK_S``; beyond it the difference
    is made good in one step. ``fill`` adds silence where none came.
    """

    SLACK_S = 0.02
    """Jitter of stamps that is not worth a click; lips and sound 20 ms apart go unnoticed (ITU-R BT.1359: 45 ms early, 125 ms late)."""
    GRACE_S = 0.5
    """How long sound that was heard a moment ago is waited for before silence takes its place."""
    FARTHEST_S = 10.0
    """A chunk stamped this far ahead of what is laid is no part of this time line."""

    def __init__(self, start_ns: int) -> None:
        self.laid = 0
        """Samples laid since the start, taken or not."""
        self.lost = 0
        """Samples that were cut because they came too late."""
        self._start_ns = start_ns
        self._waiting: list[np.ndarray] = []
        self._heard = False

    def lay(self, chunk: AudioChunk) -> None:
        samples = chunk.samples
        ahead = self._place(chunk.captured_ns) - self.laid
        if ahead > self.FARTHEST_S * RATE_HZ:
            self.lost += len(samples)
            return
        if ahead > self.SLACK_S * RATE_HZ:
            self._append(_silence(ahead))
        elif ahead < -self.SLACK_S * RATE_HZ:
            self.lost += min(-ahead, len(samples))
            samples = samples[-ahead:]
        if len(samples):
            self._append(samples)
            self._heard = True

    def fill(self, until_ns: int, lead: int) -> None:
        """Lays silence until ``lead`` samples after ``until_ns``, unless sound may still come."""
        behind = self._place(until_ns) + lead - self.laid
        if behind > (self.GRACE_S * RATE_HZ if self._heard else 0):
            self._append(_silence(behind))
            self._heard = False

    def take(self, count: int) -> np.ndarray | None:
        """The next ``count`` samples as float32 [count, 2], or None while fewer wait."""
        if not self._waiting or sum(map(len, self._waiting)) < count:
            return None
        samples = np.concatenate(self._waiting)
        self._waiting = [samples[count:]]
        return samples[:count]

    def _place(self, time_ns: int) -> int:
        return round((time_ns - self._start_ns) * RATE_HZ / 1e9)

    def _append(self, samples: np.ndarray) -> None:
        self._waiting.append(samples)
        self.laid += len(samples)


def _silence(count: int) -> np.ndarray:
    return np.zeros((count, 2), np.float32)
