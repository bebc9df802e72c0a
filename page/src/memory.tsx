// What one device stores over time, and the largest arrays of it, each from its first step to its last.
import * as Plot from "@observablehq/plot";
import { useEffect, useRef } from "preact/hooks";
import { Line } from "./inspector";
import { step, text, theme } from "./state";
import { bytes, count, exact } from "./units";

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
  return (
    <div class="split memory">
      <div class="scroll pad">
        <p class="big">
          {bytes(memory.bytes)} <span class="faint">at the peak, in</span> <code>{text(memory.at).replaceAll("`", "")}</code>
        </p>
        <p class="legend">
          {ORDER.filter((kind) => kind === "arguments" || kind === "results" || memory.series[kind]?.some(Boolean)).map((kind) => (
            <span key={kind}>
              <i style={{ background: `var(--mem-${kind})` }} />
              {KINDS[kind]}
            </span>
          ))}
        </p>
        <Chart make={course} height={210} label="Bytes stored over the steps of the program" />
        <h4>The largest arrays, from when to when</h4>
        <Chart make={bars} height={Math.max(60, memory.bars.length * 6 + 30)} label="Live ranges of the largest arrays" />
        <p class="faint">
          To the right, the steps of the program in the order in which XLA runs them. An estimate of what XLA allocates on CPU, made without
          compiling.
        </p>
      </div>
      <div class="scroll pad">
        <h4>Stored at the peak</h4>
        <table class="list">
          <tbody>
            {memory.rows.map((row, index) => (
              <tr key={index}>
                <td class="mono">
                  {text(row.value)}
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

function course(width: number, height: number) {
  const { memory } = step.value;
  const highest = Math.max(1, memory.bytes);
  const points: Point[] = [];
  memory.times.forEach((time, index) => {
    for (const kind of ORDER) {
      const size = kind === "arguments" ? memory.arguments : kind === "results" ? memory.results : (memory.series[kind]?.[index] ?? 0);
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
    x: { label: null, domain: [0, Math.max(1, memory.steps - 1)] },
    y: { label: null, domain: [0, highest], ticks: ticks(highest), tickFormat: (size: number) => bytes(size), grid: true },
    color: { domain: ORDER, range: FILLS },
    marks: [
      Plot.areaY(points, Plot.stackY({ x: "time", y: "size", fill: "kind", z: "kind", order: ORDER, curve: "step-after" })),
      Plot.ruleX([memory.peak], { stroke: "var(--ink)", strokeDasharray: "3 3" }),
      Plot.text([memory.peak], {
        x: (time: number) => time,
        text: () => "peak",
        frameAnchor: "top",
        textAnchor: memory.peak > memory.steps / 2 ? "end" : "start",
        dx: memory.peak > memory.steps / 2 ? -5 : 5,
        dy: -2,
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
  const rows = memory.bars.map(([name, kind, size, first, last], row) => ({ name: text(name), kind, size, first, last: Math.max(last, first + memory.steps / 400), row }));
  return Plot.plot({
    width,
    height,
    marginLeft: 68,
    marginBottom: 24,
    x: { domain: [0, Math.max(1, memory.steps - 1)], label: null },
    y: { axis: null, domain: [rows.length, 0] },
    color: { domain: ORDER, range: FILLS },
    marks: [
      Plot.ruleX([memory.peak], { stroke: "var(--ink)", strokeDasharray: "3 3" }),
      Plot.rect(rows, {
        x1: "first",
        x2: "last",
        y1: "row",
        y2: (each: (typeof rows)[number]) => each.row + 0.78,
        fill: "kind",
        rx: 1.5,
        title: (each: (typeof rows)[number]) => `${each.name}: ${bytes(each.size)}, ${KINDS[each.kind]}`,
        tip: { fill: "var(--paper)", stroke: "var(--rule-2)" },
      }),
    ],
  });
}
