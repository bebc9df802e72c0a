// What is known of the chosen node of the dataflow graph: what it waits for, and in which layouts that crosses.
import { Axes, LayoutText } from "./axes";
import type { Kernels as Graph } from "./data";
import { chosen, sends, shown, title, waits } from "./flows";
import { Line } from "./inspector";
import { orderOf } from "./kernels";
import { text } from "./state";
import { bytes, count, exact, flops } from "./units";

const MOST_ROWS = 30;

export function Waits() {
  const graph = shown.value?.graph;
  const node = graph?.nodes[chosen.value];
  if (!graph || !node) return null;
  const { reads, readers, before, after } = waits(graph, chosen.value);
  return (
    <aside class="inspector chosen-kernel" aria-label="Details">
      <button type="button" class="close" aria-label="Close" onClick={() => (chosen.value = -1)}>
        ×
      </button>
      <h3>{node.kind}</h3>
      <p class="mono big">
        {title(node)} <Axes axes={node.axes} />
      </p>
      <Facts graph={graph} />
      <Line number={node.line} />
      <Nodes graph={graph} said="Waits for what it reads" found={reads.map(([from, , , size, type]) => [from, type, size])} />
      <Nodes graph={graph} said="Comes after, on its devices" found={before.map((each) => [each])} />
      {reads.length + before.length === 0 && node.kind !== "argument" && <p>It waits for nothing.</p>}
      <Nodes graph={graph} said="Is read by" found={readers.map(([, to, , size, type]) => [to, type, size])} />
      <Nodes graph={graph} said="Comes before, on its devices" found={after.map((each) => [each])} />
    </aside>
  );
}

function Facts({ graph }: { graph: Graph }) {
  const node = graph.nodes[chosen.value];
  const order = orderOf(graph).get(chosen.value);
  const facts: [string, preact.ComponentChild][] = [
    ["issued", order && `${exact(order)} of ${exact(graph.issue.length)}${node.count > 1 ? `, the first of ${count(node.count)}` : ""}`],
    ["on", node.on.map((set) => `${set}, ${graph.meshes[graph.sets.indexOf(set)]}`).join(" → ")],
    ["computes", !sends(node) && text(node.detail)],
    ["flops", node.flops !== null && `${flops(node.flops)} on a device`],
    ["collectives", node.sent.map(text).join("; ")],
    ["received", node.bytes > 0 && `${bytes(node.bytes)} by a device`],
    ["in", node.reads > 0 && `${bytes(node.reads)} on a device`],
    ["out", node.makes > 0 && `${bytes(node.makes)} on a device`],
    ["makes", node.makes > 0 && <LayoutText text={text(node.type)} />],
    ["scope", text(node.scope)],
  ];
  return (
    <dl>
      {facts
        .filter(([, fact]) => fact)
        .map(([name, fact]) => [<dt key={name}>{name}</dt>, <dd key={`${name} is`}>{fact}</dd>])}
    </dl>
  );
}

/** Nodes to choose from, each with the layout and the bytes of what crosses, if anything does. */
function Nodes({ graph, said, found }: { graph: Graph; said: string; found: [number, number?, number?][] }) {
  if (!found.length) return null;
  const order = orderOf(graph);
  return (
    <>
      <h4>{said}</h4>
      <ul class="rows">
        {found.slice(0, MOST_ROWS).map(([at, type, size]) => (
          <li key={at}>
            <button type="button" data-node={at} onClick={() => (chosen.value = at)}>
              <span class="faint">{order.get(at)}</span>
              <span class="grow">
                <code>{title(graph.nodes[at])}</code> {type !== undefined && <LayoutText text={text(type)} />}
              </span>
              {size !== undefined && <span class="right">{bytes(size)}</span>}
            </button>
          </li>
        ))}
        {found.length > MOST_ROWS && <li class="faint">and {count(found.length - MOST_ROWS)} more</li>}
      </ul>
    </>
  );
}
