// The layout of each array after the step, and how it was before; the chosen one is drawn over the mesh.
import { computed, signal } from "@preact/signals";
import { LayoutText } from "./axes";
import { Blocks } from "./blocks";
import type { Layout } from "./data";
import { layoutBefore, layoutNow, makes, model, program, reads } from "./model";
import { arrays, chosenValue, text } from "./state";
import { count } from "./units";

type Which = "outside" | "changed" | "all";
const which = signal<Which>("outside");
const MOST = 300;

interface Named {
  name: string;
  value: number;
}

const outside = computed((): Named[] => {
  const { program: of, firstResult } = model.value;
  return of.kind.flatMap((kind, op) => {
    if (text(kind) === "argument") return [{ name: of.name[makes(op)[0]], value: makes(op)[0] }];
    return op >= firstResult ? [{ name: of.results[op - firstResult], value: reads(op)[0] }] : [];
  });
});

function asked(): Named[] {
  const all = program().name.map((name, value) => ({ name, value }));
  if (which.value === "outside") return outside.value;
  return which.value === "all" ? all : [...outside.value, ...all];
}

// The numbers that tell layers apart, as compiler/views/listing.py takes them.
const NUMBER = /(?<=\/)(?<!^result\/)\d+(?=\/)|(?<=#)\d+|(?<=[A-Za-z]_)\d+(?=\/)/g;
const starred = (name: string) => name.replace(NUMBER, "*");

interface Group {
  name: string;
  value: number;
  count: number;
  layout: Layout;
  before: Layout;
}

const groups = computed(() => {
  const words = arrays.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = new Map<string, Group>();
  for (const { name, value } of asked()) {
    const layout = layoutNow(value);
    const before = layoutBefore(value);
    if (which.value === "changed" && layout === before) continue;
    const key = `${starred(name)} ${layout.text} ${before.text}`;
    const group = found.get(key);
    if (group) {
      if (group.value !== value) group.count += 1;
      continue;
    }
    if (words.every((word) => name.toLowerCase().includes(word) || layout.text.toLowerCase().includes(word)))
      found.set(key, { name, value, count: 1, layout, before });
  }
  return [...found.values()];
});

/** The first of those with the most placed factors. */
function mostPlaced(rows: Group[]): Group | undefined {
  const placed = (row: Group) => row.layout.dims.reduce((sum, dim) => sum + dim.factors.length, 0);
  return rows.reduce<Group | undefined>((best, row) => (best && placed(best) >= placed(row) ? best : row), undefined);
}

export function Layouts() {
  const rows = groups.value;
  const chosen = rows.find((row) => row.value === chosenValue.value) ?? mostPlaced(rows);
  return (
    <div class="split">
      <div class="sheet">
        <div class="tools">
          <input
            type="search"
            placeholder="Search arrays"
            aria-label="Search arrays"
            value={arrays.value}
            onInput={(event) => (arrays.value = event.currentTarget.value)}
          />
          <select aria-label="Which arrays" value={which.value} onChange={(event) => (which.value = event.currentTarget.value as Which)}>
            <option value="outside">arguments and results</option>
            <option value="changed">changed by this tactic</option>
            <option value="all">all values</option>
          </select>
        </div>
        {rows.length === 0 && <p class="empty">{which.value === "changed" ? "This step changes no layout." : "No array matches."}</p>}
        <div class="scroll">
          <table class="list">
            <tbody>
              {rows.slice(0, MOST).map((row) => (
                <tr
                  key={`${row.value} ${row.name}`}
                  class={row === chosen ? "chosen" : ""}
                  tabIndex={0}
                  data-value={row.name}
                  onClick={() => (chosenValue.value = row.value)}
                  onKeyDown={(event) => event.key === "Enter" && (chosenValue.value = row.value)}
                >
                  <td class="mono">
                    {row.count > 1 ? starred(row.name) : row.name}
                    {row.count > 1 && <span class="times"> × {count(row.count)}</span>}
                  </td>
                  <td>
                    <LayoutText text={row.layout.text} />
                    {row.before !== row.layout && <span class="changed" title={`Before: ${row.before.text}`} aria-label="changed" />}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          {rows.length > MOST && <p class="note">and {count(rows.length - MOST)} more: search for them</p>}
        </div>
      </div>
      {chosen && (
        <Blocks
          name={chosen.count > 1 ? `${starred(chosen.name)} × ${chosen.count}` : chosen.name}
          layout={chosen.layout}
          before={chosen.before === chosen.layout ? null : chosen.before}
        />
      )}
    </div>
  );
}
