// A person of the account, in a sheet at the side.
import {openDialog} from './dialog.js';
import {foreign, h, newButton, show} from './dom.js';
import {notice} from './form.js';
import {exactTimeElement, timeElement} from './format.js';
import {facts} from './parts.js';
import {mayAs} from './permissions.js';
import {openDisable, openEnable, openRemove, openReset, openRole} from './person_actions.js';
import {keyLinks, keysOf} from './person_keys.js';
import {PEOPLE} from './people_texts.js';
import {roleName} from './roles.js';
import {currentSession} from './session.js';

export function statusBadge(status) {
    return h('span', {class: `status ${status}`}, PEOPLE.statuses[status] ?? status);
}

export const factorOf = (user) => (user.status === 'invited' ? PEOPLE.factorMissing : PEOPLE.factor);

function keysView(user) {
    const space = h('div', null, h('span', {class: 'faint'}, PEOPLE.keysLoading));

    keysOf(user.id).then(
        ({keys, isCut}) => {
            const ids = keys.map(({id}) => id);
            const names = new Map(keys.map(({id, name}) => [id, name]));

            show(
                space,
                isCut ? PEOPLE.keysAtLeast(keys.length) : null,
                keys.length ? keyLinks(ids, names) : h('span', {class: 'faint'}, PEOPLE.keysNone),
            );
        },
        () => show(space, h('span', {class: 'faint'}, PEOPLE.keysUnknown)),
    );
    return space;
}

function actionsOf(user, changed) {
    if (user.id === currentSession().user.id)
        return h(
            'p',
            {class: 'hint'},
            `${PEOPLE.ownNote} `,
            h('a', {href: '/console/account'}, PEOPLE.ownNoteLink),
            '.',
        );
    if (!mayAs('owner')) return h('p', {class: 'hint'}, PEOPLE.readOnly);
    return h(
        'div',
        {class: 'person-actions'},
        newButton('secondary', () => openRole(user, changed), PEOPLE.changeRole),
        newButton('secondary', () => openReset(user, changed), PEOPLE.reset),
        user.status === 'disabled'
            ? newButton('secondary', () => openEnable(user, changed), PEOPLE.enable)
            : newButton('danger-quiet', () => openDisable(user, changed), PEOPLE.disable),
        newButton('danger-quiet', () => openRemove(user, changed), PEOPLE.remove),
    );
}

// changed(): something about the person has changed. reload() fetches them again; null if they are gone.
export function openPerson(user, {changed, reload, closed}) {
    const body = h('div');
    const {facts: words} = PEOPLE;

    async function refresh() {
        changed();
        const next = await reload().catch(() => user);

        if (next) draw(next);
        else show(body, notice('info', PEOPLE.gone));
    }
    function draw(person) {
        const hadFocus = body.contains(document.activeElement);

        show(
            body,
            person.status === 'locked' ? notice('warn', PEOPLE.locked) : null,
            facts([
                [words.role, roleName(person.role)],
                [words.status, statusBadge(person.status)],
                [words.factor, factorOf(person)],
                [words.seen, timeElement(person.last_sign_in_at)],
                [words.added, exactTimeElement(person.created_at)],
                person.disabled_at ? [words.disabled, exactTimeElement(person.disabled_at)] : null,
                [words.keys, keysView(person)],
                [words.id, h('code', {class: 'wrap'}, person.id)],
            ]),
            h('p', {class: 'more-of'}, h('a', {href: `/console/activity?actor=${person.id}`}, PEOPLE.activity)),
            h('div', {class: 'person-foot'}, actionsOf(person, refresh)),
        );
        if (hadFocus) dialog.element.querySelector('h2').focus();
    }
    draw(user);
    const dialog = openDialog({title: foreign(user.email), shape: 'sheet', name: 'person-sheet', content: body, closed});
}
