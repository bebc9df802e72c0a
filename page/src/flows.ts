// Where the nodes of the dataflow graph go: in lanes, one for each device set, or in lines, as a text, if there is one set.
import { computed, signal } from "@preact/signals";
import type { KernelNode, Kernels as Graph } from "./data";
import { data, step, text } from "./state";
import { bytes, count } from "./units";

const MOST = data.graph ? 600 : 150;
export const HEIGHT = 42;
const ACROSS = 30;
const DOWN = 36;
/** The width of a character of a title, and of what is below it. */
const WIDE = 7.3;
const SMALL = 6.1;

/** The node that is chosen, and the one that is pointed at. */
export const chosen = signal(-1);
export const pointed = signal(-1);
/** Whether arguments and results are drawn. */
export const outside = signal(false);

function shorten(said: string, most: number) {
  return said.length > most ? `${said.slice(0, most - 1)}…` : said;
}

export const isOutside = (node: KernelNode) => node.kind === "argument" || node.kind === "result";
const crosses = (node: KernelNode) => node.kind === "transfer";
export const sends = (node: KernelNode) => node.kind === "redistribute" || crosses(node);

export function title(node: KernelNode): string {
  const name = crosses(node) ? node.on.join(" → ") : sends(node) ? text(node.detail) || "moved on each device" : text(node.name);
  return shorten(name, 34) + (node.count > 1 ? ` × ${count(node.count)}` : "");
}

export const subtitle = (node: KernelNode) =>
  sends(node) ? (node.bytes ? bytes(node.bytes) : "nothing is sent") : shorten(text(node.detail) || text(node.type), 38);

/** The device set of a node, where it does not lie in a lane of that, as the beginning of a line. */
export const where = (node: KernelNode) => (node.on.length === 1 && !isOutside(node) ? `${node.on[0]}: ` : "");

export interface Drawn {
  node: KernelNode;
  at: number;
  x: number;
  y: number;
  width: number;
  /** The number of its line, or of its lanes. */
  row: number;
}

export interface Flow {
  from: Drawn;
  to: Drawn;
  values: number;
  bytes: number;
  type: number;
  /** Whether nothing that the node reads is issued later: the others pass behind. */
  last: boolean;
}

export interface Lane {
  set: number;
  y: number;
}

interface Flows {
  graph: Graph;
  items: Drawn[];
  links: Flow[];
  lanes: Lane[];
  width: number;
  height: number;
}

function widthOf(node: KernelNode) {
  return Math.max(title(node).length * WIDE, subtitle(node).length * SMALL) + (sends(node) ? 34 + node.axes.length * 6 : 22);
}

const drawn = (graph: Graph) =>
  graph.nodes
    .map((node, index): Drawn => ({ node, at: index, x: 0, y: 0, width: widthOf(node), row: 0 }))
    .filter(({ node }) => outside.value || !isOutside(node))
    .slice(0, MOST);

/** How wide the drawing is, so that it is by so much wider than high. */
const mostOf = (items: Drawn[], least: number, high: number, aspect: number) =>
  Math.max(least, Math.sqrt(items.reduce((sum, item) => sum + item.width + ACROSS, 0) * high * aspect));

/** The nodes in lines, because they are issued one after another. */
function inLines(graph: Graph): Flows {
  const items = drawn(graph);
  const most = mostOf(items, 700, HEIGHT + DOWN, 3.5);
  let x = 0;
  let row = 0;
  for (const item of items) {
    if (x && x + item.width > most) {
      x = 0;
      row += 1;
    }
    Object.assign(item, { x, row, y: row * (HEIGHT + DOWN) });
    x += item.width + ACROSS;
  }
  const width = Math.max(200, ...items.map((item) => item.x + item.width));
  return { graph, items, links: flows(graph, items), lanes: [], width, height: row * (HEIGHT + DOWN) + HEIGHT };
}

/** How wide the names of the lanes are. */
export const besides = (graph: Graph) => 24 + Math.max(...graph.sets.map((set, index) => Math.max(set.length * WIDE, graph.meshes[index].length * SMALL)));

/**
 * The nodes in lanes: one to the right of all that it waits for, and none to the left of one that is issued before. A transfer
 * lies in the lane of the set that receives. What is too wide goes on below, as notes do.
 */
