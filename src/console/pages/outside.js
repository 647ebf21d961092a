// What the pages for people who are not signed in have in common.
import {h} from './dom.js';
import {signInCard} from './signin.js';

const SIGN_IN = '/console/';

// As signInCard().
export const outsideCard = (title, lead, ...content) => signInCard('outside-card', title, lead, content);

export const signInLink = (text, className = 'button primary') => h('a', {class: className, href: SIGN_IN}, text);
