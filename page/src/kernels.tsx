// The dataflow graph: device-local kernels, redistributions and transfers between them; nodes that are alike are one.
import { computed, signal } from "@preact/signals";
import { Axes, colour, colours } from "./axes";
import { Canvas } from "./canvas";
import type { KernelNode, Kernels as Graph } from "./data";
import { at, data, step, text } from "./state";
import { bytes, count, exact } from "./units";

const MOST = 150;
const HEIGHT = 42;
const ACROSS = 30;
const DOWN = 36;
/** How much wider than high the drawing is. */
const ASPECT = 3.5;
const chosen = signal(-1);
const outside = signal(false);

function shorten(said: string, most: number) {
  return said.length > most ? `${said.slice(0, most - 1)}…` : said;
}

const isOutside = (node: KernelNode) => node.kind === "argument" || node.kind === "result";
const crosses = (node: KernelNode) => node.kind === "transfer";
const sends = (node: KernelNode) => node.kind === "redistribute" || crosses(node);

function title(node: KernelNode): string {
  const name = crosses(node) ? node.on.join(" → ") : sends(node) ? text(node.detail) || "moved on each device" : text(node.name);
  return shorten(name, 34) + (node.count > 1 ? ` × ${count(node.count)}` : "");
}

const subtitle = (node: KernelNode) =>
  sends(node) ? (node.bytes ? bytes(node.bytes) : "nothing is sent") : shorten(text(node.detail) || text(node.type), 38);

/** The device set of a node and what it does, as one line. */
const where = (node: KernelNode) => (node.on.length === 1 && !isOutside(node) ? `${node.on[0]}: ` : "");

interface Drawn {
  node: KernelNode;
  at: number;
  x: number;
  y: number;
  width: number;
}

interface Flow {
  from: Drawn;
  to: Drawn;
  values: number;
  bytes: number;
  /** Whether nothing that the node reads is issued later: the others pass behind. */
  last: boolean;
}

interface Flows {
  items: Drawn[];
  links: Flow[];
  width: number;
  height: number;
}

/** The nodes in lines, as a text, because they are issued one after another. */
function lines(graph: Graph): Flows {
  const items = graph.nodes
    .map((node, index) => ({ node, at: index, x: 0, y: 0, width: widthOf(node) }))
    .filter(({ node }) => outside.value || !isOutside(node))
    .slice(0, MOST);
  const length = items.reduce((sum, item) => sum + item.width + ACROSS, 0);
  const most = Math.max(700, Math.sqrt(length * (HEIGHT + DOWN) * ASPECT));
  let x = 0;
  let y = 0;
  for (const item of items) {
    if (x && x + item.width > most) {
      x = 0;
      y += HEIGHT + DOWN;
    }
    item.x = x;
    item.y = y;
    x += item.width + ACROSS;
  }
  const width = Math.max(200, ...items.map((item) => item.x + item.width));
  return { items, links: flows(graph, items), width, height: y + HEIGHT };
}

function widthOf(node: KernelNode) {
  return Math.max(title(node).length * 7.3, (where(node) + subtitle(node)).length * 6.1) + (sends(node) ? 34 + node.axes.length * 6 : 22);
}

function flows(graph: Graph, items: Drawn[]): Flow[] {
  const drawn = new Map(items.map((item) => [item.at, item]));
  const last = new Map<number, number>();
  for (const [from, to] of graph.edges) if (from < to && drawn.has(from)) last.set(to, Math.max(from, last.get(to) ?? 0));
  return graph.edges.flatMap(([from, to, values, size]) => {
    const [a, b] = [drawn.get(from), drawn.get(to)];
    return a && b ? [{ from: a, to: b, values, bytes: size, last: last.get(to) === from }] : [];
  });
}

const shown = computed(() => {
  const graph = step.value.graph;
  return graph && { graph, ...lines(graph) };
});

function way({ from, to }: Flow): string {
  if (from.y === to.y && to.x > from.x && to.x - from.x - from.width < ACROSS + 1) {
    const y = from.y + HEIGHT / 2;
    return `M${from.x + from.width},${y}L${to.x},${y}`;
  }
  const start = { x: from.x + from.width / 2, y: from.y + HEIGHT };
  const down = to.y > from.y;
  const end = { x: to.x + to.width / 2, y: down ? to.y : to.y + HEIGHT };
  const bend = Math.max(26, Math.abs(end.y - start.y) * 0.4);
  return `M${start.x},${start.y}C${start.x},${start.y + bend} ${end.x},${down ? end.y - bend : end.y + bend} ${end.x},${end.y}`;
}

