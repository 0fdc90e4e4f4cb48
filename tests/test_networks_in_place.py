"""Real networks of every kind on a device: their crops and pictures stay there, and what is shown is what the processor shows."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faces import face_at
from kit import FolderKit, model_file
from standins import identity
from standins.bisenet import bisenet
from standins.codeformer import codeformer
from standins.gfpgan import gfpgan
from standins.shelf import HALF
from standins.swappers import Contract, swapper
from standins.xseg import xseg
from test_compose_device import Counted, by_the_kernels, by_the_processor, differences, enhancer, photo_of, scene

from engines.errors import ModelError
from engines.face import SourceFace
from engines.family import families
from engines.mask.contract import NetworkMask
from engines.session import RunsInPlace
from engines.swap.echo import EchoSession, echo
from engines.swap.mesh.swapper import MeshSwapper
from rt.compose.badge import Badge
from rt.compose.kernels.host import HostKernels
from rt.compose.kernels.idle import IdleKernels
from rt.compose.launches import LAUNCHES_MAX, launches
from rt.compose.layers import Layers
from rt.compose.memory import PIECE_BYTES
from rt.frame import FaceState, Frame, TrackedFace
from rt.options import Blending, Corner, Look, OnLost
from tests.conftest import ASTRONAUT, HOPPER

SWEEP = os.environ.get("FFRT_SWEEP") == "1"

Write = Callable[[Path], Path]

SWAPPERS: dict[str, tuple[str, Write]] = {
    "one at a time": ("inswapper", lambda path: swapper(path, Contract(128, emap=True))),
    "any number": ("inswapper", lambda path: swapper(path, Contract(128, emap=True, batch="n"))),
    "with a mask": ("hyperswap", lambda path: swapper(path, Contract(256, given=HALF, made=HALF, mask=True, outputs=("output", "mask")))),
    "half precision": ("hififace", lambda path: swapper(path, Contract(256, given=HALF, made=HALF, dtype=np.float16))),
    "fed a picture": ("blendswap", lambda path: swapper(path, Contract(256, source_side=112))),
}

MASKS: dict[str, tuple[str, Write]] = {
    "pixels": ("xseg", xseg),
    "planes": ("xseg", lambda path: xseg(path, planar=True)),
    "one at a time": ("xseg", lambda path: xseg(path, batch=1)),
    "classes": ("bisenet", bisenet),
}

ENHANCERS: dict[str, tuple[str, Write]] = {"gfpgan": ("gfpgan", gfpgan), "codeformer": ("codeformer", codeformer)}


@pytest.fixture(scope="module")
def woman() -> SourceFace:
    return photo_of(ASTRONAUT)


@pytest.fixture(scope="module")
def man() -> SourceFace:
    return photo_of(HOPPER)


class Room:
    """Opens stand-ins, each written once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kit = FolderKit(arcface_w600k_r50=model_file(identity.arcface(folder / "arcface_w600k_r50.onnx"), "arcface"),
                              crossface_hififace=model_file(identity.crossface(folder / "crossface.onnx", 2), "crossface"))  # fmt: skip

    def open(self, family: str, write: Write, name: str) -> Any:
        path = self._folder / f"{family}-{name.replace(' ', '_')}.onnx"
        return families[family].open(model_file(path if path.exists() else write(path), family), self._kit)

    def look(self, photo: SourceFace, swaps: str, masks: tuple[str, ...] = (), enhancer: str | None = None, **more: Any) -> Look:
        model = self.open(*SWAPPERS[swaps], swaps)
        return Look(
            swapper=model,
            identity=model.prepare([photo]),
            on_lost=OnLost.BLUR,
            masks=tuple(self.open(*MASKS[name], name) for name in masks),
            enhancer=None if enhancer is None else self.open(*ENHANCERS[enhancer], enhancer),
            **more,
        )


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Room:
    return Room(tmp_path_factory.mktemp("models"))


def two_faces(woman: SourceFace) -> Frame:
    frame = scene(woman, (425, 70, 22, 20))
    assert len(Layers().of(frame.faces)) == 1, "they lie apart"
    return frame


# --- what is shown ---


