// The program and its steps, as the views ask for them.
import { computed } from "@preact/signals";
import { data, expanded, step, text } from "./state";
import type { Row } from "./data";

const { program } = data;
export const folds = program.folds;

const childFolds: number[][] = folds.parent.map(() => []);
folds.parent.forEach((parent, fold) => parent >= 0 && childFolds[parent].push(fold));
const ownOps: number[][] = folds.parent.map(() => []);
program.fold.forEach((fold, op) => ownOps[fold].push(op));
const sizes = ownOps.map((ops) => ops.length);
for (let fold = folds.parent.length - 1; fold > 0; fold -= 1) sizes[folds.parent[fold]] += sizes[fold];

export const inFold = (fold: number) => childFolds[fold];
export const opsOf = (fold: number) => ownOps[fold];
export const sizeOf = (fold: number) => sizes[fold];
export const opCount = program.kind.length - data.program.results.length - program.kind.filter((kind) => text(kind) === "argument").length;

const made: number[][] = program.kind.map(() => []);
program.maker.forEach((op, value) => op >= 0 && made[op].push(value));
export const makes = (op: number) => made[op];
export const reads = (op: number) => program.reads[op];

/** The layout of each value after each step. */
const layoutsOf: Int32Array[] = [];
for (const each of data.steps) {
  const now = layoutsOf.length ? layoutsOf[layoutsOf.length - 1].slice() : new Int32Array(program.name.length);
  each.layouts.values.forEach((value, index) => (now[value] = each.layouts.layouts[index]));
  layoutsOf.push(now);
}
export const layoutAt = (at: number, value: number) => data.layouts[layoutsOf[at][value]];

export function foldLabel(fold: number): string {
  return folds.kind[fold] === "program" ? data.name : text(folds.text[fold]);
}

export function opLabel(op: number): string {
  const kind = text(program.kind[op]);
  if (kind === "argument") return program.name[made[op][0]] ?? kind;
  if (kind === "result") return program.results[op - (program.kind.length - program.results.length)];
  return kind;
}

export function line(number: number) {
  return number < 0 ? null : data.lines[number];
}

/** Collectives of one kind over the same axes, on an edge or in a fold. */
export interface Chip {
  kind: string;
  axes: string[];
  times: number;
  bytes: number;
  rows: Set<number>;
}

export type Chips = Map<string, Chip>;

export function addTo(chips: Chips, at: number, row: Row, bytes: number) {
  const key = `${row.kind} ${row.axes.join()}`;
  let chip = chips.get(key);
  if (!chip) chips.set(key, (chip = { kind: row.kind, axes: row.axes, times: 0, bytes: 0, rows: new Set() }));
  chip.times += row.times;
  chip.bytes += row.times * bytes;
  chip.rows.add(at);
}

/** For each fold the collectives that its ops wait for, of all folds in it too. */
export const received = computed(() => {
  const found: { times: number; bytes: number }[] = folds.parent.map(() => ({ times: 0, bytes: 0 }));
  for (const row of step.value.sent)
    for (const [, maker, uses, bytes] of row.members) {
      const op = uses.length ? uses[0] : maker;
      for (let fold = op < 0 ? 0 : program.fold[op]; fold >= 0; fold = folds.parent[fold]) {
        found[fold].times += row.times;
        found[fold].bytes += row.times * bytes;
      }
    }
  return found;
});

/** The most ops of one fold that are drawn; the others are drawn as one. */
export const MOST_OPS = 24;

export interface Box {
  id: string;
  fold: number;
  op: number;
  parent: number;
  inside: Chips;
  hidden: number;
}

export interface Flow {
  from: string;
  to: string;
  values: number;
  bytes: number;
  chips: Chips;
}

const order: number[] = new Array(program.kind.length);
for (const ops of ownOps) ops.forEach((op, index) => (order[op] = index));

/** What stands for each op: itself, `o7`; the fold that hides it, `f3`; the rest of a fold with too many ops, `m3`. */
export const cut = computed(() => {
  const open = expanded.value;
  const shown: number[] = [0];
  for (let fold = 1; fold < folds.parent.length; fold += 1) {
    const parent = folds.parent[fold];
    shown[fold] = shown[parent] === parent && open.has(parent) ? fold : shown[parent];
  }
  const standing = (op: number): string => {
    const fold = program.fold[op];
    if (shown[fold] !== fold || !open.has(fold)) return `f${shown[fold]}`;
    return order[op] < MOST_OPS ? `o${op}` : `m${fold}`;
  };
  const of: string[] = new Array(program.kind.length);
  for (let op = 0; op < of.length; op += 1) of[op] = standing(op);
  const boxes = new Map<string, Box>();
  for (let op = 0; op < of.length; op += 1) {
    const id = of[op];
    const found = boxes.get(id);
    if (found) {
      found.hidden += 1;
      continue;
    }
    const fold = id[0] === "o" ? program.fold[op] : Number(id.slice(1));
    const parent = id[0] === "f" ? folds.parent[fold] : fold;
    boxes.set(id, { id, fold, op: id[0] === "o" ? op : -1, parent, inside: new Map(), hidden: 1 });
  }
  const flows = new Map<string, Flow>();
  for (let op = 0; op < of.length; op += 1) {
    for (const value of program.reads[op]) {
      const maker = program.maker[value];
      if (maker < 0 || of[maker] === of[op]) continue;
      const key = `${of[maker]} ${of[op]}`;
      let flow = flows.get(key);
      if (!flow) flows.set(key, (flow = { from: of[maker], to: of[op], values: 0, bytes: 0, chips: new Map() }));
      flow.values += 1;
    }
  }
  return { of, boxes, flows };
});

/** The same, with the collectives of the step on the edges and in the boxes. */
export const drawing = computed(() => {
  const { of, boxes, flows } = cut.value;
  for (const box of boxes.values()) box.inside = new Map();
  for (const flow of flows.values()) flow.chips = new Map();
  step.value.sent.forEach((row, at) => {
    for (const [, maker, uses, bytes] of row.members) {
      const use = uses.find((each) => maker >= 0 && flows.has(`${of[maker]} ${of[each]}`));
      const flow = use === undefined ? undefined : flows.get(`${of[maker]} ${of[use]}`);
      const box = boxes.get(of[maker >= 0 ? maker : (uses[0] ?? 0)]);
      if (flow) addTo(flow.chips, at, row, bytes);
      else if (box) addTo(box.inside, at, row, bytes);
    }
  });
  return { boxes: new Map(boxes), flows: new Map(flows) };
});
