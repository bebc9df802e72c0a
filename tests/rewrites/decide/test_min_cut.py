"""A minimum cut is the cheapest of all cuts, and among equals the one nearest the source."""

from itertools import combinations

from hypothesis import given, strategies as st

from partita.rewrites.decide.min_cut import ENDLESS, Network

Edges = list[tuple[int, int, int]]

NODES = range(6)
SOURCE, SINK = 0, 5
ALWAYS = ENDLESS

edges = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from([0, 1, 2, 3, 4, ALWAYS])), max_size=16)


def price(side: set[int], graph: Edges) -> int:
    return sum(capacity for start, end, capacity in graph if start in side and end not in side)


def cuts() -> list[set[int]]:
    """All sets of nodes with the source and without the sink."""
    inner = [node for node in NODES if node not in (SOURCE, SINK)]
    return [{SOURCE, *some} for size in range(len(inner) + 1) for some in combinations(inner, size)]


@given(edges)
def test_a_cut_is_the_smallest_of_the_cheapest(graph: Edges):
    network = Network()
    for start, end, capacity in graph:
        if start != end:
            network.edge(start, end, capacity)
    found = network.source_side(SOURCE, SINK)
    cheapest = min(price(side, graph) for side in cuts())
    assert found == min((side for side in cuts() if price(side, graph) == cheapest), key=len)


def test_each_of_many_sources_is_cut_at_its_own_price():
    network = Network()
    for source in range(2000):
        network.edge("source", source)
        network.edge(source, (source, "kept"), 1)
        network.edge((source, "kept"), "sink")
        network.edge((source, "kept"), "sum")
    network.edge("sum", "sink", 5000)
    assert network.source_side("source", "sink") == {"source", *range(2000)}


def test_a_sum_of_a_thousand_terms_is_cut_once_behind_the_last():
    network = Network()
    for number in range(1000):
        network.edge("source", ("term", number))
        network.edge(("term", number), ("sum", number), 2)
        network.edge(("sum", number), ("sum", number + 1), 7)
        network.edge(("sum", number), ("term", number))
    network.edge(("sum", 1000), "sink")
    terms = {("term", number) for number in range(1000)}
    assert network.source_side("source", "sink") == {"source", *terms, *(("sum", number) for number in range(1000))}
