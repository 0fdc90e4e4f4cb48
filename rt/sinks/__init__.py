"""Where pictures go, one sink a file. contract.py says what a sink is, runner.py gives each its thread and its mailbox."""
