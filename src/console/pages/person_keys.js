// The keys that go back to a person: made by the person, or with such keys, however many stand between.
import {bullets, foreign, h} from './dom.js';
import {READ_MAX, readKeys} from './keybook.js';
import {modeBadge} from './parts.js';
import {PEOPLE} from './people_texts.js';

const SHOWN = 6;

const goesBackTo = (userId) => (key) => key.created_by === userId || key.origin === userId;

// Active keys only, newest first. isCut: the account has more keys than were looked at.
export async function keysOf(userId) {
    const book = readKeys({mode: '', status: 'active'});

    await book.upTo(READ_MAX);
    return {keys: book.rows.filter(goesBackTo(userId)), isCut: !book.isWhole};
}

function keyLink(id, names) {
    const href = id.startsWith('dev_') ? '/console/devices' : `/console/keys/${id}`;

    return h('a', {href}, names.has(id) ? foreign(names.get(id)) : PEOPLE.unnamed(id));
}

// So that an owner sees which integrations are at stake.
export function keyList(keys) {
    const rows = keys
        .slice(0, SHOWN)
        .map((key) => h('li', null, h('span', {class: 'wrap'}, foreign(key.name)), modeBadge(key.mode)));
    const more = keys.length - SHOWN;

    return h('ul', {class: 'key-list'}, rows, more > 0 ? h('li', {class: 'faint'}, PEOPLE.keysMore(more)) : null);
}

export const keyLinks = (ids, names) => bullets({class: 'key-list'}, ids.map((id) => keyLink(id, names)));
