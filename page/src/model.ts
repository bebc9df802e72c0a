// The program and its steps, as the views ask for them: always of the step that the slider is at.
import { computed } from "@preact/signals";
import { at, data, expanded, step, text } from "./state";
import type { Folds, Layout, Program, Row } from "./data";

/** A program with what is looked up in it often. */
interface Model {
  program: Program;
  folds: Folds;
  children: number[][];
  own: number[][];
  sizes: number[];
  made: number[][];
  /** The place of each op among those of its fold, and of each fold among those of the one around it. */
  order: number[];
  foldOrder: number[];
  named: Map<string, number>;
  firstResult: number;
}

function modelOf(program: Program): Model {
  const { folds } = program;
  const children: number[][] = folds.parent.map(() => []);
  const foldOrder = folds.parent.map((parent, fold) => (parent < 0 ? 0 : children[parent].push(fold) - 1));
  const own: number[][] = folds.parent.map(() => []);
  const order = program.fold.map((fold, op) => own[fold].push(op) - 1);
  const sizes = own.map((ops) => ops.length);
  for (let fold = folds.parent.length - 1; fold > 0; fold -= 1) sizes[folds.parent[fold]] += sizes[fold];
  const made: number[][] = program.kind.map(() => []);
  program.maker.forEach((op, value) => op >= 0 && made[op].push(value));
  const named = new Map(program.name.map((name, value) => [name, value]));
  return { program, folds, children, own, sizes, made, order, foldOrder, named, firstResult: program.kind.length - program.results.length };
}

const models: Model[] = [];
const modelAt = (number: number) => (models[number] ??= modelOf(data.programs[number]));

export const model = computed(() => modelAt(step.value.program));
export const program = () => model.value.program;
export const folds = () => model.value.folds;
export const inFold = (fold: number) => model.value.children[fold];
export const opsOf = (fold: number) => model.value.own[fold];
export const sizeOf = (fold: number) => model.value.sizes[fold];
export const makes = (op: number) => model.value.made[op];
export const reads = (op: number) => program().reads[op];
export const opCount = () => model.value.firstResult - program().kind.filter((kind) => text(kind) === "argument").length;

/** The layout of each value after each step. */
const layoutsOf: Int32Array[] = [];
data.steps.forEach((each, index) => {
  const same = index > 0 && data.steps[index - 1].program === each.program;
  const now = same ? layoutsOf[index - 1].slice() : new Int32Array(data.programs[each.program].name.length);
  each.layouts.values.forEach((value, place) => (now[value] = each.layouts.layouts[place]));
  layoutsOf.push(now);
});

export const layoutAt = (value: number, number: number): Layout => data.layouts[layoutsOf[number][value]];
export const layoutNow = (value: number): Layout => layoutAt(value, at.value);

/** The layout after the step before; in another program, of the value of this name, or the same one if there is none. */
export function layoutBefore(value: number): Layout {
  const then = at.value - 1;
  if (then < 0) return layoutNow(value);
  const number = data.steps[then].program;
  const there = number === step.value.program ? value : modelAt(number).named.get(program().name[value]);
  return there === undefined ? layoutNow(value) : data.layouts[layoutsOf[then][there]];
}

export function foldLabel(fold: number): string {
  return folds().kind[fold] === "program" ? data.name : text(folds().text[fold]);
}

/** A fold by its place in the program, which is the same in a program that a law has rewritten. */
function pathOf(number: number, fold: number): string {
  const { kind, text: texts, parent } = data.programs[number].folds;
  const path: string[] = [];
  for (let each = fold; each > 0; each = parent[each]) path.push(`${kind[each]} ${texts[each]}`);
  return path.join("\n");
}

/** The folds of one program as those of another. */
export function movedFolds(found: Iterable<number>, from: number, to: number): Set<number> {
  const wanted = new Set([...found].map((fold) => pathOf(from, fold)));
  const every = data.programs[to].folds.parent.map((_, fold) => fold);
  return new Set(every.filter((fold) => wanted.has(pathOf(to, fold))));
}

export function opLabel(op: number): string {
  const kind = text(program().kind[op]);
  if (kind === "argument") return program().name[makes(op)[0]] ?? kind;
  if (kind === "result") return program().results[op - model.value.firstResult];
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
  chip.bytes += bytes;
  chip.rows.add(at);
}

/** For each fold the collectives that its ops wait for, of all folds in it too. */
export const received = computed(() => {
  const { fold: of } = program();
  const { parent } = folds();
  const found: { times: number; bytes: number }[] = parent.map(() => ({ times: 0, bytes: 0 }));
  for (const row of step.value.sent)
    for (const [, maker, uses, bytes] of row.members) {
      const op = uses.length ? uses[0] : maker;
      for (let fold = op < 0 ? 0 : of[op]; fold >= 0; fold = parent[fold]) {
        found[fold].times += row.times;
        found[fold].bytes += bytes;
      }
    }
  return found;
});

/** The most ops, and the most folds, of one fold that are drawn; the others are drawn as one. */
export const MOST_OPS = 24;

export interface Box {
  id: string;
  fold: number;
  op: number;
  parent: number;
  inside: Chips;
  hidden: number;
  /** Where its ops are in the program, on average. */
  place: number;
}

export interface Flow {
  from: string;
  to: string;
  values: number;
  bytes: number;
  chips: Chips;
}

