/** The picture of a film: in a window of its own, or on all of the screen. */

/** @typedef {HTMLVideoElement & {webkitEnterFullscreen?: () => void}} Video */

/** @param {Video} video */
export function showFullScreen(video) {
  if (video.requestFullscreen)
    video.requestFullscreen().catch(() => {}); // the browser may refuse it
  else video.webkitEnterFullscreen?.(); // iPhones
}

/** @param {Video} video */
export function togglePictureInPicture(video) {
  const change = document.pictureInPictureElement
    ? document.exitPictureInPicture()
    : video.requestPictureInPicture();
  change.catch(() => {}); // the system may refuse a second window
}
