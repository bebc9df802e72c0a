// The data of a page, as compiler/report writes it. Numbers refer to `texts`, `lines`, `layouts`, ops, values and folds.
import { gunzipSync, strFromU8 } from "fflate";

export interface Folds {
  kind: string[];
  text: number[];
  line: number[];
  parent: number[];
}

export interface Program {
  folds: Folds;
  fold: number[];
  kind: number[];
  reads: number[][];
  name: string[];
  maker: number[];
  line: number[];
  results: string[];
}

/** Its name, the op that makes what it moves, the ops that read the result, the bytes that a device receives in a call. */
export type Member = [number, number, number[], number];

export interface Row {
  value: number;
  kind: string;
  axes: string[];
  times: number;
  where: string;
  direction: string;
  use: number;
  line: number;
  /** Whether the line is that of the op that makes the value, and not of the op that needs it. */
  made: boolean;
  /** The numbers of the tactics that cause it; none for what the program alone needs. */
  tactics: number[];
  why: number;
  /** What a device receives in a call, of all members. */
  bytes: number;
  reasons: [number, number, number[]][];
  members: Member[];
}

export interface Way {
  tactic: number;
  first: boolean;
  bytes: number;
  flops: number;
  memory: number;
}

export interface Conflict {
  op: number;
  axis: string;
  line: number;
  at: number;
  claims: [number, number][];
  ways: Way[] | null;
}

export interface Stop {
  op: number;
  axis: string;
  value: number;
  reason: number;
  cure: number;
  line: number;
  bytes: number;
  flops: number;
  count: number;
}

export interface Excess {
  what: string;
  value: number;
  op: number;
  axes: string[];
  line: number;
  bytes: number;
  flops: number;
  count: number;
}

export interface Open {
  conflicts: Conflict[];
  stops: Stop[];
  excess: Excess[];
  wholes: { op: number; text: number; line: number }[];
  annotations: number;
}

export interface Stored {
  value: number;
  count: number;
  kind: string;
  form: string;
  line: number;
  bytes: number;
}

/** What is in it, its kind, its bytes, its first and its last time, the line that makes it. */
export type Bar = [number, string, number, number, number, number];

/** The loops in which ranges run, and the lines about what ends them and what later ones need. */
export interface Loops {
  /** Its name, how often it runs, its flops in all trips, and the bytes of its carries, of its stacks, and of those that loops read. */
  rows: [number, number, number, number, number, number][];
  notes: number[];
}

export interface Memory {
  bytes: number;
  arguments: number;
  results: number;
  temporaries: number;
  at: number;
  rows: Stored[];
  steps: number;
  peak: number;
  times: number[];
  series: Record<string, number[]>;
  running: number[];
  bars: Bar[];
  /** The trips of loops and the branches that take the time from a step to another one. */
  loops: [number, number, number][];
}

export interface KernelNode {
  kind: string;
  name: number;
  detail: number;
  count: number;
  bytes: number;
  axes: string[];
  /** The device sets that it is on: two of a transfer, none if the graph is on one set. */
  on: string[];
  type: number;
  /** The bytes on a device of what it reads and of what it makes; its arithmetic, if that is known. Of the first of those alike. */
  reads: number;
  makes: number;
  flops: number | null;
  sent: number[];
  line: number;
  scope: number;
}

export interface Kernels {
  /** The device sets, if there are several, and the axes of each, or of the mesh. */
  sets: string[];
  meshes: string[];
  nodes: KernelNode[];
  /** From, to, values, bytes on a device, layouts. */
  edges: [number, number, number, number, number][];
  issue: number[];
  /** Nodes that a device runs one after the other. */
  before: [number, number][];
  barriers: number;
}

export interface Step {
  tactic: string;
  number: number;
  mesh: [string, number][];
  counts: { always: Record<string, number>; in_branches: Record<string, number>; own: Record<string, number>; text: string };
  bytes: number;
  by_axes: [string[], number][];
  flops: number;
  unknown: string[];
  excess: number;
  /** The number of its program, which differs from that of the step before if a law rewrites it. */
  program: number;
  memory: Memory;
  loops: Loops;
  sent: Row[];
  open: Open;
  graph: Kernels | null;
  layouts: { values: number[]; layouts: number[] };
}

export interface Dim {
  extent: number;
  text: string;
  /** The axis, how many devices it has, how many elements lie between neighbouring ones. */
  factors: [string, number, number][];
  padded?: number;
  windows?: [number, number][];
}

export interface Layout {
  text: string;
  local: number[];
  bytes: number;
  dims: Dim[];
  pending: { text: string; axis: string }[];
}

export interface Data {
  name: string;
  mesh: [string, number][];
  whole: boolean;
  /** Of the page of a graph, which has no programs and no steps. */
  graph?: Kernels;
  programs: Program[];
  steps: Step[];
  layouts: Layout[];
  texts: string[];
  /** The place, the function, the code. */
  lines: [string, string, string][];
}

export function read(): Data {
  const packed = document.getElementById("partita-data")!.textContent!.trim();
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  return JSON.parse(strFromU8(gunzipSync(bytes))) as Data;
}
