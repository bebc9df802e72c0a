// What a reader does: to another step, into a fold, to where something is.
import type { Row } from "./data";
import { folds, inFold, movedFolds, opsOf, program } from "./model";
import { at, data, expanded, selection, step, tab, toggled } from "./state";

/** What a row is, by which it is found again in another step. */
const keyOf = (row: Row) => [row.kind, row.value, row.axes.join(), row.use, row.line, row.direction].join("|");

export function go(to: number) {
  const next = Math.max(0, Math.min(data.steps.length - 1, to));
  if (next === at.value) return;
  const chosen = selection.value;
  const [from, into] = [step.value, data.steps[next]];
  if (chosen?.what === "row") {
    const found = into.sent.findIndex((each) => keyOf(each) === keyOf(from.sent[chosen.row]));
    selection.value = found < 0 ? null : { what: "row", row: found };
  } else if (from.program !== into.program) selection.value = null;
  if (from.program !== into.program) expanded.value = movedFolds(expanded.value, from.program, into.program);
  at.value = next;
}

export function toggle(fold: number) {
  toggled.value = fold;
  const next = new Set(expanded.value);
  if (!next.delete(fold)) {
    next.add(fold);
    // A fold with nothing but one other fold in it is no step for a reader.
    for (let inner = fold; inFold(inner).length === 1 && !opsOf(inner).length; next.add(inner)) [inner] = inFold(inner);
  }
  expanded.value = next;
}

/** An op in the program, with all that is around it unfolded. */
export function showOp(op: number) {
  const fold = program().fold[op];
  reveal([fold]);
  expanded.value = new Set([...expanded.value, fold]);
  selection.value = { what: "op", op };
  tab.value = "Program";
}

/** Unfold all that is around some folds, so that they are visible. */
export function reveal(found: number[]) {
  const { parent } = folds();
  const next = new Set(expanded.value);
  for (const fold of found) for (let each = parent[fold]; each >= 0; each = parent[each]) next.add(each);
  expanded.value = next;
}
