// Signing in, on its own page or over the current one, and the step-up dialog.
import {Refusal} from './api.js';
import {countDown} from './clock.js';
import {h, icon, show} from './dom.js';
import {openDialog} from './dialog.js';
import {timeElement} from './format.js';
import {codeField, emailField, notice, passwordField, userNameField, workingForm} from './form.js';
import {foreignNotice} from './origin.js';
import {explain} from './parts.js';
import {codeWaitMs, currentSession, signIn, stepUp} from './session.js';
import {TEXTS} from './texts.js';
import {dropVeiled, unveil, veil} from './veil.js';

// A refused code is useless now; email and password stay.
function clearCode(code) {
    code.input.value = '';
    code.input.focus();
}

function explainSignIn(refusal, code, wrongCount) {
    if (refusal.code === 'invalid_login') {
        clearCode(code);
        return [
            notice('error', h('p', null, TEXTS.signIn.wrong), wrongCount > 1 ? h('p', null, TEXTS.signIn.clock) : null),
        ];
    }
    if (refusal.code === 'parameter_invalid' && refusal.param === 'email')
        return [notice('error', TEXTS.signIn.emailInvalid)];
    return [explain(refusal)];
}

function warnOfAttack(at) {
    openDialog({
        title: TEXTS.signIn.attacked,
        content: h('p', null, `${TEXTS.signIn.attackedText} `, timeElement(at), '.'),
    });
}

function signInForm({email = '', done, cancel}) {
    const address = emailField({value: email, autofocus: !email});
    const password = passwordField({autofocus: Boolean(email)});
    const code = codeField();
    let wrongCount = 0;
    const form = workingForm({
        fields: [address, password, code],
        submitText: TEXTS.signIn.submit,
        workingText: TEXTS.signIn.working,
        cancel,
        cancelText: TEXTS.signIn.leave,
        submit: async () => {
            const attackedAt = await signIn(address.value(), password.value(), code.value());

            password.input.value = '';
            code.input.value = '';
            done();
            if (attackedAt) warnOfAttack(attackedAt);
        },
        explain: (refusal) => {
            if (refusal.code === 'invalid_login') wrongCount += 1;
            return explainSignIn(refusal, code, wrongCount);
        },
    });

    return form.element;
}

export function brand() {
    return h('span', {class: 'brand'}, h('span', {class: 'brand-mark'}, icon('key')), TEXTS.product);
}

// title: the page's heading, which gets the focus.
export const signInCard = (className, title, lead, ...content) =>
    h(
        'div',
        {class: `card sign-in-card ${className}`},
        brand(),
        h('h1', {tabindex: '-1'}, title),
        lead ? h('p', {class: 'lead'}, lead) : null,
        content,
    );

// The page for people who are not signed in. message: why they see it, if there is a reason.
export function signInPage(message, done, email = '') {
    return h(
        'main',
        {class: 'lone', id: 'content'},
        signInCard(
            '',
            TEXTS.signIn.title,
            TEXTS.signIn.lead,
            message ? notice('info', message) : null,
            foreignNotice() ?? [
                signInForm({email, done}),
                h(
                    'p',
                    {class: 'hint foot'},
                    h('a', {href: '/console/recover'}, TEXTS.signIn.lost),
                    ` ${TEXTS.signIn.lostElse}`,
                ),
            ],
        ),
    );
}

// Resolves when the user has signed in; rejects if they leave instead.
export function openReSignIn(email, reason) {
    veil();
    return new Promise((resolve, reject) => {
        let settle = () => {
            dropVeiled();
            reject(new Refusal('cancelled'));
        };
        const dialog = openDialog({
            title: TEXTS.signIn.again,
            isFixed: true,
            content: [
                h('p', null, reason ?? TEXTS.signIn.ended),
                signInForm({
                    email,
                    done: () => {
                        settle = () => {
                            unveil();
                            resolve();
                        };
                        dialog.close();
                    },
                    cancel: () => dialog.close(),
                }),
            ],
            closed: () => settle(),
        });
    });
}

// Counts down to the next code of the authenticator.
function codeNotice(kind, waitMs, during, over) {
    const text = h('span');
    const write = (words) => show(text, words);

    countDown(
        Date.now() + waitMs,
        (leftMs) => write(during(Math.ceil(leftMs / 1000))),
        () => write(over),
    );
    return h('div', {'aria-live': 'off'}, notice(kind, text));
}

const usedNotice = (waitMs) => codeNotice('warn', waitMs, TEXTS.stepUp.used, TEXTS.stepUp.usedOver);

// Said before anybody types.
const waitNotice = (waitMs) => waitMs > 0 && codeNotice('info', waitMs, TEXTS.stepUp.next, TEXTS.stepUp.nextOver);

// For forms of a signed-in user that ask for password and code. wrong: the text if one of them is.
export function explainProof(refusal, code, wrong) {
    if (!['invalid_login', 'totp_already_used'].includes(refusal.code)) return [explain(refusal)];
    clearCode(code);
    return [refusal.code === 'invalid_login' ? notice('error', wrong) : usedNotice(refusal.retryAfterMs)];
}

// Asks signed-in users for password and code. prove() gets them. wrong: the text if one of them is.
export function proofForm({lead, submitText, workingText, cancel, prove, wrong}) {
    const password = passwordField({autofocus: true});
    const code = codeField();

    return workingForm({
        fields: [
            lead && h('p', null, lead),
            waitNotice(codeWaitMs()),
            userNameField(currentSession()?.user.email ?? ''),
            password,
            code,
        ],
        submitText,
        workingText,
        cancel,
        submit: () => prove(password.value(), code.value()),
        explain: (refusal) => explainProof(refusal, code, wrong),
    }).element;
}

// Resolves when the step-up has succeeded.
export function openStepUp() {
    return new Promise((resolve, reject) => {
        let settle = () => reject(new Refusal('cancelled'));
        const form = proofForm({
            submitText: TEXTS.stepUp.submit,
            workingText: TEXTS.stepUp.working,
            cancel: () => dialog.close(),
            prove: async (password, code) => {
                await stepUp(password, code);
                settle = resolve;
                dialog.close();
            },
            wrong: TEXTS.stepUp.wrong,
        });
        const dialog = openDialog({
            title: TEXTS.stepUp.title,
            content: [h('p', null, TEXTS.stepUp.lead), form],
            closed: () => settle(),
        });
    });
}
