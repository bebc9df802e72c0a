"""A second solver, cvc5, says of each step of a proof of a rule what Z3 says: its facts cannot hold at once."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import pytest

from partita.rewrites.proofs import lemmas, solver
from partita.rewrites.proofs.of_rules import programs, prove
from partita.rewrites.proofs.of_rules.laws import NOT_PROVED, PROGRAMS, every_law
from partita.rewrites.rules.rule import Rule

# cvc5 has no types.
cvc5: Any = import_module("cvc5")
EFFORT = "100000"
"""The resource limit of one question to cvc5."""
UNDECIDED = "sum_sum", "divide_last"
"""The laws of which cvc5 leaves a step open within this limit."""
LAWS = [(file, rule) for file, rule in every_law() if rule.name not in NOT_PROVED]


def second_answer(text: str) -> str:
    """What cvc5 says of facts in the common language of solvers (SMT-LIB)."""
    asked = cvc5.Solver(cvc5.TermManager())
    asked.setOption("rlimit-per", EFFORT)
    asked.setLogic("ALL")
    parser = cvc5.InputParser(asked)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text.replace("(check-sat)", ""), "law")
    while not (command := parser.nextCommand()).isNull():
        command.invoke(asked, parser.getSymbolManager())
    found = asked.checkSat()
    return "unsat" if found.isUnsat() else "sat" if found.isSat() else "unknown"


def said(facts: Iterable[Any]) -> str:
    """Facts in the common language of solvers."""
    asked = solver.z3.Solver()
    asked.add(*facts)
    return asked.to_smt2()


@pytest.mark.parametrize(("file", "rule"), [pytest.param(*law, id=law[1].name) for law in LAWS])
def test_what_z3_proves_of_a_rule_cvc5_proves_too(file: str, rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = dict[str, None]()

    def answer(facts: list[Any], effort: int = solver.EFFORT) -> tuple[str, Any]:
        found = solver.answer(facts, effort)
        if found[0] == "unsat":
            steps[said(facts)] = None
        return found

    for each in (prove, programs):
        monkeypatch.setattr(each, "answer", answer)
    assert (programs.prove_program(rule) if file == PROGRAMS else prove.prove(rule)).state == "proved"
    every = [second_answer(step) for step in steps]
    assert {*every} <= {"unsat", "unknown"}
    assert ("unknown" in every) == (rule.name in UNDECIDED)


@pytest.mark.parametrize("name", lemmas.LEMMAS)
def test_cvc5_proves_each_step_of_a_lemma(name: str) -> None:
    assert {second_answer(said(facts)) for facts in lemmas.LEMMAS[name]().values()} == {"unsat"}


def test_cvc5_is_asked_what_could_hold_too() -> None:
    n = solver.z3.Int("n")
    assert second_answer(said([n > 2, n * n == 49])) == "sat"
