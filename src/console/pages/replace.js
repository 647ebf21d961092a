// Replacing a key: a new one with the same rights, and how long the old one stays valid beside it. Loaded on demand.
import {call} from './api.js';
import {serverNow} from './clock.js';
import {h, show} from './dom.js';
import {field, notice, workingForm} from './form.js';
import {exactTimeWithZone} from './format.js';
import {pathOf} from './key_end.js';
import {REPLACE} from './key_end_texts.js';
import {explainNewKey, nameField, openSecretSheet} from './new_key.js';
import {keyLine} from './revoke.js';

const STANDARD_S = 604800;

// When the old key ends, with that overlap: a time that was said before may be sooner.
function endOf(overlapS, end) {
    const ms = serverNow() + overlapS * 1000;
    const isSooner = Boolean(end) && Date.parse(end.revokeAt) < ms;

    return {isSooner, time: exactTimeWithZone(isSooner ? end.revokeAt : ms)};
}

// end: its scheduled revocation, or null. changed(): called when the new key exists.
export function openReplace(key, end, changed) {
    const consequence = h('div', {'aria-live': 'polite'});
    const name = nameField({label: REPLACE.name, value: key.name});
    const overlap = field({
        label: REPLACE.overlap,
        input: h(
            'select',
            {name: 'overlap', onchange: overlapChanged},
            Object.entries(REPLACE.overlaps).map(([seconds, text]) =>
                h('option', {value: seconds, selected: Number(seconds) === STANDARD_S}, text),
            ),
        ),
    });
    const overlapS = () => Number(overlap.input.value);
    const form = workingForm({
        fields: [h('p', null, REPLACE.text), keyLine(key), name, overlap, consequence],
        submitText: '',
        workingText: REPLACE.working,
        cancel: () => sheet.close(),
        submit: async () => {
            const seconds = overlapS();
            const body = {name: name.value(), overlap_seconds: seconds};
            const made = await call('POST', `${pathOf(key.id)}/replacement`, body);

            sheet.show(made, {
                about: seconds ? REPLACE.oldUntil(endOf(seconds, end).time) : REPLACE.oldSoon,
                said: REPLACE.made(made.name),
            });
            changed();
        },
        explain: (refusal) => explainNewKey(refusal, name, REPLACE),
    });
    const sheet = openSecretSheet({title: REPLACE.title, content: form.element});

    function overlapChanged() {
        const seconds = overlapS();
        const {isSooner, time} = endOf(seconds, end);
        const words = isSooner ? REPLACE.sooner : REPLACE.until;

        show(consequence, seconds ? h('p', {class: 'hint'}, words(time)) : notice('warn', REPLACE.atOnce));
        if (seconds) form.setSubmit(REPLACE.submit[key.mode], key.mode === 'live' ? 'live' : 'primary');
        else form.setSubmit(REPLACE.submitAtOnce, 'danger');
    }
    sheet.element.classList.toggle('is-live', key.mode === 'live');
    overlapChanged();
}
