// Who is signed in. Kept only in memory and read from the server on each load. Tabs inform each other when a session
// begins and ends.
import {call, callOnce, installHooks, Refusal} from './api.js';
import {clockSkewMs, serverNow} from './clock.js';
import {announce, h, newButton, show} from './dom.js';
import {wait} from './format.js';
import {TEXTS} from './texts.js';

const WARN_MS = 120000;
const MARGIN_MS = 15000; // the server records a use at most every ten seconds
const TICK_MS = 1000;
const TOUCH_MS = 60000; // while somebody types, the session is renewed this often

// {user, csrfToken, expiresAt, expiresMs, idleMs, idleEndMs, stepUpExpiresMs, mustChangePassword, notices};
// all milliseconds by this browser's clock
let current = null;
let ending = null; // the promise of signing in again, while that is open
let tabs = null;
let warned = false;
let touchedMs = 0;
// Functions from app.js. ended() runs when nobody is signed in any more; signInAgain(email, reason) and stepUp() ask
// the user; mustChangePassword() shows the only page that works then.
let hooks = {ended() {}, signInAgain: null, stepUp: null, mustChangePassword() {}};

export const currentSession = () => current;

const localTime = (iso) => (iso ? Date.parse(iso) + clockSkewMs() : 0);

// Another user is signed in now, who must see nothing of what was shown, typed or requested.
function changeUser() {
    forget();
    hooks.ended();
    location.reload();
}

// Throws if the session belongs to another user than before.
function take(answer) {
    const idleEndMs = localTime(answer.idle_expires_at ?? answer.expires_at);

    if (current && current.user.id !== answer.user.id) {
        changeUser();
        throw new Refusal('cancelled');
    }
    touchedMs = Date.now();
    current = {
        user: {role: 'owner', ...answer.user}, // nodes of older versions know only owners
        csrfToken: answer.csrf_token,
        expiresAt: answer.expires_at,
        expiresMs: localTime(answer.expires_at),
        idleEndMs,
        idleMs: idleEndMs - Date.now(),
        stepUpExpiresMs: localTime(answer.step_up_expires_at),
        mustChangePassword: Boolean(answer.password_change_required),
        notices: answer.notices,
    };
}

function used() {
    if (!current) return;
    touchedMs = Date.now();
    current.idleEndMs = Date.now() + current.idleMs;
    tabs?.postMessage({event: 'used', idleEndMs: current.idleEndMs});
    hideWarning();
}

// True if somebody is signed in. Throws if that cannot be determined.
export async function loadSession() {
    try {
        const {answer} = await callOnce('GET', '/v1/console/session');

        take(answer);
        return true;
    } catch (refusal) {
        if (refusal.code !== 'invalid_session') throw refusal;
        return false;
    }
}

const CODE_MS = 30000; // RFC 6238: an authenticator shows a code for so long
let codeEndMs = 0; // of the code that was accepted here last, by the server's time

function noteCode() {
    codeEndMs = (Math.floor(serverNow() / CODE_MS) + 1) * CODE_MS;
}

// Until the authenticator shows a code that was not used here yet. A code works once.
export const codeWaitMs = () => Math.max(0, codeEndMs - serverNow());

// Returns when the email was last attacked, unless its owner has seen that already.
export async function signIn(email, password, totp) {
    const {answer} = await callOnce('POST', '/v1/auth/login', {email, password, totp});

    noteCode();
    tabs?.postMessage({event: 'begun', user: answer.user.id});
    take(answer);
    return answer.attacked_at;
}

// Accepts an invitation or a reset. The caller loads the console again, for whoever is signed in then.
export async function join(code, password, totp) {
    const {answer} = await callOnce('POST', '/v1/auth/join', {code, password, totp});

    tabs?.postMessage({event: 'begun', user: answer.user.id});
}

export async function stepUp(password, totp) {
    const answer = await call('POST', '/v1/console/step_up', {password, totp});

    noteCode();
    if (current) current.stepUpExpiresMs = localTime(answer.step_up_expires_at);
}

function forget() {
    current = null;
    hideWarning();
}

