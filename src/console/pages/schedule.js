// Saying when a key will be revoked, and that it will not. Loaded on demand.
import {explainUncertain, openAction} from './action.js';
import {call} from './api.js';
import {serverNow} from './clock.js';
import {announce, h, show} from './dom.js';
import {field} from './form.js';
import {exactTimeWithZone} from './format.js';
import {endPathOf, timeAhead} from './key_end.js';
import {END, KEEP, SCHEDULE} from './key_end_texts.js';
import {mayAs} from './permissions.js';
import {keyLine} from './revoke.js';

const DAY_MS = 86400000;
const HOUR_MS = 3600000;
const MINUTE_MS = 60000;
const STANDARD_MS = 7 * DAY_MS;
const DAYS_MAX = 400;

// As <input type="datetime-local"> has it: in this computer's time zone, to the minute.
const inputTime = (ms) => new Date(ms - new Date(ms).getTimezoneOffset() * MINUTE_MS).toISOString().slice(0, 16);
// In a week, at a full hour.
const standardMs = () => Math.ceil((serverNow() + STANDARD_MS) / HOUR_MS) * HOUR_MS;
const sayWhen = (when) => [exactTimeWithZone(when), timeAhead(when)];

// ms: NaN if nothing was chosen.
function timeProblem(ms, end) {
    if (Number.isNaN(ms)) return SCHEDULE.missing;
    if (ms <= serverNow()) return SCHEDULE.past;
    if (ms > serverNow() + DAYS_MAX * DAY_MS) return SCHEDULE.far(DAYS_MAX);
    return end && ms > Date.parse(end.revokeAt) && !mayAs('developer') && SCHEDULE.soonerOnly;
}

function timeField(end) {
    const preview = h('p', {'class': 'hint', 'aria-live': 'polite'});
    const time = field({
        label: SCHEDULE.time,
        problem: (value) => timeProblem(Date.parse(value), end),
        hint: SCHEDULE.zone(Intl.DateTimeFormat().resolvedOptions().timeZone),
        input: h('input', {
            type: 'datetime-local',
            name: 'revoke-at',
            required: true,
            autofocus: true,
            value: inputTime(end ? Date.parse(end.revokeAt) : standardMs()),
        }),
    });
    const chosenMs = () => Date.parse(time.input.value);
    const draw = () => show(preview, timeProblem(chosenMs(), end) ? null : SCHEDULE.preview(...sayWhen(chosenMs())));

    time.input.addEventListener('input', draw);
    draw();
    return {...time, preview, chosenMs};
}

// end: what was scheduled before, or null. changed(): called when it is done.
export function openSchedule(key, end, changed) {
    const time = timeField(end);

    openAction({
        title: end ? SCHEDULE.titleChange : SCHEDULE.title,
        fields: [h('p', null, SCHEDULE.text), keyLine(key), time, time.preview],
        submitText: end ? SCHEDULE.submitChange : SCHEDULE.submit,
        workingText: SCHEDULE.working,
        act: () => call('PUT', endPathOf(key.id), {revoke_at: new Date(time.chosenMs()).toISOString()}),
        done: ({revoke_at: at}) => {
            announce(END.will(...sayWhen(at)));
            changed();
        },
        explainOwn: (refusal) => explainUncertain(refusal, SCHEDULE),
    });
}

export function openKeep(key, end, changed) {
    openAction({
        title: KEEP.title,
        fields: [
            keyLine(key),
            h('p', null, KEEP.text(exactTimeWithZone(end.revokeAt)), end.replacement ? ` ${KEEP.replaced}` : ''),
        ],
        submitText: KEEP.submit,
        workingText: KEEP.working,
        act: () => call('DELETE', endPathOf(key.id)),
        done: () => {
            announce(KEEP.done);
            changed();
        },
        explainOwn: (refusal) => explainUncertain(refusal, KEEP),
    });
}
