"""Where pictures and samples fall: rules that hold for all inputs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rt.audio import RATE_HZ, AudioChunk
from rt.sinks.timeline import ConstantRate, SoundLine

PERIOD_NS = 33_333_333


@given(st.lists(st.integers(0, 400_000_000), max_size=200), st.integers(0, 10**15))
def test_every_picture_lands_within_reach_of_its_place_or_is_left_out(gaps_ns: list[int], start_ns: int) -> None:
    rate = ConstantRate(start_ns, 30)
    captured_ns = start_ns
    for gap_ns in gaps_ns:
        captured_ns += gap_ns
        missing = rate.missing_before(captured_ns)
        if missing < 0:
            continue
        rate.next += missing
        assert abs(rate.due_ns(rate.next) - captured_ns) <= rate.REACH * PERIOD_NS + 2
        rate.next += 1


@given(st.lists(st.integers(-20_000_000, 20_000_000), min_size=1, max_size=300))
def test_jitter_alone_neither_skips_nor_repeats(jitter_ns: list[int]) -> None:
    rate = ConstantRate(jitter_ns[0], 30)
    for i, jitter in enumerate(jitter_ns):
        assert rate.missing_before(round(i * 1e9 / 30) + jitter) == 0
        rate.next += 1


def test_slow_camera_is_filled_up_to_the_nominal_rate() -> None:
    rate, sent = ConstantRate(0, 30), 0
    for i in range(2990):  # 29.9 pictures a second for 100 s
        missing = rate.missing_before(round(i * 1e9 / 29.9))
        rate.next += missing + 1
        sent += missing
    assert abs(rate.next - 3000) <= 2
    assert 8 <= sent <= 10


def chunk(at_s: float, samples: np.ndarray) -> AudioChunk:
    return AudioChunk(samples.astype(np.float32), round(at_s * 1e9))


@given(st.lists(st.tuples(st.floats(0, 0.3), st.integers(1, 3000)), min_size=1, max_size=30))
def test_sound_lies_within_slack_of_its_stamp(chunks: list[tuple[float, int]]) -> None:
    """Every chunk is a constant of its own, so that what was laid says whose it is."""
    line, at_s = SoundLine(0), 0.0
    starts = {}
    for number, (gap_s, length) in enumerate(chunks, start=1):
        at_s += gap_s
        starts[number] = at_s
        line.lay(chunk(at_s, np.full((length, 2), number)))
    laid = line.take(line.laid)
    assert laid is not None
    assert len(laid) == line.laid
    for number in set(np.unique(laid)) - {0}:
        place = int(np.argmax(laid[:, 0] == number))
        whole = np.sum(laid[:, 0] == number) == chunks[int(number) - 1][1]
        if whole:
            assert abs(place / RATE_HZ - starts[int(number)]) <= SoundLine.SLACK_S + 2 / RATE_HZ


def test_silence_is_laid_at_once_where_nothing_was_heard() -> None:
    line = SoundLine(0)
    line.fill(1_000_000_000, lead=1024)
    assert line.laid == RATE_HZ + 1024


def test_sound_heard_a_moment_ago_is_waited_for_and_no_longer_than_the_grace() -> None:
    line = SoundLine(0)
    line.lay(chunk(0, np.ones((4800, 2))))
    line.fill(300_000_000, lead=0)
    assert line.laid == 4800
    line.fill(700_000_000, lead=0)
    assert line.laid == round(0.7 * RATE_HZ)


def test_sound_before_the_first_picture_is_cut() -> None:
    line = SoundLine(1_000_000_000)
    line.lay(chunk(0.9, np.concatenate([np.ones((4800, 2)), np.full((4800, 2), 2)])))
    laid = line.take(4800)
    assert laid is not None
    assert (laid == 2).all()
    assert line.lost == 4800


def test_chunk_with_an_absurd_stamp_is_left_out() -> None:
    line = SoundLine(0)
    line.lay(chunk(3600, np.ones((480, 2))))
    assert line.laid == 0
    assert line.lost == 480
