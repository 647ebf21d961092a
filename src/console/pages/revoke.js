// Revoking a key or a device: asking first, and saying when it is in effect everywhere.
import {call} from './api.js';
import {serverNow} from './clock.js';
import {openDialog} from './dialog.js';
import {announce, foreign, h} from './dom.js';
import {field, foot, notice, workingForm} from './form.js';
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

function explainRevoke(refusal) {
    const texts = {away: TEXTS.revoke.unconfirmed, offline: TEXTS.revoke.unanswered};

    return [refusal.kind in texts ? notice('warn', h('p', null, texts[refusal.kind])) : explain(refusal)];
}

// The name as displayed: browsers show a run of blanks as one.
const readable = (name) => name.trim().replace(/\s+/g, ' ');

function nameConfirmation(key) {
    const confirmation = field({
        label: TEXTS.revoke.typeLabel(key.name),
        isLabelHidden: true,
        input: h('input', {
            type: 'text',
            autocomplete: 'off',
            spellcheck: 'false',
            autofocus: true,
        }),
    });

    confirmation.element.prepend(
        h(
            'p',
            {'class': 'type-name', 'aria-hidden': 'true'},
            h('span', null, TEXTS.revoke.typeName('')[0]),
            h('strong', {class: 'wrap'}, foreign(key.name)),
            h('span', null, TEXTS.revoke.typeName('')[2]),
        ),
    );
    return confirmation;
}

// The button works once the input, if there is one, has the expected text.
export function askFirst(button, input, expected) {
    const compare = () => {
        button.disabled = readable(input.value) !== readable(expected);
    };

    input?.addEventListener('input', compare);
    if (input) compare();
    (input ?? button).focus();
}

// The second argument holds the texts and the path for this kind of key. revoked() gets the updated record.
export function openRevoke(key, {path, title, text, submitText, doneTitle, doneText, next}, revoked) {
    const confirmation = isInUse(key) ? nameConfirmation(key) : null;
    const lastUse = h(
        'p',
        {class: 'last-use'},
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
            confirmation?.element,
        ],
        submitText,
        workingText: TEXTS.revoke.working,
        buttonClass: 'danger',
        cancel: () => dialog.close(),
        submit: async () => {
            const record = await call('DELETE', `${path}/${encodeURIComponent(key.id)}`);

            showRevoked(dialog, key, record, {doneTitle, doneText, next});
            revoked(record);
        },
        explain: explainRevoke,
    });
    const dialog = openDialog({title, content: form.element});

    askFirst(form.button, confirmation?.input, key.name);
}

function showRevoked(dialog, key, record, {doneTitle, doneText, next}) {
    const finish = h('button', {type: 'button', class: 'primary', onclick: () => dialog.close()}, TEXTS.close);

    dialog.replace(
        doneTitle,
        notice(
            'good',
            h('p', null, doneText),
            h('p', {class: 'faint'}, TEXTS.revoke.since(clockTimeExact(record.revoked_at))),
        ),
        keyLine(key),
        next?.(key),
        foot(null, finish),
    );
    announce(`${doneTitle}. ${doneText}`);
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
