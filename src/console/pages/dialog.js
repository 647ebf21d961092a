// Modal dialogs and the sheet at the side. The browser's own <dialog> keeps the focus inside and gives it back.
import {h, icon, newId} from './dom.js';
import {TEXTS} from './texts.js';

const mayCloseNow = new Map(); // of each open dialog

export const dialogsMayClose = () => [...mayCloseNow.values()].every((ask) => ask());

// shape: 'box' or 'sheet'. mayClose: asked before Escape, the cross or the way back closes; none of them does while a
// form in it is at work: what comes of that has to be seen. closed: runs once, after.
export function openDialog({title, shape = 'box', content, mayClose = () => true, closed, isFixed = false, name}) {
    const titleId = newId('title');
    const heading = h('h2', {id: titleId, tabindex: '-1'}, title);
    const body = h('div', {class: 'dialog-body'}, content);
    const isFree = () => !isFixed && !dialog.querySelector('form[data-working]') && mayClose();
    const tryClose = () => isFree() && dialog.close();
    const cross = h(
        'button',
        {'type': 'button', 'class': 'plain icon-only', 'aria-label': TEXTS.close, 'onclick': tryClose},
        icon('close'),
    );
    const dialog = h(
        'dialog',
        {'class': `${shape} ${name ?? ''}`, 'aria-labelledby': titleId},
        h('div', {class: 'dialog-head'}, heading, isFixed ? null : cross),
        body,
    );

    dialog.addEventListener('cancel', (event) => {
        event.preventDefault();
        tryClose();
    });
    // Chromium closes at a second Escape whatever the first was answered.
    dialog.addEventListener('keydown', (event) => {
        if (event.key === 'Escape') {
            event.preventDefault();
            event.stopPropagation();
            tryClose();
        }
    });
    dialog.addEventListener('close', () => {
        dialog.remove();
        mayCloseNow.delete(dialog);
        closed?.();
    });
    mayCloseNow.set(dialog, isFree);
    document.body.append(dialog);
    dialog.showModal();
    (dialog.querySelector('[autofocus]') ?? heading).focus();
    return {
        close: () => dialog.close(),
        // Other content under another title; the focus goes to the title, so that it is read out.
        replace(nextTitle, ...nextContent) {
            heading.textContent = nextTitle;
            body.replaceChildren(...nextContent.flat().filter(Boolean));
            dialog.scrollTo(0, 0);
            heading.focus();
        },
        element: dialog,
    };
}
