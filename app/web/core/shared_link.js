/** A link that shares one transcript, `#/jobs/ID?link=TOKEN`: its token is the key of this tab alone. */

const NAME = "whisperfleet.link";
const LINK = /^(#\/jobs\/[0-9a-f]+)\?link=([\w-]+)$/;

/** By which the page was opened. @type {{hash: string, token: string} | null} */
export const sharedLink = takeLink() ?? storedLink();

/** Take a link out of the address, where others could read it. */
export function takeLink() {
  const [, hash, token] = LINK.exec(location.hash) ?? [];
  if (!token) return null;
  history.replaceState(history.state, "", hash);
  try {
    sessionStorage.setItem(NAME, JSON.stringify({ hash, token }));
  } catch {
    // It lasts as long as the page.
  }
  return { hash, token };
}

/** The link of this tab after a reload. At another address, the page is an ordinary one again. */
function storedLink() {
  try {
    const link = JSON.parse(sessionStorage.getItem(NAME) ?? "null");
    if (link?.hash === location.hash) return link;
    sessionStorage.removeItem(NAME);
  } catch {
    // Nothing is stored.
  }
  return null;
}
