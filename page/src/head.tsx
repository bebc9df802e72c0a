// The first thing that a reader sees: the program, the mesh, the tactics, and what each of them changed.
import { colour, colours } from "./axes";
import { opCount, tacticNames } from "./model";
import { go } from "./moves";
import { at, before, data, high, order, otherTheme, step, tab, theme, wide, type Tab } from "./state";
import type { Kernels, Step } from "./data";
import { bytes, change, exact, flops, percent, shortKind } from "./units";

const MOST_SETS = 4;

/** A set's name and its axes; of a graph on one set, which has no name, these. */
function Sets({ graph: { sets, meshes } }: { graph: Kernels }) {
  return (
    <>
      {meshes.slice(0, MOST_SETS).map((mesh, index) => (
        <span class="axis of-set" key={index} style={{ "--its": "var(--ink-2)" }}>
          {sets[index] ?? ""} <b>{mesh}</b>
        </span>
      ))}
      {meshes.length > MOST_SETS && <span class="faint">and {meshes.length - MOST_SETS} more sets</span>}
    </>
  );
}

export function Title() {
  return (
    <div class="title">
      <h1 title={data.name}>{data.name}</h1>
      <span class="faint on">on</span>
      {data.graph ? <Sets graph={data.graph} /> : <MeshAxes />}
    </div>
  );
}

function MeshAxes() {
  const devices = data.mesh.reduce((product, [, size]) => product * size, 1);
  return (
    <>
      {data.mesh.map(([axis, size]) => (
        <span class="axis" key={axis} style={{ "--its": colour(axis) }}>
          {axis} <b>{exact(size)}</b>
        </span>
      ))}
      {data.mesh.length === 0 && <span class="faint">no mesh axis</span>}
      <span class="faint facts">
        {exact(devices)} device{devices === 1 ? "" : "s"}
        <span class="ops"> · {exact(opCount())} ops</span>
      </span>
    </>
  );
}

export function Theme() {
  return (
    <button type="button" class="theme" onClick={otherTheme} title="Switch between light and dark">
      {theme.value === "dark" ? "Light" : "Dark"}
    </button>
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
  /** The view that tells more of it, to which a click on its name leads. */
  leads: () => void;
  view: Tab;
}

const total = (step: Step) => Object.values(step.counts.always).reduce((sum, each) => sum + each, 0);
const inBranches = (step: Step) => Object.values(step.counts.in_branches).reduce((sum, each) => sum + each, 0);
const plain = (size: number, fill = "var(--ink-2)", title = ""): Segment[] => [{ size, fill, title }];
const CONFLICTS = "Claims contradict each other, and the order of tactics does not decide: see Conflicts & stops";

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
    view: "Collectives",
    leads: () => (order.value = "bytes"),
    segments: (step) => step.by_axes.map(([axes, size]) => ({ size, fill: colours(axes), title: `${bytes(size)} over ${axes.join(", ")}` })),
  },
  {
    name: "collectives",
    title: "Collectives in one call",
    value: (step) => total(step) + inBranches(step),
    shown: kinds,
    brief: (step) => exact(total(step) + inBranches(step)),
    full: (step) => step.counts.text,
    view: "Collectives",
    leads: () => (order.value = "times"),
    segments: (step) => plain(total(step) + inBranches(step)),
  },
  {
    name: "memory",
    title: "The most bytes that one device stores at one time, estimated: arguments, results, temporaries",
    value: (step) => step.memory.bytes,
    shown: (step) => bytes(step.memory.bytes),
    view: "Memory",
    leads: () => {},
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
    view: "Conflicts & stops",
    leads: () => requestAnimationFrame(() => document.getElementById("excess")?.scrollIntoView()),
    segments: (step) => [
      { size: step.flops - step.excess, fill: "var(--ink-2)", title: `${flops(step.flops - step.excess)} of its own share` },
      { size: step.excess, fill: "var(--warn)", title: `${flops(step.excess)} that others compute too` },
    ],
  },
];

/** Names for a step that may fit above its column, the longest first. */
const names = ({ tactic }: Step) => [...(tactic ? tacticNames(tactic) : ["nothing placed", "nothing"]), ""];

/** The least width of a column of the table, and of the names before the columns. */
const LEAST = 92;
const FIRST = 190;
/** What the table is high, without the bar above it, and its lines. */
const TABLE = { around: 56, line: 17 };
/** What the bar above is high, with the tabs beside the title or below it. */
const BAR = { one: 36, two: 66, most: 1080 };
const MOST_OF_HEIGHT = 1 / 5;
/** The least width of a stop with its number. */
const STOP = 20;

/** Whether the figures after all tactics have room, in width and in a fifth of the height; otherwise only those of this step. */
function isTable() {
  const bar = wide.value < BAR.most ? BAR.two : BAR.one;
  const fits = bar + TABLE.around + METRICS.length * TABLE.line <= high.value * MOST_OF_HEIGHT;
  return fits && (wide.value - FIRST - 40) / data.steps.length >= LEAST;
}

const columnWidth = () => (wide.value - FIRST - 40) / data.steps.length;

