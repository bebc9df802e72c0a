"""`pt.tactics_from`: tactics from a config file in TOML.

[[tactics]]                               plan = '''
name = "DataParallel"                     DataParallel("data")
axis = "data"                             tile params/w1.1 @model
                                          '''
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn, cast

from ...dialects.ground.errors import Error, Location, did_you_mean, relocated
from ...dialects.ground.validation import checked, shown
from ..inputs.files import path_of
from ..inputs.tactic_calls import NESTS, Call
from ..inputs.toml_files import Config, Keys, value_at
from ..notation.diagnostics import Text
from .notation import load
from .notation_plans import steps_in
from .plan import Tactic
from .tactic_text import Located, is_tactic, tactic_of

PARTS = ("plan", "tactics")
"""The keys of a table that holds tactics. A table has one of them."""
MOST_TABLES = 3
"""The most tables that an error lists."""


@checked
def tactics_from(file: str | Path, table: str = "") -> tuple[Tactic, ...]:
    """The tactics of a config file, for `pt.jit` and `plan.apply`.

    A TOML file has `tactics`, a list of tables, each with the `name` of a tactic and its arguments; or `plan`, the text of a
    `plan` block. They may stand in a `table` of a file that holds more. A plan file, `*.partita`, has a plan; of several,
    `table` is the name of one.

    Raises Error, at its place, for what is no TOML, an unknown name, and an argument that the tactic does not take; and where
    a tactic is refused by a plan.

        tactics_from("strategy.toml")            [[tactics]]   name = "ZeRO"   stage = 3   axis = "data"   params = "params"
        tactics_from("train.toml", "partition")  [partition]   plan = "DataParallel('data'); tile params/w1.1 @model"
    """
    if path_of(file, example="strategy.toml").suffix == ".partita":
        return load(file).tactics(table or None)
    config = Config.read(file)
    keys = config.table(table)
    part = _tactics_key(config, keys, cast("Mapping[str, object]", value_at(config.values, keys)))
    given = value_at(config.values, (*keys, part))
    if part == "plan" and isinstance(given, str):
        return steps_in(Text(*config.block((*keys, part))))
    if part == "plan":
        _fail(config, (*keys, part), f"`plan` takes the text of a `plan` block, got {shown(given)}", "write plan = '''...'''")
    if not isinstance(given, list):
        title = f"`tactics` takes a list of tables, got {shown(given)}"
        _fail(config, (*keys, part), title, 'begin each tactic with [[tactics]], and give its name = "ZeRO" and arguments')
    return tuple(_tactic(config, (*keys, part, number)) for number in range(len(cast("list[object]", given))))


def _tactics_key(config: Config, keys: tuple[str, ...], values: Mapping[str, object]) -> str:
    """Returns the key under which a table holds tactics. Raises Error for none, for both, and for any other key."""
    for key in values:
        if key not in PARTS:
            title = f"`{key}` is neither `plan` nor `tactics`"
            if holding := [*_holding(values, keys)]:
                calls = [f'pt.tactics_from("{config.file}", "{each}")' for each in holding[:MOST_TABLES]]
                _fail(config, (*keys, key), title, f"name the table that has them: {' or '.join(calls)}")
            apart = (
                f'tactics in a file that holds more have a table of their own: pt.tactics_from("{config.file}", "partition")'
            )
            _fail(config, (*keys, key), title, *did_you_mean(key, PARTS, apart))
    if len(values) > 1:
        title = f"`{config.file}` has both `plan` and `tactics`, and does not say which comes first"
        _fail(config, (*keys, PARTS[1]), title, "write all of them in one of the two")
    if not values:
        title = f"`{config.file}` has no tactics" + (f" in `{'.'.join(keys)}`" if keys else "")
        _fail(config, keys, title, "write plan = '''...''', or [[tactics]] with a name and arguments for each")
    return next(iter(values))


def _holding(values: Mapping[str, object], keys: tuple[str, ...]) -> Iterator[str]:
    """Yields the names of the tables inside of a table that hold tactics."""
    for key, inside in values.items():
        if isinstance(inside, dict) and not inside.keys().isdisjoint(PARTS):
            yield ".".join((*keys, key))
        elif isinstance(inside, dict):
            yield from _holding(cast("Mapping[str, object]", inside), (*keys, key))


def _tactic(config: Config, keys: Keys) -> Tactic:
    """Makes the tactic that one table describes."""

    def moved(error: Error) -> Error:
        return relocated(error, _place(config, keys, error))

    call = _call(config, keys)
    try:
        return Located(str(call), tactic_of(call), moved)
    except Error as error:
        raise moved(error) from None


def _call(config: Config, keys: Keys) -> Call:
    """Reads a table as a call. The argument `tactic` of `at` is a table too."""
    table = value_at(config.values, keys)
    if not isinstance(table, dict):
        title = f"a tactic is a table with its name and its arguments, got {shown(table)}"
        _fail(config, keys, title, 'write {name = "DataParallel", axis = "data"}')
    given = dict(cast("Mapping[str, object]", table))
    name = given.pop("name", None)
    if not isinstance(name, str):
        title = "a tactic has no `name`" if name is None else f"`name` takes the name of a tactic, got {shown(name)}"
        meant = next((each for each in given.values() if is_tactic(each)), "DataParallel")
        _fail(config, (*keys, *(["name"] if name is not None else [])), title, f'write name = "{meant}"')
    if name == NESTS and isinstance(given.get("tactic"), dict):
        given["tactic"] = _call(config, (*keys, "tactic"))
    return Call(name, (), given)


def _place(config: Config, keys: Keys, error: Error) -> Location | None:
    """Finds the argument that an error's title is about, by its name, its value or its type; otherwise the tactic's name."""
    title, arguments = error.title, [*_arguments(keys, value_at(config.values, keys))]
    said = re.findall("`([^`]+)`", title)
    word = re.compile("|".join(rf"(?<![\w/]){re.escape(name)}(?![\w/])" for name in said) or "(?!)")
    of = [
        *(path for name in said for path, _ in arguments if path[-1] == name),
        *(path for path, value in arguments if word.search(f"{path[-1]} {value}") or title.endswith(f"got {shown(value)}")),
    ]
    found = config.location(of[0] if of else (*keys, "name"))
    return found and found.narrowed(title)


def _arguments(keys: Keys, table: object) -> Iterator[tuple[Keys, object]]:
    """Yields the arguments of a table and of the tables in it, each with its keys."""
    for key, value in cast("Mapping[str, object]", table).items() if isinstance(table, dict) else ():
        inside = cast("dict[str, object]", value) if isinstance(value, dict) else None
        yield (*keys, key), value if inside is None else ""
        yield from _arguments((*keys, key), inside)


def _fail(config: Config, keys: Keys, title: str, *helps: str) -> NoReturn:
    """Raises an Error at a value of the file."""
    found = config.location(keys)
    raise Error(title, location=found and found.narrowed(title), helps=helps)
