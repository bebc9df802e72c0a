// The dataflow graph: device-local kernels, redistributions and transfers between them, and what each of them waits for.
import { colour, colours } from "./axes";
import { Canvas } from "./canvas";
import type { Kernels as Graph } from "./data";
import { chosen, HEIGHT, isOutside, outside, pointed, sends, shown, subtitle, title, waits, way, where, type Flow } from "./flows";
import { at, data, text } from "./state";
import { bytes, counted, exact } from "./units";

/** With more nodes, edges that lead past others are drawn for one node only. */
const MANY = 150;

/** The place of each node in the order of issue, from 1; of nodes that are alike, that of the first one. */
export function orderOf(graph: Graph) {
  const found = new Map<number, number>();
  graph.issue.forEach((number, index) => found.has(number) || found.set(number, index + 1));
  return found;
}

const noteOf = ({ sets }: Graph) =>
  sets.length > 1
    ? "Marks are nodes in order of issue, in lanes of device sets; high ones are transfers, or redistributions, in the colour of their axis."
    : "Marks are nodes in order of issue: high ones are redistributions, in the colour of their axis.";

/** What a node is and waits for, in a few lines. */
function brief(graph: Graph, index: number) {
  const { reads, before } = waits(graph, index);
  const names = [...reads.map(([from]) => from), ...before].map((each) => title(graph.nodes[each]));
  return `${where(graph.nodes[index]) + title(graph.nodes[index])}\n${names.length ? `waits for ${names.join(", ")}` : "waits for nothing"}`;
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
  const { graph, items, links, lanes, width, height } = found;
  const lit = pointed.value < 0 ? chosen.value : pointed.value;
  const isLit = (link: Flow) => link.from.at === lit || link.to.at === lit;
  const around = graph.nodes[lit] && waits(graph, lit);
  const waited = new Set(around ? [...around.reads.map(([from]) => from), ...around.before] : []);
  const order = orderOf(graph);
  return (
    <div class="kernels">
      <Facts graph={graph} drawn={items.length} />
      <Issue graph={graph} />
      <p class="note">{noteOf(graph)}</p>
      <Canvas
        width={width}
        height={height + 30}
        of={`${at.value} ${outside.value}`}
        label="Kernels and redistributions"
        start="left"
        chosen={chosen.value < 0 ? "" : String(chosen.value)}
        onBackground={() => (chosen.value = -1)}
      >
        {lanes.map(({ set, y }) => (
          <g key={`${set} ${y}`} class="lane" data-lane={graph.sets[set]}>
            <rect x={0} y={y - 10} width={width} height={HEIGHT + 20} rx={6} />
            <text x={12} y={y + 18} class="strong">
              {graph.sets[set]}
            </text>
            <text x={12} y={y + 33} class="small faint">
              {graph.meshes[set]}
            </text>
          </g>
        ))}
        {links
          .filter((link) => link.last || items.length <= MANY || isLit(link))
          .sort((a, b) => Number(isLit(a)) - Number(isLit(b)) || Number(a.last) - Number(b.last))
          .map((link) => (
            <path
              key={`${link.from.at} ${link.to.at}`}
              d={way(link)}
              class={`edge${isLit(link) ? " lit" : ""}${link.last ? "" : " far"}`}
              marker-end={link.last || isLit(link) ? "url(#arrow)" : undefined}
            >
              <title>{`${counted(link.values, "value")}, ${bytes(link.bytes)} on a device: ${text(link.type)}`}</title>
            </path>
          ))}
        {items.map(({ node, at: index, x, y, width: wide }) => {
          const left = sends(node) ? 20 + node.axes.length * 6 : 11;
          return (
            <g
              key={index}
              class={`node${isOutside(node) ? " side" : ""}${chosen.value === index ? " lit" : ""}${waited.has(index) ? " waited" : ""}`}
              transform={`translate(${x},${y})`}
              data-kernel={index}
              onClick={() => (chosen.value = index)}
              onMouseEnter={() => (pointed.value = index)}
              onMouseLeave={() => (pointed.value = -1)}
            >
              <title>{brief(graph, index)}</title>
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
                {subtitle(node)}
              </text>
              {data.graph && order.has(index) && (
                <text x={wide - 4} y={-3} class="small faint" text-anchor="end">
                  {order.get(index)}
                </text>
              )}
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
  const said = [
    `${counted(sum("kernel"), "kernel")} (${exact(new Set(of("kernel").map((node) => node.name)).size)} different)`,
    counted(sum("redistribute"), "redistribution"),
    graph.sets.length > 1 && `${counted(sum("transfer"), "transfer")} between ${exact(graph.sets.length)} device sets`,
    graph.barriers > 0 && `${counted(graph.barriers, "barrier")} to order them`,
  ];
  const all = graph.nodes.filter((node) => outside.value || !isOutside(node)).length;
  return (
    <p class="note">
      <span>
        {said.filter(Boolean).join(", ")}.{!data.graph && " Nodes that are alike are one."}
        {all > drawn && ` The first ${drawn} of ${exact(all)} are drawn.`}
        {drawn > MANY && " What is read much later has an edge while you point at one of its ends."}
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
      style={{ height: `${Math.min(22 * lanes, 110)}px` }}
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
