"""The text of the kernels, each file whole in itself: compilers and their caches then see one string and need no folder."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_INCLUDE = re.compile(r'^#include "(.+)"\n', re.MULTILINE)


@cache
def source(name: str) -> str:
    """The file ``name`` of this folder with the files that it includes in their places. Each is included once by one."""
    text = (files("rt.compose") / "kernels" / name).read_text(encoding="utf-8")
    return _INCLUDE.sub(lambda found: source(found[1]), text).replace("#pragma once\n", "")
