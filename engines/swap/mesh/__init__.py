"""The embedded swapper: the source face, unwrapped once, is drawn on the moving mesh, lit like the target.

texture.py (photo → flat map) → identity.py (all photos → what is kept) → light.py and swapper.py (every frame), over kernels.py.
"""

from __future__ import annotations

from engines.swap import swappers
from engines.swap.contract import Swapper


@swappers.register("mesh")
def mesh() -> Swapper:
    """Its kernels take numba, which is imported for those alone who wear it."""
    from engines.swap.mesh.swapper import MeshSwapper

    return MeshSwapper()
