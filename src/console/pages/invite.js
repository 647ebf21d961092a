// Inviting a person, and the link that is shown once.
import {choiceField, closeFoot, openAction} from './action.js';
import {call, orNone} from './api.js';
import {h} from './dom.js';
import {emailField, notice} from './form.js';
import {exactTimeElement} from './format.js';
import {secretText} from './once.js';
import {PEOPLE} from './people_texts.js';
import {ROLES} from './roles.js';
import {TEXTS} from './texts.js';

export const INVITATIONS = '/v1/console/invitations';

// problem: as of field().
export function roleField(value, problem) {
    const options = Object.entries(ROLES).map(([role, {name, text}]) => ({value: role, title: name, text}));

    return choiceField({legend: PEOPLE.role, name: 'role', value, options, problem});
}

// What a dialog shows instead of its form: the link, once. When the session ends, the link is taken off the screen.
export function linkView(dialog, {email, label, url, expiresAt, again}) {
    dialog.element.addEventListener(
        'veil',
        () => dialog.replace(PEOPLE.linkGoneTitle, notice('warn', PEOPLE.linkGone), closeFoot(dialog)),
        {once: true},
    );
    return {
        title: PEOPLE.linkTitle,
        content: [
            notice('warn', PEOPLE.linkText(email)),
            secretText(label, url, PEOPLE.copyLink),
            h(
                'p',
                {class: 'hint'},
                expiresAt ? [`${PEOPLE.linkExpires} `, exactTimeElement(expiresAt), '. '] : null,
                again,
            ),
            closeFoot(dialog, PEOPLE.done),
        ],
    };
}

export function openInvite(invited) {
    const email = emailField({hint: PEOPLE.emailHint, autocomplete: 'off', autofocus: true});
    const role = roleField('developer', (value) => !value && PEOPLE.roleMissing);

    openAction({
        title: PEOPLE.inviteTitle,
        shape: 'sheet',
        fields: [h('p', null, PEOPLE.inviteLead), email, role],
        submitText: PEOPLE.inviteSubmit,
        workingText: PEOPLE.inviting,
        act: () => call('POST', INVITATIONS, {email: email.value(), role: role.value()}),
        done: (invitation, dialog) => {
            invited();
            return linkView(dialog, {
                email: invitation.email,
                label: PEOPLE.link,
                url: invitation.url,
                expiresAt: invitation.expires_at,
                again: PEOPLE.linkAgain,
            });
        },
        explainOwn: (refusal) => {
            if (refusal.code !== 'user_exists' && refusal.param !== 'email') return null;
            email.setError(refusal.code === 'user_exists' ? PEOPLE.emailTaken : TEXTS.signIn.emailInvalid);
            email.input.focus();
            return [];
        },
    });
}

export function openWithdraw(invitation, withdrawn) {
    openAction({
        title: PEOPLE.withdrawTitle,
        fields: [h('p', null, PEOPLE.withdrawText(invitation.email))],
        submitText: PEOPLE.withdrawSubmit,
        workingText: PEOPLE.withdrawing,
        buttonClass: 'danger',
        // Used or withdrawn in the meantime: then there is nothing left to withdraw.
        act: () => call('DELETE', `${INVITATIONS}/${invitation.id}`).catch(orNone),
        done: withdrawn,
    });
}