export function Kernels() {
  const found = shown.value;
  if (!found) {
    return (
      <p class="empty">
        The graph of a large program is in the page for the last tactic only: move the slider to {data.steps.length - 1}.
      </p>
    );
  }
  const { graph, items, links, width, height } = found;
  const isLit = (link: Flow) => link.from.at === chosen.value || link.to.at === chosen.value;
  return (
    <div class="kernels">
      <Facts graph={graph} drawn={items.length} />
      <Issue graph={graph} />
      <Chosen graph={graph} />
      <Canvas
        width={width}
        height={height + 30}
        of={`${at.value} ${outside.value}`}
        label="Kernels and redistributions"
        start="left"
        chosen={chosen.value < 0 ? "" : String(chosen.value)}
        onBackground={() => (chosen.value = -1)}
      >
        {[...links]
          .sort((a, b) => Number(isLit(a)) - Number(isLit(b)) || Number(a.last) - Number(b.last))
          .map((link) => (
            <path
              key={`${link.from.at} ${link.to.at}`}
              d={way(link)}
              class={`edge${isLit(link) ? " lit" : ""}${link.last ? "" : " far"}`}
              marker-end={link.last || isLit(link) ? "url(#arrow)" : undefined}
            >
              <title>{`${count(link.values)} values, ${bytes(link.bytes)} on a device`}</title>
            </path>
          ))}
        {items.map(({ node, at: index, x, y, width: wide }) => {
          const left = sends(node) ? 20 + node.axes.length * 6 : 11;
          return (
            <g
              key={index}
              class={`node${isOutside(node) ? " side" : ""}${chosen.value === index ? " lit" : ""}`}
              transform={`translate(${x},${y})`}
              data-kernel={index}
              onClick={() => (chosen.value = index)}
            >
              <rect
                width={wide}
                height={HEIGHT}
                rx={sends(node) ? HEIGHT / 2 : 6}
                class="front"
                style={sends(node) && node.axes.length ? { stroke: colour(node.axes[0]) } : undefined}
              />
              {sends(node) && node.axes.map((axis, number) => <circle key={axis} cx={16 + number * 6} cy={14} r={4} style={{ fill: colours([axis]) }} />)}
              <text x={left} y={18} class="mono">
                {title(node)}
              </text>
              <text x={left} y={33} class="small faint">
                {where(node) + subtitle(node)}
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
  const all = graph.nodes.filter((node) => outside.value || !isOutside(node)).length;
  return (
    <p class="note">
      <span>
        {exact(sum("kernel"))} kernels ({exact(of("kernel").length)} different), {exact(sum("redistribute"))} redistributions,{" "}
        {graph.sets.length > 1 && `${exact(sum("transfer"))} transfers between ${exact(graph.sets.length)} device sets, `}
        {exact(graph.barriers)} barriers that order them. Nodes that are alike are one
        {all > drawn && `; the first ${drawn} of ${exact(all)} are drawn`}.
      </span>
      <label>
        <input type="checkbox" checked={outside.value} onChange={(event) => (outside.value = event.currentTarget.checked)} /> arguments and results
      </label>
    </p>
  );
}

/** All nodes in order of issue, a mark for each, in a lane for each device set; those of the chosen one are marked. */
function Issue({ graph }: { graph: Graph }) {
  const most = 1200;
  const marks = graph.issue.slice(0, most);
  const lanes = Math.max(graph.sets.length, 1);
  const lane = (set: string) => Math.max(graph.sets.indexOf(set), 0);
  return (
    <svg
      class="issue"
      viewBox={`0 0 ${Math.max(marks.length, 60)} ${10 * lanes}`}
      style={{ height: `${22 * lanes}px` }}
      preserveAspectRatio="none"
      role="img"
      aria-label="The nodes in order of issue"
    >
      {marks.map((number, index) => {
        const node = graph.nodes[number];
        const fill = number === chosen.value ? "var(--accent)" : !sends(node) ? "var(--rule-2)" : node.axes.length ? colour(node.axes[0]) : "var(--faint)";
        const on = node.on.length ? node.on.map(lane) : [0];
        const top = 10 * Math.min(...on);
        // A transfer goes from the lane of one set to that of the other, which waits for it.
        const span = 10 * (Math.max(...on) - Math.min(...on));
        return (
          <rect
            key={index}
            x={index}
            y={top + (sends(node) ? 0 : 3)}
            width={0.8}
            height={span + (sends(node) ? 10 : 4)}
            style={{ fill }}
            onClick={() => (chosen.value = number)}
          >
            <title>{where(node) + title(node)}</title>
          </rect>
        );
      })}
    </svg>
  );
}

function Chosen({ graph }: { graph: Graph }) {
  const node = graph.nodes[chosen.value];
  if (!node) return <p class="note chosen-kernel">Marks are nodes in order of issue{graph.sets.length > 1 && ", in a lane for each device set"}: high ones are redistributions, in the colour of their axis{graph.sets.length > 1 && ", and transfers from lane to lane"}.</p>;
  return (
    <p class="chosen-kernel">
      <code>{title(node)}</code> <Axes axes={node.axes} /> {text(node.detail) && !sends(node) && <span>{text(node.detail)}</span>}{" "}
      {node.bytes > 0 && <span>{bytes(node.bytes)} received</span>} <span class="faint">makes {text(node.type)}</span>
    </p>
  );
}
