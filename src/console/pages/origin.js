// Checks whether this page was opened at the console's own address. At any other address, browser and server refuse
// sign-in.
import {callOnce} from './api.js';
import {h} from './dom.js';
import {notice} from './form.js';
import {TEXTS} from './texts.js';

let publicOrigin = location.origin;

// Asks the server for its address. Without a response, this one is assumed to be right.
export async function loadOrigin() {
    try {
        const {answer} = await callOnce('GET', '/.well-known/oauth-authorization-server');

        publicOrigin = answer.issuer ?? publicOrigin;
    } catch {
        // Signing in will show what is wrong.
    }
}

// Null at the right address; otherwise a notice to show instead of the sign-in form.
export function foreignNotice() {
    if (publicOrigin === location.origin) return null;
    return notice(
        'warn',
        h('p', null, TEXTS.origin.foreign),
        h('p', null, h('a', {href: publicOrigin + location.pathname + location.search}, TEXTS.origin.go(publicOrigin))),
    );
}
