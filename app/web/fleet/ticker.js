/** The beat of the screen: four times a second while the tab is visible, once where the reader wants little motion. */

const PERIOD_MS = 250;
const CALM_PERIOD_MS = 1000;

/**
 * @param {() => void} onTick
 * @returns {() => void} Ends it.
 */
export function startTicker(onTick) {
  let frame = 0;
  const tick = () => {
    cancelAnimationFrame(frame);
    if (!document.hidden) frame = requestAnimationFrame(onTick);
  };
  tick();
  const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const timer = setInterval(tick, isCalm ? CALM_PERIOD_MS : PERIOD_MS);
  return () => {
    clearInterval(timer);
    cancelAnimationFrame(frame);
  };
}
