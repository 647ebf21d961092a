// What an owner may do to a person: change the role, reset, disable, enable, remove.
import {choiceField, closeFoot, explainUncertain, openAction} from './action.js';
import {call, withQuery} from './api.js';
import {announce, foreign, h, show} from './dom.js';
import {notice} from './form.js';
import {facts} from './parts.js';
import {linkView, roleField} from './invite.js';
import {keyLinks, keyList, keysOf} from './person_keys.js';
import {PEOPLE} from './people_texts.js';
import {isLower, roleName} from './roles.js';

export const USERS = '/v1/console/users';

const pathOf = (user) => `${USERS}/${user.id}`;

function explainChange(refusal) {
    if (refusal.code === 'last_owner') return [notice('error', PEOPLE.lastOwner)];
    if (refusal.status === 404) return [notice('warn', PEOPLE.gone)];
    return explainUncertain(refusal, PEOPLE);
}

export function openReset(user, changed) {
    openAction({
        title: PEOPLE.resetTitle,
        fields: [h('p', {class: 'wrap'}, PEOPLE.resetText(user.email)), notice('warn', PEOPLE.resetCheck)],
        submitText: PEOPLE.resetSubmit,
        workingText: PEOPLE.resetting,
        buttonClass: 'danger',
        act: () => call('POST', `${pathOf(user)}/reset`),
        done: (answer, dialog) => {
            changed();
            return linkView(dialog, {
                email: user.email,
                label: PEOPLE.resetLink,
                url: answer.url,
                expiresAt: answer.expires_at,
                again: PEOPLE.resetAgain,
            });
        },
        explainOwn: explainChange,
    });
}

export function openEnable(user, changed) {
    openAction({
        title: PEOPLE.enableTitle,
        fields: [h('p', {class: 'wrap'}, PEOPLE.enableText(user.email, roleName(user.role)))],
        submitText: PEOPLE.enableSubmit,
        workingText: PEOPLE.enabling,
        act: () => call('POST', `${pathOf(user)}/enable`),
        done: () => {
            announce(PEOPLE.enabled(user.email));
            changed();
        },
        explainOwn: explainChange,
    });
}

// Disabling and removing

// Fills the space with the keys at stake and remembers their names. The choice does not wait for it.
async function showKeys(space, user, names) {
    show(space, h('p', {class: 'faint'}, PEOPLE.keysLoading));
    try {
        const {keys, isCut} = await keysOf(user.id);

        for (const key of keys) names.set(key.id, key.name);
        if (keys.length) show(space, h('p', null, PEOPLE.keysFound(keys.length, isCut)), keyList(keys));
        else show(space, h('p', {class: 'faint'}, PEOPLE.keysNoneFound));
    } catch {
        show(space, h('p', {class: 'faint'}, PEOPLE.keysUnknown));
    }
}

// The keys at stake, their names as far as they are known, and what becomes of them, as `revoke_keys` takes it.
function keysAtStake(user, value) {
    const space = h('div', {class: 'keys-at-stake'});
    const names = new Map();
    const fate = choiceField({
        legend: PEOPLE.keysTitle,
        name: 'fate',
        value,
        options: [
            {value: 'all', title: PEOPLE.revoke, text: PEOPLE.revokeText},
            {value: 'made', title: PEOPLE.revokeMade, text: PEOPLE.revokeMadeText},
            {value: 'none', title: PEOPLE.keep, text: PEOPLE.keepText},
        ],
    });

    showKeys(space, user, names);
    return {space, names, fate};
}

// What happened. Whatever is still active comes first, because somebody has to act on it.
function endView(dialog, answer, names, {title, text}) {
    const {sessions_ended: sessions, keys_revoked: revoked, keys_kept: kept} = answer;

    return {
        title,
        content: [
            notice('good', text),
            kept.length
                ? notice(
                      'error',
                      h('h3', null, PEOPLE.keptTitle(kept.length)),
                      h('p', null, PEOPLE.keptText),
                      keyLinks(kept, names),
                  )
                : null,
            facts([
                [PEOPLE.sessionsEnded, String(sessions)],
                [
                    PEOPLE.keysRevoked,
                    revoked.length ? [PEOPLE.keysRevokedText(revoked.length), keyLinks(revoked, names)] : PEOPLE.none,
                ],
            ]),
            closeFoot(dialog),
        ],
    };
}

function openEnd(user, {title, text, submitText, workingText, doneTitle, doneText}, act, changed) {
    const {space, names, fate} = keysAtStake(user, 'all');

    openAction({
        title,
        fields: [h('p', {class: 'wrap'}, text), space, fate],
        submitText,
        workingText,
        buttonClass: 'danger',
        act: () => act(fate.value()),
        done: (answer, dialog) => {
            changed();
            return endView(dialog, answer, names, {title: doneTitle, text: doneText});
        },
        explainOwn: explainChange,
    });
}

export function openDisable(user, changed) {
    openEnd(
        user,
        {
            title: PEOPLE.disableTitle,
            text: PEOPLE.disableText(user.email),
            submitText: PEOPLE.disableSubmit,
            workingText: PEOPLE.disabling,
            doneTitle: PEOPLE.disabledTitle,
            doneText: PEOPLE.disabledText(user.email),
        },
        (keys) => call('POST', `${pathOf(user)}/disable`, {revoke_keys: keys}),
        changed,
    );
}

export function openRemove(user, changed) {
    openEnd(
        user,
        {
            title: PEOPLE.removeTitle,
            text: PEOPLE.removeText(user.email),
            submitText: PEOPLE.removeSubmit,
            workingText: PEOPLE.removing,
            doneTitle: PEOPLE.removedTitle,
            doneText: PEOPLE.removedText(user.email),
        },
        (keys) => call('DELETE', withQuery(pathOf(user), {revoke_keys: keys})),
        changed,
    );
}

// The role does not change the keys, so an owner decides here, too.
export function openRole(user, changed) {
    const role = roleField(user.role, (value) => value === user.role && PEOPLE.roleSame);
    const {space, names, fate} = keysAtStake(user, 'none');

    openAction({
        title: PEOPLE.roleTitle,
        fields: [
            h('p', {class: 'wrap'}, h('strong', null, foreign(user.email))),
            role,
            h('p', {class: 'hint'}, PEOPLE.roleText),
            space,
            fate,
        ],
        submitText: PEOPLE.roleSubmit,
        workingText: PEOPLE.roleChanging,
        act: () => call('POST', `${pathOf(user)}/role`, {role: role.value(), revoke_keys: fate.value()}),
        done: (answer, dialog) => {
            const text = PEOPLE.roleChanged(user.email, roleName(role.value()));

            announce(text);
            changed();
            // Keys that stay although the person may less are somebody's decision.
            return answer.keys_revoked.length || (answer.keys_kept.length && isLower(role.value(), user.role))
                ? endView(dialog, answer, names, {title: PEOPLE.roleDone, text})
                : undefined;
        },
        explainOwn: explainChange,
    });
}
