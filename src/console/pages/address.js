// The address tells what a page shows, so that a reload, a link that is sent on and the way back bring it again.
import {withQuery} from './api.js';

const WAY_BACK_MS = 1000; // a browser that does not go back is not waited for

let address = ''; // as it was last set, or heard of
let ownWayBack = null; // a promise, while the browser goes back because leaveOver() asked for it

export const currentAddress = () => address;

// The browser went there.
export function arrive() {
    address = location.pathname + location.search;
}

export function replaceAddress(next) {
    history.replaceState(history.state, '', next);
    address = next;
}

// isOver: what it shows lies over what was there, and goes when one goes back.
export function pushAddress(next, {isOver = false} = {}) {
    if (next !== address) history.pushState({isOver}, '', next);
    address = next;
}

// The way back was refused: what is shown stays.
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

// Null, or what has to be awaited before the next step.
export const wayBack = () => ownWayBack;

// One of the allowed values of a parameter of the query, or the standard.
export function choice(name, allowed, standard) {
    const value = new URLSearchParams(location.search).get(name);

    return allowed.includes(value) ? value : standard;
}

export function words(name) {
    return new URLSearchParams(location.search).get(name) ?? '';
}

// The page at its own path with that query; what is as usual is left out.
export const withState = (values, path = location.pathname) => withQuery(path, values);
