// What one device stores over time, and the largest arrays of it, each from its first step to its last.
import * as Plot from "@observablehq/plot";
import { useEffect, useRef } from "preact/hooks";
import { Leads, Line, Said } from "./inspector";
import { high, step, text, theme } from "./state";
import { bytes, count, exact, flops } from "./units";

const KINDS: Record<string, string> = {
  arguments: "arguments",
  results: "results",
  backward: "kept for the backward pass",
  received: "received by a collective",
  inside: "inside loops and branches",
  other: "other temporaries",
};
const ORDER = Object.keys(KINDS);
const FILLS = ORDER.map((kind) => `var(--mem-${kind})`);

export function Memory() {
  const { memory } = step.value;
  const tall = Math.max(190, Math.round(high.value * 0.26));
  const thick = high.value > 1000 ? 9 : 6;
  return (
    <div class="split memory">
      <div class="scroll pad">
        <p class="big">
          {bytes(memory.bytes)} <span class="faint">at the peak, in</span> <code>{text(memory.at).replaceAll("`", "").replaceAll("<locals>.", "")}</code>
        </p>
        <p class="legend">
          {ORDER.filter((kind) => kind === "arguments" || kind === "results" || memory.series[kind]?.some(Boolean)).map((kind) => (
            <span key={kind}>
              <i style={{ background: `var(--mem-${kind})` }} />
              {KINDS[kind]}
            </span>
          ))}
        </p>
        <Chart make={course} height={tall} label="Bytes stored over the steps of the program" />
        <h4>The largest arrays, from when to when</h4>
        <Chart make={bars} height={Math.max(60, memory.bars.length * thick + 30)} label="Live ranges of the largest arrays" />
        <p class="faint">
          To the right, the steps of the program in the order in which XLA runs them. A loop is as long as one of its trips: each trip stores
          the same. An estimate of what XLA allocates on CPU, made without compiling.
        </p>
        <Loops />
      </div>
      <div class="scroll pad">
        <h4>Stored at the peak</h4>
        <table class="list">
          <tbody>
            {memory.rows.map((row, index) => (
              <tr key={index}>
                <td class="mono">
                  <Leads name={text(row.value)} />
                  {row.count > 1 && <span class="times"> × {count(row.count)}</span>}
                  <Line number={row.line} />
                </td>
                <td class="faint">{row.form || row.kind}</td>
                <td class="right" title={`${exact(row.bytes)} bytes`}>
                  {bytes(row.bytes)}
                  <i class="bar" style={{ width: `${(100 * row.bytes) / Math.max(1, memory.rows[0]?.bytes)}%` }} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function Loops() {
  const { rows, notes } = step.value.loops;
  return (
    rows.length > 0 && (
      <section>
        <h4>Loops in which ranges run, one after another</h4>
        <table class="list">
          <thead>
            <tr>
              <th>loop</th>
              {["computed", "carried", "stored", "for later loops"].map((name) => (
                <th class="right" key={name}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(([name, times, computed, ...sizes], index) => (
              <tr key={index}>
                <td class="mono">
                  {text(name)}
                  {times > 1 && <span class="times"> × {count(times)}</span>}
                </td>
                <td class="right">{flops(computed)}</td>
                {sizes.map((size, at) => (
                  <td class="right" key={at} title={`${exact(size)} bytes`}>
                    {bytes(size)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
        <ul class="reasons">
          {notes.map((line) => (
            <li key={line}>
              <Said text={text(line)} />
            </li>
          ))}
        </ul>
      </section>
    )
  );
}

type Make = (width: number, height: number) => SVGSVGElement | HTMLElement;

function Chart({ make, height, label }: { make: Make; height: number; label: string }) {
  const frame = useRef<HTMLDivElement>(null);
  const now = step.value;
  const shown = theme.value;
  useEffect(() => {
    const draw = () => frame.current && frame.current.replaceChildren(make(frame.current.clientWidth, height));
    const watch = new ResizeObserver(draw);
    watch.observe(frame.current!);
    return () => watch.disconnect();
  }, [now, shown, height]);
  return <div ref={frame} class="chart" role="img" aria-label={label} style={{ minHeight: `${height}px` }} />;
}

interface Point {
  time: number;
  size: number;
  kind: string;
}

/** Binary units on the scale: multiples of a power of 1024. */
function ticks(most: number): number[] {
  const unit = 1024 ** Math.floor(Math.log(Math.max(1, most)) / Math.log(1024));
  const rough = most / unit / 4;
  const nice = [0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 256, 512].find((each) => each >= rough) ?? 256;
  return Array.from({ length: Math.floor(most / (nice * unit)) + 1 }, (_, at) => at * nice * unit);
}

interface Stretch {
  name: string;
  first: number;
  end: number;
}

/** The loops: bands behind what is stored, each with its name if there is room for it. */
function stretches(width: number): Stretch[] {
  const { loops, steps } = step.value.memory;
  const long = (first: number, last: number) => ((last + 1 - first) / steps) * (width - LEFT);
  return loops.filter(([, first, last]) => long(first, last) > 3).map(([name, first, last]) => {
    const said = text(name);
    return { name: long(first, last) > said.length * 6.4 + 8 ? said : "", first, end: last + 1 };
  });
}

const LEFT = 88;

/** How many loops are around one: their names stand above its own. */
const depth = (of: Stretch, found: Stretch[]) => found.filter((each) => each !== of && each.first <= of.first && each.end >= of.end).length;

function loopMarks(width: number, low: number, high: number, named: boolean) {
  const found = stretches(width);
  return [
    Plot.rect(found, { x1: "first", x2: "end", y1: low, y2: high, fill: "var(--ink)", fillOpacity: 0.05, ariaLabel: (each: Stretch) => `loop ${each.name}` }),
    Plot.ruleX(found.flatMap((each) => [each.first, each.end]), { stroke: "var(--rule-2)" }),
    ...(named
      ? found.map((each) =>
          Plot.text([each], { x: "first", text: "name", frameAnchor: "top", textAnchor: "start", dx: 5, dy: 2 + 14 * depth(each, found), fill: "var(--ink-2)" }),
        )
      : []),
  ];
}

function course(width: number, height: number) {
  const { memory } = step.value;
  // Names of loops and of the peak stand above what is stored.
  const found = stretches(width);
  const above = 20 + 14 * Math.max(0, ...found.filter((each) => each.name).map((each) => 1 + depth(each, found)));
  const highest = Math.max(1, memory.bytes) / (1 - above / (height - 50));
  const points: Point[] = [];
  [...memory.times, memory.steps].forEach((time, index) => {
    const now = Math.min(index, memory.times.length - 1);
    for (const kind of ORDER) {
      const size = kind === "arguments" ? memory.arguments : kind === "results" ? memory.results : (memory.series[kind]?.[now] ?? 0);
      points.push({ time, size, kind });
    }
  });
  const tops = memory.times.map((time, index) => ({
    time,
    running: text(memory.running[index]),
    size: memory.arguments + memory.results + Object.values(memory.series).reduce((sum, each) => sum + each[index], 0),
  }));
  return Plot.plot({
    width,
    height,
    marginLeft: 68,
    marginBottom: 30,
    x: { label: null, domain: [0, memory.steps] },
    y: { label: null, domain: [0, highest], ticks: ticks(Math.max(1, memory.bytes)), tickFormat: (size: number) => bytes(size), grid: true },
    color: { domain: ORDER, range: FILLS },
    marks: [
      ...loopMarks(width, 0, highest, true),
      Plot.areaY(points, Plot.stackY({ x: "time", y: "size", fill: "kind", z: "kind", order: ORDER, curve: "step-after" })),
      Plot.ruleX([memory.peak + 0.5], { stroke: "var(--ink)", strokeDasharray: "3 3", y1: 0, y2: memory.bytes }),
      Plot.text([memory.peak + 0.5], {
        x: (time: number) => time,
        y: memory.bytes,
        text: () => "peak",
        textAnchor: memory.peak > memory.steps / 2 ? "end" : "start",
        dx: memory.peak > memory.steps / 2 ? -5 : 5,
        dy: -6,
        fill: "var(--ink)",
      }),
      Plot.tip(
        tops,
        Plot.pointerX({
          x: "time",
          y: "size",
          title: (each: (typeof tops)[number]) => `${bytes(each.size)} in step ${exact(each.time)}\n${each.running}`,
          fill: "var(--paper)",
          stroke: "var(--rule-2)",
        }),
      ),
    ],
  });
}

function bars(width: number, height: number) {
  const { memory } = step.value;
  const rows = memory.bars.map(([name, kind, size, first, last], row) => ({ name: text(name), kind, size, first, end: last + 1, row }));
  return Plot.plot({
    width,
    height,
    marginLeft: 68,
    marginBottom: 24,
    x: { domain: [0, memory.steps], label: null },
    y: { axis: null, domain: [rows.length, 0] },
    color: { domain: ORDER, range: FILLS },
    marks: [
      ...loopMarks(width, 0, rows.length, false),
      Plot.ruleX([memory.peak + 0.5], { stroke: "var(--ink)", strokeDasharray: "3 3" }),
      Plot.rect(rows, {
        x1: "first",
        x2: "end",
        y1: "row",
        y2: (each: (typeof rows)[number]) => each.row + 0.78,
        fill: "kind",
        rx: 1.5,
        inset: 0.2,
        ariaLabel: (each: (typeof rows)[number]) => `array ${each.name}`,
        title: (each: (typeof rows)[number]) => `${each.name}: ${bytes(each.size)}, ${KINDS[each.kind]}`,
        tip: { fill: "var(--paper)", stroke: "var(--rule-2)" },
      }),
    ],
  });
}
