// What an id is of: a person, a key, a device, or who acts without one. Names are foreign text and may say anything, so
// the kind stands beside them, and words for who has no name are not shown as one.
import {foreign, h, icon} from './dom.js';
import {currentSession} from './session.js';
import {THINGS} from './things_texts.js';

const ICONS = {person: 'person', key: 'key', device: 'device', command: 'terminal', service: 'service', stranger: 'stranger'};
const KINDS = {usr: 'person', key: 'key', dev: 'device'};
// Actors without an id: operators on the command line, whoever revokes a key by its secret, and the service itself.
const RESERVED = {
    operator: {kind: 'command', words: THINGS.operator},
    system: {kind: 'service', words: THINGS.system},
    holder: {kind: 'stranger', words: THINGS.holder},
};

export const RESERVED_IDS = Object.keys(RESERVED);

export const stranger = (words) => ({kind: 'stranger', id: '', words});

// {kind, id}, and words if it is no name but the console's own; otherwise name and last4, '' if unknown.
export function thingOf(id, name = '', last4 = '') {
    if (Object.hasOwn(RESERVED, id)) return {id, ...RESERVED[id]};
    return {kind: KINDS[id.split('_')[0]] ?? 'stranger', id, name, last4};
}

export const kindWords = ({kind}) => THINGS.kinds[kind];

// What it is called. isTag: with the word for oneself behind one's own email.
export function thingElement(thing) {
    const {id, name, last4, words} = thing;
    const isOwn = id !== '' && id === currentSession()?.user.id;

    return h(
        'span',
        {class: 'thing'},
        h('span', {class: 'thing-kind', title: kindWords(thing)}, icon(ICONS[thing.kind]), h('span', {class: 'unseen'}, kindWords(thing), ' ')),
        h(
            'span',
            {class: 'wrap', title: id ? foreign(id) : null},
            words ? h('span', {class: 'faint'}, words) : foreign(name || id),
            last4 ? h('span', {class: 'mono faint'}, ` …${last4}`) : null,
        ),
        isOwn ? h('span', {class: 'tag'}, THINGS.you) : null,
    );
}
