"""Writes docs/kernels.md: registers, shared memory and spills of every kernel on every chip. python scripts/kernel_table.py FILE"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

from rt.compose.kernels.declared import KERNELS
from rt.compose.kernels.nvrtc import CHIPS, Usage, compile_for, usage_of
from rt.compose.launches import SWAP, launches
from rt.options import Blending

TOP = """# Kernels

Written by `make test-kernels`, which compiles every kernel of `rt/compose/kernels/` with NVRTC for every chip. A cell is registers of a
thread; `+ n B` is shared memory of a block; spills would be named and fail the tests. Their time has not been measured on a GPU yet.

## What a frame launches

With one face, outside of the networks: at the most 12, whatever is chosen (`rt/compose/launches.py`; every combination is counted in
`tests/test_networks_in_place.py`). A frame that is recorded as a graph launches all of it as one. Masks that are drawn cost no launch
of their own; those that networks make cost two around the networks, however many there are. Colours are matched by `seam_membrane` here;
it is `seam_poisson`, `seam_bands` or `seam_colours` where these were chosen.
"""

KERNELS_HEAD = """
## Registers
"""


def main(path: str) -> None:
    """Overwrites the file."""
    usages: dict[str, dict[str, Usage]] = {name: {} for name in KERNELS}
    for file in sorted({kernel.file for kernel in KERNELS.values()}):
        mine = [kernel for kernel in KERNELS.values() if kernel.file == file]
        for chip in CHIPS:
            for name, usage in usage_of(mine, compile_for(file, chip)[1]).items():
                usages[name][chip] = usage
    head = ["file", "kernel", "block", *CHIPS]
    rows = [[kernel.file, f"`{name}`", "×".join(map(str, kernel.block)), *(_cell(usages[name][chip]) for chip in CHIPS)]
            for name, kernel in KERNELS.items()]  # fmt: skip
    Path(path).write_text("\n".join([TOP, *_table(_launch_rows()), KERNELS_HEAD, *_table([head, *rows]), ""]), encoding="utf-8")


def _table(rows: list[list[str]]) -> list[str]:
    """The first row is the head."""
    return ["| " + " | ".join(cells) + " |" for cells in [rows[0], ["---"] * len(rows[0]), *rows[1:]]]


def _launch_rows() -> list[list[str]]:
    rows = [["swapper", "enhancer", "colours matched", "sharpened", "badge", "networks' masks", "launches", "of them"]]
    for swapper in SWAP:
        for chosen in product((False, True), repeat=5):
            enhanced, matched, sharpened, badge, masked = chosen
            if (badge or masked) and not all(chosen):
                continue  # one more, and two more, always
            blending = Blending.SEAMLESS if matched else Blending.SOFT
            planned = launches(swapper, blending=blending, enhanced=enhanced, sharpened=sharpened, badge=badge, masked=masked)
            marks = ["yes" if each else "" for each in chosen]
            rows.append([swapper, *marks, str(len(planned)), " ".join(f"`{name}`" for name in planned)])
    return rows


def _cell(usage: Usage) -> str:
    shared = f" + {usage.shared_bytes} B" if usage.shared_bytes else ""
    spilled = f", spills {usage.spilled_bytes} B" if usage.spilled_bytes else ""
    return f"{usage.registers}{shared}{spilled}"


if __name__ == "__main__":
    main(sys.argv[1])
