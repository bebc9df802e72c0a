"""Nothing but `Price` compares costs: no other file of the compiler orders bytes, flops, seconds or collectives.

What is ordered is a cost if it is an attribute or a call of that name, is computed from such, or is a name that the function
assigns one to. What a function returns is followed within its file. A cost that comes in as a parameter is not seen.
"""

import ast
from collections.abc import Iterator

from root import ROOT

FILES = sorted(path for room in ("compiler", "dialects", "rewrites") for path in (ROOT / room).rglob("*.py"))
AMOUNTS = {"misses", "bytes", "nbytes", "flops", "seconds", "received", "collectives", "local_bytes", "home_bytes"}
OF_PLANS = {"bytes_per_device", "flops_per_device", "bytes_received", "peak_bytes", "bytes_ahead", "known_flops", "computed"}
COSTS = AMOUNTS | OF_PLANS
ORDERS = {"min", "max", "sorted", "sort", "nsmallest", "nlargest", "heappush", "insort"}
# Calls whose result is a cost if their argument is.
KEEPS = {"abs", "float", "int", "round", "sum", "min", "max", "map", "next", "prod"}

# Where prices are made, or paths are found: of these the fewest bytes count, then the fewest collectives.
HOME = "rewrites/decide/price.py", "rewrites/decide/place_by_cut.py", "rewrites/redistribute/"
# Other functions that compare costs, and why these decide nothing by them.
MEMORY = "memory is a limit, not a price"
TEXT = "the order of rows in a text"
MAIN = "which loops compute a good part of the program"
STORED = "what is stored between two loops costs bandwidth of memory, which no other choice does"
FILTER = "whether ops are tried at all; the cut then decides by `Price`"
NUMBERS = "what is a number or a key, and not an array"
NEEDED = {
    "compiler/advice/large_values.py:_frees": MEMORY,
    "compiler/advice/redundancy.py:silent": TEXT,
    "compiler/advice/redundancy.py:silent_rows": TEXT,
    "compiler/answers/expect.py:_heaviest": TEXT,
    "compiler/answers/summary.py:_ahead": "what a device holds ahead at once: of loops in each other, most",
    "compiler/answers/summary.py:_summary": TEXT,
    "compiler/cost/collectives.py:_of_one_device": "of the devices of several sets, one that receives most",
    "compiler/cost/loops.py:main_loops": MAIN,
    "compiler/cost/memory.py:_left_by": TEXT,
    "compiler/graph/graph.py:bytes_per_device": "of the devices of several sets, one that receives most",
    "compiler/graph/nodes.py:counted_collectives": "the bytes of a collective follow from the larger of its two sides",
    "compiler/graph/saved/file.py:written": "which arrays are in a file, and which beside it",
    "compiler/report/memory_timeline.py:json": TEXT,
    "compiler/shell/screen.py:_shown": TEXT,
    "compiler/structure/attention_keys.py:_smallest": "which of several values is the keys of an attention",
    "rewrites/decide/ahead.py:_held": MEMORY,
    "rewrites/decide/ahead.py:_started_ahead": MEMORY,
    "rewrites/decide/ahead.py:seconds_of": "an op takes as long as its flops do, or what it reads and writes",
    "rewrites/decide/choices.py:least": FILTER,
    "rewrites/decide/choices.py:price": FILTER,
    "rewrites/decide/deferred_reductions.py:growing": FILTER,
    "rewrites/decide/deferred_reductions.py:through": "of two minimum cuts of pending sums, that which costs less",
    "rewrites/decide/device_sets.py:is_number": NUMBERS,
    "rewrites/decide/device_sets.py:needs": "to which device set most bytes of a value go: all links between sets are alike",
    "rewrites/decide/free_ops.py:_computes_little": "what is free: an op that computes little may run on all devices",
    "rewrites/decide/in_memory.py:fits": MEMORY,
    "rewrites/decide/in_memory.py:within_memory": MEMORY,
    "rewrites/decide/in_memory.py:once": "what takes the least time for the memory that it frees",
    "rewrites/decide/live_ranges.py:_behind": MEMORY,
    "rewrites/decide/live_ranges.py:_settled": MEMORY,
    "rewrites/decide/loop_hoisting.py:_with_memory": MEMORY,
    "rewrites/decide/made_again.py:tried": "how far ops are followed; the ways are then compared by `Price`",
    "rewrites/laws/rule_laws.py:match": "which of several matches at one op a law means; nothing is placed then",
    "rewrites/lower/before_loops.py:keeps_more": MEMORY,
    "rewrites/lower/loop_schedule.py:_is_little": STORED,
    "rewrites/lower/loop_schedule.py:flops_of": "of the branches of an op, the flops of the one that computes the most",
    "rewrites/lower/loop_schedule.py:spreads": STORED,
}


