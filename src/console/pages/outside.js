// What the pages for people who are not signed in have in common.
import {h} from './dom.js';
import {brand} from './signin.js';

const SIGN_IN = '/console/';

// title: the page's heading, which gets the focus.
export function outsideCard(title, lead, ...content) {
    return h(
        'div',
        {class: 'card sign-in-card outside-card'},
        brand(),
        h('h1', {tabindex: '-1'}, title),
        lead ? h('p', {class: 'lead'}, lead) : null,
        content,
    );
}

export const signInLink = (text, className = 'button primary') => h('a', {class: className, href: SIGN_IN}, text);
