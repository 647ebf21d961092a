// What all new keys have in common, made from nothing or in place of another one: the rule for names, and the secret. It
// is shown once, and stays in view until the user says that it is stored.
import {explainUncertain} from './action.js';
import {openDialog} from './dialog.js';
import {announce, foreign, h, icon, newButton, show} from './dom.js';
import {saveFile} from './file.js';
import {foot, notice, problemSpace, textField} from './form.js';
import {NEW_KEY} from './new_key_texts.js';
import {copyButton, copySecretButton, explain, modeBadge} from './parts.js';
import {TEXTS} from './texts.js';

const NAME_MAX = 200;
const FILE_STEM_MAX = 40;

// Counts code points, as the server does.
function nameProblem(name) {
    const length = [...name].length;

    if (length === 0) return NEW_KEY.nameMissing;
    return length > NAME_MAX && NEW_KEY.nameLong;
}

export const nameField = (properties) => textField({name: 'key-name', problem: nameProblem, ...properties});

// Why no key was made. name: its field. texts: for when that is uncertain.
export function explainNewKey(refusal, name, texts) {
    if (refusal.param === 'name') {
        name.setError(foreign(refusal.message));
        name.input.focus();
        return [];
    }
    return explainUncertain(refusal, texts) ?? [explain(refusal)];
}

// The secret

function fileStem(name) {
    return (
        name
            .toLowerCase()
            .replace(/[^a-z0-9]+/g, '-')
            .replace(/^-+|-+$/g, '')
            .slice(0, FILE_STEM_MAX) || 'api-key'
    );
}

function tryView(file, curl) {
    return h(
        'div',
        null,
        h('div', {class: 'try-head'}, h('h3', null, NEW_KEY.tryIt), copyButton(curl, TEXTS.copy, 'plain small')),
        h('p', {class: 'hint'}, NEW_KEY.tryText(file)),
        h('pre', {tabindex: '0'}, h('code', null, curl)),
    );
}

// about: what to say of the key above its secret.
function secretView(key, {text, canTry, about}, state, finish) {
    const file = `${fileStem(key.name)}.env`;
    const curl = `set -a; . ./${file}; set +a\ncurl -sS ${location.origin}/v1/whoami -H "Authorization: Bearer $CHATELAINE_API_KEY"`;
    const env = new Blob([`CHATELAINE_API_KEY=${key.secret}\n`], {type: 'text/plain'});
    const stored = h('input', {type: 'checkbox', name: 'stored'});
    const done = newButton('primary', finish, NEW_KEY.finish, {disabled: true});

    stored.addEventListener('change', () => {
        state.isStored = stored.checked;
        done.disabled = !stored.checked;
    });
    return [
        notice('warn', text),
        h('div', {class: 'key-line'}, h('strong', {class: 'wrap'}, foreign(key.name)), modeBadge(key.mode)),
        about && h('p', null, about),
        h(
            'div',
            {class: 'secret'},
            h('span', {class: 'field-name'}, NEW_KEY.secret),
            h('code', {class: 'secret-text', tabindex: '0'}, key.secret),
            h(
                'div',
                {class: 'secret-actions'},
                copySecretButton(key.secret, NEW_KEY.copySecret, 'primary'),
                newButton('secondary', () => saveFile(file, env), [icon('download'), NEW_KEY.download]),
            ),
        ),
        canTry && tryView(file, curl),
        foot(state.problem, h('label', {class: 'check'}, stored, NEW_KEY.stored), done),
    ];
}

// Closing the tab now would lose the secret.
function warnUnload(event) {
    event.preventDefault();
}

// A sheet that makes a key. show(): the key with its secret, which takes the place of the content.
export function openSecretSheet({title, content}) {
    const state = {secretShown: false, isStored: false, problem: problemSpace()};
    const dialog = openDialog({
        title,
        shape: 'sheet',
        name: 'create',
        content,
        mayClose: () => {
            if (!state.secretShown || state.isStored) return true;
            show(state.problem, notice('warn', NEW_KEY.notStored));
            state.problem.focus();
            return false;
        },
        closed: () => removeEventListener('beforeunload', warnUnload),
    });

    dialog.element.addEventListener('veil', () => {
        if (!state.secretShown) return;
        state.isStored = true; // it can no longer be shown
        removeEventListener('beforeunload', warnUnload);
        dialog.replace(
            NEW_KEY.goneTitle,
            notice('warn', h('p', null, NEW_KEY.gone)),
            foot(null, newButton('primary', () => dialog.close(), TEXTS.close)),
        );
    });
    return {
        element: dialog.element,
        close: () => dialog.close(),
        show(key, {text = NEW_KEY.doneText, canTry = true, about, said}) {
            state.secretShown = true;
            addEventListener('beforeunload', warnUnload);
            dialog.element.classList.remove('is-live');
            dialog.replace(NEW_KEY.doneTitle, secretView(key, {text, canTry, about}, state, () => dialog.close()));
            announce(said);
        },
    };
}
