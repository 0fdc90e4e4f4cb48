"""Writes docs/kernels.md: registers, shared memory and spills of every kernel on every chip. python scripts/kernel_table.py FILE"""

from __future__ import annotations

import sys
from pathlib import Path

from rt.compose.kernels.declared import KERNELS
from rt.compose.kernels.nvrtc import CHIPS, Usage, compile_for, usage_of

TOP = """# Kernels

Written by `make test-kernels`, which compiles every kernel of `rt/compose/kernels/` with NVRTC for every chip. A cell is registers of a
thread; `+ n B` is shared memory of a block; spills would be named and fail the tests. Their time has not been measured on a GPU yet.
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
    lines = ["| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows]]
    Path(path).write_text(TOP + "\n" + "\n".join(lines) + "\n", encoding="utf-8")


def _cell(usage: Usage) -> str:
    shared = f" + {usage.shared_bytes} B" if usage.shared_bytes else ""
    spilled = f", spills {usage.spilled_bytes} B" if usage.spilled_bytes else ""
    return f"{usage.registers}{shared}{spilled}"


if __name__ == "__main__":
    main(sys.argv[1])
