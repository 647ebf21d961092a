// My account: how one signs in, and where one is signed in.
import {ACCOUNT} from './account_texts.js';
import {call} from './api.js';
import {openDialog} from './dialog.js';
import {announce, foreign, h, icon, newButton, show} from './dom.js';
import {notice} from './form.js';
import {exactTime, timeElement} from './format.js';
import {passwordForm} from './change_password.js';
import {openNewAuthenticator} from './new_authenticator.js';
import {noticesBar} from './notices.js';
import {ownSessions} from './own_sessions.js';
import {facts, pageHead} from './parts.js';
import {openRecoveryCodes} from './recovery_codes.js';
import {roleElements, roleName} from './roles.js';
import {currentSession} from './session.js';

const FEW = 3;

function openPassword(changed) {
    const dialog = openDialog({
        title: ACCOUNT.passwordTitle,
        content: passwordForm({
            cancel: () => dialog.close(),
            done: () => {
                dialog.close();
                changed();
            },
        }),
    });
}

function means(title, text, state, buttonText, run) {
    return h(
        'div',
        {class: 'means'},
        h('div', null, h('h3', null, title), h('p', {class: 'faint'}, text), state),
        newButton('secondary', run, buttonText),
    );
}

function section(title, text, actions, ...content) {
    return h(
        'section',
        {class: 'account-section'},
        h(
            'div',
            {class: 'section-head'},
            h('div', null, h('h2', null, title), text ? h('p', {class: 'faint'}, text) : null),
            actions,
        ),
        content,
    );
}

function lastSignIn({last_sign_in_at: at, last_sign_in_ip: ip}) {
    return at ? [ACCOUNT.lastSignIn, timeElement(at), ip ? h('span', {class: 'faint wrap'}, ` · ${ip}`) : null] : null;
}

function personCard({user, notices}) {
    return h(
        'div',
        {class: 'card account-card'},
        h(
            'div',
            {class: 'person'},
            h('span', {class: 'person-mark'}, icon('person')),
            h(
                'div',
                null,
                h('strong', {class: 'wrap'}, foreign(user.email)),
                h('span', {class: 'faint wrap'}, foreign(user.account_name)),
            ),
        ),
        facts([
            [ACCOUNT.role, roleElements(user.role)],
            lastSignIn(notices ?? {}),
            [ACCOUNT.userId, h('code', {class: 'wrap'}, user.id)],
            [ACCOUNT.accountId, h('code', {class: 'wrap'}, user.account_id)],
        ]),
    );
}

// After joining.
function welcome({user}) {
    if (!new URLSearchParams(location.search).has('welcome')) return null;
    return notice(
        'good',
        h('h2', null, ACCOUNT.welcomeTitle(user.account_name, roleName(user.role).toLowerCase())),
        h('p', null, ACCOUNT.welcomeText, ' ', h('a', {href: '/console/'}, ACCOUNT.welcomeNext)),
    );
}

export function accountPage() {
    const session = currentSession();
    const said = h('div', {role: 'status'});
    const left = h('p', {class: 'recovery-left'});
    const sessions = ownSessions();
    const until = exactTime(new Date(session.expiresMs).toISOString());
    const idle = ACCOUNT.minutes(Math.max(1, Math.round(session.idleMs / 60000)));

    // Without an answer, nothing is said.
    async function showLeft() {
        const {remaining} = await call('GET', '/v1/console/recovery_codes');

        show(left, h('span', {class: remaining < FEW ? 'few' : 'faint'}, ACCOUNT.recoveryLeft(remaining)));
    }
    function passwordChanged() {
        show(said, notice('good', ACCOUNT.passwordDone));
        announce(ACCOUNT.passwordDone);
        sessions.reload();
    }
    showLeft().catch(() => {});
    sessions.run();
    return {
        element: h(
            'div',
            {class: 'account-page'},
            pageHead(ACCOUNT.title, ACCOUNT.lead),
            welcome(session),
            noticesBar(session.notices),
            said,
            personCard(session),
            section(
                ACCOUNT.signInTitle,
                null,
                null,
                h(
                    'div',
                    {class: 'card means-list'},
                    means(ACCOUNT.password, ACCOUNT.passwordText, null, ACCOUNT.changePassword, () =>
                        openPassword(passwordChanged),
                    ),
                    means(ACCOUNT.factor, ACCOUNT.factorText, null, ACCOUNT.newFactor, openNewAuthenticator),
                    means(ACCOUNT.recovery, ACCOUNT.recoveryText, left, ACCOUNT.newRecovery, () =>
                        openRecoveryCodes(() => showLeft().catch(() => {})),
                    ),
                ),
            ),
            section(ACCOUNT.sessionsTitle, ACCOUNT.sessionsText(idle, until), sessions.others, sessions.content),
            section(
                ACCOUNT.systemTitle,
                ACCOUNT.systemText,
                h('a', {class: 'button secondary', href: '/console/system'}, ACCOUNT.system),
            ),
        ),
        stop: sessions.stop,
    };
}
