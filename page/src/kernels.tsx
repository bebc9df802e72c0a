// The dataflow graph: device-local kernels, and the redistributions between them; nodes that are alike are one.
import { computed, signal } from "@preact/signals";
import { arrange, smooth, type Item, type Link } from "./arrange";
import { colour, colours } from "./axes";
import { Canvas } from "./canvas";
import type { KernelNode, Kernels as Graph } from "./data";
import { at, data, step, text } from "./state";
import { bytes, count, exact } from "./units";

const MOST = 150;
const chosen = signal(-1);

function shorten(said: string, most: number) {
  return said.length > most ? `${said.slice(0, most - 1)}…` : said;
}

function title(node: KernelNode): string {
  const name = node.kind === "redistribute" ? text(node.detail) || "local" : text(node.name);
  return shorten(name, 34) + (node.count > 1 ? ` × ${count(node.count)}` : "");
}

const subtitle = (node: KernelNode) =>
  node.kind === "redistribute" ? (node.bytes ? bytes(node.bytes) : "nothing is sent") : shorten(text(node.detail) || text(node.type), 38);

const shown = computed(() => {
  const graph = step.value.graph;
  if (!graph) return null;
  const items: (Item & { node: KernelNode; at: number })[] = graph.nodes.slice(0, MOST).map((node, index) => ({
    id: `${index}`,
    width: Math.max(title(node).length * 7.1 + 22, subtitle(node).length * 6.1 + 22),
    height: 40,
    parent: "",
    node,
    at: index,
  }));
  const links: (Link & { values: number; bytes: number })[] = graph.edges
    .filter(([from, to]) => from < MOST && to < MOST)
    .map(([from, to, values, size]) => ({ from: `${from}`, to: `${to}`, width: 0, height: 0, values, bytes: size }));
  return { graph, items, links, ...arrange(items, links, new Map(), "LR") };
});

export function Kernels() {
  const found = shown.value;
  if (!found) {
    return (
      <p class="empty">
        The graph of a large program is in the page for the last tactic only. <span class="faint">Move the slider to {data.steps.length - 1}.</span>
      </p>
    );
  }
  const { graph, items, links, boxes, paths, width, height } = found;
  return (
    <div class="kernels">
      <Facts graph={graph} drawn={items.length} />
      <Issue graph={graph} />
      <Canvas width={width} height={height} of={`${at.value}`} label="Kernels and redistributions" onBackground={() => (chosen.value = -1)}>
        {links.map((link) => {
          const lit = chosen.value >= 0 && (link.from === `${chosen.value}` || link.to === `${chosen.value}`);
          return (
            <path key={`${link.from} ${link.to}`} d={smooth(paths.get(`${link.from} ${link.to}`)!.points)} class={`edge${lit ? " lit" : ""}`} marker-end="url(#arrow)">
              <title>{`${count(link.values)} values, ${bytes(link.bytes)} on a device`}</title>
            </path>
          );
        })}
        {items.map(({ id, node, at: index, width: wide }) => {
          const place = boxes.get(id)!;
          const sends = node.kind === "redistribute";
          const side = node.kind === "argument" || node.kind === "result";
          return (
            <g
              key={id}
              class={`node${side ? " side" : ""}${chosen.value === index ? " lit" : ""}`}
              transform={`translate(${place.x},${place.y})`}
              data-kernel={index}
              onClick={() => (chosen.value = index)}
            >
              <title>{`${node.kind} ${text(node.name)}\n${text(node.detail)}\n${text(node.type)}`}</title>
              <rect width={wide} height={40} rx={sends ? 20 : 6} class="front" style={sends && node.axes.length ? { stroke: colour(node.axes[0]) } : undefined} />
              {sends && node.axes.map((axis, number) => <circle key={axis} cx={15 + number * 5} cy={14} r={4} style={{ fill: colours([axis]) }} />)}
              <text x={sends ? 20 + node.axes.length * 5 : 11} y={17} class="mono">
                {title(node)}
              </text>
              <text x={sends ? 20 + node.axes.length * 5 : 11} y={32} class="small faint">
                {subtitle(node)}
              </text>
            </g>
          );
        })}
      </Canvas>
    </div>
  );
}

function Facts({ graph, drawn }: { graph: Graph; drawn: number }) {
  const of = (kind: string) => graph.nodes.filter((node) => node.kind === kind);
  const sum = (kind: string) => of(kind).reduce((total, node) => total + node.count, 0);
  return (
    <p class="note">
      {exact(sum("kernel"))} kernels ({exact(of("kernel").length)} different), {exact(sum("redistribute"))} redistributions,{" "}
      {exact(graph.barriers)} barriers that order them. Nodes that are alike are one
      {graph.nodes.length > drawn && `; the first ${drawn} of ${exact(graph.nodes.length)} are drawn`}.
    </p>
  );
}

/** All nodes in order of issue, a mark for each; the chosen kind is marked. */
function Issue({ graph }: { graph: Graph }) {
  const most = 1200;
  const marks = graph.issue.slice(0, most);
  return (
    <svg class="issue" viewBox={`0 0 ${Math.max(marks.length, 60)} 10`} preserveAspectRatio="none" role="img" aria-label="The nodes in order of issue">
      {marks.map((number, index) => {
        const node = graph.nodes[number];
        const sends = node.kind === "redistribute";
        return (
          <rect
            key={index}
            x={index}
            y={sends ? 0 : 3}
            width={0.8}
            height={sends ? 10 : 4}
            style={{ fill: number === chosen.value ? "var(--accent)" : sends ? (node.axes.length ? colour(node.axes[0]) : "var(--faint)") : "var(--rule-2)" }}
            onClick={() => (chosen.value = number)}
          />
        );
      })}
    </svg>
  );
}
