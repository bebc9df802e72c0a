"""`python -m partita` is the command `partita`."""

from .compiler.cli import main

if __name__ == "__main__":
    main()
