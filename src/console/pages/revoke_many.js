// Revoking many keys with one request: asking first, and saying what happened to each. Loaded on demand.
import {explainUncertain} from './action.js';
import {call} from './api.js';
import {openDialog} from './dialog.js';
import {bullets, h} from './dom.js';
import {notice, textField, workingForm} from './form.js';
import {explain} from './parts.js';
import {askFirst, isInUse, keyLine, showOutcome} from './revoke.js';
import {MANY} from './revoke_many_texts.js';
import {TEXTS} from './texts.js';

const keyLines = (keys) => bullets({class: 'key-lines'}, keys.map(keyLine));

const countConfirmation = (count) =>
    textField({label: MANY.typeLabel(count), inputmode: 'numeric', autofocus: true});

function showManyRevoked(dialog, keys, answer) {
    const {doneTitle} = TEXTS.revoke;
    const ended = answer.revoked.length + answer.already_revoked.length;
    const title = ended ? doneTitle : MANY.noneTitle;
    const text = ended ? MANY.done(ended) : MANY.none;
    const parts = [
        [MANY.revoked, answer.revoked],
        [MANY.before, answer.already_revoked],
        [MANY.unknown, answer.not_found],
    ]
        .filter(([, ids]) => ids.length)
        .map(([titleOf, ids]) => [titleOf(ids.length), keys.filter(({id}) => ids.includes(id))]);

    showOutcome(
        dialog,
        title,
        [`${title}. ${text}`, ...parts.map(([head]) => head)].join(' '),
        notice(ended ? 'good' : 'warn', h('p', null, text)),
        parts.flatMap(([head, some]) => [h('h3', null, head), keyLines(some)]),
    );
}

// All with one request. revoked() gets its response.
export function revokeKeys(keys, revoked) {
    const inUse = keys.filter(isInUse).length;
    const confirmation = inUse ? countConfirmation(keys.length) : null;
    const form = workingForm({
        fields: [
            h('p', null, MANY.text),
            inUse ? notice('warn', MANY.inUse(inUse)) : null,
            confirmation,
            keyLines(keys),
        ],
        submitText: MANY.submit(keys.length),
        workingText: TEXTS.revoke.working,
        buttonClass: 'danger',
        cancel: () => dialog.close(),
        submit: async () => {
            const answer = await call('POST', '/v1/console/api_keys/revoke', {ids: keys.map(({id}) => id)});

            showManyRevoked(dialog, keys, answer);
            revoked(answer);
        },
        explain: (refusal) => {
            if (refusal.kind !== 'refused') form.setSubmit(TEXTS.retry, 'danger');
            return explainUncertain(refusal, MANY) ?? [explain(refusal)];
        },
    });
    const dialog = openDialog({title: MANY.title(keys.length), content: form.element});

    askFirst(form.button, confirmation, String(keys.length));
}
