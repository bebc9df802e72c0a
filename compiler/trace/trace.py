"""`trace`: from a JAX function to the program that plans partition.

JAX traces the function to a jaxpr, and `importer` turns that into operations; this file records how the user called it.

    def step(w, x): return jnp.tanh(x @ w)

    pt.trace(step, w, x)  -->  func.func @main(%w: f32[256, 1024], %x: f32[512, 256]) -> f32[512, 1024] {
                                 %0 = lax.dot_general %x, %w {...};  %1 = lax.tanh %0;  func.return %1 }
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, cast

import numpy as np
from jax import Array
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, Region, SSAValue

from ...dialects.ground.amounts import counted
from ...dialects.ground.argument_names import set_names
from ...dialects.ground.errors import Error
from ...dialects.module_op import Module
from ..gc_pause import without_collector
from ..inputs.arguments import UserFunction, donated, leaf_names, leaf_text
from ..inputs.lines import Origin, SourceLines, raised_at, source_line_of
from ..inputs.names import ArgumentTree, Patterns, join, path_parts, successors
from ..jax_private import PyTreeDef, Tracer, jax, lax, marking_gradients, ordered_effects, tree
from ..ops.prng_keys import aval_text, implementation, is_key, is_void, unwrap, wrap
from .annotations import Annotation, of_arguments
from .importer import Importer, imported
from .micro_batched import MicroBatched
from .mutable_references import check_references, with_effect, without_references
from .mutated_arguments import Given, captured, kept
from .value_names import former, leaving, tags

_is_ordered = ordered_effects.contains


@dataclass(frozen=True, eq=False)
class Traced:
    """A program and how it is called: the input of `pt.plan`.

    The module's function takes the leaves of the arguments, then `consts`, the arrays that the function closes over, named
    `const/0`, ... Keys are `uint32` arrays inside; `flatten` and `unflatten` convert between these and the user's trees.
    `jaxpr` is the function as JAX traced it.
    """

    function: UserFunction
    module: ModuleOp
    arg_names: tuple[str, ...]
    result_names: tuple[str, ...]
    in_avals: tuple[ShapedArray, ...]
    out_avals: tuple[ShapedArray, ...]
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    consts: tuple[Array, ...]
    sources: SourceLines
    foreign: tuple[object, ...]
    static: Mapping[str, object]
    arguments: tuple[str, ...]
    jaxpr: ClosedJaxpr
    annotations: tuple[Annotation, ...]
    """What the program says about layouts: first of its arguments, then of other values, in program order."""
    changes: tuple[str, ...] = ()
    """If this is another program than the function, what sees one micro-batch at a time; one line each."""

    @property
    def name(self) -> str:
        return self.function.name

    def __repr__(self) -> str:
        return f"<{self.name}, traced: {counted(len(self.arg_names), 'argument')}, {counted(len(self.result_names), 'result')}>"

    @property
    def main(self) -> func.FuncOp:
        return cast(func.FuncOp, self.module.body.block.first_op)

    @cached_property
    def tags(self) -> Mapping[str, tuple[SSAValue, ...]]:
        """The values that each tag names, in program order."""
        return _lists(tags(self.main))

    @cached_property
    def scopes(self) -> Mapping[str, Sequence[SSAValue]]:
        """The values that leave each scope, in program order."""
        return leaving(self.main, self.sources)

    @cached_property
    def value_names(self) -> Mapping[SSAValue, str]:
        """The name that the text of a program uses for a value: its path, its tag, or the scope that it alone leaves."""
        alone = {name: values for name, values in self.scopes.items() if len(values) == 1}
        arguments = ((name, (value,)) for name, value in zip(self.arg_names, self.main.body.block.args, strict=True))
        names: dict[SSAValue, str] = {}
        for name, values in chain(arguments, self.tags.items(), alone.items()):
            for value in values:
                names.setdefault(value, name)
        return names

    @cached_property
    def former(self) -> Mapping[str, Sequence[SSAValue]]:
        """The names of values in scopes as earlier versions made them."""
        return _lists(former(self.main, self.sources))

    @cached_property
    def successors(self) -> Mapping[str, str]:
        """Maps each argument leaf to the result leaf that replaces it in the next call: `params/w --> result/0/w`."""
        result = ArgumentTree(self.out_tree, self.result_names, self.out_avals)
        parts = _parts(self.out_tree, self.result_names, self.out_avals)
        return successors(_parts(self.in_tree, self.arg_names, self.in_avals), [result, *parts])

    def rewritten(self, module: ModuleOp, sources: SourceLines, annotations: tuple[Annotation, ...]) -> "Traced":
        """The same function, with a program that laws have rewritten."""
        made = replace(self, module=module, sources=sources, annotations=annotations)
        vars(made)["successors"] = self.successors
        return made

    def in_micro_batches(self, dims: Mapping[int, int], trips: int, scopes: Sequence[str]) -> "Traced":
        """Another program: what is in some scopes sees one micro-batch at a time, as `micro_batched` says.

        `dims` has the dim of each argument that is the batch. Raises Error if the function cannot be traced for one
        micro-batch, or has other ops then.
        """
        smaller = [
            cast(Any, aval).update(
                shape=tuple(n // trips if dims.get(number) == dim else n for dim, n in enumerate(aval.shape))
            )
            for number, aval in enumerate(self.in_avals)
        ]
        arguments = cast("Sequence[object]", tree.tree_unflatten(self.in_tree, smaller))
        extents = {self.in_avals[number].shape[dim] for number, dim in dims.items()}
        both = MicroBatched(trips, sorted(extents, reverse=True), scopes)
        with without_collector():
            named, what = dict(zip(self.arguments, arguments, strict=True)), f"one of {trips} micro-batches"
            with marking_gradients():
                whole, _ = _closed(self.function, named, self.static, self.in_tree, self.in_avals)
                part, _ = _closed(self.function, named, self.static, self.in_tree, smaller, what)
            closed = _jaxpr(self.function, both.evaluated(whole, part), self.in_tree, self.in_avals)
            importer = imported(closed)
        arg_names, own = _with_consts(self.arg_names[: len(self.in_avals)], importer), importer.frame.block.args
        kept: dict[SSAValue, SSAValue] = {
            value: own[number] for number, value in enumerate(self.main.body.block.args[: len(self.in_avals)])
        }
        made = self.rewritten(
            _module(importer, arg_names, self.result_names),
            SourceLines(importer.origins),
            (*((kept[value], said) for value, said in self.annotations if value in kept), *importer.annotations),
        )
        foreign, consts = tuple(importer.foreign.values), _unwrapped(importer.frame.arrays)
        return replace(made, arg_names=arg_names, consts=consts, foreign=foreign, jaxpr=closed, changes=both.changes)

    def flatten(self, args: Sequence[object] = (), kwargs: Mapping[str, object] | None = None) -> list[Array]:
        """The leaves of a call's arguments in the program's form, without `consts`.

        Raises Error if they differ from those traced: another tree, shape, dtype or static value.
        """
        bound, static = self.function.bind(args, kwargs or {})
        leaves, structure = tree.tree_flatten(tuple(bound.arguments.values()))
        if structure != self.in_tree or tuple(bound.arguments) != self.arguments or static != self.static:
            raise self._changed(bound.arguments, static)
        for number, (leaf, aval) in enumerate(zip(leaves, self.in_avals, strict=True)):
            if getattr(leaf, "shape", None) != aval.shape or leaf.dtype != aval.dtype:
                self._check(leaf, aval, number)
        return [unwrap(leaf) for leaf in leaves]

    def donates(self, given: Patterns) -> Collection[str]:
        """The arguments that a call may overwrite. Raises Error for an unknown or a static one."""
        return {*donated(self.function, given), *self.function.donated}

    def unflatten(self, leaves: Sequence[Array]) -> object:
        """Rebuilds the function's result from the results of the program."""
        return tree.tree_unflatten(self.out_tree, as_avals(leaves, self.converted))

    @property
    def takes(self) -> Sequence[tuple[str, ShapedArray]]:
        """The name and the type of each leaf of a call's arguments, without `consts`."""
        return [*zip(self.arg_names, self.in_avals, strict=False)]

    def takes_as_given(self, args: Sequence[object]) -> bool:
        """Whether the leaves of a call's arguments, given by position, are what the program takes."""
        del args
        return not self.static and not any(is_key(aval) or is_void(aval) for aval in self.in_avals)

    @cached_property
    def converted(self) -> Mapping[int, ShapedArray]:
        """The results that are something else inside of a program."""
        return converted(self.out_avals)

    def original(self, *leaves: Array) -> list[Array]:
        """Runs the function as JAX traced it. The arrays that it closes over, `consts`, come after its arguments."""
        count = len(self.in_avals)
        given = {id(const): leaf for const, leaf in zip(self.consts, leaves[count:], strict=True)}
        consts = [given.get(id(const), const) for const in self.jaxpr.consts]
        return jax.core.eval_jaxpr(self.jaxpr.jaxpr, consts, *leaves[:count])

    def as_traced(self, *args: object, **kwargs: object) -> object:
        """The program on the user's arguments, as JAX traced it: another one than the function, if there are `changes`."""
        bound, _ = self.function.bind(args, kwargs)
        run = jax.jit(partial(jax.core.eval_jaxpr, self.jaxpr.jaxpr, self.jaxpr.consts))
        return tree.tree_unflatten(self.out_tree, run(*tree.tree_leaves(tuple(bound.arguments.values()))))

    def _check(self, leaf: object, aval: ShapedArray, number: int) -> None:
        name = self.arg_names[number]
        given = self.function.aval(leaf, name)
        if given.shape != aval.shape or given.dtype != aval.dtype:
            title = f"argument `{name}` of `{self.name}` is {aval_text(given)}, but was {aval_text(aval)} when traced"
            raise self.function.error(title, "plan again for other shapes and dtypes, or use `pt.jit`, which does", at=name)

    def _changed(self, arguments: Mapping[str, object], static: Mapping[str, object]) -> Error:
        """The error for a call that does not fit: it shows the first name or static value that differs."""
        given = leaf_names(arguments)
        traced = self.arg_names[: len(self.in_avals)]
        notes = [
            *(f"`{name}` was not there" for name in given if name not in set(traced)),
            *(f"`{name}` is missing" for name in traced if name not in set(given)),
            *(
                f"static `{name}` is {static.get(name)!r} and was {value!r}"
                for name, value in self.static.items()
                if static.get(name) != value
            ),
        ]
        notes = notes or [*self._other_trees(arguments)] or [f"the tree was {_excerpt(str(self.in_tree), 0)}"]
        helps = ["plan again for other arguments, or use `pt.jit`, which does"]
        if set(given) != set(traced):
            helps = [f"it takes {self.name}({', '.join(self.arguments)})", *helps]
        title = f"`{self.name}` is called with different arguments than it was traced with"
        return self.function.error(title, *helps, notes=notes[:3])

    def _other_trees(self, arguments: Mapping[str, object]) -> Iterator[str]:
        """Yields the arguments whose trees have other containers than when they were traced."""
        for name, was, given in zip(self.arguments, self.in_tree.children(), arguments.values(), strict=False):
            if (structure := tree.tree_structure(given)) != was:
                now, then = _differing(structure, was)
                texts = str(now), str(then)
                at = next(
                    (at for at, signs in enumerate(zip(*texts, strict=False)) if len(set(signs)) > 1), min(map(len, texts))
                )
                yield f"`{name}` is {_container(now, at)}, and was {_container(then, at)} when traced"


