// Each mesh axis has one colour everywhere; a part of an axis, `data.0:4`, has that of its axis.
import { data } from "./state";

const names = data.mesh.map(([name]) => name);

export const base = (axis: string) => axis.split(".")[0];
export const colour = (axis: string) => `var(--axis-${Math.max(0, names.indexOf(base(axis))) % 6})`;

/** The colours of several axes, side by side. */
export function colours(axes: string[]): string {
  if (axes.length === 0) return "var(--faint)";
  if (axes.length === 1) return colour(axes[0]);
  const share = 100 / axes.length;
  const stops = axes.map((axis, at) => `${colour(axis)} ${at * share}% ${(at + 1) * share}%`);
  return `linear-gradient(90deg, ${stops.join(", ")})`;
}

export function Dot({ axes }: { axes: string[] }) {
  return <span class="dot" style={{ background: colours(axes) }} />;
}

export function Axes({ axes }: { axes: string[] }) {
  return (
    <span class="axes">
      {axes.map((axis) => (
        <span class="axis" key={axis} style={{ "--its": colour(axis) }}>
          {axis}
        </span>
      ))}
    </span>
  );
}

const AXIS = new RegExp(`(^|[^\\w.#/])((?:${names.map(escaped).join("|") || "(?!)"})(?:\\.\\d+:\\d+)?)(?![\\w/#])`, "g");

function escaped(name: string) {
  return name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** A layout, with its axes in their colours. */
export function LayoutText({ text }: { text: string }) {
  const parts: preact.ComponentChild[] = [];
  let end = 0;
  for (const match of text.matchAll(AXIS)) {
    const start = match.index + match[1].length;
    parts.push(text.slice(end, start), <b style={{ color: colour(match[2]) }}>{match[2]}</b>);
    end = start + match[2].length;
  }
  return (
    <code class="layout" title={text}>
      {parts}
      {text.slice(end)}
    </code>
  );
}
