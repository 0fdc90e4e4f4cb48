"""``python -m app`` is the program `ffrt`."""

from app.main import main

if __name__ == "__main__":  # not in the children that builds run in
    main()
