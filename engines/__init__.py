"""Models and what runs them. Imported by ``rt`` and ``app``; imports neither."""

import os

# ONNX Runtime would name this machine to its makers from its first session on; whoever wants that sets it to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
