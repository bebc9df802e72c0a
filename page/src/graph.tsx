// The program as a graph: folds are boxes, open folds are frames, collectives are on the edges.
import { computed } from "@preact/signals";
import { colours } from "./axes";
import { arrange, HEAD, smooth, type Item, type Link, type Placed } from "./arrange";
import { Canvas } from "./canvas";
import {
  chipsAt,
  conflicts,
  cut,
  drawing,
  foldLabel,
  folds,
  inFold,
  layoutAt,
  makes,
  opLabel,
  opsOf,
  sizeOf,
  stepsOfProgram,
  type Box,
  type Chips,
  type Flow,
} from "./model";
import { toggle } from "./moves";
import { at, data, expanded, selection, tab, toggled } from "./state";
import { bytes, count } from "./units";

const MOST_EDGES = 260;
const MOST_CHIPS = 3;
const CHIP = 17;
const WIDTH = 6.3;

export interface ChipText {
  axes: string[];
  text: string;
}

/** What a label says of collectives: `gather ×32 · 1.5 MiB`, the most bytes first. */
export function said(chips: Chips): ChipText[] {
  const sorted = [...chips.values()].sort((a, b) => b.bytes - a.bytes);
  const shown = sorted.slice(0, sorted.length > MOST_CHIPS ? MOST_CHIPS - 1 : MOST_CHIPS);
  const found = shown.map((chip) => ({
    axes: chip.axes,
    text: `${chip.kind}${chip.times > 1 ? ` ×${count(chip.times)}` : ""} · ${bytes(chip.bytes)}`,
  }));
  const rest = sorted.slice(shown.length);
  if (rest.length) {
    const axes = [...new Set(rest.flatMap((chip) => chip.axes))];
    found.push({ axes, text: `${rest.length} more · ${bytes(rest.reduce((sum, chip) => sum + chip.bytes, 0))}` });
  }
  return found;
}

const widthOf = (texts: ChipText[]) => Math.max(0, ...texts.map((each) => each.text.length * 5.9 + 22));

function shorten(text: string, most: number) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

interface Shape extends Item {
  box: Box;
  title: string;
  mono: boolean;
  subtitle: string;
  chips: ChipText[];
}

/** How a box is drawn in a step, with these collectives in it. */
function shape(box: Box, number: number, inside: Chips): Shape {
  const fold = box.id[0] === "f";
  const more = box.id[0] === "m";
  const kind = folds().kind[box.fold];
  const [place, code] = kind === "line" && fold ? foldLabel(box.fold).split(/ {2}(.*)/s) : ["", ""];
  const single = fold && sizeOf(box.fold) === 1;
  const title = more ? `${count(box.hidden)} more ops` : fold ? code || foldLabel(box.fold) : opLabel(box.op);
  const value = box.op >= 0 ? makes(box.op)[0] : single ? makes(opsOf(box.fold)[0] ?? -1)?.[0] : undefined;
  const layout = value === undefined ? "" : layoutAt(value, number).text;
  const ops = `${count(box.hidden)} ${kind === "argument" || (kind === "path" && makes(opsOf(box.fold)[0] ?? 0)?.length) ? "array" : "op"}${box.hidden > 1 ? "s" : ""}`;
  const subtitle = more ? "of the same fold" : layout || (place ? `${place} · ${ops}` : kind === "result" ? ops.replace("op", "array") : ops);
  const chips = said(inside);
  const shown = shorten(title, 30);
  const letter = kind === "direction" ? 8.2 : 7.3;
  const width = Math.max(96, shown.length * letter + (fold ? 46 : 24) + MARKED, Math.min(subtitle.length, 40) * WIDTH + 24, widthOf(chips) + 16);
  return {
    id: box.id,
    width,
    height: 42 + chips.length * CHIP + (chips.length ? 6 : 0),
    parent: box.parent ? `f${box.parent}` : "",
    box,
    title: shown,
    mono: kind !== "direction",
    subtitle: shorten(subtitle, 40),
    chips,
  };
}

/** The room for the mark of a conflict, in a plan that has any. */
const MARKED = data.steps.some((each) => each.open.conflicts.length) ? 22 : 0;

