"""Work that comes again in every frame is recorded once and replayed: one launch instead of many. Behind it the plain way, always."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from contextlib import ExitStack

from engines.device.contract import Graph, Step, Stream
from engines.errors import DeviceError

log = logging.getLogger(__name__)

KEPT = 32
"""Graphs of one stream: a few numbers of faces for each slot of the ring."""

WARM_AFTER = 2
"""A graph is recorded when its work comes for the third time: kernels are loaded and memory is there by then."""


class Graphs:
    """The graphs of one stream. One thread."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._graphs: OrderedDict[Hashable, Graph] = OrderedDict()
        self._seen: OrderedDict[Hashable, int] = OrderedDict()
        self.problem = ""
        """Why work is given step by step though it could be recorded; empty where all is well."""
        self.replayed = 0
        """Launches that took the place of many."""

    def run(self, key: Hashable, steps: Sequence[Step]) -> None:
        """Asynchronous, as ``Stream.enqueue`` for each of ``steps``, which are as ``Stream.capture`` wants them.

        ``key``: all that the steps depend on beside the contents of arrays: models, shapes, number of faces, and the arrays themselves.
        """
        graph = self._graph(key, steps)
        if graph is None:
            for step in steps:
                self._stream.enqueue(step.work, *step.args, reads=step.reads, writes=step.writes)
            return
        self.replayed += 1
        reads = [array for step in steps for array in step.reads]
        writes = [array for step in steps for array in step.writes]
        self._stream.replay(graph, reads=reads, writes=writes)

    def clear(self) -> None:
        """Forgets all: what was recorded works on memory or models that are no more. Nothing of it may be under way.

        Raises what a graph fails with at its end, once: all are forgotten by then.
        """
        graphs, self._graphs = self._graphs, OrderedDict()
        self._seen.clear()
        self.problem = ""
        with ExitStack() as stack:
            for graph in graphs.values():
                stack.callback(graph.close)

    def _graph(self, key: Hashable, steps: Sequence[Step]) -> Graph | None:
        if key in self._graphs:
            self._graphs.move_to_end(key)
            return self._graphs[key]
        if self.problem or self._times_seen(key) <= WARM_AFTER:
            return None
        try:
            self._graphs[key] = self._stream.capture(steps)
        except DeviceError as error:
            self.problem = str(error)
            log.info("%s", error)
            return None
        while len(self._graphs) > KEPT:
            self._graphs.popitem(last=False)[1].close()
        return self._graphs[key]

    def _times_seen(self, key: Hashable) -> int:
        self._seen[key] = self._seen.pop(key, 0) + 1
        while len(self._seen) > 2 * KEPT:
            self._seen.popitem(last=False)
        return self._seen[key]