def found() -> Iterator[str]:
    """Each comparison of costs, by its file and function."""
    for path in FILES:
        name = str(path.relative_to(ROOT))
        if not name.startswith(HOME):
            yield from (f"{name}:{function}" for function in comparing(ast.parse(path.read_text())))


def comparing(tree: ast.Module) -> Iterator[str]:
    """The functions of a file in which costs are ordered, once for each that does."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    returning, before = set(COSTS), 0
    while len(returning) != before:
        before = len(returning)
        returning |= {each.name for each in functions if returns_cost(each, returning)}
    return (each.name for each in functions if orders_costs(each, costs_in(each, returning)))


def returns_cost(function: ast.AST, named: set[str]) -> bool:
    """Whether a function returns or yields a cost."""
    named = costs_in(function, named)
    given = (node.value for node in ast.walk(function) if isinstance(node, ast.Return | ast.Yield))
    return any(is_cost(value, named) for value in given if value is not None)


def costs_in(function: ast.AST, named: set[str]) -> set[str]:
    """The names of costs, with those that the function gives to costs itself."""
    names, before = set(named), 0
    while len(names) != before:
        before = len(names)
        for node in ast.walk(function):
            match node:
                case ast.Assign(targets=targets, value=value) if is_cost(value, names):
                    names |= {each for target in targets for each in bound(target)}
                case ast.AnnAssign(target=target, value=ast.expr() as value) if is_cost(value, names):
                    names |= {*bound(target)}
                case (
                    ast.NamedExpr(target=target, value=value)
                    | ast.AugAssign(target=target, value=value)
                    | ast.For(target=target, iter=value)
                    | ast.comprehension(target=target, iter=value)
                ) if is_cost(value, names):
                    names |= {*bound(target)}
                case _:
                    pass
    return names


def bound(target: ast.expr) -> Iterator[str]:
    return (node.id for node in ast.walk(target) if isinstance(node, ast.Name))


def orders_costs(function: ast.AST, named: set[str]) -> bool:
    """Whether costs are compared, or are what something is ordered by."""
    for node in ast.walk(function):
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others):
                ordered = any(isinstance(each, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for each in ops)
                if ordered and any(is_cost(each, named) for each in (left, *others)):
                    return True
            case ast.Call(func=func, args=args, keywords=keywords) if called(func) in ORDERS:
                keys = [each.value for each in keywords if each.arg == "key"]
                if any(is_cost(each, named) for each in keys or args):
                    return True
            case _:
                pass
    return False


def called(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_cost(node: ast.expr, named: set[str]) -> bool:
    """Whether an expression is a cost, is computed from one, or has one among its elements."""
    match node:
        case ast.Attribute() | ast.Name():
            return called(node) in named
        case ast.Call(func=func, args=args):
            return called(func) in named or (called(func) in KEEPS and any(is_cost(each, named) for each in args))
        case ast.BinOp(left=left, right=right):
            return is_cost(left, named) or is_cost(right, named)
        case ast.UnaryOp(operand=inner) | ast.Starred(value=inner) | ast.NamedExpr(value=inner) | ast.Subscript(value=inner):
            return is_cost(inner, named)
        case ast.Lambda(body=inner) | ast.ListComp(elt=inner) | ast.SetComp(elt=inner) | ast.GeneratorExp(elt=inner):
            return is_cost(inner, named)
        case ast.IfExp(body=body, orelse=other):
            return is_cost(body, named) or is_cost(other, named)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.BoolOp(values=parts):
            return any(is_cost(each, named) for each in parts)
        case _:
            return False


def test_only_the_listed_functions_compare_costs() -> None:
    assert sorted(found()) == sorted(NEEDED)


def test_each_form_of_such_a_comparison_is_found() -> None:
    forms = """
def of_attributes(): return a.bytes < b.bytes
def of_a_call(): return self.received(a) >= 0
def of_what_is_computed(): return 2 * sum(each.flops for each in ops) > 1
def of_a_name():
    cost = before.seconds - after.seconds
    return cost > best
def of_an_element():
    for cost, name in [(each.bytes, each.name) for each in ways]:
        if cost < best: return name
def the_least(): return min(each.collectives for each in ways)
def by_a_key(): return sorted(ways, key=lambda each: (each.bytes, each.name))
def in_place(): ways.sort(key=attrgetter("name")); ways.sort(key=lambda each: -each.flops)
def own(way): return way.bytes * 2
def of_what_a_function_returns(): return max(map(own, ways))
def of_prices(): return before.price < after.price
def equal(): return a.bytes == b.bytes
def by_names(): return sorted(names) if min(names) > "a" else max(ways, key=lambda each: each.name)
def of_other_numbers(): return len(each.bytes) > 1
"""
    wanted = (
        "of_attributes",
        "of_a_call",
        "of_what_is_computed",
        "of_a_name",
        "of_an_element",
        "the_least",
        "by_a_key",
        "in_place",
    )
    assert [*comparing(ast.parse(forms))] == [*wanted, "of_what_a_function_returns"]
