"""Where work runs: streams of work in order, and events between them.

``contract.py`` is the interface, ``host.py`` its form on threads. ``threaded.py`` is a thread that gives work to something that runs it
later: a GPU (``cuda.py``) or a device of declared times (``simulated.py``). ``checking.py`` runs another one and proves the order.
``graphs.py`` has work that comes in every frame recorded and replayed.
"""
