"""The contact sheet holds what it was given, before over after."""

from __future__ import annotations

import numpy as np

from app.sheet import GAP, PAPER, TILE_HEIGHT, contact_sheet


def plain(colour: tuple[int, int, int], width: int = 320, height: int = 180) -> np.ndarray:
    return np.full((height, width, 3), colour, np.uint8)


def test_every_picture_is_on_it_in_its_place() -> None:
    red, green, blue = (0, 0, 255), (0, 255, 0), (255, 0, 0)
    sheet = contact_sheet([(plain(red), plain(green), "1.0 s"), (plain(green), plain(red), "2.0 s")], plain(blue))
    areas = {colour: int((sheet == colour).all(-1).sum()) for colour in (red, green, blue)}
    tile = TILE_HEIGHT * round(320 * TILE_HEIGHT / 180)
    assert areas == {red: 2 * tile, green: 2 * tile, blue: tile}
    columns = np.flatnonzero((sheet == red).all(-1).any(0))
    first = sheet[:, columns[0] + 1]
    assert np.flatnonzero((first == red).all(-1)).max() < np.flatnonzero((first == green).all(-1)).min()


def test_pictures_of_any_shape_leave_a_rim_of_paper() -> None:
    sheet = contact_sheet([(plain((1, 2, 3), 100, 300), plain((1, 2, 3), 100, 300), "")], plain((9, 9, 9), 50, 50))
    assert (sheet[:, :GAP] == PAPER).all()
    assert (sheet[:, -GAP:] == PAPER).all()
