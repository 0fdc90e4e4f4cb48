"""The embedded swapper: the source face, unwrapped once, is drawn on the moving mesh, lit like the target.

texture.py (photo → flat map) → identity.py (all photos → what is kept) → light.py and swapper.py (every frame), over kernels.py.
"""

from engines.registry import import_all

import_all(__name__, __path__)
