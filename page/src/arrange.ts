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

export interface Placed {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Arranged {
  boxes: Map<string, Placed>;
  frames: Map<string, Placed>;
  paths: Map<string, { points: { x: number; y: number }[]; label: { x: number; y: number } }>;
  width: number;
  height: number;
}

export const HEAD = 24;
const PAD = 12;
/** The most boxes for which both directions are tried. */
const MOST_TRIED = 120;

/** In which of both directions the drawing is larger in a frame of this shape. */
export function arrangeToFit(items: Item[], links: Link[], parents: Map<string, string>, aspect: number): Arranged {
  const down = arrange(items, links, parents, "TB");
  if (items.length > MOST_TRIED) return down;
  const across = arrange(items, links, parents, "LR");
  const scale = ({ width, height }: Arranged) => Math.min(aspect / width, 1 / height);
  return scale(down) > scale(across) ? down : across;
}

/** `parents` has for each frame the one around it, the inner ones last. */
export function arrange(items: Item[], links: Link[], parents: Map<string, string>, direction: "LR" | "TB"): Arranged {
  const spacing = { rankdir: direction, nodesep: 26, ranksep: 44, edgesep: 12, marginx: 16, marginy: 16 };
  // Frames that dagre cannot keep together are drawn around their boxes all the same.
  const found = laidOut(items, links, parents, spacing, true) ?? laidOut(items, links, parents, spacing, false)!;
  return framed(found, items, links, parents);
}

type Graph = InstanceType<typeof dagre.graphlib.Graph>;

function laidOut(items: Item[], links: Link[], parents: Map<string, string>, spacing: object, compound: boolean): Arranged | null {
  const graph = new dagre.graphlib.Graph({ compound, multigraph: false }) as Graph;
  graph.setGraph(spacing);
  graph.setDefaultEdgeLabel(() => ({}));
  if (compound) for (const frame of parents.keys()) graph.setNode(frame, {});
  for (const item of items) graph.setNode(item.id, { width: item.width, height: item.height });
  if (compound) {
    for (const [frame, around] of parents) if (around) graph.setParent(frame, around);
    for (const item of items) if (item.parent) graph.setParent(item.id, item.parent);
  }
  for (const link of links) {
    graph.setEdge(link.from, link.to, { width: link.width, height: link.height, labelpos: "c", weight: link.width ? 2 : 1 });
  }
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
  for (const link of links) {
    const edge = graph.edge(link.from, link.to) as { points: { x: number; y: number }[]; x?: number; y?: number };
    const middle = edge.points[Math.floor(edge.points.length / 2)];
    paths.set(`${link.from} ${link.to}`, { points: edge.points, label: { x: edge.x ?? middle.x, y: edge.y ?? middle.y } });
  }
  return { boxes, frames: new Map(), paths, width: 0, height: 0 };
}

function framed(found: Arranged, items: Item[], links: Link[], parents: Map<string, string>): Arranged {
  const { boxes, frames } = found;
  const inside = new Map<string, Placed[]>([...parents.keys()].map((frame) => [frame, []]));
  for (const item of items) inside.get(item.parent)?.push(boxes.get(item.id)!);
  for (const frame of [...parents.keys()].reverse()) {
    const its = inside.get(frame)!;
    if (!its.length) continue;
    const box = around(its);
    frames.set(frame, box);
    inside.get(parents.get(frame)!)?.push(box);
  }
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

function labelBox(found: Arranged, { from, to, width, height }: Link): Placed {
  const { x, y } = found.paths.get(`${from} ${to}`)!.label;
  return { x: x - width / 2, y: y - height / 2, width, height };
}

function around(its: Placed[]): Placed {
  const x = Math.min(...its.map((box) => box.x)) - PAD;
  const y = Math.min(...its.map((box) => box.y)) - PAD - HEAD;
  const right = Math.max(...its.map((box) => box.x + box.width)) + PAD;
  const bottom = Math.max(...its.map((box) => box.y + box.height)) + PAD;
  return { x, y, width: Math.max(right - x, 120), height: bottom - y };
}

function shift(found: Arranged, x: number, y: number) {
  const points = new Set([...found.paths.values()].flatMap((path) => [...path.points, path.label]));
  for (const each of [...found.boxes.values(), ...found.frames.values(), ...points]) {
    each.x += x;
    each.y += y;
  }
}

/** A smooth line through points: straight ends, and curves between the middles of the stretches. */
export function smooth(points: { x: number; y: number }[]): string {
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