/** What stands for each op: itself, `o7`; the fold that hides it, `f3`; the rest of a fold with too many ops, `m3`. */
export const cut = computed(() => {
  const open = expanded.value;
  const { program, folds, order } = model.value;
  // What stands for all ops of a fold; nothing, if it is open.
  const standing: string[] = [open.has(0) ? "" : "f0"];
  for (let fold = 1; fold < folds.parent.length; fold += 1) {
    const parent = folds.parent[fold];
    const own = model.value.foldOrder[fold] < MOST_OPS ? (open.has(fold) ? "" : `f${fold}`) : `m${parent}`;
    standing[fold] = standing[parent] || own;
  }
  const of = program.fold.map((fold, op) => standing[fold] || (order[op] < MOST_OPS ? `o${op}` : `m${fold}`));
  const boxes = new Map<string, Box>();
  for (let op = 0; op < of.length; op += 1) {
    const id = of[op];
    const found = boxes.get(id);
    if (found) {
      found.hidden += 1;
      found.place += (op - found.place) / found.hidden;
      continue;
    }
    const fold = id[0] === "o" ? program.fold[op] : Number(id.slice(1));
    const parent = id[0] === "f" ? folds.parent[fold] : fold;
    boxes.set(id, { id, fold, op: id[0] === "o" ? op : -1, parent, inside: new Map(), hidden: 1, place: op });
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

/** How many open conflicts there are at the ops that each box stands for, and in each fold. */
export const conflicts = computed(() => {
  const { of } = cut.value;
  const { parent } = folds();
  const boxes = new Map<string, number>();
  const inside = new Map<number, number>();
  for (const { at: op } of step.value.open.conflicts) {
    if (op < 0) continue;
    boxes.set(of[op], (boxes.get(of[op]) ?? 0) + 1);
    for (let fold = program().fold[op]; fold >= 0; fold = parent[fold]) inside.set(fold, (inside.get(fold) ?? 0) + 1);
  }
  return { boxes, inside };
});

/** The collectives of a step, on the edges and in the boxes. */
export function chipsAt(number: number): { flows: Map<string, Chips>; boxes: Map<string, Chips> } {
  const { of, flows: every } = cut.value;
  const flows = new Map<string, Chips>();
  const boxes = new Map<string, Chips>();
  const into = (found: Map<string, Chips>, key: string) => found.get(key) ?? found.set(key, new Map()).get(key)!;
  data.steps[number].sent.forEach((row, index) => {
    for (const [, maker, uses, bytes] of row.members) {
      const use = uses.find((each) => maker >= 0 && every.has(`${of[maker]} ${of[each]}`));
      if (use !== undefined) addTo(into(flows, `${of[maker]} ${of[use]}`), index, row, bytes);
      else addTo(into(boxes, of[maker >= 0 ? maker : (uses[0] ?? 0)]), index, row, bytes);
    }
  });
  return { flows, boxes };
}

/** The boxes and the edges, with the collectives of this step. */
export const drawing = computed(() => {
  const chips = chipsAt(at.value);
  const boxes = [...cut.value.boxes].map(([id, box]): [string, Box] => [id, { ...box, inside: chips.boxes.get(id) ?? new Map() }]);
  const flows = [...cut.value.flows].map(([key, flow]): [string, Flow] => [key, { ...flow, chips: chips.flows.get(key) ?? new Map() }]);
  return { boxes: new Map(boxes), flows: new Map(flows) };
});

/** The steps that have the program of this one. */
const programNumber = computed(() => step.value.program);
export const stepsOfProgram = computed(() => data.steps.flatMap((each, number) => (each.program === programNumber.value ? [number] : [])));

// The numbers that tell layers apart, as compiler/views/listing.py takes them.
const NUMBER = /(?<=\/)(?<!^result\/)\d+(?=\/)|(?<=#)\d+|(?<=[A-Za-z]_)\d+(?=\/)/g;
export const starred = (name: string) => name.replace(NUMBER, "*");

/** A sentence with the numbers of layers left out of the names in it. */
export const starredIn = (said: string) => said.split("`").map((part, index) => (index % 2 ? starred(part) : part)).join("`");

/** Those with the same key together, in the order of the first ones: what repeats in 12 equal layers is one. */
export function alike<T>(items: Iterable<T>, key: (item: T) => string): T[][] {
  const found = new Map<string, T[]>();
  for (const item of items) {
    const at = key(item);
    const some = found.get(at);
    if (some) some.push(item);
    else found.set(at, [item]);
  }
  return [...found.values()];
}

/** Names for a tactic, the longest first: `DataParallel · data`, `DataParallel`. */
export function tacticNames(tactic: string): string[] {
  const name = tactic.split("(")[0];
  const on = /^on\(.*, (\w+=\d+)\)$/.exec(tactic)?.[1];
  if (on) return [`on ${on}`, "on"];
  const axis = data.mesh.map(([each]) => each).find((each) => new RegExp(`['"]${each}[.'"]`).test(tactic));
  const stage = /stage=(\d)/.exec(tactic)?.[1];
  const short = `${name}${stage ? `-${stage}` : ""}`;
  return [`${short}${axis ? ` · ${axis}` : ""}`, short];
}

/** The words of a search, and whether a text has all of them. */
export const wordsOf = (search: string) => search.toLowerCase().split(/\s+/).filter(Boolean);
export const hasAll = (said: string, words: string[]) => words.every((word) => said.includes(word));

/** The op that makes a value, or takes it as a result; of the values of equal layers, that of the first one; -1 if there is none. */
const makers = computed(() => {
  const { program, firstResult } = model.value;
  const found = new Map<string, number>();
  const add = (name: string, op: number) => {
    for (const each of [name, starred(name)]) if (op >= 0 && !found.has(each)) found.set(each, op);
  };
  program.name.forEach((name, value) => add(name, program.maker[value]));
  program.results.forEach((name, number) => add(name, firstResult + number));
  return found;
});

export const makerOf = (name: string) => makers.value.get(name) ?? -1;
