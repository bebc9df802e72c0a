// What is known of the chosen thing: for a collective its cause, step by step.
import { Axes, Dot, LayoutText } from "./axes";
import type { Row } from "./data";
import { alike, drawing, foldLabel, folds, layoutBefore, layoutNow, line, makerOf, makes, opLabel, program, reads, received, sizeOf, starred, starredIn, type Box } from "./model";
import { reveal, showOp } from "./moves";
import { data, selection, step, tab, text } from "./state";
import { bytes, count, exact } from "./units";

const MOST_NAMES = 100;
const MOST_ROWS = 30;

export function Inspector() {
  const chosen = selection.value;
  if (!chosen) return null;
  return (
    <aside class="inspector" aria-label="Details">
      <button type="button" class="close" aria-label="Close" onClick={() => (selection.value = null)}>
        ×
      </button>
      {chosen.what === "row" && step.value.sent[chosen.row] && <Collective at={chosen.row} />}
      {chosen.what === "fold" && <Fold fold={chosen.fold} />}
      {chosen.what === "op" && <Op op={chosen.op} />}
      {chosen.what === "edge" && <Edge from={chosen.from} to={chosen.to} />}
    </aside>
  );
}

export function Line({ number }: { number: number }) {
  const found = line(number);
  if (!found) return null;
  const [place, name, code] = found;
  return (
    <div class="source">
      <span class="place">
        {place} <span class="faint">in {name}</span>
      </span>
      {code && <code>{code}</code>}
    </div>
  );
}

/** The tactics with these numbers, and 0 with the program itself if there are none, or if it is one of them. */
export function tacticTexts(numbers: number[]): [number, string][] {
  const found = data.steps.filter((each) => each.tactic && numbers.includes(each.number));
  const own: [number, string][] = found.length < numbers.length || !numbers.length ? [[0, "the program itself"]] : [];
  return [...own, ...found.map((each): [number, string] => [each.number, each.tactic])];
}

/** The numbers of tactics, each with its text. */
export function Numbers({ of }: { of: number[] }) {
  return (
    <>
      {tacticTexts(of).map(
        ([number, tactic]) =>
          number > 0 && (
            <span key={number} class="number" title={tactic}>
              {number}
            </span>
          ),
      )}
    </>
  );
}

function Collective({ at: number }: { at: number }) {
  const row = step.value.sent[number];
  const several = row.members.length;
  return (
    <>
      <h3>
        <Dot axes={row.axes} /> {row.kind}
      </h3>
      <p class="mono big">
        {text(row.value)}
        {several > 1 && <span class="times"> × {count(several)}</span>}
      </p>
      <dl>
        <dt>over</dt>
        <dd>
          <Axes axes={row.axes} />
        </dd>
        <dt>received</dt>
        <dd>
          {bytes(row.bytes)} <span class="faint">by a device in a call{row.times > 1 && `, ${bytes(row.bytes / row.times)} a trip`}</span>
        </dd>
        {(row.times > 1 || row.where) && (
          <>
            <dt>runs</dt>
            <dd>
              {row.times > 1 ? `in ${exact(row.times)} trips` : ""} {row.where && `in ${row.where}`}
            </dd>
          </>
        )}
        <dt>for</dt>
        <dd>
          {text(row.use)} {row.direction && <span class="faint">({row.direction})</span>}
        </dd>
        <dt>by</dt>
        {tacticTexts(row.tactics).map(([number, tactic]) => (
          <dd key={number} class="cause">
            {number > 0 && <span class="number">{number}</span>}
            <code>{tactic}</code>
          </dd>
        ))}
      </dl>
      {row.line >= 0 && <h4>{row.made ? "Made" : "Used"} at</h4>}
      <Line number={row.line} />
      {text(row.why) && <p>{text(row.why)}</p>}
      <h4>Why{several > 1 ? ", for the first one" : ""}</h4>
      <Reasons row={row} />
      <p>
        <button type="button" class="action" onClick={() => show(row)}>
          Show in the program
        </button>
      </p>
      {several > 1 && (
        <>
          <h4>All {count(several)}</h4>
          <Members row={row} />
        </>
      )}
    </>
  );
}

