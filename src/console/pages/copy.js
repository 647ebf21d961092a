// Buttons that copy. Not in parts.js, which the first page loads: it copies nothing.
import {announce, h, icon, newButton, show} from './dom.js';
import {TEXTS} from './texts.js';

// copied: called when it is in the clipboard.
export function copyButton(text, label, className, copied = () => {}) {
    const words = h('span', null, label);
    const button = newButton(className, run, [icon('copy'), words]);

    async function run() {
        try {
            await navigator.clipboard.writeText(text);
            button.style.minWidth = `${button.offsetWidth}px`; // its neighbours stay where they are
            show(button, icon('done'), words);
            words.textContent = TEXTS.copied;
            announce(TEXTS.copied);
            copied();
            setTimeout(() => {
                show(button, icon('copy'), words);
                words.textContent = label;
            }, 2000);
        } catch {
            announce(TEXTS.copyFailed);
            words.textContent = TEXTS.copyFailed;
        }
    }
    return button;
}

// For secrets. The clipboard keeps what it has, for other programs too, until something else is copied. It is not cleared
// unasked: pages are not told whether it still has the secret, or something that the user needs.
export function copySecretButton(text, label, className) {
    const clear = newButton('plain small', run, TEXTS.clipboard.clear);
    const note = h('span', {class: 'hint clipboard', hidden: true});

    async function run() {
        try {
            await navigator.clipboard.writeText('');
            show(note, TEXTS.clipboard.cleared);
            announce(TEXTS.clipboard.cleared);
        } catch {
            show(note, TEXTS.clipboard.notCleared);
            announce(TEXTS.clipboard.notCleared);
        }
    }
    return [
        copyButton(text, label, className, () => {
            show(note, TEXTS.clipboard.keeps, ' ', clear);
            note.hidden = false;
        }),
        note,
    ];
}
