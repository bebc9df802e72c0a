"""`partita-opt`: reads a program's text, runs passes on it, prints it: xDSL's driver with Partita's dialects and passes.

    partita-opt program.mlir -p fuse,to-spmd

Use it to look at one step at a time, as the tests do. xDSL's own dialects and passes (`cse`, `dce`) are available too.
Input that it cannot read or run gives one error and exit status 1.
"""

import sys
from io import BytesIO
from typing import IO

from xdsl.dialects.builtin import ModuleOp
from xdsl.universe import Universe
from xdsl.utils.arg_spec import parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError, VerifyException
from xdsl.xdsl_opt_main import xDSLOptMain

from ...dialects.ground.errors import Error, nearest
from ...dialects.program_text import error_of, read_module
from ...rewrites.plan_text.stages import verified
from ..inputs.files import bounded, regular
from .universe import PASSES, UNIVERSE


class PartitaOpt(xDSLOptMain):
    """xDSL's driver with Partita's dialects. If the package is installed, xDSL has found these already."""

    def register_all_dialects(self) -> None:
        for name, dialect in {**Universe.get_multiverse().all_dialects, **UNIVERSE.all_dialects}.items():
            self.ctx.register_dialect(name, dialect)

    def register_all_passes(self) -> None:
        for name, each in {**Universe.get_multiverse().all_passes, **PASSES}.items():
            self.register_pass(name, each)

    def register_all_frontends(self) -> None:
        self.available_frontends["mlir"] = self.read

    def read(self, chunk: IO[bytes]) -> ModuleOp:
        """Reads the module in a chunk of the input."""
        try:
            text = chunk.read().decode()
        except UnicodeDecodeError as error:
            raise Error(f"`{self.get_input_name()}` is not a text in UTF-8: {error.reason} at byte {error.start}") from None
        return read_module(self.ctx, text, self.get_input_name(), not self.args.no_implicit_module)

    def parse_chunk(self, chunk: IO[bytes], file_extension: str, start_offset: int = 0) -> ModuleOp | None:
        """Reads a module. Claims and decisions in it are verified, as ops are."""
        module = super().parse_chunk(chunk, file_extension, start_offset)
        if module is not None and not self.args.disable_verify:
            try:
                verified(module)
            except Error as error:
                raise VerifyException(str(error)) from error
        return module

    def setup_pipeline(self) -> None:
        try:
            unknown = [each.name for each in parse_pipeline(self.args.passes) if each.name not in self.available_passes]
            if unknown:
                near = [f"did you mean `{each}`?" for each in nearest(unknown[0], self.available_passes, 1)]
                raise Error(f"unknown pass `{unknown[0]}`", helps=[*near, "`partita-opt --help` lists the passes"])
            super().setup_pipeline()
        except (ValueError, ArgSpecParseError) as error:
            raise Error(f"the passes `{self.args.passes}` cannot be read: {error}") from None

    def get_input_stream(self) -> tuple[IO[bytes], str]:
        if self.args.input_file is not None:
            regular(self.args.input_file, "leave it out to read the standard input")
        stream, extension = super().get_input_stream()
        # Read everything now, so that no error leaves the file open.
        with stream:
            return BytesIO(bounded(stream, self.get_input_name())), extension

    def prepare_input(self) -> tuple[list[tuple[IO[bytes], int]], str]:
        try:
            return super().prepare_input()
        except (OSError, ValueError) as error:
            helps = ["the input is a file that ends in `.mlir`; `-f mlir` reads any other"]
            raise Error(f"`{self.get_input_name()}` cannot be read: {error}", helps=helps) from None

    def prepare_output(self) -> IO[str]:
        try:
            return super().prepare_output()
        except OSError as error:
            raise Error(f"`{self.args.output_file}` cannot be written: {error}") from None


def main() -> None:
    """The command `partita-opt`."""
    try:
        PartitaOpt("Partita's modular optimizer driver").run()
    except (ParseError, VerifyException) as error:
        sys.exit(f"error: {error_of(error)}")
    except (Error, ArgSpecParseError, DiagnosticException) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
