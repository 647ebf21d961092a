// Revoking a key or a device: asking first, and saying when it is in effect everywhere.
import {explainUncertain} from './action.js';
import {call} from './api.js';
import {serverNow} from './clock.js';
import {openDialog} from './dialog.js';
import {announce, foreign, h, newButton} from './dom.js';
import {foot, notice, textField, workingForm} from './form.js';
import {clockTimeExact, exactTime, timeInWords} from './format.js';
import {explain, modeBadge} from './parts.js';
import {TEXTS} from './texts.js';

const IN_USE_MS = 30 * 86400000;

export const isInUse = (key) =>
    key.mode === 'live' && key.last_used_at && serverNow() - Date.parse(key.last_used_at) < IN_USE_MS;

export function keyLine(key) {
    return h(
        'div',
        {class: 'key-line'},
        h('strong', {class: 'wrap'}, foreign(key.name)),
        key.mode ? modeBadge(key.mode) : null,
        h('span', {class: 'mono faint'}, `…${key.last4}`),
    );
}

// The last four characters, because a name may be one that nobody can type as it is stored.
const last4Confirmation = ({last4}) =>
    textField({
        label: TEXTS.revoke.typeLast4(last4),
        autocapitalize: 'none',
        spellcheck: 'false',
        autofocus: true,
    });

// Neither width nor case counts.
const folded = (text) => [...text.normalize('NFKC').toLowerCase()];

// What keeps the typed text from being the expected one; null if only its end is missing.
function difference(typed, expected) {
    const [is, should] = [folded(typed), folded(expected)];
    const at = is.findIndex((c, i) => c !== should[i]);

    if (at < 0) return null;
    if (at === should.length) return TEXTS.revoke.typedMore(expected);
    return TEXTS.revoke.typedOther(at + 1, is[at], [...expected][at]);
}

// The button works once the confirmation, a field, if there is one, has the expected text.
export function askFirst(button, confirmation, expected) {
    const typed = () => confirmation.value();
    const compare = () => {
        button.disabled = folded(typed()).join('') !== folded(expected).join('');
        confirmation.setError(difference(typed(), expected) ?? '');
    };

    confirmation?.input.addEventListener('input', compare);
    confirmation?.input.addEventListener('change', () => {
        if (button.disabled && typed() && !difference(typed(), expected))
            confirmation.setError(TEXTS.revoke.typedLess([...typed()].length, [...expected].length));
    });
    if (confirmation) button.disabled = true;
    (confirmation?.input ?? button).focus();
}

// The second argument holds the texts and the path for this kind of key. revoked() gets the updated record.
export function openRevoke(key, {path, title, text, submitText, doneTitle, doneText, next}, revoked) {
    const confirmation = isInUse(key) ? last4Confirmation(key) : null;
    const lastUse = h(
        'p',
        null,
        key.last_used_at
            ? [
                  TEXTS.revoke.lastUsed(timeInWords(key.last_used_at)),
                  h('span', {class: 'faint'}, ` · ${exactTime(key.last_used_at)}`),
              ]
            : TEXTS.revoke.neverUsed,
    );
    const form = workingForm({
        fields: [
            keyLine(key),
            lastUse,
            h('p', null, text),
            confirmation ? notice('warn', TEXTS.revoke.inUse) : null,
            confirmation,
        ],
        submitText,
        workingText: TEXTS.revoke.working,
        buttonClass: 'danger',
        cancel: () => dialog.close(),
        submit: async () => {
            const record = await call('DELETE', `${path}/${encodeURIComponent(key.id)}`);

            showOutcome(
                dialog,
                doneTitle,
                `${doneTitle}. ${doneText}`,
                notice(
                    'good',
                    h('p', null, doneText),
                    h('p', {class: 'faint'}, TEXTS.revoke.since(clockTimeExact(record.revoked_at))),
                ),
                keyLine(key),
                next?.(key),
            );
            revoked(record);
        },
        explain: (refusal) => explainUncertain(refusal, TEXTS.revoke) ?? [explain(refusal)],
    });
    const dialog = openDialog({title, content: form.element});

    askFirst(form.button, confirmation, key.last4);
}

// What has happened, in place of the form. said: the same for screen readers.
export function showOutcome(dialog, title, said, ...content) {
    const finish = newButton('primary', dialog.close, TEXTS.close);

    dialog.replace(title, ...content, foot(null, finish));
    announce(said);
    finish.focus();
}

export function revokeKey(key, revoked) {
    openRevoke(
        key,
        {
            path: '/v1/console/api_keys',
            title: TEXTS.revoke.title,
            text: TEXTS.revoke.text,
            submitText: TEXTS.revoke.submit,
            doneTitle: TEXTS.revoke.doneTitle,
            doneText: TEXTS.revoke.doneShort,
            next: ({id}) =>
                h('p', null, TEXTS.revoke.next, ' ', h('a', {href: `/console/keys/${id}`}, TEXTS.revoke.nextLink)),
        },
        revoked,
    );
}
