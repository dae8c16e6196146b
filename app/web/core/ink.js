/** The colours of the theme for a canvas, which knows no custom properties. */

/**
 * @param {HTMLElement} canvas Its own text colour is of no use.
 * @returns {(name: string) => string} What the custom property of a colour is at present.
 */
export function inkFor(canvas) {
  const style = getComputedStyle(canvas);
  return (name) => {
    canvas.style.color = `var(${name})`;
    return style.color;
  };
}
