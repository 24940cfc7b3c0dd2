"""`python -m mechnum`."""

from __future__ import annotations

from mechnum.cli import main

if __name__ == "__main__":
    main()
