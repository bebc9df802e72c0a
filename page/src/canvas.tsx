// A drawing that can be moved and enlarged; it starts so that all of it is visible.
import { select } from "d3-selection";
import { zoom, zoomIdentity, type ZoomBehavior } from "d3-zoom";
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
  onBackground?: () => void;
  children: ComponentChildren;
}

export function Canvas({ width, height, of, label, least = 0.8, start = "middle", onBackground, children }: Props) {
  const svg = useRef<SVGSVGElement>(null);
  const inner = useRef<SVGGElement>(null);
  const behaviour = useRef<ZoomBehavior<SVGSVGElement, unknown> | null>(null);

  const fit = () => {
    const frame = svg.current?.getBoundingClientRect();
    if (!frame?.width || !behaviour.current) return;
    // What lies over the drawing on its right covers none of it, if there is room.
    const over = document.querySelector(".program + .inspector")?.getBoundingClientRect();
    const wide = over && frame.right > over.left ? Math.max(frame.width / 2, over.left - frame.left) : frame.width;
    const scale = Math.min(MOST_ENLARGED, (wide - 24) / width, (frame.height - 24) / height);
    const readable = Math.max(scale, least);
    const x = readable * width > wide && start === "left" ? 12 : (wide - readable * width) / 2;
    const y = readable * height > frame.height ? 12 : (frame.height - readable * height) / 2;
    behaviour.current.transform(select(svg.current!), zoomIdentity.translate(x, y).scale(readable));
  };

  useEffect(() => {
    const made = zoom<SVGSVGElement, unknown>()
      .scaleExtent([0.1, 3])
      .on("zoom", (event) => inner.current?.setAttribute("transform", event.transform.toString()));
    behaviour.current = made;
    select(svg.current!).call(made).on("dblclick.zoom", null);
    const watch = new ResizeObserver(fit);
    watch.observe(svg.current!);
    return () => watch.disconnect();
  }, []);
  useEffect(fit, [of, width, height]);

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
