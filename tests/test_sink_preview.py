"""What a window gets of the line: the newest picture, as large as it is shown, in memory that is used again."""

from __future__ import annotations

import threading

import cv2
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rt.frame import Frame
from rt.ring import SlotRing
from rt.sinks.preview import BEFORES_MAX, PreviewSink, Wanted, fitted_size


def frame(seq: int, width: int = 64, height: int = 36) -> Frame:
    """Every pixel says its place and the frame: no two are alike."""
    rows, columns = np.mgrid[0:height, 0:width]
    return Frame(np.stack([columns, rows, np.full_like(rows, seq)], -1).astype(np.uint8), seq, seq * 10)


def test_the_newest_is_taken_once_with_its_own_pixels() -> None:
    sink = PreviewSink()
    assert sink.take() is None
    for seq in range(3):
        sink.write(frame(seq))
    picture = sink.take()
    assert picture is not None
    assert (picture.seq, picture.size, picture.before) == (2, (64, 36), None)
    assert np.array_equal(picture.pixels[..., :3], frame(2).pixels)
    assert sink.take() is None


def test_a_picture_that_was_taken_stays_whole_while_others_come() -> None:
    sink = PreviewSink()
    sink.write(frame(1))
    picture = sink.take()
    assert picture is not None
    for seq in range(2, 9):
        sink.write(frame(seq))
        assert np.array_equal(picture.pixels[..., :3], frame(1).pixels)
    later = sink.take()
    assert later is not None
    assert later.seq == 8


def test_the_steady_state_allocates_no_pixels() -> None:
    sink = PreviewSink()
    sink.wanted = Wanted(before=True, fit=(40, 40), mirrored=True)
    places = set()
    for seq in range(30):
        sink.before(frame(seq))
        sink.write(frame(seq))
        picture = sink.take()
        assert picture is not None
        assert picture.before is not None
        if seq >= 3:  # the three pages have been used once
            places |= {picture.pixels.ctypes.data, picture.before.ctypes.data}
    assert len(places) <= 6


def test_it_wakes_the_window_once_for_what_was_not_taken() -> None:
    sink, woken = PreviewSink(), []
    sink.on_picture = lambda: woken.append(threading.current_thread())
    sink.write(frame(0))
    sink.write(frame(1))
    assert len(woken) == 1
    sink.take()
    sink.write(frame(2))
    assert len(woken) == 2


def test_a_hidden_window_costs_nothing() -> None:
    sink = PreviewSink()
    sink.on_picture = lambda: (_ for _ in ()).throw(AssertionError("nobody looks"))
    sink.wanted = Wanted(visible=False, before=True)
    sink.before(frame(0))
    sink.write(frame(0))
    assert sink.take() is None
    assert sink.statistics() == {"pictures": 0}


def test_the_slot_goes_back_before_the_window_has_looked() -> None:
    ring, sink = SlotRing(1, 36, 64), PreviewSink()
    for seq in range(4):
        slot = ring.acquire()
        assert slot is not None, "the sink has kept the only slot"
        slot.pixels[:] = frame(seq).pixels
        sink.write(Frame(slot.pixels, seq, 0, slot=slot))
        slot.release()
    picture = sink.take()
    assert picture is not None
    assert np.array_equal(picture.pixels[..., :3], frame(3).pixels)


def test_before_is_of_the_same_frame_also_when_others_were_dropped() -> None:
    sink = PreviewSink()
    sink.wanted = Wanted(before=True)
    for seq in range(10):
        sink.before(frame(seq))
    sink.write(frame(9, 64, 36))
    picture = sink.take()
    assert picture is not None
    assert picture.before is not None
    assert np.array_equal(picture.before[..., :3], frame(9).pixels)
    assert len(sink._befores) + len(sink._spare) <= BEFORES_MAX + 1


def test_mirrored_and_scaled_as_opencv_does_it() -> None:
    sink = PreviewSink()
    sink.wanted = Wanted(fit=(48, 1000), mirrored=True)
    sink.write(frame(5))
    picture = sink.take()
    assert picture is not None
    assert picture.mirrored
    expected = cv2.flip(cv2.resize(frame(5).pixels, (48, 27), interpolation=cv2.INTER_LINEAR), 1)
    assert np.abs(picture.pixels[..., :3].astype(int) - expected).max() <= 1


def test_a_fine_pattern_does_not_shimmer_when_it_is_made_small() -> None:
    """A chessboard of single pixels is grey from afar; taking every fourth pixel would show black or white."""
    board = (np.indices((240, 320)).sum(0) % 2 * 255).astype(np.uint8)
    sink = PreviewSink()
    sink.wanted = Wanted(fit=(78, 1000))
    sink.write(Frame(np.repeat(board[..., None], 3, -1), 0, 0))
    picture = sink.take()
    assert picture is not None
    assert np.abs(picture.pixels[..., :3].astype(int) - 127).max() <= 2


@given(*[st.integers(1, 5000)] * 4)
def test_what_is_fitted_touches_the_frame_it_lies_in(width: int, height: int, wide: int, high: int) -> None:
    made = fitted_size((width, height), (wide, high))
    assert 1 <= made[0] <= wide
    assert 1 <= made[1] <= high
    assert made[0] == wide or made[1] == high


@given(st.lists(st.sampled_from(["write", "take", "clear"]), max_size=40))
def test_no_page_is_lost_or_given_twice(steps: list[str]) -> None:
    sink = PreviewSink()
    for seq, step in enumerate(steps):
        if step == "write":
            sink.write(frame(seq, 8, 6))
        elif step == "take":
            picture = sink.take()
            assert picture is None or (picture.pixels[..., 2] == picture.seq).all()
        else:
            sink.clear()
        used = [page for page in (sink._newest, sink._taken) if page is not None]
        assert len({id(page) for page in [*sink._free, *used]}) == 3
