// A secret that is made in a dialog and shown once. The dialog stays open until the user says that it is stored; when
// the session ends, the secret is taken off the screen.
import {closeFoot} from './action.js';
import {copySecretButton} from './copy.js';
import {openDialog} from './dialog.js';
import {h, newButton, show} from './dom.js';
import {foot, notice, problemSpace} from './form.js';

// Closing the tab now would lose it.
function warnUnload(event) {
    event.preventDefault();
}

// Beside the button that copies it, there may be more.
export const secretText = (label, secret, copyText, more) =>
    h(
        'div',
        {class: 'secret'},
        h('span', {class: 'field-name'}, label),
        h('code', {class: 'secret-text', tabindex: '0'}, secret),
        h('div', {class: 'secret-actions'}, copySecretButton(secret, copyText, 'primary'), more),
    );

// texts: {stored, notStored, finish, goneTitle, gone}. reveal(): the secret, in place of the content.
export function openOnce({title, shape, name, content, texts}) {
    const problem = problemSpace();
    let isShown = false;
    let isStored = false;
    const dialog = openDialog({
        title,
        shape,
        name,
        content,
        mayClose: () => {
            if (!isShown || isStored) return true;
            show(problem, notice('warn', texts.notStored));
            problem.focus();
            return false;
        },
        closed: () => removeEventListener('beforeunload', warnUnload),
    });

    dialog.element.addEventListener('veil', () => {
        if (!isShown) return;
        isStored = true; // it can no longer be shown
        removeEventListener('beforeunload', warnUnload);
        dialog.replace(texts.goneTitle, notice('warn', texts.gone), closeFoot(dialog));
    });
    return {
        element: dialog.element,
        close: dialog.close,
        reveal(nextTitle, ...secret) {
            const done = newButton('primary', dialog.close, texts.finish, {disabled: true});
            const changed = ({target}) => {
                isStored = target.checked;
                done.disabled = !isStored;
            };
            const stored = h('input', {type: 'checkbox', name: 'stored', onchange: changed});
            const label = h('label', {class: 'check'}, stored, texts.stored);

            isShown = true;
            addEventListener('beforeunload', warnUnload);
            dialog.replace(nextTitle, ...secret, foot(problem, label, done));
        },
    };
}
