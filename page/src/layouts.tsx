// The layout of each array after the step, and how it was before; the chosen one is drawn over the mesh.
import { computed, signal } from "@preact/signals";
import { LayoutText } from "./axes";
import { Blocks } from "./blocks";
import type { Layout } from "./data";
import { alike, hasAll, layoutBefore, layoutNow, makes, model, program, reads, starred, wordsOf } from "./model";
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

interface Group {
  /** What the row is called, and the first array that it stands for. */
  name: string;
  first: string;
  value: number;
  count: number;
  layout: Layout;
  before: Layout;
}

/** The arrays that are shown, those of layers that are alike as one. */
const all = computed((): (Group & { said: string })[] => {
  const named = asked().map((each) => ({ ...each, layout: layoutNow(each.value), before: layoutBefore(each.value) }));
  const wanted = named.filter(({ layout, before }) => which.value !== "changed" || layout !== before);
  return alike(wanted, ({ name, layout, before }) => `${starred(name)} ${layout.text} ${before.text}`).map((some) => {
    const values = new Set(some.map(({ value }) => value));
    const [first] = some;
    const name = values.size > 1 ? starred(first.name) : first.name;
    const said = [name, `× ${count(values.size)}`, first.layout.text, ...some.map((each) => each.name)].join(" ").toLowerCase();
    return { ...first, name, first: first.name, count: values.size, said };
  });
});

/** Those that a search finds by what their row shows, or by the name of an array that it stands for. */
const groups = computed((): Group[] => {
  const words = wordsOf(arrays.value);
  return all.value.filter(({ said }) => hasAll(said, words));
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
                  key={`${row.value} ${row.first}`}
                  class={row === chosen ? "chosen" : ""}
                  tabIndex={0}
                  data-value={row.first}
                  onClick={() => (chosenValue.value = row.value)}
                  onKeyDown={(event) => event.key === "Enter" && (chosenValue.value = row.value)}
                >
                  <td class="mono">
                    {row.name}
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
          name={chosen.count > 1 ? `${chosen.name} × ${chosen.count}` : chosen.name}
          layout={chosen.layout}
          before={chosen.before === chosen.layout ? null : chosen.before}
        />
      )}
    </div>
  );
}