export function Tactics() {
  const steps = data.steps;
  const table = isTable();
  return (
    <section class={`tactics ${table ? "table" : "cards"}`} aria-label="Tactics">
      <div class="grid" style={{ gridTemplateColumns: `${table ? `${FIRST}px` : "max-content"} repeat(${steps.length}, minmax(0, 1fr))` }}>
        <div class="corner">
          <span class="strong">
            {at.value} <span class="faint">{steps.length === 2 ? "of 1 tactic" : `of ${steps.length - 1} tactics`}</span>
          </span>
          {table && (
            <span class="faint" title="The arrow keys move from tactic to tactic">
              <kbd>←</kbd> <kbd>→</kbd>
            </span>
          )}
        </div>
        {steps.map((each, index) => (
          <Stop key={index} step={each} index={index} named={table} />
        ))}
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
        {table && METRICS.map((metric) => <Line key={metric.name} metric={metric} />)}
      </div>
      {!table && (
        <div class="row">
          {METRICS.map((metric) => (
            <Card key={metric.name} metric={metric} />
          ))}
        </div>
      )}
      <p class="tactic" aria-live="polite" tabIndex={0}>
        <span class="number">{step.value.number}</span>
        <code>{step.value.tactic || "Nothing is placed: every device runs the whole program."}</code>
        {!data.whole && <span class="faint">Steps between the first and the last cannot be shown: a tactic came before earlier ones.</span>}
      </p>
    </section>
  );
}

function Stop({ step: its, index, named }: { step: Step; index: number; named: boolean }) {
  const conflicts = its.open.conflicts.length;
  const numbered = named || (wide.value - 130) / data.steps.length >= STOP;
  const room = columnWidth() - 34 - (conflicts ? 34 : 0);
  const name = named && names(its).find((each) => each.length * STRONG < room);
  return (
    <button
      type="button"
      class={`stop${index === at.value ? " on" : ""}`}
      title={`${its.tactic || "Nothing is placed"}${conflicts ? `\n${CONFLICTS}` : ""}`}
      onClick={() => go(index)}
    >
      {numbered && <span class="number">{index}</span>}
      {name && <span class="what">{name}</span>}
      {conflicts > 0 && numbered && (
        <span class="mark" data-cell={`open conflicts ${index}`}>
          {named ? `⚠ ${conflicts}` : "⚠"}
        </span>
      )}
    </button>
  );
}

function Label({ metric, figure }: { metric: Metric; figure: boolean }) {
  const now = metric.value(step.value);
  const then = before.value ? metric.value(before.value) : now;
  const changed = change(then, now);
  return (
    <button
      type="button"
      class="metric"
      title={`${metric.title}: see ${metric.view}`}
      data-metric={metric.name}
      onClick={() => {
        tab.value = metric.view;
        metric.leads();
      }}
    >
      <span class="name">{metric.name}</span>
      {figure && <b title={metric.shown(step.value)}>{(metric.brief ?? metric.shown)(step.value)}</b>}
      {changed && <span class={`delta ${now < then ? "less" : "more"}`}>{changed}</span>}
    </button>
  );
}

const most = (metric: Metric) => Math.max(1, ...data.steps.map(metric.value));

function Line({ metric }: { metric: Metric }) {
  const highest = most(metric);
  return (
    <>
      <Label metric={metric} figure={false} />
      {data.steps.map((each, index) => {
        const figure = metric.shown(each);
        return (
          <Cell key={index} metric={metric} step={each} index={index} highest={highest} along="width">
            {figure.length * CHARACTER > columnWidth() - 20 ? (metric.brief ?? metric.shown)(each) : figure}
          </Cell>
        );
      })}
    </>
  );
}

/** About how wide a character of a figure is, and of what is in bold type. */
const CHARACTER = 6.6;
const STRONG = 7.4;

/** The figure of this step, and a bar for each step. */
function Card({ metric }: { metric: Metric }) {
  const highest = most(metric);
  return (
    <div class="card-of">
      <Label metric={metric} figure />
      <span class="spark">
        {data.steps.map((each, index) => (
          <Cell key={index} metric={metric} step={each} index={index} highest={highest} along="height" />
        ))}
      </span>
    </div>
  );
}

interface CellProps {
  metric: Metric;
  step: Step;
  index: number;
  highest: number;
  along: "width" | "height";
  children?: string;
}

function Cell({ metric, step: its, index, highest, along, children }: CellProps) {
  return (
    <button
      type="button"
      tabIndex={-1}
      class={`cell${index === at.value ? " on" : ""}`}
      title={`${(metric.full ?? metric.shown)(its)}${its.tactic ? ` after ${its.tactic}` : ""}`}
      data-cell={`${metric.name} ${index}`}
      onClick={() => go(index)}
    >
      {children && <span class="figure">{children}</span>}
      <span class="track">
        {metric.segments(its).map((segment, number) => (
          <i key={number} style={{ [along]: `${(100 * segment.size) / highest}%`, background: segment.fill }} title={segment.title} />
        ))}
      </span>
    </button>
  );
}
