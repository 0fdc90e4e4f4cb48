"""Where work runs: streams of work in order, and events between them.

``contract.py`` is the interface; ``host.py`` its form on threads. A CUDA form replaces this room and nothing else.
"""