@pytest.mark.parametrize("blending", list(Blending))
@pytest.mark.parametrize("swaps", SWAPPERS)
def test_every_kind_of_network_shows_what_it_does_on_the_processor(
    kernels: HostKernels, room: Room, woman: SourceFace, man: SourceFace, swaps: str, blending: Blending
) -> None:
    """OpenCV's warp rounds a half the other way here and there, as the processor it runs on has it; the network hands that on, and where
    colours are matched a cell takes it over."""
    frame = two_faces(woman)
    made = by_the_kernels(kernels, frame, room.look(man, swaps, blending=blending))
    off = differences(made, by_the_processor(frame, room.look(man, swaps, blending=blending), []))
    assert off.max() <= (1 if blending is Blending.SOFT else 3)
    assert (off > 1).mean() < 1e-4
    assert differences(made, frame.pixels).max() > 20


@pytest.mark.parametrize("masks", [("pixels",), ("planes",), ("one at a time",), ("classes",), ("pixels", "classes")], ids="+".join)
@pytest.mark.parametrize("blending", [Blending.SOFT, Blending.SEAMLESS])
def test_masks_of_networks_leave_what_they_do_on_the_processor(
    kernels: HostKernels, room: Room, woman: SourceFace, man: SourceFace, masks: tuple[str, ...], blending: Blending
) -> None:
    """Classes are decided pixel by pixel: where a crop is rounded the other way a pixel may be of another class, and the blur, whose range
    is drawn out, makes three levels of each such pixel. The crops are the only reason: the rest is the same to the bit."""
    frame, look = two_faces(woman), room.look(man, "any number", masks, blending=blending)
    made = by_the_kernels(kernels, frame, look)
    off = differences(made, by_the_processor(frame, room.look(man, "any number", blending=blending), look.masks))
    assert off.max() <= (6 if "classes" in masks else 1 if blending is Blending.SOFT else 3)
    assert (off > 1).mean() < 1e-3
    unmasked = by_the_kernels(kernels, frame, room.look(man, "any number", blending=blending))
    assert differences(made, unmasked).max() > 20


def test_everything_at_once_shows_what_it_does_on_the_processor(
    kernels: HostKernels, room: Room, woman: SourceFace, man: SourceFace
) -> None:
    frame, look = two_faces(woman), room.look(man, "with a mask", ("pixels",), "codeformer")
    off = differences(
        by_the_kernels(kernels, frame, look, 4), by_the_processor(frame, room.look(man, "with a mask", (), "codeformer"), look.masks)
    )
    assert off.max() <= 1


# --- what is moved ---


MOVED_MASKS = ("pixels", "planes", "classes")
MOVES = [(swaps, mask) for swaps in SWAPPERS for mask in MOVED_MASKS if SWEEP or swaps == "any number" or mask == "pixels"]
"""Swapper and mask move what they move each by itself; `make test-kernels` takes all of them together."""


@pytest.mark.parametrize("blending", [Blending.SOFT, Blending.SEAMLESS])
@pytest.mark.parametrize(("swaps", "mask"), MOVES)
def test_in_the_steady_state_nothing_but_small_pieces_go_up_and_nothing_comes_down(
    kernels: HostKernels, room: Room, woman: SourceFace, man: SourceFace, swaps: str, mask: str, blending: Blending
) -> None:
    """Swapper, mask and enhancer are networks; memory is apart, so what Python would touch of it is an error."""
    frame = two_faces(woman)
    lane = Counted(kernels, room.look(man, swaps, (mask,), "gfpgan", blending=blending))
    try:
        for number in range(4):
            lane.device.steady = number >= 2
            lane.process(frame)
            if not number:
                assert any(nbytes >= PIECE_BYTES for nbytes in lane.kernels.moved.up), "what is kept goes up once"
                assert lane.kernels.moved.down, "and what networks gave is looked at once"
    finally:
        lane.close()
    count = lane.device.frames[-1]
    assert (count.bytes_up, count.bytes_down) == (frame.pixels.nbytes,) * 2
    assert 0 < max(lane.kernels.moved.up) < PIECE_BYTES
    assert not lane.kernels.moved.down
    assert count.bytes_other == sum(lane.kernels.moved.up) < len(frame.faces) * PIECE_BYTES
    assert count.synchronisations == 1


