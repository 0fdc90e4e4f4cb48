"""Control from outside: a Stream Deck, a script or `ffrt ctl` talks to a Studio over HTTP and WebSocket, on this machine alone.

`messages.py` is what is said, `service.py` what becomes of it, `guard.py` who may, `server.py` and `client.py` the two ends.
"""
