"""Writes a device-local program that runs on several device sets: each value on its set, and copies where others read it.

What crosses is a change of layout like a redistribution, to another set.

    %h on stage=0, read on stage=1   -->   change %h, a transfer
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Operation, SSAValue

from ...dialects.layouts import Layout
from ...dialects.mesh import Mesh
from ...dialects.types import ArrayType
from ..decide.device_sets import arriving
from ..redistribute.steps import Path
from .constructors import Global, Globals, Types, on_device, type_of
from .runs import Change, ChangeOp
from .to_spmd import Local


class OnSets(Local):
    """Writes the device-local program, with changes of layout as ops, and notes on which device set each op runs."""

    keeps_types = True
    """Whether the types of values are asked for."""

    def __init__(self, types: Types) -> None:
        self.types = dict[SSAValue, ArrayType]()
        """Each device's part of a value -> the type of the value."""
        self.where = dict[SSAValue, Mesh]()
        """The device set of each value, if there are several."""
        self.sets = dict[Operation, Mesh]()
        """The device set of each op."""
        self.copies = dict[tuple[SSAValue, ArrayType, Mesh], Global]()
        self.changes = list[Change]()
        super().__init__(types)

    def known(self, values: Sequence[SSAValue], types: Types) -> list[Global]:
        if self.keeps_types:
            self.types.update(zip(values, types, strict=True))
        if self.devices is not None:
            self.where.update(dict.fromkeys(values, self.devices))
        return super().known(values, types)

    def build(self, local: SSAValue, type: ArrayType) -> Global:
        if self.keeps_types:
            self.types.setdefault(local, type)
        if self.devices is not None:
            self.where.setdefault(local, self.devices)
        return super().build(local, type)

    def change(self, change: Change, locals: Sequence[SSAValue]) -> list[Global]:
        op = ChangeOp(locals, [each.local for each in change.after], {"number": IntAttr(len(self.changes))})
        self.changes.append(change)
        self.block.add_op(op)
        return self.known(op.results, change.after)

    def on(self, devices: Mesh | None) -> None:
        if devices is not self.devices:
            self.end_nest()
            self.mark()
            self.devices = devices

    def given_on(self, sets: Sequence[Mesh]) -> None:
        super().given_on(sets)
        if sets:
            self.keeps_types = True
            self.types.update(zip(self.block.args, map(type_of, self.arguments), strict=True))
            self.where.update(zip(self.block.args, sets, strict=True))

    def mark(self) -> None:
        """Notes where the ops run that were written since it was last called."""
        if self.devices is None:
            return
        op = self.block.last_op
        while op is not None and op not in self.sets:
            self.sets[op] = self.devices
            op = op.prev_op

    def redistribute(self, sources: Globals, targets: Types, way: Path | None = None) -> Globals:
        if self.devices is not None:
            sources = list(map(self.here, sources, targets))
            if len(sources) == 1 and type_of(sources[0]) is targets[0]:
                return sources
        return self.changed_here(sources, targets, way)

    @abstractmethod
    def changed_here(self, sources: Globals, targets: Types, way: Path | None) -> Globals:
        """Redistributes values of the set on which the program is now."""

    def changed_inside(self, sources: Globals, targets: Types, way: Path | None) -> Globals:
        """Writes a redistribution as what a device does."""
        return super().redistribute(sources, targets, way)

    def here(self, source: Global, target: ArrayType) -> Global:
        """The value on the set on which the program is now: itself, or a copy, at best of the part that is wanted."""
        local, type = on_device(source), type_of(source)
        at, here = self.where.get(local, self.devices), self.devices
        if here is None or at is None or at is here:
            return source
        sent = type.layout.natural.with_pending(())
        wanted = ArrayType.of(type.dtype, arriving(type.layout, target.layout))
        key = local, wanted, here
        if key not in self.copies:
            self.copies[key] = self.copied(source, sent, wanted, at)
        return self.copies[key]

    def copied(self, source: Global, sent: Layout, wanted: ArrayType, at: Mesh) -> Global:
        """A copy of a value. What crosses has blocks of consecutive elements."""
        if sent is not type_of(source).layout:
            self.mark()
            # The nest stays open: nothing that it builds is on the other set.
            here, self.devices = self.devices, at
            (source,) = self.redistribute([source], [ArrayType.of(wanted.dtype, sent)])
            self.mark()
            self.devices = here
        arrives = wanted if sent.covers(wanted.layout) and wanted.layout.natural is wanted.layout else type_of(source)
        (made,) = self.change(Change([type_of(source)], [arrives], is_transfer=True), [on_device(source)])
        return made if arrives is wanted else self.redistribute([made], [wanted])[0]
