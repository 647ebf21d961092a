// Joining by a link, or choosing a new password and authenticator by one. Opening the link shows no secret and changes
// nothing: mail scanners do that. The authenticator belongs to the browser that goes on.
import {forgetLinkCode, linkCode, takeLinkCode} from './address.js';
import {callOnce} from './api.js';
import {authenticatorView, newCodeField, newCodeRefusals} from './authenticator.js';
import {bullets, foreign, h, show} from './dom.js';
import {notice, userNameField, workingForm} from './form.js';
import {timeElement} from './format.js';
import {JOIN} from './join_texts.js';
import {explainPassword, newPasswordField} from './new_password.js';
import {foreignNotice} from './origin.js';
import {outsideCard, signInLink} from './outside.js';
import {explain, facts, loading} from './parts.js';
import {roleElements} from './roles.js';
import {join} from './session.js';

const WELCOME = '/console/account?welcome';

const isReset = (link) => link.purpose === 'reset';

function endCard(title, text) {
    return outsideCard(title, text, h('p', null, signInLink(JOIN.toSignIn)));
}

// What the link offers. Null if it does not work.
async function lookUp(code) {
    try {
        return (await callOnce('POST', '/v1/auth/join/begin', {code})).answer;
    } catch (refusal) {
        if ([400, 404, 413].includes(refusal.status)) return null;
        throw refusal;
    }
}

// Who is signed in in this browser, if anybody.
async function whoIsSignedIn() {
    try {
        return (await callOnce('GET', '/v1/console/session')).answer.user.email;
    } catch {
        return '';
    }
}

// Who else has opened it, so that nobody goes on with a link that others have seen without knowing.
function openedNotice({opened}) {
    if (opened.length === 0) return null;
    return notice(
        'info',
        JOIN.opened,
        bullets(null, opened.map(({time, network, browser}) => [timeElement(time), JOIN.openedFrom(browser, network)])),
    );
}

function startForm(link, {dead, started}) {
    return workingForm({
        fields: [openedNotice(link)],
        submitText: JOIN.start,
        workingText: JOIN.starting,
        submit: async () => started((await callOnce('POST', '/v1/auth/join/start', {code: linkCode()})).answer),
        explain: (refusal) => (refusal.status === 404 ? (dead(), []) : [explain(refusal)]),
    }).element;
}

function joinForm(link, {dead}) {
    const password = newPasswordField(() => ({email: link.email}), {autofocus: true});
    const code = newCodeField();
    const explainCode = newCodeRefusals(code, dead);

    return workingForm({
        fields: [
            h('h2', null, JOIN.step1),
            userNameField(link.email),
            password,
            h('h2', null, JOIN.step2),
            authenticatorView(link.totp_uri, link.totp_qr),
            code,
        ],
        submitText: isReset(link) ? JOIN.submitReset : JOIN.submitJoin,
        workingText: JOIN.working,
        submit: async () => {
            await join(linkCode(), password.value(), code.value());
            password.input.value = '';
            code.input.value = '';
            forgetLinkCode();
            location.replace(WELCOME);
        },
        explain: (refusal) => {
            if (refusal.code === 'user_exists') return [notice('error', JOIN.taken)];
            if (refusal.code === 'link_not_started') return [notice('error', JOIN.notStarted)];
            return explainPassword(refusal, password, 'password') ? [] : explainCode(refusal);
        },
    }).element;
}

function joinCard(link, signedIn, form) {
    return outsideCard(
        isReset(link) ? JOIN.resetTitle : JOIN.inviteTitle(link.account_name),
        isReset(link) ? JOIN.resetLead : JOIN.inviteLead,
        signedIn ? notice('info', JOIN.signedIn(signedIn)) : null,
        facts([
            isReset(link) ? [JOIN.account, foreign(link.account_name)] : null,
            [JOIN.email, h('strong', {class: 'wrap'}, foreign(link.email))],
            [JOIN.role, roleElements(link.role)],
        ]),
        form,
    );
}

export function joinPage() {
    const element = h('main', {class: 'lone', id: 'content'});
    const step = (card) => {
        show(element, card);
        element.querySelector('h1').focus();
    };
    const dead = () => {
        forgetLinkCode();
        step(endCard(JOIN.deadTitle, JOIN.dead));
    };
    const loader = loading(element, {
        placeholder: () => outsideCard(JOIN.title, JOIN.loading),
        load: async () => {
            const [link, signedIn] = await Promise.all([lookUp(linkCode()), whoIsSignedIn()]);

            return {link, signedIn};
        },
        draw: ({link, signedIn}) => {
            const started = (authenticator) =>
                step(joinCard(link, signedIn, joinForm({...link, ...authenticator}, {dead})));

            if (link) step(joinCard(link, signedIn, startForm(link, {dead, started})));
            else dead();
        },
    });
    const start = () => {
        takeLinkCode();
        if (foreignNotice()) step(outsideCard(JOIN.title, null, foreignNotice()));
        else if (!linkCode()) step(endCard(JOIN.noneTitle, JOIN.none));
        else loader.run();
    };

    // Another link, opened in this tab, loads no new document.
    addEventListener('hashchange', () => location.hash && start());
    start();
    return {element};
}
