// Lost the phone: a recovery code and the password set up a new authenticator. Signing in comes after that.
import {callOnce} from './api.js';
import {authenticatorView, newCodeField, newCodeRefusals} from './authenticator.js';
import {h, show} from './dom.js';
import {
    checkFields,
    codeOf,
    codeProblem,
    emailField,
    emailProblem,
    field,
    notice,
    passwordField,
    userNameField,
    workingForm,
} from './form.js';
import {RECOVER} from './join_texts.js';
import {foreignNotice} from './origin.js';
import {outsideCard, signInLink} from './outside.js';
import {explain} from './parts.js';
import {TEXTS} from './texts.js';

function recoveryField() {
    return field({
        label: RECOVER.code,
        hint: RECOVER.codeHint,
        input: h('input', {
            'type': 'text',
            'name': 'recovery-code',
            'autocomplete': 'off',
            'autocapitalize': 'none',
            'spellcheck': 'false',
            'required': true,
            'maxlength': 64,
            'class': 'mono',
            'data-secret': true,
        }),
    });
}

// begun(email, answer): the server took the recovery code.
function beginForm(email, begun) {
    const address = emailField({value: email, autofocus: true});
    const password = passwordField();
    const code = recoveryField();

    return workingForm({
        fields: [address.element, password.element, code.element],
        submitText: RECOVER.submit,
        workingText: RECOVER.working,
        submit: async () => {
            const who = address.input.value.trim();

            if (
                !checkFields([
                    [address, emailProblem(who)],
                    [password, !password.input.value && TEXTS.signIn.passwordMissing],
                    [code, !code.input.value.trim() && RECOVER.codeMissing],
                ])
            )
                return;
            const {answer} = await callOnce('POST', '/v1/auth/recover', {
                email: who,
                password: password.input.value,
                recovery_code: code.input.value.trim(),
            });

            begun(who, answer);
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

function confirmForm(email, {totp_uri: uri, totp_qr: rows, ticket}, {confirmed, late}) {
    const code = newCodeField();

    return workingForm({
        fields: [userNameField(email), authenticatorView(uri, rows), code.element],
        submitText: RECOVER.confirm,
        workingText: RECOVER.confirming,
        submit: async () => {
            if (!checkFields([[code, codeProblem(code.input)]])) return;
            await callOnce('POST', '/v1/auth/recover/confirm', {ticket, totp: codeOf(code.input)});
            confirmed();
        },
        explain: newCodeRefusals(code, late),
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
            confirmForm(email, answer, {
                confirmed: () => done(RECOVER.done, email),
                late: () => begin(email, notice('warn', RECOVER.again)),
            }),
        );
    const begin = (email, said) =>
        step(RECOVER.heading, RECOVER.lead, foreignNotice() ?? [said, beginForm(email, confirm)]);

    begin('', null);
    return {element};
}
