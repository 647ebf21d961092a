// The roles of people, from the least to the most powerful, and what each may do.
import {h} from './dom.js';

export const ROLES = {
    auditor: {name: 'Auditor', text: 'Reads everything: lists, usage, activity, exports. Changes nothing.'},
    responder: {
        name: 'Responder',
        text: 'Reads everything, revokes keys and devices. Creates nothing. For whoever is on call.',
    },
    developer: {name: 'Developer', text: 'Creates and revokes keys, approves and revokes devices, reads everything.'},
    owner: {name: 'Owner', text: 'Everything, including inviting, changing and removing people.'},
};

const ORDER = Object.keys(ROLES);

// Whether the first role may less than the second.
export const isLower = (role, than) => ORDER.indexOf(role) < ORDER.indexOf(than);

export const roleName = (role) => (Object.hasOwn(ROLES, role) ? ROLES[role].name : role);

// With what it allows.
export const roleElements = (role) => [
    h('strong', null, roleName(role)),
    h('span', {class: 'faint'}, ` ${ROLES[role]?.text ?? ''}`),
];
