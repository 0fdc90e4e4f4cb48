"""Models and what runs them. Imported by ``rt`` and ``app``; imports neither.

Importing the package makes the runtimes known; a new one is a new file and a line here.
"""

import os

# ONNX Runtime would name this machine to its makers from its first session on; whoever wants that sets it to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

from engines import ort as _ort  # noqa: F401  registers itself
from engines import tensorrt as _tensorrt  # noqa: F401  registers itself
