// An array as the blocks of its devices. Dims that are placed are drawn: two as a plane, others as one plane for each block.
import { signal } from "@preact/signals";
import { base, colour, LayoutText } from "./axes";
import type { Dim, Layout } from "./data";
import { step, wide } from "./state";
import { bytes, exact } from "./units";

const MOST_BLOCKS = 48;
const MOST_PLANES = 8;
const STRIP = 13;
/** How wide a plane is: one of several, a single one, and a single one in a window with this much room. */
const SIZES = { several: 170, one: 380, large: 560 };
const ROOM = 1600;
/** The most height of a plane, to its width. */
const FLAT = 0.6;

interface Block {
  start: number;
  stop: number;
  at: Record<string, number>;
  padding: boolean;
}

interface Cut {
  dim: number;
  its: Dim;
  blocks: Block[];
  left: number;
}

function cutOf(dim: number, its: Dim): Cut {
  const { extent, factors, windows } = its;
  if (windows) {
    const blocks = windows.slice(0, MOST_BLOCKS).map(([start, stop], index) => ({ start, stop, at: digits(index, factors), padding: false }));
    return { dim, its, blocks, left: windows.length - blocks.length };
  }
  if (!factors.length) return { dim, its, blocks: [{ start: 0, stop: extent, at: {}, padding: false }], left: 0 };
  const finest = Math.max(1, Math.min(...factors.map(([, , stride]) => stride)));
  const number = Math.ceil((its.padded ?? extent) / finest);
  const blocks: Block[] = [];
  for (let index = 0; index < Math.min(number, MOST_BLOCKS); index += 1) {
    const start = index * finest;
    const at = Object.fromEntries(factors.map(([axis, size, stride]) => [axis, Math.floor(start / stride) % size]));
    blocks.push({ start, stop: Math.min(start + finest, extent), at, padding: start >= extent });
  }
  return { dim, its, blocks, left: number - blocks.length };
}

/** The coordinate on each axis of the device with this number along a dim. */
function digits(index: number, factors: Dim["factors"]): Record<string, number> {
  const at: Record<string, number> = {};
  let rest = index;
  for (const [axis, size] of [...factors].reverse()) {
    at[axis] = rest % size;
    rest = Math.floor(rest / size);
  }
  return at;
}

/** The colour of an axis, stronger for later devices. */
function tint(axis: string, at: number, size: number) {
  const share = 18 + (40 * at) / Math.max(1, size - 1);
  return `color-mix(in oklab, ${colour(axis)} ${share.toFixed(0)}%, var(--paper))`;
}

const sizeOf = (axis: string) => Object.fromEntries(step.value.mesh)[axis] ?? 1;

/** A block is in the colour of its axis; one on two axes is in that of either, above and below its diagonal. */
function fills(rows: Record<string, number>, columns: Record<string, number>): string[] {
  const sides = [rows, columns].map((at) => Object.entries(at).map(([axis, index]) => tint(axis, index, sizeOf(axis))));
  const found = sides.filter((tints) => tints.length).map((tints) => tints.reduce((mixed, each) => `color-mix(in oklab, ${mixed} 50%, ${each})`));
  return found.length ? found : ["var(--whole)"];
}

const where = (at: Record<string, number>) =>
  Object.entries(at)
    .map(([axis, index]) => `${axis} ${index}`)
    .join(" · ");

const hovered = signal("");

