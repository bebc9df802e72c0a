// All collectives of a step, those of layers that are alike as one row; the search looks into everything that a row says.
import { computed } from "@preact/signals";
import { Fragment } from "preact";
import { Axes } from "./axes";
import type { Row } from "./data";
import { hasAll, line, tacticNames, wordsOf } from "./model";
import { order, search, selection, step, text, type Order } from "./state";
import { tacticTexts } from "./inspector";
import { bytes, count, counted, exact } from "./units";

const times = (row: Row) => row.times * row.members.length;

/** What a row shows, cell by cell. */
function cells(row: Row) {
  const place = line(row.line)?.[0] ?? "";
  return {
    value: text(row.value),
    members: row.members.length > 1 ? `× ${count(row.members.length)}` : "",
    kind: row.kind,
    axes: row.axes.join(" "),
    when: [row.direction, row.where, row.times > 1 && `${exact(row.times)} trips`].filter(Boolean).join(", "),
    times: exact(times(row)),
    received: bytes(row.bytes).replace("\u00a0", " "),
    use: text(row.use),
    place: place && row.made ? `made at ${place}` : place,
    tactics: tacticTexts(row.tactics)
      .map(([number, tactic]) => (number ? `${number} ${tacticNames(tactic)[1]}` : ""))
      .join(" "),
  };
}

const shown = computed(() => step.value.sent.map((row) => Object.values(cells(row)).join(" ").toLowerCase()));
const named = computed(() => step.value.sent.map((row) => row.members.map(([member]) => text(member))));

interface Hit {
  row: Row;
  index: number;
  /** The members by whose names the row is found, if what it shows does not have all words. */
  by: string[];
}

/** The rows that show all words, or that stand for a collective of a value whose name has those that they do not show. */
const found = computed((): Hit[] => {
  const words = wordsOf(search.value);
  const rows = step.value.sent.flatMap((row, index): Hit[] => {
    const missing = words.filter((word) => !shown.value[index].includes(word));
    const by = missing.length ? named.value[index].filter((member) => hasAll(member.toLowerCase(), missing)) : [];
    return missing.length && !by.length ? [] : [{ row, index, by }];
  });
  if (order.value === "bytes") rows.sort((a, b) => b.row.bytes - a.row.bytes);
  if (order.value === "times") rows.sort((a, b) => times(b.row) - times(a.row));
  return rows;
});

/** A search that finds something here: the collective by which a device receives the most. */
function example(): string {
  const [first] = [...step.value.sent].sort((a, b) => b.bytes - a.bytes);
  return first ? `Search, for example ${first.kind} ${text(first.value).split("/").at(-1)} ${first.direction}`.trim() : "Search";
}

export function Collectives() {
  const rows = found.value;
  const most = Math.max(1, ...rows.map(({ row }) => row.bytes));
  const sum = rows.reduce((total, { row }) => total + row.bytes, 0);
  const runs = rows.reduce((total, { row }) => total + times(row), 0);
  return (
    <div class="sheet">
      <div class="tools">
        <input
          type="search"
          placeholder={example()}
          aria-label="Search the collectives"
          value={search.value}
          onInput={(event) => (search.value = event.currentTarget.value)}
        />
        <span class="faint" role="status">
          {counted(runs, "collective")} in {counted(rows.length, "row")}, {bytes(sum)} by a device in a call
        </span>
      </div>
      {rows.length === 0 ? (
        <p class="empty">{step.value.sent.length ? "No collective matches." : "No collective runs here: each device has what it computes with."}</p>
      ) : (
        <div class="scroll">
          <table class="list stacked">
            <thead>
              <tr>
                <Head by="program">value</Head>
                <th>collective</th>
                <th>over</th>
                <th>when</th>
                <Head by="times">times</Head>
                <Head by="bytes">received</Head>
                <th>for</th>
                <th>at</th>
                <th>tactics</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((hit) => (
                <Line key={hit.index} hit={hit} most={most} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}

function Head({ by, children }: { by: Order; children: string }) {
  const on = order.value === by;
  return (
    <th class={by === "program" ? "" : "right"} aria-sort={on ? (by === "program" ? "ascending" : "descending") : "none"}>
      <button type="button" class={`sort${on ? " on" : ""}`} title={by === "program" ? "In program order" : `The most ${by} first`} onClick={() => (order.value = by)}>
        {children}
        {on ? (by === "program" ? " ↑" : " ↓") : ""}
      </button>
    </th>
  );
}

function Line({ hit: { row, index, by }, most }: { hit: Hit; most: number }) {
  const chosen = selection.value?.what === "row" && selection.value.row === index;
  const its = cells(row);
  return (
    <tr class={chosen ? "chosen" : ""} data-row={index} tabIndex={0} onClick={choose} onKeyDown={(event) => event.key === "Enter" && choose()}>
      <td class="mono">
        <Marked said={its.value} />
        {its.members && <span class="times"> {its.members}</span>}
        {by.length > 0 && (
          <div class="by">
            <Marked said={by.slice(0, MOST_NAMED).join(", ")} />
            {by.length > MOST_NAMED && `, and ${count(by.length - MOST_NAMED)} more`}
          </div>
        )}
      </td>
      <td>
        <Marked said={its.kind} />
      </td>
      <td>
        <Axes axes={row.axes} />
      </td>
      <td class="faint">
        <Marked said={its.when} />
      </td>
      <td class="right twice">{its.times}</td>
      <td class="right nowrap" title={`${exact(row.bytes)} bytes by a device in a call`}>
        <Marked said={its.received} />
        <i class="bar" style={{ width: `${(100 * row.bytes) / most}%` }} />
      </td>
      <td class="mono">
        <Marked said={its.use} />
      </td>
      <td class="mono nowrap" title={line(row.line)?.[2]}>
        <Marked said={its.place} />
      </td>
      <td class="causes">
        {tacticTexts(row.tactics).map(
          ([number, tactic]) =>
            number > 0 && (
              <Fragment key={number}>
                <span class="nowrap" title={tactic}>
                  <span class="number">{number}</span>{" "}
                  <span class="what">
                    <Marked said={tacticNames(tactic)[1]} />
                  </span>
                </span>{" "}
              </Fragment>
            ),
        )}
      </td>
    </tr>
  );

  function choose() {
    selection.value = { what: "row", row: index };
  }
}

/** The most members that a row names by which it is found. */
const MOST_NAMED = 3;

/** A text with the words of the search marked in it. */
function Marked({ said }: { said: string }) {
  const words = wordsOf(search.value).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (!words.length) return <>{said}</>;
  const parts = said.split(new RegExp(`(${words.join("|")})`, "i"));
  return <>{parts.map((part, index) => (index % 2 ? <mark key={index}>{part}</mark> : part))}</>;
}
