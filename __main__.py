"""`python -m partita` is the command `partita`."""

from .compiler.cli.main import main

if __name__ == "__main__":
    main()
