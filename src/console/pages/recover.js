// Lost the phone: a recovery code and the password set up a new authenticator. Signing in comes after that.
import {callOnce} from './api.js';
import {confirmForm} from './authenticator.js';
import {h, show} from './dom.js';
import {emailField, notice, passwordField, textField, workingForm} from './form.js';
import {RECOVER} from './join_texts.js';
import {foreignNotice} from './origin.js';
import {outsideCard, signInLink} from './outside.js';
import {explain} from './parts.js';

const recoveryField = () =>
    textField({
        'label': RECOVER.code,
        'hint': RECOVER.codeHint,
        'problem': (value) => !value && RECOVER.codeMissing,
        'name': 'recovery-code',
        'autocapitalize': 'none',
        'spellcheck': 'false',
        'required': true,
        'maxlength': 64,
        'class': 'mono',
        'data-secret': true,
    });

// begun(email, answer): the server took the recovery code.
function beginForm(known, begun) {
    const address = emailField({value: known, autofocus: true});
    const password = passwordField();
    const code = recoveryField();

    return workingForm({
        fields: [address, password, code],
        submitText: RECOVER.submit,
        workingText: RECOVER.working,
        submit: async () => {
            const email = address.value();
            const proof = {email, password: password.value(), recovery_code: code.value()};

            begun(email, (await callOnce('POST', '/v1/auth/recover', proof)).answer);
        },
        explain: (refusal) => {
            const isWrong = refusal.code === 'invalid_login' || refusal.param === 'recovery_code';

            if (!isWrong) return [explain(refusal)];
            code.input.select();
            code.input.focus();
            return [notice('error', RECOVER.wrong)];
        },
    }).element;
}

// done(message, email): the user may sign in now.
export function recoverPage({done}) {
    const element = h('main', {class: 'lone', id: 'content'});
    const step = (title, lead, ...content) => {
        show(
            element,
            outsideCard(
                title,
                lead,
                content,
                h('p', {class: 'hint foot'}, signInLink(RECOVER.back, null), ` ${RECOVER.noCode}`),
            ),
        );
        (element.querySelector('[autofocus]') ?? element.querySelector('h1')).focus();
    };
    const confirm = (email, answer) =>
        step(
            RECOVER.scanHeading,
            null,
            confirmForm(answer, {
                email,
                submitText: RECOVER.confirm,
                workingText: RECOVER.confirming,
                send: async (totp) => {
                    await callOnce('POST', '/v1/auth/recover/confirm', {ticket: answer.ticket, totp});
                    done(RECOVER.done, email);
                },
                late: () => begin(email, notice('warn', RECOVER.again)),
            }),
        );
    const begin = (email, said) =>
        step(RECOVER.heading, RECOVER.lead, foreignNotice() ?? [said, beginForm(email, confirm)]);

    begin('', null);
    return {element};
}
