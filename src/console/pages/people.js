// Who belongs to the account: people, and invitations that nobody has accepted yet.
import {redraw} from './action.js';
import {currentAddress, leaveOver, pushAddress, withState, words} from './address.js';
import {call, orNone, withQuery} from './api.js';
import {announce, foreign, h, icon, newButton} from './dom.js';
import {exactTimeElement, timeElement} from './format.js';
import {INVITATIONS, openInvite, openWithdraw} from './invite.js';
import {listTable, loading, pageHead, pagerMore, skeletonRows} from './parts.js';
import {factorOf, openPerson, statusBadge} from './person.js';
import {USERS} from './person_actions.js';
import {PEOPLE} from './people_texts.js';
import {mayAs} from './permissions.js';
import {ROLES, roleName} from './roles.js';
import {currentSession} from './session.js';

const PAGE = 50;
const INVITATIONS_MAX = 100;

function personRow(user, open) {
    const isOwn = user.id === currentSession().user.id;
    const {columns} = PEOPLE;

    return h(
        'tr',
        {'data-id': user.id, 'class': user.status === 'disabled' ? 'is-revoked' : null},
        h(
            'th',
            {scope: 'row', class: isOwn ? 'own' : null},
            newButton('row-name', () => open(user.id), foreign(user.email), {title: foreign(user.email)}),
            isOwn ? h('span', {class: 'tag'}, PEOPLE.you) : null,
        ),
        h('td', {'data-label': columns.role}, h('span', {title: ROLES[user.role]?.text}, roleName(user.role))),
        h('td', {'data-label': columns.status}, statusBadge(user.status)),
        h('td', {'data-label': columns.factor, 'class': 'factor-cell'}, factorOf(user)),
        h('td', {'data-label': columns.seen}, timeElement(user.last_sign_in_at)),
    );
}

function invitationRow(invitation, reload) {
    const {invitationColumns: columns} = PEOPLE;
    const withdrawn = () => {
        announce(PEOPLE.withdrawn(invitation.email));
        reload();
    };

    return h(
        'tr',
        {'data-id': invitation.id},
        h('th', {scope: 'row'}, h('span', {class: 'row-title wrap'}, foreign(invitation.email))),
        h('td', {'data-label': columns.role}, roleName(invitation.role)),
        h('td', {'data-label': columns.expires}, exactTimeElement(invitation.expires_at)),
        h(
            'td',
            {class: 'action-cell'},
            newButton('danger-quiet small', () => openWithdraw(invitation, withdrawn), PEOPLE.withdraw, {
                'aria-label': PEOPLE.withdrawNamed(invitation.email),
            }),
        ),
    );
}

// invitations: null for people who may not withdraw them.
function invitationSection(invitations, reload) {
    if (!invitations?.data.length) return null;
    return h(
        'section',
        {class: 'invitations'},
        h('h2', null, PEOPLE.invitations),
        listTable(
            'invited',
            PEOPLE.invitationsTable,
            PEOPLE.invitationColumns,
            invitations.data.map((invitation) => invitationRow(invitation, reload)),
        ),
        invitations.has_more ? h('p', {class: 'hint'}, PEOPLE.invitationsCut(invitations.data.length)) : null,
    );
}

const personOfAddress = () => words('person');
const addressOf = (id) => withState({person: id});

export function peoplePage() {
    const content = h('div', {class: 'list-space'});
    const state = {users: [], invitations: null};
    let turn = 0;
    const loadUsers = (after) => call('GET', withQuery(USERS, {limit: PAGE, starting_after: after}));
    const more = pagerMore(PEOPLE.more, async () => {
        const {users} = state;
        const page = await loadUsers(users.at(-1).id);

        if (users === state.users) draw({...state, users: [...users, ...page.data], has_more: page.has_more});
    });
    const loader = loading(content, {placeholder: () => skeletonRows(4), load, draw});

    // Only owners may withdraw, so only they need the invitations.
    async function load() {
        const [page, invitations] = await Promise.all([
            loadUsers(),
            mayAs('owner') ? call('GET', withQuery(INVITATIONS, {limit: INVITATIONS_MAX})) : null,
        ]);

        return {users: page.data, has_more: page.has_more, invitations};
    }
    function draw(next) {
        Object.assign(state, next);
        redraw(
            content,
            listTable('people', PEOPLE.table, PEOPLE.columns, state.users.map((user) => personRow(user, open))),
            state.has_more ? more : null,
            invitationSection(state.invitations, refresh),
        );
    }
    // Without a placeholder: the list stays until its successor is there.
    async function refresh() {
        const mine = (turn += 1);

        try {
            const next = await load();

            if (mine === turn) draw(next);
        } catch (refusal) {
            if (refusal.kind !== 'cancelled' && mine === turn) loader.run();
        }
    }
    function open(id) {
        pushAddress(addressOf(id), {isOver: true});
        showPerson();
    }
    const fetchPerson = (id) => call('GET', `${USERS}/${encodeURIComponent(id)}`).catch(orNone);
    async function showPerson() {
        const id = personOfAddress();
        const isAddress = () => currentAddress() === addressOf(id);

        if (!id) return;
        const user = state.users.find((known) => known.id === id) ?? (await fetchPerson(id).catch(() => null));
        if (!isAddress()) return;
        if (!user) {
            leaveOver(addressOf(''));
            return;
        }
        openPerson(user, {
            changed: refresh,
            reload: () => fetchPerson(id),
            closed: () => {
                if (isAddress()) leaveOver(addressOf(''));
                if (document.activeElement === document.body)
                    content.querySelector(`[data-id="${CSS.escape(id)}"] .row-name`)?.focus();
            },
        });
    }

    loader.run().then(showPerson);
    return {
        element: h(
            'div',
            null,
            pageHead(
                PEOPLE.title,
                PEOPLE.lead,
                mayAs('owner') && newButton('primary', () => openInvite(refresh), [icon('plus'), PEOPLE.invite]),
            ),
            content,
        ),
        stop: loader.stop,
        moved: showPerson,
    };
}