export async function signOut() {
    try {
        await callOnce('POST', '/v1/auth/logout');
    } catch (refusal) {
        if (refusal.code !== 'invalid_session') throw refusal;
    }
    forget();
    tabs?.postMessage({event: 'ended'});
    hooks.ended();
}

// The page is kept outside the document until the same user is back.
function signInAgain(reason) {
    const before = current?.user;

    if (!before) {
        hooks.ended();
        return Promise.reject(new Refusal('cancelled'));
    }
    hideWarning();
    ending ??= hooks
        .signInAgain(before.email, reason)
        .catch((refusal) => {
            forget();
            hooks.ended();
            throw refusal;
        })
        .finally(() => {
            ending = null;
        });
    return ending;
}

// A sign-in in another tab creates a new session with a new token under the same cookie.
async function reload(refusal) {
    const token = current?.csrfToken;

    if (!(await loadSession())) return signInAgain();
    if (current.csrfToken === token) throw refusal;
    return undefined;
}

// The warning before the end

let bar = null;

function hideWarning() {
    bar?.remove();
    bar = null;
    warned = false;
}

async function stay() {
    try {
        if (!(await loadSession())) {
            await signInAgain();
            return;
        }
    } catch {
        return; // the bar stays and shows the remaining time
    }
    used();
    announce(TEXTS.session.stayed);
}

// Typing counts as activity, although it sends no requests.
async function touch() {
    if (!current || ending || Date.now() - touchedMs < Math.min(TOUCH_MS, current.idleMs / 4)) return;
    touchedMs = Date.now();
    try {
        if (await loadSession()) used();
        else await signInAgain();
    } catch {
        // The next keystroke tries again, and the warning still comes in time.
    }
}

function showWarning(leftMs, isLimit) {
    const text = isLimit ? TEXTS.session.limitNear(wait(leftMs)) : TEXTS.session.aboutToEndText(wait(leftMs));

    if (!bar) {
        bar = h(
            'div',
            {'class': 'session-bar', 'role': 'region', 'aria-label': TEXTS.session.aboutToEnd},
            h('p', {'aria-live': 'off'}),
            isLimit ? null : newButton('primary', stay, TEXTS.session.stay),
        );
    }
    // Put the bar into the topmost dialog if there is one: nothing below it can be reached.
    const host = [...document.querySelectorAll('dialog[open] .form-foot')].at(-1) ?? document.body;
    if (bar.parentNode !== host) {
        if (host === document.body) host.append(bar);
        else host.prepend(bar);
    }
    show(bar.firstChild, text);
    if (!warned) announce(`${TEXTS.session.aboutToEnd}. ${text}`);
    warned = true;
}

function tick() {
    if (!current || ending) return;
    const limitMs = current.expiresMs - Date.now();
    const idleMs = current.idleEndMs - MARGIN_MS - Date.now();
    const leftMs = Math.min(limitMs, idleMs);

    if (leftMs <= 0) signInAgain(limitMs <= idleMs ? TEXTS.signIn.absoluteEnd : TEXTS.signIn.ended).catch(() => {});
    else if (leftMs < Math.min(WARN_MS, current.idleMs / 3)) showWarning(leftMs, limitMs <= idleMs);
    else hideWarning();
}

function heard({data}) {
    if (!current || !data) return;
    if (data.event === 'used') {
        current.idleEndMs = Math.max(current.idleEndMs, data.idleEndMs);
        hideWarning();
    } else if (data.event === 'ended') {
        signInAgain(TEXTS.signIn.endedElsewhere).catch(() => {});
    } else if (data.event === 'begun' && data.user !== current.user.id) {
        changeUser();
    }
}

export function watchSession(functions) {
    hooks = functions;
    installHooks({
        csrfToken: () => current?.csrfToken ?? '',
        used,
        signInAgain: () => signInAgain(),
        stepUp: () => hooks.stepUp(),
        changePassword: () => {
            hooks.mustChangePassword();
            throw new Refusal('cancelled');
        },
        reload,
    });
    tabs = new BroadcastChannel('chatelaine-session');
    tabs.addEventListener('message', heard);
    addEventListener('input', touch);
    setInterval(tick, TICK_MS);
}
