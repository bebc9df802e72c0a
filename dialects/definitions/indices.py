"""The indices of a definition on given shapes: the extent of each variable, and which variables are the same index.

A guard and a `where` unify two variables into one index, or into a product of several:

    reshape f32[6, 4] to f32[2, 12]        src[(a b), c]  ->  out[a, (b c)]        extents 2, 3, 4
"""

from collections.abc import Iterator

from ..ground.errors import Error
from ..ranges.reshapes import refine_dims
from .dim_terms import DimSite, Sites
from .ground_form import Ids
from .syntax_tree import Apply, Group, Guard, Var, Whole, names

Key = tuple[str, int, int]
"""A variable: its name, the copy of the equation in which it is (0 if copies share it), and its number in its group."""


class Indices:
    """Numbers the indices. `sizes` has the indices' extents, `extents` the variables'."""

    def __init__(self, sites: Sites) -> None:
        self.sites = sites
        self.name = sites.definition.name
        self.extents: dict[Key, int] = {}
        self.found_in: dict[Key, str] = {}
        self.ids: dict[Key, Ids | None] = {}
        self.sizes: list[int] = []
        self.windowed = {key for site in sites.all for key in self.under_windows(site)}
        for name, values in sites.sized.items():
            self.extents |= {(name, 0, k): each for k, each in enumerate(values)}
        for site in sites.all:
            self.measure(site)
        for site in sites.all:
            self.measure_joins(site)
        if sites.definition.ravel is not None:
            self.ravel(*sites.definition.ravel)
        for guard in sites.definition.guards:
            self.unify(guard)

    def key(self, name: str, copy: int, component: int = 0) -> Key:
        return (*self.sites.scope(name, copy), component)

    def under_windows(self, site: DimSite) -> Iterator[Key]:
        """The variables of results that move a window.

        Even with extent 1 each of them is an index, so that it can be placed.
        """
        results = {name for target in self.sites.definition.targets for term in target.dims for name in names(term)}
        for number, component, _ in site.placed:
            if isinstance(term := site.terms[number], Apply):
                yield from (self.key(name, site.copy, component) for name in names(term) if name in results)

    def measure(self, site: DimSite) -> None:
        shape = self.sites.shape(site.array)
        for number, component, dim in site.placed:
            term = site.terms[number]
            match term:
                case Group((Var(name),)) | Whole(name):
                    key = self.key(name, site.copy, component)
                case _:
                    continue
            known = self.extents.get(key, 1)
            if isinstance(term, Group) and known != shape[dim] and 1 not in (known, shape[dim]):
                here, there = f"{shape[dim]} in dim {dim} of `{site.name}`", self.found_in.get(key, "elsewhere")
                raise Error(f"`{self.name}` does not fit: `{name}` has extent {known} {there}, and {here}")
            if known == 1 or shape[dim] != 1:
                self.extents[key] = shape[dim]
                self.found_in[key] = f"in dim {dim} of `{site.name}`"

    def measure_joins(self, site: DimSite) -> None:
        shape = self.sites.shape(site.array)
        for number, _, dim in site.placed:
            term = site.terms[number]
            if not isinstance(term, Group) or len(term.indices) == 1:
                continue
            known, missing = 1, None
            for key in [self.key(name, site.copy) for name in names(term)]:
                if key in self.extents:
                    known *= self.extents[key]
                else:
                    missing = key
            if missing is not None:
                # Zero times any number is zero.
                self.extents[missing] = shape[dim] // known if known else 1
                known *= self.extents[missing]
            if known != shape[dim]:
                factors = {name: self.extents[self.key(name, site.copy)] for name in names(term)}
                if missing is not None:
                    del factors[missing[0]]
                product = " * ".join(f"`{name}`" for name in factors), " * ".join(map(str, factors.values()))
                what = "not a multiple of" if missing is not None else "not"
                where = f"dim {dim} of `{site.name}` has extent {shape[dim]}"
                raise Error(f"`{self.name}` does not fit: {where}, which is {what} {' = '.join(product)}")

    def keys(self, group: str, copy: int = 0) -> list[Key]:
        return [self.key(group, copy, k) for k in range(self.sites.lengths.get(self.sites.scope(group, copy), 0))]

    def group_extents(self) -> dict[tuple[str, int], tuple[int, ...]]:
        found: dict[tuple[str, int], tuple[int, ...]] = {}
        for (name, copy, component), extent in sorted(self.extents.items()):
            known = found.get((name, copy), ())
            found[name, copy] = known + (1,) * (component - len(known)) + (extent,)
        return found

    def new(self, extent: int) -> int:
        self.sizes.append(extent)
        return len(self.sizes) - 1

    def of(self, key: Key) -> Ids | None:
        """The indices of a variable's component; None if it cannot be partitioned."""
        if key not in self.ids:
            extent = self.extents.get(key, 1)
            self.ids[key] = () if extent == 1 and key not in self.windowed else (self.new(extent),)
        return self.ids[key]

    def ravel(self, left: str, right: str) -> None:
        """Solves `ravel(i..) = ravel(j..)` by common refinement: equal blocks of the row-major order are equal indices."""
        lefts, rights = self.keys(left), self.keys(right)
        factors = refine_dims([self.extents.get(k, 1) for k in lefts], [self.extents.get(k, 1) for k in rights])
        numbers: dict[int, int] = {}
        for key, parts in zip([*lefts, *rights], factors, strict=True):
            if parts is not None:
                for factor, extent in parts:
                    if factor not in numbers:
                        numbers[factor] = self.new(extent)
            self.ids[key] = None if parts is None else tuple(numbers[factor] for factor, _ in parts)

    def unify(self, guard: Guard) -> None:
        """Unifies the index of a window over the full extent, which cannot move and so starts at 0, with the array's index."""
        if guard.window is None:
            return
        assert self.sites.front is not None
        for number, start in enumerate(self.sites.front.starts):
            dim, window = self.key(guard.variable.name, 0, number), self.key(guard.window.name, 0, number)
            if self.extents.get(dim, 1) == self.extents.get(window, 1) and (start is None or self.sites.front.clamps):
                self.ids[window] = self.of(dim)
