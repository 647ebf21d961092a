// Events of the audit trail: as rows of a table, and one by one with everything that is known.
import {currentAddress, leaveOver, pushAddress, words} from './address.js';
import {copyButton} from './copy.js';
import {openDialog} from './dialog.js';
import {foreign, h, icon, newButton, plainJson} from './dom.js';
import {EVENTS, eventSentence, reasonWords, typeName} from './events_texts.js';
import {foot} from './form.js';
import {count, exactTime, exactTimeWithZone, timeElement, zoneName} from './format.js';
import {addressOfId} from './names.js';
import {facts, listTable} from './parts.js';
import {TEXTS} from './texts.js';
import {kindWords, stranger, thingElement, thingOf} from './things.js';
import {THINGS} from './things_texts.js';

const ACTIVITY = '/console/activity';

// Done by an unknown person to the named user. Older entries name that user as the actor.
const STRANGERS = new Set(['login.failed']);
// Done by whoever has the key.
const HOLDERS = new Set(['api_key.used_after_revocation', 'requests.refused']);
const ICONS = [
    ['api_key', 'key'],
    ['requests', 'ban'],
    ['device', 'device'],
    ['session.step_up', 'shield'],
    ['login.failed', 'warn'],
    ['step_up.failed', 'warn'],
    ['user.locked', 'warn'],
    ['master_key', 'shield'],
    ['store', 'shield'],
    ['', 'person'],
];
const TIMES = new Set(['first', 'last', 'revoke_at']);
const KEYS = new Set(['replaced_by', 'replaces']);

// Who did it, as a thing; the id is '' if nobody is known.
function actorOf(event) {
    if (STRANGERS.has(event.type)) return stranger(EVENTS.stranger);
    if (HOLDERS.has(event.type)) return stranger(THINGS.holder);
    return event.actor ? thingOf(event.actor, event.actor_name ?? '') : stranger(EVENTS.someone);
}

// What it was done to: {id, name}.
function targetOf(event) {
    const isOld = STRANGERS.has(event.type) && !event.target;
    const id = (isOld ? event.actor : event.target) ?? '';

    const name = isOld ? event.actor_name : event.target_name;

    return {id, name: name || event.data?.email || id || TEXTS.unknown}; // who was removed has no name any more
}

// A device's own name is no id, whatever it looks like.
const hasId = ({target_kind: kind}) => kind !== 'device';

// People without a name were removed, or have not joined yet: they have no page.
const pageOf = (event, {id}) => (hasId(event) && (event.target_name || !event.target) ? addressOfId(id) : null);

function targetElement(event) {
    const target = targetOf(event);
    const {id, name} = target;
    const address = pageOf(event, target);
    const element = h('strong', {class: 'wrap', title: foreign(id)}, foreign(name));

    return address ? h('a', {class: 'event-target', href: address}, element) : element;
}

const sentence = (event) => eventSentence(event, foreign(targetOf(event).name));

function eventRow(event, open) {
    const {columns} = EVENTS;
    const [, iconName] = ICONS.find(([start]) => event.type.startsWith(start));
    const isGrave = /revoked|revocation|denied|failed|reset|locked|refused|removed|suspended|closed/.test(event.type);
    const clicked = ({target}) => target.closest('a, button') || String(getSelection()) || open(event);

    return h(
        'tr',
        {'onclick': clicked, 'data-id': event.id},
        h(
            'th',
            {scope: 'row'},
            h(
                'span',
                {class: 'event'},
                h('span', {class: `event-mark${isGrave ? ' grave' : ''}`}, icon(iconName)),
                h('span', {class: 'event-words'}, eventSentence(event, targetElement(event))),
            ),
        ),
        h('td', {'data-label': columns.who}, thingElement(actorOf(event))),
        h('td', {'data-label': columns.from, 'class': 'mono'}, event.ip ? foreign(event.ip) : '–'),
        h(
            'td',
            {'data-label': columns.when, 'class': 'when'},
            h(
                'div',
                null,
                h('span', {class: 'exact', title: exactTimeWithZone(event.created_at)}, exactTime(event.created_at)),
                timeElement(event.created_at),
            ),
        ),
        h(
            'td',
            {class: 'action-cell'},
            newButton('plain icon-only', () => open(event), icon('older'), {
                'aria-label': EVENTS.details(sentence(event)),
            }),
        ),
    );
}

