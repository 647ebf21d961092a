// The revocation of a key that is known in advance: when it will be, what replaces the key, and whether the key has gone
// silent meanwhile.
import {call, orNone} from './api.js';
import {serverNow} from './clock.js';
import {foreign, h, newButton} from './dom.js';
import {notice} from './form.js';
import {exactTime, exactTimeWithZone, timeElement, timeWithExact} from './format.js';
import {END} from './key_end_texts.js';
import {mayAs} from './permissions.js';
import {readTrail} from './trail.js';

const KEYS = '/v1/console/api_keys';
const SCHEDULED = 'api_key.revocation_scheduled';
const SCHEDULES_MAX = 20; // the replacement is among the last of them
const DAY_MS = 86400000;
const UNITS = [
    [DAY_MS, 'day'],
    [3600000, 'hour'],
    [60000, 'minute'],
];
const SLACK = 1 / 48; // of a unit
const relative = new Intl.RelativeTimeFormat('en');

export const pathOf = (id) => `${KEYS}/${encodeURIComponent(id)}`;
export const endPathOf = (id) => `${pathOf(id)}/scheduled_revocation`;

// "in 7 days", also when a moment is missing. when: a time in any form that Date takes.
export function timeAhead(when) {
    const left = Math.max(0, new Date(when) - serverNow());
    const [size, unit] = UNITS.find(([each]) => left >= 2 * each) ?? UNITS.at(-1);

    return relative.format(Math.floor(left / size + SLACK), unit);
}

// Reading

// A node of an earlier version does not know of schedules.
const readSchedule = (id) => call('GET', endPathOf(id)).catch(orNone);

// {at, key}, or null. key: what replaces it, null if it is not known any more.
async function readReplacement(id) {
    const {data: events} = await readTrail({target: id, type: SCHEDULED}, SCHEDULES_MAX);
    const event = events.find(({data}) => data?.replaced_by);

    return event ? {at: event.created_at, key: await call('GET', pathOf(event.data.replaced_by)).catch(orNone)} : null;
}

// {revokeAt, replacement}, or null if nothing is scheduled.
export async function readEnd(id) {
    const schedule = await readSchedule(id);

    return schedule?.revoke_at ? {revokeAt: schedule.revoke_at, replacement: await readReplacement(id)} : null;
}

// Whether the key has gone silent since it was replaced: {kind: 'used' | 'waiting' | 'silent', since}. How long is long
// enough follows from the overlap, because whoever chose it knew how rarely the key is used.
function silenceOf(key, {revokeAt, replacement}, nowMs) {
    const replacedMs = Date.parse(replacement.at);
    const usedMs = key.last_used_at ? Date.parse(key.last_used_at) : 0;
    const since = usedMs > replacedMs ? key.last_used_at : replacement.at;
    const enoughMs = Math.min(DAY_MS, (Date.parse(revokeAt) - replacedMs) / 4);

    if (nowMs - Date.parse(since) >= enoughMs) return {kind: 'silent', since};
    return {kind: usedMs > replacedMs ? 'used' : 'waiting', since};
}

// Showing

function lastUse(key) {
    if (!key.last_used_at) return h('p', null, END.neverUsed);
    return h('p', null, END.lastUsed, timeWithExact(key.last_used_at));
}

function successor({at, key}) {
    if (!key) return h('p', null, END.replaced(exactTime(at)));
    return h(
        'p',
        null,
        END.replacedBy,
        h('a', {class: 'wrap', href: `/console/keys/${key.id}`}, foreign(key.name)),
        h('span', {class: 'mono faint'}, ` …${key.last4}`),
        END.replacedAt(exactTime(at)),
        ' ',
        key.last_used_at ? [END.successorUsed, timeElement(key.last_used_at), '.'] : END.successorUnused,
    );
}

const TONES = {used: 'warn', waiting: 'info', silent: 'good'};

// What to do now: {tone, text, isSilent}.
function verdictOf(key, end) {
    const {replacement} = end;

    if (!replacement) return {tone: 'info'};
    if (replacement.key?.revoked_at) return {tone: 'warn', text: END.successorRevoked};
    const {kind, since} = silenceOf(key, end, serverNow());

    return {tone: TONES[kind], text: END[kind](exactTime(since)), isSilent: kind === 'silent'};
}

const endWords = ({revokeAt}) => END.will(exactTimeWithZone(revokeAt), timeAhead(revokeAt));

// acts: what the buttons do: again, change, keep, revoke.
export function endPart(key, end, acts) {
    const {tone, text, isSilent} = verdictOf(key, end);
    const button = (name, className, least) =>
        mayAs(least) && newButton(className, acts[name], END[name], {'data-again': name === 'again'});

    return h(
        'section',
        {'class': 'key-end', 'aria-label': END.title},
        notice(
            tone,
            h('p', null, h('strong', null, endWords(end))),
            end.replacement && successor(end.replacement),
            lastUse(key),
            text && h('p', null, text),
            h(
                'div',
                {class: 'links'},
                isSilent && button('revoke', 'danger small', 'responder'),
                button('again', 'secondary small', 'auditor'),
                button('change', 'secondary small', 'responder'),
                button('keep', 'secondary small', 'developer'),
            ),
        ),
    );
}

// The same in one sentence, for screen readers.
export const endInWords = (key, end) => verdictOf(key, end).text ?? endWords(end);
