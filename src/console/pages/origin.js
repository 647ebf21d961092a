// Whether this page was opened at the console's own address: elsewhere browsers and server refuse to sign anybody in.
import {callOnce} from './api.js';
import {h} from './dom.js';
import {notice} from './form.js';
import {TEXTS} from './texts.js';

let publicOrigin = location.origin;

// What the server says its address is. Without an answer it is taken to be this one.
export async function loadOrigin() {
    try {
        const {answer} = await callOnce('GET', '/.well-known/oauth-authorization-server');

        publicOrigin = answer.issuer ?? publicOrigin;
    } catch {
        // Signing in will tell what is wrong.
    }
}

// Null at the right address; else what to say instead of asking for a password.
export function foreignNotice() {
    if (publicOrigin === location.origin) return null;
    return notice(
        'warn',
        h('p', null, TEXTS.origin.foreign),
        h('p', null, h('a', {href: publicOrigin + location.pathname + location.search}, TEXTS.origin.go(publicOrigin))),
    );
}
