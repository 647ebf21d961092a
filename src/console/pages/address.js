// The address records what a page shows, so that reloading, sharing the link and going back show it again.
import {withQuery} from './api.js';

const WAY_BACK_MS = 1000; // how long to wait for a browser to go back

let address = ''; // as last set by us or reported by the browser
let ownWayBack = null; // a promise, while the browser goes back because leaveOver() asked for it

export const currentAddress = () => address;

// Call when the browser has navigated.
export function arrive() {
    address = location.pathname + location.search;
}

export function replaceAddress(next) {
    history.replaceState(history.state, '', next);
    address = next;
}

// isOver: the new content lies over the page and disappears when the user goes back.
export function pushAddress(next, {isOver = false} = {}) {
    if (next !== address) history.pushState({isOver}, '', next);
    address = next;
}

// Going back was refused, so the page stays and the address returns.
export function stay() {
    history.pushState(null, '', address);
}

export function leaveOver(below) {
    if (!history.state?.isOver) {
        replaceAddress(below);
        return;
    }
    address = below;
    ownWayBack = new Promise((resolve) => {
        addEventListener('popstate', () => resolve(), {once: true});
        setTimeout(resolve, WAY_BACK_MS);
    }).then(() => {
        ownWayBack = null;
    });
    history.back();
}

// Null, or a promise to await before the next step.
export const wayBack = () => ownWayBack;

// A query parameter.
export const words = (name) => new URLSearchParams(location.search).get(name) ?? '';

// The same if its value is allowed; otherwise the default.
export const choice = (name, allowed, standard) => (allowed.includes(words(name)) ? words(name) : standard);

// The page's path with this query; default values are left out.
export const withState = (values, path = location.pathname) => withQuery(path, values);

// A link to join: its secret is the fragment, which browsers send to nobody. It leaves the address before anything else
// happens. The browser's history on disk may keep it, which no script can change: it is worthless once the link is used,
// and to whoever opens it before, it shows no second factor.

const JOIN_PAGE = '/console/join';

let secret = '';

export function takeLinkCode() {
    if (location.pathname !== JOIN_PAGE || !location.hash) return;
    secret = location.hash.slice(1);
    history.replaceState(history.state, '', location.pathname + location.search);
}

// Empty if the page was opened without one.
export const linkCode = () => secret;

export function forgetLinkCode() {
    secret = '';
}
