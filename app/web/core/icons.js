/** Line icons of 24 × 24, drawn in the colour of the text around them. */

import { html } from "../vendor/ui.js";

const PATHS = {
  back5:
    "M4 12a8 8 0 1 0 3-6.2L4 8M4 3.5V8h4.5M13.8 9.5h-3.3l-.3 2.8c1.8-.8 3.9 0 3.9 1.8 0 1.9-2.6 2.5-4 1.2",
  back: "M15 5l-7 7 7 7",
  captions: "M4 6h16v12H4zM11 10.5a2 2 0 1 0 0 3M17 10.5a2 2 0 1 0 0 3",
  check: "M5 12.5l4.5 4.5L19 7.5",
  chevron: "M6 9l6 6 6-6",
  close: "M6 6l12 12M18 6L6 18",
  copy: "M9 9h11v11H9zM15 9V4H4v11h5",
  cut: "M12 3v18M7 8l-4 4 4 4M17 8l4 4-4 4",
  download: "M12 4v11M7 11l5 5 5-5M4 20h16",
  edit: "M4 20l1-4L16.5 4.5l3 3L8 19z",
  file: "M6 3h8l5 5v13H6zM14 3v5h5",
  folder: "M3 6h7l2 2h9v11H3z",
  forward5:
    "M20 12a8 8 0 1 1-3-6.2L20 8M20 3.5V8h-4.5M13.8 9.5h-3.3l-.3 2.8c1.8-.8 3.9 0 3.9 1.8 0 1.9-2.6 2.5-4 1.2",
  fullscreen: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  history: "M4 12a8 8 0 1 0 2.5-5.8L4 8.5M4 4v4.5h4.5M12 8v4.5l3 2",
  join: "M4 12h6M20 12h-6M7 9l3 3-3 3M17 9l-3 3 3 3",
  key: "M14.5 9.5L21 3M18 6l2.5 2.5M15.5 8.5l2 2M11 13a4 4 0 1 1-5.7 5.7A4 4 0 0 1 11 13z",
  link: "M10 14a4 4 0 0 0 5.7 0l3-3A4 4 0 0 0 13 5.3l-1 1M14 10a4 4 0 0 0-5.7 0l-3 3A4 4 0 0 0 11 18.7l1-1",
  loop: "M7 5h9a4 4 0 0 1 4 4v1M17 19H8a4 4 0 0 1-4-4v-1M9.5 2.5L7 5l2.5 2.5M14.5 16.5L17 19l-2.5 2.5",
  microphone: "M12 3a3 3 0 0 1 3 3v5a3 3 0 0 1-6 0V6a3 3 0 0 1 3-3zM6 11a6 6 0 0 0 12 0M12 17v4",
  clock: "M12 4a8 8 0 1 1 0 16 8 8 0 0 1 0-16zM12 8v4.5l3 2",
  more: "M4.5 12a.5.5 0 1 0 1 0a.5.5 0 1 0-1 0M11.5 12a.5.5 0 1 0 1 0a.5.5 0 1 0-1 0M18.5 12a.5.5 0 1 0 1 0a.5.5 0 1 0-1 0",
  muted: "M4 9.5h3.5L12 5.5v13l-4.5-4H4zM16 9.5l5 5M21 9.5l-5 5",
  next: "M5 5l9 7-9 7zM19 5v14",
  pause: "M8 5v14M16 5v14",
  pictureInPicture: "M21 11V5H3v14h7M13 14h8v6h-8z",
  play: "M7 4.5l12 7.5-12 7.5z",
  plus: "M12 5v14M5 12h14",
  redo: "M15 5l5 5-5 5M20 10H9a5 5 0 0 0 0 10h3",
  replace: "M4 7h12l-3-3M20 17H8l3 3",
  retry: "M20 5v5h-5M19.5 10a8 8 0 1 0 .5 4",
  person: "M12 4a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM4.5 20.5a7.5 7.5 0 0 1 15 0",
  ring: "M12 5a7 7 0 1 1 0 14 7 7 0 0 1 0-14z",
  search: "M10.5 4a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zM15.5 15.5L21 21",
  settings: "M4 7h9M17 7h3M4 17h3M11 17h9M15 4.5v5M9 14.5v5",
  stop: "M6 6h12v12H6z",
  tag: "M4 4h8l8 8-8 8-8-8zM8.5 8.5h.01",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5",
  unsure: "M4 15l4-10 4 10M5.5 11.5h5M4 19.5h.01M8 19.5h.01M12 19.5h.01M16 8l4 4-4 4",
  undo: "M9 5l-5 5 5 5M4 10h11a5 5 0 0 1 0 10h-3",
  upload: "M12 16V5M7 9l5-5 5 5M4 20h16",
  volume: "M4 9.5h3.5L12 5.5v13l-4.5-4H4zM15.5 9a4.2 4.2 0 0 1 0 6M18 6.5a7.8 7.8 0 0 1 0 11",
  warning: "M12 4l9 16H3zM12 10v4M12 17h.01",
  zoomIn: "M10.5 4a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zM15.5 15.5L21 21M7.5 10.5h6M10.5 7.5v6",
  zoomOut: "M10.5 4a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zM15.5 15.5L21 21M7.5 10.5h6",
  wholeWord:
    "M4 17v3h16v-3M8 8a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM11 8v6M14 4v10M14 11a3 3 0 1 0 6 0 3 3 0 0 0-6 0",
};

/** @typedef {keyof typeof PATHS} IconName */

/**
 * An icon beside a text, or in a button that has an `aria-label`.
 * @param {{name: IconName}} props
 */
export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;
}
