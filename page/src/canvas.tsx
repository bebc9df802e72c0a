// A drawing that can be moved and enlarged; it starts so that all of it is visible.
import { select } from "d3-selection";
import { zoom, zoomIdentity, zoomTransform, type ZoomBehavior } from "d3-zoom";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** How much a small drawing is enlarged to fill its frame. */
const MOST_ENLARGED = 1.5;

interface Props {
  width: number;
  height: number;
  /** The drawing is shown whole again when this changes. */
  of: string;
  label: string;
  /** The smallest scale at which all of it is shown; below that, its beginning is shown at this scale. */
  least?: number;
  /** What is seen first of a drawing that is wider than the frame. */
  start?: "left" | "middle";
  /** The box or the frame that is in view when the drawing changes. */
  focus?: string;
  /** What is chosen: when this changes, what is marked as `lit` is moved into view. */
  chosen?: string;
  onBackground?: () => void;
  children: ComponentChildren;
}

const DOUBLE_CLICK = 300;
const MARGIN = 14;

/** By how much a stretch has to be moved to lie in a frame; its beginning, if it is longer than that. */
function outside(start: number, end: number, low: number, high: number): number {
  if (start < low + MARGIN || end - start > high - low - 2 * MARGIN) return low + MARGIN - start;
  return Math.min(0, high - MARGIN - end);
}

function around(boxes: DOMRect[]): DOMRect {
  const left = Math.min(...boxes.map((each) => each.left));
  const top = Math.min(...boxes.map((each) => each.top));
  return new DOMRect(left, top, Math.max(...boxes.map((each) => each.right)) - left, Math.max(...boxes.map((each) => each.bottom)) - top);
}

export function Canvas({ width, height, of, label, least = 0.8, start = "middle", focus = "", chosen = "", onBackground, children }: Props) {
  const svg = useRef<SVGSVGElement>(null);
  const inner = useRef<SVGGElement>(null);
  const behaviour = useRef<ZoomBehavior<SVGSVGElement, unknown> | null>(null);

  const fit = () => {
    const frame = svg.current?.getBoundingClientRect();
    if (!frame?.width || !behaviour.current) return;
    const wide = frame.width;
    const scale = Math.min(MOST_ENLARGED, (wide - 24) / width, (frame.height - 24) / height);
    const readable = Math.max(scale, least);
    const x = readable * width > wide && start === "left" ? 12 : (wide - readable * width) / 2;
    const y = readable * height > frame.height || start === "left" ? 12 : (frame.height - readable * height) / 2;
    behaviour.current.transform(select(svg.current!), zoomIdentity.translate(x, y).scale(readable));
  };

  useEffect(() => {
    const made = zoom<SVGSVGElement, unknown>()
      .scaleExtent([0.1, 3])
      // While it moves it is a layer of its own, which is not painted anew in each frame.
      .on("start", () => svg.current?.classList.add("moving"))
      .on("zoom", (event) => inner.current?.setAttribute("transform", event.transform.toString()))
      .on("end", () => svg.current?.classList.remove("moving"));
    behaviour.current = made;
    select(svg.current!).call(made).on("dblclick.zoom", null);
    // The panel that opens beside the drawing takes a part of its frame, and leaves it where it is.
    let size = "";
    const watch = new ResizeObserver(() => {
      const now = `${window.innerWidth} ${window.innerHeight}`;
      if (now !== size) fit();
      size = now;
    });
    watch.observe(svg.current!);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    fit();
    if (focus) show(`[data-frame="${focus}"], [data-box="${focus}"]`);
  }, [of, width, height]);
  useEffect(() => {
    // Not before a second click would come, which unfolds what is under the pointer.
    const later = chosen ? setTimeout(() => show(".node.lit, .label.lit, .frame.lit, .edge.lit"), DOUBLE_CLICK) : 0;
    return () => clearTimeout(later);
  }, [chosen, of]);

  /** Move some elements into the frame, if they are outside. */
  function show(selector: string) {
    const frame = svg.current?.getBoundingClientRect();
    const lit = [...(inner.current?.querySelectorAll(selector) ?? [])].map((each) => each.getBoundingClientRect());
    if (!frame || !lit.length || !behaviour.current) return;
    const all = around(lit);
    const its = all.width < frame.width && all.height < frame.height ? all : lit[lit.length - 1];
    const x = outside(its.left, its.right, frame.left, frame.right);
    const y = outside(its.top, its.bottom, frame.top, frame.bottom);
    const scale = zoomTransform(svg.current!).k;
    if (x || y) behaviour.current.translateBy(select(svg.current!), x / scale, y / scale);
  }

  const by = (factor: number) => behaviour.current?.scaleBy(select(svg.current!), factor);
  return (
    <div class="canvas">
      <svg ref={svg} role="img" aria-label={label} onClick={(event) => event.target === svg.current && onBackground?.()}>
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="10" markerHeight="10" orient="auto-start-reverse">
            <path d="M0,1L7,4L0,7z" class="arrow" />
          </marker>
        </defs>
        <g ref={inner}>{children}</g>
      </svg>
      <div class="zoom">
        <button type="button" title="Enlarge" onClick={() => by(1.3)}>
          +
        </button>
        <button type="button" title="Reduce" onClick={() => by(1 / 1.3)}>
          −
        </button>
        <button type="button" title="Show all of it" onClick={fit}>
          ⤢
        </button>
      </div>
    </div>
  );
}
