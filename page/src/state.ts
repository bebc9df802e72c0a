// What the reader has chosen. Everything on the page is computed from this and from the data.
import { computed, effect, signal } from "@preact/signals";
import { read } from "./data";

export const data = read();
export const text = (number: number) => data.texts[number] ?? "";

export const TABS = ["Program", "Collectives", "Layouts", "Conflicts & stops", "Memory", "Kernels"] as const;
export type Tab = (typeof TABS)[number];

export type Selection =
  | { what: "row"; row: number; member?: number }
  | { what: "fold"; fold: number }
  | { what: "op"; op: number }
  | { what: "edge"; from: string; to: string }
  | null;

export const at = signal(data.steps.length - 1);
export const tab = signal<Tab>("Program");
export const selection = signal<Selection>(null);
export const expanded = signal<ReadonlySet<number>>(new Set([0]));
export const search = signal("");
export const arrays = signal("");
export const chosenValue = signal(-1);

export const step = computed(() => data.steps[at.value]);
export const before = computed(() => (at.value > 0 ? data.steps[at.value - 1] : null));

export function go(to: number) {
  const next = Math.max(0, Math.min(data.steps.length - 1, to));
  if (next === at.value) return;
  const old = selection.value;
  // The rows of another step are others, so a chosen one is found again by what it is.
  const row = old?.what === "row" ? step.value.sent[old.row] : null;
  const key = row && [row.kind, row.value, row.axes.join(), row.use, row.line].join("|");
  at.value = next;
  if (row) {
    const found = data.steps[next].sent.findIndex(
      (each) => [each.kind, each.value, each.axes.join(), each.use, each.line].join("|") === key,
    );
    selection.value = found < 0 ? null : { what: "row", row: found };
  }
}

export function toggle(fold: number) {
  const next = new Set(expanded.value);
  const { parent } = data.program.folds;
  if (!next.delete(fold)) {
    next.add(fold);
    // A fold with nothing but one other fold in it is no step for a reader.
    for (let inner = onlyFold(fold); inner >= 0; inner = onlyFold(inner)) next.add(inner);
  }
  expanded.value = next;

  function onlyFold(outer: number) {
    if (data.program.fold.includes(outer)) return -1;
    const first = parent.indexOf(outer);
    return first >= 0 && parent.lastIndexOf(outer) === first ? first : -1;
  }
}

/** Unfold all that is around a fold, so that it is visible. */
export function reveal(folds: number[]) {
  const { parent } = data.program.folds;
  const next = new Set(expanded.value);
  for (const fold of folds) for (let each = parent[fold]; each >= 0; each = parent[each]) next.add(each);
  expanded.value = next;
}

type Theme = "light" | "dark";
const system = window.matchMedia("(prefers-color-scheme: dark)");
const asked = signal<Theme | null>(null);
const preferred = signal<Theme>(system.matches ? "dark" : "light");
system.addEventListener("change", () => (preferred.value = system.matches ? "dark" : "light"));
export const theme = computed(() => asked.value ?? preferred.value);
export const otherTheme = () => (asked.value = theme.value === "dark" ? "light" : "dark");
effect(() => {
  document.documentElement.dataset.theme = theme.value;
});
