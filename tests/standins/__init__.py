"""Stand-ins: small ONNX files with exactly the tensors of a known family, whose result NumPy can compute. Weights nobody may ship
are not needed to show that pre-processing, layout, norms, templates and the way back are right."""
