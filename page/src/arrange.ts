// Where boxes and edges go: dagre's layers, with the folds around their boxes.
import * as dagre from "@dagrejs/dagre";

export interface Item {
  id: string;
  width: number;
  height: number;
  parent: string;
}

export interface Link {
  from: string;
  to: string;
  width: number;
  height: number;
}

interface Point {
  x: number;
  y: number;
}

export interface Placed {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Arranged {
  boxes: Map<string, Placed>;
  frames: Map<string, Placed>;
  paths: Map<string, { points: Point[]; label: Point; back: boolean }>;
  width: number;
  height: number;
}

export const HEAD = 24;
const PAD = 12;
/** The most between the last boxes and the others: room for the titles of two frames. */
const GAP = 84;
const SPACING = { rankdir: "TB", nodesep: 26, ranksep: 52, edgesep: 12, marginx: 16, marginy: 16 };

/** How much less an edge that is not drawn weighs. */
const LIGHT = 0.1;

/** What is to be arranged: `items` in the order in which they run. */
export interface Drawing {
  items: Item[];
  links: Link[];
  /** For each frame the one around it, the inner ones last. */
  parents: Map<string, string>;
  /** How wide the title of each frame is. */
  titles: Map<string, number>;
  /** The boxes that stand below all others. */
  last: ReadonlySet<string>;
}

/** Every edge leads downwards, unless it leads to what runs earlier: a line of a layer is read by the next layer. */
export function arrange(drawing: Drawing): Arranged {
  // Frames that dagre cannot keep together are drawn around their boxes all the same.
  return framed(laidOut(drawing, true) ?? laidOut(drawing, false)!, drawing);
}

type Graph = InstanceType<typeof dagre.graphlib.Graph>;

function laidOut({ items, links, parents, last }: Drawing, compound: boolean): Arranged | null {
  const graph = new dagre.graphlib.Graph({ compound, multigraph: true }) as Graph;
  graph.setGraph(SPACING);
  graph.setDefaultEdgeLabel(() => ({}));
  const place = new Map(items.map((item, index) => [item.id, index]));
  const isBack = ({ from, to }: Link) => place.get(from)! > place.get(to)!;
  // An edge that leads back is given to dagre turned round, so that no other one is turned to break a cycle.
  const down = links.map((link) => ({ link, ends: isBack(link) ? [link.to, link.from] : [link.from, link.to] }));
  if (compound) for (const frame of parents.keys()) graph.setNode(frame, {});
  for (const item of items) graph.setNode(item.id, { width: item.width, height: item.height });
  if (compound) {
    for (const [frame, around] of parents) if (around) graph.setParent(frame, around);
    for (const item of items) if (item.parent) graph.setParent(item.id, item.parent);
  }
  for (const { link, ends } of down) {
    const label = { width: link.width, height: link.height, labelpos: "c", weight: link.width ? 2 : 1 };
    graph.setEdge(ends[0], ends[1], label, link.from);
  }
  below(graph, items, down, last);
  try {
    dagre.layout(graph);
  } catch {
    return null;
  }
  const boxes = new Map<string, Placed>();
  for (const item of items) {
    const { x, y } = graph.node(item.id) as { x: number; y: number };
    boxes.set(item.id, { x: x - item.width / 2, y: y - item.height / 2, width: item.width, height: item.height });
  }
  const paths: Arranged["paths"] = new Map();
  for (const { link, ends } of down) {
    const edge = graph.edge(ends[0], ends[1], link.from) as { points: Point[]; x?: number; y?: number };
    const points = edge.points.map((point) => ({ ...point }));
    const middle = points[Math.floor(points.length / 2)];
    const label = { x: edge.x ?? middle.x, y: edge.y ?? middle.y };
    paths.set(`${link.from} ${link.to}`, { points: isBack(link) ? points.reverse() : points, label, back: isBack(link) });
  }
  const frames = new Map<string, Placed>();
  for (const frame of compound ? parents.keys() : []) {
    const { x, y, width, height } = graph.node(frame) as Placed;
    frames.set(frame, { x: x - width / 2, y: y - height / 2, width, height });
  }
  return { boxes, frames, paths, width: 0, height: 0 };
}

/** Edges that are not drawn keep the last boxes below all others: what no other box reads is above a point, and they are below it. */
function below(graph: Graph, items: Item[], down: { ends: string[] }[], last: ReadonlySet<string>) {
  if (!last.size) return;
  const read = new Set(down.filter(({ ends: [, to] }) => !last.has(to)).map(({ ends: [from] }) => from));
  graph.setNode("last", { width: 0, height: 0 });
  for (const { id } of items) {
    if (last.has(id)) graph.setEdge("last", id, { weight: LIGHT });
    else if (!read.has(id)) graph.setEdge(id, "last", { weight: LIGHT });
  }
}

/** What keeps the last boxes below all others takes a line of its own, which is not needed. */
function closer({ boxes, paths }: Arranged, last: ReadonlySet<string>) {
  const others = [...boxes].filter(([id]) => !last.has(id)).map(([, box]) => box.y + box.height);
  const its = [...boxes].filter(([id]) => last.has(id)).map(([, box]) => box.y);
  if (!others.length || !its.length) return;
  const [above, below] = [Math.max(...others), Math.min(...its)];
  const gap = below - above;
  if (gap <= GAP) return;
  const raised = (y: number) => (y <= above ? y : y >= below ? y - gap + GAP : above + ((y - above) * GAP) / gap);
  const points = new Set([...paths.values()].flatMap((path) => [...path.points, path.label]));
  for (const each of [...boxes.values(), ...points]) each.y = raised(each.y);
}

function framed(found: Arranged, drawing: Drawing): Arranged {
  const { items, links, parents } = drawing;
  const { boxes, frames } = found;
  closer(found, drawing.last);
  const inside = new Map<string, Placed[]>([...parents.keys()].map((frame) => [frame, []]));
  for (const item of items) inside.get(item.parent)?.push(boxes.get(item.id)!);
  for (const frame of [...parents.keys()].reverse()) {
    const its = inside.get(frame)!;
    if (!its.length) continue;
    const box = frames.get(frame) ?? around(its);
    frames.set(frame, box);
    inside.get(parents.get(frame)!)?.push(box);
  }
  settleLabels(found, drawing);
  const labels = links.filter((link) => link.width).map((link) => labelBox(found, link));
  const every = [...boxes.values(), ...frames.values(), ...labels];
  const points = [...found.paths.values()].flatMap((path) => path.points);
  const left = Math.min(0, ...every.map((box) => box.x), ...points.map((point) => point.x));
  const top = Math.min(0, ...every.map((box) => box.y), ...points.map((point) => point.y));
  if (left < 0 || top < 0) shift(found, -left + 8, -top + 8);
  found.width = Math.max(...every.map((box) => box.x + box.width), ...points.map((point) => point.x)) + 16;
  found.height = Math.max(...every.map((box) => box.y + box.height), ...points.map((point) => point.y)) + 16;
  return found;
}

/** Labels keep clear of boxes, of the titles of frames and of each other: each moves along its edge as far as it has to. */
function settleLabels(found: Arranged, { links, titles }: Drawing) {
  const taken = [...found.boxes.values()];
  for (const [frame, width] of titles) {
    const box = found.frames.get(frame);
    if (box) taken.push({ x: box.x, y: box.y, width: Math.min(width, box.width), height: HEAD });
  }
  for (const link of links.filter((each) => each.width)) {
    const path = found.paths.get(`${link.from} ${link.to}`)!;
    const places = [path.label, ...along(path.points, path.label)];
    const free = places.find((place) => !taken.some((each) => overlap(each, at(link, place))));
    if (free) path.label = free;
    taken.push(at(link, path.label));
  }
}

const at = ({ width, height }: Link, { x, y }: Point): Placed => ({ x: x - width / 2, y: y - height / 2, width, height });

function overlap(a: Placed, b: Placed) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

/** Points along a line, the nearest to one of them first. */
function along(points: Point[], near: Point): Point[] {
  const found: Point[] = [];
  points.slice(1).forEach((end, index) => {
    const start = points[index];
    const steps = Math.max(1, Math.ceil(Math.hypot(end.x - start.x, end.y - start.y) / 8));
    for (let step = 0; step < steps; step += 1)
      found.push({ x: start.x + ((end.x - start.x) * step) / steps, y: start.y + ((end.y - start.y) * step) / steps });
  });
  const distance = (point: Point) => Math.hypot(point.x - near.x, point.y - near.y);
  return found.sort((a, b) => distance(a) - distance(b));
}

function labelBox(found: Arranged, link: Link): Placed {
  return at(link, found.paths.get(`${link.from} ${link.to}`)!.label);
}

function around(its: Placed[]): Placed {
  const x = Math.min(...its.map((box) => box.x)) - PAD;
  const y = Math.min(...its.map((box) => box.y)) - PAD - HEAD;
  const right = Math.max(...its.map((box) => box.x + box.width)) + PAD;
  const bottom = Math.max(...its.map((box) => box.y + box.height)) + PAD;
  return { x, y, width: right - x, height: bottom - y };
}

function shift(found: Arranged, x: number, y: number) {
  const points = new Set([...found.paths.values()].flatMap((path) => [...path.points, path.label]));
  for (const each of [...found.boxes.values(), ...found.frames.values(), ...points]) {
    each.x += x;
    each.y += y;
  }
}

/** A smooth line through points: straight ends, and curves between the middles of the stretches. */
export function smooth(points: Point[]): string {
  const [first, ...rest] = points;
  if (rest.length === 0) return "";
  if (rest.length === 1) return `M${first.x},${first.y}L${rest[0].x},${rest[0].y}`;
  let path = `M${first.x},${first.y}`;
  for (let at = 0; at < rest.length - 1; at += 1) {
    const here = rest[at];
    const next = rest[at + 1];
    const end = at === rest.length - 2 ? next : { x: (here.x + next.x) / 2, y: (here.y + next.y) / 2 };
    path += `Q${here.x},${here.y} ${end.x},${end.y}`;
  }
  return path;
}
