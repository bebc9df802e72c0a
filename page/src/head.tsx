// The first thing that a reader sees: the program, the mesh, the tactics, and what each of them changed.
import { colour, colours } from "./axes";
import { opCount } from "./model";
import { go } from "./moves";
import { at, before, data, otherTheme, step, theme, wide } from "./state";
import type { Step } from "./data";
import { bytes, change, exact, flops, percent, shortKind } from "./units";

export function Title() {
  const devices = data.mesh.reduce((product, [, size]) => product * size, 1);
  return (
    <header class="title">
      <h1>{data.name}</h1>
      <span class="faint">on</span>
      {data.mesh.map(([axis, size]) => (
        <span class="axis" key={axis} style={{ "--its": colour(axis) }}>
          {axis} <b>{exact(size)}</b>
        </span>
      ))}
      {data.mesh.length === 0 && <span class="faint">no mesh axis</span>}
      <span class="faint facts">
        {exact(devices)} device{devices === 1 ? "" : "s"} · {exact(opCount())} ops
      </span>
      <button type="button" class="theme" onClick={otherTheme} title="Switch between light and dark">
        {theme.value === "dark" ? "Light" : "Dark"}
      </button>
    </header>
  );
}

interface Segment {
  size: number;
  fill: string;
  title: string;
}

interface Metric {
  name: string;
  title: string;
  value: (step: Step) => number;
  shown: (step: Step) => string;
  segments: (step: Step) => Segment[];
  /** The same where there is little room. */
  brief?: (step: Step) => string;
  /** What a tooltip says of it. */
  full?: (step: Step) => string;
}

const total = (step: Step) => Object.values(step.counts.always).reduce((sum, each) => sum + each, 0);
const inBranches = (step: Step) => Object.values(step.counts.in_branches).reduce((sum, each) => sum + each, 0);
const plain = (size: number, fill = "var(--ink-2)", title = ""): Segment[] => [{ size, fill, title }];
const openEnds = (step: Step) => step.open.conflicts.length;

function kinds(step: Step): string {
  const said = Object.entries(step.counts.always)
    .filter(([, times]) => times)
    .map(([kind, times]) => `${exact(times)} ${shortKind(kind)}`);
  const more = inBranches(step);
  const sum = said.length > 1 ? `${exact(total(step))}: ` : "";
  return [...(said.length ? [sum + said.join(" · ")] : []), ...(more ? [`≤ ${exact(more)} in branches`] : [])].join(", ") || "none";
}

const METRICS: Metric[] = [
  {
    name: "received",
    title: "Bytes that one device receives in one call, by the axes over which they come",
    value: (step) => step.bytes,
    shown: (step) => bytes(step.bytes),
    segments: (step) => step.by_axes.map(([axes, size]) => ({ size, fill: colours(axes), title: `${bytes(size)} over ${axes.join(", ")}` })),
  },
  {
    name: "collectives",
    title: "Collectives in one call",
    value: (step) => total(step) + inBranches(step),
    shown: kinds,
    brief: (step) => exact(total(step) + inBranches(step)),
    full: (step) => step.counts.text,
    segments: (step) => plain(total(step) + inBranches(step)),
  },
  {
    name: "memory",
    title: "The most bytes that one device stores at one time, estimated: arguments, results, temporaries",
    value: (step) => step.memory.bytes,
    shown: (step) => bytes(step.memory.bytes),
    segments: ({ memory }) => [
      { size: memory.arguments, fill: "var(--mem-0)", title: `${bytes(memory.arguments)} of arguments` },
      { size: memory.results, fill: "var(--mem-1)", title: `${bytes(memory.results)} of results` },
      { size: memory.temporaries, fill: "var(--mem-2)", title: `${bytes(memory.temporaries)} of temporaries` },
    ],
  },
  {
    name: "work",
    title: "What one device computes in one call, and the part of it that is more than its share",
    value: (step) => step.flops,
    shown: (step) => `${flops(step.flops)}${step.excess ? ` · ${percent(step.excess, step.flops)} replicated` : ""}`,
    brief: (step) => flops(step.flops),
    segments: (step) => [
      { size: step.flops - step.excess, fill: "var(--ink-2)", title: `${flops(step.flops - step.excess)} of its own share` },
      { size: step.excess, fill: "var(--warn)", title: `${flops(step.excess)} that others compute too` },
    ],
  },
  {
    name: "open conflicts",
    title: "Claims that contradict each other, and that the order of tactics does not decide",
    value: openEnds,
    shown: (step) => (openEnds(step) ? `⚠ ${openEnds(step)}` : "none"),
    segments: (step) => plain(openEnds(step), "var(--warn)"),
  },
];

