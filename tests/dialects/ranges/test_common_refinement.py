"""Refinement and the divisibility chain against all factorisations of small extents."""

import itertools
import math
from functools import cache

import pytest
from tiles import fits

from partita.dialects.ground.errors import Error
from partita.dialects.ranges.algebra import refine


@cache
def factorisations(n: int) -> tuple[tuple[int, ...], ...]:
    """Every way to write `n` as an ordered product of factors above 1."""
    if n == 1:
        return ((),)
    return tuple((d, *rest) for d in range(2, n + 1) if n % d == 0 for rest in factorisations(n // d))


def refines(fine: tuple[int, ...], coarse: tuple[int, ...]) -> bool:
    """Whether each factor of `coarse` is the product of the next few factors of `fine`."""
    left = list(fine)
    for factor in coarse:
        have = 1
        while have < factor and left:
            have *= left.pop(0)
        if have != factor:
            return False
    return not left


@pytest.mark.parametrize("n", [1, 2, 4, 6, 8, 12, 24, 30, 36])
def test_two_factorisations_have_a_refinement_iff_their_partial_products_form_a_chain(n: int):
    for p, q in itertools.product(factorisations(n), repeat=2):
        common = [f for f in factorisations(n) if refines(f, p) and refines(f, q)]
        expected = list(min(common, key=len)) if common else None
        assert refine(p, q) == expected
        partial = sorted({math.prod(f[i:]) for f in (p, q) for i in range(len(f) + 1)})
        assert bool(common) == all(b % a == 0 for a, b in itertools.pairwise(partial))


def test_units_do_not_matter_and_zero_refines_only_itself():
    assert refine([1, 12, 1], [3, 1, 4]) == [3, 4]
    assert refine([], [1, 1]) == []
    assert refine([2, 0], [2, 0]) == [2, 0]
    assert refine([2, 0], [0, 3]) is None


def test_factorisations_of_different_extents_are_an_error():
    with pytest.raises(Error, match="do not factor one extent"):
        refine([2, 3], [5])


@pytest.mark.parametrize("n", [1, 2, 6, 8, 12, 24])
def test_tiles_fit_an_extent_iff_they_are_factors_of_one_product(n: int):
    products = [{(math.prod(f[i + 1 :]), f[i]) for i in range(len(f))} for f in factorisations(n)]
    tiles = [(stride, count) for stride in range(1, n + 1) for count in range(2, n + 2)]
    for some in [(), *((tile,) for tile in tiles), *itertools.combinations(tiles, 2)]:
        assert fits(n, some) == any(set(some) <= product for product in products)


def test_nothing_tiles_an_empty_extent():
    assert fits(0, []) and not fits(0, [(1, 2)]) and not fits(4, [(0, 2)])