/** Those of layers that are alike in one line, which unfolds to their names. */
function Members({ row }: { row: Row }) {
  const groups = alike(row.members, ([name, , , size]) => `${starred(text(name))} ${size}`);
  return (
    <ul class="members">
      {groups.map((some) => {
        const names = [...new Set(some.map(([name]) => text(name)))];
        const size = bytes(some[0][3]);
        return (
          <li key={names[0]}>
            {some.length === 1 ? (
              <>
                <code>{names[0]}</code> <span class="faint">{size}</span>
              </>
            ) : (
              <details>
                <summary>
                  <code>{names.length > 1 ? starred(names[0]) : names[0]}</code>
                  <span class="times"> × {count(some.length)}</span> <span class="faint">{size} each</span>
                </summary>
                {names.slice(0, MOST_NAMES).map((name) => (
                  <code key={name}>{name}</code>
                ))}
                {names.length > MOST_NAMES && <span class="faint">and {count(names.length - MOST_NAMES)} more</span>}
              </details>
            )}
          </li>
        );
      })}
    </ul>
  );
}

/** The claims behind a collective; one that repeats in equal layers is one line. */
function Reasons({ row }: { row: Row }) {
  const groups = alike(row.reasons, ([said, depth, tactics]) => `${starredIn(text(said))} ${depth} ${tactics.join()}`);
  return (
    <ol class="reasons">
      {groups.map((some, index) => {
        const [said, depth, tactics] = some[0];
        return (
          <li key={index} style={{ marginLeft: `${(depth - 1) * 14}px` }}>
            {tactics.length > 0 && <Numbers of={tactics} />}
            <Said text={short(some.length > 1 ? starredIn(text(said)) : text(said))} />
            {some.length > 1 && <span class="times"> × {count(some.length)}</span>}
          </li>
        );
      })}
    </ol>
  );
}

/** A reason cites a tactic by its number and its text; the number is enough here, the text is at the top. */
function short(said: string) {
  let found = said;
  for (const each of data.steps) {
    if (each.tactic) found = found.split(`${each.number}: ${each.tactic}`).join(`tactic ${each.number}`);
  }
  return found;
}

/** The name of a value, or of those of equal layers, as a table has it: a click leads to what makes it in the program. */
export function Leads({ name: said }: { name: string }) {
  const op = makerOf(said);
  if (op < 0) return <>{said}</>;
  return (
    <button type="button" class="leads mono" title="Show in the program" onClick={() => showOp(op)}>
      {said}
    </button>
  );
}

/** What stands between backquotes is code. */
export function Said({ text: said }: { text: string }) {
  return (
    <span>
      {said.split("`").map((part, index) => (index % 2 ? <code key={index}>{part}</code> : <span key={index}>{part}</span>))}
    </span>
  );
}

function show(row: Row) {
  const [, maker, uses] = row.members[0];
  const ends = [maker, ...uses.slice(0, 1)].filter((op) => op >= 0);
  reveal(ends.map((op) => program().fold[op]));
  tab.value = "Program";
}

function Fold({ fold }: { fold: number }) {
  const { times, bytes: size } = received.value[fold];
  const path: string[] = [];
  for (let each = fold; each > 0; each = folds().parent[each]) path.unshift(foldLabel(each));
  const found = step.value.sent
    .map((row, index) => ({ row, index }))
    .filter(({ row }) => row.members.some(([, maker, uses]) => isIn(fold, uses.length ? uses[0] : maker)));
  return (
    <>
      <h3>{folds().kind[fold]}</h3>
      <p class="mono big">{path.at(-1)}</p>
      {path.length > 1 && <p class="faint">{path.slice(0, -1).join(" › ")}</p>}
      <dl>
        <dt>{sideValues(fold).length ? "arrays" : "ops"}</dt>
        <dd>{exact(sizeOf(fold))}</dd>
        <dt>collectives</dt>
        <dd>{times ? exact(times) : "none"}</dd>
        <dt>received</dt>
        <dd>{bytes(size)}</dd>
      </dl>
      <Line number={folds().line[fold]} />
      <Values title="arrays" values={sideValues(fold)} />
      <Rows found={found.map(({ index }) => index)} />
    </>
  );
}

function isIn(fold: number, op: number) {
  for (let each = op < 0 ? 0 : program().fold[op]; each >= 0; each = folds().parent[each]) if (each === fold) return true;
  return false;
}

