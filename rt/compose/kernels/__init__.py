"""The pixels' work as CUDA kernels. The same text runs on a GPU and, compiled by a C++ compiler, on the host.

``declared.py`` lists every kernel; ``contract.py`` is how one is launched, ``host.py`` and ``cuda.py`` its two forms; ``sources.py``
reads the ``.cu`` files, ``nvrtc.py`` compiles them for chips without a GPU. ``records.py`` is what goes up for each face.
"""
