// The names behind ids: of the people and keys that made something.
import {call, orNone} from './api.js';
import {h, show} from './dom.js';
import {currentSession} from './session.js';
import {thingElement, thingOf} from './things.js';

const SHORT = 12; // characters of an id that has no name

// Of somebody who was removed, only the audit trail still knows the email.
async function emailOf(id) {
    const user = await call('GET', `/v1/console/users/${id}`).catch(orNone);

    if (user) return user.email;
    const {readTrail} = await import('./trail.js');
    const {data} = await readTrail({target: id, type: 'user.removed'}, 1);

    return data[0]?.data?.email ?? '';
}

const SOURCES = {
    usr: emailOf,
    key: async (id) => (await call('GET', `/v1/console/api_keys/${id}`)).name,
};

const known = new Map(); // id: promise of a name; '' if there is none

const shortId = (id) => (id.length > SHORT ? `${id.slice(0, SHORT)}…` : id);

function nameOf(id) {
    const source = SOURCES[id.split('_')[0]] ?? (async () => '');
    const failed = () => {
        known.delete(id); // asked for again when it is drawn again
        return '';
    };

    if (!known.has(id)) known.set(id, source(id).catch(failed));
    return known.get(id);
}

addEventListener('forget', () => known.clear());

// Where more about it is shown; null if there is no such page.
export function addressOfId(id) {
    if (/^key_[0-9a-z]{26}$/.test(id)) return `/console/keys/${id}`;
    return /^usr_[0-9a-z]{26}$/.test(id) ? `/console/people?person=${id}` : null;
}

// Whoever made a key, drawn when the name is known.
export function makerElement(id) {
    const {user} = currentSession();
    const element = h('span');
    const draw = (name) => show(element, thingElement(thingOf(id, name || shortId(id))));

    draw(id === user.id ? user.email : '');
    if (id !== user.id) nameOf(id).then(draw);
    return element;
}
