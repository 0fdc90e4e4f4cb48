"""Engines for GPUs: built in a child process, proven against fp32, kept by what went in.

``key.py`` names an engine, ``cache.py`` keeps it, ``child.py`` is the process it is built in, ``builder.py`` the build itself;
``precision.py`` makes the fp16, int8 or fp8 graph from what ``ranges.py`` measured, ``parity.py`` compares it with the original on what
``trial.py`` says (``views.py`` and ``crops.py``, as the model's family feeds them), ``turing.py`` writes around what old chips cannot
do. ``graph.py`` reads files and says which shapes an engine takes.
``service.py`` joins them and is what the program calls.
"""