def _differing(one: PyTreeDef, other: PyTreeDef) -> tuple[PyTreeDef, PyTreeDef]:
    """The innermost parts of two trees that contain all of their differences."""
    while cast(Any, one).node_data() == cast(Any, other).node_data() and len(one.children()) == len(other.children()):
        pairs = [pair for pair in zip(one.children(), other.children(), strict=True) if pair[0] != pair[1]]
        if len(pairs) != 1:
            break
        ((one, other),) = pairs
    return one, other


def _container(structure: PyTreeDef, at: int) -> str:
    """The outermost container of a tree, with an excerpt of its text around `at`."""
    data = cast(Any, structure).node_data()
    return "an array" if data is None else f"a {data[0].__name__}, {_excerpt(str(structure), at)}"


def _excerpt(text: str, at: int) -> str:
    """An excerpt of a long text around `at`; a short text is returned whole."""
    start = max(0, at - LONGEST_TREE // 2) if len(text) > LONGEST_TREE else 0
    cut = text[start : start + LONGEST_TREE]
    return f"{'...' if start else ''}{cut}{'...' if start + len(cut) < len(text) else ''}"


def as_aval(leaf: Array, aval: ShapedArray) -> Array:
    """Converts a leaf of the program's result to this aval: to an array of keys, or to a weak type."""
    if is_key(aval):
        return wrap(leaf, implementation(aval))
    if is_void(aval):
        return cast(Array, np.zeros(aval.shape, aval.dtype))
    if not aval.weak_type:
        return leaf
    return lax.convert_element_type_p.bind(leaf, new_dtype=aval.dtype, weak_type=True, sharding=None)


def converted(avals: Sequence[ShapedArray]) -> Mapping[int, ShapedArray]:
    """The avals that `as_aval` converts to, by their numbers. Found once, since each takes a microsecond."""
    return {at: aval for at, aval in enumerate(avals) if is_key(aval) or is_void(aval) or aval.weak_type}


def as_avals(leaves: Sequence[Array], converted: Mapping[int, ShapedArray]) -> Sequence[Array]:
    """Converts those leaves of a program's results that are something else inside of it."""
    return (
        [as_aval(leaf, converted[at]) if at in converted else leaf for at, leaf in enumerate(leaves)] if converted else leaves
    )


LONGEST_TREE = 200
"""The most characters of a tree that an error shows."""
Results = tuple[PyTreeDef, tuple[str, ...], list[str]]
"""The structure of a result, the names of its leaves, and the names of the argument leaves that the function changes."""


def _lists(named: Iterable[tuple[str, SSAValue]]) -> Mapping[str, tuple[SSAValue, ...]]:
    found: dict[str, dict[SSAValue, None]] = {}
    for name, value in named:
        found.setdefault(name, {})[value] = None
    return {name: tuple(values) for name, values in found.items()}


def _parts(whole: PyTreeDef, names: Sequence[str], avals: Sequence[ShapedArray]) -> list[ArgumentTree]:
    found, start = list[ArgumentTree](), 0
    for child in whole.children():
        end = start + child.num_leaves
        found.append(ArgumentTree(child, tuple(names[start:end]), tuple(avals[start:end])))
        start = end
    return found


def trace(fn: Callable[..., object], /, *args: object, static_argnames: str | Sequence[str] = (), **kwargs: object) -> Traced:
    """Traces `fn` on these arguments: arrays, or `jax.ShapeDtypeStruct`s if only shapes matter.

    Arguments named in `static_argnames` keep their values and must be hashable. Raises Error for a leaf or a result that is
    not an array, for a program with ordered effects, and for one that changes an argument in place without returning it.
    """
    function = UserFunction.of(fn, static_argnames)
    bound, static = function.bind(args, kwargs)
    names = leaf_names(bound.arguments)
    leaves, in_tree = tree.tree_flatten(tuple(bound.arguments.values()))
    avals = list(map(function.aval, leaves, names))
    with without_collector():
        closed, (out_tree, result_names, _) = _closed(function, bound.arguments, static, in_tree, avals)
        importer = imported(closed)
    arg_names = _with_consts(names, importer)
    return Traced(
        function=function,
        module=_module(importer, arg_names, result_names),
        arg_names=arg_names,
        result_names=result_names,
        in_avals=tuple(avals),
        out_avals=tuple(closed.out_avals),
        in_tree=in_tree,
        out_tree=out_tree,
        consts=_unwrapped(importer.frame.arrays),
        sources=SourceLines(importer.origins),
        foreign=tuple(importer.foreign.values),
        static=static,
        arguments=tuple(bound.arguments),
        jaxpr=closed,
        annotations=_annotations(importer, leaves, bound.arguments),
    )


def _closed(
    function: UserFunction,
    arguments: Mapping[str, object],
    static: Mapping[str, object],
    in_tree: PyTreeDef,
    avals: Sequence[ShapedArray],
    what: str = "",
) -> tuple[ClosedJaxpr, Results]:
    """The program of a function, for leaves like these: those of a user's call, or of `what`."""
    results: list[Results] = []
    flat = _flat(function, tuple(arguments), static, results)
    closed = _jaxpr(function, function.names(flat, arguments), in_tree, avals, what)
    check_references(function, closed)
    _check_effects(function, closed)
    _check_captured(function, closed)
    closed = without_references(function, closed)
    return kept(function, closed, leaf_names(arguments), results[-1][2]), results[-1]


def _flat(
    function: UserFunction, names: tuple[str, ...], static: Mapping[str, object], results: list[Results]
) -> Callable[..., list[object]]:
    """Makes a function that returns a flat list, and last the leaves that it changes in place. `results` describes the list."""

    def flat(*values: object) -> list[object]:
        given = Given.of(names, values)
        returned = function.call(values, names, static)
        found, structure, paths = _flattened(function, returned)
        changed = given.changed(function, returned)
        results.append((structure, paths, list(changed)))
        return [*found, *changed.values()]

    return flat


def _jaxpr(
    function: UserFunction, flat: Callable[..., object], in_tree: PyTreeDef, avals: Sequence[ShapedArray], what: str = ""
) -> ClosedJaxpr:
    """Traces a function to a jaxpr. What it raises for leaves that the user has not given, those of `what`, is an Error.

    Raises Error for a collective outside of a `shard_map`, which JAX reports as an unbound name.
    """
    structs = [jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]
    try:
        return jax.make_jaxpr(flat)(*tree.tree_unflatten(in_tree, structs))
    except NameError as error:
        found = re.search(r"unbound axis name: (\w+)", str(error))
        if found is None:
            raise
        helps = [
            "write the function for whole arrays, `jnp.sum(x)` for a sum: the plan adds the collectives",
            "or keep the collective inside a `jax.shard_map` over this axis",
        ]
        title = f"`{function.name}` uses the axis `{found[1]}` in a collective, but no mesh axis has a name here"
        raise function.error(title, *helps) from None
    except Exception as error:
        if (refused := captured(function, error) or _without_mesh(function, error)) is not None:
            raise refused from error
        if what:
            title = f"`{function.name}` cannot be traced for {what}"
            raise function.error(title, notes=[f"{type(error).__name__}: {error}"]) from error
        raise


def _without_mesh(function: UserFunction, error: Exception) -> Error | None:
    """The error for a layout that only names axes, or a `jax.shard_map` that does, while JAX has no mesh. JAX refuses it.

    None for another error, as one that the program raises itself.
    """
    if "jax.set_mesh" not in str(error) or not jax.sharding.get_abstract_mesh().empty or not (lines := raised_at(error)):
        return None
    where = lines[-1].location()
    if where is None or where.text[max(0, where.column - 1) :].lstrip().startswith("raise "):
        return None
    helps = [
        "plan it inside of `with jax.set_mesh(mesh):`, or give the layout with its mesh: `NamedSharding(mesh, P())`",
        'or write `pt.constrain(x, "data, _")`, which needs no mesh of JAX',
    ]
    title = f"`{function.name}` names axes of JAX's mesh, but `jax.set_mesh` has set none"
    return Error(title, location=where, helps=helps)


def _flattened(function: UserFunction, result: object) -> tuple[list[object], PyTreeDef, tuple[str, ...]]:
    """Flattens a function's result: its leaves, its structure, and the names of the leaves."""
    with_paths, structure = tree.tree_flatten_with_path(result)
    names = tuple(join("result", *path_parts(keys)) for keys, _ in with_paths)
    leaves = [leaf for _, leaf in with_paths]
    for leaf, name in zip(leaves, names, strict=True):
        _check_result(function, leaf, name)
    return leaves, structure, names


def _with_consts(names: Sequence[str], importer: Importer) -> tuple[str, ...]:
    """The names of arguments, and of the arrays that the function closes over."""
    return (*names, *(f"const/{number}" for number in range(len(importer.frame.arrays))))


def _unwrapped(arrays: Sequence[Array]) -> tuple[Array, ...]:
    """Converts captured arrays to the program's form, as concrete arrays even while JAX is tracing something else."""
    with jax.ensure_compile_time_eval():
        return tuple(map(unwrap, arrays))


def _annotations(importer: Importer, leaves: Sequence[object], given: Mapping[str, object]) -> tuple[Annotation, ...]:
    """The annotations of a program: those of its arguments and captured arrays, then those of its values."""
    found = of_arguments([*leaves, *importer.frame.arrays], given)
    arguments = importer.frame.block.args
    return (*((arguments[number], said) for number, said in found.items()), *importer.annotations)


def _module(importer: Importer, arg_names: Sequence[str], result_names: Sequence[str]) -> ModuleOp:
    block = importer.frame.block
    last = cast(Operation, block.last_op)
    types = ([arg.type for arg in block.args], [value.type for value in last.operands])
    main = func.FuncOp("main", types, Region(block))
    set_names(main, arg_names, result_names)
    return Module([main])


def _check_result(function: UserFunction, leaf: object, name: str) -> None:
    try:
        jax.typeof(leaf)
    except TypeError:
        title = f"`{name}` of `{function.name}` must be an array"
        label = f"it returns {leaf_text(leaf)}"
        help = "return arrays, in trees of any kind; filter a tree that contains others: `eqx.filter(tree, eqx.is_array)`"
        raise function.error(title, help, label=label) from None


def _check_captured(function: UserFunction, closed: ClosedJaxpr) -> None:
    """Raises Error for a captured tracer, whose value is not available when the program runs."""
    escaped = next((aval_text(jax.typeof(const)) for const in closed.consts if isinstance(const, Tracer)), None)
    if escaped is not None:
        help = "pass it as an argument; inside, a `custom_jvp` or `custom_vjp` function takes what is differentiated too"
        raise function.error(f"`{function.name}` closes over a value that is being traced, {escaped}", help)


def _check_effects(function: UserFunction, closed: ClosedJaxpr) -> None:
    """Raises Error for ordered effects, because their order is lost when the program is spread over devices."""
    ordered = [effect for effect in closed.effects if _is_ordered(effect)]
    if not ordered:
        return
    eqn = next(with_effect(closed.jaxpr, _is_ordered), None)
    location = None if eqn is None else source_line_of(Origin(eqn.source_info)).location()
    kind = type(ordered[0]).__name__
    raise Error(
        f"`{function.name}` has an ordered effect, {f'`{kind}`' if eqn is None else f'`{eqn.primitive.name}` (`{kind}`)'}",
        location=location or function.location(),
        label="runs in order with other effects",
        notes=["devices run their parts of a program independently, so their effects are unordered"],
        helps=["use the unordered form, such as `jax.debug.print(..., ordered=False)`"],
    )
