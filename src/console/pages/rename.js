// Giving a key another name. Loaded on demand.
import {openAction} from './action.js';
import {call} from './api.js';
import {announce, h} from './dom.js';
import {pathOf} from './key_end.js';
import {RENAME} from './key_texts.js';
import {explainNewKey, nameField} from './new_key.js';
import {keyLine} from './revoke.js';

// renamed(): gets the key with its new name.
export function openRename(key, renamed) {
    const name = nameField({label: RENAME.name, value: key.name, autofocus: true});

    openAction({
        title: RENAME.title,
        fields: [keyLine(key), name, h('p', {class: 'hint'}, RENAME.text)],
        submitText: RENAME.submit,
        workingText: RENAME.working,
        act: () => call('PATCH', pathOf(key.id), {name: name.value()}),
        done: (record) => {
            announce(RENAME.done(record.name));
            renamed(record);
        },
        explainOwn: (refusal) => explainNewKey(refusal, name, RENAME),
    });
}
