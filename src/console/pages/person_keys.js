// The keys that go back to a person: made by the person, or with such keys, however many stand between.
import {call, withQuery} from './api.js';
import {foreign, h} from './dom.js';
import {modeBadge} from './parts.js';
import {PEOPLE} from './people_texts.js';

const KEYS = '/v1/console/api_keys';
const PAGE = 100;
const PAGES_MAX = 20;
const SHOWN = 6;

const goesBackTo = (userId) => (key) => key.created_by === userId || key.origin === userId;

// Active keys only, newest first. isCut: the account has more keys than were looked at.
export async function keysOf(userId) {
    const keys = [];
    let after;

    for (let i = 0; i < PAGES_MAX; i++) {
        const page = await call('GET', withQuery(KEYS, {limit: PAGE, status: 'active', starting_after: after}));

        keys.push(...page.data.filter(goesBackTo(userId)));
        if (!page.has_more) return {keys, isCut: false};
        after = page.data.at(-1).id;
    }
    return {keys, isCut: true};
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

export const keyLinks = (ids, names) =>
    h(
        'ul',
        {class: 'key-list'},
        ids.map((id) => h('li', null, keyLink(id, names))),
    );
