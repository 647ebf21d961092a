// The session page: who is signed in, until when, and signing out.
import {h, icon} from './dom.js';
import {workingForm} from './form.js';
import {clockTime, exactTime} from './format.js';
import {explain, facts, pageHead} from './parts.js';
import {currentSession, signOut} from './session.js';
import {TEXTS} from './texts.js';

export function sessionPage() {
    const session = currentSession();
    const {user} = session;
    const isConfirmed = session.stepUpExpiresMs > Date.now();
    const form = workingForm({
        fields: [h('p', {class: 'hint'}, TEXTS.session.signOutText)],
        submitText: TEXTS.session.signOut,
        workingText: TEXTS.session.signingOut,
        buttonClass: 'secondary',
        submit: signOut,
        explain: (refusal) => [explain(refusal)],
    });
    const until = new Date(session.expiresMs).toISOString();

    return {
        element: h(
            'div',
            null,
            pageHead(TEXTS.pages.session, TEXTS.session.lead),
            h(
                'div',
                {class: 'card narrow'},
                h(
                    'div',
                    {class: 'person'},
                    h('span', {class: 'person-mark'}, icon('person')),
                    h(
                        'div',
                        null,
                        h('strong', {class: 'wrap'}, user.email),
                        h('span', {class: 'faint wrap'}, user.account_name),
                    ),
                ),
                facts([
                    [TEXTS.session.ends, h('time', {datetime: until}, exactTime(until))],
                    [TEXTS.session.idle, TEXTS.session.idleText(Math.max(1, Math.round(session.idleMs / 60000)))],
                    [
                        TEXTS.session.stepUp,
                        isConfirmed
                            ? TEXTS.session.stepUpUntil(clockTime(new Date(session.stepUpExpiresMs).toISOString()))
                            : TEXTS.session.stepUpNone,
                    ],
                    [TEXTS.session.userId, h('code', {class: 'wrap'}, user.id)],
                    [TEXTS.session.accountId, h('code', {class: 'wrap'}, user.account_id)],
                ]),
                form.element,
            ),
        ),
    };
}
