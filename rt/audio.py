"""Sound beside the pictures: chunks stamped on the same clock, so that a sink can lay both on one time line."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

import numpy as np

RATE_HZ = 48_000
"""Every chunk on the bus has this rate, two channels."""

CAPACITY = 256
"""Chunks that may wait for a listener: about 21 ms each at 1024 samples, so five seconds."""


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """A short run of samples."""

    samples: np.ndarray
    """float32 [N, 2] in [-1, 1], 48 kHz."""
    captured_ns: int
    """When the first sample was heard, on the line's clock."""


class AudioQueue:
    """One listener's bounded queue; the oldest chunk goes when it is full. Any thread."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._lock = threading.Lock()
        self._chunks: deque[AudioChunk] = deque(maxlen=capacity)  # guarded by _lock
        self.dropped = 0
        """Chunks that went because the listener did not fetch them; guarded by _lock."""

    def put(self, chunk: AudioChunk) -> None:
        with self._lock:
            self.dropped += len(self._chunks) == self._chunks.maxlen
            self._chunks.append(chunk)

    def take_all(self) -> list[AudioChunk]:
        """All chunks waiting, oldest first."""
        with self._lock:
            chunks = list(self._chunks)
            self._chunks.clear()
            return chunks


class AudioBus:
    """Hands every chunk to every listener. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: tuple[AudioQueue, ...] = ()  # replaced, never changed, under _lock

    def subscribe(self, capacity: int = CAPACITY) -> AudioQueue:
        """A new listener."""
        queue = AudioQueue(capacity)
        self.attach(queue)
        return queue

    def attach(self, queue: AudioQueue) -> None:
        """``queue`` gets every chunk from now on."""
        with self._lock:
            self._queues = (*self._queues, queue)

    def detach(self, queue: AudioQueue) -> None:
        """``queue`` gets no more."""
        with self._lock:
            self._queues = tuple(other for other in self._queues if other is not queue)

    def publish(self, chunk: AudioChunk) -> None:
        for queue in self._queues:
            queue.put(chunk)
