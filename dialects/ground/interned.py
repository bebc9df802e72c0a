"""Hash consing: equal terms are one object.

Ranges, layouts and meshes are compared and hashed millions of times and made a few hundred times. When equal terms are
the same object, equality is `is`, a hash is an address, and every memo table over them is cheap.
"""

from collections.abc import Callable, Mapping
from operator import index
from typing import Any, SupportsIndex, TypeVar, cast

_T = TypeVar("_T", bound="Interned")

# Terms are never freed: they are small, and even a large program has few distinct ones. Weak references would double the
# time to make one.
_made: dict[tuple[object, ...], Any] = {}


class Interned:
    """Base of the classes whose `__new__` is `return intern(cls, ...)`. Equality and hash are by identity.

    A subclass is `@dataclass(frozen=True, slots=True, eq=False, init=False)`. `check` validates its fields, once for each
    distinct term. Copying and unpickling return the same object.
    """

    __slots__ = ()
    __match_args__: tuple[str, ...]

    def check(self) -> None:
        """Raises `Error` if the fields do not fit together."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return type(self), tuple(getattr(self, name) for name in self.__match_args__)


def _plain(field: object) -> object:
    """Converts strings in a field to `str`, and integers to `int`: a term is kept for ever, and others print differently."""
    if type(field) in (int, bool):
        return field
    if isinstance(field, tuple):
        return tuple(map(_plain, cast("tuple[object, ...]", field)))
    if isinstance(field, str):
        return str.__str__(field)
    return index(cast(SupportsIndex, field)) if hasattr(field, "__index__") else field


# Any: the fields of terms are of all kinds.
def replaced(term: Any, by: Mapping[Any, Any]) -> Any:
    """A term, or a tuple of terms, with other terms in place of some that are in it.

    ```
    replaced(f32[data*64, 8], {data: data@left})   -->   f32[data@left*64, 8]
    ```
    """
    if isinstance(term, tuple):
        return tuple(replaced(part, by) for part in cast("tuple[object, ...]", term))
    if not isinstance(term, Interned):
        return term
    return by[term] if term in by else intern(type(term), *(replaced(getattr(term, each), by) for each in term.__match_args__))


def intern(cls: type[_T], *fields: object) -> _T:
    """Returns the one object of `cls` with these fields, given in the order of `__match_args__`."""
    key = (cls, *fields)
    found: _T | None = _made.get(key)
    if found is not None:
        return found
    fields = cast("tuple[object, ...]", _plain(fields))
    key = (cls, *fields)
    made = object.__new__(cls)
    for name, value in zip(cls.__match_args__, fields, strict=True):
        object.__setattr__(made, name, value)
    made.check()
    # Another thread may have made the same term in the meantime: the first one is kept.
    return _made.setdefault(key, made)
