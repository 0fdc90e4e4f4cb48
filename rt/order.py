"""Frames that were dealt to several lanes come out in the order in which they were dealt; one that is late keeps the others for so long."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from rt.frame import Frame


@dataclass(slots=True)
class _Place:
    """One frame's place in the order."""

    deadline_ns: int | None
    """From when on those behind it wait no more; None waits for ever."""
    frame: Frame | None = None
    """What came back from the lane."""


class Sequence:
    """Who is next. Numbers only rise. One thread at a time."""

    def __init__(self) -> None:
        self._places: OrderedDict[int, _Place] = OrderedDict()

    def __len__(self) -> int:
        """Places that were neither given up nor taken."""
        return len(self._places)

    def expect(self, seq: int, deadline_ns: int | None) -> None:
        """Keeps a place behind those before."""
        self._places[seq] = _Place(deadline_ns)

    def arrive(self, frame: Frame) -> bool:
        """False where its place was given up: it came too late."""
        place = self._places.get(frame.seq)
        if place is None:
            return False
        place.frame = frame
        return True

    def give_up(self, seq: int) -> None:
        """It will not come."""
        self._places.pop(seq, None)

    def clear(self) -> list[Frame]:
        """Gives up every place; returns what had come."""
        came = [place.frame for place in self._places.values() if place.frame is not None]
        self._places.clear()
        return came

    def next(self, now_ns: int) -> Frame | None:
        """The frame whose turn it is; None where that did not come yet, or there is none. Gives up the places of those that are late."""
        while (first := self._first()) is not None:
            seq, place = first
            if place.frame is not None or self._waits(place, now_ns):
                if place.frame is not None:
                    del self._places[seq]
                return place.frame
            del self._places[seq]
        return None

    def wait_ns(self, now_ns: int) -> int | None:
        """How long until ``next`` may have another answer though nothing arrives; None where it never will."""
        first = self._first()
        if first is None or first[1].deadline_ns is None or not self._has_arrivals:
            return None
        return max(0, first[1].deadline_ns - now_ns)

    def _first(self) -> tuple[int, _Place] | None:
        return next(iter(self._places.items()), None)

    def _waits(self, place: _Place, now_ns: int) -> bool:
        return place.deadline_ns is None or now_ns < place.deadline_ns or not self._has_arrivals

    @property
    def _has_arrivals(self) -> bool:
        """Whether anybody waits: where nobody does, the one that is late holds up no one."""
        return any(place.frame is not None for place in self._places.values())