/** The arrangement has room for the collectives of every step, so that the slider moves nothing but what changes. */
const arranged = computed(() => {
  const { boxes, flows } = cut.value;
  const steps = stepsOfProgram.value.map((number) => ({ number, chips: chipsAt(number) }));
  const ordered = [...boxes.values()].sort((a, b) => a.place - b.place);
  const items = ordered.map((box): Item => {
    const every = steps.map(({ number, chips }) => shape(box, number, chips.boxes.get(box.id) ?? new Map()));
    return { ...every[0], width: Math.max(...every.map(({ width }) => width)), height: Math.max(...every.map(({ height }) => height)) };
  });
  const last = new Set(ordered.filter(isResult).map(({ id }) => id));
  const parents = new Map<string, string>();
  for (const fold of [...expanded.value].sort((a, b) => a - b)) {
    if (fold && ordered.some((box) => isIn(box, fold))) parents.set(`f${fold}`, folds().parent[fold] ? `f${folds().parent[fold]}` : "");
  }
  const titles = new Map([...parents.keys()].map((frame) => [frame, 40 + 7.3 * foldLabel(Number(frame.slice(1))).length]));
  // Edges with collectives come first; of the others, those with most values.
  const labels = [...flows].map(([key, { from, to, values }]) => {
    const every = steps.map(({ chips }) => said(chips.flows.get(key) ?? new Map()));
    const width = Math.max(...every.map(widthOf));
    return { key, values, link: { from, to, width, height: Math.max(...every.map(({ length }) => length)) * CHIP } };
  });
  const ranked = labels.sort((a, b) => Number(b.link.width > 0) - Number(a.link.width > 0) || b.values - a.values).slice(0, MOST_EDGES);
  const links = ranked.map(({ link }) => link);
  return { items, links, left: labels.length - links.length, ...arrange({ items, links, parents, titles, last }) };
});

/** What is drawn there in this step. */
const drawn = computed(() => {
  const { boxes, flows } = drawing.value;
  const shapes = arranged.value.items.map((item): Shape => {
    const box = boxes.get(item.id)!;
    return { ...shape(box, at.value, box.inside), width: item.width, height: item.height };
  });
  const links = arranged.value.links.map(({ from, to }): Link & { flow: Flow; chips: ChipText[] } => {
    const flow = flows.get(`${from} ${to}`)!;
    const chips = said(flow.chips);
    return { from, to, width: widthOf(chips), height: chips.length * CHIP, flow, chips };
  });
  return { shapes, links };
});

function isResult(box: Box) {
  let outer = box.fold;
  while (folds().parent[outer] > 0) outer = folds().parent[outer];
  return folds().kind[outer] === "result";
}

function isIn(box: Box, fold: number) {
  for (let each = box.parent; each > 0; each = folds().parent[each]) if (each === fold) return true;
  return false;
}

function isLit(flow: { chips: Chips }, from: string, to: string) {
  const chosen = selection.value;
  if (chosen?.what === "row") return [...flow.chips.values()].some((chip) => chip.rows.has(chosen.row));
  return chosen?.what === "edge" && chosen.from === from && chosen.to === to;
}

export function Graph() {
  const { boxes, frames, paths, width, height, left } = arranged.value;
  const { shapes, links } = drawn.value;
  const chosen = selection.value;
  return (
    <div class="graph">
      <Canvas
        width={width}
        height={height}
        of={[...expanded.value].join()}
        label="The program by scope"
        focus={toggled.value ? `f${toggled.value}` : ""}
        chosen={chosen ? JSON.stringify(chosen) : ""}
        onBackground={() => (selection.value = null)}
      >
        {[...frames].reverse().map(([id, place]) => (
          <Frame key={id} fold={Number(id.slice(1))} place={place} />
        ))}
        {links.map((link) => {
          const path = paths.get(`${link.from} ${link.to}`)!;
          const lit = isLit(link.flow, link.from, link.to);
          const axes = [...new Set([...link.flow.chips.values()].flatMap((chip) => chip.axes))];
          return (
            <path
              key={`${link.from} ${link.to}`}
              d={smooth(path.points)}
              class={`edge${link.chips.length ? " sends" : ""}${path.back ? " back" : ""}${lit ? " lit" : ""}`}
              data-flow={`${link.from} ${link.to}`}
              style={axes.length === 1 ? { stroke: colours(axes) } : undefined}
              marker-end="url(#arrow)"
              onClick={() => (selection.value = { what: "edge", from: link.from, to: link.to })}
            >
              <title>{`${count(link.flow.values)} value${link.flow.values > 1 ? "s" : ""}${path.back ? "; read in the next trip or the next layer of a scope above" : ""}`}</title>
            </path>
          );
        })}
        {[...frames].map(([id, place]) => (
          <Head key={id} fold={Number(id.slice(1))} place={place} />
        ))}
        {shapes.map((each) => {
          const place = boxes.get(each.id)!;
          const on =
            (chosen?.what === "fold" && each.id === `f${chosen.fold}`) ||
            (chosen?.what === "op" && each.box.op === chosen.op) ||
            (chosen?.what === "row" && [...each.box.inside.values()].some((chip) => chip.rows.has(chosen.row)));
          return <Node key={each.id} shape={each} x={place.x} y={place.y} lit={on} />;
        })}
        {links
          .filter((link) => link.chips.length)
          .map((link) => {
            const path = paths.get(`${link.from} ${link.to}`)!;
            return (
              <g
                key={`${link.from} ${link.to}`}
                class={`label${isLit(link.flow, link.from, link.to) ? " lit" : ""}`}
                data-edge={`${link.from} ${link.to}`}
                onClick={() => (selection.value = { what: "edge", from: link.from, to: link.to })}
              >
                <Labels x={path.label.x - link.width / 2} y={path.label.y - link.height / 2} width={link.width} chips={link.chips} />
              </g>
            );
          })}
      </Canvas>
      {left > 0 && <p class="note left">{count(left)} thinner edges are not drawn: fold a scope to see fewer boxes</p>}
    </div>
  );
}

