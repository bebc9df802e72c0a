"""`partita-opt`: reads a program's text, runs passes on it, prints it; xDSL's driver with our dialects and passes.

    partita-opt program.mlir -p fuse,lower

It is how the tests and people look at one step at a time. xDSL's own dialects and passes (`cse`, `dce`) are there too.
"""

from xdsl.universe import Universe
from xdsl.xdsl_opt_main import xDSLOptMain

from .passes import PASSES
from .universe import DIALECTS


class PartitaOpt(xDSLOptMain):
    """xDSL's driver; where this package is installed, xDSL has found our dialects by itself already."""

    def register_all_dialects(self) -> None:
        for name, dialect in {**Universe.get_multiverse().all_dialects, **DIALECTS}.items():
            self.ctx.register_dialect(name, dialect)

    def register_all_passes(self) -> None:
        for name, each in {**Universe.get_multiverse().all_passes, **PASSES}.items():
            self.register_pass(name, each)


def main() -> None:
    """The command `partita-opt`."""
    PartitaOpt("Partita's modular optimizer driver").run()


if __name__ == "__main__":
    main()