/** A name for a tactic that fits above a column: `DataParallel data`. */
function short(tactic: string): string {
  const name = tactic.split("(")[0];
  const axis = data.mesh.map(([each]) => each).find((each) => new RegExp(`['"]${each}[.'"]`).test(tactic));
  const stage = /stage=(\d)/.exec(tactic)?.[1];
  return `${name}${stage ? `-${stage}` : ""}${axis ? ` · ${axis}` : ""}`;
}

type Room = "wide" | "middle" | "narrow";
/** The least width of a column: for a text, for a figure, for a bar. */
const LEAST: Record<Room, number> = { wide: 195, middle: 92, narrow: 26 };
const FIRST = 170;

/** What there is room for in each column, so that nothing is cut off. */
function roomFor(columns: number): Room {
  const each = (wide.value - FIRST - 40) / columns;
  return each >= LEAST.wide ? "wide" : each >= LEAST.middle ? "middle" : "narrow";
}

export function Tactics() {
  const steps = data.steps;
  const room = roomFor(steps.length);
  const figures = room !== "narrow";
  const columns = { gridTemplateColumns: `minmax(${FIRST}px, 220px) repeat(${steps.length}, minmax(${LEAST[room]}px, 1fr))` };
  return (
    <section class={`tactics${figures ? "" : " narrow"}`} aria-label="Tactics">
      <div class="grid" style={columns}>
        <div class="corner">
          <span class="strong">
            {at.value} <span class="faint">of {steps.length - 1} tactics</span>
          </span>
          <span class="faint" title="The arrow keys move from tactic to tactic">
            <kbd>←</kbd> <kbd>→</kbd>
          </span>
        </div>
        <div class="slider" style={{ gridColumn: `2 / span ${steps.length}`, "--half": `${50 / steps.length}%` }}>
          <input
            type="range"
            min={0}
            max={steps.length - 1}
            step={1}
            value={at.value}
            disabled={steps.length === 1}
            aria-label="Tactics applied"
            aria-valuetext={step.value.tactic || "nothing placed"}
            onInput={(event) => go(Number(event.currentTarget.value))}
          />
        </div>
        <div />
        {steps.map((each, index) => (
          <button
            type="button"
            key={index}
            class={`stop${index === at.value ? " on" : ""}`}
            title={each.tactic || "Nothing is placed"}
            onClick={() => go(index)}
          >
            <span class="number">{index}</span>
            {figures && <span class="what">{each.tactic ? short(each.tactic) : "nothing placed"}</span>}
          </button>
        ))}
        {METRICS.map((metric) => (
          <Line key={metric.name} metric={metric} room={room} />
        ))}
      </div>
      <p class="tactic" aria-live="polite">
        <span class="number">{step.value.number}</span>
        <code>{step.value.tactic || "Nothing is placed: every device runs the whole program."}</code>
        {!data.whole && <span class="faint">Steps between the first and the last cannot be shown: a tactic came before earlier ones.</span>}
      </p>
    </section>
  );
}

function Line({ metric, room }: { metric: Metric; room: Room }) {
  const figures = room !== "narrow";
  const brief = (each: Step) => (metric.brief ?? metric.shown)(each);
  const most = Math.max(1, ...data.steps.map(metric.value));
  const now = metric.value(step.value);
  const then = before.value ? metric.value(before.value) : now;
  const changed = change(then, now);
  return (
    <>
      <div class="metric" title={metric.title} data-metric={metric.name}>
        <span>{metric.name}</span>
        {room !== "wide" && <b title={metric.shown(step.value)}>{brief(step.value)}</b>}
        {changed && <span class={`delta ${now < then ? "less" : "more"}`}>{changed}</span>}
      </div>
      {data.steps.map((each, index) => (
        <button
          type="button"
          tabIndex={-1}
          key={index}
          class={`cell${index === at.value ? " on" : ""}`}
          title={`${(metric.full ?? metric.shown)(each)}${each.tactic ? ` after ${each.tactic}` : ""}`}
          data-cell={`${metric.name} ${index}`}
          onClick={() => go(index)}
        >
          {figures && <span class="figure">{room === "wide" ? metric.shown(each) : brief(each)}</span>}
          <span class="track">
            {metric.segments(each).map((segment, number) => (
              <i
                key={number}
                style={{ [figures ? "width" : "height"]: `${(100 * segment.size) / most}%`, background: segment.fill }}
                title={segment.title}
              />
            ))}
          </span>
        </button>
      ))}
    </>
  );
}