function inLanes(graph: Graph): Flows {
  const items = drawn(graph);
  const placed = new Map(items.map((item) => [item.at, item]));
  const waits: number[][] = graph.nodes.map(() => []);
  for (const [from, to] of graph.edges) if (from < to) waits[to].push(from);
  for (const [from, to] of graph.before) if (from < to && !crosses(graph.nodes[from])) waits[to].push(from);
  const high = graph.sets.length * (HEIGHT + DOWN);
  const most = mostOf(items, 1300, high, 1.8);
  const left = besides(graph);
  const ends = graph.sets.map(() => 0);
  /** Where each node ends if all were in one row. */
  const until: number[] = [];
  let [start, base, row] = [0, 0, 0];
  for (const item of items) {
    const lane = Math.max(0, graph.sets.indexOf(item.node.on.at(-1) ?? ""));
    const x = Math.max(start, ends[lane], ...waits[item.at].map((before) => (placed.has(before) ? until[before] : 0)));
    if (x > base && x + item.width - base > most) {
      base = x;
      row += 1;
    }
    Object.assign(item, { x: left + x - base, row, y: row * (high + DOWN) + lane * (HEIGHT + DOWN) });
    start = x;
    ends[lane] = until[item.at] = x + item.width + ACROSS;
  }
  const lanes = Array.from({ length: row + 1 }, (_, each) => graph.sets.map((__, set) => ({ set, y: each * (high + DOWN) + set * (HEIGHT + DOWN) }))).flat();
  const width = Math.max(left + 200, ...items.map((item) => item.x + item.width)) + DOWN / 2;
  return { graph, items, links: flows(graph, items), lanes, width, height: (row + 1) * (high + DOWN) - 2 * DOWN };
}

function flows(graph: Graph, items: Drawn[]): Flow[] {
  const drawn = new Map(items.map((item) => [item.at, item]));
  const last = new Map<number, number>();
  for (const [from, to] of graph.edges) if (from < to && drawn.has(from)) last.set(to, Math.max(from, last.get(to) ?? 0));
  return graph.edges.flatMap(([from, to, values, size, type]) => {
    const [a, b] = [drawn.get(from), drawn.get(to)];
    return a && b ? [{ from: a, to: b, values, bytes: size, type, last: last.get(to) === from }] : [];
  });
}

export const shown = computed(() => {
  const graph = data.graph ?? step.value.graph;
  return graph && (graph.sets.length > 1 ? inLanes(graph) : inLines(graph));
});

export function way({ from, to }: Flow): string {
  const gap = to.x - from.x - from.width;
  // Along a lane, or from lane to lane; past another node of the lane the way leads around it.
  if (from.row === to.row && gap > 0 && (from.y !== to.y || gap < ACROSS + 1)) {
    const [x, y, end] = [from.x + from.width, from.y + HEIGHT / 2, to.y + HEIGHT / 2];
    const bend = Math.min(gap / 2, 60);
    return y === end ? `M${x},${y}L${to.x},${y}` : `M${x},${y}C${x + bend},${y} ${to.x - bend},${end} ${to.x},${end}`;
  }
  const start = { x: from.x + from.width / 2, y: from.y + HEIGHT };
  const down = to.y > from.y;
  const end = { x: to.x + to.width / 2, y: down ? to.y : to.y + HEIGHT };
  const bend = Math.max(26, Math.abs(end.y - start.y) * 0.4);
  return `M${start.x},${start.y}C${start.x},${start.y + bend} ${end.x},${down ? end.y - bend : end.y + bend} ${end.x},${end.y}`;
}

/** What a node waits for: the nodes whose values it reads, and those that its devices run just before it; and what waits for it. */
export function waits(graph: Graph, at: number) {
  const reads = graph.edges.filter(([, to]) => to === at);
  const readers = graph.edges.filter(([from]) => from === at);
  const before = graph.before.filter(([from, to]) => to === at && from !== at && !reads.some(([each]) => each === from));
  const after = graph.before.filter(([from, to]) => from === at && to !== at && !readers.some(([, each]) => each === to));
  return { reads, readers, before: before.map(([from]) => from), after: after.map(([, to]) => to) };
}
