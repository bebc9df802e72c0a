// The program by scope as a list: what each fold has, how often it communicates, and how much it receives.
import { canUnfold } from "./graph";
import { conflicts, foldLabel, folds, inFold, MOST_OPS, opLabel, opsOf, received, sizeOf } from "./model";
import { toggle } from "./moves";
import { expanded, selection } from "./state";
import { bytes, count } from "./units";

/** Folds that are not the program itself, but what it is called with and returns. */
const SIDES = ["argument", "result", "path"];

export function Tree() {
  const most = Math.max(1, ...inFold(0).map((fold) => received.value[fold].bytes));
  return (
    <div class="tree">
      <table>
        <thead>
          <tr>
            <th>scope</th>
            <th class="right">ops</th>
            <th class="right" title="Collectives that its ops wait for, in one call">coll.</th>
            <th class="right" title="Bytes that a device receives for them in one call">received</th>
          </tr>
        </thead>
        <tbody>
          {inFold(0).map((fold) => (
            <Fold key={fold} fold={fold} depth={0} most={most} />
          ))}
          {opsOf(0).slice(0, MOST_OPS).map((op) => (
            <Op key={op} op={op} depth={0} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Fold({ fold, depth, most }: { fold: number; depth: number; most: number }) {
  const open = expanded.value.has(fold);
  const chosen = selection.value?.what === "fold" && selection.value.fold === fold;
  const { times, bytes: size } = received.value[fold];
  const [place, code] = folds().kind[fold] === "line" ? foldLabel(fold).split(/ {2}(.*)/s) : [foldLabel(fold), ""];
  const ops = opsOf(fold);
  return (
    <>
      <tr class={chosen ? "chosen" : ""} data-fold={fold} data-side={SIDES.includes(folds().kind[fold]) ? folds().kind[fold] : ""} onClick={() => (selection.value = { what: "fold", fold })}>
        <td style={{ paddingLeft: `${4 + depth * 14}px` }}>
          <button
            type="button"
            class="twisty"
            aria-expanded={open}
            aria-label={`${open ? "Fold" : "Unfold"} ${foldLabel(fold)}`}
            disabled={!canUnfold(fold)}
            onClick={(event) => {
              event.stopPropagation();
              toggle(fold);
            }}
          >
            {open ? "▾" : "▸"}
          </button>
          <span class={folds().kind[fold] === "direction" ? "strong" : "mono"} title={foldLabel(fold)}>
            {code ? (
              <>
                <span class="faint">{place.split(":").at(-1)}</span> {code}
              </>
            ) : (
              place
            )}
          </span>
          {conflicts.value.inside.has(fold) && <span class="mark" title="An open conflict"> !</span>}
        </td>
        <td class="right faint">{count(sizeOf(fold))}</td>
        <td class="right">{times ? count(times) : ""}</td>
        <td class="right">
          {size ? bytes(size) : ""}
          {size ? <i class="bar" style={{ width: `${(100 * Math.min(size, most)) / most}%` }} /> : null}
        </td>
      </tr>
      {open && inFold(fold).map((each) => <Fold key={each} fold={each} depth={depth + 1} most={most} />)}
      {open && ops.slice(0, MOST_OPS).map((op) => <Op key={op} op={op} depth={depth + 1} />)}
      {open && ops.length > MOST_OPS && (
        <tr class="faint">
          <td colSpan={4} style={{ paddingLeft: `${26 + (depth + 1) * 14}px` }}>
            and {count(ops.length - MOST_OPS)} more
          </td>
        </tr>
      )}
    </>
  );
}

function Op({ op, depth }: { op: number; depth: number }) {
  const chosen = selection.value?.what === "op" && selection.value.op === op;
  return (
    <tr class={chosen ? "chosen" : ""} onClick={() => (selection.value = { what: "op", op })}>
      <td colSpan={4} class="mono" style={{ paddingLeft: `${26 + depth * 14}px` }}>
        {opLabel(op)}
      </td>
    </tr>
  );
}