/** Rows of collectives to choose from. */
function Rows({ found }: { found: number[] }) {
  if (!found.length) return null;
  const rows = found.map((index) => ({ index, row: step.value.sent[index] }));
  const groups = alike(rows, ({ row }) => [row.kind, row.axes.join(), starred(text(row.value)), text(row.use), row.direction].join("|"));
  const sum = (some: typeof rows) => some.reduce((total, { row }) => total + row.bytes, 0);
  const sorted = groups.sort((a, b) => sum(b) - sum(a));
  return (
    <>
      <h4>Collectives</h4>
      <ul class="rows">
        {sorted.slice(0, MOST_ROWS).map((some) => {
          const [{ index, row }] = some;
          const times = some.reduce((total, each) => total + each.row.members.length, 0);
          return (
            <li key={index}>
              <button type="button" onClick={() => (selection.value = { what: "row", row: index })}>
                <Dot axes={row.axes} />
                <span class="grow">
                  {row.kind} of <code>{some.length > 1 ? starred(text(row.value)) : text(row.value)}</code>
                  {times > 1 && <span class="times"> × {count(times)}</span>}
                  <span class="faint">
                    {" "}
                    for {text(row.use)} {row.direction && `(${row.direction})`}
                  </span>
                </span>
                <span class="right">{bytes(sum(some))}</span>
              </button>
            </li>
          );
        })}
        {sorted.length > MOST_ROWS && <li class="faint">and {sorted.length - MOST_ROWS} more</li>}
      </ul>
    </>
  );
}

function Op({ op }: { op: number }) {
  return (
    <>
      <h3>{makes(op).length && text(program().kind[op]) !== "argument" ? "op" : text(program().kind[op])}</h3>
      <p class="mono big">{opLabel(op)}</p>
      <Line number={program().line[op]} />
      <Values title="reads" values={reads(op)} />
      <Values title="makes" values={makes(op)} />
      <Rows
        found={step.value.sent.flatMap((row, index) =>
          row.members.some(([, maker, uses]) => maker === op || uses.includes(op)) ? [index] : [],
        )}
      />
    </>
  );
}

function Values({ title, values }: { title: string; values: number[] }) {
  if (!values.length) return null;
  const groups = alike(values, (value) => [starred(program().name[value]), layoutBefore(value).text, layoutNow(value).text].join("|"));
  return (
    <>
      <h4>{title}</h4>
      <ul class="values">
        {groups.slice(0, MOST_ROWS).map((some) => {
          const [value] = some;
          const now = layoutNow(value);
          const then = layoutBefore(value);
          const name = program().name[value];
          return (
            <li key={value}>
              <span>
                <code>{some.length > 1 ? starred(name) : name}</code>
                {some.length > 1 && <span class="times"> × {count(some.length)}</span>}
              </span>
              {then !== now && (
                <>
                  <LayoutText text={then.text} /> <span class="faint">→</span>{" "}
                </>
              )}
              <LayoutText text={now.text} />
              <span class="faint">
                {bytes(now.bytes)} {some.length > 1 ? "each" : "on a device"}
              </span>
            </li>
          );
        })}
        {groups.length > MOST_ROWS && <li class="faint">and {count(groups.length - MOST_ROWS)} more</li>}
      </ul>
    </>
  );
}

/** The arrays of a fold of arguments or of results. */
function sideValues(fold: number): number[] {
  const kind = folds().kind[fold];
  if (kind !== "argument" && kind !== "result" && kind !== "path") return [];
  const ops = program().fold.flatMap((_, op) => (isIn(fold, op) ? [op] : []));
  return ops.flatMap((op) => (makes(op).length ? makes(op) : reads(op)));
}

function name(box: Box | undefined) {
  if (!box) return "";
  return box.op >= 0 ? opLabel(box.op) : foldLabel(box.fold);
}

function Edge({ from, to }: { from: string; to: string }) {
  const { boxes, flows } = drawing.value;
  const flow = flows.get(`${from} ${to}`);
  if (!flow) return <p class="faint">This edge is folded now.</p>;
  const rows = [...new Set([...flow.chips.values()].flatMap((chip) => [...chip.rows]))];
  return (
    <>
      <h3>edge</h3>
      <p class="mono big">
        {name(boxes.get(from))} <span class="faint">→</span> {name(boxes.get(to))}
      </p>
      <p>
        {exact(flow.values)} value{flow.values > 1 ? "s are" : " is"} read along it
        {rows.length ? "." : ", none of which is sent."}
      </p>
      <Rows found={rows} />
    </>
  );
}
