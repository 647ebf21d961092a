// What all new keys have in common, made from nothing or in place of another one: the rule for names, and the secret. It
// is shown once, and stays in view until the user says that it is stored.
import {explainUncertain} from './action.js';
import {copyButton} from './copy.js';
import {announce, foreign, h, icon, newButton} from './dom.js';
import {saveFile} from './file.js';
import {notice, textField} from './form.js';
import {NEW_KEY} from './new_key_texts.js';
import {openOnce, secretText} from './once.js';
import {explain, modeBadge} from './parts.js';
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
function secretView(key, {text, canTry, about}) {
    const file = `${fileStem(key.name)}.env`;
    const curl = `set -a; . ./${file}; set +a\ncurl -sS ${location.origin}/v1/whoami -H "Authorization: Bearer $CHATELAINE_API_KEY"`;
    const env = new Blob([`CHATELAINE_API_KEY=${key.secret}\n`], {type: 'text/plain'});
    const download = newButton('secondary', () => saveFile(file, env), [icon('download'), NEW_KEY.download]);

    return [
        notice('warn', text),
        h('div', {class: 'key-line'}, h('strong', {class: 'wrap'}, foreign(key.name)), modeBadge(key.mode)),
        about && h('p', null, about),
        secretText(NEW_KEY.secret, key.secret, NEW_KEY.copySecret, download),
        canTry && tryView(file, curl),
    ];
}

// A sheet that makes a key. show(): the key with its secret, which takes the place of the content.
export function openSecretSheet({title, content}) {
    const sheet = openOnce({title, shape: 'sheet', name: 'create', content, texts: NEW_KEY});

    return {
        ...sheet,
        show(key, {text = NEW_KEY.doneText, canTry = true, about, said}) {
            sheet.element.classList.remove('is-live');
            sheet.reveal(NEW_KEY.doneTitle, ...secretView(key, {text, canTry, about}));
            announce(said);
        },
    };
}
