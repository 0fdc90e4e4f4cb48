"""The numbers as Prometheus reads them."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator

import psutil
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from app.control.messages import State
from app.studio import StudioState
from rt.metrics import Snapshot
from rt.sinks.runner import SinkState

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def as_text(state: State, snapshot: Snapshot | None) -> bytes:
    """Text format 0.0.4. Counters begin again with every run, which Prometheus allows for."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(state, snapshot))
    return generate_latest(registry)


class _Collector(Collector):
    def __init__(self, state: State, snapshot: Snapshot | None) -> None:
        self._state, self._snapshot = state, snapshot

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("ffrt", "What runs.", {"version": importlib.metadata.version("ffrt")})
        yield _states("ffrt_state", "1 for the state of the line.", (), StudioState, {(): self._state.state})
        is_up = self._state.state is StudioState.LIVE and self._state.input_error is None
        yield GaugeMetricFamily("ffrt_input_up", "1 while the input gives pictures.", float(is_up))
        outputs: dict[tuple[str, ...], str] = {(output.name,): output.state for output in self._state.outputs}
        yield _states("ffrt_output_state", "1 for the state of each output.", ("output",), SinkState, outputs)
        frames = CounterMetricFamily("ffrt_output_frames", "Pictures that each output took.", labels=["output"])
        for output in self._state.outputs:
            frames.add_metric([output.name], output.frames)
        yield frames
        process = psutil.Process()
        times = process.cpu_times()
        yield GaugeMetricFamily("process_resident_memory_bytes", "Resident memory.", process.memory_info().rss)
        yield CounterMetricFamily("process_cpu_seconds", "Processor time.", times.user + times.system)
        if self._snapshot is not None:
            yield from _of_line(self._snapshot)


def _of_line(snapshot: Snapshot) -> Iterator[Metric]:
    yield CounterMetricFamily("ffrt_frames_in", "Pictures the source delivered.", snapshot.frames_in)
    yield CounterMetricFamily("ffrt_frames_out", "Pictures handed to the outputs.", snapshot.frames_out)
    yield CounterMetricFamily("ffrt_face_lost_frames", "Pictures in which a face that had been there was not found.", snapshot.lost_frames)
    dropped = CounterMetricFamily("ffrt_frames_dropped", "Pictures dropped, by place.", labels=["place"])
    for place, count in snapshot.dropped.items():
        dropped.add_metric([place], count)
    yield dropped
    yield _quantiles("ffrt_age_seconds", "Now minus capture when an output had taken the picture.", "output", snapshot.age_ms)
    yield _quantiles("ffrt_stage_seconds", "Time spent in a stage, a picture.", "stage", snapshot.stages_ms)


def _quantiles(name: str, help: str, label: str, values: dict[str, dict[str, float]]) -> Metric:
    """Of the last pictures: quantile 1 is the highest of all time."""
    family = GaugeMetricFamily(name, help, labels=[label, "quantile"])
    for key, summary in values.items():
        for quantile, ms in summary.items():
            family.add_metric([key, "1" if quantile == "max" else f"{int(quantile[1:]) / 100:g}"], ms / 1000)
    return family


def _states(
    name: str, help: str, labels: tuple[str, ...], known: type[StudioState] | type[SinkState], now: dict[tuple[str, ...], str]
) -> Metric:
    family = GaugeMetricFamily(name, help, labels=[*labels, "state"])
    for key, value in now.items():
        for state in known:
            family.add_metric([*key, str(state)], float(value == state))
    return family
