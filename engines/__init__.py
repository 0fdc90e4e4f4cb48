"""Models and what runs them. Imported by ``rt`` and ``app``; imports neither.

Importing the package makes the runtimes known; a new one is a new file and a line here.
"""

from engines import ort as _ort  # noqa: F401  registers itself
from engines import tensorrt as _tensorrt  # noqa: F401  registers itself