function Labels({ x, y, width, chips }: { x: number; y: number; width: number; chips: ChipText[] }) {
  return (
    <g transform={`translate(${x},${y})`}>
      <rect width={width} height={chips.length * CHIP} rx={4} class="chip" />
      {chips.map((chip, index) => (
        <g key={chip.text} transform={`translate(0,${index * CHIP})`}>
          <Swatch axes={chip.axes} />
          <text x={18} y={12} class="small">
            {chip.text}
          </text>
        </g>
      ))}
    </g>
  );
}

function Swatch({ axes }: { axes: string[] }) {
  const share = 8 / Math.max(1, axes.length);
  return (
    <g>
      {axes.map((axis, index) => (
        <rect key={axis} x={6 + index * share} y={4.5} width={share} height={8} style={{ fill: colours([axis]) }} />
      ))}
    </g>
  );
}

function Node({ shape, x, y, lit }: { shape: Shape; x: number; y: number; lit: boolean }) {
  const { box, title, subtitle, chips, width, height } = shape;
  const folded = box.id[0] === "f";
  const open = conflicts.value.boxes.get(box.id) ?? 0;
  const side = folds().kind[box.fold] === "argument" || folds().kind[box.fold] === "result" || folds().kind[box.fold] === "path";
  const choose = () => {
    if (box.op >= 0) selection.value = { what: "op", op: box.op };
    else selection.value = { what: "fold", fold: box.fold };
  };
  return (
    <g
      class={`node${lit ? " lit" : ""}${side ? " side" : ""}${folded ? " folded" : ""}${open ? " conflict" : ""}`}
      transform={`translate(${x},${y})`}
      data-box={box.id}
      data-last={isResult(box) ? "" : undefined}
      onClick={choose}
      onDblClick={() => folded && toggle(box.fold)}
    >
      {folded && <rect x={3} y={3} width={width} height={height} rx={6} class="behind" />}
      <rect width={width} height={height} rx={6} class="front" />
      <text x={12} y={18} class={shape.mono ? "mono" : "strong"}>
        {title}
      </text>
      <text x={12} y={33} class="small faint">
        {subtitle}
      </text>
      {folded && (
        <g
          class="twist"
          data-toggle={box.fold}
          onClick={(event) => {
            event.stopPropagation();
            toggle(box.fold);
          }}
        >
          <title>{`Unfold ${foldLabel(box.fold)}`}</title>
          <rect x={width - 24} y={5} width={18} height={18} rx={4} />
          <text x={width - 15} y={18} text-anchor="middle">
            +
          </text>
        </g>
      )}
      {open > 0 && <Mark x={width - (folded ? 46 : 24)} count={open} />}
      {chips.length > 0 && <Labels x={6} y={40} width={width - 12} chips={chips} />}
    </g>
  );
}

/** A box whose ops have an open conflict says so; a click leads to its ways out. */
function Mark({ x, count: open }: { x: number; count: number }) {
  return (
    <g
      class="mark"
      transform={`translate(${x},5)`}
      onClick={(event) => {
        event.stopPropagation();
        tab.value = "Conflicts & stops";
      }}
    >
      <title>{open === 1 ? "An open conflict" : `${count(open)} open conflicts`}</title>
      <rect width={18} height={18} rx={4} />
      <text x={9} y={13} text-anchor="middle">
        !
      </text>
    </g>
  );
}

function Frame({ fold, place: { x, y, width, height } }: { fold: number; place: Placed }) {
  const lit = selection.value?.what === "fold" && selection.value.fold === fold;
  return (
    <g class={`frame${lit ? " lit" : ""}`} transform={`translate(${x},${y})`} data-frame={`f${fold}`} onClick={() => (selection.value = { what: "fold", fold })}>
      <rect width={width} height={height} rx={8} />
    </g>
  );
}

function Head({ fold, place: { x, y, width } }: { fold: number; place: Placed }) {
  return (
    <g class="head" transform={`translate(${x},${y})`} data-head={`f${fold}`} onClick={() => (selection.value = { what: "fold", fold })}>
      <g
        class="twist"
        data-toggle={fold}
        onClick={(event) => {
          event.stopPropagation();
          toggle(fold);
        }}
      >
        <title>{`Fold ${foldLabel(fold)}`}</title>
        <rect x={3} y={3} width={18} height={18} rx={4} />
        <text x={12} y={16} text-anchor="middle">
          −
        </text>
      </g>
      <text x={28} y={HEAD - 8} class={folds().kind[fold] === "direction" ? "strong" : "mono"}>
        <title>{foldLabel(fold)}</title>
        {shorten(foldLabel(fold), Math.max(4, Math.floor((width - 40) / 7.3)))}
      </text>
    </g>
  );
}

/** Whether a fold has something to unfold that is not drawn yet. */
export const canUnfold = (fold: number) => inFold(fold).length + opsOf(fold).length > 0;
