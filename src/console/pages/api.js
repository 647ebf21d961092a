// Requests to the API. Recovers in place from an ended session (sign in again), a missing step-up (confirm) and a CSRF
// token that another sign-in replaced, then sends the request once more. That is safe, because these refusals come
// before any work. Everything else is thrown as a Refusal.
import {observe} from './clock.js';

const TIMEOUT_MS = 30000;

export class Refusal extends Error {
    // kind: 'offline': no response; 'away': the store is unavailable; 'busy'; 'throttled'; 'refused'; 'cancelled' by
    // the user
    constructor(kind, fields = {}) {
        super(fields.message ?? kind);
        Object.assign(this, {kind, code: '', param: '', requestId: '', status: 0, retryAfterMs: 0}, fields);
    }
}

const hooks = {csrfToken: () => '', used: () => {}, signInAgain: null, stepUp: null, changePassword: null, reload: null};

// Functions that session.js provides.
export function installHooks(functions) {
    Object.assign(hooks, functions);
}

function kindOf(status, code) {
    if (status === 429) return 'throttled';
    if (code === 'overloaded') return 'busy';
    if (status === 503) return 'away';
    return 'refused';
}

function refusalOf(response, problem) {
    const error = problem?.error ?? {};
    const retryAfterS = Number(response.headers.get('Retry-After')) || 0;

    return new Refusal(kindOf(response.status, error.code), {
        status: response.status,
        code: error.code ?? '',
        param: error.param ?? '',
        message: error.message ?? `HTTP ${response.status}`,
        requestId: error.request_id ?? '',
        retryAfterMs: retryAfterS * 1000,
    });
}

async function readBody(response) {
    if (response.status === 204) return null;
    try {
        return await response.json();
    } catch {
        if (response.ok) throw new Refusal('offline'); // the response was cut off
        return null;
    }
}

async function readFile(response, type) {
    if (!response.headers.get('Content-Type')?.startsWith(type)) throw new Refusal('refused', {message: 'The server sent no file.'});
    try {
        return await response.blob();
    } catch {
        throw new Refusal('offline'); // the response was cut off
    }
}

// Sends one request, without recovery. accept: a type that is not JSON, for a file of any length: the answer is a Blob.
export async function callOnce(method, path, body, accept) {
    const headers = {Accept: accept ?? 'application/json'};
    let response;

    if (method !== 'GET') headers['X-CSRF-Token'] = hooks.csrfToken();
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    try {
        response = await fetch(path, {
            method,
            headers,
            body: body === undefined ? undefined : JSON.stringify(body),
            credentials: 'same-origin',
            cache: 'no-store',
            redirect: 'error',
            signal: accept ? null : AbortSignal.timeout(TIMEOUT_MS),
        });
    } catch {
        throw new Refusal('offline');
    }
    observe(Date.parse(response.headers.get('Date')));
    const answer = accept && response.ok ? await readFile(response, accept) : await readBody(response);
    if (!response.ok) throw refusalOf(response, answer);
    return {answer};
}

// Recovers from the refusal. False if that is impossible or was tried before.
async function mend(refusal, tried) {
    const mends = {
        invalid_session: hooks.signInAgain,
        step_up_required: hooks.stepUp,
        password_change_required: hooks.changePassword,
        csrf_failed: hooks.reload,
    };
    const attempt = mends[refusal.code];

    if (!attempt || (refusal.code === 'csrf_failed' && tried.has('csrf_failed'))) return false;
    tried.add(refusal.code);
    await attempt(refusal);
    return true;
}

export async function call(method, path, body, accept) {
    const tried = new Set();

    for (;;) {
        try {
            const {answer} = await callOnce(method, path, body, accept);

            hooks.used();
            return answer;
        } catch (refusal) {
            if (!(refusal instanceof Refusal) || !(await mend(refusal, tried))) throw refusal;
        }
    }
}

// For catch(): null in place of what is not there.
export function orNone(refusal) {
    if (refusal.status !== 404) throw refusal;
    return null;
}

export function withQuery(path, parameters) {
    const query = new URLSearchParams(
        Object.entries(parameters).filter(([, value]) => value !== '' && value !== undefined && value !== null),
    );
    const text = query.toString();

    return text ? `${path}?${text}` : path;
}