export function Blocks({ name, layout, before }: { name: string; layout: Layout; before: Layout | null }) {
  const cuts = layout.dims.map((dim, index) => cutOf(index, dim));
  const placed = cuts.filter((cut) => cut.its.factors.length);
  const plain = cuts.filter((cut) => !cut.its.factors.length && cut.its.extent > 1);
  const drawn = [...placed].sort((a, b) => b.its.extent - a.its.extent).slice(0, 2);
  const plane = [...drawn, ...plain.slice(Math.max(0, plain.length - Math.max(0, 2 - placed.length)))]
    .slice(0, 2)
    .sort((a, b) => a.dim - b.dim);
  const others = placed.filter((cut) => !drawn.includes(cut));
  const [rows, columns] = plane.length === 2 ? plane : [null, plane[0] ?? null];
  const used = new Set([...layout.dims.flatMap((dim) => dim.factors.map(([axis]) => axis)), ...layout.pending.map(({ axis }) => axis)]);
  const whole = step.value.mesh.filter(([axis, size]) => size > 1 && !used.has(axis));
  const copies = whole.reduce((product, [, size]) => product * size, 1);
  const planes = combinations(others).slice(0, MOST_PLANES);
  const size = planes.length > 1 ? SIZES.several : wide.value < ROOM ? SIZES.one : SIZES.large;
  return (
    <div class="blocks scroll pad">
      <p class="mono big">{name}</p>
      <p>
        {before && (
          <>
            <LayoutText text={before.text} /> <span class="faint">→</span>{" "}
          </>
        )}
        <LayoutText text={layout.text} />
      </p>
      <p>
        Each device has{" "}
        <b>
          {layout.local.length ? layout.local.map(exact).join(" × ") : "1"}
        </b>{" "}
        element{layout.local.length === 0 ? "" : "s"}, {bytes(layout.bytes)}.{" "}
        {copies > 1 ? `Each block is on ${exact(copies)} devices: replicated along ${whole.map(([axis]) => axis).join(", ")}.` : "No two devices have the same block."}
      </p>
      {layout.pending.map((each) => (
        <p key={each.text} class="pending">
          <b style={{ color: colour(each.axis) }}>{each.text}</b>: each of the {sizeOf(each.axis)} devices along {each.axis} has one part of a
          reduction that is not done yet.
        </p>
      ))}
      <div class="planes">
        {planes.map((combination, index) => (
          <figure key={index}>
            {combination.length > 0 && (
              <figcaption>{combination.map(({ cut, block }) => `dim ${cut.dim}: ${range(block)} (${where(block.at)})`).join(", ")}</figcaption>
            )}
            <Plane rows={rows} columns={columns} size={size} fixed={Object.assign({}, ...combination.map(({ block }) => block.at))} pending={layout.pending.map(({ axis }) => axis)} />
          </figure>
        ))}
      </div>
      {combinations(others).length > planes.length && <p class="note">and {combinations(others).length - planes.length} more planes like these</p>}
      <p class="hovered">{hovered.value || "\u00a0"}</p>
      <table class="list dims">
        <thead>
          <tr>
            <th class="right">dim</th>
            <th class="right">extent</th>
            <th>layout</th>
            <th>meaning</th>
          </tr>
        </thead>
        <tbody>
          {cuts.map((cut) => (
            <tr key={cut.dim}>
              <td class="right">{cut.dim}</td>
              <td class="right">{exact(cut.its.extent)}</td>
              <td>
                <LayoutText text={cut.its.text} />
              </td>
              <td class="faint">{meaning(cut)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function meaning({ its, left, blocks }: Cut): string {
  const { factors, windows, padded } = its;
  const rest = left > 0 ? `; the first ${blocks.length} blocks are drawn` : "";
  if (!factors.length) return "whole on each device";
  if (windows) return `windows over ${factors.map(([axis]) => axis).join(", ")}, which may overlap${rest}`;
  const finest = Math.min(...factors.map(([, , stride]) => stride));
  const said = factors.map(([axis, size]) => `${size} along ${axis}`).join(", ");
  return `blocks of ${exact(finest)}: ${said}${padded ? `; padded to ${exact(padded)}` : ""}${rest}`;
}

const range = ({ start, stop }: Block) => (stop - start === 1 ? exact(start) : `${exact(start)}–${exact(Math.max(start, stop - 1))}`);

function combinations(cuts: Cut[]): { cut: Cut; block: Block }[][] {
  let found: { cut: Cut; block: Block }[][] = [[]];
  for (const cut of cuts) found = found.flatMap((each) => cut.blocks.map((block) => [...each, { cut, block }]));
  return found;
}

interface PlaneProps {
  rows: Cut | null;
  columns: Cut | null;
  size: number;
  fixed: Record<string, number>;
  pending: string[];
}

function Plane({ rows, columns, size, fixed, pending }: PlaneProps) {
  const tall = extentOf(rows);
  const wide = extentOf(columns);
  const ratio = Math.min(2.6, Math.max(0.5, Math.sqrt(wide / tall)));
  const height = rows ? Math.min(size / ratio, size * FLAT) : 56;
  const width = rows ? Math.min(size, Math.max(height * ratio, size / 3)) : size;
  const sheets = pending.length ? Math.min(3, Math.max(...pending.map(sizeOf)) - 1) : 0;
  const left = strips(rows) * STRIP + (rows ? 46 : 4);
  const top = strips(columns) * STRIP + 18;
  const xs = places(columns, width);
  const ys = places(rows, height);
  return (
    <svg width={left + width + 20 + sheets * 6} height={top + height + 8 + sheets * 6} class="plane" role="img" aria-label="blocks of the array">
      {columns && <Strips cut={columns} places={xs} x={left} y={14} across />}
      {rows && <Strips cut={rows} places={ys} x={42} y={top} across={false} />}
      {columns && (
        <text x={left + width} y={10} text-anchor="end" class="small faint">
          {`dim ${columns.dim}: ${exact(columns.its.extent)}`}
        </text>
      )}
      {rows && (
        <text x={36} y={top + 10} text-anchor="end" class="small faint">
          <tspan>{`dim ${rows.dim}`}</tspan>
          <tspan x={36} dy={13}>
            {exact(rows.its.extent)}
          </tspan>
        </text>
      )}
      {Array.from({ length: sheets }, (_, sheet) => (
        <rect key={sheet} x={left + (sheets - sheet) * 6} y={top + (sheets - sheet) * 6} width={width} height={height} class="sheet-behind" />
      ))}
      {ys.map((y, row) =>
        xs.map((x, column) => {
          const at = { ...fixed, ...y.block?.at, ...x.block?.at };
          const label = where({ ...y.block?.at, ...x.block?.at });
          const fits = x.size > label.length * 6.1 + 8 && y.size > 18;
          const [first, second] = fills(y.block?.at ?? {}, x.block?.at ?? {});
          const padding = x.block?.padding || y.block?.padding;
          const said = `${where(at) || "every device"}: ${[y.block && rows && `dim ${rows.dim} ${range(y.block)}`, x.block && columns && `dim ${columns.dim} ${range(x.block)}`].filter(Boolean).join(", ") || "the scalar"}`;
          return (
            <g key={`${row} ${column}`} onMouseEnter={() => (hovered.value = said)} onMouseLeave={() => (hovered.value = "")}>
              <rect x={left + x.start} y={top + y.start} width={x.size} height={y.size} class={`block${padding ? " padding" : ""}`} style={padding ? undefined : { fill: first }}>
                <title>{said}</title>
              </rect>
              {second && !padding && (
                <path
                  d={`M${left + x.start + x.size},${top + y.start}v${y.size}h${-x.size}z`}
                  class="half"
                  style={{ fill: second }}
                />
              )}
              {fits && (
                <text x={left + x.start + x.size / 2} y={top + y.start + y.size / 2 + 4} text-anchor="middle" class="small">
                  {label}
                </text>
              )}
            </g>
          );
        }),
      )}
    </svg>
  );
}

const extentOf = (cut: Cut | null) => (cut ? Math.max(1, cut.its.padded ?? cut.its.extent) : 1);
const strips = (cut: Cut | null) => new Set(cut?.its.factors.map(([axis]) => axis)).size;

interface Place {
  start: number;
  size: number;
  block: Block | null;
}

function places(cut: Cut | null, length: number): Place[] {
  if (!cut) return [{ start: 0, size: length, block: null }];
  const extent = cut.left > 0 ? cut.blocks[cut.blocks.length - 1].stop : extentOf(cut);
  const finest = cut.blocks.length > 1 && !cut.its.windows ? cut.blocks[1].start : extent;
  return cut.blocks.map((block) => {
    const stop = cut.its.windows ? block.stop : Math.min(block.start + finest, extent);
    return { start: (length * block.start) / extent, size: Math.max(1, (length * (stop - block.start)) / extent), block };
  });
}

/** Along an edge of the plane, for each axis of the dim, which device of it has what. */
function Strips({ cut, places: its, x, y, across }: { cut: Cut; places: Place[]; x: number; y: number; across: boolean }) {
  return (
    <g>
      {cut.its.factors.map(([axis, size], level) => (
        <g key={axis}>
          {its.map((place, index) => {
            const at = place.block?.at[axis] ?? 0;
            const along = { start: place.start, size: place.size };
            return across ? (
              <rect key={index} x={x + along.start} y={y + level * STRIP} width={along.size} height={STRIP - 4} style={{ fill: tint(axis, at, size) }}>
                <title>{`${axis} ${at}`}</title>
              </rect>
            ) : (
              <rect key={index} x={x + level * STRIP} y={y + along.start} width={STRIP - 4} height={along.size} style={{ fill: tint(axis, at, size) }}>
                <title>{`${axis} ${at}`}</title>
              </rect>
            );
          })}
          {across && (
            <text x={x} y={10} class="small" style={{ fill: colour(axis) }} dx={level * 60}>
              {base(axis) === axis ? axis : axis}
            </text>
          )}
        </g>
      ))}
    </g>
  );
}
