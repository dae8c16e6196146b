/** The beat of the screen: four times a second while the tab is visible, once where the reader wants little motion. */

const PERIOD_MS = 250;
const CALM_PERIOD_MS = 1000;

/**
 * @param {() => void} onTick
 * @returns {() => void} Ends it.
 */
export function startTicker(onTick) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let timer;
  let frame = 0;
  const tick = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(onTick);
  };
  const stop = () => {
    clearInterval(timer);
    cancelAnimationFrame(frame);
  };
  const restart = () => {
    stop();
    if (document.hidden) return;
    tick();
    timer = setInterval(tick, calm.matches ? CALM_PERIOD_MS : PERIOD_MS);
  };
  restart();
  document.addEventListener("visibilitychange", restart);
  calm.addEventListener("change", restart);
  return () => {
    stop();
    document.removeEventListener("visibilitychange", restart);
    calm.removeEventListener("change", restart);
  };
}
