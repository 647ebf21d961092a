// Modal dialogs and the side sheet. The browser's <dialog> keeps the focus inside and restores it afterwards.
import {h, icon, newButton, newId, show} from './dom.js';
import {TEXTS} from './texts.js';

const mayCloseNow = new Map(); // per open dialog

export const dialogsMayClose = () => [...mayCloseNow.values()].every((ask) => ask());

// The browser cannot give the focus back to a button that was redrawn meanwhile.
function focusSomewhere() {
    if (document.activeElement && document.activeElement !== document.body) return;
    const below = [...document.querySelectorAll('dialog[open] h2')].at(-1);

    (below ?? document.querySelector('main h1'))?.focus({preventScroll: true});
}

// shape: 'box' or 'sheet'. mayClose: called before Escape, the close button or going back closes the dialog. None of
// them closes it while a form in it is busy, because the user has to see the outcome. closed: runs once, after closing.
export function openDialog({title, shape = 'box', content, mayClose = () => true, closed, isFixed = false, name}) {
    const titleId = newId('title');
    const heading = h('h2', {id: titleId, tabindex: '-1'}, title);
    const body = h('div', {class: 'dialog-body'}, content);
    const isFree = () => !isFixed && !dialog.querySelector('form[data-working]') && mayClose();
    const tryClose = () => isFree() && dialog.close();
    const cross = newButton('plain icon-only', tryClose, icon('close'), {'aria-label': TEXTS.close});
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
    // Chromium closes the dialog at a second Escape even if the first was refused.
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
        focusSomewhere();
    });
    mayCloseNow.set(dialog, isFree);
    document.body.append(dialog);
    dialog.showModal();
    (dialog.querySelector('[autofocus]') ?? heading).focus();
    return {
        close: () => dialog.close(),
        // Replaces title and content. The title gets the focus, so that it is read out.
        replace(nextTitle, ...nextContent) {
            show(heading, nextTitle);
            body.replaceChildren(...nextContent.flat().filter(Boolean));
            dialog.scrollTo(0, 0);
            heading.focus();
        },
        element: dialog,
    };
}
