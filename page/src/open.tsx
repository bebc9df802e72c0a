// What is left open, or done in full on several devices: conflicts with their ways out, stops, what is in excess.
import { Axes, Dot } from "./axes";
import type { Conflict, Way } from "./data";
import { Leads, Line, Said } from "./inspector";
import { alike, starredIn } from "./model";
import { showOp } from "./moves";
import { step, text } from "./state";
import { bytes, count, exact, flops } from "./units";

export function OpenEnds() {
  const { open } = step.value;
  const nothing = !open.conflicts.length && !open.stops.length && !open.excess.length && !open.wholes.length;
  return (
    <div class="sheet scroll pad">
      {nothing && <p class="empty">Nothing is open here.</p>}
      {text(open.annotations) && (
        <p>
          <Said text={text(open.annotations)} />
        </p>
      )}
      {open.conflicts.length > 0 && (
        <section>
          <h3>Open conflicts</h3>
          <p class="faint">Claims that cannot all hold. Until one is resolved, each device runs the op in full.</p>
          {alikeConflicts(open.conflicts).map((some, index) => (
            <ConflictCard key={index} conflict={some.find((each) => each.ways) ?? some[0]} times={some.length} />
          ))}
        </section>
      )}
      {open.wholes.length > 0 && (
        <section>
          <h3>Unpartitioned ops</h3>
          {open.wholes.map((each, index) => (
            <div class="card" key={index}>
              <Text text={text(each.text)} />
              <Line number={each.line} />
            </div>
          ))}
        </section>
      )}
      {open.stops.length > 0 && (
        <section>
          <h3>Where propagation stopped</h3>
          {open.stops.map((each, index) => (
            <div class="card" key={index}>
              <p>
                <Dot axes={[each.axis]} /> <b>{each.axis}</b> stops at <code>{text(each.op)}</code>: {text(each.value)}
                {each.count > 1 && <span class="times"> × {count(each.count)}</span>}
              </p>
              <p>
                <Said text={text(each.reason)} />
              </p>
              <p class="faint">
                Each device runs {flops(each.flops)} in full, and receives {bytes(each.bytes)} for that.
              </p>
              <p class="cure">
                <Said text={text(each.cure)} />
              </p>
              <Line number={each.line} />
            </div>
          ))}
        </section>
      )}
      {open.excess.length > 0 && <ExcessTable />}
    </div>
  );
}

function Text({ text: said }: { text: string }) {
  return (
    <>
      {said.split("\n").map((each, index) => (
        <p key={index}>
          <Said text={each.trim()} />
        </p>
      ))}
    </>
  );
}

/** A conflict that repeats in equal layers is one card. */
function alikeConflicts(conflicts: Conflict[]): Conflict[][] {
  const claims = (each: Conflict) => each.claims.map(([claim, tactic]) => `${tactic} ${starredIn(text(claim))}`);
  return alike(conflicts, (each) => [starredIn(text(each.op)), each.axis, each.line, ...claims(each)].join("|"));
}

function ConflictCard({ conflict, times }: { conflict: Conflict; times: number }) {
  return (
    <div class="card conflict">
      <p>
        <Dot axes={[conflict.axis]} /> <b>{conflict.axis}</b> in <Said text={text(conflict.op)} />
        {times > 1 && <span class="times"> × {count(times)}</span>}
      </p>
      <Line number={conflict.line} />
      <ul class="claims">
        {conflict.claims.map(([claim, tactic], index) => (
          <li key={index}>
            <span class="number">{tactic}</span> <Said text={text(claim)} />
          </li>
        ))}
      </ul>
      {conflict.at >= 0 && (
        <p>
          <button type="button" class="action" onClick={() => showOp(conflict.at)}>
            Show in the program
          </button>
        </p>
      )}
      {conflict.ways === null && <p class="faint">Its ways out are not tried here: plan.conflicts[…].resolutions tries them.</p>}
      {conflict.ways?.length === 0 && <p class="faint">No single tactic resolves it.</p>}
      {!!conflict.ways?.length && <Ways ways={conflict.ways} />}
    </div>
  );
}

function Ways({ ways }: { ways: Way[] }) {
  return (
    <table class="list ways">
      <thead>
        <tr>
          <th>way out</th>
          <th class="right">received</th>
          <th class="right">work</th>
          <th class="right">memory</th>
        </tr>
      </thead>
      <tbody>
        {ways.map((way, index) => (
          <tr key={index}>
            <td>
              <code>{text(way.tactic)}</code>
              {way.first && <span class="faint">, as the first tactic</span>}
            </td>
            <td class="right">{bytes(way.bytes)}</td>
            <td class="right">{flops(way.flops)}</td>
            <td class="right">{bytes(way.memory)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function ExcessTable() {
  const { excess } = step.value.open;
  const most = Math.max(1, ...excess.map((each) => each.flops));
  const stored = Math.max(1, ...excess.map((each) => each.bytes));
  return (
    <section id="excess">
      <h3>On several devices, although one would do</h3>
      <p class="faint">What more than one device stores or computes. Nothing of it is wrong, and much of it is small.</p>
      <table class="list stacked">
        <thead>
          <tr>
            <th>value</th>
            <th>op</th>
            <th>what</th>
            <th>along</th>
            <th class="right">stored in excess</th>
            <th class="right">computed in excess</th>
          </tr>
        </thead>
        <tbody>
          {excess.map((each, index) => (
            <tr key={index}>
              <td class="mono">
                <Leads name={text(each.value)} />
                {each.count > 1 && <span class="times"> × {exact(each.count)}</span>}
              </td>
              <td class="mono">{text(each.op)}</td>
              <td>{each.what}</td>
              <td>
                <Axes axes={each.axes} />
              </td>
              <td class="right" data-label={each.bytes ? "stored" : undefined}>
                {each.bytes ? bytes(each.bytes) : ""}
                {each.bytes ? <i class="bar" style={{ width: `${(100 * each.bytes) / stored}%` }} /> : null}
              </td>
              <td class="right" data-label={each.flops ? "computed" : undefined}>
                {each.flops ? flops(each.flops) : ""}
                {each.flops ? <i class="bar" style={{ width: `${(100 * each.flops) / most}%` }} /> : null}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
