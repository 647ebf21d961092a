// When a session ends, the screen's content is removed from the document, so that nobody else finds it there. It is
// kept for the same user, without secrets.
import {announce, show} from './dom.js';

const SECRET_FIELDS = 'input[data-secret]';

let kept = null;

function forgetSecrets(part) {
    for (const input of part.querySelectorAll(SECRET_FIELDS)) input.value = '';
    part.dispatchEvent(new Event('veil'));
}

export function veil() {
    if (kept) return;
    const root = document.getElementById('root');
    const dialogs = [...document.querySelectorAll('dialog[open]')];

    kept = {
        dialogs: dialogs.map((dialog) => [dialog, dialog.scrollTop]),
        focused: document.activeElement,
        page: [...root.childNodes],
        scrolled: scrollY,
    };
    for (const part of [root, ...dialogs]) forgetSecrets(part);
    for (const dialog of dialogs) dialog.remove();
    show(root);
    announce('');
}

export function unveil() {
    const {dialogs, focused, page, scrolled} = kept;

    kept = null;
    show(document.getElementById('root'), page);
    scrollTo(0, scrolled);
    for (const [dialog, position] of dialogs) {
        document.body.append(dialog);
        dialog.removeAttribute('open'); // so that it becomes modal again
        dialog.showModal();
        dialog.scrollTop = position;
    }
    focused?.focus({preventScroll: true});
}

// Discards the kept content: its user will not come back.
export function dropVeiled() {
    for (const [dialog] of kept?.dialogs ?? []) dialog.close();
    kept = null;
}
