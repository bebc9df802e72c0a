"""A module whose `repr` is one line. Its `str` is its text."""

from xdsl.dialects.builtin import ModuleOp

from .english import counted


class Module(ModuleOp):
    """What a plan lowers to: `print` it for its text, which has a line for each op."""

    def __repr__(self) -> str:
        functions = [op for op in self.body.block.ops if op.name == "func.func"]
        count = len(list(self.walk())) - 1 - len(functions)
        names = ", ".join(str(op.properties["sym_name"]).strip('"') for op in functions[:3])
        return f"<module of {names}: {counted(count, 'op')}; print it for its text>"
