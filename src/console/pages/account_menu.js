// The email in the corner: who is signed in, the way to My account, and signing out.
import {foreign, h, icon, newButton, newId, show} from './dom.js';
import {roleName} from './roles.js';
import {currentSession, signOut} from './session.js';
import {workingButton} from './parts.js';
import {TEXTS} from './texts.js';

export function accountMenu() {
    const {user} = currentSession();
    const id = newId('menu');
    const problem = h('div', {role: 'alert'});
    const {signOut: text, signingOut: workingText} = TEXTS.session;
    const leave = workingButton({className: 'menu-row', iconName: 'out', text, workingText, problem}, async () => {
        await signOut();
        document.removeEventListener('pointerdown', pressed);
    });
    const panel = h(
        'div',
        {class: 'menu-panel', id, hidden: true},
        h(
            'p',
            {class: 'menu-who'},
            h('strong', {class: 'wrap'}, foreign(user.email)),
            h('span', {class: 'faint wrap'}, `${roleName(user.role)} · `, foreign(user.account_name)),
        ),
        h(
            'a',
            {class: 'menu-row', href: '/console/account', onclick: () => close()},
            icon('person'),
            TEXTS.pages.account,
        ),
        leave,
        problem,
    );
    const button = newButton(
        'menu-button',
        () => (panel.hidden ? open() : close()),
        [icon('person'), h('span', {class: 'menu-email'}, foreign(user.email)), icon('down')],
        {'aria-expanded': 'false', 'aria-controls': id, 'aria-label': TEXTS.accountMenu(user.email)},
    );
    const element = h('div', {class: 'account-menu', onkeydown: typed, onfocusout: left}, button, panel);

    function pressed(event) {
        if (!element.contains(event.target)) close();
    }
    function open() {
        panel.hidden = false;
        button.setAttribute('aria-expanded', 'true');
        document.addEventListener('pointerdown', pressed);
    }
    function close() {
        panel.hidden = true;
        button.setAttribute('aria-expanded', 'false');
        show(problem);
        document.removeEventListener('pointerdown', pressed);
    }
    function typed(event) {
        if (event.key !== 'Escape' || panel.hidden) return;
        event.stopPropagation();
        close();
        button.focus();
    }
    // Tabbing out of the menu closes it; a click on something that takes no focus does not.
    function left(event) {
        if (event.relatedTarget && !element.contains(event.relatedTarget)) close();
    }
    return element;
}
