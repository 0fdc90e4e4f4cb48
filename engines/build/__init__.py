"""Engines for GPUs: built in a child process, proven against fp32, kept by what went in.

``key.py`` names an engine, ``cache.py`` keeps it, ``child.py`` is the process it is built in, ``builder.py`` the build itself;
``precision.py`` makes the fp16, int8 or fp8 graph, ``parity.py`` compares it with the original on ``crops.py``.
``service.py`` joins them and is what the program calls.
"""