def test_a_network_that_cannot_reach_the_device_is_served_and_counted(
    kernels: HostKernels, room: Room, woman: SourceFace, man: SourceFace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the test before would see if a session took its crops through the host."""
    look = room.look(man, "any number")
    session = look.swapper.network.session  # type: ignore[union-attr]
    assert isinstance(session, RunsInPlace)
    monkeypatch.setattr(type(session), "works_in", lambda self, memory: False)
    lane = Counted(kernels, look)
    try:
        for _ in range(2):
            lane.process(scene(woman))
    finally:
        lane.close()
    crop = 3 * 128 * 128 * 4
    assert lane.kernels.moved.down.count(crop) == 1
    assert lane.kernels.moved.up.count(crop) == 1


def test_faces_that_wear_the_same_are_one_run(
    kernels: HostKernels, room: Room, woman: SourceFace, man: SourceFace, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, runs = room.look(man, "any number"), []
    session = type(look.swapper.network.session)  # type: ignore[union-attr]
    plain = session.run_into
    monkeypatch.setattr(session, "run_into", lambda self, feeds, results: (runs.append(len(feeds["target"])), plain(self, feeds, results)))
    by_the_kernels(kernels, two_faces(woman), look)
    assert runs == [2]
    runs.clear()
    by_the_kernels(kernels, two_faces(woman), room.look(man, "one at a time"))
    assert runs == [1, 1]


def test_a_restorer_that_gives_no_numbers_is_told_though_its_picture_stays_on_the_device(
    kernels: HostKernels, room: Room, woman: SourceFace, man: SourceFace, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = room.look(man, "any number", (), "gfpgan")
    session = look.enhancer.network.session  # type: ignore[union-attr]

    def broken(feeds: Any, results: Any) -> None:
        for array in results.values():
            array[...] = np.nan

    monkeypatch.setattr(session, "run_into", broken)
    with pytest.raises(ModelError, match="gave values that are no numbers"):
        by_the_kernels(kernels, scene(woman), look)


@pytest.mark.parametrize("masks", [(), ("pixels", "one at a time")], ids=["unmasked", "masked"])
@pytest.mark.parametrize("kind", ["mesh", "network"])
def test_a_frame_launches_what_is_written_whatever_is_chosen(
    kernels: HostKernels, room: Room, woman: SourceFace, man: SourceFace, kind: str, masks: tuple[str, ...]
) -> None:
    """Every combination of options. Kernels are counted one by one, also those that a graph launches as one."""
    look, mesh, badge = room.look(man, "any number", masks), MeshSwapper(), Badge("AI face", Corner.TOP_LEFT)
    if kind == "mesh":
        look = replace(look, swapper=mesh, identity=mesh.prepare([man]))
    lane, restorer = Counted(kernels, look), enhancer()
    frame = replace(scene(woman), faces=(TrackedFace(1, face_at(200, 150, 40), FaceState.SEEN, 1.0),))
    try:
        for blending, *chosen in product(Blending, *4 * [(False, True)]):
            transferred, enhanced, sharpened, stamped = chosen
            lane.look = replace(
                look,
                blending=blending,
                colour_transfer=0.5 if transferred else 0.0,
                enhancer=restorer if enhanced else None,
                sharpness=0.5 if sharpened else 0.0,
                badge=badge if stamped else None,
            )
            lane.process(frame)
            names = ("transferred", "enhanced", "sharpened", "badge")
            planned = launches(kind, blending=blending, masked=bool(masks), **dict(zip(names, chosen, strict=True)))
            assert lane.kernels.launched == Counter(planned)
            assert len(planned) <= LAUNCHES_MAX
    finally:
        lane.close()


def test_masks_of_networks_say_so(room: Room) -> None:
    assert all(isinstance(room.open(*what, name), NetworkMask) for name, what in MASKS.items())


def test_four_faces_at_once_take_a_device_less_than_60_percent_of_four_alone(
    woman: SourceFace, man: SourceFace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what a device is given, a launch or a run of the network being a unit each; a card has its own times (``make test-gpu``)."""
    runs: list[int] = []
    plain = EchoSession.run_into

    def counted(session: EchoSession, feeds: Any, results: Any) -> None:
        runs.append(len(feeds["target"]))
        plain(session, feeds, results)

    monkeypatch.setattr(EchoSession, "run_into", counted)
    frame, swapper = scene(woman), echo()
    look = Look(swapper, swapper.prepare([man]), faces=4)
    apart = [np.array([150.0 * (n % 2), 150.0 * (n // 2), 0], np.float32) for n in range(4)]
    points = frame.faces[0].points * np.float32(0.4)

    def units(count: int) -> int:
        four = replace(frame, faces=tuple(TrackedFace(n, points + apart[n], FaceState.SEEN, 1.0) for n in range(count)))
        lane = Counted(IdleKernels(), look)
        lane.process(four)
        runs.clear()
        lane.process(four)
        lane.close()
        assert runs == [count]
        return sum(lane.kernels.launched.values()) + len(runs)

    assert units(4) <= 0.6 * 4 * units(1)