// open() gets the event that was chosen.
export function eventTable(events, open) {
    const columns = {...EVENTS.columns, when: `${EVENTS.columns.when} (${zoneName()})`};

    return listTable('events', EVENTS.table, columns, events.map((event) => eventRow(event, open)));
}

function dataRows(data) {
    return Object.entries(data ?? {}).map(([name, value]) => {
        let shown = foreign(value);

        if (TIMES.has(name) && !Number.isNaN(Date.parse(value))) shown = exactTimeWithZone(value);
        else if (name === 'reason') shown = reasonWords(value);
        else if (KEYS.has(name) && addressOfId(value)) shown = h('a', {href: addressOfId(value)}, value);
        return [EVENTS.dataNames[name] ?? foreign(name), h('span', {class: 'wrap'}, shown)];
    });
}

const idLine = (id) =>
    id ? h('p', null, h('code', {class: 'wrap'}, foreign(id)), copyButton(id, TEXTS.copy, 'plain small')) : null;

const filterLink = (name, value, text) =>
    h('a', {class: 'button secondary small', href: `${ACTIVITY}?${new URLSearchParams({[name]: value})}`}, text);

function furtherLinks(event, actor, target) {
    const isId = hasId(event) && target.id;
    const page = pageOf(event, target);
    const pageText = target.id.startsWith('usr_') ? EVENTS.personPage : EVENTS.keyPage;

    return [
        page ? h('a', {class: 'button secondary small', href: page}, pageText) : null,
        actor.id ? filterLink('actor', actor.id, EVENTS.onlyWho) : null,
        isId ? filterLink('target', target.id, EVENTS.onlyAbout) : null,
        event.ip ? filterLink('ip', event.ip, EVENTS.onlyFrom) : null,
    ];
}

// Over a page with a list of events, the one of its address, if the list has it. address(id): of the page with that
// event over it, '' for none. events(): the list. {open(event), show()}
export function eventsOver(address, events) {
    function show() {
        const id = words('event');
        const event = events().find((each) => each.id === id);

        if (event) openEvent(event, () => currentAddress() === address(id) && leaveOver(address('')));
    }
    function open(event) {
        pushAddress(address(event.id), {isOver: true});
        show();
    }
    return {open, show};
}

function openEvent(event, closed) {
    const actor = actorOf(event);
    const target = targetOf(event);
    const raw = plainJson(event);
    const dialog = openDialog({
        title: sentence(event),
        shape: 'sheet',
        closed,
        content: [
            facts([
                [
                    EVENTS.time,
                    h('span', null, exactTimeWithZone(event.created_at)),
                    h('p', {class: 'hint mono'}, event.created_at),
                ],
                [EVENTS.who, thingElement(actor), h('p', {class: 'hint'}, kindWords(actor)), actor.words || actor.name ? idLine(actor.id) : null],
                event.target
                    ? [EVENTS.about, h('span', {class: 'wrap'}, foreign(target.name)), target.id !== target.name ? idLine(target.id) : null]
                    : null,
                [EVENTS.from, event.ip ? h('code', {class: 'wrap'}, foreign(event.ip)) : '–'],
                event.count > 1 ? [EVENTS.count, count(event.count)] : null,
                ...dataRows(event.data),
                [EVENTS.type, foreign(typeName(event.type)), h('p', null, h('code', {class: 'wrap'}, foreign(event.type)))],
                event.request_id
                    ? [
                          EVENTS.requestId,
                          h('code', {class: 'wrap'}, foreign(event.request_id)),
                          copyButton(event.request_id, TEXTS.copy, 'plain small'),
                      ]
                    : null,
                [EVENTS.eventId, h('code', {class: 'wrap'}, event.id)],
            ]),
            h('div', {class: 'event-links'}, furtherLinks(event, actor, target)),
            h('div', {class: 'try-head'}, h('h3', null, EVENTS.raw), copyButton(raw, TEXTS.copy, 'plain small')),
            h('pre', {tabindex: '0'}, h('code', null, raw)),
            foot(null, newButton('secondary', () => dialog.close(), TEXTS.close)),
        ],
    });
}
